"""Values remembered for objects are kept per object, and their number is limited."""

from __future__ import annotations

from executor.identity_cache import Remembered


def test_a_value_is_made_once_for_an_object() -> None:
    """Equal objects have separate values."""
    made: list[list[int]] = []

    def make(item: list[int]) -> int:
        made.append(item)
        return len(item)

    remembered = Remembered(make)
    one, other = [1, 2], [1, 2]
    assert [remembered(one), remembered(one), remembered(other)] == [2, 2, 2]
    assert [item is one for item in made] == [True, False]


def test_the_memory_is_bounded() -> None:
    """At the limit, the memory starts empty again."""
    made: list[str] = []

    def make(item: list[str]) -> str:
        made.append(item[0])
        return item[0]

    remembered = Remembered(make, most=2)
    items = [["a"], ["b"], ["c"]]
    assert [remembered(item) for item in (*items, items[0], items[2])] == ["a", "b", "c", "a", "c"]
    assert made == ["a", "b", "c", "a"]

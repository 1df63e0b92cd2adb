"""Tests of which a run executes a sample, and all with ``--whole``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from typing import Any, Final

import pytest
from hypothesis import settings

#: Engines of a test whose views with engine switches represent Spark's.
ENGINES: Final = ("embedded", pytest.param("spark", marks=(pytest.mark.spark, pytest.mark.whole)))


def sample(values: Iterable[Any], chosen: Container[Any]) -> list[Any]:
    """The values of a test's parameter, or tuples of several; those that are not ``chosen`` run with ``--whole``
    only."""
    return [value if value in chosen else _whole(value if isinstance(value, tuple) else (value,)) for value in values]


def examples(count: int) -> int:
    """How many examples a property test has: ``count`` with ``--whole``, else as large a part of them as the tests that
    name no number."""
    return max(1, count * settings().max_examples // 100)


def beyond(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """The tests represented by others. ``@pytest.mark.sample(3)``: of a function's cases, or of a file's tests if its
    ``pytestmark`` has the mark, every third one runs without ``--whole``."""
    seen = Counter[tuple[str, ...]]()
    for item in items:
        if item.get_closest_marker("whole") is not None:
            yield item
            continue
        for node, mark in item.iter_markers_with_node("sample"):
            (every,) = mark.args
            alike = item.nodeid.partition("[")[0] if node is item else node.nodeid
            place = (alike, "spark" if item.get_closest_marker("spark") else "")
            seen[place] += 1
            if (seen[place] - 1) % every:
                yield item
                break


def _whole(values: tuple[Any, ...]) -> Any:
    return pytest.param(*values, marks=pytest.mark.whole)

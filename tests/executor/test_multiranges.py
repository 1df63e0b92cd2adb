"""Multiranges in the embedded engine compared with sets of integers, for random operands of each operator."""

from __future__ import annotations

from random import Random

from catalog.values.multiranges import made, parts_of
from catalog.values.ranges import Bounds, canonical, packed, unpacked
from catalog.values.types import by_name
from executor.embedded.instance import Instance

RANGE, MULTIRANGE = by_name("int4range"), by_name("int4multirange")
#: The values that are checked; bounds lie within.
WORLD = range(-2, 12)
PAIRS = 300


def _random(source: Random) -> bytes:
    parts = []
    for _ in range(source.choice((0, 1, 1, 2, 3, 5))):
        lower, upper = sorted(source.choices(range(10), k=2))
        bounds = Bounds(*(None if source.random() < 0.1 else bound for bound in (lower, upper)), True, False)
        parts.append(packed(RANGE, canonical(RANGE, bounds)))
    return made(MULTIRANGE, parts)


def _values(data: bytes) -> frozenset[int]:
    found = [unpacked(RANGE, part) for part in parts_of(MULTIRANGE, data)]
    within = (
        (-99 if each.lower is None else each.lower, 99 if each.upper is None else each.upper)
        for each in found
        if each is not None
    )
    return frozenset(value for lower, upper in within for value in WORLD if lower <= value < upper)


def test_operators_are_those_of_sets() -> None:
    source = Random(7)
    pairs = [(_random(source), _random(source)) for _ in range(PAIRS)]
    given = ", ".join(f"(unhex('{first.hex()}'), unhex('{second.hex()}'))" for first, second in pairs)
    calls = ", ".join(
        f"ms_multirange_{name}_8(a, b)" for name in ("union", "intersect", "minus", "contains", "overlaps")
    )
    engine = Instance(1)
    connection = engine.acquire()
    try:
        query = f"SELECT {calls}, ms_multirange_contains_value_8(a, 5) FROM (VALUES {given}) given (a, b)"
        rows = connection.execute(query).fetchall()
    finally:
        engine.release(connection)
        engine.close()
    assert len(rows) == PAIRS
    for (first, second), row in zip(pairs, rows, strict=True):
        a, b = _values(first), _values(second)
        assert [_values(item) for item in row[:3]] == [a | b, a & b, a - b]
        assert all(made(MULTIRANGE, parts_of(MULTIRANGE, item)) == item for item in row[:3])
        assert row[3:] == (a >= b, bool(a & b), 5 in a)


def test_many_ranges_make_one_multirange() -> None:
    """A value too long to be split by slices."""
    engine = Instance(1)
    connection = engine.acquire()
    parts = "list_transform(range(500, 0, -1), lambda n: ms_range_make_8(n * 3, n * 3 + 2, '[)'))"
    try:
        again = "ms_multirange_make_8(ms_multirange_parts_8(m)) = m"
        query = f"SELECT len(ms_multirange_parts_8(m)), {again} FROM (SELECT ms_multirange_make_8({parts}) AS m)"
        assert connection.execute(query).fetchall() == [(500, True)]
    finally:
        engine.release(connection)
        engine.close()

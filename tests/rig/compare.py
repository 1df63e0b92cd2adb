"""Compares row sets: exactly, except for floating point numbers (relative 1e-9, the law of the architecture)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from functools import cache
from types import NoneType
from typing import Any

from psycopg.types.multirange import Multirange

RELATIVE = 1e-9
_PLAIN = frozenset((int, str, bool, bytes, Decimal, date, NoneType))

Row = Sequence[Any]


def difference(actual: Iterable[Row], expected: Iterable[Row]) -> str | None:
    """None if both are the same bag of rows, else a description of the first few rows that differ."""
    found, wanted = list(map(tuple, actual)), list(map(tuple, expected))
    if Counter(map(_exact, found)) == Counter(map(_exact, wanted)):
        return None
    extra, missing = _without(found, wanted), _without(wanted, found)
    if len(extra) == len(missing) and all(_near(*pair) for pair in zip(extra, missing, strict=True)):
        return None
    return (
        f"{len(found)} rows, expected {len(wanted)}\n"
        f"  only found    ({len(extra)}): {extra[:3]}\n"
        f"  only expected ({len(missing)}): {missing[:3]}"
    )


def assert_same_rows(actual: Iterable[Row], expected: Iterable[Row], what: str = "rows") -> None:
    """Raises AssertionError with the rows that differ."""
    report = difference(actual, expected)
    assert report is None, f"{what}: {report}"


def _exact(row: Row) -> tuple[Any, ...]:
    """A hashable form under which only indistinguishable rows are equal; 1 is not true."""
    types = tuple(map(type, row))
    return (types, row) if _are_plain(types) else tuple(map(_image, row))


@cache
def _are_plain(types: tuple[type, ...]) -> bool:
    """Whether equal values of these types are indistinguishable."""
    return _PLAIN.issuperset(types)


def _image(value: Any) -> Any:
    match value:
        case list() | tuple():
            return ("list", *map(_image, value))
        case dict():
            return ("dict", tuple(sorted((key, _image(item)) for key, item in value.items())))
        case Multirange():
            return ("multirange", *value)
        case Decimal():
            return ("numeric", value)
        case float():
            return ("float", "nan" if math.isnan(value) else value + 0.0)
        case _:
            return (type(value).__name__, value)


def _without(rows: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    """The bag difference, sorted with exact columns first, so that rows that differ only in rounding are at the same
    place."""
    left = Counter(map(_exact, others))
    kept = []
    for row in rows:
        image = _exact(row)
        if left[image] > 0:
            left[image] -= 1
        else:
            kept.append(row)
    return sorted(kept, key=lambda row: (repr([_image(v) for v in row if not isinstance(v, float)]), _floats(row)))


def _floats(row: Row) -> tuple[float, ...]:
    return tuple(value for value in row if isinstance(value, float) and not math.isnan(value))


def _near(left: Row, right: Row) -> bool:
    return len(left) == len(right) and all(map(_value_is_near, left, right))


def _value_is_near(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=RELATIVE, abs_tol=1e-12) or (math.isnan(left) and math.isnan(right))
    if isinstance(left, list) and isinstance(right, list):
        return _near(left, right)
    return bool(_image(left) == _image(right))

"""What conditions say of the difference of two times.

    b.ts <= a.ts + interval '1 hour'                          b.ts - a.ts <= 1 hour
    b.ts - interval '1 hour' < a.ts                           the same
    b.ts - a.ts BETWEEN interval '0' AND interval '1 hour'    the same, and a.ts - b.ts <= 0

Each side of a comparison is a sum of times and constant intervals without months. A day is 24 hours; a time zone may
shorten or lengthen what a day adds to a timestamptz, by no more than another day, for which bounds have room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from planner.algebra.event_time import span
from planner.algebra.nodes import Call, Column, ColumnRef, Literal, Scalar

_TIMES: Final = ("timestamp", "timestamptz")
_DAY: Final = 86_400_000_000
#: A comparison as one or both of ``left <= right`` and ``right <= left``: whether the sides are exchanged. A strict one
#: counts as the other.
_EXCHANGED: Final = {"le": (False,), "lt": (False,), "ge": (True,), "gt": (True,), "eq": (False, True)}
_NEGATED: Final = {"le": "gt", "lt": "ge", "ge": "lt", "gt": "le"}


class Difference(Struct, frozen=True):
    """``later`` is at most ``most`` microseconds after ``earlier``, which may be negative."""

    later: Column
    earlier: Column
    most: int


class _Sum(Struct, frozen=True):
    """Columns with how often each counts, and microseconds between ``least`` and ``most``."""

    columns: Mapping[Column, int]
    least: int = 0
    most: int = 0

    def minus(self, other: _Sum) -> _Sum:
        """The difference of two sums."""
        counts = Counter(self.columns)
        counts.subtract(other.columns)
        columns = {column: count for column, count in counts.items() if count}
        return _Sum(columns, self.least - other.most, self.most - other.least)

    def plus(self, other: _Sum) -> _Sum:
        """The sum of two sums."""
        return self.minus(_Sum({}).minus(other))


def differences(parts: Iterable[Scalar], computed: Mapping[Column, Scalar]) -> Iterator[Difference]:
    """What conditions that all hold say; ``computed`` is what columns stand for. Where one of the times is NULL, such a
    condition does not hold."""
    for part in parts:
        function, sides = _comparison(part)
        for is_exchanged in _EXCHANGED.get(function, ()):
            left, right = (_sum(side, computed) for side in (reversed(sides) if is_exchanged else sides))
            if left is not None and right is not None:
                found = left.minus(right)  # at most 0
                counts = {count: column for column, count in found.columns.items()}
                if len(found.columns) == 2 and counts.keys() == {1, -1}:
                    yield Difference(counts[1], counts[-1], -found.least)


def closed(found: Iterable[Difference]) -> dict[tuple[Column, Column], int]:
    """How much later one time is than another at most, also by way of others: by the later and the earlier one."""
    most: dict[tuple[Column, Column], int] = {}
    for item in found:
        key = item.later, item.earlier
        most[key] = min(item.most, most.get(key, item.most))
    columns = dict.fromkeys(column for key in most for column in key)
    for between in columns:
        for later in columns:
            for earlier in columns:
                if later != earlier and (later, between) in most and (between, earlier) in most:
                    length = most[later, between] + most[between, earlier]
                    most[later, earlier] = min(length, most.get((later, earlier), length))
    return most


def _comparison(scalar: Scalar) -> tuple[str, tuple[Scalar, ...]]:
    match scalar:
        case Call(function="not", arguments=(Call(function=function, arguments=sides),)):
            return _NEGATED.get(function, ""), sides
        case Call(function=function, arguments=sides):
            return function, sides
        case _:
            return "", ()


def _sum(scalar: Scalar, computed: Mapping[Column, Scalar]) -> _Sum | None:
    """A scalar as a sum of times and intervals; None where it is something else."""
    match scalar:
        case ColumnRef(column=column) if column in computed:
            return _sum(computed[column], computed)
        case ColumnRef(column=column) if column.type.name in _TIMES:
            return _Sum({column: 1})
        case Literal(value=(0, int(days), int(micros)), type=kind) if kind.name == "interval":
            length = span((0, days, micros))
            return _Sum({}, length, length)
        case Call(function="add" | "sub", arguments=(one, other)):
            left, right = _sum(one, computed), _sum(other, computed)
            if left is None or right is None:
                return None
            found = left.plus(right) if scalar.function == "add" else left.minus(right)
            has_days = any(isinstance(side, Literal) and _days(side) for side in (one, other))
            if scalar.type.name == "timestamptz" and has_days:
                return _Sum(found.columns, found.least - _DAY, found.most + _DAY)
            return found
        case _:
            return None


def _days(literal: Literal) -> bool:
    return isinstance(literal.value, tuple) and bool(literal.value[1])

"""Compiled expressions over a few thousand rows: functions from the rows to a vector.

Owns: a delta's rows as vectors, computed expressions, and which of them have comparable values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pyarrow as pa
from msgspec import Struct, field

from catalog.values.types import SqlType
from executor.small.values import INTEGERS
from executor.small.vectors import Values, Vector, scaled, vector_of
from planner.algebra.nodes import Column

_MOMENTS: Final = ("date", "time", "timestamp", "timestamptz")


class Rows(Struct):
    """A delta's rows, or the ``chosen`` ones; columns are found by their source names."""

    count: int
    arrays: Mapping[str, pa.Array]
    chosen: Values | None = None
    _vectors: dict[str, Vector] = field(default_factory=dict)

    def vector(self, source: str) -> Vector:
        """A column of numbers, booleans, dates or timestamps as a vector."""
        known = self._vectors.get(source)
        if known is None:
            known = self._vectors[source] = self.of_chosen(vector_of(self.arrays[source]))
        return known

    def of_chosen(self, whole: Vector) -> Vector:
        """The values of the chosen rows, from the values of all rows."""
        if self.chosen is None:
            return whole
        null = None if whole.null is None else whole.null[self.chosen]
        return Vector(whole.values[self.chosen], null, whole.limit)

    def choose(self, chosen: Values) -> Rows:
        """The rows restricted to some."""
        assert self.chosen is None
        rows = Rows(len(chosen), self.arrays, chosen)
        rows._vectors = {source: rows.of_chosen(whole) for source, whole in self._vectors.items()}
        return rows


class Computed(Struct, frozen=True):
    """An expression; if its type is an exact number, its vectors are counts of 10^-``scale``."""

    type: SqlType
    run: Callable[[Rows], Vector]
    scale: int = 0


#: The expressions of a relation's columns.
Scope = Mapping[Column, Computed]
#: Source names of a delta's columns that are passed on unchanged.
Sources = Mapping[Column, str]


def family(kind: SqlType) -> str | None:
    """The family of a type, whose values are computed and compared alike; None for types that vectors do not hold."""
    if kind.name in (*INTEGERS, "numeric"):
        return "number"
    return kind.name if kind.name in ("bool", "float8", *_MOMENTS) else None


def source_of(column: Column, source: str) -> Computed | None:
    """The source name of a delta's column, None for other expressions."""
    if family(column.type) is None:
        return None
    scale = column.type.scale if column.type.name == "numeric" else 0
    return Computed(column.type, lambda rows: rows.vector(source), scale)


def alike(items: Sequence[Computed]) -> bool:
    """Whether values of two types compare directly: floats only with floats, dates only with dates."""
    return len({family(item.type) for item in items}) == 1


def at(item: Computed, scale: int) -> Callable[[Rows], Vector]:
    """The expression, with its vectors as counts of 10^-``scale``."""
    if item.scale == scale:
        return item.run
    power = 10 ** (scale - item.scale)
    return lambda rows: scaled(item.run(rows), power)

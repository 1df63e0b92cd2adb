"""A compiled expression over a few thousand rows: a function from the rows to a vector.

Owns: a delta's rows as vectors, computed expressions, and which of them are of one kind.
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
    """A delta's rows, or those of them that were ``chosen``; columns by the names of their sources."""

    count: int
    arrays: Mapping[str, pa.Array]
    chosen: Values | None = None
    _vectors: dict[str, Vector] = field(default_factory=dict)

    def vector(self, source: str) -> Vector:
        """A column of numbers, truth or moments."""
        known = self._vectors.get(source)
        if known is None:
            known = self._vectors[source] = self.of_chosen(vector_of(self.arrays[source]))
        return known

    def of_chosen(self, whole: Vector) -> Vector:
        """What all of the delta's rows have, for those that count."""
        if self.chosen is None:
            return whole
        null = None if whole.null is None else whole.null[self.chosen]
        return Vector(whole.values[self.chosen], null, whole.limit)

    def choose(self, chosen: Values) -> Rows:
        """Those rows alone."""
        assert self.chosen is None
        rows = Rows(len(chosen), self.arrays, chosen)
        rows._vectors = {source: rows.of_chosen(whole) for source, whole in self._vectors.items()}
        return rows


class Computed(Struct, frozen=True):
    """An expression: its vectors are counts of 10^-``scale`` where its type is an exact number."""

    type: SqlType
    run: Callable[[Rows], Vector]
    scale: int = 0


#: What the columns of a relation are.
Scope = Mapping[Column, Computed]
#: Source names of a delta's columns, for those that are passed on as they are.
Sources = Mapping[Column, str]


def family(kind: SqlType) -> str | None:
    """Types of one family are computed and compared alike; None for those that vectors do not hold."""
    if kind.name in (*INTEGERS, "numeric"):
        return "number"
    return kind.name if kind.name in ("bool", "float8", *_MOMENTS) else None


def source_of(column: Column, source: str) -> Computed | None:
    """A column of the delta."""
    if family(column.type) is None:
        return None
    scale = column.type.scale if column.type.name == "numeric" else 0
    return Computed(column.type, lambda rows: rows.vector(source), scale)


def alike(items: Sequence[Computed]) -> bool:
    """Whether values compare as they are: floats only with floats, dates with dates."""
    return len({family(item.type) for item in items}) == 1


def at(item: Computed, scale: int) -> Callable[[Rows], Vector]:
    """The expression's vectors as counts of 10^-``scale``."""
    if item.scale == scale:
        return item.run
    power = 10 ** (scale - item.scale)
    return lambda rows: scaled(item.run(rows), power)

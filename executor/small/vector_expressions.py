"""Scalar expressions over a few thousand rows, computed with numpy.

Owns: which expressions these are, and constants, casts, CASE and texts; ``vector_operations`` has the calls. The engine
computes all other expressions.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from executor.small.value_expressions import holds, keeps
from executor.small.values import EXACT, INTEGERS
from executor.small.vector_columns import Computed, Rows, Scope, Sources, alike, at, family
from executor.small.vector_operations import chosen, operation, truth_of
from executor.small.vectors import LARGEST, Nulls, Vector, nulls_of, vector_of
from planner.algebra.nodes import Call, Case, Cast, Column, ColumnRef, Literal, Scalar

#: Calls that are compiled here in addition to those of ``vector_operations``, the comparisons only for texts.
NULL_TESTS: Final = ("is_null", "is_not_null")
TEXT_TESTS: Final = ("eq", "ne", "in")
TEXTS: Final = ("text", "varchar", "bpchar")
_EPOCH: Final = datetime.datetime(1970, 1, 1)
_FIRST_DAY: Final = datetime.date(1970, 1, 1).toordinal()


class Compiler(Struct, frozen=True):
    """Compiles expressions over a relation's columns; ``sources`` are those that are columns of the delta."""

    scope: Scope
    sources: Sources

    def compiled(self, scalar: Scalar) -> Computed | None:
        """An expression compiled for all rows; None if the engine must compute it."""
        match scalar:
            case ColumnRef(column=column):
                return self.scope.get(column)
            case Literal():
                return _literal(scalar)
            case Cast():
                return self._cast(scalar)
            case Case():
                return self._case(scalar)
            case Call() if scalar.function in NULL_TESTS:
                return self._is_null(scalar)
            case Call() if scalar.function in TEXT_TESTS and scalar.arguments[0].type.name in TEXTS:
                return self._equals_text(scalar)
            case Call():
                found = [self.compiled(item) for item in scalar.arguments]
                known = [item for item in found if item is not None]
                return operation(scalar, known) if len(known) == len(found) else None
            case _:
                return None

    def _cast(self, cast: Cast) -> Computed | None:
        below, target = self.compiled(cast.argument), cast.type
        if below is None:
            return None
        if family(target) == family(below.type) == "number" and keeps(below.type, target) and holds(target, below.type):
            return Computed(target, below.run, below.scale)
        if target.name == "float8" and below.type.name in INTEGERS:
            run = below.run
            return Computed(target, lambda rows: as_floats(run(rows)))
        return None

    def _case(self, case: Case) -> Computed | None:
        conditions = [self.compiled(condition) for condition, _ in case.branches]
        results = [self.compiled(item) for item in (*(result for _, result in case.branches), case.otherwise)]
        if any(item is None or item.type.name != "bool" for item in conditions):
            return None
        known = [item for item in results if item is not None]
        if len(known) != len(results) or not alike(known):
            return None
        scale = max(item.scale for item in known)
        branches = [(item.run, at(known[place], scale)) for place, item in enumerate(conditions) if item is not None]
        otherwise = at(known[-1], scale)

        def run(rows: Rows) -> Vector:
            found = otherwise(rows)
            for condition, result in reversed(branches):
                found = chosen(truth_of(condition(rows)), result(rows), found)
            return found

        return Computed(case.type, run, scale)

    def _is_null(self, call: Call) -> Computed | None:
        (item,) = call.arguments
        nulls = self.nulls(item)
        if nulls is None:
            return None
        wanted = call.function == "is_null"

        def run(rows: Rows) -> Vector:
            null = nulls(rows)
            return Vector(np.full(rows.count, not wanted) if null is None else null if wanted else ~null, None)

        return Computed(call.type, run)

    def nulls(self, scalar: Scalar) -> Callable[[Rows], Nulls] | None:
        """A mask of the rows in which an expression is NULL."""
        if isinstance(scalar, ColumnRef) and scalar.column in self.sources:
            source = self.sources[scalar.column]

            def of_column(rows: Rows) -> Nulls:
                null = nulls_of(rows.arrays[source])
                return null if null is None or rows.chosen is None else null[rows.chosen]

            return of_column
        found = self.compiled(scalar)
        return None if found is None else lambda rows: found.run(rows).null

    def _equals_text(self, call: Call) -> Computed | None:
        """Whether a text column equals one of some constants."""
        first, *others = call.arguments
        texts = [item.value for item in others if isinstance(item, Literal) and isinstance(item.value, str)]
        column = _text_column(first)
        if column is None or column not in self.sources or len(texts) != len(others):
            return None
        wanted = pc.SetLookupOptions(pa.array(texts, pa.string()))
        source, negated = self.sources[column], call.function == "ne"

        def run(rows: Rows) -> Vector:
            array = rows.arrays[source]
            truth = vector_of(pc.call_function("is_in", [array], wanted)).values
            return rows.of_chosen(Vector(~truth if negated else truth, nulls_of(array)))

        return Computed(call.type, run)


def _text_column(scalar: Scalar) -> Column | None:
    """The text column that an expression passes on unchanged."""
    if isinstance(scalar, Cast) and scalar.type.name in ("text", "varchar") and not scalar.type.modifiers:
        return _text_column(scalar.argument)
    return scalar.column if isinstance(scalar, ColumnRef) and scalar.type.name in TEXTS else None


def _literal(literal: Literal) -> Computed | None:
    """A constant."""
    kind, value = literal.type, literal.value
    if family(kind) is None:
        return None
    scale = kind.scale if kind.name == "numeric" else 0
    if value is None:
        zero = {"bool": np.bool_, "float8": np.float64}.get(kind.name, np.int64)(0)
        nothing = Vector(np.asarray(zero), np.asarray(np.True_))
        return Computed(kind, lambda rows: nothing, scale)
    count = _count(value, scale)
    if count is None or (isinstance(count, int) and abs(count) > LARGEST):
        return None
    vector = Vector(np.asarray(count), None, abs(count) if type(count) is int else 0)
    return Computed(kind, lambda rows: vector, scale)


def _count(value: object, scale: int) -> int | float | bool | None:
    """A literal's value in a vector's form."""
    if isinstance(value, Decimal):
        return int(EXACT.scaleb(value, scale))
    if type(value) is int:
        return value * int(10**scale)
    if isinstance(value, bool) or (isinstance(value, float) and np.isfinite(value)):
        return value
    if type(value) is datetime.date:
        return value.toordinal() - _FIRST_DAY
    if type(value) is datetime.datetime:
        moment = value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)
        return (moment - _EPOCH) // datetime.timedelta(microseconds=1)
    return None


def as_floats(vector: Vector) -> Vector:
    return Vector(vector.values.astype(np.float64), vector.null)

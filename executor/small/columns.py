"""Scalar expressions over a few thousand rows, as numpy computes them.

Owns: which expressions these are, each as a function from rows to a ``Vector``: exact arithmetic of integers and
numerics, finite floats, comparisons, truth with NULLs, CASE and coalesce. A result that its type or 64 bits may not
hold raises ``Unusual``, and so does a float that is not finite: then an engine computes the rows, and its error counts.
"""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.types import SqlType
from executor.small.expressions import holds, keeps
from executor.small.values import DIGITS, EXACT, INTEGERS, Unusual
from executor.small.vectors import LARGEST, Nulls, Values, Vector, either, nulls_of, scaled, size_of, vector_of
from planner.expression import Call, Case, Cast, Column, ColumnRef, Literal, Scalar

TEXTS: Final = ("text", "varchar", "bpchar")
_MOMENTS: Final = ("date", "time", "timestamp", "timestamptz")
_EPOCH: Final = datetime.datetime(1970, 1, 1)
_FIRST_DAY: Final = datetime.date(1970, 1, 1).toordinal()
_COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
}


@dataclass(slots=True)
class Rows:
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


@dataclass(frozen=True, slots=True)
class Computed:
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


@dataclass(frozen=True, slots=True)
class Compiler:
    """Compiles expressions over a relation's columns; ``sources`` are those that are a delta's own."""

    scope: Scope
    sources: Sources

    def compiled(self, scalar: Scalar) -> Computed | None:
        """An expression over all rows; None where it is the engine's."""
        match scalar:
            case ColumnRef(column=column):
                return self.scope.get(column)
            case Literal():
                return _literal(scalar)
            case Cast():
                return self._cast(scalar)
            case Case():
                return self._case(scalar)
            case Call(function="is_null" | "is_not_null"):
                return self._is_null(scalar)
            case Call(function="eq" | "ne" | "in") if scalar.arguments[0].type.name in TEXTS:
                return self._equals_text(scalar)
            case Call():
                found = [self.compiled(item) for item in scalar.arguments]
                known = [item for item in found if item is not None]
                return _call(scalar, known) if len(known) == len(found) else None
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
            return Computed(target, lambda rows: _as_floats(run(rows)))
        return None

    def _case(self, case: Case) -> Computed | None:
        conditions = [self.compiled(condition) for condition, _ in case.branches]
        results = [self.compiled(item) for item in (*(result for _, result in case.branches), case.otherwise)]
        if any(item is None or item.type.name != "bool" for item in conditions):
            return None
        known = [item for item in results if item is not None]
        if len(known) != len(results) or not _alike(known):
            return None
        scale = max(item.scale for item in known)
        branches = [(item.run, _at(known[at], scale)) for at, item in enumerate(conditions) if item is not None]
        otherwise = _at(known[-1], scale)

        def run(rows: Rows) -> Vector:
            found = otherwise(rows)
            for condition, result in reversed(branches):
                found = _chosen(_truth(condition(rows)), result(rows), found)
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
        """Where an expression is NULL."""
        if isinstance(scalar, ColumnRef) and scalar.column in self.sources:
            source = self.sources[scalar.column]

            def of_column(rows: Rows) -> Nulls:
                null = nulls_of(rows.arrays[source])
                return null if null is None or rows.chosen is None else null[rows.chosen]

            return of_column
        found = self.compiled(scalar)
        return None if found is None else lambda rows: found.run(rows).null

    def _equals_text(self, call: Call) -> Computed | None:
        """Whether a column is one of some texts."""
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
    """The column whose texts an expression has as they are."""
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
    """A literal's value as a vector has it."""
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


def _call(call: Call, arguments: list[Computed]) -> Computed | None:
    name = call.function
    if name in _ARITHMETIC and len(arguments) == 2:
        return _arithmetic(call, *arguments)
    if name in _COMPARISONS and _alike(arguments):
        return _comparison(name, call.type, *arguments)
    if name == "in" and _alike(arguments):
        first, *others = arguments
        return _connected("or", call.type, [_comparison("eq", call.type, first, item).run for item in others])
    if name in ("and", "or") and all(item.type.name == "bool" for item in arguments):
        return _connected(name, call.type, [item.run for item in arguments])
    if name == "not" and arguments[0].type.name == "bool":
        run = arguments[0].run
        return Computed(call.type, lambda rows: _negated(run(rows)))
    if name == "coalesce" and _alike(arguments):
        scale = max(item.scale for item in arguments)
        return Computed(call.type, _first(tuple(_at(item, scale) for item in arguments)), scale)
    return None


def _alike(items: Sequence[Computed]) -> bool:
    """Whether values compare as they are: floats only with floats, dates with dates."""
    return len({family(item.type) for item in items}) == 1


def _at(item: Computed, scale: int) -> Callable[[Rows], Vector]:
    """The expression's vectors as counts of 10^-``scale``."""
    if item.scale == scale:
        return item.run
    power = 10 ** (scale - item.scale)
    return lambda rows: scaled(item.run(rows), power)


def _as_floats(vector: Vector) -> Vector:
    return Vector(vector.values.astype(np.float64), vector.null)


def _arithmetic(call: Call, left: Computed, right: Computed) -> Computed | None:
    compute = _ARITHMETIC[call.function]
    if call.type.name == "float8" and left.type.name == right.type.name == "float8":
        return Computed(call.type, _of_floats(compute, left.run, right.run))
    if any(family(item) != "number" for item in (call.type, left.type, right.type)):
        return None
    product = call.function == "mul"
    scale = left.scale + right.scale if product else max(left.scale, right.scale)
    declared = call.type.scale if call.type.name == "numeric" else 0
    if scale > declared:
        return None
    bound = _bound(call.type, scale)
    first, second = (left.run, right.run) if product else (_at(left, scale), _at(right, scale))

    def run(rows: Rows) -> Vector:
        a, b = first(rows), second(rows)
        limit = a.limit * b.limit if product else a.limit + b.limit
        if limit > LARGEST:
            raise Unusual
        values = compute(a.values, b.values)
        if limit > bound:
            limit = size_of(values)
            if limit > bound:
                raise Unusual
        return Vector(values, either(a.null, b.null), limit)

    return Computed(call.type, run, scale)


def _bound(kind: SqlType, scale: int) -> int:
    """The largest count of 10^-``scale`` that a type holds with either sign."""
    if kind.name == "numeric":
        return int(10 ** (kind.precision - kind.scale + scale)) - 1
    return {5: 2**15 - 1, 10: 2**31 - 1, 19: 2**63 - 1}[DIGITS[kind.name]]


def _of_floats(
    compute: Callable[[Any, Any], Any], left: Callable[[Rows], Vector], right: Callable[[Rows], Vector]
) -> Callable[[Rows], Vector]:
    def run(rows: Rows) -> Vector:
        a, b = left(rows), right(rows)
        with np.errstate(all="ignore"):
            values = compute(a.values, b.values)
        if not np.isfinite(values).all():
            raise Unusual
        return Vector(values, either(a.null, b.null))

    return run


def _comparison(name: str, truth: SqlType, left: Computed, right: Computed) -> Computed:
    compare, scale = _COMPARISONS[name], max(left.scale, right.scale)
    first, second = _at(left, scale), _at(right, scale)

    def run(rows: Rows) -> Vector:
        a, b = first(rows), second(rows)
        return Vector(compare(a.values, b.values), either(a.null, b.null))

    return Computed(truth, run)


def _truth(vector: Vector) -> Values:
    """Where a condition is true."""
    return vector.values if vector.null is None else vector.values & ~vector.null


def _negated(vector: Vector) -> Vector:
    return Vector(~vector.values, vector.null)


def _connected(name: str, truth: SqlType, runs: Sequence[Callable[[Rows], Vector]]) -> Computed:
    """AND and OR: one value decides, else NULL is stronger than the other."""
    decides = name == "or"

    def run(rows: Rows) -> Vector:
        values, null = runs[0](rows)[:2]
        for item in runs[1:]:
            more, unknown = item(rows)[:2]
            if null is not None or unknown is not None:
                known = [_known(values, null, decides), _known(more, unknown, decides)]
                decided = known[0] | known[1]
                both = either(null, unknown)
                assert both is not None
                null = both & ~decided
                values = decided if decides else ~decided
            else:
                values = values | more if decides else values & more
        return Vector(values, null)

    return Computed(truth, run)


def _known(values: Values, null: Nulls, wanted: bool) -> Values:
    """Where a condition has a certain value."""
    found = values if wanted else ~values
    return found if null is None else found & ~null


def _chosen(condition: Values, then: Vector, otherwise: Vector) -> Vector:
    null: Nulls = None
    if then.null is not None or otherwise.null is not None:
        sides = (np.False_ if item.null is None else item.null for item in (then, otherwise))
        null = np.where(condition, *sides)
    return Vector(np.where(condition, then.values, otherwise.values), null, max(then.limit, otherwise.limit))


def _first(runs: Sequence[Callable[[Rows], Vector]]) -> Callable[[Rows], Vector]:
    """coalesce."""

    def run(rows: Rows) -> Vector:
        found = runs[0](rows)
        for item in runs[1:]:
            if found.null is None:
                return found
            found = _chosen(~found.null, Vector(found.values, None, found.limit), item(rows))
        return found

    return run

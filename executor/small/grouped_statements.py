"""Filters, groups and aggregates a few thousand rows of a stream without an engine.

Owns: the choice of such statements (a grouping over filters and projections of one delta, by columns of the stream) and
their evaluation. The rows are sorted by group once; then every aggregate is one call of numpy, which ends before an
engine would begin. For unusual values or expressions the answer is None, and the engine computes the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct

from catalog.values.types import SqlType
from executor.printing.nodes import column_name
from executor.small.values import FAILURES, KEYS, Unusual
from executor.small.vector_columns import Computed, Rows, family, source_of
from executor.small.vector_expressions import Compiler
from executor.small.vectors import LARGEST, Values, Vector, column_of, either
from planner.algebra.nodes import Aggregate, AggregateCall, Column, ColumnRef, Delta, Filter, Project, Relation

#: The most rows for which numpy, on one thread and with every intermediate column in memory, is quicker than an engine.
ROWS: Final = 8192
_GROUPS: Final = 2**31


class Groups(Struct, frozen=True):
    """Rows sorted by group: their ``order`` (None: unchanged), where each group ``starts``, and the groups'
    ``sizes``."""

    order: Values | None
    starts: Values
    sizes: Values

    def over(self, fold: np.ufunc, vector_values: Values) -> Values:
        """A numpy reduction over the rows of each group."""
        values = vector_values if self.order is None else vector_values[self.order]
        if values.dtype == np.float64:
            with np.errstate(over="ignore"):  # the column check finds an infinite sum
                return fold.reduceat(values, self.starts)
        return fold.reduceat(values, self.starts)

    def spread(self, of_groups: Values) -> Values:
        """Each group's value, repeated for each of its rows."""
        sorted_values = np.repeat(of_groups, self.sizes)
        if self.order is None:
            return sorted_values
        found = np.empty_like(sorted_values)
        found[self.order] = sorted_values
        return found


_Aggregation = Callable[[Rows, Groups], pa.Array]


class Grouping(Struct, frozen=True):
    """A statement's relation: the changes of the relation ``oid`` for which ``condition`` is true, grouped by ``keys``
    (sources) and aggregated."""

    oid: int
    sources: tuple[str, ...]
    condition: Computed | None
    keys: tuple[str, ...]
    aggregates: tuple[_Aggregation, ...]
    nothing: pa.Table  # the relation's rows if no row meets the condition

    def run(self, delta: pa.Table) -> pa.Table | None:
        """The relation's rows, columns c<id>; None if the engine must compute them."""
        if not 0 < delta.num_rows <= ROWS:
            return None
        try:
            return self._run(delta)
        except FAILURES:
            return None

    def _run(self, delta: pa.Table) -> pa.Table:
        rows = Rows(delta.num_rows, {source: _whole(delta.column(source)) for source in self.sources})
        if self.condition is not None:
            condition = self.condition.run(rows)
            truth = condition.values if condition.null is None else condition.values & ~condition.null
            chosen = np.flatnonzero(np.broadcast_to(truth, rows.count))
            if not len(chosen):
                return self.nothing
            if len(chosen) < rows.count:
                rows = rows.choose(chosen)
        keys = [rows.arrays[source] for source in self.keys]
        groups, firsts = _grouped(rows, keys)
        arrays = [key.take(pa.array(firsts)) for key in keys]
        arrays += [aggregate(rows, groups) for aggregate in self.aggregates]
        return pa.Table.from_arrays(arrays, schema=self.nothing.schema)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _grouped(rows: Rows, keys: Sequence[pa.Array]) -> tuple[Groups, Values]:
    """The rows by group, and for each group the place of a row in the delta with the group's keys."""
    if not keys:
        start = np.zeros(1, np.int64)
        return Groups(None, start, np.array([rows.count])), start
    codes, count = np.zeros(1, np.int64), 1
    for key in keys:
        encoded = key.dictionary_encode(null_encoding="encode")
        count *= len(encoded.dictionary)
        if count > _GROUPS:
            raise Unusual
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
    if rows.chosen is not None:
        codes = codes[rows.chosen]
    order = np.argsort(codes.astype(np.int16) if count < 2**15 else codes, kind="stable")
    sorted_codes = codes[order]
    starts = np.flatnonzero(np.concatenate(([True], sorted_codes[1:] != sorted_codes[:-1])))
    sizes = np.diff(starts, append=len(codes))
    firsts = order[starts]
    return Groups(order, starts, sizes), firsts if rows.chosen is None else rows.chosen[firsts]


def grouping_of(relation: Relation) -> Grouping | None:
    """The evaluation of a statement's relation without an engine; None if the engine must compute it."""
    if not isinstance(relation, Aggregate):
        return None
    try:
        return _grouping(relation)
    except RecursionError:  # an expression nested thousands of levels deep
        return None


def _grouping(relation: Aggregate) -> Grouping | None:
    below = _below(relation.input)
    if below is None:
        return None
    compiler, conditions, delta = below
    keys = [compiler.sources.get(key.column) if isinstance(key, ColumnRef) else None for _, key in relation.keys]
    known_keys = tuple(key for key in keys if key is not None)
    if len(known_keys) != len(keys) or any(column.type.name not in KEYS for column, _ in relation.keys):
        return None
    found = [_aggregation(compiler, call, column) for column, call in relation.aggregates]
    aggregates = tuple(item for item in found if item is not None)
    if len(aggregates) != len(found):
        return None
    sources = tuple(dict.fromkeys(delta.sources))
    return Grouping(delta.oid, sources, _all(conditions), known_keys, aggregates, _nothing(relation))


def _nothing(relation: Aggregate) -> pa.Table:
    """The result over no rows: no group, or one group if there are no keys."""
    schema = pa.schema([pa.field(column_name(column), column.type.arrow) for column in relation.columns])
    if relation.keys:
        return schema.empty_table()
    values = [0 if call.function == "count" else None for _, call in relation.aggregates]
    arrays = [pa.array([value], field.type) for value, field in zip(values, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _below(relation: Relation) -> tuple[Compiler, list[Computed], Delta] | None:
    """A relation's columns over the delta below it, the conditions on the delta's rows, and the delta."""
    match relation:
        case Delta():
            pairs = list(zip(relation.columns, relation.sources, strict=True))
            found = {column: source_of(column, source) for column, source in pairs}
            scope = {column: item for column, item in found.items() if item is not None}
            return Compiler(scope, dict(pairs)), [], relation
        case Filter():
            below = _below(relation.input)
            condition = None if below is None else below[0].compiled(relation.predicate)
            return None if below is None or condition is None else (below[0], [*below[1], condition], below[2])
        case Project():
            below = _below(relation.input)
            return None if below is None else (_projected(relation, below[0]), *below[1:])
        case _:
            return None


def _projected(relation: Project, below: Compiler) -> Compiler:
    """The columns of a projection that can be computed here. A column that cannot be computed is left out, as it may be
    unused."""
    scope, sources = {}, {}
    for column, scalar in relation.outputs:
        found = below.compiled(scalar)
        if found is not None:
            scope[column] = found
        if isinstance(scalar, ColumnRef) and scalar.column in below.sources:
            sources[column] = below.sources[scalar.column]
    return Compiler(scope, sources)


def _all(conditions: Sequence[Computed]) -> Computed | None:
    """The conjunction of several conditions, or None."""
    if len(conditions) <= 1:
        return conditions[0] if conditions else None

    def run(rows: Rows) -> Vector:
        truths = [item.run(rows) for item in conditions]
        known = (item.values if item.null is None else item.values & ~item.null for item in truths)
        return Vector(np.logical_and.reduce([np.broadcast_to(item, rows.count) for item in known]), None)

    return Computed(conditions[0].type, run)


# -- aggregates ----------------------------------------------------------------------------------------------------


def _aggregation(compiler: Compiler, call: AggregateCall, column: Column) -> _Aggregation | None:
    """One aggregate's column."""
    if call.distinct or call.order_by:
        return None
    only = None if call.filter is None else compiler.compiled(call.filter)
    if call.filter is not None and only is None:
        return None
    if call.function == "count":
        return _count(compiler, call, only, column.type.arrow)
    items = [compiler.compiled(item) for item in call.arguments]
    make = AGGREGATES.get(call.function)
    known = [item for item in items if item is not None]
    return make(call, known, only, column.type) if make is not None and len(known) == len(items) else None


def _excluded(only: Computed | None, rows: Rows) -> npt.NDArray[np.bool_] | None:
    """A mask of the rows that FILTER excludes."""
    if only is None:
        return None
    condition = only.run(rows)
    return ~condition.values if condition.null is None else ~condition.values | condition.null


def _count(compiler: Compiler, call: AggregateCall, only: Computed | None, kind: pa.DataType) -> _Aggregation | None:
    nulls = compiler.nulls(call.arguments[0]) if call.arguments else _nowhere
    if nulls is None:
        return None

    def run(rows: Rows, groups: Groups) -> pa.Array:
        null = either(nulls(rows), _excluded(only, rows))
        return column_of(groups.sizes if null is None else _present(groups, rows, null), None, kind)

    return run


def _nowhere(_: Rows) -> None:
    """The mask for count(*), which counts every row."""


def _present(groups: Groups, rows: Rows, null: Values) -> Values:
    """The number of values of each group that are not NULL."""
    return groups.over(np.add, (~np.broadcast_to(null, rows.count)).astype(np.int64))


def _sum(call: AggregateCall, items: Sequence[Computed], only: Computed | None, kind: SqlType) -> _Aggregation | None:
    (item,) = items
    declared = kind.scale if kind.name == "numeric" else 0
    if family(kind) != family(item.type) or family(kind) not in ("number", "float8") or declared < item.scale:
        return None
    power = np.int64(10 ** (declared - item.scale)) if declared - item.scale < 19 else None
    if power is None:
        return None

    def run(rows: Rows, groups: Groups) -> pa.Array:
        vector = item.run(rows)
        if vector.limit * rows.count * int(power) > LARGEST:
            raise Unusual
        null = either(vector.null, _excluded(only, rows))
        values, empty = _with(vector.values, null, 0, rows, groups)
        totals = groups.over(np.add, values)
        return column_of(totals if power == 1 else totals * power, empty, kind.arrow)

    return run


def _spread(
    call: AggregateCall, items: Sequence[Computed], only: Computed | None, kind: SqlType
) -> _Aggregation | None:
    """Counts, and for each item the sum and the sum of squared distances from the mean. For pairs (Y, X) the parts of X
    come first, and the sum of the products of both distances last."""
    if any(item.type.name != "float8" for item in items):
        return None

    def run(rows: Rows, groups: Groups) -> pa.Array:
        vectors = [item.run(rows) for item in reversed(items)]
        null = reduce(either, (vector.null for vector in vectors), _excluded(only, rows))
        counts = groups.sizes if null is None else _present(groups, rows, null)
        divisors = np.maximum(counts, 1)
        columns, distances = [counts], []
        with np.errstate(over="ignore", invalid="ignore"):  # the column check finds values that are not finite
            for vector in vectors:
                values, _ = _with(vector.values, null, 0, rows, groups)
                totals = groups.over(np.add, values)
                distance = values - groups.spread(totals / divisors)
                distances.append(distance if null is None else np.where(null, 0.0, distance))
                columns += [totals, groups.over(np.add, distances[-1] * distances[-1])]
            if len(distances) == 2:
                columns.append(groups.over(np.add, distances[0] * distances[1]))
        flat = column_of(np.column_stack(columns).astype(np.float64).ravel(), None, pa.float64())
        return pa.ListArray.from_arrays(np.arange(0, len(flat) + 1, len(columns), dtype=np.int32), flat)

    return run


def _ordered(
    call: AggregateCall, items: Sequence[Computed], only: Computed | None, kind: SqlType
) -> _Aggregation | None:
    (item,) = items
    return None if family(item.type) == "bool" else _extreme(item, only, kind, call.function)


def _truth(call: AggregateCall, items: Sequence[Computed], only: Computed | None, kind: SqlType) -> _Aggregation | None:
    (item,) = items
    if item.type.name != "bool":
        return None
    return _extreme(item, only, kind, "min" if call.function == "bool_and" else "max")


def _extreme(item: Computed, only: Computed | None, kind: SqlType, name: str) -> _Aggregation | None:
    if family(kind) != family(item.type) or kind.name != item.type.name:
        return None
    if kind.name == "numeric" and kind.scale != item.scale:
        return None
    fold: np.ufunc = np.minimum if name == "min" else np.maximum

    def run(rows: Rows, groups: Groups) -> pa.Array:
        vector = item.run(rows)
        null = either(vector.null, _excluded(only, rows))
        values, empty = _with(vector.values, null, _last(vector.values.dtype, name), rows, groups)
        found = groups.over(fold, values)
        if found.dtype == np.float64 and not found.all() and np.signbit(values[values == 0]).any():
            raise Unusual  # of 0 and -0, the later value counts
        return column_of(found if empty is None else np.where(empty, found.dtype.type(0), found), empty, kind.arrow)

    return run


def _last(kind: np.dtype[Any], name: str) -> Any:
    """A value that any value replaces in min or max."""
    if kind == np.bool_:
        return name == "min"
    if kind == np.float64:
        return np.inf if name == "min" else -np.inf
    return np.iinfo(kind).max if name == "min" else np.iinfo(kind).min


def _with(values: Values, null: Values | None, instead: Any, rows: Rows, groups: Groups) -> tuple[Values, Any]:
    """A vector's values with ``something`` in place of NULLs, and a mask of the groups with only NULLs, or None."""
    if not values.ndim:
        values = np.broadcast_to(values, rows.count)
    if null is None:
        return values, None
    empty = _present(groups, rows, null) == 0
    return np.where(null, values.dtype.type(instead), values), empty if empty.any() else None


#: The aggregates other than count that numpy computes, by canonical name.
AGGREGATES: Final[
    Mapping[str, Callable[[AggregateCall, Sequence[Computed], Computed | None, SqlType], _Aggregation | None]]
] = {
    "sum": _sum,
    "min": _ordered,
    "max": _ordered,
    "bool_and": _truth,
    "bool_or": _truth,
    "spread": _spread,
    "paired_spread": _spread,
}

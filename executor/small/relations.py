"""Evaluates relations over one small state or view: projections, filters, orders, and the single row of a state without
keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct

from executor.printing.nodes import column_name, leaf_name
from executor.small import values
from executor.small.ordering import limit_of, sort_of
from executor.small.small_table import AnyTable, SmallTable
from executor.small.value_expressions import Computed, Rows, compiled, keeps
from executor.small.values import FAILURES, Values, computed, fold_of, folded, known_cells, stored
from executor.small.windows import window_of
from planner.algebra.nodes import (
    Aggregate,
    Cast,
    Column,
    ColumnRef,
    Filter,
    Limit,
    Project,
    Relation,
    Scalar,
    Scan,
    Snapshot,
    Sort,
    Window,
)

#: The rows of leaves, by their engine names.
Bindings = Mapping[str, AnyTable]
#: A relation's rows, of those of its leaves and of parameters.
Step = Callable[[Bindings, Sequence[Any]], Rows]


class Small(Struct, frozen=True):
    """A relation that Python evaluates over few rows."""

    step: Step
    leaf: str
    columns: tuple[Column, ...]
    schema: pa.Schema

    def run(self, bindings: Bindings, parameters: Sequence[Any] = ()) -> pa.Table | None:
        """The relation's rows, columns c<id>; None if the engine must compute them, as where the leaf is not bound."""
        table = bindings.get(self.leaf)
        if table is None or table.num_rows * max(table.num_columns, len(self.columns)) > values.CELLS:
            return None
        try:
            rows = self.step(bindings, parameters)
            arrays = [rows.columns[column].array for column in self.columns]
        except FAILURES:
            return None
        found = pa.Table.from_arrays(arrays, names=self.schema.names)
        return found if found.schema.equals(self.schema) else None


def small_of(relation: Relation) -> Small | None:
    """The evaluation of a relation over one state, or over the rows of one continuous view; None if the engine must
    compute it."""
    leaf = relation
    while isinstance(leaf, Project | Filter | Aggregate | Sort | Limit):
        leaf = leaf.input
    if not isinstance(leaf, Snapshot | Scan) or not relation.columns:
        return None
    if isinstance(leaf, Scan) and leaf.kind != "view":
        return None
    try:
        step = _step(relation)
    except RecursionError:  # an expression nested thousands of levels deep
        return None
    if step is None:
        return None
    return Small(step, leaf_name(leaf), relation.columns, schema_of(relation))


def schema_of(relation: Relation) -> pa.Schema:
    """The types of a relation's rows, columns c<id>."""
    return pa.schema([(column_name(column), column.type.arrow) for column in relation.columns])


def _step(relation: Relation) -> Step | None:
    return step_of(relation, _step)


def step_of(relation: Relation, below: Callable[[Relation], Step | None]) -> Step | None:
    """The step of an operator with one input at most; ``below`` makes that of its input."""
    match relation:
        case Snapshot() | Scan():
            return _rows_of(relation)
        case Project():
            return _project(relation, below(relation.input))
        case Filter():
            return _filter(relation, below(relation.input))
        case Aggregate(keys=()):
            return _aggregate(relation, below(relation.input))
        case Sort():
            return _after(below(relation.input), sort_of(relation))
        case Limit():
            return _after(below(relation.input), limit_of(relation))
        case Window():
            return _after(below(relation.input), window_of(relation))
        case _:
            return None


def _rows_of(relation: Snapshot | Scan) -> Step:
    name, sources = leaf_name(relation), dict(zip(relation.columns, relation.sources, strict=True))

    def step(bindings: Bindings, parameters: Sequence[Any]) -> Rows:
        table = bindings[name]
        values = _values_of(table)
        return Rows(table.num_rows, {column: values(source) for column, source in sources.items()}, parameters)

    return step


def _values_of(table: AnyTable) -> Callable[[str], Values]:
    """The columns of a table by their names."""
    if isinstance(table, SmallTable):
        kinds = dict(zip(table.column_names, zip(table.cells, table.types, strict=True), strict=True))
        return lambda name: stored(*kinds[name])
    place_of = table.schema.get_field_index

    def values(name: str) -> Values:
        place = place_of(name)
        return Values(table.schema.field(place).type, lambda: known_cells(table, place), lambda: table.column(place))

    return values


def _project(relation: Project, below: Step | None) -> Step | None:
    picked = [(column, item.column) for column, item in relation.outputs if isinstance(item, ColumnRef)]
    others = [
        (column, column.type.arrow, output_of(item))
        for column, item in relation.outputs
        if not isinstance(item, ColumnRef)
    ]
    if below is None or any(value is None for _, _, value in others):
        return None

    def step(bindings: Bindings, parameters: Sequence[Any]) -> Rows:
        rows = below(bindings, parameters)
        columns = {column: rows.columns[source] for column, source in picked}
        for column, kind, value in others:
            assert value is not None
            columns[column] = computed(value(rows), kind)
        return Rows(rows.count, columns, parameters)

    return step


def _filter(relation: Filter, below: Step | None) -> Step | None:
    predicate = compiled(relation.predicate)
    if below is None or predicate is None:
        return None

    def step(bindings: Bindings, parameters: Sequence[Any]) -> Rows:
        rows = below(bindings, parameters)
        kept = [index for index, value in enumerate(predicate(rows)) if value]
        if len(kept) == rows.count:
            return rows
        return rows.taken(kept)

    return step


def _after(below: Step | None, change: Callable[[Rows], Rows] | None) -> Step | None:
    if below is None or change is None:
        return None
    return lambda bindings, parameters: change(below(bindings, parameters))


def _aggregate(relation: Aggregate, below: Step | None) -> Step | None:
    """The single row of a state without keys."""
    found = [(column, call, fold_of(call, column.type)) for column, call in relation.aggregates]
    if below is None or any(fold is None for _, _, fold in found):
        return None

    def step(bindings: Bindings, parameters: Sequence[Any]) -> Rows:
        rows = below(bindings, parameters)
        groups = [0] * rows.count
        columns: dict[Column, Values] = {}
        for column, call, fold in found:
            (argument,) = call.arguments
            assert isinstance(argument, ColumnRef)
            assert fold is not None
            columns[column] = computed(folded(rows.cells(argument.column), groups, 1, fold), column.type.arrow)
        return Rows(1, columns)

    return step


def output_of(scalar: Scalar) -> Computed | None:
    """An expression whose values become a column; raises if a value does not fit the column's type."""
    if isinstance(scalar, Cast) and keeps(scalar.argument.type, scalar.type):
        return compiled(scalar.argument)
    return compiled(scalar)

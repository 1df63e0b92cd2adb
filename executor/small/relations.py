"""Relations over one small state or view: projections, filters, orders, and the one row of a state without keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct

from executor.printing.nodes import column_name, leaf_name
from executor.small import values
from executor.small.expressions import Arrays, Computed, Rows, compiled, keeps
from executor.small.ordering import limit_of, sort_of, taken
from executor.small.values import FAILURES, array_of, fold_of, folded, known_cells
from planner.algebra.relations import Aggregate, Filter, Limit, Project, Relation, Scan, Snapshot, Sort
from planner.algebra.scalars import Cast, ColumnRef, Scalar

_Step = Callable[[Mapping[str, pa.Table], Sequence[Any]], Rows]


class Small(Struct, frozen=True):
    """A relation that Python evaluates over few rows."""

    step: _Step
    leaf: str
    relation: Relation

    def run(self, bindings: Mapping[str, pa.Table], parameters: Sequence[Any] = ()) -> pa.Table | None:
        """The relation's rows, columns c<id>; None where the engine must."""
        table = bindings[self.leaf]
        if table.num_rows * max(table.num_columns, len(self.relation.columns)) > values.CELLS:
            return None
        try:
            rows = self.step(bindings, parameters)
            arrays = [rows.arrays[column] for column in self.relation.columns]
        except FAILURES:
            return None
        if any(array.type != column.type.arrow for array, column in zip(arrays, self.relation.columns, strict=True)):
            return None
        return pa.Table.from_arrays(arrays, names=[column_name(column) for column in self.relation.columns])


def small_of(relation: Relation) -> Small | None:
    """How a relation over one state, or over the rows of one continuous view, is evaluated here, if it is."""
    leaf = relation
    while isinstance(leaf, Project | Filter | Aggregate | Sort | Limit):
        leaf = leaf.input
    if not isinstance(leaf, Snapshot | Scan) or not relation.columns:
        return None
    if isinstance(leaf, Scan) and leaf.kind != "view":
        return None
    try:
        step = _step(relation)
    except RecursionError:  # an expression of thousands of levels
        return None
    return None if step is None else Small(step, leaf_name(leaf), relation)


def _step(relation: Relation) -> _Step | None:
    match relation:
        case Snapshot() | Scan():
            return _rows_of(relation)
        case Project():
            return _project(relation, _step(relation.input))
        case Filter():
            return _filter(relation, _step(relation.input))
        case Aggregate(keys=()):
            return _aggregate(relation, _step(relation.input))
        case Sort():
            return _after(_step(relation.input), sort_of(relation))
        case Limit():
            return _after(_step(relation.input), limit_of(relation))
        case _:
            return None


def _rows_of(relation: Snapshot | Scan) -> _Step:
    name, pairs = leaf_name(relation), tuple(zip(relation.columns, relation.sources, strict=True))

    def step(bindings: Mapping[str, pa.Table], parameters: Sequence[Any]) -> Rows:
        table = bindings[name]
        places = {column: table.schema.get_field_index(source) for column, source in pairs}
        arrays = {column: table.column(place) for column, place in places.items()}
        return Rows(table.num_rows, arrays, lambda column: known_cells(table, places[column]), parameters)

    return step


def _project(relation: Project, below: _Step | None) -> _Step | None:
    found = [None if isinstance(item, ColumnRef) else output_of(item) for _, item in relation.outputs]
    if below is None or any(
        value is None and not isinstance(item, ColumnRef)
        for value, (_, item) in zip(found, relation.outputs, strict=True)
    ):
        return None

    def step(bindings: Mapping[str, pa.Table], parameters: Sequence[Any]) -> Rows:
        rows = below(bindings, parameters)
        arrays: Arrays = {}
        for value, (column, item) in zip(found, relation.outputs, strict=True):
            if value is None:
                assert isinstance(item, ColumnRef)
                arrays[column] = rows.arrays[item.column]
            else:
                arrays[column] = array_of(value(rows), column.type.arrow)
        return Rows(rows.count, arrays, parameters=parameters)

    return step


def _filter(relation: Filter, below: _Step | None) -> _Step | None:
    predicate = compiled(relation.predicate)
    if below is None or predicate is None:
        return None

    def step(bindings: Mapping[str, pa.Table], parameters: Sequence[Any]) -> Rows:
        rows = below(bindings, parameters)
        kept = [index for index, value in enumerate(predicate(rows)) if value]
        if len(kept) == rows.count:
            return rows
        return taken(rows, kept)

    return step


def _after(below: _Step | None, change: Callable[[Rows], Rows] | None) -> _Step | None:
    if below is None or change is None:
        return None
    return lambda bindings, parameters: change(below(bindings, parameters))


def _aggregate(relation: Aggregate, below: _Step | None) -> _Step | None:
    """The one row of a state without keys."""
    found = [(column, call, fold_of(call, column.type)) for column, call in relation.aggregates]
    if below is None or any(fold is None for _, _, fold in found):
        return None

    def step(bindings: Mapping[str, pa.Table], parameters: Sequence[Any]) -> Rows:
        rows = below(bindings, parameters)
        groups = [0] * rows.count
        arrays: Arrays = {}
        for column, call, fold in found:
            (argument,) = call.arguments
            assert isinstance(argument, ColumnRef)
            assert fold is not None
            arrays[column] = array_of(folded(rows.cells(argument.column), groups, 1, fold), column.type.arrow)
        return Rows(1, arrays)

    return step


def output_of(scalar: Scalar) -> Computed | None:
    """An expression that becomes a column, which checks that the values fit."""
    if isinstance(scalar, Cast) and keeps(scalar.argument.type, scalar.type):
        return compiled(scalar.argument)
    return compiled(scalar)

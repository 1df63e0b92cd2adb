"""Changes of one row by key, so plain that the event loop's thread makes them.

Owns: which INSERT, UPDATE and DELETE these are for a catalog's tables, and the one row that goes or comes: computed
value by value, where the writer's own way (``effects``) computes relations. Of a change that could break a constraint
only the unique keys of a new row are looked up; where anything else could, or a value is out of the ordinary, the
statement goes that way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from catalog.objects import Table, is_temporary
from executor.embedded.tables.changes import Change, insertion, removal, replacement, schema_of
from executor.embedded.tables.effects import typed
from executor.embedded.tables.keyed import ByKey, NotByKey, Reading, Readings, literals
from executor.embedded.tables.unique_keys import key_of
from executor.points import key_value
from executor.small.expressions import Computed, Rows, compiled
from executor.small.relations import output_of
from executor.small.values import FAILURES, array_of
from executor.tables.keyed_rows import Columns, Key, identity_of, keys_in, keys_of
from executor.trace.index import Row
from planner.algebra import ROW_ID, Filter, Project, Relation, Values
from planner.expression import Cast, Column, ColumnRef, Literal, Parameter, Scalar
from planner.statements import Delete, Insert, Update

RowChange = Insert | Update | Delete
#: The row with a key, or the place None. Raises NotByKey where that cannot be told at once.
Find = Callable[[Table, Columns, Key], Row]

_ID: Final = pa.array([0], pa.int64())


@dataclass(frozen=True, slots=True)
class Found:
    """How an UPDATE or DELETE finds its row: by key, under a condition, from columns by their places."""

    by_key: ByKey
    condition: Computed | None
    columns: tuple[tuple[Column, int], ...]

    def row(self, table: Table, find: Find, parameters: Sequence[Any]) -> tuple[pa.Table, Rows]:
        """The row, as columns and as a relation has them. Raises NotByKey where there is none."""
        key = tuple(key_value(item, parameters) for item in self.by_key.values)
        if None in key:
            raise NotByKey
        found, place = find(table, self.by_key.columns, key)
        if place is None:
            raise NotByKey
        old = alone(found, place)
        rows = Rows(1, {column: old.column(at) for column, at in self.columns}, None, parameters)
        if self.condition is not None and not self.condition(rows)[0]:
            raise NotByKey
        return old, rows


@dataclass(frozen=True, slots=True)
class RowUpdate:
    """UPDATE of one row: what its columns become, those aside that stay."""

    table: Table
    found: Found
    schema: pa.Schema
    assigned: tuple[tuple[int, Computed, bool], ...]

    def change(self, find: Find, parameters: Sequence[Any], time_zone: str) -> Change:
        """The old row and the new. Raises NotByKey for whatever is out of the ordinary."""
        old, rows = self.found.row(self.table, find, parameters)
        columns = old.columns
        for place, value, required in self.assigned:
            cells = value(rows)
            if required and cells[0] is None:
                raise NotByKey
            columns[place] = array_of(cells, self.schema.types[place])
        return replacement(_ID, old, pa.Table.from_arrays(columns, schema=self.schema))


@dataclass(frozen=True, slots=True)
class RowDelete:
    """DELETE of one row."""

    table: Table
    found: Found

    def change(self, find: Find, parameters: Sequence[Any], time_zone: str) -> Change:
        """The row that goes. Raises NotByKey where there is none."""
        return removal(_ID, self.found.row(self.table, find, parameters)[0])


@dataclass(frozen=True, slots=True)
class RowInsert:
    """INSERT of one row of literals and parameters."""

    table: Table
    source: Values
    required: tuple[int, ...]

    def change(self, find: Find, parameters: Sequence[Any], time_zone: str) -> Change:
        """The row that comes, whose keys are free. Raises NotByKey where one is not, and what a value raises."""
        rows = literals(self.source, parameters, time_zone)
        if rows is None or any(rows.column(place).null_count for place in self.required):
            raise NotByKey
        new = typed(self.table, rows)
        for key in self.table.keys:
            (values,) = keys_in(new, key.columns)
            if None not in values and find(self.table, key.columns, values).place is not None:
                raise NotByKey
        return insertion(self.table, new)


RowPlan = RowUpdate | RowDelete | RowInsert


def alone(rows: pa.Table, place: int) -> pa.Table:
    """One row of a table with memory of its own, as the log writes it best."""
    return rows if rows.num_rows == 1 else rows.slice(place, 1).take(_ID)


def row_plan(statement: RowChange, definitions: Mapping[int, Table]) -> RowPlan | None:
    """How a statement changes one row of a table; None where it may do anything else."""
    table = statement.target
    if not isinstance(table, Table) or is_temporary(table) or not table.columns or statement.returning is not None:
        return None
    if definitions.get(table.oid) != table:
        return None
    if isinstance(statement, Insert):
        return _insert(statement, table)
    try:
        reading = Readings().get(statement.relation, definitions)
    except NotByKey:
        return None
    found = None if reading.draws or identity_of(table) is None else _found(reading, table)
    if found is None or statement.beside:
        return None
    if isinstance(statement, Delete):
        return None if _is_referenced(table, None, definitions) else RowDelete(table, found)
    return _update(statement, table, found, reading, definitions)


def _insert(statement: Insert, table: Table) -> RowInsert | None:
    source, keys = statement.source, keys_of(table)
    if not isinstance(source, Values) or len(source.rows) != 1:
        return None
    if not all(isinstance(item, Literal | Parameter | Cast) for item in source.rows[0]):
        return None
    if statement.conflict is not None or statement.checks or statement.generated or table.foreign_keys:
        return None
    if any(index.unique for index in table.indexes):
        return None
    if any(key.deferrable or key.nulls_alike or key.columns not in keys for key in table.keys):
        return None
    return RowInsert(table, source, tuple(place for place, item in enumerate(table.columns) if item.not_null))


def _found(reading: Reading, table: Table) -> Found | None:
    """How the row of a relation is found."""
    if reading.by_key is None:
        return None
    condition, below = None, reading.relation
    while isinstance(below, Project):
        below = below.input
    if isinstance(below, Filter):
        condition = compiled(below.predicate)
        if condition is None:
            return None
    names = [column.name for column in table.stored]
    scan = reading.by_key.scan
    columns = tuple(
        (column, names.index(name)) for column, name in zip(scan.columns, scan.sources, strict=True) if name != ROW_ID
    )
    return Found(reading.by_key, condition, columns)


def _update(
    statement: Update, table: Table, found: Found, reading: Reading, definitions: Mapping[int, Table]
) -> RowUpdate | None:
    if statement.checks or statement.generated:
        return None
    places, assigned = dict(found.columns), []
    for place, (column, stored) in enumerate(zip(statement.new, table.stored, strict=True)):
        value = _traced(reading.relation, column)
        if value is None:
            return None
        if isinstance(value, ColumnRef) and places.get(value.column) == place:
            continue
        computed = output_of(value)
        if computed is None or value.type.arrow != stored.type.arrow:
            return None
        assigned.append((place, computed, place < len(table.columns) and table.columns[place].not_null))
    touched = {table.stored[place].name for place, _, _ in assigned}
    keys = [key.columns for key in table.keys] + [reference.columns for reference in table.foreign_keys]
    keys += [tuple(key_of(table, index).uses) for index in table.indexes if index.unique]
    if any(touched.intersection(key) for key in keys) or _is_referenced(table, touched, definitions):
        return None
    return RowUpdate(table, found, schema_of(table), tuple(assigned))


def _is_referenced(table: Table, touched: set[str] | None, definitions: Mapping[int, Table]) -> bool:
    """Whether a row may refer to some columns of one of the table, or to any."""
    return any(
        reference.target == table.oid and (touched is None or touched.intersection(reference.target_columns))
        for other in definitions.values()
        for reference in other.foreign_keys
    )


def _traced(relation: Relation, column: Column) -> Scalar | None:
    """What a column of projections is, over what is below them; None where they compute one after the other."""
    value: Scalar = ColumnRef(column)
    while isinstance(relation, Project):
        if not isinstance(value, ColumnRef):
            return None
        value = dict(relation.outputs)[value.column]
        relation = relation.input
    return value


__all__ = ["FAILURES", "Find", "NotByKey", "RowChange", "RowPlan", "row_plan"]

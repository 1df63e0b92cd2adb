"""Changes of one row by key that are simple enough for the event loop's thread.

Owns: which INSERT, UPDATE and DELETE these are for a catalog's tables, and the computation of the deleted or inserted
row, value by value (the general way, ``effects``, computes relations). Of the constraints, only the unique keys of a
new row are looked up. If another constraint could be violated, or a value is unusual, the statement takes the general
way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from catalog.objects import Table, is_temporary
from executor.rows.point_reads import key_value
from executor.rows.row_shapes import Shape, identity_of, shape_of
from executor.rows.value_rows import Fit, ValueRow, fit_of, value_row
from executor.small.relations import output_of
from executor.small.value_expressions import Computed, Rows, compiled
from executor.small.values import FAILURES, cell_of
from executor.tables.constraints.unique_keys import key_of
from executor.tables.journal import ChangedRow
from executor.tables.statements.changes_by_key import ByKey, NotByKey, Reading, Readings
from executor.tables.statements.literal_table import has_rows, literals
from executor.traces.index import Row
from executor.traces.keyed_rows import Columns, Key
from planner.algebra.nodes import (
    ROW_ID,
    Cast,
    Column,
    ColumnRef,
    Filter,
    Literal,
    Parameter,
    Project,
    Relation,
    Scalar,
    Values,
)
from planner.statements.statement import Delete, Insert, Update

RowChange = Insert | Update | Delete
#: Finds the row with a key, None if there is none. Raises NotByKey if that cannot be decided at once.
Find = Callable[[Table, Columns, Key], Row]


class Found(Struct, frozen=True):
    """How an UPDATE or DELETE finds its row: by key, with a condition, and with columns by their places."""

    shape: Shape
    by_key: ByKey
    condition: Computed | None
    places: Mapping[Column, int]

    def only_key(self, parameters: Sequence[Any]) -> tuple[Columns, Key] | None:
        """The row's key, if the table has no other keys. Raises NotByKey if it is NULL."""
        if len(self.shape.keys) > 1:
            return None
        key = tuple([key_value(item, parameters) for item in self.by_key.values])
        if None in key:
            raise NotByKey
        return self.by_key.columns, key

    def row(self, find: Find, parameters: Sequence[Any]) -> tuple[ValueRow, Rows]:
        """The row, and the row as a relation has it. Raises NotByKey if there is none."""
        key = tuple([key_value(item, parameters) for item in self.by_key.values])
        if None in key:
            raise NotByKey
        found = find(self.shape.table, self.by_key.columns, key)
        if found.place is None:
            raise NotByKey
        old = value_row(self.shape, found)
        values, places = old.values, self.places
        rows = Rows(1, {}, parameters, lambda column: [cell_of(values[places[column]])])
        if self.condition is not None and not self.condition(rows)[0]:
            raise NotByKey
        return old, rows


class Assigned(Struct, frozen=True):
    """The new value of a column."""

    place: int
    value: Computed
    fit: Fit
    required: bool


class RowUpdate(Struct, frozen=True):
    """UPDATE of one row: the new values of the changed columns."""

    found: Found
    assigned: tuple[Assigned, ...]

    @property
    def table(self) -> Table:
        """The table."""
        return self.found.shape.table

    def key(self, parameters: Sequence[Any]) -> tuple[Columns, Key] | None:
        """The row's key, if the table has no other keys; None if the row must be found first."""
        return self.found.only_key(parameters)

    def keys(self, change: ChangedRow) -> list[tuple[Columns, Key]]:
        """The keys by which the changed row is locked."""
        return _keys(self.found.shape, change.old)

    def change(self, find: Find, parameters: Sequence[Any], time_zone: str) -> ChangedRow:
        """The old row and the new one. Raises NotByKey for any unusual case."""
        shape = self.found.shape
        old, rows = self.found.row(find, parameters)
        values = list(old.values)
        for item in self.assigned:
            (cell,) = item.value(rows)
            if cell is None and item.required:
                raise NotByKey
            values[item.place] = None if cell is None else item.fit(cell)
        return ChangedRow(shape.table, old, ValueRow(shape, tuple(values)))


class RowDelete(Struct, frozen=True):
    """DELETE of one row."""

    found: Found

    @property
    def table(self) -> Table:
        """The table."""
        return self.found.shape.table

    def key(self, parameters: Sequence[Any]) -> tuple[Columns, Key] | None:
        """The row's key, if the table has no other keys; None if the row must be found first."""
        return self.found.only_key(parameters)

    def keys(self, change: ChangedRow) -> list[tuple[Columns, Key]]:
        """The keys by which the deleted row is locked."""
        return _keys(self.found.shape, change.old)

    def change(self, find: Find, parameters: Sequence[Any], time_zone: str) -> ChangedRow:
        """The deleted row. Raises NotByKey if there is none."""
        return ChangedRow(self.found.shape.table, self.found.row(find, parameters)[0], None)


class RowInsert(Struct, frozen=True):
    """INSERT of one row of literals and parameters."""

    shape: Shape
    row: tuple[Scalar, ...]
    fits: tuple[Fit, ...]
    required: tuple[int, ...]

    @property
    def table(self) -> Table:
        """The table."""
        return self.shape.table

    def key(self, parameters: Sequence[Any]) -> tuple[Columns, Key] | None:
        """None: the row must be computed first."""
        return None

    def keys(self, change: ChangedRow) -> list[tuple[Columns, Key]]:
        """The new row's keys."""
        return _keys(self.shape, change.new)

    def change(self, find: Find, parameters: Sequence[Any], time_zone: str) -> ChangedRow:
        """The new row. Raises NotByKey if one of its keys is taken, and the errors of values."""
        cells = literals(self.row, parameters, time_zone)
        if cells is None or any(cells[place] is None for place in self.required):
            raise NotByKey
        values = [None if cell is None else fit(cell) for fit, cell in zip(self.fits, cells, strict=True)]
        new = ValueRow(self.shape, tuple(values))
        for columns in self.shape.keys:
            key = new.key(columns)
            if None not in key and find(self.shape.table, columns, key).place is not None:
                raise NotByKey
        return ChangedRow(self.shape.table, None, new)


def _keys(shape: Shape, row: ValueRow | None) -> list[tuple[Columns, Key]]:
    """All keys of a row without NULLs."""
    found = [] if row is None else [(columns, row.key(columns)) for columns in shape.keys]
    return [(columns, key) for columns, key in found if None not in key]


RowPlan = RowUpdate | RowDelete | RowInsert


def row_plan(statement: RowChange, definitions: Mapping[int, Table]) -> RowPlan | None:
    """The plan of a statement that changes one row of a table; None if the statement may do anything else."""
    table = statement.target
    if not isinstance(table, Table) or is_temporary(table) or not table.columns or statement.returning is not None:
        return None
    shape = shape_of(table)
    if definitions.get(table.oid) != table or not all(shape.plain[at] for key in shape.keys.values() for at in key):
        return None
    if isinstance(statement, Insert):
        return _insert(statement, table, shape)
    try:
        reading = Readings().get(statement.relation, definitions)
    except NotByKey:
        return None
    found = None if reading.draws or identity_of(table) is None else _found(reading, shape)
    if found is None or statement.beside:
        return None
    if isinstance(statement, Delete):
        return None if _is_referenced(table, None, definitions) else RowDelete(found)
    return _update(statement, table, found, reading, definitions)


def _insert(statement: Insert, table: Table, shape: Shape) -> RowInsert | None:
    source = statement.source
    if not isinstance(source, Values) or len(source.rows) != 1:
        return None
    if not all(isinstance(item, Literal | Parameter | Cast) for item in source.rows[0]):
        return None
    checks = statement.checks or statement.view_checks
    if statement.conflict is not None or checks or statement.generated or table.foreign_keys:
        return None
    if any(index.unique for index in table.indexes):
        return None
    if any(key.deferrable or key.nulls_alike or key.columns not in shape.keys for key in table.keys):
        return None
    if has_rows(source):
        return None
    required = tuple(place for place, item in enumerate(table.columns) if item.not_null)
    return RowInsert(shape, source.rows[0], tuple(map(fit_of, shape.schema.types)), required)


def _found(reading: Reading, shape: Shape) -> Found | None:
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
    names, scan = shape.schema.names, reading.by_key.scan
    columns = zip(scan.columns, scan.sources, strict=True)
    places = {column: names.index(name) for column, name in columns if name != ROW_ID}
    return Found(shape, reading.by_key, condition, places)


def _update(
    statement: Update, table: Table, found: Found, reading: Reading, definitions: Mapping[int, Table]
) -> RowUpdate | None:
    if statement.checks or statement.generated:
        return None
    places, assigned = found.places, []
    for place, (column, stored) in enumerate(zip(statement.new, table.stored, strict=True)):
        value = _traced(reading.relation, column)
        if value is None:
            return None
        if isinstance(value, ColumnRef) and places.get(value.column) == place:
            continue
        computed = output_of(value)
        if computed is None or value.type.arrow != stored.type.arrow:
            return None
        required = place < len(table.columns) and table.columns[place].not_null
        assigned.append(Assigned(place, computed, fit_of(stored.type.arrow), required))
    touched = {table.stored[item.place].name for item in assigned}
    keys = [key.columns for key in table.keys] + [reference.columns for reference in table.foreign_keys]
    keys += [tuple(key_of(table, index).uses) for index in table.indexes if index.unique]
    if any(touched.intersection(key) for key in keys) or _is_referenced(table, touched, definitions):
        return None
    return RowUpdate(found, tuple(assigned))


def _is_referenced(table: Table, touched: set[str] | None, definitions: Mapping[int, Table]) -> bool:
    """Whether a foreign key may refer to some columns of the table, or to any."""
    return any(
        reference.target == table.oid and (touched is None or touched.intersection(reference.target_columns))
        for other in definitions.values()
        for reference in other.foreign_keys
    )


def _traced(relation: Relation, column: Column) -> Scalar | None:
    """A column of projections, expressed over the relation below them; None if a projection computes over a computed
    column."""
    value: Scalar = ColumnRef(column)
    while isinstance(relation, Project):
        if not isinstance(value, ColumnRef):
            return None
        value = dict(relation.outputs)[value.column]
        relation = relation.input
    return value


__all__ = ["FAILURES", "Find", "NotByKey", "RowChange", "RowPlan", "row_plan"]

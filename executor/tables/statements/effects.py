"""The effect of a statement, computed before any of it is applied.

Owns: the rows that INSERT, UPDATE, DELETE and MERGE delete and insert, CHECK (23514) and NOT NULL (23502) over them,
and RETURNING. Every part of a statement reads the tables as they were before it. Keys and references are checked in
``constraints``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, field
from msgspec.structs import replace

from catalog.objects import Table, subject
from catalog.values.errors import SqlError
from catalog.values.types import INT8
from executor.embedded.connection import Bindings, Connection, Evaluate, Parameters, plainly
from executor.printing.nodes import column_name
from executor.rows.row_shapes import schema_of
from executor.tables.changes import Change, distinct_ids, insertion, nothing, removal, replacement
from executor.tables.constraints.checks import check_not_null
from executor.tables.constraints.unique_keys import key_of
from executor.tables.error_rows import failing_row
from executor.tables.statements.conflicts import Meetings, check_once, meetings, undisputed
from executor.tables.statements.literal_table import literal_table
from planner.algebra.bound_rows import bound
from planner.algebra.nodes import Column, ColumnRef, Filter, Project, Relation, Scalar, Values
from planner.lowering.repeated_rows import TRACE, repeated_rows
from planner.statements.statement import (
    Checks,
    Delete,
    Generated,
    Insert,
    Merge,
    MergeAction,
    Modifying,
    OfView,
    Query,
    Returning,
    RowChange,
    Update,
    Upsert,
)

_RELATIONS: Final = 512
#: Columns for a row's place among the proposed rows, and for the row id of the row that it conflicts with.
_PLACE, _MET = Column(-1, "place", INT8, False), Column(-2, "met", INT8, False)

Modification = RowChange | Modifying


class Arguments(Struct, frozen=True):
    """A statement's inputs other than the tables."""

    parameters: Parameters
    bindings: Bindings
    time_zone: str
    evaluate: Evaluate = plainly
    #: Rows that the statement has already changed, by table.
    taken: Mapping[int, Change] = field(default_factory=dict)


class Effect(Struct, frozen=True):
    """A statement's changes by table, its row count, and RETURNING's rows."""

    changes: Mapping[int, Change]
    count: int
    returned: pa.Table | None = None


#: Relations over bound rows by their purpose, shared by all transactions so that each stays prepared.
OverRows = dict[int, tuple[object, Relation]]


class Effects(Struct):
    """Computes effects from the rows that ``ask`` finds; if rows may conflict by key, over a connection."""

    ask: Callable[[Relation, Bindings, Parameters, str], pa.Table]
    relations: OverRows
    connection: Connection | None = None

    def of(self, statement: Modification, arguments: Arguments) -> Effect:
        """A statement's effect. Raises the errors of its expressions, 21000, 23502 and 23514."""
        match statement:
            case Insert():
                return self._insert(statement, arguments)
            case Update():
                return self._update(statement, arguments)
            case Delete():
                return self._delete(statement, arguments)
            case Merge():
                return self._merge(statement, arguments)
            case Modifying():
                return self._modifying(statement, arguments)

    def _insert(self, statement: Insert, arguments: Arguments) -> Effect:
        table = statement.target
        assert isinstance(table, Table)
        rows = self._query(statement.source, arguments)
        rows = self.complete(table, statement.generated, statement.row, rows, arguments)
        self.check(table, statement.checks, statement.row, rows, arguments)
        conflict, change = statement.conflict, insertion(table, rows)
        updated = np.zeros(rows.num_rows, np.bool_)
        if conflict is not None and conflict.update is None:
            keys = [key_of(table, key) for key in conflict.keys]
            rows = undisputed(self._met_on, table, keys, rows)
            change = insertion(table, rows)
        elif conflict is not None and conflict.update is not None:
            met = meetings(self._met_on, table, key_of(table, conflict.keys[0]), rows)
            change, rows, updated = self._upsert(statement, conflict.update, met, rows, arguments)
        self.check(table, statement.view_checks, statement.row, rows, arguments)
        row, shown = statement.row, rows
        if statement.updated is not None:
            row, shown = (*row, statement.updated), rows.append_column("xmax", pa.array(updated.astype(np.int64)))
        returned = self._returned(statement.returning, row, shown, arguments)
        return Effect({table.oid: change}, rows.num_rows, returned)

    @property
    def _met_on(self) -> Connection:
        assert self.connection is not None
        return self.connection

    def _upsert(
        self, statement: Insert, update: Upsert, met: Meetings, rows: pa.Table, arguments: Arguments
    ) -> tuple[Change, pa.Table, np.ndarray[Any, np.dtype[np.bool_]]]:
        """The change, the resulting rows in the order in which they were proposed, and a mask of the updated ones."""
        table, conflict = statement.target, statement.conflict
        assert isinstance(table, Table) and conflict is not None
        both = (_PLACE, _MET, *update.old, *statement.row)
        beside = pa.Table.from_arrays(
            [met.places, met.row_ids, *met.old.columns, *rows.take(met.places).columns],
            names=[column_name(column) for column in both],
        )
        kept = tuple((column, ColumnRef(column)) for column in (_PLACE, _MET, *update.old))
        outputs = (*kept, *update.assigned)
        found = self._evaluate(self._over_rows(update, both, outputs, update.predicate), both, beside, arguments)
        places, row_ids, width = found.column(0), found.column(1), 2 + len(update.old)
        old = typed(table, found.select(range(2, width)))
        new = self.complete(table, statement.generated, statement.row, _from(found, width), arguments)
        check_once(self._met_on, table, key_of(table, conflict.keys[0]), (places, row_ids, old, new), rows)
        self.check(table, statement.checks, statement.row, new, arguments)
        is_free = np.ones(rows.num_rows, np.bool_)
        is_free[met.places.to_numpy()] = False
        free = np.flatnonzero(is_free)
        change = Change(row_ids, old, pa.concat_tables([new, rows.take(free)]), new.num_rows)
        order = np.argsort(np.concatenate([places.to_numpy(), free]))
        return change, change.inserted.take(order), order < new.num_rows

    def _update(self, statement: Update, arguments: Arguments) -> Effect:
        table = statement.target
        found = self._found(statement, arguments)
        old, new = (found.select(list(map(column_name, row))) for row in (statement.old, statement.new))
        old, new = typed(table, old), self.complete(table, statement.generated, statement.new, new, arguments)
        self.check(table, statement.checks, statement.new, new, arguments)
        change = replacement(found.column(column_name(statement.row_id)), old, new)
        row = (*statement.new, *statement.beside)
        beside = found.select(list(map(column_name, statement.beside)))
        rows = pa.Table.from_arrays([*new.columns, *beside.columns], names=list(map(column_name, row)))
        returned = self._returned(statement.returning, row, rows, arguments)
        return Effect({table.oid: change}, found.num_rows, returned)

    def _delete(self, statement: Delete, arguments: Arguments) -> Effect:
        table = statement.target
        found = self._found(statement, arguments)
        old = typed(table, found.select(list(map(column_name, statement.old))))
        change = removal(found.column(column_name(statement.row_id)), old)
        returned = self._returned(statement.returning, (*statement.old, *statement.beside), found, arguments)
        return Effect({table.oid: change}, found.num_rows, returned)

    def _found(self, statement: Update | Delete, arguments: Arguments) -> pa.Table:
        """The rows to change, each once, and none that another part of the statement changes."""
        name = column_name(statement.row_id)
        rows = distinct_ids(self._query(statement.relation, arguments), name)
        taken = arguments.taken.get(statement.target.oid)
        if taken is None or not len(taken.row_ids):
            return rows
        is_free = ~np.isin(rows.column(name).to_numpy(), taken.row_ids.to_numpy())
        return rows.filter(pa.array(is_free))

    def _modifying(self, statement: Modifying, arguments: Arguments) -> Effect:
        """All parts' changes together. Each part sees the rows returned by the parts before it, and the tables as they
        were."""
        changes: dict[int, Change] = {}
        for name, part in statement.parts:
            effect = self.of(part, replace(arguments, taken=changes))
            changes = _together(changes, effect.changes)
            if effect.returned is not None:
                arguments = replace(arguments, bindings={**arguments.bindings, f"s_{name}": numbered(effect.returned)})
        if isinstance(statement.main, Query):
            rows = self._query(statement.main.relation, arguments)
            return Effect(changes, rows.num_rows, rows)
        effect = self.of(statement.main, replace(arguments, taken=changes))
        return replace(effect, changes=_together(changes, effect.changes))

    def _merge(self, statement: Merge, arguments: Arguments) -> Effect:
        """The changes of each MERGE clause; no clause sees another's changes."""
        table, change = statement.target, nothing(statement.target)
        found = self._query(statement.relation, arguments)
        for index, action in enumerate(statement.actions):
            rows = found.filter(pc.field(column_name(statement.action)) == index)
            if action.kind != "nothing" and rows.num_rows:
                change = change.also(self._merged(statement, action, rows, arguments))
        if len(change.row_ids.unique()) < len(change.row_ids):
            hint = "Ensure that not more than one source row matches any one target row."
            raise SqlError("21000", "MERGE command cannot affect row a second time", hint=hint)
        return Effect({table.oid: change}, change.deleted.num_rows + change.inserted.num_rows - change.updated)

    def _merged(self, statement: Merge, action: MergeAction, rows: pa.Table, arguments: Arguments) -> Change:
        table, row_ids = statement.target, rows.column(column_name(statement.row_id))
        old = typed(table, rows.select(list(map(column_name, statement.old))))
        if action.kind == "delete":
            return removal(row_ids, old)
        row = statement.relation.columns
        new = self._evaluate(self._over_rows(action, row, action.row), row, rows, arguments)
        new = self.complete(table, statement.generated, statement.new, new, arguments)
        self.check(table, statement.checks, statement.new, new, arguments)
        return insertion(table, new) if action.kind == "insert" else replacement(row_ids, old, new)

    # Expressions over rows --------------------------------------------------------------------------------------

    def complete(
        self, table: Table, generated: Generated, row: tuple[Column, ...], rows: pa.Table, arguments: Arguments
    ) -> pa.Table:
        """New rows under the table's column names and types, with the values of generated columns."""
        if generated:
            rows = self._evaluate(self._over_rows(generated, row, generated), row, rows, arguments)
        return typed(table, rows)

    def check(
        self, table: Table, checks: Checks, row: tuple[Column, ...], rows: pa.Table, arguments: Arguments
    ) -> None:
        """Checks NOT NULL (23502), then CHECK, as PostgreSQL does: false is a violation, NULL is not (23514)."""
        check_not_null(table, rows)
        if not checks or not rows.num_rows:
            return
        outputs = tuple((Column(-1 - place, name, check.type), check) for place, (name, check) in enumerate(checks))
        results = self._evaluate(self._over_rows(checks, row, outputs), row, rows, arguments)
        for (name, _), values in zip(checks, results.columns, strict=True):
            place = pc.index(values, pa.scalar(False)).as_py()
            if place >= 0 and isinstance(name, OfView):
                message = f'new row violates check option for view "{name}"'
                raise SqlError("44000", message, failing_row(table, rows, place), row=place)
            if place >= 0:
                message = f'new row for relation "{table.name}" violates check constraint "{name}"'
                about = subject(table, constraint=name)
                raise SqlError("23514", message, failing_row(table, rows, place), about=about, row=place)

    def computed(
        self, outputs: tuple[tuple[Column, Scalar], ...], row: tuple[Column, ...], rows: pa.Table, arguments: Arguments
    ) -> pa.Table:
        """Expressions evaluated for each of some rows with the columns ``row``."""
        return self._evaluate(Project(bound(row), outputs), row, rows, arguments)

    def _returned(
        self, returning: Returning | None, row: tuple[Column, ...], rows: pa.Table, arguments: Arguments
    ) -> pa.Table | None:
        """RETURNING over rows whose columns are ``row``, by position or, if there are further columns, by name."""
        if returning is None:
            return None
        if rows.num_columns != len(row):
            rows = rows.select(list(map(column_name, row)))
        return self._evaluate(self._over_rows(returning, row, returning.expressions), row, rows, arguments)

    def _over_rows(
        self,
        owner: object,
        row: tuple[Column, ...],
        outputs: tuple[tuple[Column, Scalar], ...],
        predicate: Scalar | None = None,
    ) -> Relation:
        """Expressions over rows bound as a leaf: one relation per statement, so that it stays prepared."""
        known = self.relations.get(id(owner))
        if known is None:
            leaf: Relation = bound(row)
            known = (owner, Project(leaf if predicate is None else Filter(leaf, predicate), outputs))
            if len(self.relations) >= _RELATIONS:
                self.relations.clear()
            self.relations[id(owner)] = known
        return known[1]

    def _evaluate(self, relation: Relation, row: tuple[Column, ...], rows: pa.Table, arguments: Arguments) -> pa.Table:
        bindings = {**arguments.bindings, f"s_{bound(row).trace}": numbered(rows)}
        return self._query(relation, replace(arguments, bindings=bindings))

    def _query(self, relation: Relation, arguments: Arguments) -> pa.Table:
        def run(part: Relation, more: Bindings) -> pa.Table:
            bindings = {**arguments.bindings, **more}
            values, zone = arguments.parameters, arguments.time_zone
            if isinstance(part, Values):
                found = literal_table(part, values, zone)
                if found is not None:
                    return found
                repeated = repeated_rows(part)
                rows = None if repeated is None else literal_table(repeated.parameters, values, zone)
                if repeated is not None and rows is not None:
                    part, bindings = repeated.relation, {**bindings, f"s_{TRACE}": rows}
            return self.ask(part, bindings, values, zone)

        return arguments.evaluate(relation, run)


def parts_of(statement: Modification) -> list[RowChange]:
    """The single changes in a statement."""
    if not isinstance(statement, Modifying):
        return [statement]
    return [part for part in statement.statements if not isinstance(part, Query)]


def _together(first: Mapping[int, Change], second: Mapping[int, Change]) -> dict[int, Change]:
    both = dict(first)
    for oid, change in second.items():
        both[oid] = both[oid].also(change) if oid in both else change
    return both


def numbered(rows: pa.Table) -> pa.Table:
    """Rows under the column names of a leaf."""
    return rows.rename_columns([str(index) for index in range(rows.num_columns)])


def typed(table: Table, rows: pa.Table | None) -> pa.Table:
    """Rows under the table's column names and types, by position; an absent column (None) becomes NULL."""
    if rows is None:
        return schema_of(table).empty_table()
    return pa.Table.from_arrays(rows.columns, schema=schema_of(table))


def _from(rows: pa.Table, column: int) -> pa.Table:
    return rows.select(range(column, rows.num_columns))

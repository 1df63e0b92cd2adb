"""Constraints, checked per statement before its changes are applied, with PostgreSQL's errors.

Owns: NOT NULL (23502), unique keys (23505), and foreign keys in both directions (23503). CHECK is evaluated by
``statements.effects``, which has the bound expressions; the changes of foreign keys' actions come first (``actions``).
A statement's changes are one ``Change`` per table. Keys and references are checked against the table after the
statement: the stored rows without the deleted and with the inserted ones. A deferred key that has no partner, or occurs
twice, is only recorded (``deferral``).

See https://www.postgresql.org/docs/15/ddl-constraints.html.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from catalog.objects import ForeignKey, Index, Table, UniqueKey, null_value
from catalog.values.errors import SqlError
from executor.embedded.connection import Connection
from executor.printing.nodes import quoted
from executor.tables.changes import Change, listed
from executor.tables.constraints.actions import Actions, FollowerRules
from executor.tables.constraints.deferral import Deferred, Timing, missing, repeated, require_whole
from executor.tables.constraints.queued_checks import QueuedChecks
from executor.tables.constraints.referring_rows import Referring
from executor.tables.constraints.unique_keys import Key, enforced, key_of
from executor.tables.error_rows import failing_row
from planner.algebra.nodes import ROW_ID

Statement = dict[int, Change]


def check_not_null(table: Table, rows: pa.Table) -> None:
    """Raises 23502 for the first NOT NULL column that has a NULL."""
    primary = {name for key in table.keys if key.primary for name in key.columns}
    for column, values in zip(table.stored, rows.columns, strict=True):
        if (column.not_null or column.name in primary) and values.null_count:
            place = pc.index(values.is_null(), True).as_py()
            raise null_value(table, column.name, failing_row(table, rows, place), place)


def refuse_referenced(definitions: Mapping[int, Table], table: Table, together: Set[int]) -> None:
    """Refuses TRUNCATE of tables to which others refer, in PostgreSQL's words. Raises 0A000."""
    for other in definitions.values():
        if other.oid not in together and any(key.target == table.oid for key in other.foreign_keys):
            detail = f'Table "{other.name}" references "{table.name}".'
            hint = f'Truncate table "{other.name}" at the same time, or use TRUNCATE ... CASCADE.'
            raise SqlError("0A000", "cannot truncate a table referenced in a foreign key constraint", detail, hint)


class Checker:
    """Checks one statement's changes, after adding the changes of foreign key actions."""

    def __init__(
        self,
        connection: Connection,
        definitions: Mapping[int, Table],
        changes: Statement,
        timing: Timing,
        following: FollowerRules | None = None,
    ) -> None:
        self._connection = connection
        self._definitions = definitions
        self._timing = timing
        self._referring = Referring(connection, definitions, changes)
        self._queued = QueuedChecks(self._referring)
        self._actions = Actions(self._referring, following)
        self.changes = changes
        #: The checks to repeat at COMMIT.
        self.deferred: list[Deferred] = []

    def check(self) -> None:
        """Adds the actions' changes, then checks all. Raises 23502, 23503, 23505."""
        self._actions.act()
        for oid, change in self.changes.items():
            table = self._definitions[oid]
            check_not_null(table, change.inserted)
            for key in enforced(table):
                self._check_unique(table, key, change)
        for oid, change in self.changes.items():
            table = self._definitions[oid]
            for reference in table.foreign_keys:
                self._check_reference(table, reference, change)
            self._check_referencing(table, change)

    # Unique keys ------------------------------------------------------------------------------------------------

    def _check_unique(self, table: Table, constraint: UniqueKey | Index, change: Change) -> None:
        key = key_of(table, constraint)
        if not change.inserted.num_rows or change.keeps(key.uses):
            return
        self._referring.bind(table)
        if isinstance(constraint, UniqueKey) and self._timing.waits(table, constraint):
            self._defer_key(table, constraint, change)
            return
        found = self._first_of(self._repeated(table, key)) if change.inserted.num_rows > 1 else []
        if found := found or self._first_of(self._taken(table, key, change)):
            raise repeated(table, key, found[0])

    def _first_of(self, query: str) -> list[tuple[Any, ...]]:
        return self._connection.rows(f"{query} LIMIT 1")

    def _repeated(self, table: Table, key: Key) -> str:
        """The keys that occur twice among new rows."""
        known = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in key.columns)
        rows = key.among(f'"__new{table.oid}"')
        return f"SELECT {listed(key.columns)} FROM {rows} WHERE {known} GROUP BY ALL HAVING count(*) > 1"

    def _taken(self, table: Table, key: Key, change: Change) -> str:
        """The keys that both a remaining row and a new row have."""
        same = " AND ".join(f"t.{quoted(name)} = n.{quoted(name)}" for name in key.columns)
        new = key.among(f'"__new{table.oid}"')
        rest = f"{key.stored(table)} t SEMI JOIN {new} n ON {same}"
        if len(change.row_ids):
            rest += f' ANTI JOIN "__gone{table.oid}" g ON t.rowid = g.{ROW_ID}'
        return f"SELECT {listed(key.columns, 't')} FROM {rest}"

    def _defer_key(self, table: Table, key: UniqueKey, change: Change) -> None:
        schema, asked = change.inserted.select(list(key.columns)).schema, key_of(table, key)
        queries = (self._repeated(table, asked), self._taken(table, asked, change))
        found = pa.concat_tables([self._connection.table(query, schema) for query in queries])
        if found.num_rows or self._queued.of_key(table, asked, change):
            self._defer(table, table, key, found)

    # Foreign keys -----------------------------------------------------------------------------------------------

    def _check_reference(self, table: Table, reference: ForeignKey, change: Change) -> None:
        """Checks that every new row has its partner."""
        if not change.inserted.num_rows:
            return
        waits = self._timing.waits(table, reference)
        is_queued = waits and self._queued.of_reference(table, reference, change)
        other = self.changes.get(reference.target)
        keys_stay = other is None or other.keeps(reference.target_columns)
        if keys_stay and change.keeps(reference.columns):
            if is_queued:
                self._defer(table, table, reference, None)
            return
        target = self._definitions[reference.target]
        if reference.full:
            require_whole(table, reference, change.inserted)
        self._referring.bind(table)
        self._referring.bind(target)
        pairs = list(zip(reference.columns, reference.target_columns, strict=True))
        same = " AND ".join(f"n.{quoted(own)} = t.{quoted(other)}" for own, other in pairs)
        known = " AND ".join(f"n.{quoted(own)} IS NOT NULL" for own in reference.columns)
        others = listed(reference.target_columns)
        after = f"SELECT {others} FROM {self._referring.remaining(target)}"
        if target.oid in self.changes:
            after += f' UNION ALL SELECT {others} FROM "__new{target.oid}"'
        keys = (
            f'SELECT {listed(reference.columns, "n")} FROM "__new{table.oid}" n '
            f"ANTI JOIN ({after}) t ON {same} WHERE {known}"
        )
        if waits:
            absent = self._connection.table(keys, change.inserted.select(list(reference.columns)).schema)
            if is_queued or absent.num_rows:
                self._defer(table, table, reference, absent)
        elif found := self._connection.rows(f"{keys} LIMIT 1"):
            raise missing(table, reference, target, found[0])

    def _defer(self, changed: Table, child: Table, constraint: ForeignKey | UniqueKey, keys: pa.Table | None) -> None:
        absent = None
        if keys is not None and keys.num_rows:
            absent = keys.rename_columns([f"k{place}" for place in range(keys.num_columns)])
        self.deferred.append(Deferred(changed.oid, child.oid, constraint.name, absent))

    def _children(self, table: Table, child: Table, reference: ForeignKey, change: Change) -> pa.Table | None:
        """Remaining rows of ``child`` that refer to vanished keys, with their row ids first."""
        keys = self._referring.vanished(table, reference.target_columns, change)
        return None if keys is None else self._referring.staying(child, reference, keys)

    def _check_referencing(self, table: Table, change: Change) -> None:
        for child, reference in self._referring.referencing(table):
            waits = self._timing.waits(child, reference)
            self._check_restricted(table, child, reference, change)
            rows = self._children(table, child, reference, change)
            if waits:
                if rows is not None or self._queued.of_referenced(table, reference, change):
                    self._defer(table, child, reference, None if rows is None else rows.select(list(reference.columns)))
            elif rows is not None:
                raise self._referring.violation(table, child, reference, rows)

    def _check_restricted(self, table: Table, child: Table, reference: ForeignKey, change: Change) -> None:
        """Checks RESTRICT, which is never deferred; unlike NO ACTION, it does not accept another row that now has the
        key."""
        for action, part in ((reference.on_update, change.replaced), (reference.on_delete, change.removed)):
            keys = self._referring.given_up(table, reference.target_columns, part) if action == "r" else None
            rows = None if keys is None else self._referring.staying(child, reference, keys)
            if rows is not None:
                raise self._referring.violation(table, child, reference, rows)

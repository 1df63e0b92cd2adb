"""Changes of a stored table's columns in place, and checks of stored rows.

Owns: the SQL of these steps, which recovery repeats from the log, and PostgreSQL's errors for stored rows that violate
a new constraint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.objects import ColumnDefinition, ForeignKey, Index, Table, UniqueKey, subject
from catalog.values.errors import SqlError
from executor.embedded.connection import Connection
from executor.embedded.printing.dialect import DuckPrinter, type_text
from executor.printing.nodes import quoted
from executor.tables.changes import listed, stored
from executor.tables.constraints.deferral import missing, mixed
from executor.tables.constraints.unique_keys import Key, enforced, key_of
from planner.algebra.nodes import Literal

#: ("drop", name), ("rename", old, new) or ("add", name, type, value as SQL).
Step = tuple[str, ...]


def add_step(column: ColumnDefinition, value: Literal) -> Step:
    """The step that adds a column with the same value in all rows."""
    return ("add", column.name, type_text(column.type), DuckPrinter().print_scalar(value))


def apply_step(connection: Connection, table: Table, step: Step) -> None:
    """Applies one step to a stored table."""
    match step:
        case ("drop", name):
            words = f"DROP COLUMN {quoted(name)}"
        case ("rename", old, new):
            words = f"RENAME COLUMN {quoted(old)} TO {quoted(new)}"
        case ("add", name, kind, value):
            words = f"ADD COLUMN {quoted(name)} {kind} DEFAULT {value}"
        case _:
            raise AssertionError(step)
    connection.execute(f"ALTER TABLE {stored(table)} {words}")


def _is_known(before: Table, key: UniqueKey | Index) -> bool:
    """Whether an existing key already makes a table's rows unique in these columns."""
    if isinstance(key, Index):
        return key in before.indexes
    return any(old.columns == key.columns and old.nulls_alike >= key.nulls_alike for old in before.keys)


class Verifier:
    """Checks a table's stored rows against the new parts of its definition."""

    def __init__(self, connection: Connection, definitions: Mapping[int, Table]) -> None:
        self._connection = connection
        self._definitions = definitions

    def verify(self, before: Table, table: Table, rewritten: bool) -> None:
        """Checks the new constraints. ``rewritten``: all constraints count as new. Raises 23502, 23503 and 23505."""
        known = {column.name for column in before.columns if column.not_null and not rewritten}
        for column in table.columns:
            if column.not_null and column.name not in known:
                self._not_null(table, column.name)
        for key in enforced(table):
            if rewritten or not _is_known(before, key):
                self._unique(table, key_of(table, key))
        for reference in table.foreign_keys:
            if reference.validated and (rewritten or reference not in before.foreign_keys):
                self._reference(table, reference)
        if rewritten:
            for other in self._definitions.values():
                for reference in other.foreign_keys:
                    if reference.target == table.oid and other.oid != table.oid and reference.validated:
                        self._reference(other, reference)

    def _first(self, sql: str) -> tuple[Any, ...] | None:
        return next(iter(self._connection.execute(f"{sql} LIMIT 1").fetchall()), None)

    def _not_null(self, table: Table, name: str) -> None:
        if self._first(f"SELECT 1 FROM {stored(table)} WHERE {quoted(name)} IS NULL") is not None:
            message = f'column "{name}" of relation "{table.name}" contains null values'
            raise SqlError("23502", message, about=subject(table, name))

    def _unique(self, table: Table, key: Key) -> None:
        known = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in key.columns)
        columns, rows = listed(key.columns), key.stored(table)
        found = self._first(f"SELECT {columns} FROM {rows} WHERE {known} GROUP BY ALL HAVING count(*) > 1")
        if found is not None:
            detail = f"Key {key.shown(found)} is duplicated."
            message = f'could not create unique index "{key.name}"'
            raise SqlError("23505", message, detail, about=subject(table, constraint=key.name))

    def _reference(self, table: Table, reference: ForeignKey) -> None:
        target = self._definitions[reference.target]
        pairs = zip(reference.columns, reference.target_columns, strict=True)
        same = " AND ".join(f"t.{quoted(name)} = p.{quoted(other)}" for name, other in pairs)
        known = " AND ".join(f"t.{quoted(name)} IS NOT NULL" for name in reference.columns)
        rows = f"{stored(table)} t ANTI JOIN {stored(target)} p ON {same} WHERE {known}"
        found = self._first(f"SELECT {listed(reference.columns, 't')} FROM {rows}")
        if found is not None:
            raise missing(table, reference, target, found)
        if reference.full and len(reference.columns) > 1:
            some, none = (
                f" {word} ".join(f"{quoted(name)} IS NULL" for name in reference.columns) for word in ("OR", "AND")
            )
            if self._first(f"SELECT 1 FROM {stored(table)} WHERE ({some}) AND NOT ({none})") is not None:
                raise mixed(table, reference)

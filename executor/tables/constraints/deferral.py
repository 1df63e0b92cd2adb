"""Deferred constraints: which keys and foreign keys are checked at COMMIT, and what is left to check.

Owns: the effects of SET CONSTRAINTS, and the check of keys that had no partner, or occurred twice, when their statement
ended. A key that was valid then, or that no row has any more, can be broken only by another statement, which records it
itself.

https://www.postgresql.org/docs/15/sql-set-constraints.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
from msgspec import Struct

from catalog.objects import ForeignKey, Table, UniqueKey, subject
from catalog.values.errors import SqlError
from executor.embedded.connection import Connection
from executor.printing.nodes import quoted
from executor.tables.changes import listed, stored
from executor.tables.constraints.unique_keys import Key, key_of
from executor.tables.error_rows import pair


class Timing(Struct, frozen=True):
    """The SET CONSTRAINTS so far: the last one of ALL, and those by table and name since."""

    every: bool | None = None
    named: Mapping[tuple[int, str], bool] | None = None

    def set(self, named: Iterable[tuple[int, str]] | None, deferred: bool) -> Timing:
        """The timing after one more SET CONSTRAINTS."""
        if named is None:
            return Timing(deferred)
        return Timing(self.every, {**(self.named or {}), **dict.fromkeys(named, deferred)})

    def waits(self, table: Table, constraint: ForeignKey | UniqueKey) -> bool:
        """Whether a constraint is checked at COMMIT."""
        if not constraint.deferrable:
            return False
        chosen = (self.named or {}).get((table.oid, constraint.name), self.every)
        return constraint.deferred if chosen is None else chosen

    def holds(self, definitions: Mapping[int, Table], item: Deferred) -> bool:
        """Whether the checks recorded for later are still deferred."""
        table = definitions.get(item.child)
        if table is None:
            return False
        constraints: list[ForeignKey | UniqueKey] = [*table.foreign_keys, *table.keys]
        return any(key.name == item.name and self.waits(table, key) for key in constraints)


class Deferred(Struct, frozen=True):
    """A statement changed the table ``changed`` such that a constraint of ``child`` must be checked later; ``keys`` are
    the key values that have no partner or occur twice, if any."""

    changed: int  # oid
    child: int  # oid
    name: str
    keys: pa.Table | None


class Settled(Struct, frozen=True):
    """The deferred checks of some foreign keys, by table and name, are done."""

    references: frozenset[tuple[int, str]]


def waiting(journal: Iterable[object]) -> list[Deferred]:
    """The checks that are still to be done."""
    found: list[Deferred] = []
    for entry in journal:
        if isinstance(entry, Deferred):
            found.append(entry)
        elif isinstance(entry, Settled):
            found = [item for item in found if (item.child, item.name) not in entry.references]
    return found


def settle(connection: Connection, definitions: Mapping[int, Table], items: Iterable[Deferred]) -> None:
    """Does the deferred checks, all keys of a constraint together. Raises 23503 and 23505."""
    gathered: dict[tuple[int, str, bool], list[pa.Table]] = {}
    for item in items:
        if item.keys is not None:
            gathered.setdefault((item.child, item.name, item.changed == item.child), []).append(item.keys)
    for (oid, name, is_own), keys in gathered.items():
        child = definitions.get(oid)
        unique = None if child is None else next((key for key in child.keys if key.name == name), None)
        if child is not None and unique is not None:
            _require_once(connection, child, key_of(child, unique), pa.concat_tables(keys))
            continue
        reference = None if child is None else next((key for key in child.foreign_keys if key.name == name), None)
        if child is None or reference is None:
            continue  # the constraint was dropped meanwhile
        found = _broken(connection, child, definitions[reference.target], reference, pa.concat_tables(keys))
        if found is None:
            continue
        if is_own:
            raise missing(child, reference, definitions[reference.target], found)
        raise still_referenced(child, reference, definitions[reference.target], found)


def _require_once(connection: Connection, table: Table, key: Key, keys: pa.Table) -> None:
    name = f"__waiting{table.oid}"
    connection.bind({name: keys})
    keyed = " AND ".join(f't.{quoted(column)} = k."k{place}"' for place, column in enumerate(key.columns))
    found = connection.rows(
        f'SELECT {listed(key.columns, "t")} FROM {stored(table)} t SEMI JOIN "{name}" k ON {keyed} '
        "GROUP BY ALL HAVING count(*) > 1 LIMIT 1"
    )
    connection.unbind({name: keys})
    if found:
        raise repeated(table, key, found[0])


def repeated(table: Table, key: Key, values: tuple[object, ...]) -> SqlError:
    """The error 23505: a key occurs twice."""
    message = f'duplicate key value violates unique constraint "{key.name}"'
    detail = f"Key {key.shown(values)} already exists."
    return SqlError("23505", message, detail, about=subject(table, constraint=key.name))


def _broken(
    connection: Connection, child: Table, target: Table, reference: ForeignKey, keys: pa.Table
) -> tuple[object, ...] | None:
    name = f"__waiting{child.oid}"
    connection.bind({name: keys})
    keyed = " AND ".join(f't.{quoted(column)} = k."k{place}"' for place, column in enumerate(reference.columns))
    pairs = zip(reference.columns, reference.target_columns, strict=True)
    same = " AND ".join(f"t.{quoted(own)} = p.{quoted(other)}" for own, other in pairs)
    found = connection.rows(
        f"SELECT {listed(reference.columns, 't')} FROM {stored(child)} t "
        f'SEMI JOIN "{name}" k ON {keyed} ANTI JOIN {stored(target)} p ON {same} LIMIT 1'
    )
    connection.unbind({name: keys})
    return found[0] if found else None


def require_whole(table: Table, reference: ForeignKey, rows: pa.Table) -> None:
    """Checks MATCH FULL for new rows. Raises 23503 for a row with a NULL beside a value."""
    nulls = np.column_stack([rows.column(name).is_null().to_numpy() for name in reference.columns])
    if np.any(nulls.any(axis=1) & ~nulls.all(axis=1)):
        raise mixed(table, reference)


def mixed(table: Table, reference: ForeignKey) -> SqlError:
    """The error 23503: under MATCH FULL, a row has a NULL beside a value."""
    message = f'insert or update on table "{table.name}" violates foreign key constraint "{reference.name}"'
    detail = "MATCH FULL does not allow mixing of null and nonnull key values."
    return SqlError("23503", message, detail, about=subject(table, constraint=reference.name))


def missing(table: Table, reference: ForeignKey, target: Table, values: tuple[object, ...]) -> SqlError:
    """The error 23503: a row refers to a missing row."""
    message = f'insert or update on table "{table.name}" violates foreign key constraint "{reference.name}"'
    key = pair(table, reference.columns, values)
    detail = f'Key {key} is not present in table "{target.name}".'
    return SqlError("23503", message, detail, about=subject(table, constraint=reference.name))


def still_referenced(child: Table, reference: ForeignKey, table: Table, values: tuple[object, ...]) -> SqlError:
    """The error 23503: other rows refer to a row."""
    message = (
        f'update or delete on table "{table.name}" violates foreign key constraint "{reference.name}" '
        f'on table "{child.name}"'
    )
    key = pair(table, reference.target_columns, values)
    detail = f'Key {key} is still referenced from table "{child.name}".'
    return SqlError("23503", message, detail, about=subject(child, constraint=reference.name))


def require_settled(journal: Iterable[object], table: Table, command: str) -> None:
    """Raises 55006 if a table with deferred checks is to be altered."""
    if any(item.changed == table.oid for item in waiting(journal)):
        message = f'cannot {command} "{table.name}" because it has pending trigger events'
        raise SqlError("55006", message)

"""ON CONFLICT: which of the rows proposed by an INSERT conflict with a row that has their key.

Owns: the semantics of execution row after row, computed on whole sets: a row conflicts with a row in the table before
the statement, or with an earlier row of the statement. A NULL in a key conflicts with nothing. DO UPDATE may change a
row only once (21000). See https://www.postgresql.org/docs/15/sql-insert.html#SQL-ON-CONFLICT.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from msgspec import Struct

from catalog.objects import Table
from catalog.values.errors import SqlError, unsupported
from catalog.values.types import INT8
from executor.embedded.connection import Connection
from executor.printing.nodes import quoted
from executor.rows.row_shapes import schema_of
from executor.tables.changes import listed, names_of
from executor.tables.constraints.unique_keys import Key
from planner.algebra.nodes import ROW_ID

#: The column for a row's place among the proposed rows; no table has a column of this name.
_PLACE: Final = "__ordinal"
_ITSELF: Final = Key(_PLACE, (_PLACE,), (_PLACE,), (INT8,), (_PLACE,))


class Meetings(Struct, frozen=True):
    """Proposed rows whose key is in the table: their places, and the existing rows with the key, in order of the
    places."""

    places: pa.ChunkedArray
    row_ids: pa.ChunkedArray
    old: pa.Table


def undisputed(connection: Connection, table: Table, keys: Sequence[Key], rows: pa.Table) -> pa.Table:
    """DO NOTHING: the proposed rows that conflict neither with the table nor with an earlier one of these, by any key.

    Each round takes the rows that are the first with each of their keys, and drops the rows that conflict with one of
    them.
    """
    if not keys or not rows.num_rows:
        return rows
    pending = _numbered(table, rows)
    for key in keys:
        pending = _without(connection, table, pending, key.stored(table), key)
    taken = []
    while pending.num_rows:
        first = _first(connection, table, pending, keys)
        taken.append(first)
        if first.num_rows == pending.num_rows:
            break
        name = f"__first{table.oid}"
        connection.bind({name: first})
        for key in (*keys, _ITSELF):
            pending = _without(connection, table, pending, key.among(quoted(name)), key)
        connection.unbind({name: first})
    if not taken:
        return rows.slice(0, 0)
    return pa.concat_tables(taken).sort_by(_PLACE).drop_columns([_PLACE])


def meetings(connection: Connection, table: Table, key: Key, rows: pa.Table) -> Meetings:
    """DO UPDATE: the proposed rows that conflict with the table. Raises 21000 if two other rows have the same key."""
    proposed = _numbered(table, rows)
    name = f"__proposed{table.oid}"
    columns = [pa.field(_PLACE, pa.int64()), pa.field(ROW_ID, pa.int64()), *schema_of(table)]
    connection.bind({name: proposed})
    asked, stored = key.among(quoted(name)), f"{key.stored(table)} t ON {_same(key, 'p', 't')}"
    fields = f"p.{_PLACE}, t.rowid AS {ROW_ID}, {listed(names_of(table), 't')}"
    found = connection.table(
        f"SELECT {fields} FROM {asked} p JOIN {stored} ORDER BY p.{_PLACE}",
        pa.schema(columns),
    )
    repeated = connection.rows(
        f"SELECT 1 FROM {asked} p ANTI JOIN {stored} WHERE {_known(key, 'p')} "
        f"GROUP BY {listed(key.columns, 'p')} HAVING count(*) > 1 LIMIT 1"
    )
    connection.unbind({name: proposed})
    if repeated:
        raise _twice()
    return Meetings(found.column(0), found.column(1), found.drop_columns([_PLACE, ROW_ID]))


def check_once(
    connection: Connection,
    table: Table,
    key: Key,
    updates: tuple[pa.ChunkedArray, pa.ChunkedArray, pa.Table, pa.Table],
    rows: pa.Table,
) -> None:
    """Raises 21000 if a row conflicts with one that an earlier row of the statement has updated.

    ``updates`` has places, row ids, old and new rows. A later row that proposes a new key conflicts with it, and a
    later row could use an old key again; the latter cannot be decided on whole sets.
    """
    places, row_ids, old, new = updates
    names = list(key.uses)
    moved = not old.select(names).equals(new.select(names))
    if len(row_ids.unique()) < len(row_ids):
        if moved:
            raise unsupported("ON CONFLICT DO UPDATE of a key that is proposed twice", "Insert the rows one by one.")
        raise _twice()
    if not moved:
        return
    name, after = f"__proposed{table.oid}", f"__after{table.oid}"
    tables = {name: _numbered(table, rows), after: new.append_column(_PLACE, places)}
    connection.bind(tables)
    changed = " OR ".join(f"u.{quoted(column)} IS DISTINCT FROM m.{quoted(column)}" for column in key.columns)
    new_rows, asked = key.among(quoted(after)), key.among(quoted(name))
    met = connection.rows(
        f"SELECT 1 FROM {new_rows} u JOIN {asked} m ON m.{_PLACE} = u.{_PLACE} "
        f"JOIN {asked} p ON {_same(key, 'p', 'u')} AND p.{_PLACE} > u.{_PLACE} WHERE {changed} LIMIT 1"
    )
    connection.unbind(tables)
    if met:
        raise _twice()


def _twice() -> SqlError:
    hint = "Ensure that no rows proposed for insertion within the same command have duplicate constrained values."
    return SqlError("21000", "ON CONFLICT DO UPDATE command cannot affect row a second time", hint=hint)


def _numbered(table: Table, rows: pa.Table) -> pa.Table:
    fields = [*schema_of(table), pa.field(_PLACE, pa.int64())]
    return pa.Table.from_arrays([*rows.columns, pa.arange(0, rows.num_rows)], schema=pa.schema(fields))


def _same(key: Key, left: str, right: str) -> str:
    return " AND ".join(f"{left}.{quoted(name)} = {right}.{quoted(name)}" for name in key.columns)


def _known(key: Key, alias: str) -> str:
    return " AND ".join(f"{alias}.{quoted(name)} IS NOT NULL" for name in key.columns)


def _without(connection: Connection, table: Table, rows: pa.Table, others: str, key: Key) -> pa.Table:
    """The rows whose key is not among the others' keys; ``others`` has the key's parts."""
    name = f"__proposed{table.oid}"
    connection.bind({name: rows})
    kept, proposed = listed(rows.schema.names, "p"), key.among(quoted(name))
    found = connection.table(
        f"SELECT {kept} FROM {proposed} p ANTI JOIN {others} t ON {_same(key, 'p', 't')}", rows.schema
    )
    connection.unbind({name: rows})
    return found


def _first(connection: Connection, table: Table, rows: pa.Table, keys: Sequence[Key]) -> pa.Table:
    """The rows such that no earlier row has any of their keys."""
    name = f"__proposed{table.oid}"
    first = " AND ".join(
        f"(NOT ({_known(key, 'p')}) OR p.{_PLACE} = min(p.{_PLACE}) OVER (PARTITION BY {listed(key.columns, 'p')}))"
        for key in keys
    )
    connection.bind({name: rows})
    proposed = quoted(name)
    for key in keys:
        proposed = key.among(proposed)
    found = connection.table(f"SELECT {listed(rows.schema.names, 'p')} FROM {proposed} p QUALIFY {first}", rows.schema)
    connection.unbind({name: rows})
    return found

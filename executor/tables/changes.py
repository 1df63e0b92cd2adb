"""Changes of tables as Arrow: those of a statement or a transaction, and how DuckDB applies and undoes them.

Owns: ``Change`` (deleted and inserted rows), the net result of several changes, and their application by row id or,
where row ids are not valid any more (after a rollback, in recovery), by value. SQL names are quoted here; no client
text gets into SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from msgspec import Struct

from catalog.objects import Table
from catalog.values.errors import SqlError
from executor.embedded.connection import Connection
from executor.embedded.printing.dialect import STORE
from executor.printing.nodes import quoted
from executor.rows.row_shapes import schema_of
from planner.algebra.nodes import ROW_ID


class Changes(Struct, frozen=True):
    """The result of a statement: the number of changed rows, and RETURNING's rows."""

    count: int
    returned: pa.Table | None = None


class Counts(Struct, frozen=True):
    """Rows inserted, updated and deleted since the server's start, whether or not their transactions have committed."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def plus(self, deleted: int, inserted: int, updated: int) -> Counts:
        """The counts after one more change, whose pairs are among both the inserted and the deleted rows."""
        return Counts(self.inserted + inserted - updated, self.updated + updated, self.deleted + deleted - updated)


class Change(Struct, frozen=True):
    """The rows of one table that are deleted (``deleted``; their ``row_ids`` are valid during the transaction) and
    inserted.

    The first ``updated`` rows of ``deleted`` and ``inserted`` are pairs: an UPDATE's old and new rows.
    """

    row_ids: pa.ChunkedArray | pa.Array
    deleted: pa.Table
    inserted: pa.Table
    updated: int = 0

    def keeps(self, columns: Sequence[str]) -> bool:
        """Whether as many rows are inserted as deleted, with the same values in these columns row by row."""
        names = list(columns)
        same: bool = self.deleted.select(names).equals(self.inserted.select(names))
        return same

    @property
    def replaced(self) -> Change:
        """The pairs only."""
        count = self.updated
        return Change(self.row_ids.slice(0, count), self.deleted.slice(0, count), self.inserted.slice(0, count), count)

    @property
    def removed(self) -> Change:
        """The rows that are deleted without a new version only."""
        count = self.updated
        return Change(self.row_ids.slice(count), self.deleted.slice(count), self.inserted.slice(0, 0))

    def with_new(self, places: pa.ChunkedArray | pa.Array, rows: pa.Table) -> Change:
        """The change with other inserted rows at these places."""
        taken = np.arange(self.inserted.num_rows)
        taken[places.to_numpy()] = len(taken) + np.arange(rows.num_rows)
        inserted = pa.concat_tables([self.inserted, rows]).take(pa.array(taken))
        return Change(self.row_ids, self.deleted, inserted, self.updated)

    def without(self, places: pa.ChunkedArray | pa.Array) -> Change:
        """The change without the inserted rows at these places; old rows that they would replace are deleted."""
        comes = np.ones(self.inserted.num_rows, bool)
        comes[places.to_numpy()] = False
        pairs = comes[: self.updated]
        order = np.arange(len(self.row_ids))
        order = pa.array(
            np.concatenate([order[: self.updated][pairs], order[self.updated :], order[: self.updated][~pairs]])
        )
        inserted = self.inserted.filter(pa.array(comes))
        return Change(self.row_ids.take(order), self.deleted.take(order), inserted, int(pairs.sum()))

    def also(self, other: Change) -> Change:
        """Both changes as one."""
        pieces = (self.replaced, other.replaced, self.removed, other.removed)
        ids = pa.chunked_array([chunk for piece in pieces for chunk in _chunks(piece.row_ids)], pa.int64())
        deleted = pa.concat_tables([piece.deleted for piece in pieces])
        new = (self.inserted.slice(self.updated), other.inserted.slice(other.updated))
        inserted = pa.concat_tables([*(piece.inserted for piece in pieces), *new])
        return Change(ids, deleted, inserted, self.updated + other.updated)


def _chunks(values: pa.ChunkedArray | pa.Array) -> list[pa.Array]:
    return list(values.chunks) if isinstance(values, pa.ChunkedArray) else [values]


def nothing(table: Table) -> Change:
    """No change."""
    empty = schema_of(table).empty_table()
    return Change(pa.array([], pa.int64()), empty, empty)


def insertion(table: Table, rows: pa.Table) -> Change:
    """A change that inserts rows."""
    return Change(pa.array([], pa.int64()), schema_of(table).empty_table(), rows)


def removal(row_ids: pa.ChunkedArray | pa.Array, rows: pa.Table) -> Change:
    """A change that deletes rows."""
    return Change(row_ids, rows, rows.slice(0, 0))


def replacement(row_ids: pa.ChunkedArray | pa.Array, old: pa.Table, new: pa.Table) -> Change:
    """A change that replaces rows, pair by pair."""
    return Change(row_ids, old, new, new.num_rows)


def stored(table: Table) -> str:
    """A table's name in the store."""
    return f'{STORE}.main."t{table.oid}"'


def listed(names: tuple[str, ...] | list[str], alias: str = "") -> str:
    """Columns in SQL, each with an alias before it."""
    prefix = f"{alias}." if alias else ""
    return ", ".join(prefix + quoted(name) for name in names)


def names_of(table: Table) -> tuple[str, ...]:
    """The column names of a table's rows, including display scales."""
    return tuple(column.name for column in table.stored)


def rows_of(connection: Connection, table: Table) -> pa.Table:
    """All rows of a table."""
    return connection.table(f"SELECT {listed(names_of(table))} FROM {stored(table)}", schema_of(table))


def rows_in_batches(connection: Connection, table: Table) -> Iterator[pa.RecordBatch]:
    """The rows in batches, read while they are consumed."""
    return connection.batches(f"SELECT {listed(names_of(table))} FROM {stored(table)}", schema_of(table))


def bound(connection: Connection, table: Table, change: Change) -> dict[str, pa.Table]:
    """Registers a change's rows as ``__new<oid>`` and row ids as ``__gone<oid>``; returns the names to unregister."""
    gone = pa.table({ROW_ID: change.row_ids}, schema=pa.schema([pa.field(ROW_ID, pa.int64())]))
    tables = {f"__new{table.oid}": change.inserted, f"__gone{table.oid}": gone}
    connection.bind(tables)
    return tables


def apply_by_id(connection: Connection, table: Table, change: Change) -> None:
    """Deletes by row id and inserts; the change must be bound. Raises XX000 where a row to delete is not found."""
    if len(change.row_ids):
        _delete(connection, table, change.row_ids, f"__gone{table.oid}")
    if change.inserted.num_rows:
        connection.rows(_arrival(table))


def _delete(connection: Connection, table: Table, row_ids: pa.ChunkedArray | pa.Array, name: str) -> None:
    """Deletes the rows with these different row ids, which are bound by a name.

    A join by ``rowid`` itself loses rows where some of them are the transaction's own (DuckDB 2.0 filters the scan by
    the ids on the other side); by an expression it does not, and the bounds keep it from reading the whole table.
    """
    ids = row_ids.to_numpy()
    among = f'xor(rowid, 1) IN (SELECT xor({ROW_ID}, 1) FROM "{name}")'
    where = f"rowid BETWEEN {ids.min()} AND {ids.max()} AND {among}"
    ((count,),) = connection.execute(f"DELETE FROM {stored(table)} WHERE {where}").fetchall()
    if count != len(ids):
        raise SqlError("XX000", f'table "{table.name}": {count} of {len(ids)} changed rows were found')


def _arrival(table: Table) -> str:
    """An INSERT of the bound rows, by column names: a column added in place comes after the scales."""
    return f'INSERT INTO {stored(table)}({listed(names_of(table))}) SELECT * FROM "__new{table.oid}"'


def apply_by_value(connection: Connection, table: Table, deleted: pa.Table, inserted: pa.Table) -> None:
    """Deletes as many rows with each value as ``deleted`` has, and inserts."""
    if deleted.num_rows:
        name = f"__old{table.oid}"
        connection.bind({name: deleted})
        primary = next((key for key in table.keys if key.primary), None)
        if primary is not None:
            same = " AND ".join(f"t.{quoted(column)} = o.{quoted(column)}" for column in primary.columns)
            connection.rows(f'DELETE FROM {stored(table)} t USING "{name}" o WHERE {same}')
        else:
            _delete_matching(connection, table, name)
        connection.unbind({name: deleted})
    if inserted.num_rows:
        names = bound(connection, table, insertion(table, inserted))
        connection.rows(_arrival(table))
        connection.unbind(names)


def _delete_matching(connection: Connection, table: Table, name: str) -> None:
    """Deletes as many rows with each value as the table with a name has."""
    names = names_of(table)
    same = " AND ".join(f"t.{quoted(column)} IS NOT DISTINCT FROM o.{quoted(column)}" for column in names)
    counted = f'SELECT {listed(names)}, count(*) AS __count FROM "{name}" GROUP BY ALL'
    place = f"row_number() OVER (PARTITION BY {listed(names, 't')})"
    rows = f"SELECT t.rowid AS __id, {place} AS __place, o.__count FROM {stored(table)} t JOIN ({counted}) o ON {same}"
    schema = pa.schema([pa.field(ROW_ID, pa.int64())])
    gone = connection.table(f"SELECT __id AS {ROW_ID} FROM ({rows}) WHERE __place <= __count", schema)
    if gone.num_rows:
        connection.bind({f"__gone{table.oid}": gone})
        _delete(connection, table, gone.column(ROW_ID), f"__gone{table.oid}")
        connection.unbind({f"__gone{table.oid}": gone})


def net(
    connection: Connection, table: Table, came: Sequence[pa.Table], went: Sequence[pa.Table]
) -> tuple[pa.Table, pa.Table]:
    """(inserted, deleted) of successive statements, without the rows that are in both, each as often as it occurs. The
    rows of a single statement are not compared with each other."""
    if len(came) == 1:
        return came[0], went[0]
    inserted, deleted = pa.concat_tables(came), pa.concat_tables(went)
    if not deleted.num_rows or not inserted.num_rows:
        return inserted, deleted
    schema = schema_of(table)
    names = {f"__minus{table.oid}": deleted, f"__plus{table.oid}": inserted}
    connection.bind(names)
    minus, plus = (f'SELECT * FROM "{name}"' for name in names)
    result = (
        connection.table(f"{plus} EXCEPT ALL {minus}", schema),
        connection.table(f"{minus} EXCEPT ALL {plus}", schema),
    )
    connection.unbind(names)
    return result


def distinct_ids(rows: pa.Table, column: str) -> pa.Table:
    """The rows without repeated ids: an UPDATE's join may find a row twice, but changes it once."""
    ids = rows.column(column)
    if len(ids.unique()) == len(ids):
        return rows
    places = pa.table({"id": ids, "place": pa.array(range(len(ids)), pa.int64())})
    first = places.group_by("id").aggregate([("place", "min")])
    return rows.take(first.column("place_min").sort())

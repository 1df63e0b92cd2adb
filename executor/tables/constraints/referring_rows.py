"""Rows that refer to others, as a statement leaves them: stored rows that are not deleted, and new rows.

Owns: ``Referring``: which keys a statement removes, and which rows refer to them. ``actions`` and ``checks`` decide
what happens to these rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from msgspec import Struct

from catalog.objects import ForeignKey, Table
from catalog.values.errors import SqlError
from executor.embedded.connection import Connection
from executor.printing.nodes import quoted
from executor.rows.row_shapes import schema_of
from executor.tables.changes import Change, bound, listed, names_of, nothing, stored
from executor.tables.constraints.deferral import still_referenced
from planner.algebra.nodes import ROW_ID


class Referring(Struct):
    """The referring rows of one statement; ``changes`` are its changes by table so far."""

    connection: Connection
    definitions: Mapping[int, Table]
    changes: dict[int, Change]

    def bind(self, table: Table) -> None:
        """Makes a table's changes available to the engine."""
        bound(self.connection, table, self.changes.get(table.oid) or nothing(table))

    def remaining(self, table: Table) -> str:
        """A table's stored rows without the deleted ones, as a FROM item."""
        change = self.changes.get(table.oid)
        if change is None or not len(change.row_ids):
            return stored(table)
        return f'(SELECT *, rowid FROM {stored(table)} WHERE rowid NOT IN (SELECT {ROW_ID} FROM "__gone{table.oid}"))'

    def referencing(self, table: Table) -> list[tuple[Table, ForeignKey]]:
        """The foreign keys to a table, each with the table that contains it."""
        return [
            (other, reference)
            for other in self.definitions.values()
            for reference in other.foreign_keys
            if reference.target == table.oid
        ]

    def vanished(self, table: Table, columns: tuple[str, ...], change: Change) -> pa.Table | None:
        """The keys that no row has after the statement; None if there are none."""
        if not change.deleted.num_rows:
            return None
        old = change.deleted.select(list(columns))
        if not change.inserted.num_rows:
            return old
        if change.keeps(columns):
            return None
        names = {f"__before{table.oid}": old, f"__after{table.oid}": change.inserted.select(list(columns))}
        self.connection.bind(names)
        before, after = (f'SELECT * FROM "{name}"' for name in names)
        keys = self.connection.table(f"{before} EXCEPT {after}", old.schema)
        self.connection.unbind(names)
        return keys if keys.num_rows else None

    def given_up(self, table: Table, columns: tuple[str, ...], change: Change) -> pa.Table | None:
        """The keys of rows that are deleted or get another key; None if there are none."""
        if not change.updated:
            return change.deleted.select(list(columns)) if change.deleted.num_rows else None
        keys = None if change.keeps(columns) else self.changed_keys(table, columns, change)
        return keys if keys is not None and keys.num_rows else None

    def changed_keys(self, table: Table, columns: tuple[str, ...], change: Change, also: str = "") -> pa.Table:
        """The old keys of the pairs with a new key; ``also`` may name the new keys, "__after<oid>"."""
        places = pa.array(range(change.updated), pa.int64())
        rows = (change.deleted.select(list(columns)), change.inserted.select(list(columns)))
        before, after = f"__before{table.oid}", f"__after{table.oid}"
        names = {name: numbered(keys, places) for name, keys in zip((before, after), rows, strict=True)}
        self.connection.bind(names)
        changed = " OR ".join(f"b.{quoted(column)} IS DISTINCT FROM a.{quoted(column)}" for column in columns)
        query = (
            f'SELECT {listed(columns, "b")} FROM "{before}" b JOIN "{after}" a USING ({ROW_ID}) WHERE {changed}{also}'
        )
        keys = self.connection.table(query, rows[0].schema)
        self.connection.unbind(names)
        return keys

    def staying(self, child: Table, reference: ForeignKey, keys: pa.Table) -> pa.Table | None:
        """Remaining rows of ``child`` that refer to some of these keys, with their row ids first."""
        self.bind(child)
        name = f"__keys{child.oid}"
        self.connection.bind({name: keys.rename_columns([f"k{i}" for i in range(keys.num_columns)])})
        same = " AND ".join(f't.{quoted(column)} = k."k{i}"' for i, column in enumerate(reference.columns))
        rest = self.remaining(child)
        fields = [pa.field(ROW_ID, pa.int64()), *schema_of(child)]
        rows = self.connection.table(
            f'SELECT t.rowid AS {ROW_ID}, {listed(names_of(child), "t")} FROM {rest} t SEMI JOIN "{name}" k ON {same}',
            pa.schema(fields),
        )
        self.connection.unbind({name: keys})
        return rows if rows.num_rows else None

    def coming(self, child: Table, reference: ForeignKey, keys: pa.Table) -> pa.ChunkedArray | None:
        """The places of new rows of ``child`` that refer to some of these keys; None if there are none."""
        known = self.changes.get(child.oid)
        if known is None or not known.inserted.num_rows:
            return None
        came, sought = f"__came{child.oid}", f"__keys{child.oid}"
        places = pa.array(range(known.inserted.num_rows), pa.int64())
        names = {
            came: numbered(known.inserted.select(list(reference.columns)), places),
            sought: keys.rename_columns([f"k{i}" for i in range(keys.num_columns)]),
        }
        self.connection.bind(names)
        same = " AND ".join(f't.{quoted(column)} = k."k{i}"' for i, column in enumerate(reference.columns))
        schema = pa.schema([pa.field(ROW_ID, pa.int64())])
        query = f'SELECT t.{ROW_ID} FROM "{came}" t SEMI JOIN "{sought}" k ON {same} ORDER BY t.{ROW_ID}'
        found = self.connection.table(query, schema).column(0)
        self.connection.unbind(names)
        return found if len(found) else None

    def refers(self, child: Table, reference: ForeignKey, keys: pa.Table) -> bool:
        """Whether remaining or new rows refer to some of these keys."""
        return self.staying(child, reference, keys) is not None or self.coming(child, reference, keys) is not None

    def violation(self, table: Table, child: Table, reference: ForeignKey, rows: pa.Table) -> SqlError:
        """The error 23503 for the first of some rows of ``child``."""
        values = tuple(rows.column(name)[0].as_py() for name in reference.columns)
        return still_referenced(child, reference, table, values)


def numbered(rows: pa.Table, places: pa.ChunkedArray | pa.Array) -> pa.Table:
    """The rows, with a number as their first column."""
    return rows.add_column(0, pa.field(ROW_ID, pa.int64()), places)

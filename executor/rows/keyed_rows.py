"""A table's rows by its unique keys, in columns: what a read by key finds without an engine.

Owns: the rows as they were at one moment with an index for each key, and over them what commits have changed since:
each changed key with its row, or with none. Rows of many small commits are put together now and then. When it is worn
out by changes, somebody reads the table anew. Which commits these are, and who may read when, is
``executor.key_access.table_keys``'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import pyarrow as pa

from catalog.objects import Table
from executor.rows.row_shapes import Columns, Key, keys_of
from executor.rows.value_rows import ValueRow
from executor.trace.index import NO_ROW, KeyIndex, Row, is_cheap

#: Changed rows that wear an index out: so many, and that share of the table's.
WORN_ROWS: Final = 4096
WORN_SHARE: Final = 0.1
#: Small tables of changed rows that become one.
_GATHERED: Final = 256
#: Rows of a commit that are few.
_FEW: Final = 64


class Change(Protocol):
    """Rows that went, and rows that came after that."""

    @property
    def counts(self) -> tuple[int, int]:
        """How many both are."""
        ...

    def keys(self, columns: Columns) -> tuple[list[Key], list[Key]]:
        """The keys of both."""
        ...

    def came(self) -> Sequence[Row]:
        """The rows that came."""
        ...


class Overlay:
    """Changed rows by each of some keys. Changed by one thread at a time, while others read: a change is an assignment
    for each key."""

    def __init__(self, keys: tuple[Columns, ...]) -> None:
        self._changed: dict[Columns, dict[Key, Row]] = {key: {} for key in keys}
        self._recent: list[pa.Table] = []

    @property
    def keys(self) -> tuple[Columns, ...]:
        """The keys by which rows are found here."""
        return tuple(self._changed)

    def get(self, columns: Columns, key: Key) -> Row | None:
        """The row that a key has now, if that changed. Raises KeyError for columns that are none of ``keys``."""
        return self._changed[columns].get(key)

    def put(self, change: Change) -> None:
        """Takes a change."""
        rows = change.came()
        for columns, changed in self._changed.items():
            went, came = change.keys(columns)
            changed.update(dict.fromkeys(went, NO_ROW))
            changed.update(zip(came, rows, strict=True))
        if 0 < len(rows) <= _FEW and not isinstance(rows[0], ValueRow):
            self._recent.append(rows[0].table)
            if len(self._recent) == _GATHERED:
                self._gather()

    def _gather(self) -> None:
        """One table of the small ones, each of which weighs more than its rows."""
        recent, self._recent = self._recent, []
        together, start = pa.concat_tables(recent).combine_chunks(), 0
        for table in recent:
            for columns, changed in self._changed.items():
                for place, key in enumerate(keys_in(table, columns)):
                    if changed[key].is_in(table):
                        changed[key] = Row(together, start + place)
            start += table.num_rows


class KeyedRows:
    """A table's rows at one moment, under what has changed since."""

    def __init__(self, table: Table, rows: pa.Table, lsn: int) -> None:
        self.definition = table
        self.rows = rows
        #: The LSN of the newest change in it; set before the change itself, so that who has read can tell.
        self.lsn = lsn
        keys = keys_of(table)
        self._indexes = {
            key: KeyIndex(rows, key, nulls=False)
            for key in keys
            if is_cheap(pa.schema([rows.schema.field(name) for name in key]), rows.num_rows)
        }
        self._changed = Overlay(tuple(self._indexes))
        self._patched = 0
        count: int = rows.num_rows
        self._enough = max(WORN_ROWS, count * WORN_SHARE)
        self._bytes: int = rows.nbytes + 12 * len(self._indexes) * count

    @property
    def keys(self) -> tuple[Columns, ...]:
        """The keys by which rows are found here."""
        return tuple(self._indexes)

    def is_of(self, table: Table) -> bool:
        """Whether these are the rows of a table as it is defined now."""
        return self.definition is table or self.definition == table

    @property
    def is_worn(self) -> bool:
        """Whether so much has changed that the table should be read anew."""
        return self._patched > self._enough

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return self._bytes

    def get(self, columns: Columns, key: Key) -> Row | None:
        """The row with the values ``key`` in these columns; None where they are none of ``keys``."""
        index = self._indexes.get(columns)
        if index is None:
            return None
        row = self._changed.get(columns, key)
        return Row(self.rows, index.get(key)) if row is None else row

    def takes(self, rows: int) -> bool:
        """Whether to change so many rows here is worth it."""
        return self._patched + rows <= 4 * self._enough

    def patch(self, lsn: int, change: Change) -> None:
        """Takes a change."""
        self.lsn = lsn
        self._patched += sum(change.counts)
        self._changed.put(change)


def keys_in(rows: pa.Table, columns: Columns) -> list[Key]:
    """Each row's key. One with a NULL is never asked for, but keeps the places."""
    return list(zip(*(rows.column(name).to_pylist() for name in columns), strict=True))

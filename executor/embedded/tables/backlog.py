"""Committed rows that DuckDB's file does not have yet.

A transaction that changes single rows by key is durable with its log record, and readers by key have its rows at once
(``executor.tables.table_keys``). To give each of them to DuckDB would cost some milliseconds and a sync of its own; so
they wait here until an engine is to see the tables, or many have gathered, and go there together.

Owns: the net of what waits, row by row, and how it is applied. What is lost in a crash comes back from the log, which
keeps the records above the LSN that the file contains.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from catalog.objects import Table
from executor.embedded.connection import Connection
from executor.embedded.printing.dialect import STORE
from executor.embedded.tables.changes import apply_by_value, schema_of
from executor.embedded.tables.journal import Changed, Entry
from executor.tables.keyed_rows import Key, identity_of, keys_in
from executor.trace.index import Row

#: Rows that may wait, and their bytes.
_MANY: Final = 4096
_LARGE: Final = 16 << 20

#: A table with rows of it that went and rows that came.
TableRows = tuple[Table, pa.Table, pa.Table]


class NetRows:
    """What several changes of one table come to, each row by the key that every row has. Rows of a table without such a
    key only come."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._key = identity_of(table)
        self._rows: dict[Key, tuple[Row | None, Row | None]] = {}
        self._came: list[pa.Table] = []

    def add(self, deleted: pa.Table, inserted: pa.Table) -> None:
        """One more change."""
        if self._key is None:
            assert not deleted.num_rows
            self._came.append(inserted)
            return
        for place, key in enumerate(keys_in(deleted, self._key)):
            before, _ = self._rows.get(key, (Row(deleted, place), None))
            self._rows[key] = (before, None)
        for place, key in enumerate(keys_in(inserted, self._key)):
            before, _ = self._rows.get(key, (None, None))
            self._rows[key] = (before, Row(inserted, place))

    def net(self) -> TableRows:
        """(table, rows that went, rows that came)."""
        before = [row for row, _ in self._rows.values() if row is not None]
        after = [row for _, row in self._rows.values() if row is not None]
        deleted, inserted = _together(self.table, before), _together(self.table, after)
        return self.table, deleted, pa.concat_tables([inserted, *self._came]) if self._came else inserted


def _together(table: Table, rows: Sequence[Row]) -> pa.Table:
    if len(rows) == 1 and rows[0].table.num_rows == 1:
        return rows[0].table
    if not rows:
        return schema_of(table).empty_table()
    return pa.concat_tables([row.table.slice(row.place, 1) for row in rows]).combine_chunks()


def net_of(journal: Iterable[Entry]) -> list[TableRows]:
    """What the changes of a transaction come to, which are all by key."""
    found: dict[int, NetRows] = {}
    for entry in journal:
        assert isinstance(entry, Changed)
        found.setdefault(entry.table.oid, NetRows(entry.table)).add(entry.deleted, entry.inserted)
    nets = [found[oid].net() for oid in sorted(found)]
    return [item for item in nets if item[1].num_rows or item[2].num_rows]


@dataclass(slots=True)
class _Waiting:
    """Transactions' rows on their way: of the LSNs from ``first`` (0: of none) to ``last``, since ``since``."""

    nets: dict[int, NetRows] = field(default_factory=dict)
    rows: int = 0
    size: int = 0
    first: int = 0
    last: int = 0
    since: float = 0.0

    def add(self, lsn: int, changes: Iterable[TableRows]) -> None:
        """A later transaction's."""
        for table, deleted, inserted in changes:
            self.nets.setdefault(table.oid, NetRows(table)).add(deleted, inserted)
            self.rows += deleted.num_rows + inserted.num_rows
            self.size += deleted.nbytes + inserted.nbytes
        if not self.first:
            self.first, self.since = lsn, time.monotonic()
        self.last = lsn


class Backlog:
    """What waits for DuckDB. Whoever adds has the sequencer's lock, and waits for nobody; ``apply`` is for any
    thread."""

    def __init__(self, connect: Callable[[], Connection], release: Callable[[Connection], None]) -> None:
        self._connect = connect
        self._release = release
        #: Held for moments only: event loops add.
        self._lock = threading.Lock()
        self._waiting = _Waiting()
        #: Held by who gives DuckDB what goes there now.
        self._applying = threading.Lock()
        self._going = _Waiting()

    def add(self, lsn: int, changes: Iterable[TableRows]) -> None:
        """A transaction's rows, once it is committed."""
        with self._lock:
            self._waiting.add(lsn, changes)

    @staticmethod
    def suits(changes: Iterable[TableRows]) -> bool:
        """Whether changes may wait: few rows, which have keys where they go."""
        return all(
            deleted.num_rows + inserted.num_rows <= _MANY
            and bool(table.columns)
            and not (deleted.num_rows and identity_of(table) is None)
            for table, deleted, inserted in changes
        )

    @property
    def first_lsn(self) -> int | None:
        """The first LSN whose rows DuckDB does not have, if there is one."""
        with self._lock:
            return self._going.first or self._waiting.first or None

    @property
    def size(self) -> int:
        """Bytes of what waits."""
        return self._going.size + self._waiting.size

    @property
    def is_long(self) -> bool:
        """Whether it is time to apply it."""
        return self._waiting.rows >= _MANY or self._waiting.size >= _LARGE

    @property
    def age(self) -> float:
        """For how many seconds the oldest rows have waited."""
        with self._lock:
            oldest = self._going if self._going.first else self._waiting
            return time.monotonic() - oldest.since if oldest.first else 0.0

    def apply(self) -> None:
        """Gives DuckDB all that waits. Where that fails it waits on. Raises what DuckDB raises."""
        if self.first_lsn is None:
            return
        with self._applying:
            with self._lock:
                if not self._waiting.first:
                    return
                self._going, self._waiting = self._waiting, _Waiting()
            try:
                self._give(self._going)
            except BaseException:
                with self._lock:
                    later, self._waiting = self._waiting, self._going
                    self._going = _Waiting()
                    if later.first:
                        self._waiting.add(later.last, [net.net() for net in later.nets.values()])
                raise
            with self._lock:
                self._going = _Waiting()

    def _give(self, going: _Waiting) -> None:
        connection = self._connect()
        try:
            connection.begin()
            for net in going.nets.values():
                apply_by_value(connection, *net.net())
            update = f"UPDATE {STORE}.main.__millstream SET value = '{going.last}' WHERE key = 'applied_lsn'"
            connection.execute(update)
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
        finally:
            self._release(connection)

"""Committed rows that DuckDB's file does not contain yet.

A transaction that changes single rows by key is durable with its log record, and readers by key see its rows at once
(``executor.key_access.table_keys``). Applying each such transaction to DuckDB would cost some milliseconds and a sync.
So their rows wait here, and are applied together before an engine reads the tables or once there are many.

Owns: the net changes that wait, row by row, and their application. After a crash they are read from the log, which
keeps the records above the LSN that the file contains.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

import pyarrow as pa
from msgspec import Struct, field

from catalog.objects import Table
from executor.commit.encoding.frames import MOST_ROWS
from executor.commit.records import TableChange, TableValues
from executor.embedded.connection import Connection
from executor.embedded.printing.dialect import STORE
from executor.rows.row_shapes import identity_of, shape_of
from executor.rows.value_rows import ValueRow, together
from executor.tables.changes import apply_by_value
from executor.tables.journal import Changed, Entry, RowsChanged
from executor.traces.index import Row
from executor.traces.keyed_rows import Key

#: The most rows that may wait, and the most bytes.
_MANY: Final = 4096
_LARGE: Final = 16 << 20


class NetRows:
    """The net result of several changes of one table, each row by the key that every row has. In a table without such a
    key, rows are only added."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._shape = shape_of(table)
        self._key = self._shape.identity
        #: For each key, the row before the changes and the row now.
        self._rows: dict[Key, tuple[Row | None, Row | None]] = {}
        self._came: list[Row] = []
        self._tables: list[pa.Table] = []
        self._loose = 0  # rows added to a table without a key
        #: The approximate bytes of the changes.
        self.size = 0

    def add(self, change: RowsChanged) -> None:
        """Adds one change."""
        self.size += change.size
        if self._key is None:
            assert not change.counts[0]
            self._loose += change.counts[1]
            if isinstance(change, Changed):
                self._tables.append(change.inserted)
            else:
                self._came += change.came()
            return
        rows, (went, came) = self._rows, change.keys(self._key)
        for key, row in zip(went, change.went(), strict=True):
            known = rows.get(key)
            rows[key] = (row if known is None else known[0], None)
        for key, row in zip(came, change.came(), strict=True):
            known = rows.get(key)
            rows[key] = (None if known is None else known[0], row)

    def also(self, later: NetRows) -> None:
        """Adds the net result of later changes."""
        self._came += later._came
        self._tables += later._tables
        self._loose += later._loose
        self.size += later.size
        rows = self._rows
        for key, (before, after) in later._rows.items():
            known = rows.get(key)
            rows[key] = (before if known is None else known[0], after)

    @property
    def count(self) -> int:
        """The number of changed rows."""
        return len(self._rows) + self._loose

    @property
    def went(self) -> list[Row]:
        """The deleted rows."""
        return [row for row, _ in self._rows.values() if row is not None]

    def part(self) -> TableChange | TableValues | None:
        """The changes for a log record; None if nothing has changed in the end."""
        went, came = self.went, [row for _, row in self._rows.values() if row is not None] + self._came
        if not went and not came and not self._tables:
            return None
        if not self._tables:
            frames = self._frame(went), self._frame(came)
            if None not in frames:
                return TableValues(self.table.oid, frames[1] or b"", frames[0] or b"")
        deleted, inserted = self.net()
        return TableChange(self.table.oid, inserted, deleted)

    def _frame(self, rows: list[Row]) -> bytes | None:
        """Rows of values in the form of a log record; None for other rows, or for many."""
        if not rows:
            return b""
        if len(rows) > MOST_ROWS or not self._shape.encoder.is_possible:
            return None
        values = [row.values for row in rows if isinstance(row, ValueRow)]
        return self._shape.encoder.encode(values) if len(values) == len(rows) else None

    def net(self) -> tuple[pa.Table, pa.Table]:
        """The deleted rows and the inserted rows."""
        came = [row for _, row in self._rows.values() if row is not None] + self._came
        inserted = together(self._shape, came)
        if self._tables:
            inserted = pa.concat_tables([inserted, *self._tables])
        return together(self._shape, self.went), inserted


def net_rows(table: Table, deleted: pa.Table, inserted: pa.Table) -> NetRows:
    """The deleted rows and the inserted rows."""
    found = NetRows(table)
    found.add(Changed(table, deleted, inserted))
    return found


def net_of(journal: Iterable[Entry]) -> list[NetRows]:
    """The net result of a transaction's changes, which must all be by key."""
    found: dict[int, NetRows] = {}
    for entry in journal:
        assert isinstance(entry, RowsChanged)
        known = found.get(entry.table.oid)
        if known is None:
            known = found[entry.table.oid] = NetRows(entry.table)
        known.add(entry)
    return [found[oid] for oid in sorted(found)]


class _Waiting(Struct):
    """The waiting rows of the transactions with LSNs from ``first`` (0: none) to ``last``; the oldest waits ``since``
    then."""

    nets: dict[int, NetRows] = field(default_factory=dict)
    rows: int = 0
    size: int = 0
    first: int = 0
    last: int = 0
    since: float = 0.0

    def add(self, lsn: int, changes: Iterable[NetRows]) -> None:
        """Adds the changes of a later transaction."""
        for change in changes:
            known = self.nets.get(change.table.oid)
            if known is None:
                known = self.nets[change.table.oid] = NetRows(change.table)
            self.rows -= known.count
            known.also(change)
            self.rows += known.count
            self.size += change.size
        if not self.first:
            self.first, self.since = lsn, time.monotonic()
        self.last = lsn


class Backlog:
    """The changes that wait for DuckDB. A thread that adds changes holds the sequencer's lock and does not wait; any
    thread may call ``apply``."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        release: Callable[[Connection], None],
        applied: Callable[[int], None],
    ) -> None:
        self._connect = connect
        self._release = release
        self._applied = applied
        self._require_durable: Callable[[int], None] = lambda lsn: None
        #: Held for moments only: event loops add.
        self._lock = threading.Lock()
        self._waiting = _Waiting()
        #: Held by the thread that applies rows to DuckDB.
        self._applying = threading.Lock()
        self._going = _Waiting()

    def apply_behind(self, require_durable: Callable[[int], None]) -> None:
        """From now on rows may be visible before the log is on the disk. ``require_durable`` returns when the disk has
        the log up to an LSN."""
        self._require_durable = require_durable

    def add(self, lsn: int, changes: Iterable[NetRows]) -> None:
        """Adds a transaction's rows, once it is committed."""
        with self._lock:
            self._waiting.add(lsn, changes)

    @staticmethod
    def suits(table: Table, deleted: pa.Table, inserted: pa.Table) -> bool:
        """Whether a change may wait: it has few rows, and deleted rows have keys."""
        few = deleted.num_rows + inserted.num_rows <= _MANY
        return few and bool(table.columns) and not (deleted.num_rows and identity_of(table) is None)

    @property
    def first_lsn(self) -> int | None:
        """The first LSN whose rows DuckDB does not contain, if any."""
        with self._lock:
            return self._going.first or self._waiting.first or None

    @property
    def size(self) -> int:
        """The bytes of the waiting rows."""
        return self._going.size + self._waiting.size

    @property
    def is_long(self) -> bool:
        """Whether the waiting rows should be applied now."""
        return self._waiting.rows >= _MANY or self._waiting.size >= _LARGE

    @property
    def age(self) -> float:
        """For how many seconds the oldest rows have waited."""
        with self._lock:
            oldest = self._going if self._going.first else self._waiting
            return time.monotonic() - oldest.since if oldest.first else 0.0

    def apply(self) -> None:
        """Applies all waiting rows to DuckDB. On an error they remain waiting, and DuckDB's error is raised."""
        if self.first_lsn is None:
            return
        with self._applying:
            with self._lock:
                if not self._waiting.first:
                    return
                self._going, self._waiting = self._waiting, _Waiting()
            try:
                self._require_durable(self._going.last)
                self._give(self._going)
                self._applied(self._going.last)
            except BaseException:
                with self._lock:
                    later, self._waiting = self._waiting, self._going
                    self._going = _Waiting()
                    if later.first:
                        self._waiting.add(later.last, later.nets.values())
                raise
            with self._lock:
                self._going = _Waiting()

    def _give(self, going: _Waiting) -> None:
        connection = self._connect()
        try:
            connection.begin()
            for net in going.nets.values():
                apply_by_value(connection, net.table, *net.net())
            meta = f"{STORE}.main.__millstream"
            connection.execute(f"DELETE FROM {meta} WHERE key = 'applied_lsn' AND CAST(value AS BIGINT) < {going.last}")
            connection.execute(f"INSERT INTO {meta} VALUES ('applied_lsn', '{going.last}')")
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
        finally:
            self._release(connection)

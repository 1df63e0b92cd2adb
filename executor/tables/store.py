"""The tables of one server, in a DuckDB database file.

Owns: the file, the LSN that it contains, the definitions of its tables, read snapshots, and the write transactions
(``transaction.py``). Several of these may be open: each locks the tables and rows that it changes, so that no two
change the same row and DuckDB finds no conflict. A table is stored as ``t<oid>`` with its columns as declared and
without DuckDB's constraints. Millstream checks constraints itself (``constraints``), since DuckDB cannot delete and
insert the same key in one transaction and has no foreign key actions. Unique keys are looked up by scans with zone maps
and a join filter (under 1 ms for a key among millions), not by an index.

Knows nothing of the log. Committed rows are in the file or the backlog, in LSN order: a transaction's rows are written
to the file only after those of all lower LSNs, so that ``applied_lsn`` tells what the file contains. The file records
each LSN as a row of its own, since transactions that change the same row would conflict, or as the LSN of catalog
changes (``documents``); the highest one counts.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from catalog.codec import CATALOG_CLASSES, decode
from catalog.objects import Table
from catalog.values.errors import SqlError
from executor.commit.files import require_space
from executor.embedded.connection import Bindings, Connection, Parameters
from executor.embedded.instance import Instance
from executor.embedded.printing.dialect import STORE
from executor.embedded.results import OpenRows
from executor.locks.held import TransactionLocks
from executor.locks.manager import Locks, Owner
from executor.printing.nodes import quoted
from executor.rows.row_shapes import schema_of
from executor.tables.backlog import Backlog, net_rows
from executor.tables.changes import Changes, Counts, rows_in_batches
from executor.tables.definitions import catalog_documents
from executor.tables.statements.changes_by_key import KeyedTables, Readings
from executor.tables.statements.effects import OverRows, typed
from executor.tables.transaction import WriteTransaction
from executor.tables.unsettled import Unsettled
from planner.algebra.nodes import Relation
from planner.statistics import ColumnStatistics, TableStatistics

META: Final = f"{STORE}.main.__millstream"
DEFINITIONS: Final = f"{STORE}.main.__tables"
_MARGIN: Final = 4 << 20  # definitions, manifests
_BLOCK: Final = 256 << 10  # DuckDB's
#: Segments without a checkpoint have no blocks: their values are counted, and values without a fixed width count as
#: this many bytes.
_WIDTH: Final = 16
_WIDTHS: Final = "".join(
    f" WHEN '{kind}' THEN {width}"
    for kind, width in {"BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INTEGER": 4, "DATE": 4, "FLOAT": 4, "BIGINT": 8,
                        "DOUBLE": 8, "TIMESTAMP": 8, "TIMESTAMP WITH TIME ZONE": 8, "TIME": 8}.items()
)  # fmt: skip
_SIZE: Final = f"""SELECT count(DISTINCT block_id) FILTER (persistent) * {_BLOCK}
    + CAST(ceil(coalesce(sum("count" * CASE segment_type WHEN 'VALIDITY' THEN 0.125{_WIDTHS} ELSE {_WIDTH} END)
        FILTER (NOT persistent), 0)) AS BIGINT)
    FROM pragma_storage_info('{STORE}.main.t{{oid}}')"""
_CHECKPOINT: Final = 16_000_000  # size in bytes of DuckDB's log at which it writes a checkpoint
_MOST_REWRITTEN: Final = 256 << 20


#: Estimated rows up to which a table's rows are counted: that takes a fraction of a millisecond.
_COUNTED: Final = 100_000
#: Tables with their approximate row counts.
_ESTIMATES: Final = f"SELECT table_name, estimated_size FROM duckdb_tables() WHERE database_name = '{STORE}'"


class ReadSnapshot:
    """A snapshot of the tables. Used by one thread at a time, except that any thread may call ``interrupt``."""

    def __init__(self, database: Instance, connection: Connection) -> None:
        self._database = database
        self._connection = connection
        self._open = True
        connection.may_be_left = True
        connection.begin()

    def query(self, relation: Relation, bindings: Bindings, parameters: Parameters, timezone: str) -> pa.Table:
        """A relation's rows over the snapshot and bound leaves. After an error in the data, the snapshot cannot be used
        any more."""
        try:
            return self._connection.query(relation, bindings, parameters, timezone)
        except SqlError:
            self._connection.makes_nothing = True  # DuckDB rolls back a transaction that has failed at its COMMIT
            raise

    def open(
        self, relation: Relation, bindings: Bindings, parameters: Parameters = (), timezone: str = "UTC"
    ) -> pa.Table | OpenRows:
        """Opens a result, which is read while it is computed if it is large."""
        return self._connection.open(relation, bindings, parameters, timezone)

    def rows(self, table: Table, limit: int) -> pa.Table | None:
        """All rows of a table; None if they take more than ``limit`` bytes."""
        batches, size = [], 0
        for batch in rows_in_batches(self._connection, table):
            size += batch.nbytes
            if size > limit:
                return None
            batches.append(batch)
        return pa.Table.from_batches(batches, schema_of(table))

    @property
    def connection(self) -> Connection:
        """A connection for several statements over the snapshot, which ends together with the snapshot."""
        return self._connection

    def interrupt(self) -> None:
        """Makes the running query raise 57014."""
        self._connection.interrupt()

    def close_behind_rows(self) -> None:
        """Ends the snapshot once its open result, if any, has been read or dropped."""
        rows = self._connection.open_rows
        if rows is None:
            self.close()
        else:
            rows.at_end(self.close)

    def close(self) -> None:
        """Ends the snapshot, and an open result with it; closing twice is harmless."""
        if not self._open:
            return
        self._open = False
        self._connection.drop_rows()
        try:
            if self._connection.in_transaction:  # otherwise the transaction wrote and has ended
                self._connection.commit()
        except SqlError:
            self._connection.rollback()
        self._database.release(self._connection)


class TableStore:
    """All tables of a server. Methods may be called from any thread."""

    def __init__(self, path: Path, threads: int = 0, spill: Path | None = None, memory: int = 0) -> None:
        self._path = path
        #: Whether the file did not exist before.
        self.is_new = not path.exists()
        self._folder = path.parent
        self._log_path = path.with_name(path.name + ".wal")
        self._database = Instance(threads, path, spill=spill, memory=memory)
        #: All locks in this server.
        self.locks = Locks()
        self._relations: OverRows = {}
        #: The changes that the file does not contain yet.
        self.backlog = Backlog(self._database.acquire, self._database.release, self._stored)
        #: What has the tables' rows by key, once there is such a service (``register_keys``).
        self.keyed: KeyedTables | None = None
        self.readings = Readings()
        #: Changes that other writers may see and readers may not yet.
        self.unsettled = Unsettled()
        try:
            self._load()
        except BaseException:  # the file is damaged
            self._database.close()
            raise

    def _load(self) -> None:
        """Reads the file's own records; prepares a new file."""
        connection = self._database.acquire()
        connection.execute(f"CREATE TABLE IF NOT EXISTS {META}(key VARCHAR, value VARCHAR)")
        connection.execute(f"CREATE TABLE IF NOT EXISTS {DEFINITIONS}(oid BIGINT, definition VARCHAR)")
        #: The stored documents of the catalog.
        self.catalog = catalog_documents.load(connection)
        #: The LSN of the last log record that the tables contain.
        self.applied_lsn = max(newest_lsn(connection), self.catalog.lsn)
        #: The LSN of the last log record that the file contains.
        self.stored_lsn = self.applied_lsn
        #: The LSN at which each table last changed since the start, by oid.
        self.changed: dict[int, int] = {}
        #: Counts of each table's changed rows, by oid; updated by the writer.
        self.counts: dict[int, Counts] = {}
        self.definitions: dict[int, Table] = {}
        for oid, definition in connection.rows(f"SELECT oid, definition FROM {DEFINITIONS}"):
            self.definitions[oid] = decode(json.loads(definition), CATALOG_CLASSES)
        self._database.release(connection)

    @classmethod
    def open(cls, path: Path, threads: int = 0, spill: Path | None = None, memory: int = 0) -> TableStore:
        """Opens the file, or creates it. ``spill`` takes what exceeds ``memory`` bytes (0: DuckDB's default)."""
        return cls(path, threads, spill, memory)

    def adopt(self, tables: Iterable[Table]) -> None:
        """Makes equal definitions the same objects."""
        self.definitions |= {table.oid: table for table in tables if self.definitions.get(table.oid) == table}

    def register_keys(self, keyed: KeyedTables) -> None:
        """Transactions that begin from now on find rows by key in ``keyed``."""
        self.keyed = keyed

    def recover(self, lsn: int, changes: Sequence[tuple[int, pa.Table | None, pa.Table | None]]) -> bool:
        """Takes a log record's (oid, inserted, deleted) during recovery, if the rows may wait for those of other
        records."""
        found = [(self.definitions[oid], deleted, inserted) for oid, inserted, deleted in changes]
        found = [(table, typed(table, old), typed(table, new)) for table, old, new in found]
        if not all(self.backlog.suits(*change) for change in found):
            return False
        self.backlog.add(lsn, [net_rows(*change) for change in found])
        self.applied_lsn = lsn
        if self.backlog.is_long:
            self.backlog.apply()
        return True

    def snapshot(self) -> ReadSnapshot:
        """A snapshot of what is committed now. The caller holds the sequencer's lock if it needs to know the LSN."""
        return ReadSnapshot(self._database, self.connect())

    def begin_write(self, timeout: float = 0.0, cancelled: Callable[[], bool] = lambda: False) -> WriteTransaction:
        """A write transaction with its own locks, which are released with it.

        A wait for a lock takes at most ``timeout`` seconds (0: without limit; then 55P03), and ends once ``cancelled``
        is true (57014).
        """
        return self.begin(TransactionLocks(self.locks, Owner(), lambda: timeout, cancelled), is_alone=True)

    def begin(
        self, locks: TransactionLocks, snapshot: ReadSnapshot | None = None, lsn: int = 0, is_alone: bool = False
    ) -> WriteTransaction:
        """A write transaction with the locks of an outer one; ``is_alone``: the locks are released with it. With a
        ``snapshot``, all its statements read that snapshot's LSN."""
        self.unsettled.mend()
        if self.backlog.is_long:
            self.backlog.apply()
        fixed = None if snapshot is None else (snapshot.connection, lsn)
        return WriteTransaction(self, locks, self._ended, self._relations, self.counts, fixed, is_alone)

    def begin_at_once(self, locks: TransactionLocks | None = None) -> WriteTransaction | None:
        """Begins a transaction if that takes no time and all transactions before it have succeeded; without ``locks``,
        with locks of its own."""
        if self.backlog.is_long or self.unsettled.chain.error is not None:
            return None
        own = TransactionLocks(self.locks, Owner()) if locks is None else locks
        return WriteTransaction(self, own, self._ended, self._relations, self.counts, is_alone=locks is None)

    def connect(self) -> Connection:
        """A connection that sees all committed changes."""
        self.backlog.apply()
        return self._database.acquire()

    def release(self, connection: Connection) -> None:
        """Returns a connection."""
        self._database.release(connection)

    def noted(self, key: str) -> str | None:
        """The value that ``note`` has written beside the tables; None without one."""
        rows = self._asked(f"SELECT value FROM {META} WHERE key = '{key}'")
        return next((str(value) for (value,) in rows), None)

    def note(self, key: str, value: str) -> None:
        """Writes a value beside the tables, into their file. Raises SqlError."""
        connection = self.connect()
        try:
            connection.execute(f"DELETE FROM {META} WHERE key = '{key}'")
            connection.execute(f"INSERT INTO {META} VALUES ('{key}', '{value}')")
        finally:
            self.release(connection)

    def row_counts(self) -> dict[int, int]:
        """Approximate row counts of the tables, by oid; deleted rows may still count."""
        self.backlog.apply()
        return {int(name[1:]): int(rows) for name, rows in self._asked(_ESTIMATES) if name[1:].isdigit()}

    def exact_row_counts(self) -> dict[int, int]:
        """Exact row counts of the tables, by oid."""
        with contextlib.closing(self.snapshot()) as snapshot:
            names = [name for name, _ in snapshot.connection.rows(_ESTIMATES) if name[1:].isdigit()]
            counts = " UNION ALL ".join(f"SELECT {name[1:]}, count(*) FROM {STORE}.main.{name}" for name in names)
            return dict(snapshot.connection.execute(counts).fetchall()) if counts else {}

    def statistics(self, oid: int, names: Sequence[str]) -> TableStatistics | None:
        """The row count of a table, and DuckDB's statistics of some columns. The count is approximate for large tables;
        in that of small ones, which are counted, rows that were deleted would weigh too much.

        None for a table that no transaction has committed yet.
        """
        count = f"SELECT estimated_size FROM duckdb_tables() WHERE database_name = '{STORE}' AND table_name = 't{oid}'"
        columns = ", ".join(f"stats({quoted(name)})" for name in names) or "1"
        rows = next((number for (number,) in self._asked(count)), None)
        if rows is None:
            return None
        if rows <= _COUNTED:
            ((rows,),) = self._asked(f"SELECT count(*) FROM {STORE}.main.t{oid}")
        found = self._asked(f"SELECT {columns} FROM {STORE}.main.t{oid} LIMIT 1") if names else []
        known = {name: _column(value) for row in found for name, value in zip(names, row, strict=True)}
        return TableStatistics(float(rows), known)

    def sizes(self) -> dict[int, int]:
        """The bytes of each table, by oid: whole blocks in the file, and an estimate for rows that are only in DuckDB's
        log."""
        self.backlog.apply()
        return {oid: sum(size for (size,) in self._asked(_SIZE.format(oid=oid))) for oid in self.definitions}

    def _asked(self, query: str) -> list[Any]:
        connection = self._database.acquire()
        try:
            return list(connection.rows(query))
        finally:
            self._database.release(connection)

    def require_space(self, size: int) -> None:
        """Raises 53100 if a commit that changes this many bytes might fail for lack of disk space.

        DuckDB writes a checkpoint in addition to its log when the log is long, and after a failure on a full disk, the
        whole database is unusable until the next start.
        """
        need = _MARGIN + 2 * (size + self.backlog.size)
        log = _size(self._log_path)
        if log + need >= _CHECKPOINT:
            need += log + min(_size(self._path), _MOST_REWRITTEN)
        require_space(self._folder, need, "write to the tables")

    def _ended(self, transaction: WriteTransaction, lsn: int | None) -> None:
        """A write transaction is committed, at an LSN if it was logged. Called in the order of the LSNs."""
        changes = transaction.own_definitions
        if changes:
            kept = {oid: table for oid, table in self.definitions.items() if oid not in changes}
            self.definitions = kept | {oid: table for oid, table in changes.items() if table is not None}
        if lsn is not None:
            self.changed.update(dict.fromkeys(transaction.touched, lsn))
            self.applied_lsn = max(self.applied_lsn, lsn)
            if transaction.is_open:
                self._stored(lsn)
        if transaction.catalog is not None:
            self.catalog = transaction.catalog

    def compact(self, lsn: int, whole: Callable[[], str]) -> None:
        """Writes the ``whole`` catalog if its stored changes have become long."""
        if not self.catalog.is_long:
            return
        connection = self._database.acquire()
        try:
            connection.begin()
            self.catalog = catalog_documents.compact(connection, lsn, whole())
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
        finally:
            self._database.release(connection)

    def _stored(self, lsn: int) -> None:
        """Records that the file contains all changes up to an LSN."""
        self.stored_lsn = max(self.stored_lsn, lsn)

    def close(self) -> None:
        """Closes the file; no statement may be running."""
        with contextlib.suppress(SqlError):  # the log has what the file lacks
            self.backlog.apply()
        self._database.close()


def newest_lsn(connection: Connection) -> int:
    """The highest LSN recorded in the file."""
    rows = connection.rows(f"SELECT max(CAST(value AS BIGINT)) FROM {META} WHERE key = 'applied_lsn'")
    return next((int(value) for (value,) in rows if value is not None), 0)


def _column(stats: Any) -> ColumnStatistics:
    """A column's statistics; a value that Python cannot hold arrives as text and is ignored."""
    if not isinstance(stats, dict):
        return ColumnStatistics()
    distinct = stats.get("approx_unique")
    return ColumnStatistics(float(distinct) if distinct else None, stats.get("min"), stats.get("max"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


__all__ = ["Changes", "ReadSnapshot", "TableStore", "WriteTransaction"]

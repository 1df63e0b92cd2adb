"""The database: one log, one sequencer, the tables, the streams and the continuous views of one server.

Owns: opening and recovery, committing a transaction (the log record is the commit point, everything else follows it on
publication), and the registry of streams and views. Knows nothing of clients; sessions are in executor/session.

Locks, always taken in this order: the table writer's, a view's, the sequencer's.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import pyarrow as pa

from catalog.catalog import Catalog
from catalog.errors import SqlError, undefined_table
from catalog.objects import Sequence, Stream, SystemView, Table, View
from catalog.system.rows import Own
from executor.advisory import Locks
from executor.analytics import Analytics
from executor.cluster.logs import place_log
from executor.cluster.storage import Storage
from executor.commit.background import background_files
from executor.commit.files import require_space
from executor.commit.log import Log
from executor.commit.records import (
    FilesArrived,
    Followed,
    RowValues,
    Spooled,
    StreamRows,
    TableChange,
    TableValues,
    TransactionRecord,
)
from executor.commit.recovery import StreamReader
from executor.commit.sequencer import Done, Sequencer
from executor.definitions import stored_catalog
from executor.embedded.engine import EmbeddedEngine
from executor.embedded.tables.store import TableStore, WriteTransaction
from executor.files.watching import SourceWatcher
from executor.moving.elsewhere import Elsewhere
from executor.moving.ownership import read_owned, require_past
from executor.moving.replica import Replicas
from executor.moving.views import ViewMoving, place
from executor.options import Options
from executor.plans import PlanCache
from executor.recovery import recover_tables, refill_streams
from executor.reopening import reopen
from executor.separation.service import Separation
from executor.session import DatabaseSession
from executor.streams.appender import Appender
from executor.streams.runtime import Arrival, FileFeed, StreamRuntime, is_followed
from executor.system import server_catalog, system_table
from executor.tables.drawing import Drawings
from executor.tables.row_changes import RowChanges
from executor.tables.sequences import SequenceStore
from executor.tables.table_keys import TableKeys
from executor.tables.temporary import Temporary, TemporaryOids
from executor.trace.layout import Layout, home_of
from executor.trace.ring import Ring
from executor.transaction import NewView, Transaction
from executor.versions import Versions
from executor.views.admission import Admission
from executor.views.changes import ViewChanges
from executor.views.frontiers import Frontiers
from executor.views.indexes import ViewIndexes
from executor.views.maintenance import Maintenance
from executor.views.runtime import ViewError, ViewRuntime
from executor.views.storage import StoredView, ViewStore
from executor.views.watch import ViewWatch

_LOGGER = logging.getLogger(__name__)


class Database:
    """One open database. Methods may be called from any thread."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.plans = PlanCache()
        directory, spill = options.server_directory, options.spill_directory
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        # First of all, since no other process can have this file open: the folder is ours alone from here on.
        with ThreadPoolExecutor(1) as beside:  # the engine computes what it needs outside of Python
            system = beside.submit(server_catalog)
            self.tables = TableStore.open(directory / "tables.duckdb", spill=spill)
            self._stored = system.result()
        try:
            place_log(options)
        except SqlError:
            self.tables.close()
            raise
        shutil.rmtree(spill, ignore_errors=True)  # what a process left that died
        self.engine = EmbeddedEngine(options.embedded_threads, spill)
        self.log = Log(options.log_directory, options.log_segment_bytes, files=background_files())
        self.sequences = SequenceStore(directory / "sequences")
        self.drawings = Drawings()
        #: The folder that servers share.
        self.shared = Storage(options.storage_directory)
        self.storage = ViewStore(options.shared_directory, options.server_id)
        self._catalog = self._load_catalog()
        self.streams: dict[int, StreamRuntime] = {}
        self._views: dict[int, ViewRuntime] = {}
        self.versions = Versions()
        self.replicas = Replicas(self)
        self.elsewhere = Elsewhere(self)
        self._committing: dict[int, Transaction] = {}
        #: The LSN of the last change of any table.
        self.tables_lsn = 0
        self._copies = 0
        self._copies_lock = threading.Lock()
        self.indexes = ViewIndexes(self)
        self.table_keys = TableKeys(self, options.table_keys_bytes)
        self.frontiers = Frontiers(self)
        self._recover()
        self.tables.adopt(item for item in self._catalog.objects.values() if isinstance(item, Table))
        self.tables.keyed = self.table_keys
        self.sequences.keep(item.state for item in self._catalog.objects.values() if isinstance(item, Sequence))
        self.temporary = TemporaryOids(self.tables)
        self.sequencer = Sequencer(self.log, max(self.tables.applied_lsn, self.storage.highest_lsn()))
        self.sequencer.on_publish(self._publish)
        #: How far the log was at the opening: of changes before it nothing is known.
        self.opened_lsn = self.sequencer.visible
        try:
            require_past(self.shared, options.server_name, self.opened_lsn)
        except SqlError:
            self._close_files()
            raise
        self.changes = ViewChanges(self)
        self.view_watch = ViewWatch(self)
        self.admission = Admission(options.backlog_bytes, self.frontiers.backlog)
        self.appender = Appender(self)
        self.row_changes = RowChanges(self)
        self.maintenance = Maintenance(self)
        self.analytics = Analytics(self.maintenance.spark, self.storage)
        self.separation = Separation(self)
        self.advisory = Locks()
        self.view_moving = ViewMoving(self)
        self.watcher = SourceWatcher(self)

    @classmethod
    def open(cls, options: Options) -> Database:
        """Opens, or creates, the database of a data directory and recovers what the log holds."""
        database = cls(options)
        database.maintenance.start()
        database.watcher.start()
        database.separation.moving.start()
        database.view_moving.start()
        return database

    def close(self) -> None:
        """Ends background work and closes all files; what was acknowledged is durable."""
        self.view_moving.close()
        self.separation.moving.close()
        self.admission.close()
        self.view_watch.close()
        self.watcher.close()
        self.maintenance.close()
        self.appender.close()
        self.row_changes.close()
        self._close_files()

    def _close_files(self) -> None:
        self.sequencer.close()
        self.log.close()
        self.sequences.close()
        self.tables.close()
        self.engine.close()

    def session(self, user: str, name: str) -> DatabaseSession:
        """A session of one client."""
        return DatabaseSession(self, user, name)

    # Catalog ----------------------------------------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        """The committed catalog."""
        return self._catalog

    def _load_catalog(self) -> Catalog:
        return stored_catalog.load_documents(self.tables.catalog.whole, self.tables.catalog.changes, self._stored)

    def version_of(self, oids: tuple[int, ...]) -> int:
        """The LSN of the last change of what these relations, and those below them, show."""
        return self.versions.newest(oids)

    def reads_of(self, oid: int) -> tuple[int, ...]:
        """Everything whose change may change what a relation shows, itself included."""
        found = self.versions.reads.get(oid)
        return tuple(self._closure(oid)) if found is None else found  # of a view that is just being created, or no view

    def _refresh_reads(self) -> None:
        """For each view, everything whose change may change its result."""
        self.versions.reads = MappingProxyType({oid: tuple(self._closure(oid)) for oid in self._views})

    def _closure(self, oid: int) -> Iterator[int]:
        runtime = self._views.get(oid)
        yield oid
        if runtime is None:
            return
        final = self.plans.get(runtime.program.final)
        yield from (path.stream for path in runtime.program.paths)
        yield from final.tables
        for below in final.views:
            yield from self._closure(below)

    def views_below(self, oids: tuple[int, ...]) -> tuple[int, ...]:
        """These continuous views and those that their final relations read, in a fixed order."""
        return tuple(sorted({below for oid in oids for below in self._closure(oid) if below in self._views}))

    def tables_of_view(self, oid: int) -> tuple[int, ...]:
        """Tables that the final relations of a view, and of those below it, read."""
        found = (self.plans.get(self.view(below).program.final).tables for below in self.views_below((oid,)))
        return tuple(sorted({table for tables in found for table in tables}))

    def version_beside(self, oid: int) -> int:
        """The LSN of the last change of what a view's final relation reads beside the view's own states."""
        final = self.plans.get(self.view(oid).program.final)
        return self.version_of((*final.tables, *final.views))

    def view(self, oid: int) -> ViewRuntime:
        """A continuous view's runtime. Raises 42P01 when it was dropped."""
        runtime = self._views.get(oid)
        if runtime is None:
            raise undefined_table(str(oid))
        return runtime

    def runtimes(self) -> tuple[ViewRuntime, ...]:
        """All continuous views."""
        return tuple(self._views.values())

    def views_on(self, stream: int) -> list[ViewRuntime]:
        """The continuous views that read a stream."""
        return [item for item in self.runtimes() if any(path.stream == stream for path in item.program.paths)]

    def engine_setting(self, view: View) -> str:
        """maintenance_engine of a view, else the server's."""
        return dict(view.options).get("maintenance_engine", self.options.maintenance_engine)

    def stored_runs(self, runtime: ViewRuntime, state: str) -> int:
        """How many runs of a state are on storage."""
        return self.storage.run_count(runtime.view.oid, state)

    def system_table(self, oid: int, catalog: Catalog, own: Own) -> pa.Table:
        """A system relation's rows, or a sequence's only one, as a transaction's catalog has it."""
        sequence = catalog.objects[oid]
        if isinstance(sequence, SystemView):
            return system_table(self, catalog, sequence, own)
        assert isinstance(sequence, Sequence), sequence
        values = self.sequences.current(sequence)
        arrays = [pa.array([value], item.type.arrow) for value, item in zip(values, sequence.columns, strict=True)]
        return pa.Table.from_arrays(arrays, names=[item.name for item in sequence.columns])

    # Commit -----------------------------------------------------------------------------------------------------

    def commit(self, transaction: Transaction, sync: bool = True) -> None:
        """Commits: returns when the record is durable (or, without ``sync``, visible). Raises what prevented it."""
        transaction.close()
        if transaction.is_empty:
            return
        try:
            if transaction.write is not None:
                transaction.write.settle(everything=True)
            record = transaction.record()
            if not record:
                self._commit_unlogged(transaction)
                return
            if transaction.write is not None:
                self._require_space(record)
            self._prepare_views(transaction)
        except BaseException:
            transaction.rollback()
            raise

        def register(lsn: int) -> None:
            self._committing[lsn] = transaction
            if transaction.write is not None and transaction.catalog is None:
                transaction.write.let_go(lsn)

        try:
            chain = None if transaction.write is None else transaction.write.chain
            self.sequencer.commit(record, sync or transaction.catalog is not None, register, chain)
        except BaseException as error:
            # harmless where the tables' part is committed already
            transaction.rollback(error if isinstance(error, SqlError) else None)
            raise

    def commit_rows(
        self, write: WriteTransaction, sync: bool, done: Done, later: Callable[[Callable[[], None]], object]
    ) -> None:
        """Commits changes of rows by key without waiting: ``done`` is called on this thread, an event loop's, in case
        of need by ``later``. Raises what prevented it at once; then the caller undoes it."""
        transaction = Transaction(False, lambda nowait: write, Temporary(), write=write)
        record, lsns = transaction.record(), list[int]()
        self._require_space(record)

        def register(lsn: int) -> None:
            self._committing[lsn] = transaction
            lsns.append(lsn)

        def register_here(lsn: int) -> None:
            register(lsn)
            write.let_go(lsn)

        def ended(error: Exception | None) -> None:
            if error is not None:
                transaction.rollback(error if isinstance(error, SqlError) else None)
            done(error)

        if self.sequencer.commit_soon(record, sync, ended, register, write.chain):
            if not write.is_over:
                write.let_go(lsns[-1])
            return
        for lsn in lsns:
            del self._committing[lsn]
        ticket = self.sequencer.submit(record, sync, register_here, write.chain)

        def call(error: Exception | None) -> None:
            later(partial(ended, error))

        ticket.on_done(call)

    def _commit_unlogged(self, transaction: Transaction) -> None:
        """What is temporary needs no record: the tables contain it at the LSN that they are at. What found nothing to
        change has seen that."""
        if transaction.write is not None:
            transaction.write.await_others()
        if transaction.write is not None and transaction.write.has_temporary:
            transaction.write.commit(self.tables.applied_lsn)
            transaction.write = None
        transaction.rollback()

    def _require_space(self, record: TransactionRecord) -> None:
        """Tables and definitions follow the log's record and must not fail behind it. Raises 53100."""
        size = 0
        for part in record:
            if isinstance(part, TableValues):
                size += len(part.inserted) + len(part.deleted)
            elif isinstance(part, TableChange):
                size += sum(table.nbytes for table in (part.inserted, part.deleted) if table is not None)
        require_space(self._directory, self.tables.space_for(size), "write to the tables")

    def _prepare_views(self, transaction: Transaction) -> None:
        """Static pipelines' results go to storage before the record that makes the view exist."""
        for new in transaction.views:
            self.storage.prepare(new.view.oid, new.program, new.statics, new.handover)

    def _publish(self, lsn: int, record: TransactionRecord) -> None:
        """Makes a durable record visible; called in LSN order, under the sequencer's lock."""
        transaction = self._committing.pop(lsn, None)  # what is left here by a failed commit is never published
        if transaction is not None and transaction.catalog is not None:
            self._alter_streams(transaction.catalog)  # before rows come that are of the new columns
        for part in record:
            if isinstance(part, StreamRows | RowValues | Spooled | FilesArrived):
                self._arrive(lsn, part)
            elif isinstance(part, TableChange | TableValues):
                self.tables_lsn = lsn
                self.versions.change(part.table, lsn)
        if transaction is not None and transaction.write is not None:
            self._publish_tables(lsn, transaction)
        for part in record:  # last, since it may be of a stream that the transaction makes
            if isinstance(part, Followed):
                self.replicas.recorded(lsn, part)

    def _alter_streams(self, catalog: Catalog) -> None:
        for oid, runtime in self.streams.items():
            if isinstance(item := catalog.objects.get(oid), Stream):
                runtime.alter(item)

    def _arrive(self, lsn: int, part: Arrival) -> None:
        runtime = self.streams.get(part.stream)
        if runtime is None:
            return
        runtime.feed.publish(lsn, part)
        runtime.arrived(lsn, time.monotonic())
        self.versions.change(part.stream, lsn)

    def _publish_tables(self, lsn: int, transaction: Transaction) -> None:
        write, catalog = transaction.write, None
        assert write is not None
        if transaction.catalog is not None and transaction.catalog_changes:
            catalog = transaction.catalog.permanent()
            for item in catalog.objects.values():
                if isinstance(item, View) and item.created_lsn == 0:
                    catalog = replace(catalog.change(stored_catalog.numbered(item, lsn)), version=catalog.version)
            write.save_catalog(lsn, transaction.catalog_changes, partial(stored_catalog.dump_catalog, catalog))
        self.table_keys.publish(lsn, write.journal)
        # the next writer finds the catalog
        write.commit(lsn, None if catalog is None else partial(self._install, catalog, lsn, transaction.views))
        transaction.write = None

    def _install(self, catalog: Catalog, lsn: int, views: list[NewView]) -> None:
        """A DDL transaction is durable: streams, views and the catalog become what it says.

        Who binds against a catalog finds what it names: what is new is there before it, what is dropped until it.
        """
        dropped = set(self._catalog.objects) - set(catalog.objects)
        for item in catalog.objects.values():
            if isinstance(item, Stream) and item.oid not in self.streams:
                self._open_stream(item)
            if isinstance(item, View) and item.oid in self._views:
                self._views[item.oid].alter(item)
        for new in views:
            self.storage.create(new.view.oid, lsn)
            self.open_view(replace(new.view, created_lsn=lsn), self.storage.load(new.view.oid))
        self._catalog = replace(catalog, version=max(catalog.version, self._catalog.version + 1))
        for oid in dropped:
            self._forget(oid)
        self._refresh_reads()
        self.view_watch.redefined()

    def _forget(self, oid: int) -> None:
        if self._views.pop(oid, None) is not None:
            self.storage.drop(oid)
        stream = self.streams.pop(oid, None)
        if stream is not None:
            stream.dropped()
            self.storage.drop_stream(oid)
            self.replicas.forget(oid)
        self.versions.forget(oid)
        self.indexes.forget(oid)
        self.changes.forget(oid)

    def _open_stream(self, stream: Stream) -> None:
        feed: Ring | FileFeed
        layout = Layout.of(stream)
        if is_followed(stream):
            feed = FileFeed(stream, self.storage.stream_folder(stream.oid) / "files.jsonl")
        else:
            feed = Ring(layout, StreamReader(self.log, stream.oid), self.options.ring_bytes)
        last_lsn = feed.last_lsn if isinstance(feed, FileFeed) else 0
        if home_of(stream):
            self.replicas.open(stream)
        self.streams[stream.oid] = StreamRuntime(stream, layout.shown, feed, last_lsn)

    def open_view(self, view: View, stored: StoredView) -> None:
        """A view is there. Raises XX001 where a run is not what was written."""
        feeds = {oid: self.streams[oid].feed for oid in stored.frontiers}
        runtime = ViewRuntime(view, stored.program, self.engine, feeds, stored.statics, stored.frontiers, stored.read)
        if stored.error is not None:
            runtime.fail(ViewError(*stored.error))
        runtime.shared, runtime.handover = stored.shared, stored.handover
        try:
            owned = read_owned(self.shared, runtime.shared) if runtime.shared else None
        except SqlError as error:
            if error.sqlstate != "XX001":
                raise
            # Nobody knows where it is: until somebody does, another server may need what comes behind its states.
            owned, runtime.held = None, min(stored.frontiers.values())
            runtime.fail(ViewError(error, 0))
        if owned is not None and owned.home == self.options.server_name:
            place(self, runtime, owned)
        runtime.on_fail = lambda failed: self.storage.fail(view.oid, failed.error, failed.lsn)
        self._views[view.oid] = runtime

    # Recovery ---------------------------------------------------------------------------------------------------

    def _recover(self) -> None:
        """Brings tables and catalog to the log's end and refills the rings above the views' durable frontiers."""
        started = time.monotonic()
        self._catalog = recover_tables(self.tables, self.log, self._catalog)
        for item in list(self._catalog.objects.values()):
            if isinstance(item, Stream):
                self._open_stream(item)
        for item in list(self._catalog.objects.values()):
            if isinstance(item, View) and item.continuous:
                reopen(self, item)
        self.storage.drop_orphans(set(self._views), set(self.streams))
        self._refresh_reads()
        refill_streams(self)
        if self.log.last_lsn:
            _LOGGER.info("recovered to LSN %d in %.2f s", self.log.last_lsn, time.monotonic() - started)

    # Other ------------------------------------------------------------------------------------------------------

    def is_live(self, runtime: ViewRuntime) -> bool:
        """Whether a view was not dropped."""
        return self._views.get(runtime.view.oid) is runtime

    def copies_running(self, change: int) -> None:
        """A COPY into a stream starts (+1) or ends (-1): background work waits meanwhile."""
        with self._copies_lock:  # of its own: the event loop's thread must not wait for a publication
            self._copies += change

    @property
    def is_busy(self) -> bool:
        """Whether rows are being parsed right now."""
        return self._copies > 0

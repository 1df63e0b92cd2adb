"""The database of one server: what exists (``executor/core/core``), and the services that work on it.

Owns: opening and recovery, committing a transaction (the log record is the commit point, everything else follows it on
publication), and what streams and views come and go with it. Knows nothing of clients; sessions are in
``executor/sql/session``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial

import pyarrow as pa
from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import Sequence, Stream, SystemView, Table, View
from catalog.system.rows import Own
from catalog.values.errors import SqlError
from executor.cluster.logs import published
from executor.cluster.registry import Registry
from executor.cluster.view_ownership import read_owned, require_past
from executor.commit.checked_lines import End
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
from executor.commit.sequencer import Sequencer
from executor.core.core import Core
from executor.core.recycled_log import Forgotten
from executor.database.recovery import recover_tables, refill_streams
from executor.database.reopening import reopen
from executor.database.system_relations import Shown, server_catalog, system_table
from executor.definitions import stored_catalog
from executor.files.arrived_files import FileFeed
from executor.key_access.row_changes import RowChanges
from executor.key_access.table_keys import TableKeys
from executor.key_access.view_indexes import ViewIndexes
from executor.moving.entry_effects import is_own, place, staged
from executor.moving.services import MovingServices
from executor.moving.view_moves import ViewMoving
from executor.options import Options
from executor.queries.reader import OwnReader, Reader, ReadServices
from executor.queries.spark_queries import Analytics
from executor.remote_reads.home_tables import Borrowing
from executor.remote_reads.remote_views import Elsewhere
from executor.replicas.replica import Replicas
from executor.separation.service import Separation
from executor.streams.appender import Appender
from executor.streams.runtime import Arrival, StreamRuntime, is_followed
from executor.subscriptions.change_feed import ViewChanges
from executor.subscriptions.view_watch import ViewWatch
from executor.tables.statements.effect_calls import drawings
from executor.tables.temporary import Temporary, TemporaryOids
from executor.tables.transaction import WriteTransaction
from executor.traces.layout import Layout, home_of
from executor.traces.ring import Ring
from executor.transactions.transaction import NewView, Transaction
from executor.upkeep.admission import Admission
from executor.upkeep.folder_watcher import SourceWatcher
from executor.upkeep.frontiers import Frontiers
from executor.upkeep.maintenance import Maintenance
from executor.views.failure import ViewError
from executor.views.runtime import ViewRuntime
from executor.views.storage import StoredView
from planner.cancellation import to_the_end
from planner.rules.row_order.order_system_rows import PLACE

_LOGGER = logging.getLogger(__name__)


class Database(Core):
    """One open database. Methods may be called from any thread."""

    def __init__(self, options: Options) -> None:
        super().__init__(options, server_catalog)
        self._is_closed = False
        self.drawings = drawings()
        self.replicas = Replicas(self)
        self._committing: dict[int, Transaction] = {}
        self.indexes = ViewIndexes(self, self.replicas)
        self.table_keys = TableKeys(self, options.table_keys_bytes)
        self.frontiers = Frontiers(self, self.replicas)
        self._moving = MovingServices(self, self.replicas, self.indexes, self.commit)
        try:
            self._recover()
        except BaseException:
            self.abandon()
            raise
        self.tables.adopt(item for item in self.catalog.objects.values() if isinstance(item, Table))
        self.tables.keyed = self.table_keys
        self.sequences.keep(item.state for item in self.catalog.objects.values() if isinstance(item, Sequence))
        self.temporary = TemporaryOids(self.tables)
        self.sequencer = Sequencer(self.log, max(self.tables.applied_lsn, self.storage.highest_lsn()))
        self.sequencer.on_publish(self._publish)
        self.tables.backlog.require_durable = self._require_durable
        if self.control.log.found is None and self.sequencer.visible > self.log.last_lsn:
            self.sequencer.commit(())  # the log goes on behind what others have of it, though its own end is lost
        self.opened_lsn = self.sequencer.visible
        try:
            require_past(self.shared, options.server_name, self.opened_lsn)
            log = published(options)
            self.registry = Registry(self.shared, options.server_name, options.address, options.server_lease, log=log)
        except BaseException:
            self.close_files()
            raise
        self.changes = ViewChanges(self, self.indexes)
        self.admission = Admission(options.backlog_bytes, self.frontiers.backlog)
        self.appender = Appender(self.sequencer)
        self.row_changes = RowChanges(self, self.commit_rows)
        self.maintenance = Maintenance(self, self.frontiers, self.admission)
        self.analytics = Analytics(self.maintenance.spark, self.storage)
        self.watcher = SourceWatcher(self, self.frontiers, self.maintenance.retry)
        self.view_moving = ViewMoving(self._moving, self.frontiers, self.admission, self.maintenance.retry)
        self.elsewhere = Elsewhere(self, self.view_moving.look_for)
        self.borrowing = Borrowing(self, self.replicas, self.elsewhere)
        self.separation = Separation(self, self.analytics, self.own_reader, self.view_moving)
        self.shown = Shown(self, self.separation, self.maintenance, self.admission)
        self.read_services = ReadServices(
            self,
            self.replicas,
            self.borrowing,
            self.elsewhere,
            self.changes,
            self.analytics,
            self.separation,
            self.system_table,
        )
        self.view_watch = ViewWatch(self, self.changes, partial(Reader, self.read_services))

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
        """Ends background work and closes all files, once: they may be another server's then. What was acknowledged is
        durable."""
        if self._is_closed:
            return
        self._is_closed = True
        self.view_moving.close()
        self.separation.moving.close()
        self.admission.close()
        self.view_watch.close()
        self.watcher.close()
        self.maintenance.close()
        self.appender.close()
        self.row_changes.close()
        self.close_files()

    def own_reader(self) -> OwnReader:
        """A reader of the server's own."""
        return OwnReader(self.read_services)

    def system_table(self, oid: int, catalog: Catalog, own: Own, path: tuple[str, ...]) -> pa.Table:
        """A system relation's rows, or a sequence's only one, as a transaction's catalog has it, for a search path."""
        sequence = catalog.objects[oid]
        if isinstance(sequence, SystemView):
            return system_table(self.shown, catalog, sequence, own, path)
        assert isinstance(sequence, Sequence), sequence
        values = self.sequences.current(sequence)
        arrays = [pa.array([value], item.type.arrow) for value, item in zip(values, sequence.columns, strict=True)]
        names = [*(item.name for item in sequence.columns), PLACE]
        return pa.Table.from_arrays([*arrays, pa.array([0])], names=names)

    # Commit -----------------------------------------------------------------------------------------------------

    def commit(self, transaction: Transaction, sync: bool = True) -> None:
        """Commits: returns when the record is durable (or, without ``sync``, visible). Raises what prevented it."""
        if transaction.write is None:
            transaction.close()
        if transaction.is_empty:
            return
        try:
            if transaction.write is not None:
                transaction.write.settle(everything=True)
                if transaction.write.is_open:
                    self.tables.backlog.apply()  # so that little is left for the publication
            record = transaction.record()
            if not record:
                self._commit_unlogged(transaction)
                return
            if transaction.write is not None:
                self._require_space(record)
            if transaction.catalog is not None:
                transaction.result(self.catalog)  # raises here what must not fail behind the record
            self._prepare(transaction)
        except BaseException:
            transaction.rollback()
            raise

        def register(lsn: int) -> None:
            self._committing[lsn] = transaction
            if transaction.write is not None and transaction.catalog is None:
                transaction.write.let_go(lsn)

        try:
            chain = None if transaction.write is None else transaction.write.chain
            is_synced = sync or self._is_stored_at_once(transaction)
            to_the_end(self.sequencer.commit, record, is_synced, register, chain)
        except BaseException as error:
            # harmless where the tables' part is committed already
            transaction.rollback(error if isinstance(error, SqlError) else None)
            raise
        transaction.close()

    @staticmethod
    def _is_stored_at_once(transaction: Transaction) -> bool:
        """Whether files get its changes when it is published. They must not have what the log may lose."""
        is_open = transaction.write is not None and transaction.write.is_open
        return is_open or transaction.catalog is not None

    def _require_durable(self, lsn: int) -> None:
        if lsn > self.sequencer.durable:
            self.log.sync()

    def commit_rows(
        self,
        write: WriteTransaction,
        sync: bool,
        done: Callable[[Exception | None], None],
        later: Callable[[Callable[[], None]], object],
    ) -> None:
        """Commits changes of rows by key without waiting: ``later`` carries the call of ``done``. Raises what prevented
        it at once; then the caller undoes it."""
        transaction = Transaction(False, lambda: write, Temporary(), write.locks, write=write)
        record = transaction.record()
        self._require_space(record)

        def register(lsn: int) -> None:
            self._committing[lsn] = transaction
            write.let_go(lsn)

        def ended(error: Exception | None) -> None:
            if error is not None:
                transaction.rollback(error if isinstance(error, SqlError) else None)
            done(error)

        ticket = self.sequencer.submit(record, sync, register, write.chain)

        def call(error: Exception | None) -> None:
            later(partial(ended, error))

        ticket.on_done(call)

    def _commit_unlogged(self, transaction: Transaction) -> None:
        """What is temporary needs no record: the tables contain it at the LSN that they are at. What found nothing to
        change has seen that."""
        if transaction.write is not None:
            transaction.write.await_others()
        if transaction.write is not None and transaction.write.has_temporary:
            transaction.write.commit(None)
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
        self.tables.require_space(size)

    def _prepare(self, transaction: Transaction) -> None:
        """Static pipelines' results go to storage before the record that makes the view exist, and so do the names of
        files with which a stream begins."""
        for new in transaction.views:
            self.storage.prepare(new.view.oid, new.program, new.statics, new.handover)
        known = self.catalog.objects
        for oid, item in () if transaction.catalog is None else transaction.catalog.objects.items():
            if oid not in known and isinstance(item, Stream) and is_followed(item):
                end = self.storage.prepare_stream(oid, transaction.arrived.get(oid))
                if end is not None:
                    self.note_forgotten(partial(_with_names, oid, end))

    def _publish(self, lsn: int, record: TransactionRecord) -> None:
        """Makes a durable record visible; called in LSN order, under the sequencer's lock."""
        transaction = self._committing.pop(lsn, None)  # what is left here by a failed commit is never published
        if transaction is not None and transaction.catalog is not None:
            self._alter_streams(transaction.result(self.catalog))  # before rows come that are of the new columns
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
            catalog = transaction.result(self.catalog)
            for item in catalog.objects.values():
                if isinstance(item, View) and item.created_lsn == 0:
                    catalog = replace(catalog.change(stored_catalog.numbered(item, lsn)), version=catalog.version)
            write.save_catalog(lsn, transaction.catalog_changes)
        self.table_keys.publish(lsn, write.journal)
        # the next writer finds the catalog
        write.commit(lsn, None if catalog is None else partial(self._install, catalog, lsn, transaction.views))
        transaction.write = None
        if catalog is not None:
            self.tables.compact(lsn, partial(stored_catalog.dump_catalog, catalog))

    def _install(self, catalog: Catalog, lsn: int, views: list[NewView]) -> None:
        """Applies a durable DDL transaction to streams, views and the catalog. Binding against a catalog finds the
        runtimes that it names: new ones are added before it is published, dropped ones are removed after it.
        """
        dropped = set(self.catalog.objects) - set(catalog.objects)
        for item in catalog.objects.values():
            if isinstance(item, Stream) and item.oid not in self.streams:
                self._open_stream(item)
            if isinstance(item, View) and item.oid in self._views:
                self._views[item.oid].alter(item)
        for new in views:
            self.storage.create(new.view.oid, lsn)
            self.open_view(replace(new.view, created_lsn=lsn), self.storage.load(new.view.oid))
        self.catalog = replace(catalog, version=max(catalog.version, self.catalog.version + 1))
        for oid in dropped:
            self._forget(oid)
        self.refresh_reads()
        self.view_watch.redefined()

    def _forget(self, oid: int) -> None:
        if self.remove_view(oid):
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
            store, converted = self.storage.names_of_files(stream.oid), self.storage.converted_files(stream.oid)
            feed = FileFeed(stream, store, converted, self.forgotten.names.get(stream.oid))
        else:
            feed = Ring(layout, StreamReader(self.log, stream.oid), self.options.ring_bytes)
        last_lsn = feed.last_lsn if isinstance(feed, FileFeed) else 0
        if home_of(stream):
            self.replicas.open(stream)
        self.streams[stream.oid] = StreamRuntime(stream, layout.shown, feed, last_lsn)

    def open_view(self, view: View, stored: StoredView) -> None:
        """A view is there. Raises XX001 where a run is damaged."""
        inputs = {oid: self.streams[oid].feed for oid in stored.program.inputs}

        def keep(failed: ViewError) -> None:
            self.storage.fail(view.oid, failed.error, failed.lsn)

        about = (self.engine, inputs, stored.statics, stored.frontiers, stored.read, self.pinned, keep)
        runtime = ViewRuntime(view, stored.program, *about)
        if stored.error is not None:
            runtime.fail(ViewError(*stored.error), is_kept=True)
        for feed in inputs.values():
            if isinstance(feed, FileFeed) and feed.damage is not None:
                runtime.fail(ViewError(feed.damage, 0), is_kept=True)
        runtime.location.name(stored.shared)
        runtime.location.arrive(stored.handover)
        try:
            owned = read_owned(self.shared, runtime.shared) if runtime.shared else None
            if owned is not None and owned.home != self.options.server_name and is_own(self, runtime):
                after = staged(self.shared, owned)
                runtime.location.hold(None if after is None else after.at)
        except SqlError as error:
            if error.sqlstate != "XX001":
                raise
            # Its server is unknown: until it is known, another server may need the rows after its states.
            owned = None
            runtime.location.hold(min(stored.frontiers.values()))
            runtime.fail(ViewError(error, 0), is_kept=True)
        if owned is not None and owned.home == self.options.server_name:
            place(self._moving, runtime, owned)
        self.add_view(runtime)

    # Recovery ---------------------------------------------------------------------------------------------------

    def _recover(self) -> None:
        """Brings tables and catalog to the log's end and refills the rings above the views' durable frontiers."""
        started = time.monotonic()
        self.catalog = recover_tables(self.tables, self.log, self.catalog)
        for item in list(self.catalog.objects.values()):
            if isinstance(item, Stream):
                self._open_stream(item)
        for item in list(self.catalog.objects.values()):
            if isinstance(item, View) and item.continuous:
                reopen(self, item, self.open_view)
        self.storage.drop_orphans(set(self._views), set(self.streams))
        self.refresh_reads()
        refill_streams(self, self.frontiers, self.replicas)
        if self.log.last_lsn:
            _LOGGER.info("recovered to LSN %d in %.2f s", self.log.last_lsn, time.monotonic() - started)


def _with_names(stream: int, end: End, known: Forgotten) -> Forgotten:
    """A stream begins with names of files that the log does not have."""
    return replace(known, names={**known.names, stream: end})

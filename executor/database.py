"""The database: one log, one sequencer, the tables, the streams and the continuous views of one server.

Owns: opening and recovery, committing a transaction (the log record is the commit point, everything else follows it on
publication), and the registry of streams and views. Knows nothing of clients; sessions are in executor/session.

Locks, always taken in this order: the table writer's, a view's, the sequencer's.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import pyarrow as pa

from catalog.errors import undefined_table
from catalog.objects import Catalog, Sequence, Stream, SystemView, Table, View
from catalog.system.rows import Own
from executor import ddl
from executor.admission import Admission
from executor.analytics import Analytics
from executor.appender import Appender
from executor.commit.background import background_files
from executor.commit.files import require_space
from executor.commit.log import Log
from executor.commit.records import (
    CatalogChange,
    FilesArrived,
    Part,
    RowValues,
    Spooled,
    StreamRows,
    TableChange,
    TransactionRecord,
)
from executor.commit.recovery import StreamReader, replay
from executor.commit.sequencer import Sequencer
from executor.drawing import Drawings
from executor.embedded.engine import EmbeddedEngine
from executor.embedded.tables import TableStore, WriteTransaction
from executor.maintenance import Maintenance
from executor.options import Options
from executor.points import Indexed, Row, ViewIndex
from executor.queries import PlanCache
from executor.sequences import SequenceStore
from executor.session import DatabaseSession
from executor.storage import ViewStore
from executor.streams import Arrival, FileFeed, StreamRuntime, is_followed
from executor.system import server_catalog, system_table
from executor.trace.ring import Ring
from executor.transaction import NewView, Transaction
from executor.views import ViewError, ViewRuntime
from executor.watching import SourceWatcher

_LOGGER = logging.getLogger(__name__)


@dataclass(slots=True)
class _Kept:
    """A view's index, the version of the view that it belongs to, and an LSN at which that was still the newest."""

    version: int
    index: Indexed
    checked: int = -1


class Database:
    """One open database. Methods may be called from any thread."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.plans = PlanCache()
        self.engine = EmbeddedEngine(threads=options.embedded_threads)
        directory = options.server_directory
        directory.mkdir(parents=True, exist_ok=True)
        self.tables = TableStore.open(directory / "tables.duckdb")
        self.log = Log(directory / "log", options.log_segment_bytes, files=background_files())
        self.sequences = SequenceStore(directory / "sequences")
        self.drawings = Drawings()
        self.storage = ViewStore(options.shared_directory, options.server_id)
        self._stored = server_catalog()
        self._catalog = self._load_catalog()
        self.streams: dict[int, StreamRuntime] = {}
        self._views: dict[int, ViewRuntime] = {}
        self._changed: dict[int, int] = {}
        self._committing: dict[int, Transaction] = {}
        #: The LSN of the last change of any table.
        self.tables_lsn = 0
        self._copies = 0
        self._copies_lock = threading.Lock()
        self._indexes: dict[int, _Kept] = {}
        self._reads: Mapping[int, tuple[int, ...]] = {}
        self._recover()
        self.sequences.keep(item.state for item in self._catalog.objects.values() if isinstance(item, Sequence))
        self.sequencer = Sequencer(self.log, max(self.tables.applied_lsn, self.storage.highest_lsn()))
        self.sequencer.on_publish(self._publish)
        self.admission = Admission(options.backlog_bytes, self._backlog)
        self.appender = Appender(self)
        self.maintenance = Maintenance(self)
        self.analytics = Analytics(self.maintenance.spark, self.storage)
        self.watcher = SourceWatcher(self)

    @classmethod
    def open(cls, options: Options) -> Database:
        """Opens, or creates, the database of a data directory and recovers what the log holds."""
        database = cls(options)
        database.maintenance.start()
        database.watcher.start()
        return database

    def close(self) -> None:
        """Ends background work and closes all files; what was acknowledged is durable."""
        self.admission.close()
        self.watcher.close()
        self.maintenance.close()
        self.appender.close()
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
        text = self.tables.load_catalog()
        return self._stored if text is None else ddl.load_catalog(text, self._stored)

    def version_of(self, oids: tuple[int, ...]) -> int:
        """The LSN of the last change of what these relations, and those below them, show."""
        changed = self._changed
        newest = 0
        for oid in oids:
            for below in self._reads.get(oid, (oid,)):
                newest = max(newest, changed.get(below, 0))
        return newest

    def _refresh_reads(self) -> None:
        """For each view, everything whose change may change its result."""
        reads: dict[int, tuple[int, ...]] = {}
        for oid in self._views:
            reads[oid] = tuple(self._closure(oid))
        self._reads = MappingProxyType(reads)

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
        found = (self.plans.get(self._views[below].program.final).tables for below in self.views_below((oid,)))
        return tuple(sorted({table for tables in found for table in tables}))

    def view(self, oid: int) -> ViewRuntime:
        """A continuous view's runtime. Raises 42P01 when it was dropped."""
        runtime = self._views.get(oid)
        if runtime is None:
            raise undefined_table(str(oid))
        return runtime

    def point_key(self, oid: int) -> tuple[str, ...]:
        """Names of a continuous view's columns that a point read gives values for; () where there is no such read."""
        program = self.view(oid).program
        names = {column: item.name for column, item in zip(program.columns, self.view(oid).view.columns, strict=True)}
        return tuple(names[column] for column in program.point_key)

    def fresh_index(self, oid: int) -> Indexed | None:
        """The view's index if nothing arrived since it was refreshed. Never blocks."""
        known = self._indexes.get(oid)
        if known is None:
            return None
        visible = self.sequencer.visible  # before the version: what is published meanwhile is asked for next time
        if visible != known.checked:
            if known.version != self.version_of((oid,)):
                return None
            known.checked = visible
        return known.index

    def point_read(self, oid: int, key: tuple[object, ...]) -> Row:
        """One row of a view that has a point key, at the present LSN."""
        runtime = self.view(oid)
        with runtime.lock:
            with self.sequencer.lock:  # a record being published has changed the version before it is visible
                version, lsn = self.version_of((oid,)), self.sequencer.visible
            runtime.advance(lsn)
            if runtime.index is None:
                runtime.index = ViewIndex(runtime, self.point_key(oid))
            index = runtime.index.refresh(lambda states: self._final(runtime, states))
            self._indexes[oid] = _Kept(version, index)
            return index.get(key)

    def _final(self, runtime: ViewRuntime, states: Mapping[str, pa.Table]) -> pa.Table:
        final = self.plans.get(runtime.program.final)
        table = None if final.small is None else final.small.run(states)
        if table is None:
            table = self.engine.query(final.relation, states, (), runtime.time_zone)
        return table.rename_columns([column.name for column in runtime.view.columns])

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
            record = self._record(transaction)
            if not record:
                transaction.rollback()
                return
            if transaction.write is not None:
                self._require_space(record)
            self._prepare_views(transaction)
        except BaseException:
            transaction.rollback()
            raise

        def register(lsn: int) -> None:
            self._committing[lsn] = transaction

        try:
            self.sequencer.commit(record, sync or transaction.catalog is not None, on_lsn=register)
        except BaseException:
            transaction.rollback()  # harmless where the tables' part is committed already
            raise

    def _record(self, transaction: Transaction) -> TransactionRecord:
        parts: list[Part] = list(transaction.parts)
        if transaction.write is not None:
            parts += [TableChange(*change) for change in transaction.write.changes()]
            parts += [CatalogChange(json.dumps({"rebuild": oid})) for oid in sorted(transaction.write.rebuilt)]
        parts += [CatalogChange(document) for document in transaction.catalog_changes]
        return tuple(parts)

    def _require_space(self, record: TransactionRecord) -> None:
        """Tables and definitions follow the log's record and must not fail behind it. Raises 53100."""
        tables = [table for part in record if isinstance(part, TableChange) for table in (part.inserted, part.deleted)]
        size = sum(table.nbytes for table in tables if table is not None)
        require_space(self.options.server_directory, self.tables.space_for(size), "write to the tables")

    def _prepare_views(self, transaction: Transaction) -> None:
        """Static pipelines' results go to storage before the record that makes the view exist."""
        for new in transaction.views:
            self.storage.prepare(new.view.oid, new.program, new.statics)

    def _publish(self, lsn: int, record: TransactionRecord) -> None:
        """Makes a durable record visible; called in LSN order, under the sequencer's lock."""
        transaction = self._committing.pop(lsn, None)  # what is left here by a failed commit is never published
        for part in record:
            if isinstance(part, StreamRows | RowValues | Spooled | FilesArrived):
                self._arrive(lsn, part)
            elif isinstance(part, TableChange):
                self._changed[part.table] = self.tables_lsn = lsn
        if transaction is not None and transaction.write is not None:
            self._publish_tables(lsn, transaction)

    def _arrive(self, lsn: int, part: Arrival) -> None:
        runtime = self.streams.get(part.stream)
        if runtime is None:
            return
        runtime.feed.publish(lsn, part)
        runtime.arrived(lsn, time.monotonic())
        self._changed[part.stream] = lsn

    def _publish_tables(self, lsn: int, transaction: Transaction) -> None:
        write, catalog = transaction.write, transaction.catalog
        assert write is not None
        if catalog is not None:
            for item in catalog.objects.values():
                if isinstance(item, View) and item.created_lsn == 0:
                    catalog = replace(catalog.change(ddl.numbered(item, lsn)), version=catalog.version)
            write.save_catalog(ddl.dump_catalog(catalog))
        write.commit(lsn)
        transaction.write = None
        if catalog is not None:
            self._install(catalog, lsn, transaction.views)

    def _install(self, catalog: Catalog, lsn: int, views: list[NewView]) -> None:
        """A DDL transaction is durable: the catalog, streams and views become what it says."""
        dropped = set(self._catalog.objects) - set(catalog.objects)
        self._catalog = replace(catalog, version=max(catalog.version, self._catalog.version + 1))
        for oid in dropped:
            self._forget(oid)
        for item in catalog.objects.values():
            if isinstance(item, Stream) and item.oid not in self.streams:
                self._open_stream(item)
            if isinstance(item, View) and item.oid in self._views:
                self._views[item.oid].view = item
        for new in views:
            self.storage.create(new.view.oid, lsn)
            self._open_view(replace(new.view, created_lsn=lsn))
        self._refresh_reads()

    def _forget(self, oid: int) -> None:
        if self._views.pop(oid, None) is not None:
            self.storage.drop(oid)
        stream = self.streams.pop(oid, None)
        if stream is not None:
            stream.dropped()
            self.storage.drop_stream(oid)
        self._changed.pop(oid, None)
        self._indexes.pop(oid, None)

    def _open_stream(self, stream: Stream) -> None:
        schema = ddl.schema_of(stream)
        feed: Ring | FileFeed
        if is_followed(stream):
            feed = FileFeed(stream, self.storage.stream_folder(stream.oid) / "files.jsonl")
        else:
            feed = Ring(schema, StreamReader(self.log, stream.oid), self.options.ring_bytes)
        last_lsn = feed.last_lsn if isinstance(feed, FileFeed) else 0
        self.streams[stream.oid] = StreamRuntime(stream, schema, feed, last_lsn)

    def _open_view(self, view: View) -> None:
        stored = self.storage.load(view.oid)
        frontiers = stored.frontiers
        feeds = {oid: self.streams[oid].feed for oid in frontiers}
        runtime = ViewRuntime(
            view,
            stored.program,
            self.engine,
            feeds,
            stored.statics,
            frontiers,
            lambda state: self.storage.read(view.oid, state),
        )
        if stored.error is not None:
            runtime.fail(ViewError(*stored.error))
        runtime.on_fail = lambda failed: self.storage.fail(view.oid, failed.error, failed.lsn)
        self._views[view.oid] = runtime

    # Recovery ---------------------------------------------------------------------------------------------------

    def _recover(self) -> None:
        """Brings tables and catalog to the log's end and refills the rings above the views' durable frontiers."""
        started = time.monotonic()
        self._recover_tables()
        for item in list(self._catalog.objects.values()):
            if isinstance(item, Stream):
                self._open_stream(item)
        for item in list(self._catalog.objects.values()):
            if isinstance(item, View) and item.continuous:
                self.storage.ensure(item.oid, item.created_lsn)
                self._open_view(item)
        self.storage.drop_orphans(set(self._views), set(self.streams))
        self._refresh_reads()
        self._refill()
        if self.log.last_lsn:
            _LOGGER.info("recovered to LSN %d in %.2f s", self.log.last_lsn, time.monotonic() - started)

    def _recover_tables(self) -> None:
        for lsn, record in replay(self.log, self.tables.applied_lsn):
            documents = [part.document for part in record if isinstance(part, CatalogChange)]
            changes = [part for part in record if isinstance(part, TableChange)]
            if not documents and not changes:
                continue
            before = self._catalog
            for document in documents:
                self._catalog = ddl.apply_change(self._catalog, document, lsn)
            self._recover_record(lsn, before, changes, documents)

    def _recover_record(self, lsn: int, before: Catalog, changes: list[TableChange], documents: list[str]) -> None:
        """One record's table changes and DDL, in one table transaction that also notes its LSN."""
        after = self._catalog
        writer = self.tables.begin_write(0.0)
        for oid in set(before.objects) - set(after.objects):
            if isinstance(before.objects[oid], Table):
                writer.drop(oid)
        for oid in set(after.objects) - set(before.objects):
            item = after.objects[oid]
            if isinstance(item, Table):
                writer.create(item)
        self._recover_definitions(writer, before, documents)
        writer.apply([(change.table, change.inserted, change.deleted) for change in changes])
        if documents:
            writer.save_catalog(ddl.dump_catalog(after))
        writer.commit(lsn)

    def _recover_definitions(self, writer: WriteTransaction, before: Catalog, documents: list[str]) -> None:
        """What a record changed of tables that were there before."""
        lasting = set(self._catalog.objects) & set(before.objects)
        changes = [json.loads(document) for document in documents]
        rebuilt = {change["rebuild"] for change in changes if "rebuild" in change}
        for change in changes:
            table = ddl.changed_table(change)
            if table is not None and table.oid in lasting - rebuilt:
                writer.alter(table, tuple(map(tuple, change.get("storage", ()))))
        for oid in rebuilt & lasting:
            final = self._catalog.objects[oid]
            assert isinstance(final, Table)
            writer.drop(oid)
            writer.create(final)

    def _refill(self) -> None:
        """Rings and file lists get what the log holds above the lowest durable frontier of their views."""
        frontiers = {oid: self.durable_lsn(oid, self.log.last_lsn) for oid in self.streams}
        for lsn, record in replay(self.log, min(frontiers.values(), default=self.log.last_lsn)):
            for part in record:
                if isinstance(part, StreamRows | Spooled | FilesArrived) and part.stream in frontiers:
                    self._refill_part(lsn, part, frontiers[part.stream])

    def _refill_part(self, lsn: int, part: Arrival, frontier: int) -> None:
        runtime = self.streams[part.stream]
        if lsn > frontier or isinstance(part, FilesArrived):
            runtime.feed.publish(lsn, part)
            runtime.last_lsn = lsn
            self._changed[part.stream] = lsn

    # Frontiers --------------------------------------------------------------------------------------------------

    def durable_lsn(self, stream: int, otherwise: int) -> int:
        """Up to which LSN nobody needs a stream's rows any more; ``otherwise`` where no view reads it."""
        frontiers = [
            progress.durable
            for runtime in self.views_on(stream)
            if runtime.error is None
            for progress in runtime.paths
            if progress.path.stream == stream
        ]
        return min(frontiers, default=otherwise)

    def _backlog(self, stream: int) -> int:
        """Bytes (as in memory) of a stream's rows that some view still needs."""
        runtime = self.streams.get(stream)
        visible = self.sequencer.visible
        return 0 if runtime is None else runtime.backlog(self.durable_lsn(stream, visible), visible)

    @property
    def is_log_long(self) -> bool:
        """Whether the log has grown beyond the budget: a view that gets a few rows now and then may hold it."""
        return self.log.size > max(self.options.backlog_bytes, 4 * self.options.log_segment_bytes)

    def is_live(self, runtime: ViewRuntime) -> bool:
        """Whether a view was not dropped."""
        return self._views.get(runtime.view.oid) is runtime

    def release(self) -> None:
        """Frees memory and log below what anybody needs."""
        with self.sequencer.lock:
            visible = self.sequencer.visible
            frontiers = {oid: self.durable_lsn(oid, visible) for oid in self.streams}
        lowest = held = min(self.sequencer.durable, visible)
        for oid, upto in frontiers.items():
            stream = self.streams.get(oid)
            if stream is not None and isinstance(stream.feed, FileFeed):
                # Kept beside the log are the files' names, so the log need not wait for the files' rows.
                stream.feed.release(lowest)
            elif stream is not None:
                stream.feed.release(upto)
                held = min(held, upto) if stream.last_lsn > upto else held
        self.log.recycle(held + 1)

    def copies_running(self, change: int) -> None:
        """A COPY into a stream starts (+1) or ends (-1): background work waits meanwhile."""
        with self._copies_lock:  # of its own: the event loop's thread must not wait for a publication
            self._copies += change

    @property
    def is_busy(self) -> bool:
        """Whether rows are being parsed right now."""
        return self._copies > 0

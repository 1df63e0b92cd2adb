"""What exists in one server's database: its catalog, tables, streams and continuous views, its log and its storage.

Owns: the folders and files that these live in, their opening, which streams and views there are, and what reads what.
Opening takes two steps: the files and the tables first, and ``join`` when the streams and views have been recovered.
The services that work on it (``executor/database``) know it; it knows none of them.

Locks are taken in this order: those of transactions (``executor/locks``), a view's, the sequencer's.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Container, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import Sequence, Table, View
from catalog.values.errors import undefined_table
from executor.cluster.logs import place_log, published
from executor.cluster.registry import Registry
from executor.cluster.storage import Storage
from executor.cluster.view_ownership import require_past
from executor.commit.control import Control
from executor.commit.log import Log
from executor.commit.sequencer import Sequencer
from executor.core import consistency, recycled_log
from executor.core.catalog_results import CatalogResults
from executor.core.memory import engine_share
from executor.core.plans import PlanCache
from executor.core.recycled_log import Forgotten
from executor.core.table_recovery import recover_tables
from executor.core.versions import Versions
from executor.definitions import stored_catalog
from executor.embedded.engine import EmbeddedEngine
from executor.options import Options
from executor.rows.row_shapes import schema_of
from executor.streams.runtime import StreamRuntime
from executor.tables.change_trace import TableChanges, TablePart
from executor.tables.sequences import SequenceStore
from executor.tables.store import TableStore
from executor.tables.temporary import TemporaryOids
from executor.traces.budget import TraceBudget
from executor.views.pins import PinnedLsns
from executor.views.runtime import ViewRuntime
from executor.views.storage import ViewStore


class Core:
    """What exists. Methods may be called from any thread."""

    def __init__(self, options: Options, system: Callable[[], Catalog]) -> None:
        """Opens all files and brings the tables to the log's end; ``system`` makes the catalog of the system relations.
        Raises XX001 for files that do not belong together, 55006 where another process has them, 55000 where the server
        was adopted, 58P01, 53100, 58030.
        """
        self.options = options
        self.plans = PlanCache()
        self.catalog_results = CatalogResults()
        directory, spill = options.server_directory, options.spill_directory
        directory.mkdir(parents=True, exist_ok=True)
        left = _spilled(spill)
        # First of all, since no other process can have this file open: the folder is ours alone from here on.
        memory = engine_share(options.memory_limit) if options.memory_limit else 0
        with ThreadPoolExecutor(1) as beside:  # the engine computes what it needs outside of Python
            relations = beside.submit(system)
            self.tables = TableStore.open(directory / "tables.duckdb", spill=spill, memory=memory)
            stored = relations.result()
        with ExitStack() as undoing:
            undoing.callback(self._abandon_tables)
            self._log_lock = place_log(options)
            if self._log_lock is not None:
                undoing.callback(os.close, self._log_lock)
            for path, changed in left.items():  # by a process that died; the tables may have spilled while they opened
                if _spilled(spill).get(path) == changed:
                    path.unlink(missing_ok=True)
            self.control = Control(directory / "control")
            self.log = Log(options.log_directory, options.log_segment_bytes, control=self.control)
            undoing.callback(self.log.close)
            #: What the log has forgotten.
            self.forgotten = recycled_log.read(directory)
            consistency.require_tables(self.log, self.forgotten, self.tables, self.control.log.found is not None)
            self.sequences = SequenceStore(directory / "sequences", self.control)
            self.engine = EmbeddedEngine(options.embedded_threads, spill, memory)
            undoing.callback(self.engine.close)
            #: The folder that servers share.
            self.shared = Storage(options.storage_directory)
            self.storage = ViewStore(options.shared_directory, options.server_id)
            written = stored_catalog.load_documents(self.tables.catalog.whole, self.tables.catalog.changes, stored)
            #: The committed catalog.
            self.catalog = recover_tables(self.tables, self.log, written)
            objects = self.catalog.objects.values()
            self.tables.adopt(item for item in objects if isinstance(item, Table))
            self.sequences.keep(item.state for item in objects if isinstance(item, Sequence))
            self.temporary = TemporaryOids(self.tables)
            self.sequencer = Sequencer(self.log, self.tables.applied_lsn)
            undoing.callback(self.sequencer.close)
            #: The LSN of the last definition, from which on the catalog is what it is now.
            self.catalog_lsn = self.sequencer.visible
            self.tables.backlog.apply_behind(self.sequencer.require_durable)
            own, log = options.server_name, published(options)
            #: The servers that share the storage.
            self.registry = Registry(self.shared, own, options.address, options.server_lease, log=log)
            self._undoing = undoing.pop_all()
        self.streams: dict[int, StreamRuntime] = {}
        self._views: dict[int, ViewRuntime] = {}
        #: Parts of views whose rows are kept once for several, by oid, and which of them a view reads or is to read.
        self.parts: dict[int, ViewRuntime] = {}
        self.parts_read: dict[int, tuple[int, ...]] = {}
        self.versions = Versions()
        #: Of the rows that streams, tables by key and views hold in memory.
        self.trace_budget = TraceBudget(options.trace_memory)
        #: The traces of the tables whose changes are read.
        self._table_changes: dict[int, TableChanges] = {}
        #: LSNs that open snapshots read.
        self.pinned = PinnedLsns()
        #: The LSN of the last change of any table.
        self.tables_lsn = 0
        self._next_oid = 0
        self._oids_lock = threading.Lock()
        self._copies = 0
        self._copies_lock = threading.Lock()
        self._noting = threading.Lock()

    def join(self) -> None:
        """Joins the servers that share the storage, once all streams and views are there; transactions may commit from
        then on. Raises 55000 where the storage has more of this server than its own folder has, or the server was
        adopted, and 55006 where another process has its name."""
        self.sequencer.raise_start(self.storage.highest_lsn())
        if self.control.log.found is None and self.sequencer.visible > self.log.last_lsn:
            self.sequencer.commit(())  # the log goes on behind what others have of it, though its own end is lost
            self.note_forgotten(self._without_end)
        #: How far the log was at the opening: of changes of views before it nothing is known.
        self.opened_lsn = self.sequencer.visible
        require_past(self.shared, self.options.server_name, self.sequencer.visible)
        self.registry.join()

    def _without_end(self, known: Forgotten) -> Forgotten:
        return replace(known, log=max(known.log or 0, self.sequencer.visible))

    def note_forgotten(self, change: Callable[[Forgotten], Forgotten]) -> None:
        """What is noted of what the log has forgotten becomes another one. Raises 53100, 58030."""
        with self._noting:
            noted = change(self.forgotten)
            recycled_log.write(self.options.server_directory, noted)
            self.forgotten = noted

    def abandon(self) -> None:
        """Closes what was opened, and leaves files as they are, but for tables that are new."""
        self._undoing.close()

    def _abandon_tables(self) -> None:
        self.tables.close()
        if self.tables.is_new:
            for path in self.options.server_directory.glob("tables.duckdb*"):
                path.unlink()

    def close(self) -> None:
        """Closes all files; nothing may use them."""
        self.sequencer.close()
        self.log.close()
        if self._log_lock is not None:
            os.close(self._log_lock)
        self.sequences.close()
        with suppress(OSError):  # what it says is less than what there is
            self.control.close()
        self.tables.close()
        self.engine.close()

    def publish_catalog(self, catalog: Catalog, lsn: int) -> None:
        """A transaction that defines is durable at an LSN: this is the committed catalog, in a version above all
        before. The caller has the sequencer's lock."""
        self.catalog_lsn = max(lsn, self.catalog_lsn)  # first: without the lock, it is read after the catalog
        for oid, trace in self._table_changes.items():
            item = catalog.objects.get(oid)
            if not isinstance(item, Table) or schema_of(item) != trace.columns:
                trace.end()
        self.catalog = replace(catalog, version=max(catalog.version, self.catalog.version + 1))

    def change_table(self, lsn: int, part: TablePart) -> None:
        """Rows of a table changed at an LSN. The caller has the sequencer's lock."""
        self.tables_lsn = lsn
        trace = self._table_changes.get(part.table)
        if trace is not None:
            trace.publish(lsn, part)
        self.versions.change(part.table, lsn)

    def rebuild_table(self, oid: int) -> None:
        """A table has all of its rows anew. The caller has the sequencer's lock."""
        trace = self._table_changes.get(oid)
        if trace is not None:
            trace.end()

    def take_oids(self, first: int, count: int) -> int:
        """The first of so many oids that no transaction has taken, open ones included; at least ``first``."""
        with self._oids_lock:
            taken = max(first, self._next_oid)
            self._next_oid = taken + count
            return taken

    # Views -----------------------------------------------------------------------------------------------------------

    def view(self, oid: int) -> ViewRuntime:
        """A continuous view's runtime. Raises 42P01 when it was dropped."""
        runtime = self.find_view(oid)
        if runtime is None:
            raise undefined_table(str(oid))
        return runtime

    def find_view(self, oid: int) -> ViewRuntime | None:
        """A continuous view's runtime, or that of a part that views share; None where there is none."""
        return self._views.get(oid) or self.parts.get(oid)

    def runtimes(self) -> tuple[ViewRuntime, ...]:
        """All continuous views."""
        return tuple(self._views.values())

    def views_on(self, stream: int) -> list[ViewRuntime]:
        """The continuous views that read a stream."""
        return [item for item in self.runtimes() if stream in item.program.inputs]

    def engine_setting(self, view: View) -> str:
        """maintenance_engine of a view, else the server's."""
        return dict(view.options).get("maintenance_engine", self.options.maintenance_engine)

    def stored_runs(self, runtime: ViewRuntime, state: str) -> int:
        """How many runs of a state are on storage."""
        return self.storage.run_count(runtime.view.oid, state)

    def add_view(self, runtime: ViewRuntime) -> None:
        """There is such a continuous view."""
        self._views[runtime.view.oid] = runtime

    def remove_view(self, oid: int) -> bool:
        """There is no such continuous view any more. Whether there was one."""
        runtime = self._views.pop(oid, None)
        if runtime is not None:
            runtime.close()
        return runtime is not None

    def is_live(self, runtime: ViewRuntime) -> bool:
        """Whether a view was not dropped."""
        return self.find_view(runtime.view.oid) is runtime

    def changes_of(self, table: Table) -> TableChanges:
        """The trace of a table as it is defined now, with its changes from now on in memory. Under the sequencer's
        lock."""
        found = self._table_changes.get(table.oid)
        if found is None or not found.is_current:
            found = TableChanges(self.log, self.trace_budget, table, self.sequencer.visible)
            self._table_changes[table.oid] = found
        found.readers += 1
        return found

    def forget_changes(self, trace: TableChanges) -> None:
        """A reader that asked for the trace of a table does not read it any more."""
        with self.sequencer.lock:
            trace.readers -= 1
            if trace.readers:
                return
            if self._table_changes.get(trace.table.oid) is trace:
                del self._table_changes[trace.table.oid]
        trace.close()

    # What reads what -------------------------------------------------------------------------------------------------

    def version_of(self, oids: tuple[int, ...]) -> int:
        """The LSN of the last change of what these relations, and those below them, show."""
        return self.versions.newest(oids)

    def reads_of(self, oid: int) -> tuple[int, ...]:
        """Everything whose change may change what a relation shows, itself included."""
        found = self.versions.reads.get(oid)
        return tuple(self._closure(oid)) if found is None else found  # of a view that is just being created, or no view

    def refresh_reads(self) -> None:
        """For each view, everything whose change may change its result."""
        self.versions.set_reads({oid: tuple(self._closure(oid)) for oid in self._views})

    def _closure(self, oid: int, known: Container[int] = ()) -> Iterator[int]:
        runtime = self._views.get(oid)
        yield oid
        if runtime is None or oid in known:
            return
        final = self.plans.get(runtime.program.final)
        yield from runtime.program.inputs
        yield from final.tables
        for below in final.views:
            yield from self._closure(below, known)

    def views_below(self, oids: tuple[int, ...], known: Container[int] = ()) -> tuple[int, ...]:
        """These continuous views and those that their final relations read, in a fixed order; for the rows of those
        that are ``known`` none below them is read."""
        return tuple(sorted({below for oid in oids for below in self._closure(oid, known) if below in self._views}))

    def views_locked(self, oids: tuple[int, ...], known: Container[int] = ()) -> tuple[int, ...]:
        """``views_below``, and the parts that these share with others, in the order in which their locks are taken."""
        below = self.views_below(oids, known)
        if not self.parts:
            return below
        shared = {part for oid in below for part in self.parts_read.get(oid, ())}
        return (*below, *sorted(shared.union(oids) & self.parts.keys()))

    def views_read(self, oids: tuple[int, ...]) -> tuple[int, ...]:
        """Of ``views_below`` those that are read for their rows: none for one that another server maintains."""
        below = self.views_below(oids)
        away = {oid for oid in below if self.view(oid).away is not None}
        return self.views_below(oids, away) if away else below

    def tables_beside(self, oid: int) -> tuple[int, ...]:
        """Tables that a view's final relation reads beside the view's own states."""
        return self.plans.get(self.view(oid).program.final).tables

    def tables_of_view(self, oid: int) -> tuple[int, ...]:
        """Tables that the final relations of a view, and of those below it, read."""
        return tuple(sorted({table for below in self.views_below((oid,)) for table in self.tables_beside(below)}))

    def version_beside(self, oid: int) -> int:
        """The LSN of the last change of what a view's final relation reads beside the view's own states."""
        final = self.plans.get(self.view(oid).program.final)
        return self.version_of((*final.tables, *final.views))

    # Load ------------------------------------------------------------------------------------------------------------

    def copies_running(self, change: int) -> None:
        """A COPY into a stream starts (+1) or ends (-1): background work waits meanwhile."""
        with self._copies_lock:  # of its own: the event loop's thread must not wait for a publication
            self._copies += change

    @property
    def is_busy(self) -> bool:
        """Whether rows are being parsed right now."""
        return self._copies > 0


def _spilled(folder: Path) -> dict[Path, int]:
    """The files of a folder, if there is one, each with its last change."""
    found = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        with suppress(FileNotFoundError):  # another process that has the folder needs it no more
            found[path] = path.stat().st_mtime_ns
    return found

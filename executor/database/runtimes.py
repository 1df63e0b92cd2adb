"""The run-time state of streams and continuous views: made at a start for what the catalog has, and when a transaction
creates them; removed when one drops them.

Owns: which files and which entry among servers each runtime begins with. Knows nothing of how a transaction commits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import Stream, View
from catalog.values.errors import SqlError
from executor.cluster.view_ownership import read_owned
from executor.commit.recovery import StreamReader
from executor.core.core import Core
from executor.core.past_tables import PastTables
from executor.files.arrived_files import FileFeed
from executor.key_access.view_indexes import ViewIndexes
from executor.moving.view_placement import is_at_home, place_view, staged_entry
from executor.replicas.replica import Replicas
from executor.streams.runtime import Arrival, StreamRuntime, is_followed
from executor.subscriptions.feeds import ChangeFeeds
from executor.traces.later_rows import LaterRows
from executor.traces.layout import Layout, home_of
from executor.traces.ring import Ring
from executor.traces.trace import InputTrace
from executor.transactions.transaction import NewView
from executor.views.definition import Definition
from executor.views.failure import ViewError
from executor.views.runtime import ContentMemory, ViewRuntime
from executor.views.storage import StoredView
from planner.incremental.programs.program import Program


class Runtimes:
    """The streams and views of one database. After the start the caller of each method has the sequencer's lock."""

    def __init__(self, core: Core, replicas: Replicas, indexes: ViewIndexes, changes: ChangeFeeds) -> None:
        self._core, self._replicas = core, replicas
        self._indexes, self._changes = indexes, changes
        self._listeners: list[Callable[[], None]] = []

    def on_defined(self, listener: Callable[[], None]) -> None:
        """``listener`` is called whenever the catalog is another one; it must not fail."""
        self._listeners.append(listener)

    def alter_streams(self, catalog: Catalog) -> None:
        """Streams are as a catalog defines them, before rows of the new columns come."""
        for oid, runtime in self._core.streams.items():
            if isinstance(item := catalog.objects.get(oid), Stream):
                runtime.alter(item)

    def arrive(self, lsn: int, part: Arrival) -> bool:
        """Rows of a stream are visible; False where there is no such stream."""
        runtime = self._core.streams.get(part.stream)
        if runtime is None:
            return False
        runtime.feed.publish(lsn, part)
        runtime.arrived(lsn, time.monotonic())
        self._core.versions.change(part.stream, lsn)
        return True

    def install(self, catalog: Catalog, lsn: int, views: list[NewView]) -> None:
        """Applies a durable DDL transaction to streams, views and the catalog. Binding against a catalog finds the
        runtimes that it names: new ones are added before it is published, dropped ones are removed after it.
        """
        dropped = set(self._core.catalog.objects) - set(catalog.objects)
        for item in catalog.objects.values():
            if isinstance(item, Stream):
                if item.oid not in self._core.streams:
                    self.open_stream(item)
                self._keep(item)
            if isinstance(item, View) and (runtime := self._core.find_view(item.oid)) is not None:
                self._alter(runtime, item, lsn)
        for new in views:
            view = catalog.objects[new.view.oid]
            assert isinstance(view, View)
            if view.continuous:
                begun = replace(view, created_lsn=lsn)
                self._core.storage.create(begun)
                self.open_view(begun, self._core.storage.load(view.oid))
        plain = [oid for oid, item in catalog.objects.items() if isinstance(item, View) and not item.continuous]
        self._core.publish_catalog(catalog, lsn)
        for oid in plain:
            if self._core.find_view(oid) is not None:  # it was a continuous one before
                self._forget(oid)
        for oid in dropped:
            self._forget(oid)
        self._core.refresh_reads()
        for listener in self._listeners:
            listener()

    def _alter(self, runtime: ViewRuntime, view: View, lsn: int) -> None:
        """A view is defined otherwise. With another program, what is cached of its rows is of no use."""
        if view.program == runtime.view.program:
            runtime.alter(view)
            return
        runtime.replan(view, self._core.storage.change_program(view))
        self._indexes.forget(view.oid)
        self._core.versions.change(view.oid, lsn)

    def recover_history(self, stream: Stream) -> None:
        """The rows that a stream has kept are there again."""
        if stream.keeps_rows:
            forgotten = self._core.forgotten.streams.get(stream.oid, 0)
            self._core.streams[stream.oid].keep(self._core.storage.open_history(stream, forgotten))
        else:
            self._core.storage.drop_history(stream.oid)

    def _keep(self, stream: Stream) -> None:
        """A stream's history begins or ends, where its definition says so."""
        runtime = self._core.streams[stream.oid]
        known = runtime.history
        if stream.keeps_rows and (known is None or known.since != stream.kept_since):
            runtime.keep(self._core.storage.begin_history(stream))
        elif known is not None and not stream.keeps_rows:
            runtime.keep(None)

    def _forget(self, oid: int) -> None:
        if self._core.remove_view(oid):
            self._core.storage.drop(oid)
        stream = self._core.streams.pop(oid, None)
        if stream is not None:
            stream.dropped()
            self._core.storage.drop_stream(oid)
            self._replicas.forget(oid)
        self._core.versions.forget(oid)
        self._indexes.forget(oid)
        self._changes.forget(oid)

    def open_stream(self, stream: Stream) -> None:
        """A stream is there."""
        feed: Ring | FileFeed
        layout = Layout.of(stream)
        if is_followed(stream):
            store, converted = (
                self._core.storage.names_of_files(stream.oid),
                self._core.storage.converted_files(stream.oid),
            )
            feed = FileFeed(stream, store, converted, self._core.forgotten.names.get(stream.oid))
        else:
            feed = Ring(layout, StreamReader(self._core.log, stream.oid), self._core.trace_budget)
        last_lsn = feed.last_lsn if isinstance(feed, FileFeed) else 0
        if home_of(stream):
            self._replicas.open(stream)
        self._core.streams[stream.oid] = StreamRuntime(stream, layout.shown, feed, last_lsn)

    def _stream(self, oid: int) -> Stream | None:
        found = self._core.streams.get(oid)
        return None if found is None else found.stream

    def open_view(self, view: View, stored: StoredView) -> None:
        """A view is there. Raises XX001 where a run is damaged."""
        inputs = {oid: self._core.streams[oid].feed for oid in stored.program.inputs}

        def keep(failed: ViewError | None) -> None:
            self._core.storage.fail(view.oid, failed)

        core, memory = self._core, ContentMemory(self._core.trace_budget, partial(self._core.storage.content, view.oid))
        beside = (core.pinned, keep, memory, self._stream, partial(self._past, view))
        about = (
            core.engine,
            _begun(inputs, view, stored.program),
            stored.statics,
            stored.frontiers,
            stored.read,
            *beside,
        )
        runtime = ViewRuntime(view, stored.program, *about)
        if stored.error is not None:
            runtime.fail(stored.error, is_kept=True)
        for oid, feed in inputs.items():
            damage = feed.damage if isinstance(feed, FileFeed) else self._damage(view, oid, stored)
            if damage is not None:
                runtime.fail(ViewError(damage, 0), is_kept=True)
        runtime.location.name(stored.shared)
        runtime.location.arrive(stored.handover)
        try:
            owned = read_owned(self._core.shared, runtime.shared) if runtime.shared else None
            if owned is not None and owned.home != self._core.options.server_name and is_at_home(self._core, runtime):
                after = staged_entry(self._core.shared, owned)
                runtime.location.hold(None if after is None else after.at)
        except SqlError as error:
            if error.sqlstate != "XX001":
                raise
            # Its server is unknown: until it is known, another server may need the rows after its states.
            owned = None
            runtime.location.hold(min(stored.frontiers.values()))
            runtime.fail(ViewError(error, 0), is_kept=True)
        if owned is not None and owned.home == self._core.options.server_name:
            place_view(self._core, self._indexes, runtime, owned)
        self._core.add_view(runtime)

    def _past(self, view: View, definition: Definition) -> PastTables:
        """The tables that rows meet as of their own LSNs."""
        return PastTables(
            self._core, lambda: definition.program.arrival_statics, view.time_zone, since=view.created_lsn
        )

    def _damage(self, view: View, stream: int, stored: StoredView) -> SqlError | None:
        """Why a view cannot have the rows of before its creation that it still lacks."""
        history = self._core.streams[stream].history
        lacks = stored.inputs[stream] < view.created_lsn
        return history.damage if history is not None and lacks else None


def _begun(inputs: Mapping[int, InputTrace], view: View, program: Program) -> Mapping[int, InputTrace]:
    """The inputs of a view from where each begins, if a path reads several that begin at different LSNs."""
    if not view.files_since or all(len(path.inputs) == 1 for path in program.paths):
        return inputs
    return {oid: LaterRows(trace, view.since(oid)) for oid, trace in inputs.items()}

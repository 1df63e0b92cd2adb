"""Reads the states with which a view continues, and rebuilds states that are damaged.

Owns: from what they are rebuilt, the least work first. A state is the view's query over its streams' rows since its
creation. So older states that are intact will do, together with the later rows in the home's log: the previous copy,
then the states that the home has kept since the view left it, and last the empty states of the view's creation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from catalog.objects import View
from catalog.values.errors import SqlError
from executor.cluster.view_ownership import Owned
from executor.commit.records import FilesArrived
from executor.core.core import Core
from executor.embedded.engine import EmbeddedEngine
from executor.moving import view_artifact as artifact
from executor.moving.view_artifact import ExportedView
from executor.replicas.replica import arrived_in, logged_rows, streams_of
from executor.views.runtime import ViewRuntime
from executor.views.storage import StoredView
from planner.incremental.programs.labels import with_labels
from planner.incremental.programs.program import State

#: SQLSTATEs after which the next older states are tried.
_NO_WAY: Final = ("XX001", "72000", "58P01")
#: A view with older states, and by stream the LSN of its home up to which they have its rows.
_Older = tuple[ExportedView, Mapping[int, int]]
#: A view's states, by name.
States = Mapping[str, pa.Table]

_LOGGER = logging.getLogger(__name__)


def read_states(core: Core, owned: Owned, runtime: ViewRuntime | None, damaged: set[str]) -> ExportedView:
    """The view that an entry's artifact has, at the LSN of the entry; ``runtime`` where this server is its home. The
    handover of a damaged artifact is added to ``damaged``. Raises XX001 where the states cannot be rebuilt, 53100,
    58030."""
    try:
        return artifact.read(core.shared.folder, owned)
    except SqlError as error:
        if error.sqlstate != "XX001":
            raise
        failure = error
        damaged.add(owned.handover)
    for what, find in _ways(core, owned, runtime):
        try:
            older, starts = find()
            if max(starts.values()) > owned.at:  # its home maintained it until it knew that it had left
                raise SqlError("XX001", f"it is at LSN {max(starts.values())}, expected LSN {owned.at}")
            found = replay_log(core, owned.home, older, starts, owned.at)
        except SqlError as error:
            if error.sqlstate not in _NO_WAY:
                raise
            _LOGGER.info("view %s cannot be rebuilt from %s: %s", owned.view, what, error.message)
        else:
            _LOGGER.warning("%s: it is rebuilt from %s and the log", failure.message, what)
            return found
    raise failure


def _ways(core: Core, owned: Owned, runtime: ViewRuntime | None) -> Iterator[tuple[str, Callable[[], _Older]]]:
    if owned.older:
        before = replace(owned, handover=owned.older)
        yield "the previous copy", partial(_copied, core, before)
    if runtime is not None:
        view, storage = runtime.view, core.storage
        yield "its state when it left", lambda: _own(core, view, *_left(core, view))
        yield "its creation", lambda: _own(core, view, *_begun(core, storage.begun(view)))


def _copied(core: Core, owned: Owned) -> _Older:
    found = artifact.read(core.shared.folder, owned, is_older=True)
    return found, {stream.oid: found.at for stream in found.streams}


def _left(core: Core, view: View) -> tuple[StoredView, States]:
    """The stored states of a view that has left this server, all of one commit: a job may still end meanwhile. Raises
    XX001, also where the view began with states that these do not contain, since its files were damaged and made
    anew."""
    stored, states = core.storage.taken(view.oid, core.engine)
    if core.storage.has_come(view.oid) and not stored.handover:
        raise SqlError("XX001", "its initial states are missing")
    return stored, states


def _begun(core: Core, stored: StoredView) -> tuple[StoredView, States]:
    """The states with which a view began."""
    return stored, {state.name: core.engine.merge(state, stored.read(state)) for state in stored.program.states}


def _own(core: Core, view: View, stored: StoredView, states: States) -> _Older:
    """A view with states that its home has stored."""
    program = with_labels(stored.program, view.labels) if view.labels else stored.program
    at, streams = min(stored.frontiers.values()), streams_of(core, program)
    arrived = arrived_in(core, streams, stored.inputs)
    return ExportedView(view, streams, "", (), at, program, states, stored.statics, arrived), stored.inputs


class _Rows(Struct, frozen=True):
    """The rows of a stream as an input that has nothing else, at LSN 1."""

    table: pa.Table

    @property
    def total_rows(self) -> int:
        return int(self.table.num_rows)

    def rows(self, after: int, upto: int) -> int:
        return self.total_rows

    def cut(self, after: int, upto: int) -> int:
        return upto

    def delta(self, after: int, upto: int, places: bool = True) -> pa.Table:
        return self.table

    def publish(self, lsn: int, part: object) -> int:
        raise AssertionError("no rows come")

    def release(self, upto: int) -> None:
        pass

    def check(self) -> None:
        pass


def replay_log(core: Core, home: str, leaving: ExportedView, starts: Mapping[int, int], upto: int) -> ExportedView:
    """A view at a later LSN of its home, computed from the home's log; ``starts`` has by stream the LSN up to which its
    states have the rows. Raises the error that rows make the view's value, and what ``logged_rows`` raises."""
    found = leaving
    for stream in leaving.streams:  # whose paths are independent of each other
        files: list[FilesArrived] = []
        for rows, named in logged_rows(core, home, stream, starts[stream.oid], upto):
            files += named
            if rows.num_rows:
                found = replace(found, states=_after(core.engine, found, stream.oid, rows))
        if files:
            arrived = {stream.oid: found.arrived[stream.oid].and_then(files)}
            found = replace(found, arrived={**found.arrived, **arrived})
    return replace(found, at=upto)


def _after(engine: EmbeddedEngine, leaving: ExportedView, stream: int, rows: pa.Table) -> dict[str, pa.Table]:
    """A view's states after more rows of a stream."""
    program = leaving.program
    frontiers = {path.id: 0 for path in program.paths}
    feeds = {oid: _Rows(rows if oid == stream else rows.slice(0, 0)) for oid in program.inputs}

    def load(state: State) -> list[pa.Table]:
        return [leaving.states[state.name]] if state.name in leaving.states else []

    runtime = ViewRuntime(leaving.view, program, engine, feeds, leaving.statics, frontiers, load)
    runtime.advance(1)
    return {name: state.snapshot() for name, state in runtime.states.items()}

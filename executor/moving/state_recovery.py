"""The states with which a view goes on, also where those that were left for it are not what was written.

Owns: what is tried instead, the least work first. A state is the view's query over its streams' rows since its
creation, so each older one that is intact will do, together with the rows behind it, as long as the home's log has them
all: the copy before, what the home itself has kept since the view left it, and last the empty states of its beginning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from catalog.objects import View
from catalog.values.errors import SqlError
from executor.cluster.view_ownership import Owned
from executor.core.core import Core
from executor.moving import view_artifact as artifact
from executor.moving.log_replay import brought
from executor.moving.view_artifact import LeavingView
from executor.replicas.replica import arrived_in, streams_of
from executor.views.runtime import ViewRuntime
from executor.views.storage import StoredView
from planner.incremental.programs.labels import with_labels

#: What says only that one of the ways does not lead there.
_NO_WAY: Final = ("XX001", "72000", "58P01")
#: A view, and up to where in its home's log its states have the rows of each of its streams.
_Older = tuple[LeavingView, Mapping[int, int]]
#: A view's states, by name.
States = Mapping[str, pa.Table]

_LOGGER = logging.getLogger(__name__)


def read(core: Core, owned: Owned, runtime: ViewRuntime | None, damaged: set[str]) -> LeavingView:
    """What a view has left, at the LSN of its entry; ``runtime`` where this server is its home. What is damaged is
    noted. Raises XX001 where nothing leads there, 53100, 58030."""
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
            found = brought(core, owned.home, older, starts, owned.at)
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
        yield "its creation", lambda: _own(core, view, *_begun(core, storage.begun(view.oid, view.created_lsn)))


def _copied(core: Core, owned: Owned) -> _Older:
    found = artifact.read(core.shared.folder, owned, is_older=True)
    return found, {stream.oid: found.at for stream in found.streams}


def _left(core: Core, view: View) -> tuple[StoredView, States]:
    """What is stored of a view that has left, all of one commit: a job that began before may end while this looks.
    Raises XX001, also where it began with states that are not among that, since its files were damaged and made
    anew."""
    stored, states = core.storage.taken(view.oid, core.engine)
    if core.storage.has_come(view.oid) and not stored.handover:
        raise SqlError("XX001", "its initial states are missing")
    return stored, states


def _begun(core: Core, stored: StoredView) -> tuple[StoredView, States]:
    """What a view began with."""
    return stored, {state.name: core.engine.merge(state, stored.read(state)) for state in stored.program.states}


def _own(core: Core, view: View, stored: StoredView, states: States) -> _Older:
    """A view with what its home has of it."""
    program = with_labels(stored.program, view.labels) if view.labels else stored.program
    at, streams = min(stored.frontiers.values()), streams_of(core, program)
    arrived = arrived_in(core, streams, stored.inputs)
    return LeavingView(view, streams, "", (), at, program, states, stored.statics, arrived), stored.inputs

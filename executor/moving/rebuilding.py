"""The states with which a view goes on, also where those that were left for it are not what was written.

Owns: what is tried instead, the least work first. A state is the view's query over its streams' rows since its
creation, so each older one that is intact will do, together with the rows behind it, as long as the home's log has them
all: the copy before, what the home itself has kept since the view left it, and last the empty states of its beginning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from catalog.errors import SqlError
from catalog.objects import View
from executor.moving import artifact, entering
from executor.moving.artifact import LeavingView
from executor.moving.ownership import Owned
from executor.moving.replica import streams_of
from executor.views.runtime import ViewRuntime
from executor.views.storage import StoredView
from planner.labels import with_labels

if TYPE_CHECKING:
    from executor.database import Database

#: What says only that one of the ways does not lead there.
_NO_WAY: Final = ("XX001", "72000", "58P01")
#: A view, and up to where in its home's log its states have the rows of each of its streams.
_Older = tuple[LeavingView, Mapping[int, int]]

_LOGGER = logging.getLogger(__name__)


def read(database: Database, owned: Owned, runtime: ViewRuntime | None) -> LeavingView:
    """What a view has left, at the LSN of its entry; ``runtime`` where this server is its home. Raises XX001 where
    nothing leads there, 53100, 58030."""
    try:
        return artifact.read(database.shared.folder, owned)
    except SqlError as error:
        if error.sqlstate != "XX001":
            raise
        damaged = error
        database.view_moving.checkpoints.damaged.add(owned.handover)
    for what, find in _ways(database, owned, runtime):
        try:
            older, starts = find()
            found = entering.brought(database, owned.home, older, starts, owned.at)
        except SqlError as error:
            if error.sqlstate not in _NO_WAY:
                raise
            _LOGGER.info("view %s cannot be rebuilt from %s: %s", owned.view, what, error.message)
        else:
            _LOGGER.warning("%s: it is rebuilt from %s and the log", damaged.message, what)
            return found
    raise damaged


def _ways(database: Database, owned: Owned, runtime: ViewRuntime | None) -> Iterator[tuple[str, Callable[[], _Older]]]:
    if owned.older:
        before = replace(owned, handover=owned.older)
        yield "the copy before", partial(_copied, database, before)
    if runtime is not None:
        view, storage = runtime.view, database.storage
        yield "what it had when it left", lambda: _own(database, view, storage.load(view.oid))
        yield "its creation", lambda: _own(database, view, storage.begun(view.oid, view.created_lsn))


def _copied(database: Database, owned: Owned) -> _Older:
    found = artifact.read(database.shared.folder, owned, is_older=True)
    return found, {stream.oid: found.at for stream in found.streams}


def _own(database: Database, view: View, stored: StoredView) -> _Older:
    """A view with what its home has of it."""
    program = with_labels(stored.program, view.labels) if view.labels else stored.program
    states = {state.name: database.engine.merge(state, stored.read(state)) for state in program.states}
    at = min(stored.frontiers.values())
    return LeavingView(view, streams_of(database, program), "", at, program, states, stored.statics), stored.frontiers

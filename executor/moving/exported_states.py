"""A continuous view's states as they leave this server: all at one LSN of the view's home.

Owns: whose states these are. A view that reads others takes theirs along (``planner/incremental/programs/inlining``);
of one of those that is on another server they are its last copy's on the storage, and what has come behind that in this
server's log.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import pyarrow as pa
from msgspec import Struct

from catalog.catalog import Catalog
from catalog.objects import Stream, View
from catalog.values.errors import SqlError
from executor.cluster.view_ownership import Owned, read_owned
from executor.core.core import Core
from executor.files.arrived_files import ArrivedFiles
from executor.moving import guests as entering
from executor.moving import state_recovery as rebuilding
from executor.moving import view_artifact as artifact
from executor.moving.log_replay import brought
from executor.moving.movability import as_leaving, views_below
from executor.moving.view_artifact import LeavingView
from executor.replicas import enums
from executor.replicas.replica import Replicas, arrived_in, as_at_home, replica_of, streams_of
from executor.views.runtime import ViewRuntime
from planner.incremental.programs.inlining import names_below
from planner.incremental.programs.retargeting import retargeted

#: How often it is tried to read views that go and come meanwhile.
_ATTEMPTS: Final = 5
#: What says that they may have.
_MOVING: Final = ("55000", "72000", "XX001")
#: Seconds for which this server may not show yet what others have of its log, and between two looks.
_PATIENCE: Final = 5.0
_WAIT: Final = 0.01

States = dict[str, pa.Table]


class _Elsewhere(Struct, frozen=True):
    """A view that another server maintains, and its entry."""

    runtime: ViewRuntime
    owned: Owned


def current(core: Core, runtimes: Sequence[ViewRuntime], least: int = 0) -> tuple[States, int, tuple[int, ...]]:
    """The states of some views, this server's LSN, from ``least`` on, of which they all are, and the contents'
    versions. Raises 55000 where one is on another server, and an error that is a view's value."""
    deadline = time.monotonic() + _PATIENCE
    while core.sequencer.visible < least:
        if time.monotonic() > deadline:
            raise SqlError("55000", f"this server does not show the rows of its log up to LSN {least} yet")
        time.sleep(_WAIT)
    with contextlib.ExitStack() as stack:
        for runtime in sorted(runtimes, key=lambda item: item.view.oid):  # as readers lock them
            stack.enter_context(runtime.lock)
        with core.sequencer.lock:
            lsn = core.sequencer.visible
        states: States = {}
        for runtime in runtimes:
            runtime.advance(lsn)
            states |= {name: state.snapshot() for name, state in runtime.states.items()}
        return states, lsn, tuple(runtime.version for runtime in runtimes)


def taken_out(core: Core, replicas: Replicas, runtime: ViewRuntime) -> tuple[LeavingView, object]:
    """A view's states, all at one LSN of its home, and the content's version. The home keeps what comes behind it: more
    than that until the entry says so (``place``)."""
    replica = replica_of(replicas, runtime)
    if replica is None:
        return _of_own(core, runtime)
    view, program, streams = runtime.view, runtime.program, streams_of(core, runtime.program)
    with replica.lock:
        replica.catch_up()
        replica.note()
        states, _, version = current(core, (runtime,))
        at = replica.position
    core.sequencer.flush().wait()  # no other server may have rows that this server could still lose
    roles = _roles_of(core, view, streams)
    there = {stream.oid: as_at_home(stream) for stream in streams}
    oids = {oid: stream.oid for oid, stream in there.items()}
    arrived = {oids[oid]: files for oid, files in _arrived(core, streams, at).items()}
    view = entering.over(view, oids, enums.at_home)
    program = retargeted(program, oids, f"v{view.oid}")
    return LeavingView(
        view, tuple(there.values()), *roles, at, program, states, runtime.runner.statics, arrived
    ), version


def _of_own(core: Core, runtime: ViewRuntime) -> tuple[LeavingView, object]:
    """The states of a view that is at its home."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return _of_own_now(core, runtime)
        except SqlError as error:
            if error.sqlstate not in _MOVING:
                raise
    return _of_own_now(core, runtime)


def _of_own_now(core: Core, runtime: ViewRuntime) -> tuple[LeavingView, object]:
    """The states of a view at its home, unless a view that it reads migrates meanwhile."""
    below = views_below(core, runtime)
    elsewhere = [_Elsewhere(item, _entry(core, item)) for item in below if item.away is not None]
    away = tuple(item.runtime.view.oid for item in elsewhere)
    here = [runtime, *(item for item in below if item.view.oid not in away)]
    with core.sequencer.lock:
        changed = core.version_of(away)  # first: what comes from now on may be in the states or not
    states, at, versions = current(core, here, max((item.owned.at for item in elsewhere), default=0))
    core.sequencer.flush().wait()  # no other server may have rows that this server could still lose
    for item in elsewhere:
        states |= _fetched(core, item, at)
    statics = dict(runtime.runner.statics)
    for each in below:
        names = names_below(each.program, f"v{runtime.view.oid}", each.view.oid)
        states = {names.get(name, name): rows for name, rows in states.items()}
        statics |= {names[name]: rows for name, rows in each.runner.statics.items()}
    program = as_leaving(core, runtime)
    streams = streams_of(core, program)
    about = runtime.view, streams, *_roles_of(core, runtime.view, streams)
    leaving = LeavingView(*about, at, program, states, statics, _arrived(core, streams, at))
    return leaving, (versions, away, changed)


def _entry(core: Core, runtime: ViewRuntime) -> Owned:
    """That of a view that is elsewhere. Raises 55000 where it has none any more, and the error that is its value."""
    owned = read_owned(core.shared, runtime.shared)
    if owned is None:
        raise SqlError("55000", f'view "{runtime.view.name}" was dropped meanwhile')
    if owned.failure is not None:
        raise SqlError(*owned.failure)
    return owned


def _fetched(core: Core, item: _Elsewhere, at: int) -> Mapping[str, pa.Table]:
    """The states of a view of this server's that is elsewhere, at an LSN of this one."""
    runtime, owned = item.runtime, item.owned
    found = rebuilding.read(core, owned, runtime, set())
    states = artifact.as_handover(owned, found, runtime.view.oid, runtime.program).states
    view, program, streams = runtime.view, runtime.program, streams_of(core, runtime.program)
    arrived = _arrived(core, streams, owned.at)
    own = LeavingView(view, streams, "", (), owned.at, program, states, runtime.runner.statics, arrived)
    starts = {stream.oid: owned.at for stream in streams}
    return brought(core, core.options.server_name, own, starts, min(at, core.log.last_lsn)).states


def stored_out(core: Core, replicas: Replicas, runtime: ViewRuntime, since: int = 0) -> tuple[LeavingView, object]:
    """The states of a view that is at its home, as its last commits left them, at an LSN from ``since`` on, from where
    the log is kept; and these commits' frontiers. Unlike the others these are not made for the copy, and readers of the
    view do not wait; but where the paths were not committed up to one such LSN they are ``taken_out``, as are those of
    a view that reads others."""
    if views_below(core, runtime):
        return taken_out(core, replicas, runtime)
    view, streams = runtime.view, streams_of(core, runtime.program)
    stored, states = core.storage.taken(view.oid, core.engine)
    with core.sequencer.lock:
        visible = core.sequencer.visible
        last = {stream.oid: core.streams[stream.oid].last_lsn for stream in streams}
    core.sequencer.flush().wait()
    at = _at(stored.inputs, last, visible)
    if at is None or at < since:
        return taken_out(core, replicas, runtime)
    program = as_leaving(core, runtime)
    arrived = _arrived(core, streams, at)
    leaving = LeavingView(view, streams, *_roles_of(core, view, streams), at, program, states, stored.statics, arrived)
    return leaving, stored.inputs


def _arrived(core: Core, streams: Iterable[Stream], at: int) -> Mapping[int, ArrivedFiles]:
    """The files that have arrived in streams that follow a folder, up to an LSN of their home."""
    return arrived_in(core, streams, {stream.oid: at for stream in streams})


def _at(frontiers: Mapping[int, int], last: Mapping[int, int], visible: int) -> int | None:
    """The one LSN of states that have each stream's rows up to its frontier, if there is one; ``last`` are the streams'
    last rows, where these are behind their frontiers. Where none have come the log need not be kept for them."""
    late = [frontier for oid, frontier in frontiers.items() if last[oid] > frontier]
    if not late:
        return visible
    at = max(frontiers.values())
    return at if min(late) == at else None


def _roles_of(core: Core, view: View, streams: Iterable[Stream]) -> tuple[str, tuple[str, ...]]:
    catalog = core.catalog
    return role_of(catalog, view.oid), tuple(role_of(catalog, stream.oid) for stream in streams)


def role_of(catalog: Catalog, oid: int) -> str:
    """The name of an object's owner."""
    owner = catalog.rights_of(oid).owner
    return next((item.name for item in catalog.roles.items if item.oid == owner), "")

"""The states of a continuous view for export, all at one LSN of the view's home.

Owns: which states these are. A view that reads other views takes their states along
(``planner/incremental/programs/inlining``). Those of a view that another server maintains come from its last copy on
the storage, and the rows since then from this server's log.
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
from executor.moving import guests, state_recovery
from executor.moving import view_artifact as artifact
from executor.moving.movability import as_leaving, views_below
from executor.moving.state_recovery import replay_log
from executor.moving.view_artifact import ExportedView
from executor.replicas import enums
from executor.replicas.replica import Replicas, arrived_in, as_at_home, replica_of, streams_of
from executor.views.runtime import ViewRuntime
from planner.incremental.programs.inlining import names_below
from planner.incremental.programs.retargeting import retargeted

#: Attempts to read the states of views while they move.
_ATTEMPTS: Final = 5
#: SQLSTATEs that a view raises which has moved meanwhile.
_MOVING: Final = ("55000", "72000", "XX001")
#: Seconds until this server must show records that others have read from its log, and between two looks.
_PATIENCE: Final = 5.0
_WAIT: Final = 0.01

States = dict[str, pa.Table]


class _Elsewhere(Struct, frozen=True):
    """A view that another server maintains, and its entry."""

    runtime: ViewRuntime
    owned: Owned


def states_at_one_lsn(
    core: Core, runtimes: Sequence[ViewRuntime], least: int = 0
) -> tuple[tuple[States, ...], int, tuple[int, ...]]:
    """The states of each of some views, the LSN of this server that all of them are at (``least`` or later), and the
    versions of their contents. Raises 55000 where another server maintains one of them, and the error that is a view's
    value."""
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
        for runtime in runtimes:
            runtime.advance(lsn)
        states = tuple({name: state.snapshot() for name, state in runtime.states.items()} for runtime in runtimes)
        return states, lsn, tuple(runtime.version for runtime in runtimes)


def export_states(core: Core, replicas: Replicas, runtime: ViewRuntime) -> tuple[ExportedView, object]:
    """A view with its present states, all at one LSN of its home, and the version of their content. The home's log
    keeps the records after them at least until the entry names them."""
    replica = replica_of(replicas, runtime)
    if replica is None:
        return _of_own(core, runtime)
    view, program, streams = runtime.view, runtime.program, streams_of(core, runtime.program)
    with replica.lock:
        replica.catch_up()
        replica.note()
        (states,), _, version = states_at_one_lsn(core, (runtime,))
        at = replica.position
    core.sequencer.flush().wait()  # no other server may have rows that this server could still lose
    roles = _roles_of(core, view, streams)
    there = {stream.oid: as_at_home(stream) for stream in streams}
    oids = {oid: stream.oid for oid, stream in there.items()}
    arrived = {oids[oid]: files for oid, files in _arrived(core, streams, at).items()}
    view = guests.over_streams(view, oids, enums.at_home)
    program = retargeted(program, oids)
    return ExportedView(
        view, tuple(there.values()), *roles, at, program, states, runtime.runner.statics, arrived
    ), version


def _of_own(core: Core, runtime: ViewRuntime) -> tuple[ExportedView, object]:
    """The states of a view that is at its home; tried again while a view that it reads moves."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return _of_own_now(core, runtime)
        except SqlError as error:
            if error.sqlstate not in _MOVING:
                raise
    return _of_own_now(core, runtime)


def _of_own_now(core: Core, runtime: ViewRuntime) -> tuple[ExportedView, object]:
    """The states of a view that is at its home. Raises 55000, 72000 or XX001 where a view that it reads moves
    meanwhile."""
    below = views_below(core, runtime)
    elsewhere = [_Elsewhere(item, _entry(core, item)) for item in below if item.away is not None]
    away = tuple(item.runtime.view.oid for item in elsewhere)
    here = [runtime, *(item for item in below if item.view.oid not in away)]
    with core.sequencer.lock:
        changed = core.version_of(away)  # first: what comes from now on may be in the states or not
    least = max((item.owned.at for item in elsewhere), default=0)
    (states, *others), at, versions = states_at_one_lsn(core, here, least)
    core.sequencer.flush().wait()  # no other server may have rows that this server could still lose
    found: dict[int, Mapping[str, pa.Table]] = {item.view.oid: own for item, own in zip(here[1:], others, strict=True)}
    found |= {item.runtime.view.oid: _fetched(core, item, at) for item in elsewhere}
    statics = dict(runtime.runner.statics)
    for each in below:
        names = names_below(each.program, each.view.oid)
        states |= {names[name]: rows for name, rows in found[each.view.oid].items()}
        statics |= {names[name]: rows for name, rows in each.runner.statics.items()}
    program = as_leaving(core, runtime)
    streams = streams_of(core, program)
    about = runtime.view, streams, *_roles_of(core, runtime.view, streams)
    leaving = ExportedView(*about, at, program, states, statics, _arrived(core, streams, at))
    return leaving, (versions, away, changed)


def _entry(core: Core, runtime: ViewRuntime) -> Owned:
    """The entry of a view that another server maintains. Raises 55000 where it has none any more, and the error that is
    its value."""
    owned = read_owned(core.shared, runtime.shared)
    if owned is None:
        raise SqlError("55000", f'view "{runtime.view.name}" was dropped meanwhile')
    if owned.failure is not None:
        raise SqlError(*owned.failure)
    return owned


def _fetched(core: Core, item: _Elsewhere, at: int) -> Mapping[str, pa.Table]:
    """The states of a view that another server maintains and this server is the home of, at an LSN of this server."""
    runtime, owned = item.runtime, item.owned
    found = state_recovery.read_states(core, owned, runtime, set())
    states = artifact.as_handover(owned, found, runtime.view.oid, runtime.program).states
    view, program, streams = runtime.view, runtime.program, streams_of(core, runtime.program)
    arrived = _arrived(core, streams, owned.at)
    own = ExportedView(view, streams, "", (), owned.at, program, states, runtime.runner.statics, arrived)
    starts = {stream.oid: owned.at for stream in streams}
    return replay_log(core, core.options.server_name, own, starts, min(at, core.log.last_lsn)).states


def export_committed_states(
    core: Core, replicas: Replicas, runtime: ViewRuntime, since: int = 0
) -> tuple[ExportedView, object]:
    """The states of a view at its home as its last commits left them, and these commits' frontiers. The states are of
    one LSN, ``since`` or later, above which the log is kept. Nothing is computed, and no reader of the view waits.
    Where the paths were not committed up to one such LSN, for a view that reads others, and for one that still lacks
    rows of a stream's history, which the log does not have, ``export_states``."""
    view, streams = runtime.view, streams_of(core, runtime.program)
    is_filled = all(item.durable >= view.created_lsn for item in runtime.paths)
    keeps_rows = any(stream.keeps_rows for stream in streams)
    if views_below(core, runtime) or (keeps_rows and not is_filled):
        return export_states(core, replicas, runtime)
    stored, states = core.storage.taken(view.oid, core.engine)
    with core.sequencer.lock:
        visible = core.sequencer.visible
        last = {stream.oid: core.streams[stream.oid].last_lsn for stream in streams}
    core.sequencer.flush().wait()
    at = _at(stored.inputs, last, visible)
    if at is None or at < since:
        return export_states(core, replicas, runtime)
    program = as_leaving(core, runtime)
    arrived = _arrived(core, streams, at)
    leaving = ExportedView(view, streams, *_roles_of(core, view, streams), at, program, states, stored.statics, arrived)
    return leaving, stored.inputs


def _arrived(core: Core, streams: Iterable[Stream], at: int) -> Mapping[int, ArrivedFiles]:
    """The files that have arrived in the streams that follow a folder, up to an LSN of their home."""
    return arrived_in(core, streams, {stream.oid: at for stream in streams})


def _at(frontiers: Mapping[int, int], last: Mapping[int, int], visible: int) -> int | None:
    """The one LSN of states that have each stream's rows up to its frontier; None where there is none. ``last`` has the
    LSN of each stream's last row: a stream without rows above its frontier does not matter. Where no stream has such
    rows the LSN is ``visible``."""
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

"""Applies the entry of a view at its home: where the view is, and which records the log keeps for it.

Owns: what an entry means for the runtime, and the entry of a view whose home was adopted. Its own entry is changed a
moment after the adoption; until then the ``staged`` entry counts, which lies with the registry's entry of the former
home.
"""

from __future__ import annotations

from executor.cluster.registry import read_member
from executor.cluster.storage import Storage
from executor.cluster.view_ownership import NOBODY, Owned, as_owned
from executor.core.core import Core
from executor.key_access.view_indexes import ViewIndexes
from executor.replicas.replica import Replicas, replica_of
from executor.traces.layout import home_of
from executor.views.location import Away
from executor.views.runtime import ViewRuntime


def place_view(core: Core, indexes: ViewIndexes, runtime: ViewRuntime, owned: Owned, address: str = "") -> None:
    """Makes the runtime of a view whose home this server is say what the view's entry says: which server maintains it,
    at which ``address``, and above which LSN the log keeps records for it."""
    own, held = core.options.server_name, owned.at
    worker = owned.worker(own, runtime.handover)
    core.versions.suspend(runtime.view.oid, worker == NOBODY)
    if worker == own:
        runtime.location.hold(None if owned.taken and not owned.copied else held)
        return
    before, away = runtime.away, Away(worker, address)
    runtime.leave(away, held)
    if before is None:  # from now on nobody makes another
        indexes.forget(runtime.view.oid)
    if before != away:
        core.versions.stir(runtime.view.oid)


def staged_entry(storage: Storage, owned: Owned) -> Owned | None:
    """The entry that a view gets since its home was adopted; None where there is none. Raises XX001."""
    member = read_member(storage, owned.home)
    found = () if member is None else member.staged
    return next((as_owned(item, owned.name) for item in found if item.get("name") == owned.name), None)


def is_guest(replicas: Replicas, runtime: ViewRuntime) -> bool:
    """Whether a view's streams belong to another server."""
    return replica_of(replicas, runtime) is not None


def is_at_home(core: Core, runtime: ViewRuntime) -> bool:
    """Whether a view's streams belong to this server."""
    stream = next((core.streams.get(oid) for oid in runtime.program.inputs), None)
    return stream is not None and not home_of(stream.stream)

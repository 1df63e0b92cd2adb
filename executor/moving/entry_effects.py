"""What an entry among servers makes of a view that this server is the home of.

Owns: what an entry (``ownership``) makes of the view whose home this server is, or becomes: of one that was adopted the
entry says so a moment later, and until then there is another, ``staged``, beside its former home.
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


def place(core: Core, indexes: ViewIndexes, runtime: ViewRuntime, owned: Owned, address: str = "") -> None:
    """What an entry says of a view whose home this server is: whether it is here, and what the log keeps for it."""
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


def staged(storage: Storage, owned: Owned) -> Owned | None:
    """The entry that a view is to get since its home was adopted; None where none is known. Raises XX001."""
    member = read_member(storage, owned.home)
    found = () if member is None else member.staged
    return next((as_owned(item, owned.name) for item in found if item.get("name") == owned.name), None)


def is_guest(replicas: Replicas, runtime: ViewRuntime) -> bool:
    """Whether a view's stream is at another server."""
    return replica_of(replicas, runtime) is not None


def is_own(core: Core, runtime: ViewRuntime) -> bool:
    """Whether it is at this server."""
    stream = core.streams.get(runtime.program.inputs[0])
    return stream is not None and not home_of(stream.stream)

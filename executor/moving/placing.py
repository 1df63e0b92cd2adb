"""Where a server's own views are, and whose a view is that it has.

Owns: what an entry (``ownership``) makes of the view whose home this server is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from executor.moving.ownership import NOBODY, Owned
from executor.moving.replica import replica_of
from executor.views.runtime import Away, ViewRuntime

if TYPE_CHECKING:
    from executor.database import Database


def place(database: Database, runtime: ViewRuntime, owned: Owned, address: str = "") -> None:
    """What an entry says of a view whose home this server is: whether it is here, and what the log keeps for it."""
    own, held = database.options.server_name, owned.at
    worker = owned.worker(own, runtime.handover)
    database.versions.suspend(runtime.view.oid, worker == NOBODY)
    if worker == own:
        runtime.held = None if owned.taken and not owned.copied else held
        return
    if runtime.away is None:
        database.indexes.forget(runtime.view.oid)
    before, away = runtime.away, Away(worker, address)
    runtime.leave(away, held)
    if before != away:
        database.versions.stir(runtime.view.oid)


def is_guest(database: Database, runtime: ViewRuntime) -> bool:
    """Whether a view's stream is at another server."""
    return replica_of(database.replicas, runtime) is not None

"""Applies the entries of views on this server: continues views that are given to it or that it inherits, restores
guests from their copies, and drops guests that another server has taken.

Owns: what this server does for an entry, and the error that it writes into an entry that it cannot apply. States for
other servers are written by ``view_export``.
"""

from __future__ import annotations

import logging
import time
from math import inf
from typing import Final

from msgspec.structs import replace

from catalog.values.errors import SqlError
from executor.cluster.succession import Heirs
from executor.cluster.view_ownership import Owned, Ownership
from executor.failpoints import failpoint
from executor.moving import guests, state_recovery
from executor.moving import view_artifact as artifact
from executor.moving.checkpoints import Checkpoints
from executor.moving.services import MovingServices
from executor.moving.view_placement import is_at_home, place_view, staged_entry
from executor.traces.checked import WRONG
from executor.views.failure import ViewError
from executor.views.runtime import ViewRuntime

#: SQLSTATE classes that do not come from the view: a step that raised one of them is tried again.
PASSING: Final = ("57", "55P03")
#: Seconds until this server tries a view again after an error; a damaged copy is not tried again.
_AGAIN: Final = 5.0

_LOGGER = logging.getLogger(__name__)


class ViewImport:
    """Continues views on this server and drops them. For one thread at a time."""

    def __init__(self, services: MovingServices, ownership: Ownership, checkpoints: Checkpoints) -> None:
        self._services, self._core = services, services.core
        self._registry = services.core.registry
        self._storage = services.core.shared.folder
        self._ownership = ownership
        self._checkpoints = checkpoints
        self._heirs = Heirs(self._registry)
        #: Handovers that this server could not continue, and the time until which it leaves them to other servers.
        self._refused: dict[str, float] = {}
        #: Handovers of guests that are damaged here and on the storage, and were given back to their homes.
        self._returned: set[str] = set()

    def inherit(self, owned: Owned) -> Owned:
        """The entry after this server has inherited the view; the same entry where another server can continue it."""
        after = self._heirs.entry(owned)
        if after is None or time.monotonic() < self._refused.get(owned.handover, 0):
            return owned
        _LOGGER.warning("view %s of lost server %s is taken over", owned.view, owned.owner)
        self._ownership.change(owned, after)
        failpoint("view-inherited")
        return after

    def apply_entry(self, owned: Owned) -> None:
        """Does this server's part for one view."""
        runtime = next((item for item in self._core.runtimes() if item.shared == owned.name), None)
        if owned.home == self._registry.name and runtime is None:
            self._ownership.delete(owned.name)  # it was dropped
            artifact.delete(self._storage, owned.name)
        elif runtime is not None and owned.owner == owned.home == self._registry.name and owned.taken:
            self._place_at_home(runtime, owned)
        elif owned.owner == self._registry.name and not owned.taken:
            self._continue_view(owned, runtime)
        elif runtime is not None and owned.home == self._registry.name:
            address = self._registry.address(owned.owner if owned.taken else owned.giver)
            place_view(self._core, self._services.indexes, runtime, owned, address)
        elif runtime is not None and owned.owner == self._registry.name and is_at_home(self._core, runtime):
            self._finish_adoption(owned, runtime)
        elif owned.owner == self._registry.name and (runtime is None or runtime.is_lost):
            self._restore(owned, runtime)
        elif runtime is not None and owned.owner != self._registry.name and owned.taken:
            guests.drop_guest(self._services, runtime)

    def _finish_adoption(self, owned: Owned, runtime: ViewRuntime) -> None:
        """Writes the entry of a view whose home this server has become."""
        after = staged_entry(self._core.shared, owned) if self._core.options.view_copy_interval else None
        after = after or _at_home(owned, runtime, self._registry.name)
        self._ownership.change(owned, after)
        for handover in artifact.handovers(self._storage, owned.name) - after.kept:
            artifact.delete_one(self._storage, owned.name, handover)
        place_view(self._core, self._services.indexes, runtime, after)

    def _place_at_home(self, runtime: ViewRuntime, owned: Owned) -> None:
        """Applies the entry of a view that is at its home, unless this server writes a newer one now: an older entry
        names no copy, and the log would drop records that the newer copy needs."""
        with self._checkpoints.naming:
            if self._checkpoints.is_writing(runtime):
                return
            if owned.copied or runtime.held is None or self._ownership.get(owned.name) == owned:
                place_view(self._core, self._services.indexes, runtime, owned)

    def _restore(self, owned: Owned, runtime: ViewRuntime | None) -> None:
        """Restores a guest whose folder is new or damaged from its copy; where that fails, the view goes to its
        home."""
        until = self._refused.get(owned.handover)
        if until is None and owned.failure is None:
            self._continue_view(owned, runtime)
        elif until is None or until < time.monotonic() or (until == inf and owned.handover not in self._returned):
            if until == inf:
                self._returned.add(owned.handover)
            else:
                self._refused[owned.handover] = time.monotonic() + _AGAIN
            home = replace(owned, owner=owned.home, giver=owned.owner, taken=False, error=None)
            self._ownership.change(owned, home)

    def _continue_view(self, owned: Owned, runtime: ViewRuntime | None) -> None:
        """Continues a view on this server, or writes into its entry why that failed."""
        failpoint("view-seen")
        try:
            if owned.home == self._registry.name:
                assert runtime is not None
                self._continue_at_home(owned, runtime)
            else:
                self._continue_as_guest(owned, runtime)
        except (SqlError, *WRONG) as wrong:
            error = wrong if isinstance(wrong, SqlError) else SqlError("XX001", f"it is damaged: {wrong}")
            if error.sqlstate.startswith(PASSING):
                raise
            _LOGGER.warning("view %s of server %s cannot be taken over: %s", owned.view, owned.home, error)
            self._refused[owned.handover] = inf if error.sqlstate == "XX001" else time.monotonic() + _AGAIN
            told, before = (error.sqlstate, error.message), owned.owner if owned.taken else owned.giver
            self._ownership.change(owned, replace(owned, owner=before, taken=True, error=told))
            return
        failpoint("view-begun")
        is_lent = owned.unasked and owned.home != self._registry.name
        taken = replace(owned, taken=True, copied=False, unasked=is_lent)
        self._ownership.change(owned, taken)
        if runtime is not None and owned.home == self._registry.name:  # no other server has it until this one gives it
            artifact.delete(self._storage, owned.name)
            place_view(self._core, self._services.indexes, runtime, taken)

    def _continue_as_guest(self, owned: Owned, runtime: ViewRuntime | None) -> None:
        if runtime is not None and runtime.handover == owned.handover and not runtime.is_lost:
            return
        leaving = state_recovery.read_states(self._core, owned, None, self._checkpoints.damaged)
        if runtime is not None:  # as it was here before
            guests.drop_guest(self._services, runtime)
        guests.create_guest(self._services, owned, leaving)

    def _continue_at_home(self, owned: Owned, runtime: ViewRuntime) -> None:
        if owned.failure is not None:
            sqlstate, message = owned.failure
            runtime.fail(ViewError(SqlError(sqlstate, message), owned.at))
            runtime.come_back(owned.handover, owned.at)
            return
        if runtime.handover == owned.handover:
            if runtime.away is not None:  # it had begun already when others took it for one that had not
                runtime.come_back(owned.handover, runtime.paths[0].durable)
                self._core.versions.stir(runtime.view.oid)
            return
        if runtime.error is not None and self._core.storage.known(runtime.view.oid) is None:
            raise runtime.error.error
        leaving = state_recovery.read_states(self._core, owned, runtime, self._checkpoints.damaged)
        handover = artifact.as_handover(owned, leaving, runtime.view.oid, runtime.program)
        self._core.storage.come_back(runtime.view.oid, handover, owned.at)
        failpoint("view-back")
        runtime.come_back(owned.handover, owned.at)
        self._core.versions.stir(runtime.view.oid)

    def drop_without_entry(self, runtime: ViewRuntime) -> None:
        """Drops a guest whose entry is gone; one whose entry cannot be read stays."""
        try:
            is_dropped = self._ownership.get(runtime.shared) is None
        except SqlError as error:
            if error.sqlstate != "XX001":
                raise
        else:
            if is_dropped:
                guests.drop_guest(self._services, runtime)


def _at_home(owned: Owned, runtime: ViewRuntime, server: str) -> Owned:
    """The entry of a view whose home a server has become."""
    at, stream = runtime.paths[0].durable, runtime.program.inputs[0]
    whose = replace(owned, home=server, stream=stream, owner=server, giver=server, at=at)
    return replace(whose, handover="", older="", taken=True, error=None, copied=False, unasked=False)

"""A server does its part for the views of its storage: it begins with what is given to it, or becomes its heir, comes
back from a copy, and leaves what another has taken.

Owns: what an entry asks of this server, and what it says where it cannot do that. What is written for others is
``giving``'s.
"""

from __future__ import annotations

import logging
import time
from math import inf
from typing import Final

from msgspec.structs import replace

from catalog.values.errors import SqlError
from executor.cluster.failpoints import failpoint
from executor.cluster.succession import Heirs
from executor.cluster.view_ownership import Owned, Ownership
from executor.moving import guests as entering
from executor.moving import state_recovery as rebuilding
from executor.moving import view_artifact as artifact
from executor.moving.checkpoints import Checkpoints
from executor.moving.entry_effects import is_own, place, staged
from executor.moving.services import MovingServices
from executor.traces.checked import WRONG
from executor.views.failure import ViewError
from executor.views.runtime import ViewRuntime

#: SQLSTATE classes that say nothing of the view: what they prevented is tried again.
PASSING: Final = ("57", "55P03")
#: Seconds until a view of a server that is gone is tried again after another error, but for a copy that is wrong.
_AGAIN: Final = 5.0

_LOGGER = logging.getLogger(__name__)


class Taking:
    """What a server goes on with, and leaves. For one thread at a time."""

    def __init__(self, services: MovingServices, ownership: Ownership, checkpoints: Checkpoints) -> None:
        self._services, self._core = services, services.core
        self._registry = services.core.registry
        self._storage = services.core.shared.folder
        self._ownership = ownership
        self._checkpoints = checkpoints
        self._heirs = Heirs(self._registry)
        #: Handovers that this server could not take, and until when it leaves them to others.
        self._refused: dict[str, float] = {}
        #: Those of this server's guests that are damaged here and on the storage: their homes have been asked.
        self._returned: set[str] = set()

    def inherited(self, owned: Owned) -> Owned:
        """A view's entry, which becomes this server's where no other server can continue it."""
        after = self._heirs.entry(owned)
        if after is None or time.monotonic() < self._refused.get(owned.handover, 0):
            return owned
        _LOGGER.warning("view %s of lost server %s is taken over", owned.view, owned.owner)
        self._ownership.change(owned, after)
        failpoint("view-inherited")
        return after

    def settle(self, owned: Owned) -> None:
        """This server does its part for one view."""
        runtime = next((item for item in self._core.runtimes() if item.shared == owned.name), None)
        if owned.home == self._registry.name and runtime is None:
            self._ownership.delete(owned.name)  # it was dropped
            artifact.delete(self._storage, owned.name)
        elif runtime is not None and owned.owner == owned.home == self._registry.name and owned.taken:
            self._place_here(runtime, owned)
        elif owned.owner == self._registry.name and not owned.taken:
            self._take(owned, runtime)
        elif runtime is not None and owned.home == self._registry.name:
            place(
                self._core,
                self._services.indexes,
                runtime,
                owned,
                self._registry.address(owned.owner if owned.taken else owned.giver),
            )
        elif runtime is not None and owned.owner == self._registry.name and is_own(self._core, runtime):
            self._settle_adopted(owned, runtime)
        elif owned.owner == self._registry.name and (runtime is None or runtime.is_lost):
            self._restore(owned, runtime)
        elif runtime is not None and owned.owner != self._registry.name and owned.taken:
            entering.leave(self._services, runtime)

    def _settle_adopted(self, owned: Owned, runtime: ViewRuntime) -> None:
        """A view whose home this server has become."""
        after = staged(self._core.shared, owned) if self._core.options.view_copy_interval else None
        after = after or _at_home(owned, runtime, self._registry.name)
        self._ownership.change(owned, after)
        for handover in artifact.handovers(self._storage, owned.name) - after.kept:
            artifact.delete_one(self._storage, owned.name, handover)
        place(self._core, self._services.indexes, runtime, after)

    def _place_here(self, runtime: ViewRuntime, owned: Owned) -> None:
        """What an entry says of a view that is at its home, unless more is about to be said, or has been: by one of
        before, which names no copy, the log would let go what the copy since then needs."""
        with self._checkpoints.naming:
            if self._checkpoints.is_writing(runtime):
                return
            if owned.copied or runtime.held is None or self._ownership.get(owned.name) == owned:
                place(self._core, self._services.indexes, runtime, owned)

    def _restore(self, owned: Owned, runtime: ViewRuntime | None) -> None:
        """A guest that this server has taken is not here, since its folder is new, or damaged. It comes back from its
        copy, or else its home has it."""
        until = self._refused.get(owned.handover)
        if until is None and owned.failure is None:
            self._take(owned, runtime)
        elif until is None or until < time.monotonic() or (until == inf and owned.handover not in self._returned):
            if until == inf:
                self._returned.add(owned.handover)
            else:
                self._refused[owned.handover] = time.monotonic() + _AGAIN
            home = replace(owned, owner=owned.home, giver=owned.owner, taken=False, error=None)
            self._ownership.change(owned, home)

    def _take(self, owned: Owned, runtime: ViewRuntime | None) -> None:
        """This server goes on with a view, or says why not."""
        failpoint("view-seen")
        try:
            if owned.home == self._registry.name:
                assert runtime is not None
                self._come_back(owned, runtime)
            else:
                self._enter(owned, runtime)
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
            place(self._core, self._services.indexes, runtime, taken)

    def _enter(self, owned: Owned, runtime: ViewRuntime | None) -> None:
        if runtime is not None and runtime.handover == owned.handover and not runtime.is_lost:
            return
        leaving = rebuilding.read(self._core, owned, None, self._checkpoints.damaged)
        if runtime is not None:  # as it was here before
            entering.leave(self._services, runtime)
        entering.enter(self._services, owned, leaving)

    def _come_back(self, owned: Owned, runtime: ViewRuntime) -> None:
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
        leaving = rebuilding.read(self._core, owned, runtime, self._checkpoints.damaged)
        handover = artifact.as_handover(owned, leaving, runtime.view.oid, runtime.program)
        self._core.storage.come_back(runtime.view.oid, handover, owned.at)
        failpoint("view-back")
        runtime.come_back(owned.handover, owned.at)
        self._core.versions.stir(runtime.view.oid)

    def leave_dropped(self, runtime: ViewRuntime) -> None:
        """A guest's entry is missing; if it cannot be read, that is unknown."""
        try:
            is_dropped = self._ownership.get(runtime.shared) is None
        except SqlError as error:
            if error.sqlstate != "XX001":
                raise
        else:
            if is_dropped:
                entering.leave(self._services, runtime)


def _at_home(owned: Owned, runtime: ViewRuntime, server: str) -> Owned:
    """The entry of a view whose home a server has become."""
    at, stream = runtime.paths[0].durable, runtime.program.inputs[0]
    whose = replace(owned, home=server, stream=stream, owner=server, giver=server, at=at)
    return replace(whose, handover="", older="", taken=True, error=None, copied=False, unasked=False)

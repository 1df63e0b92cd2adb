"""Exports a continuous view: writes its states for the next server, or as a copy from which others can continue.

Owns: the states on the storage, and the entry that names them and the view's owner. Before the states are written the
home's log begins to keep all records that come after them. The next server continues by itself (``view_import``).
"""

from __future__ import annotations

import secrets
from typing import Final

from msgspec.structs import replace

from catalog.objects import qualified
from catalog.values.errors import SqlError
from executor.cluster.view_ownership import NOBODY, Owned, Ownership
from executor.definitions.definition_locks import EVERY_DEFINITION
from executor.failpoints import failpoint
from executor.locks.held import TransactionLocks
from executor.locks.manager import Owner
from executor.locks.modes import Mode
from executor.moving import guests
from executor.moving import view_artifact as artifact
from executor.moving.checkpoints import Checkpoints
from executor.moving.exported_states import export_committed_states, export_states
from executor.moving.movability import require_movable
from executor.moving.services import MovingServices
from executor.moving.view_artifact import ExportedView
from executor.moving.view_placement import is_guest, place_view
from executor.views.location import Away
from executor.views.runtime import ViewRuntime

#: Seconds for which an automatic copy waits to begin.
_AT_ONCE: Final = 0.001


class ViewExport:
    """Exports the views of one server. For one view at a time."""

    def __init__(self, services: MovingServices, ownership: Ownership, checkpoints: Checkpoints) -> None:
        self._services, self._core = services, services.core
        self._registry = services.core.registry
        self._storage = services.core.shared.folder
        self._ownership = ownership
        self._checkpoints = checkpoints

    def hand_over(self, runtime: ViewRuntime, target: str, unasked: bool = False) -> Owned:
        """Gives a view to another server, or suspends it; its entry. Raises 0A000, 55000, 55P03."""
        with self._checkpoints.writing(runtime, unasked=False):
            return self._hand_over(runtime, target, unasked)

    def _hand_over(self, runtime: ViewRuntime, target: str, unasked: bool) -> Owned:
        before = self._entry_at_rest(runtime)
        held = runtime.held
        try:
            given = replace(self._write_states(runtime, before), owner=target, giver=self._registry.name)
            older, oldest = ("", "") if before is None else self._checkpoints.by_age(before)
            given = replace(given, older=older, taken=target == NOBODY, error=None, copied=False, unasked=unasked)
            self._checkpoints.name_states(before, given)
        except BaseException:
            runtime.location.hold(held)
            raise
        failpoint("view-given")
        if before is not None:
            artifact.delete_one(self._storage, before.name, oldest)
        return given

    def _write_states(self, runtime: ViewRuntime, before: Owned | None, unasked: bool = False) -> Owned:
        """Writes a view's states; the entry that names them."""
        self._pin(runtime, _AT_ONCE if unasked else guests.PATIENCE)
        out = export_committed_states if unasked else export_states
        leaving, _ = out(self._core, self._services.replicas, runtime)
        entry = self._entry(runtime, leaving, before)
        handover = artifact.write(self._core.shared, entry.name, leaving)
        failpoint("view-written")
        return replace(entry, handover=handover, at=leaving.at)

    def _entry(self, runtime: ViewRuntime, leaving: ExportedView, before: Owned | None) -> Owned:
        """The view's entry with its present name; a view without one gets its name among servers here."""
        if before is not None:
            return replace(before, view=qualified(runtime.view))
        if not runtime.shared:
            name = secrets.token_hex(8)
            self._core.storage.share(runtime.view.oid, name)
            runtime.location.name(name)
        home = self._registry.name
        return Owned(runtime.shared, qualified(runtime.view), home, leaving.streams[0].oid, home, home, "", leaving.at)

    def _pin(self, runtime: ViewRuntime, patience: float) -> None:
        """Lets the log keep all later records of a view's streams, while no definition changes. Raises 0A000, and 55P03
        where a transaction defines something for ``patience`` seconds."""
        locks = TransactionLocks(self._core.tables.locks, Owner(), lambda: patience)
        try:
            locks.take(EVERY_DEFINITION, Mode.EXCLUSIVE)
            require_movable(self._core, runtime)
            with self._core.sequencer.lock:
                if not is_guest(self._services.replicas, runtime) and runtime.held is None:
                    runtime.location.hold(min(progress.durable for progress in runtime.paths))
        finally:
            locks.release_all()

    def _entry_at_rest(self, runtime: ViewRuntime) -> Owned | None:
        """A view's entry; None where it has none. Raises 55000 where the view is being moved, or another server has
        it."""
        found = self._ownership.get(runtime.shared) if runtime.shared else None
        if found is not None and not found.taken:
            raise SqlError("55000", f'view "{found.view}" is being migrated to server "{found.owner}"')
        if found is not None and found.owner != self._registry.name:
            raise Away(found.owner, self._registry.address(found.owner)).raised(runtime.view)
        return found

    def start_copies(self, runtime: ViewRuntime, unasked: bool = False) -> None:
        """Makes the first copy of a view that is at its home, unless it is copied already. No server continues from a
        copy that is not complete."""
        with self._checkpoints.writing(runtime, unasked):
            before = self._entry_at_rest(runtime)
            if before is not None and before.copied:
                if before.unasked and not unasked:
                    self._checkpoints.change(before, replace(before, unasked=False))
                return
            held = runtime.held
            try:
                written = self._write_states(runtime, before, unasked)
                after = replace(written, taken=True, error=None, older="", copied=True, unasked=unasked)
                self._checkpoints.name_states(before, after)
            except BaseException:
                runtime.location.hold(held)
                raise
            failpoint("view-copied")
            with self._checkpoints.naming:
                if self._ownership.get(after.name) == after:  # else they have ended already
                    place_view(self._core, self._services.indexes, runtime, after)

    def forget(self, runtime: ViewRuntime) -> bool:
        """Ends the copies of a view that is at its home, and deletes the last one; whether there was one. Raises 55000
        for a view on another server."""
        before = self._entry_at_rest(runtime)
        if before is None or not before.copied:
            runtime.check()
            return False
        with self._checkpoints.naming:
            self._forget(runtime, before)
        return True

    def forget_automatic(self, runtime: ViewRuntime) -> bool:
        """Deletes automatic copies, also one that is being written; False where a copy was requested, or the view is
        being moved."""
        with self._checkpoints.naming:
            if not self._checkpoints.void_states(runtime):
                return False
            before = self._ownership.get(runtime.shared) if runtime.shared else None
            if before is None:  # the first one could not be made, or is to be
                return runtime.held is None or self._checkpoints.is_writing(runtime)
            is_at_rest = before.taken and before.owner == before.home == self._registry.name
            if not is_at_rest or (before.copied and not before.unasked):
                return False
            self._forget(runtime, before)
            return True

    def _forget(self, runtime: ViewRuntime, before: Owned) -> None:
        after = replace(before, copied=False, unasked=False, error=None, older="")
        self._ownership.change(before, after)
        for handover in before.kept:  # and not what is being written
            artifact.delete_one(self._storage, after.name, handover)
        # Also while states are being written, which are void: a writer that finds nothing to write any more reports
        # nothing.
        place_view(self._core, self._services.indexes, runtime, after)

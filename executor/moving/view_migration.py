"""Moves continuous views between servers, and keeps this server in step with the entries on the storage.

Owns: requests to move views, and the thread that reads the entries and follows other servers' logs. Servers exchange no
messages about a move: the storage has all of it. No step undoes another, so a server that failed continues after its
restart where the entry says (``view_export``, ``view_import``):

    old owner   writes the view's states at an LSN of its home, and the entry, which names the new owner
    new owner   makes a view of these states, and marks the entry as taken
    old owner   reads that and stops: it drops a guest, and at home the view is **away** (``remote_reads``)

Until then the old owner maintains the view, and its answers are right as well. The home's log keeps all records above
the LSN of the entry, from which the owner continues (``checkpoints``, ``cluster.succession``).
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from msgspec.structs import replace

from catalog.objects import View, qualified
from catalog.values.errors import SqlError
from executor.cluster.view_ownership import NOBODY, Owned, Ownership
from executor.core.periodic import Pace, Periodic
from executor.failpoints import failpoint
from executor.files.arrived_files import FileFeed
from executor.moving import view_artifact as artifact
from executor.moving.adoption import Adoption
from executor.moving.automatic_copies import AutomaticCopies
from executor.moving.checkpoints import Checkpoints
from executor.moving.movability import require_alone, require_movable
from executor.moving.services import MovingServices
from executor.moving.view_export import ViewExport
from executor.moving.view_import import PASSING, ViewImport
from executor.moving.view_placement import is_guest, staged_entry
from executor.replicas.replica import replica_of
from executor.traces.checked import WRONG
from executor.upkeep.admission import Admission
from executor.upkeep.frontiers import Frontiers
from executor.views.runtime import ViewRuntime

#: Seconds between two rounds of the thread, and between two looks of a session that waits until a view is taken.
_LOOK: Final = 0.1
_WAIT: Final = 0.02
#: Seconds between two records of a position that moved on without rows.
_NOTE: Final = 1.0

_LOGGER = logging.getLogger(__name__)


class ViewMigration:
    """Moves the views of one server. Safe for many threads."""

    def __init__(
        self, services: MovingServices, frontiers: Frontiers, admission: Admission, retry: Callable[[int], None]
    ) -> None:
        """``retry`` lets the maintenance of a stream's views be tried again."""
        self._services, self._core = services, services.core
        self._registry = services.core.registry
        self._storage = services.core.shared.folder
        self._admission, self._retry = admission, retry
        self.ownership = Ownership(self._core.shared, self._registry)
        #: Held during a step.
        self._lock = threading.RLock()
        #: While this server is drained: views that stay, and how many others have left.
        self._staying: set[int] = set()
        self.left = 0
        self._given: set[str] = set()
        self.checkpoints = Checkpoints(self._core, self.ownership, services.replicas, frontiers)
        self.automatic_copies = AutomaticCopies(self._core, services.replicas, self)
        self.checkpoints.on_failure(self.automatic_copies.stop_copying)
        self._export = ViewExport(services, self.ownership, self.checkpoints)
        self._import = ViewImport(services, self.ownership, self.checkpoints)
        self._adoption = Adoption(services, self.ownership, self.checkpoints, self._import)
        #: The error of the last step of a view, by its name among servers.
        self._told: dict[str, str] = {}
        #: The error of the last round.
        self._prevented = ""
        self._note = Pace(_NOTE)
        self._thread = Periodic("views", _LOOK, self._round)

    def start(self) -> None:
        """Deletes what a failure has left, and applies entries from now on. Raises 58030."""
        self._adoption.unstage()
        self._sweep()
        self._thread.start()
        self.checkpoints.start()
        self.automatic_copies.start()

    def _sweep(self) -> None:
        """Deletes states from which no server continues: a failure of this server has left them."""
        own = self._registry.name
        here = {runtime.shared for runtime in self._core.runtimes() if not is_guest(self._services.replicas, runtime)}
        for name in artifact.names(self._storage):
            found = artifact.handovers(self._storage, name)  # before the entry, which names one that is written now
            with contextlib.suppress(OSError, SqlError):  # then it is unknown
                owned = self.ownership.get(name)
                if owned is None and name not in here:
                    continue  # its home is about to say whose it is
                if owned is None or (owned.taken and owned.owner in (own, NOBODY)):
                    after = None if owned is None else staged_entry(self._core.shared, owned)
                    kept = {handover for item in (owned, after) if item is not None for handover in item.kept}
                    for handover in found - kept:
                        artifact.delete_one(self._storage, name, handover)

    def close(self) -> None:
        """Ends the threads."""
        self.automatic_copies.close()
        self.checkpoints.close()
        self._thread.close()
        self._services.replicas.close()

    # Asked for --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _asked(self) -> Iterator[None]:
        """A context for one request of a client. Raises 58030 where the storage does not answer: the client does not
        wait for a step of the thread that hangs."""
        self._core.shared.require_answer()
        with self._lock:
            yield

    def migrate(self, view: View, target: str, is_cancelled: Callable[[], bool]) -> str:
        """Gives a view to another server, and waits until that server has taken it; the view's name. Raises 0A000 for a
        view that cannot leave, 42704, 55000, 57014 (the view moves nevertheless), and the error that prevented the
        other server."""
        self._registry.require_target(target)
        with self._asked():
            runtime = self._settled(view)
            given = self._export.hand_over(runtime, target)
        self._wait_taken(given, is_cancelled)
        return qualified(view)

    def _settled(self, view: View) -> ViewRuntime:
        """The runtime of a view that this server has. An entry that this server died before it marked as taken is
        marked first. Raises 55000 where another server has the view, and the error that is the view's value."""
        runtime = self._core.view(view.oid)
        owned = self.ownership.get(runtime.shared) if runtime.shared else None
        if owned is not None and not owned.taken and owned.owner == self._registry.name:
            self._import.apply_entry(owned)
        runtime = self._core.view(view.oid)
        runtime.check()
        return runtime

    def _wait_taken(self, given: Owned, is_cancelled: Callable[[], bool]) -> None:
        """Returns when a view's new owner has taken it. Raises 55000, 57014, and the error that prevented the new
        owner."""
        while True:
            found = self.ownership.get(given.name)
            if found is None or found.taken:
                break
            if is_cancelled():
                raise SqlError("57014", "canceling statement due to user request")
            time.sleep(_WAIT)
        if found is None:
            raise SqlError("55000", f'view "{given.view}" was dropped meanwhile')
        if found.error is not None:
            sqlstate, message = found.error
            raise SqlError(sqlstate, f'server "{given.owner}" cannot take over view "{given.view}": {message}')
        with self._lock:
            self._import.apply_entry(found)

    def suspend(self, view: View) -> str:
        """Suspends a view until ``resume``; its name. Raises 0A000 for a view that cannot leave, 55000."""
        with self._asked():
            runtime = self._settled(view)
            given = self._export.hand_over(runtime, NOBODY)
            failpoint("view-suspended")
            self._try_entry(given)
        return qualified(view)

    def suspended(self) -> list[Owned]:
        """The suspended views of the storage. Raises 58030 where they are unknown."""
        self._core.shared.require()
        return [owned for owned in self.ownership.all() if owned.is_suspended]

    def resume(self, owned: Owned, is_cancelled: Callable[[], bool]) -> None:
        """Continues a suspended view on this server. Raises 55000 where another server does, 57014 (the view continues
        nevertheless), and what prevents it, after which the view is suspended again."""
        given = replace(owned, owner=self._registry.name, giver=NOBODY, taken=False, error=None)
        self.ownership.change(owned, given)
        failpoint("view-resumed")
        self._wait_taken(given, is_cancelled)

    def checkpoint(self, view: View) -> str:
        """Writes a copy of a view's states to the storage now, and further ones whenever they are due: other servers
        continue from it when this server is lost. The view's name. Raises 0A000 for a view that cannot leave, 55000."""
        with self._asked():
            runtime = self._settled(view)
            replica = replica_of(self._services.replicas, runtime)
            if replica is None:
                self._export.start_copies(runtime)
        self.checkpoints.make(runtime, replica)
        return qualified(view)

    def start_automatic_copies(self, runtime: ViewRuntime) -> None:
        """Makes the first automatic copy of a view that is at its home and has no copy. Raises 0A000 for a view that
        cannot leave, or cannot be read without its home, 55P03 where a transaction defines something, and what prevents
        the copy."""
        require_movable(self._core, runtime)
        require_alone(self._core, runtime)
        self._export.start_copies(runtime, unasked=True)

    def forget(self, view: View) -> bool:
        """Ends the copies of a view that is at its home, and deletes the last one; whether there was one. Raises 55000
        for a view on another server."""
        with self._asked(), self.checkpoints.lock:
            return self._export.forget(self._core.view(view.oid))

    def forget_automatic(self, runtime: ViewRuntime) -> bool:
        """Deletes automatic copies, also one that is being written; False where a copy was requested, or the view is
        being moved."""
        return self._export.forget_automatic(runtime)

    def return_home(self, runtime: ViewRuntime, owned: Owned) -> None:
        """Gives a view that this server has continued back to its home. Raises as ``migrate``."""
        with self._lock:
            self._export.hand_over(runtime, owned.home, owned.unasked)

    # Adoption ---------------------------------------------------------------------------------------------------

    def adopt(self, home: str) -> int:
        """Makes the streams of a server that is lost for good this server's, with the views over them; the number of
        views. A repeated request continues where the first one failed. Raises 42704, 55000, 55006, 58P01, and the error
        that prevents a view."""
        with self._asked():
            return self._adoption.adopt(home)

    # Draining ---------------------------------------------------------------------------------------------------

    def leaving(self) -> list[ViewRuntime]:
        """The views that have still to leave this server, which is drained."""
        runtimes = self._core.runtimes()
        here = (item for item in runtimes if item.away is None and item.program.paths)
        return [item for item in here if item.view.oid not in self._staying]

    def _drain(self) -> None:
        """Gives away the views that can leave; guests to their homes, if these accept views."""
        own = self._registry.require(self._registry.name)
        if own.state == "up" or not own.is_living:
            return
        targets = [member.name for member in self._registry.targets()]
        for place, runtime in enumerate(self.leaving() if targets else ()):
            entry = self.ownership.get(runtime.shared) if runtime.shared else None
            if entry is not None and not (entry.taken and entry.owner == own.name):
                continue  # it is on its way
            home = "" if entry is None else entry.home
            try:
                if entry is not None and entry.error is not None and entry.name in self._given:
                    self.left -= 1
                    raise SqlError(*entry.error)
                target = home if home in targets else targets[place % len(targets)]
                self._given.add(self._export.hand_over(runtime, target).name)
                self.left += 1
            except SqlError as error:
                if not error.sqlstate.startswith(PASSING):
                    _LOGGER.warning("view %s stays: %s", runtime.view.name, error)
                    self._staying.add(runtime.view.oid)

    # Rounds -----------------------------------------------------------------------------------------------------

    def _round(self) -> None:
        self._follow_logs(self._note.is_due())
        try:
            self._apply_entries()
            self._prevented = ""
        except (OSError, SqlError) as error:
            if str(error) != self._prevented:
                _LOGGER.warning("views cannot migrate: %s", error)
            self._prevented = str(error)

    def _follow_logs(self, noting: bool) -> None:
        """Applies other servers' records also while no query reads them, unless the views lag behind."""
        for replica in self._services.replicas.all():
            found = [self._core.streams.get(oid) for oid in replica.streams]
            told = None
            try:
                if all(map(self._admission.is_open, replica.streams)):
                    replica.catch_up()
                    if noting:
                        replica.note()
            except SqlError as error:
                if self._thread.is_ending:
                    continue
                told = str(error)
            for stream in filter(None, found):
                trouble = stream.feed.trouble if isinstance(stream.feed, FileFeed) else None
                if stream.stands(told or trouble):
                    self._retry(stream.stream.oid)

    def _apply_entries(self) -> None:
        """One round over all entries: takes the views that are given to this server, and leaves those that others have
        taken."""
        with self._lock:
            self._adoption.unstage()
            entries = {owned.name: owned for owned in self.ownership.all()}
            # Views that others have taken leave first: their replicas may lack records that the home has forgotten.
            for owned in sorted(entries.values(), key=lambda owned: owned.owner == self._registry.name):
                self._try_entry(owned)
            self._drain()
            for runtime in self._core.runtimes():
                if runtime.shared and runtime.shared not in entries and is_guest(self._services.replicas, runtime):
                    self._import.drop_without_entry(runtime)

    def _try_entry(self, owned: Owned) -> None:
        """Applies one entry. An error is logged and does not prevent other entries."""
        try:
            self._import.apply_entry(self._import.inherit(owned))
            self._told.pop(owned.name, None)
        except (SqlError, *WRONG) as error:
            if self._told.get(owned.name) != str(error):
                is_known = isinstance(error, SqlError)
                _LOGGER.warning("view %s cannot migrate: %s", owned.view, error, exc_info=not is_known)
            self._told[owned.name] = str(error)

    def refresh_entry(self, runtime: ViewRuntime) -> None:
        """Applies a view's entry now: the view was not where its runtime says."""
        with contextlib.suppress(SqlError), self._lock:
            owned = self.ownership.get(runtime.shared)
            if owned is not None:
                self._import.apply_entry(owned)

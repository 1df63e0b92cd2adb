"""Continuous views that go from server to server: given away, taken, and kept in step with what the storage says.

Owns: requests to move views, and the thread that looks at the storage and at other servers' logs. There are no messages
but what lies on the storage, and no step undoes another, so that a server that fails continues after its restart where
the storage says (``giving``, ``taking``):

    giver   writes the view's states at an LSN of its home, and an entry that another server is to take them
    taker   makes a view of them, and says so in the entry
    giver   sees that, and stops: a guest is dropped, and at home the view is **away** (``elsewhere``)

Until then the giver continues, whose answers are right as well. The home's log keeps all above the entry's LSN, from
which the owner continues, or a later one (``checkpoints``, ``heirs``).
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
from executor.cluster.failpoints import failpoint
from executor.cluster.view_ownership import NOBODY, Owned, Ownership
from executor.core.periodic import Pace, Periodic
from executor.files.arrived_files import FileFeed
from executor.moving import view_artifact as artifact
from executor.moving.adoption import Adopting
from executor.moving.automatic_copies import Keeping
from executor.moving.checkpoints import Checkpoints
from executor.moving.departure import Giving
from executor.moving.entry_effects import is_guest, staged
from executor.moving.movability import require_alone, require_movable
from executor.moving.services import MovingServices
from executor.moving.takeover import PASSING, Taking
from executor.replicas.replica import replica_of
from executor.traces.checked import WRONG
from executor.upkeep.admission import Admission
from executor.upkeep.frontiers import Frontiers
from executor.views.runtime import ViewRuntime

#: Seconds between two looks at the storage and at other servers' logs, and of sessions that wait for a view to be
#: taken.
_LOOK: Final = 0.1
_WAIT: Final = 0.02
#: Seconds between two records of a position that moved on without rows.
_NOTE: Final = 1.0

_LOGGER = logging.getLogger(__name__)


class ViewMoving:
    """The views of one server that go and come. Safe for many threads."""

    def __init__(
        self, services: MovingServices, frontiers: Frontiers, admission: Admission, retry: Callable[[int], None]
    ) -> None:
        """``retry`` has the maintenance of a stream's views tried again."""
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
        self.keeping = Keeping(self._core, services.replicas, self)
        self.checkpoints.on_unmade = self.keeping.unmade
        self._giving = Giving(services, self.ownership, self.checkpoints)
        self._taking = Taking(services, self.ownership, self.checkpoints)
        self._adopting = Adopting(services, self.ownership, self.checkpoints, self._taking)
        #: What prevented the last step of a view, by its name among servers.
        self._told: dict[str, str] = {}
        #: What prevented the last round.
        self._prevented = ""
        self._note = Pace(_NOTE)
        self._thread = Periodic("views", _LOOK, self._round)

    def start(self) -> None:
        """Does from now on what the storage says. Raises 58030."""
        self._adopting.withdraw()
        self._sweep()
        self._thread.start()
        self.checkpoints.start()
        self.keeping.start()

    def _sweep(self) -> None:
        """Deletes states of views from which no server continues, and which this server left behind when it failed."""
        own = self._registry.name
        here = {runtime.shared for runtime in self._core.runtimes() if not is_guest(self._services.replicas, runtime)}
        for name in artifact.names(self._storage):
            found = artifact.handovers(self._storage, name)  # before the entry, which names one that is written now
            with contextlib.suppress(OSError, SqlError):  # then it is unknown
                owned = self.ownership.get(name)
                if owned is None and name not in here:
                    continue  # its home is about to say whose it is
                if owned is None or (owned.taken and owned.owner in (own, NOBODY)):
                    after = None if owned is None else staged(self._core.shared, owned)
                    kept = {handover for item in (owned, after) if item is not None for handover in item.kept}
                    for handover in found - kept:
                        artifact.delete_one(self._storage, name, handover)

    def close(self) -> None:
        """Ends the threads."""
        self.keeping.close()
        self.checkpoints.close()
        self._thread.close()
        self._services.replicas.close()

    # Asked for --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _asked(self) -> Iterator[None]:
        """A step for a client. The client does not wait for a step of the server itself that waits for a storage that
        does not answer: 58030."""
        self._core.shared.require_answer()
        with self._lock:
            yield

    def migrate(self, view: View, target: str, is_cancelled: Callable[[], bool]) -> str:
        """Lets another server maintain a view from now on; the view's name. Raises 0A000 for what cannot leave, 42704,
        55000, 57014 (it goes all the same), and what prevented the other server from taking it."""
        self._registry.require_target(target)
        with self._asked():
            runtime = self._settled(view)
            given = self._giving.give(runtime, target)
        self._wait_taken(given, is_cancelled)
        return qualified(view)

    def _settled(self, view: View) -> ViewRuntime:
        """A view that is here, of which the storage says so too: a server that died when it had just begun with it has
        not said so yet. Raises 55000 where it is not, and the view's error."""
        runtime = self._core.view(view.oid)
        owned = self.ownership.get(runtime.shared) if runtime.shared else None
        if owned is not None and not owned.taken and owned.owner == self._registry.name:
            self._taking.settle(owned)
        runtime = self._core.view(view.oid)
        runtime.check()
        return runtime

    def _wait_taken(self, given: Owned, is_cancelled: Callable[[], bool]) -> None:
        """Returns when a view's new owner has begun with it. Raises 55000, 57014, and why it could not."""
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
            self._taking.settle(found)

    def suspend(self, view: View) -> str:
        """Suspends a view until ``resume``; its name. Raises 0A000 for what cannot leave, 55000."""
        with self._asked():
            runtime = self._settled(view)
            given = self._giving.give(runtime, NOBODY)
            failpoint("view-suspended")
            self._try(given)
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
        """A copy of a view's states is on the storage, of now or later, and another one whenever that is due, from
        which other servers go on when this one is gone; the view's name. Raises 0A000 for what cannot leave, 55000."""
        with self._asked():
            runtime = self._settled(view)
            replica = replica_of(self._services.replicas, runtime)
            if replica is None:
                self._giving.begin_copies(runtime)
        self.checkpoints.make(runtime, replica)
        return qualified(view)

    def copy_unasked(self, runtime: ViewRuntime) -> None:
        """The first copy of a view that is at its home and has none. Raises 0A000 for what cannot leave, or could not
        be read without its home, and what prevents it: 55P03 where a transaction defines something now."""
        require_movable(self._core, runtime)
        require_alone(self._core, runtime)
        self._giving.begin_copies(runtime, unasked=True)

    def forget(self, view: View) -> bool:
        """Copies of a view that is at its home are made no longer, and the last one is deleted; whether there was
        one. Raises 55000 for a view that is elsewhere."""
        with self._asked(), self.checkpoints.lock:
            return self._giving.forget(self._core.view(view.oid))

    def forget_unasked(self, runtime: ViewRuntime) -> bool:
        """Deletes automatic copies, also one that is being written; False if there are requested ones, or the view is
        being moved."""
        return self._giving.forget_unasked(runtime)

    def give_back(self, runtime: ViewRuntime, owned: Owned) -> None:
        """A view that this server went on with is its home's again, once that has taken it. Raises as ``migrate``."""
        with self._lock:
            self._giving.give(runtime, owned.home, owned.unasked)

    # Adopting ---------------------------------------------------------------------------------------------------

    def adopt(self, home: str) -> int:
        """The streams of a server that is gone for good are this one's, with the views over them; how many views. Asked
        again it goes on where it was. Raises 42704, 55000, 55006, 58P01, and why a view cannot be taken."""
        with self._asked():
            return self._adopting.adopt(home)

    # Draining ---------------------------------------------------------------------------------------------------

    def leaving(self) -> list[ViewRuntime]:
        """The views that leave where this server is drained, and are still here."""
        runtimes = self._core.runtimes()
        return [item for item in runtimes if item.away is None and item.view.oid not in self._staying]

    def _drain(self) -> None:
        """Gives away what can leave, guests to their homes if these take them."""
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
                self._given.add(self._giving.give(runtime, target).name)
                self.left += 1
            except SqlError as error:
                if not error.sqlstate.startswith(PASSING):
                    _LOGGER.warning("view %s stays: %s", runtime.view.name, error)
                    self._staying.add(runtime.view.oid)

    # Rounds -----------------------------------------------------------------------------------------------------

    def _round(self) -> None:
        self._keep_up(self._note.is_due())
        try:
            self._look()
            self._prevented = ""
        except (OSError, SqlError) as error:
            if str(error) != self._prevented:
                _LOGGER.warning("views cannot migrate: %s", error)
            self._prevented = str(error)

    def _keep_up(self, noting: bool) -> None:
        """Applies other servers' rows also while no query reads them, unless the views lag behind."""
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

    def _look(self) -> None:
        """One round: what is given to this server is taken, and what others have taken is left to them."""
        with self._lock:
            self._adopting.withdraw()
            entries = {owned.name: owned for owned in self.ownership.all()}
            # What others have is left first: a replica that only it needs may lack what its home has forgotten.
            for owned in sorted(entries.values(), key=lambda owned: owned.owner == self._registry.name):
                self._try(owned)
            self._drain()
            for runtime in self._core.runtimes():
                if runtime.shared and runtime.shared not in entries and is_guest(self._services.replicas, runtime):
                    self._taking.leave_dropped(runtime)

    def _try(self, owned: Owned) -> None:
        """What is done for one view; what prevents that prevents nothing for others."""
        try:
            self._taking.settle(self._taking.inherited(owned))
            self._told.pop(owned.name, None)
        except (SqlError, *WRONG) as error:
            if self._told.get(owned.name) != str(error):
                is_known = isinstance(error, SqlError)
                _LOGGER.warning("view %s cannot migrate: %s", owned.view, error, exc_info=not is_known)
            self._told[owned.name] = str(error)

    def look_for(self, runtime: ViewRuntime) -> None:
        """Finds out where a view is now, of which something else was known."""
        with contextlib.suppress(SqlError), self._lock:
            owned = self.ownership.get(runtime.shared)
            if owned is not None:
                self._taking.settle(owned)

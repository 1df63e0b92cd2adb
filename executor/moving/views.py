"""Continuous views that go from server to server: given away, taken, and kept in step with what the storage says.

Owns: the steps, and the thread that takes them. There are no messages but what lies on the storage, and no step undoes
another, so that whoever dies goes on where the storage says it is when it is there again:

    giver   writes the view's states at an LSN of its home, and an entry that another server is to take them
    taker   makes a view of them, and says so in the entry
    giver   sees that, and stops: a guest is dropped, and at home the view is **away** (``elsewhere``)

Until then the giver goes on, whose answers are right as well. The home's log keeps all above the entry's LSN, from
which the owner goes on, or whoever comes after it (``checkpoints``, ``heirs``).
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from catalog.errors import SqlError
from catalog.objects import View, qualified
from executor.cluster.failpoints import failpoint
from executor.moving import adopting, artifact, entering, rebuilding
from executor.moving.artifact import LeavingView
from executor.moving.checkpoints import Checkpoints, stored_out, taken_out
from executor.moving.heirs import Heirs
from executor.moving.keeping import Keeping
from executor.moving.movable import require_movable
from executor.moving.ownership import NOBODY, Owned, Ownership
from executor.moving.replica import replica_of
from executor.periodic import Periodic
from executor.separation.moving import Pace
from executor.trace.layout import home_of
from executor.views.runtime import Away, ViewError, ViewRuntime

if TYPE_CHECKING:
    from executor.database import Database

#: Seconds between two looks at the storage and at other servers' logs, and of who waits for a view to be taken.
_LOOK: Final = 0.1
_WAIT: Final = 0.02
#: Seconds between two records of a position that moved on without rows.
_NOTE: Final = 1.0
#: SQLSTATE classes that say nothing of the view: what they prevented is tried again.
_PASSING: Final = ("57", "55P03")
#: Seconds until a view of a server that is gone is tried again after another error, but for a copy that is wrong.
_AGAIN: Final = 5.0
#: Seconds for which a copy that nobody has asked for waits to begin.
_AT_ONCE: Final = 0.001

_LOGGER = logging.getLogger(__name__)


class ViewMoving:
    """The views of one server that go and come. Safe for many threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._registry = database.registry
        self._storage = database.shared.folder
        self.ownership = Ownership(database.shared, self._registry)
        #: Held by who takes a step.
        self._lock = threading.RLock()
        #: While this server is drained: views that stay, and how many others have left.
        self._staying: set[int] = set()
        self.left = 0
        self._given: set[str] = set()
        self.checkpoints = Checkpoints(database, self.ownership, database.replicas, database.frontiers)
        self.keeping = Keeping(database, self)
        self.checkpoints.on_unmade = self.keeping.unmade
        self._heirs = Heirs(self._registry)
        #: Handovers that this server could not take, and until when it leaves them to others.
        self._refused: dict[str, float] = {}
        #: Those of this server's guests that are damaged here and on the storage: their homes have been asked.
        self._returned: set[str] = set()
        #: What prevented the last step of a view, by its name among servers.
        self._told: dict[str, str] = {}
        #: What prevented the last round.
        self._prevented = ""
        self._note = Pace(_NOTE)
        self._thread = Periodic("views", _LOOK, self._round)

    def start(self) -> None:
        """Does from now on what the storage says."""
        self._sweep()
        self._thread.start()
        self.checkpoints.start()
        self.keeping.start()

    def _sweep(self) -> None:
        """Deletes states of views that nobody goes on from, and whose end this server, which died, has not come to."""
        own = self._registry.name
        here = {runtime.shared for runtime in self._database.runtimes() if not self._is_guest(runtime)}
        for name in artifact.names(self._storage):
            found = artifact.handovers(self._storage, name)  # before the entry: who writes one now names it there
            with contextlib.suppress(OSError, SqlError):  # then nobody can tell
                owned = self.ownership.get(name)
                if owned is None and name not in here:
                    continue  # its home is about to say whose it is
                if owned is None or (owned.taken and owned.owner in (own, NOBODY)):
                    for handover in found - (set() if owned is None else owned.kept):
                        artifact.delete_one(self._storage, name, handover)

    def close(self) -> None:
        """Ends the threads."""
        self.keeping.close()
        self.checkpoints.close()
        self._thread.close()
        self._database.replicas.close()

    # Giving -----------------------------------------------------------------------------------------------------

    def migrate(self, view: View, target: str, is_cancelled: Callable[[], bool]) -> str:
        """Lets another server maintain a view from now on; the view's name. Raises 0A000 for what cannot leave, 42704,
        55000, 57014 (it goes all the same), and what prevented the other server from taking it."""
        self._database.separation.moving.require_target(target)
        with self._lock:
            runtime = self._database.view(view.oid)
            runtime.check()
            given = self._give(runtime, target)
        self._wait_taken(given, is_cancelled)
        return qualified(view)

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
            raise SqlError(sqlstate, f'server "{given.owner}" cannot take view "{given.view}": {message}')
        with self._lock:
            self._settle(found)

    def suspend(self, view: View) -> str:
        """Nobody maintains a view any more, until ``resume``; its name. Raises 0A000 for what cannot leave, 55000."""
        with self._lock:
            runtime = self._database.view(view.oid)
            runtime.check()
            given = self._give(runtime, NOBODY)
            failpoint("view-suspended")
            self._try(given)
        return qualified(view)

    def suspended(self) -> list[Owned]:
        """The views of the storage that nobody maintains."""
        return [owned for owned in self.ownership.all() if owned.is_suspended]

    def resume(self, owned: Owned, is_cancelled: Callable[[], bool]) -> None:
        """This server goes on with a suspended view. Raises 55000 where another does, 57014 (it goes on all the same),
        and what prevents it, after which the view is suspended as before."""
        given = replace(owned, owner=self._registry.name, giver=NOBODY, taken=False, error=None)
        self.ownership.change(owned, given)
        failpoint("view-resumed")
        self._wait_taken(given, is_cancelled)

    def checkpoint(self, view: View) -> str:
        """A copy of a view's states is on the storage, of now or later, and another one whenever that is due, from
        which other servers go on when this one is gone; the view's name. Raises 0A000 for what cannot leave, 55000."""
        with self._lock:
            runtime = self._database.view(view.oid)
            runtime.check()
            replica = replica_of(self._database.replicas, runtime)
            if replica is None:
                self._begin_copies(runtime)
        self.checkpoints.make(runtime, replica)
        return qualified(view)

    def copy_unasked(self, runtime: ViewRuntime) -> None:
        """The first copy of a view that is at its home and has none. Raises 0A000 for what cannot leave, and what
        prevents it: 55P03 where a transaction defines something now."""
        require_movable(self._database, runtime)
        self._begin_copies(runtime, unasked=True)

    def _entry_at_rest(self, runtime: ViewRuntime) -> Owned | None:
        """A view's entry, if it has one. Raises 55000 where it is on its way, or another's already."""
        found = self.ownership.get(runtime.shared) if runtime.shared else None
        if found is not None and not found.taken:
            raise SqlError("55000", f'view "{found.view}" is on its way to server "{found.owner}"')
        if found is not None and found.owner != self._registry.name:
            raise Away(found.owner, self._registry.address(found.owner)).raised(runtime.view)
        return found

    def _begin_copies(self, runtime: ViewRuntime, unasked: bool = False) -> None:
        """Of a view that is at its home, unless there are some. Nobody goes on from a copy before there is one."""
        with self.checkpoints.writing(runtime, unasked):
            before = self._entry_at_rest(runtime)
            if before is not None and before.copied:
                if before.unasked and not unasked:
                    self.ownership.change(before, replace(before, unasked=False))
                return
            held = runtime.held
            try:
                written = self._written(runtime, before, unasked)
                after = replace(written, taken=True, error=None, older="", copied=True, unasked=unasked)
                self.checkpoints.name(before, after)
            except BaseException:
                runtime.held = held
                raise
            failpoint("view-copied")
            place(self._database, runtime, after)

    def forget(self, view: View) -> bool:
        """Copies of a view that is at its home are made no longer, and the last one is deleted; whether there was
        one. Raises 55000 for a view that is elsewhere."""
        with self._lock, self.checkpoints.lock:
            runtime = self._database.view(view.oid)
            before = self._entry_at_rest(runtime)
            if before is None or not before.copied:
                runtime.check()
                return False
            with self.checkpoints.naming:
                self._forget(runtime, before)
            return True

    def forget_unasked(self, runtime: ViewRuntime) -> bool:
        """The same of copies that nobody has asked for, also of one that is being written, for which nobody waits;
        False where there are others, or the view is on its way."""
        with self.checkpoints.naming:
            if not self.checkpoints.give_up(runtime):
                return False
            before = self.ownership.get(runtime.shared) if runtime.shared else None
            if before is None:  # the first one could not be made, or is to be
                return runtime.held is None or self.checkpoints.is_writing(runtime)
            is_at_rest = before.taken and before.owner == before.home == self._registry.name
            if not is_at_rest or (before.copied and not before.unasked):
                return False
            self._forget(runtime, before)
            return True

    def _forget(self, runtime: ViewRuntime, before: Owned) -> None:
        after = replace(before, copied=False, unasked=False, error=None, older="")
        self.ownership.change(before, after)
        for handover in before.kept:  # and not what is being written
            artifact.delete_one(self._storage, after.name, handover)
        if not self.checkpoints.is_writing(runtime):
            place(self._database, runtime, after)

    def give_back(self, runtime: ViewRuntime, owned: Owned) -> None:
        """A view that this server went on with is its home's again, once that has taken it. Raises as ``migrate``."""
        with self._lock:
            self._give(runtime, owned.home, owned.unasked)

    def _give(self, runtime: ViewRuntime, target: str, unasked: bool = False) -> Owned:
        """Writes the states and the entry; the latter."""
        with self.checkpoints.writing(runtime, unasked=False):
            return self._given_to(runtime, target, unasked)

    def _given_to(self, runtime: ViewRuntime, target: str, unasked: bool) -> Owned:
        before = self._entry_at_rest(runtime)
        held = runtime.held
        try:
            given = replace(self._written(runtime, before), owner=target, giver=self._registry.name)
            older, oldest = ("", "") if before is None else self.checkpoints.by_age(before)
            given = replace(given, older=older, taken=target == NOBODY, error=None, copied=False, unasked=unasked)
            self.checkpoints.name(before, given)
        except BaseException:
            runtime.held = held
            raise
        failpoint("view-given")
        if before is not None:
            artifact.delete_one(self._storage, before.name, oldest)
        return given

    def _written(self, runtime: ViewRuntime, before: Owned | None, unasked: bool = False) -> Owned:
        """Writes a view's states; its entry, which names them."""
        self._pin(runtime, _AT_ONCE if unasked else entering.PATIENCE)
        out = stored_out if unasked else taken_out
        leaving, _ = out(self._database, self._database.replicas, runtime)
        entry = self._entry(runtime, leaving, before)
        handover = artifact.write(self._storage, entry.name, leaving)
        failpoint("view-written")
        return replace(entry, handover=handover, at=leaving.at)

    def _entry(self, runtime: ViewRuntime, leaving: LeavingView, before: Owned | None) -> Owned:
        """With what the view is called now. One that has never left knows its name before anybody else does."""
        if before is not None:
            return replace(before, view=qualified(runtime.view))
        if not runtime.shared:
            name = secrets.token_hex(8)
            self._database.storage.share(runtime.view.oid, name)
            runtime.shared = name
        home = self._registry.name
        return Owned(runtime.shared, qualified(runtime.view), home, leaving.streams[0].oid, home, home, "", leaving.at)

    def _pin(self, runtime: ViewRuntime, patience: float) -> None:
        """Of a view's streams the log keeps from now on what comes; all stay defined as they are. Raises 0A000, and
        55P03 where a transaction defines something for so many seconds."""
        writer = self._database.tables.begin_write(patience)
        try:
            require_movable(self._database, runtime)
            with self._database.sequencer.lock:
                if not self._is_guest(runtime) and runtime.held is None:
                    runtime.held = min(progress.durable for progress in runtime.paths)
        finally:
            writer.rollback()

    # Adopting ---------------------------------------------------------------------------------------------------

    def adopt(self, home: str) -> int:
        """The streams of a server that is gone for good are this one's, with the views over them; how many views. Asked
        again it goes on where it was. Raises 42704, 55000, 55006, 58P01, and why a view cannot be taken."""
        with self._lock:
            self._gather(home)
            with adopting.closed(self._database, home):
                failpoint("home-closed")
                self._gather(home)  # what another has claimed in between, as nobody can from now on
                with self.checkpoints.lock:
                    adopting.adopt(self._database, self.ownership, home)
            failpoint("streams-adopted")
            return sum(self._settle_of(owned) for owned in self.ownership.all() if owned.home == home)

    def _gather(self, home: str) -> None:
        """All views of a server are here. Raises what prevents that."""
        for owned in adopting.wanted(self._registry, self.ownership, home):
            self._claim(owned)
        adopting.require_taken(self._database, self.ownership, home)

    def _claim(self, owned: Owned) -> None:
        """This server goes on with a view, whoever else does or is to."""
        given = adopting.given(owned, self._registry.name)
        try:
            if given != owned:
                self.ownership.change(owned, given)
        except SqlError:
            found = self.ownership.get(owned.name)
            if found is None or found == owned:
                raise
            self._claim(found)  # another inherited it meanwhile
        else:
            failpoint("view-claimed")
            self._settle(given)

    def _settle_of(self, owned: Owned) -> bool:
        """A view of a home that was adopted is here, or nowhere; whether it is here."""
        is_here = any(item.shared == owned.name for item in self._database.runtimes())
        if is_here:
            self._settle(owned)
        else:
            self.ownership.delete(owned.name)
            artifact.delete(self._storage, owned.name)
        return is_here

    def _settle_adopted(self, owned: Owned, runtime: ViewRuntime) -> None:
        """A view whose home this server has become."""
        after = adopting.at_home(owned, runtime, self._registry.name)
        self.ownership.change(owned, after)
        artifact.delete(self._storage, owned.name)
        place(self._database, runtime, after)

    # Draining ---------------------------------------------------------------------------------------------------

    def leaving(self) -> list[ViewRuntime]:
        """The views that leave where this server is drained, and are still here."""
        runtimes = self._database.runtimes()
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
                self._given.add(self._give(runtime, target).name)
                self.left += 1
            except SqlError as error:
                if not error.sqlstate.startswith(_PASSING):
                    _LOGGER.warning("view %s stays: %s", runtime.view.name, error)
                    self._staying.add(runtime.view.oid)

    # Taking -----------------------------------------------------------------------------------------------------

    def _round(self) -> None:
        self._keep_up(self._note.is_due())
        try:
            self._look()
            self._prevented = ""
        except (OSError, SqlError) as error:
            if str(error) != self._prevented:
                _LOGGER.warning("views do not go or come: %s", error)
            self._prevented = str(error)

    def _keep_up(self, noting: bool) -> None:
        """Other servers' rows come here also while nobody asks for them, unless the views lag behind."""
        for replica in self._database.replicas.all():
            found = [self._database.streams.get(oid) for oid in replica.streams]
            runtimes = [runtime for runtime in found if runtime is not None]
            told = None
            try:
                if all(map(self._database.admission.is_open, replica.streams)):
                    replica.catch_up()
                    if noting:
                        replica.note()
            except SqlError as error:
                if self._thread.is_ending:
                    continue
                told = error.message
                if any(runtime.error is None for runtime in runtimes):
                    _LOGGER.warning('rows of server "%s" do not come: %s', replica.home, error)
            for runtime in runtimes:
                runtime.error = told

    def _look(self) -> None:
        """One round: what is given to this server is taken, and what others have taken is left to them."""
        with self._lock:
            entries = {owned.name: owned for owned in self.ownership.all()}
            # What others have is left first: a replica that only it needs may lack what its home has forgotten.
            for owned in sorted(entries.values(), key=lambda owned: owned.owner == self._registry.name):
                self._try(owned)
            self._drain()
            for runtime in self._database.runtimes():
                if runtime.shared and runtime.shared not in entries and self._is_guest(runtime):
                    self._leave_dropped(runtime)

    def _leave_dropped(self, runtime: ViewRuntime) -> None:
        """A guest's entry is not there, or cannot be read: then nobody knows."""
        try:
            is_dropped = self.ownership.get(runtime.shared) is None
        except SqlError as error:
            if error.sqlstate != "XX001":
                raise
        else:
            if is_dropped:
                entering.leave(self._database, runtime)

    def _try(self, owned: Owned) -> None:
        """What is done for one view; what prevents that prevents nothing for others."""
        try:
            self._settle(self._inherited(owned))
            self._told.pop(owned.name, None)
        except SqlError as error:
            if self._told.get(owned.name) != str(error):
                _LOGGER.warning("view %s does not go or come: %s", owned.view, error)
            self._told[owned.name] = str(error)

    def _inherited(self, owned: Owned) -> Owned:
        """A view's entry, which becomes this server's where nobody else can go on with it."""
        after = self._heirs.entry(owned)
        if after is None or time.monotonic() < self._refused.get(owned.handover, 0):
            return owned
        _LOGGER.warning("view %s of server %s, which is gone, is taken over", owned.view, owned.owner)
        self.ownership.change(owned, after)
        failpoint("view-inherited")
        return after

    def _settle(self, owned: Owned) -> None:
        """This server does its part for one view."""
        runtime = next((item for item in self._database.runtimes() if item.shared == owned.name), None)
        if owned.home == self._registry.name and runtime is None:
            self.ownership.delete(owned.name)  # it was dropped
            artifact.delete(self._storage, owned.name)
        elif runtime is not None and owned.owner == owned.home == self._registry.name and owned.taken:
            self._place_here(runtime, owned)
        elif owned.owner == self._registry.name and not owned.taken:
            self._take(owned, runtime)
        elif runtime is not None and owned.home == self._registry.name:
            place(self._database, runtime, owned, self._registry.address(owned.owner if owned.taken else owned.giver))
        elif runtime is not None and owned.owner == self._registry.name and self._is_own(runtime):
            self._settle_adopted(owned, runtime)
        elif owned.owner == self._registry.name and (runtime is None or runtime.is_lost):
            self._restore(owned, runtime)
        elif runtime is not None and owned.owner != self._registry.name and owned.taken:
            entering.leave(self._database, runtime)

    def _place_here(self, runtime: ViewRuntime, owned: Owned) -> None:
        """What an entry says of a view that is at its home, unless more is about to be said."""
        with self.checkpoints.naming:
            if not self.checkpoints.is_writing(runtime):
                place(self._database, runtime, owned)

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
            self.ownership.change(owned, home)

    def _take(self, owned: Owned, runtime: ViewRuntime | None) -> None:
        """This server goes on with a view, or says why not."""
        failpoint("view-seen")
        try:
            if owned.home == self._registry.name:
                assert runtime is not None
                self._come_back(owned, runtime)
            else:
                self._enter(owned, runtime)
        except SqlError as error:
            if error.sqlstate.startswith(_PASSING):
                raise
            _LOGGER.warning("view %s of server %s cannot be taken: %s", owned.view, owned.home, error)
            self._refused[owned.handover] = inf if error.sqlstate == "XX001" else time.monotonic() + _AGAIN
            told, before = (error.sqlstate, error.message), owned.owner if owned.taken else owned.giver
            self.ownership.change(owned, replace(owned, owner=before, taken=True, error=told))
            return
        failpoint("view-begun")
        is_lent = owned.unasked and owned.home != self._registry.name
        taken = replace(owned, taken=True, copied=False, unasked=is_lent)
        self.ownership.change(owned, taken)
        if runtime is not None and owned.home == self._registry.name:  # nobody else has it until this server gives it
            artifact.delete(self._storage, owned.name)
            place(self._database, runtime, taken)

    def _enter(self, owned: Owned, runtime: ViewRuntime | None) -> None:
        if runtime is not None and runtime.handover == owned.handover and not runtime.is_lost:
            return
        leaving = rebuilding.read(self._database, owned, None, self.checkpoints.damaged)
        if runtime is not None:  # as it was here before
            entering.leave(self._database, runtime)
        entering.enter(self._database, owned, leaving)

    def _come_back(self, owned: Owned, runtime: ViewRuntime) -> None:
        if owned.failure is not None:
            sqlstate, message = owned.failure
            runtime.fail(ViewError(SqlError(sqlstate, message), owned.at))
            runtime.come_back(owned.handover, owned.at)
            return
        if runtime.handover == owned.handover:
            if runtime.away is not None:  # it had begun already when others took it for one that had not
                runtime.come_back(owned.handover, runtime.paths[0].durable)
                self._database.versions.stir(runtime.view.oid)
            return
        if runtime.error is not None and self._database.storage.known(runtime.view.oid) is None:
            raise runtime.error.error
        leaving = rebuilding.read(self._database, owned, runtime, self.checkpoints.damaged)
        handover = artifact.as_handover(owned, leaving, runtime.view.oid, runtime.program)
        self._database.storage.come_back(runtime.view.oid, handover, owned.at)
        failpoint("view-back")
        runtime.come_back(owned.handover, owned.at)
        self._database.versions.stir(runtime.view.oid)

    def look_for(self, runtime: ViewRuntime) -> None:
        """Finds out where a view is now, of which something else was known."""
        with contextlib.suppress(SqlError), self._lock:
            owned = self.ownership.get(runtime.shared)
            if owned is not None:
                self._settle(owned)

    def _is_own(self, runtime: ViewRuntime) -> bool:
        stream = self._database.streams.get(runtime.paths[0].path.stream)
        return stream is not None and not home_of(stream.stream)

    def _is_guest(self, runtime: ViewRuntime) -> bool:
        return replica_of(self._database.replicas, runtime) is not None


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

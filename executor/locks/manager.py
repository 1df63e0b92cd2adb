"""The lock manager: the holders and waiters of each target, their modes and their order.

A request is granted if no other owner holds a conflicting mode and no request before it in the target's queue wants
one. If a waiting request conflicts with locks that the new request's owner holds, the new request goes before it in the
queue, so that an owner never waits for a request that waits for this owner. The request that closes a circle of waits
gets 40P01 at once. A thread waits in ``take``; an event loop calls ``ask`` and is called back.

https://www.postgresql.org/docs/15/explicit-locking.html
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError
from executor.locks.modes import CONFLICTS, EXCLUDING, Mode
from executor.locks.targets import Relation, Row, Target

#: Seconds between two checks whether the statement was cancelled.
_POLL: Final = 0.05
_COUNTS: Final = max(Mode) + 1


class Owner:
    """A session; its own locks never conflict with each other. ``pid`` is its process number for clients, 0 for
    none."""

    __slots__ = ("awaited", "held", "pid")

    def __init__(self, pid: int = 0) -> None:
        self.pid = pid
        #: How often the owner holds each target in each mode. Changed by the manager.
        self.held: dict[Target, dict[Mode, int]] = {}
        self.awaited: Request | None = None


class Request:
    """One owner's request for a target in a mode for which it must wait."""

    __slots__ = ("granted", "is_granted", "mode", "owner", "target")

    def __init__(self, owner: Owner, target: Target, mode: Mode, granted: Callable[[], object]) -> None:
        self.owner, self.target, self.mode = owner, target, mode
        #: Called once, on the thread that releases the lock; it must not block.
        self.granted = granted
        self.is_granted = False


class Shown(Struct, frozen=True):
    """A lock as pg_locks lists it."""

    owner: Owner
    target: Target
    mode: Mode
    granted: bool


class _Queue:
    """The holders and the waiting requests of one target."""

    __slots__ = ("counts", "held", "owners", "waiting")

    def __init__(self) -> None:
        self.owners: dict[Owner, dict[Mode, int]] = {}
        #: How many owners hold each mode.
        self.counts = [0] * _COUNTS
        #: A bit for each mode that an owner holds: ``1 << mode``.
        self.held = 0
        self.waiting: list[Request] = []

    def is_held_against(self, owner: Owner, mode: Mode) -> bool:
        """Whether other owners hold a mode that excludes this one."""
        if not self.held & EXCLUDING[mode]:
            return False
        own = self.owners.get(owner, ())
        return any(self.counts[each] > (each in own) for each in CONFLICTS[mode])

    def is_wanted_against(self, owner: Owner, mode: Mode) -> bool:
        """Whether requests of others for a conflicting mode are in the queue before the place of a new request."""
        before = self.waiting[: self.place_of(owner)]
        return any(each.mode in CONFLICTS[mode] and each.owner is not owner for each in before)

    def place_of(self, owner: Owner) -> int:
        """The place of an owner's new request in the queue: before the first request that the owner's own locks
        block."""
        own = self.owners.get(owner)
        if own:
            for place, request in enumerate(self.waiting):
                if not CONFLICTS[request.mode].isdisjoint(own):
                    return place
        return len(self.waiting)

    def blockers(self, owner: Owner, mode: Mode, place: int) -> Iterator[Owner]:
        """The other owners that a request at a place in the queue waits for."""
        for other, modes in self.owners.items():
            if other is not owner and not CONFLICTS[mode].isdisjoint(modes):
                yield other
        for request in self.waiting[:place]:
            if request.owner is not owner and request.mode in CONFLICTS[mode]:
                yield request.owner


class Locks:
    """All locks of a server. Methods may be called from any thread."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._queues: dict[Target, _Queue] = {}
        #: The number of granted and waiting requests in ACCESS EXCLUSIVE mode, by a relation's oid: a read of any other
        #: relation needs no look at the locks.
        self.barriers: dict[int, int] = {}

    # Taking -----------------------------------------------------------------------------------------------------

    def take(
        self,
        owner: Owner,
        target: Target,
        mode: Mode,
        waits: bool = True,
        timeout: float = 0.0,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Takes a lock; returns False if it is not free and ``waits`` is false.

        Waits at most ``timeout`` seconds (0: without limit), then raises 55P03; raises 57014 once ``is_cancelled`` is
        true, and 40P01 if the wait would close a circle.
        """
        if not self.take_free(owner, ((target, mode),)):
            return True
        if not waits:
            return False
        event = threading.Event()
        request = self.ask(owner, target, mode, event.set)
        if request is None:
            return True
        deadline = time.monotonic() + timeout if timeout > 0 else None
        try:
            while not event.wait(_POLL if deadline is None else max(0.0, min(_POLL, deadline - time.monotonic()))):
                if is_cancelled():
                    raise SqlError("57014", "canceling statement due to user request")
                if deadline is not None and time.monotonic() >= deadline:
                    raise SqlError("55P03", "canceling statement due to lock timeout")
        except BaseException:
            if self.withdraw(request):
                self.release(owner, ((target, mode),))
            raise
        return True

    def ask(self, owner: Owner, target: Target, mode: Mode, granted: Callable[[], object]) -> Request | None:
        """Takes a lock, or waits for it without a thread: ``granted`` is called once the owner has it. Returns None if
        the owner has it now. Raises 40P01."""
        with self._mutex:
            if self._take_free(owner, target, mode):
                return None
            queue = self._queues[target]
            request = Request(owner, target, mode, granted)
            self._begin_wait(queue, request, queue.place_of(owner))
            return request

    def take_free(self, owner: Owner, locks: Sequence[tuple[Target, Mode]]) -> int:
        """Takes locks in order until one is not free, without waiting; returns how many are left."""
        with self._mutex:
            for place, (target, mode) in enumerate(locks):
                if not self._take_free(owner, target, mode):
                    return len(locks) - place
        return 0

    def _take_free(self, owner: Owner, target: Target, mode: Mode) -> bool:
        queue = self._queues.get(target)
        if queue is None:  # as most targets are
            queue = self._queues[target] = _Queue()
        else:
            own = queue.owners.get(owner)
            if own is not None and mode in own:
                own[mode] += 1
                return True
            if queue.is_held_against(owner, mode) or (queue.waiting and queue.is_wanted_against(owner, mode)):
                return False
        self._grant(queue, owner, target, mode)
        if mode is Mode.ACCESS_EXCLUSIVE:
            self._note_barrier(target, mode, +1)
        return True

    def _begin_wait(self, queue: _Queue, request: Request, place: int) -> None:
        circle = self._circle(request.owner, list(queue.blockers(request.owner, request.mode, place)))
        if circle:
            raise _deadlock(request, circle)
        queue.waiting.insert(place, request)
        request.owner.awaited = request
        self._note_barrier(request.target, request.mode, +1)

    def _grant(self, queue: _Queue, owner: Owner, target: Target, mode: Mode) -> None:
        own = queue.owners.get(owner)
        if own is None:
            own = queue.owners[owner] = owner.held[target] = {}
        count = own[mode] = own.get(mode, 0) + 1
        if count == 1:
            queue.counts[mode] += 1
            queue.held |= 1 << mode

    def _note_barrier(self, target: Target, mode: Mode, change: int) -> None:
        if mode is Mode.ACCESS_EXCLUSIVE and isinstance(target, Relation):
            count = self.barriers.get(target.oid, 0) + change
            if count:
                self.barriers[target.oid] = count
            else:
                del self.barriers[target.oid]

    # Giving back ------------------------------------------------------------------------------------------------

    def withdraw(self, request: Request) -> bool:
        """Ends a wait. Returns True if the lock was granted meanwhile; the owner then keeps it."""
        with self._mutex:
            if request.is_granted:
                return True
            queue = self._queues[request.target]
            queue.waiting.remove(request)
            request.owner.awaited = None
            self._note_barrier(request.target, request.mode, -1)
            self._wake(request.target, queue)
            return False

    def release(self, owner: Owner, locks: Iterable[tuple[Target, Mode]]) -> None:
        """Releases locks, each once. Locks that are not held are skipped."""
        with self._mutex:
            for target, mode in locks:
                self._release(owner, target, mode)

    def give_back(self, owner: Owner, target: Target, mode: Mode) -> bool:
        """Releases one lock once; returns whether it was held."""
        with self._mutex:
            return self._release(owner, target, mode)

    def _release(self, owner: Owner, target: Target, mode: Mode) -> bool:
        own = owner.held.get(target)
        count = 0 if own is None else own.get(mode, 0)
        if own is None or not count:
            return False
        if count > 1:
            own[mode] = count - 1
            return True
        queue = self._queues[target]
        del own[mode]
        queue.counts[mode] -= 1
        if not queue.counts[mode]:
            queue.held &= ~(1 << mode)
        if mode is Mode.ACCESS_EXCLUSIVE:
            self._note_barrier(target, mode, -1)
        if not own:
            del owner.held[target], queue.owners[owner]
        if queue.waiting:
            self._wake(target, queue)
        elif not queue.owners:
            del self._queues[target]
        return True

    def _wake(self, target: Target, queue: _Queue) -> None:
        """Grants the requests that can proceed, in the queue's order."""
        left: list[Request] = []
        for request in queue.waiting:
            waits = queue.is_held_against(request.owner, request.mode) or any(
                each.mode in CONFLICTS[request.mode] and each.owner is not request.owner for each in left
            )
            if waits:
                left.append(request)
                continue
            self._grant(queue, request.owner, target, request.mode)
            request.is_granted, request.owner.awaited = True, None
            request.granted()
        queue.waiting = left

    # Looking ----------------------------------------------------------------------------------------------------

    def shown(self) -> list[Shown]:
        """All locks that are held or waited for."""
        with self._mutex:
            found = [
                Shown(owner, target, mode, True)
                for target, queue in self._queues.items()
                for owner, modes in queue.owners.items()
                for mode in modes
            ]
            waiting = (request for queue in self._queues.values() for request in queue.waiting)
            return found + [Shown(request.owner, request.target, request.mode, False) for request in waiting]

    def blockers(self, owner: Owner) -> list[Owner]:
        """The owners that an owner waits for."""
        with self._mutex:
            return list(dict.fromkeys(self._blocking(owner)))

    def rows_of(self, oid: int, owner: Owner, mode: Mode) -> list[Row]:
        """The rows of a table on which others hold locks that conflict with an owner's mode."""
        with self._mutex:
            return [
                target
                for target, queue in self._queues.items()
                if isinstance(target, Row) and target.oid == oid and queue.is_held_against(owner, mode)
            ]

    def _blocking(self, owner: Owner) -> list[Owner]:
        request = owner.awaited
        if request is None:
            return []
        queue = self._queues[request.target]
        return list(queue.blockers(owner, request.mode, queue.waiting.index(request)))

    def _circle(self, owner: Owner, blockers: list[Owner]) -> list[Owner]:
        """The owners in a circle of waits that would result if an owner waited for ``blockers``; empty if none
        would."""
        seen = dict[Owner, Owner | None](dict.fromkeys(blockers))
        pending = list(seen)
        while pending:
            other = pending.pop()
            for blocking in self._blocking(other):
                if blocking is owner:
                    return _path(seen, other)
                if blocking not in seen:
                    seen[blocking] = other
                    pending.append(blocking)
        return []


def _path(seen: dict[Owner, Owner | None], last: Owner | None) -> list[Owner]:
    found = []
    while last is not None:
        found.append(last)
        last = seen[last]
    return found[::-1]


def _deadlock(request: Request, circle: list[Owner]) -> SqlError:
    """The error 40P01, which names the processes that wait for each other."""
    pids = [request.owner.pid, *(owner.pid for owner in circle)]
    modes = [request.mode, *(owner.awaited.mode for owner in circle if owner.awaited is not None)]
    targets = [request.target, *(owner.awaited.target for owner in circle if owner.awaited is not None)]
    lines = (
        f"Process {pid} waits for {mode.shown} on {target}; blocked by process {by}."
        for pid, mode, target, by in zip(pids, modes, targets, [*pids[1:], pids[0]], strict=True)
    )
    return SqlError("40P01", "deadlock detected", "\n".join(lines), hint="See server log for query details.")

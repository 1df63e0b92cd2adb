"""Advisory locks: numbers that sessions lock for one another, and that mean nothing to the server.

Owns: who holds and who waits, as PostgreSQL has it: exclusive or shared, counted, of a session until it gives them back
or of its transaction. Who asks waits behind those who asked before; who closes a circle of waiting gets 40P01 at once.

https://www.postgresql.org/docs/15/explicit-locking.html#ADVISORY-LOCKS
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, MutableMapping
from typing import Any, Final, TypeVar

from msgspec import Struct

from catalog.errors import SqlError
from executor.transaction import Transaction
from planner.functions import UNLOCK_ALL

#: Seconds from one look at whether the statement was cancelled to the next.
_POLL: Final = 0.05
EXCLUSIVE: Final = "ExclusiveLock"
SHARED: Final = "ShareLock"


class Key(Struct, frozen=True):
    """What is locked, in pg_locks' columns: the halves of one bigint (``parts`` 1), or two integers (2)."""

    high: int
    low: int
    parts: int

    @staticmethod
    def of(*numbers: int) -> Key:
        """The key of a function's arguments."""
        if len(numbers) == 1:
            return Key(numbers[0] >> 32 & 0xFFFFFFFF, numbers[0] & 0xFFFFFFFF, 1)
        return Key(numbers[0] & 0xFFFFFFFF, numbers[1] & 0xFFFFFFFF, 2)


class Lock(Struct, frozen=True):
    """A key in a mode, as one session holds or wants it."""

    holder: Holder
    key: Key
    mode: str

    def excludes(self, other: Lock) -> bool:
        """Whether two sessions cannot have these at once."""
        return self.key == other.key and self.holder is not other.holder and EXCLUSIVE in (self.mode, other.mode)


class Locks:
    """All of a server. Safe for many threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        #: By key: what is held how often, and what is waited for in the order in which it was asked for.
        self._held: dict[Key, Counter[Lock]] = {}
        self._waiting: dict[Key, dict[Lock, None]] = {}
        #: The same by session, each of which waits for one lock at most.
        self._holdings: dict[Holder, dict[Lock, None]] = {}
        self._awaited: dict[Holder, Lock] = {}

    def take(self, lock: Lock, waits: bool, timeout: float = 0.0) -> bool:
        """Takes a lock; False where it is not free and ``waits`` is not said. Raises 40P01, 55P03 and 57014."""
        deadline = time.monotonic() + timeout if timeout > 0 else float("inf")
        with self._changed:
            if any(self._blockers(lock)) and (not waits or not self._await(lock, deadline)):
                return False
            self._held.setdefault(lock.key, Counter())[lock] += 1
            self._holdings.setdefault(lock.holder, {})[lock] = None
            return True

    def _await(self, lock: Lock, deadline: float) -> bool:
        self._waiting.setdefault(lock.key, {})[lock] = None
        self._awaited[lock.holder] = lock
        try:
            while any(self._blockers(lock)):
                if self._is_circle(lock):
                    raise SqlError("40P01", "deadlock detected")
                if lock.holder.is_cancelled():
                    raise SqlError("57014", "canceling statement due to user request")
                if time.monotonic() >= deadline:
                    raise SqlError("55P03", "canceling statement due to lock timeout")
                self._changed.wait(_POLL)
            return True
        finally:
            del self._awaited[lock.holder]
            _remove(self._waiting, lock.key, lock)
            self._changed.notify_all()

    def _blockers(self, lock: Lock) -> Iterator[Holder]:
        """Who has, or has asked before for, what excludes a lock."""
        held = self._held.get(lock.key, ())
        if lock in held:
            return
        yield from (other.holder for other in held if other.excludes(lock))
        if any(other.holder is lock.holder for other in held):
            return  # nobody who waits for this session could come first
        for other in self._waiting.get(lock.key, ()):
            if other == lock:
                return
            if other.excludes(lock):
                yield other.holder

    def _is_circle(self, lock: Lock) -> bool:
        """Whether who asks waits for itself, also by way of the one writer of tables."""
        seen, stack = set[int](), list(self._blockers(lock))
        while stack:
            holder = stack.pop()
            if holder is lock.holder:
                return True
            if id(holder) not in seen:
                seen.add(id(holder))
                stack += self._blocking(holder)
                if holder.awaits_writer():
                    stack += [other for other in self._awaited if other.has_writer()]
        return False

    def _blocking(self, holder: Holder) -> list[Holder]:
        awaited = self._awaited.get(holder)
        return [] if awaited is None else list(self._blockers(awaited))

    def give_back(self, lock: Lock) -> bool:
        """Gives a lock back once; whether it was held."""
        with self._changed:
            held = self._held.get(lock.key, Counter())
            if lock not in held:
                return False
            held[lock] -= 1
            if not held[lock]:
                _remove(self._held, lock.key, lock)
                _remove(self._holdings, lock.holder, lock)
                self._changed.notify_all()
            return True

    def of(self, holder: Holder) -> tuple[list[Lock], list[Lock]]:
        """What a session holds and what it waits for."""
        with self._changed:
            awaited = self._awaited.get(holder)
            return list(self._holdings.get(holder, ())), [] if awaited is None else [awaited]

    def blockers(self, holder: Holder) -> list[Holder]:
        """The sessions that a session waits for."""
        with self._changed:
            return list(dict.fromkeys(self._blocking(holder)))


_Of = TypeVar("_Of", bound=Hashable)
_Locks = TypeVar("_Locks", bound=MutableMapping[Lock, Any])


def _remove(locks: dict[_Of, _Locks], of: _Of, lock: Lock) -> None:
    """A lock is none of those of a key or session any more."""
    del locks[of][lock]
    if not locks[of]:
        del locks[of]


class Holder:
    """What one session has of the locks. Whether it was cancelled, and whether it has or awaits the lock of the tables'
    writer, it asks the session."""

    def __init__(
        self,
        locks: Locks,
        is_cancelled: Callable[[], bool],
        has_writer: Callable[[], bool],
        awaits_writer: Callable[[], bool],
    ) -> None:
        self.locks = locks
        self.is_cancelled, self.has_writer, self.awaits_writer = is_cancelled, has_writer, awaits_writer
        self._own = Counter[Lock]()  # the session's; others are its transaction's

    def call(self, function: str, numbers: list[int], transaction: Transaction, timeout: float) -> bool:
        """One of PostgreSQL's functions of advisory locks; False where nothing was taken or given back."""
        if function == UNLOCK_ALL:
            self.give_back_all()
            return True
        lock = Lock(self, Key.of(*numbers), SHARED if function.endswith("_shared") else EXCLUSIVE)
        if "unlock" in function:
            return self._give_back(lock)
        if not self.locks.take(lock, "_try_" not in function, timeout):
            return False
        if "_xact_" in function:
            transaction.releases.append(lambda: self.locks.give_back(lock))
        else:
            self._own[lock] += 1
        return True

    def _give_back(self, lock: Lock) -> bool:
        if self._own[lock] <= 0:
            return False
        if self._own[lock] > 1:
            self._own[lock] -= 1
        else:
            del self._own[lock]
        return self.locks.give_back(lock)

    def give_back_all(self) -> None:
        """All that are the session's."""
        for lock in list(self._own.elements()):
            self._give_back(lock)

"""Advisory locks: numbers that sessions lock for one another, and that mean nothing to the server.

Owns: which locks a session keeps until it releases them; all others belong to its transaction. The lock manager has the
waiting.

https://www.postgresql.org/docs/15/explicit-locking.html#ADVISORY-LOCKS
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from executor.locks.manager import Locks, Owner
from executor.locks.modes import Mode
from executor.locks.targets import Advisory, advisory
from executor.transactions.transaction import Transaction
from planner.algebra.functions import UNLOCK_ALL

EXCLUSIVE: Final = Mode.EXCLUSIVE
SHARED: Final = Mode.SHARE


class Holder:
    """What one session has of the locks."""

    def __init__(self, locks: Locks, owner: Owner, is_cancelled: Callable[[], bool]) -> None:
        self._locks, self._owner = locks, owner
        self._is_cancelled = is_cancelled
        self._own = Counter[tuple[Advisory, Mode]]()  # the session's; others are its transaction's

    def call(self, function: str, numbers: list[int], transaction: Transaction, timeout: float) -> bool:
        """One of PostgreSQL's functions of advisory locks; False where nothing was taken or given back. Raises 40P01,
        55P03 and 57014."""
        if function == UNLOCK_ALL:
            self.give_back_all()
            return True
        target, mode = advisory(*numbers), SHARED if function.endswith("_shared") else EXCLUSIVE
        if "unlock" in function:
            return self._give_back(target, mode)
        waits = "_try_" not in function
        if "_xact_" in function:
            if not waits:
                return transaction.locks.try_take(target, mode)
            transaction.locks.take(target, mode)
            return True
        if not self._locks.take(self._owner, target, mode, waits, timeout, self._is_cancelled):
            return False
        self._own[target, mode] += 1
        return True

    def _give_back(self, target: Advisory, mode: Mode) -> bool:
        if self._own[target, mode] <= 0:
            return False
        self._own[target, mode] -= 1
        return self._locks.give_back(self._owner, target, mode)

    def give_back_all(self) -> None:
        """All that are the session's."""
        self._locks.release(self._owner, list(self._own.elements()))
        self._own.clear()

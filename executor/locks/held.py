"""The locks of one transaction: which it has taken, and when it releases them.

Locks on rows end once the transaction's place in the log is fixed, which is before its record is on disk. All others
end with the transaction, or with ROLLBACK TO a savepoint made before they were taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from catalog.values.errors import SqlError
from executor.locks.manager import Locks, Owner
from executor.locks.modes import Mode
from executor.locks.targets import Keys, Relation, Row, Rows, Target

Taken = tuple[Target, Mode]
_OF_ROWS: Final = (Rows, Row, Keys)


class TransactionLocks:
    """One transaction's locks. Used by one thread at a time."""

    def __init__(
        self,
        locks: Locks,
        owner: Owner,
        timeout: Callable[[], float] = lambda: 0.0,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """``timeout``: the longest wait in seconds, 0 without limit."""
        self.locks, self.owner = locks, owner
        self._timeout, self._is_cancelled = timeout, is_cancelled
        #: In the order in which they were taken.
        self._taken: dict[Taken, None] = {}
        #: The lock that the last ``try_take`` did not get.
        self.refused: Taken | None = None

    def has(self, target: Target, mode: Mode) -> bool:
        """Whether the transaction has taken a lock."""
        return (target, mode) in self._taken

    def take(self, target: Target, mode: Mode, refusal: str | None = None) -> bool:
        """Takes a lock unless the transaction has it; returns whether it is new. With ``refusal``, raises 55P03 with
        that message instead of waiting. Raises 40P01, 55P03 and 57014."""
        if (target, mode) in self._taken:
            return False
        waits = refusal is None
        if not self.locks.take(self.owner, target, mode, waits, self._timeout(), self._is_cancelled):
            raise SqlError("55P03", refusal or "")
        self._taken[target, mode] = None
        return True

    def try_take(self, target: Target, mode: Mode) -> bool:
        """Takes a lock if it is free or held already; returns whether the transaction has it."""
        if (target, mode) in self._taken:
            return True
        if not self.locks.take(self.owner, target, mode, waits=False):
            self.refused = target, mode
            return False
        self._taken[target, mode] = None
        return True

    def try_all(self, wanted: Iterable[Taken]) -> bool:
        """Takes different locks, each once, in order until one is not free; returns whether all were taken."""
        taken = self._taken
        missing = [each for each in wanted if each not in taken]
        left = self.locks.take_free(self.owner, missing) if missing else 0
        if left:
            self.refused = missing[-left]
            del missing[-left:]
        taken.update(dict.fromkeys(missing))
        return not left

    def note(self, target: Target, mode: Mode) -> None:
        """Records a lock that the manager has granted to a request of an event loop."""
        if (target, mode) in self._taken:
            self.locks.give_back(self.owner, target, mode)
        self._taken[target, mode] = None

    def mark(self) -> int:
        """The current number of locks, for ``release_after``."""
        return len(self._taken)

    def release_after(self, mark: int) -> None:
        """Releases the locks that were taken since a mark."""
        self._release(list(self._taken)[mark:][::-1])

    def release_rows(self) -> None:
        """Releases the locks on rows and keys."""
        self._release([taken for taken in self._taken if isinstance(taken[0], _OF_ROWS)])

    def release_reads(self) -> None:
        """Releases the locks that protect relations while they are read."""
        self._release([item for item in self._taken if isinstance(item[0], Relation) and item[1] is Mode.ACCESS_SHARE])

    def release_all(self) -> None:
        """Releases all locks."""
        taken, self._taken = self._taken, {}
        self.locks.release(self.owner, taken)

    def _release(self, given: list[Taken]) -> None:
        for taken in given:
            del self._taken[taken]
        self.locks.release(self.owner, given)

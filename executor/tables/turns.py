"""Turns at the tables: those on an event loop who wait until nobody writes, one after the other.

A thread that waits for the writer's lock costs its client two switches of threads for every statement. Owns: the queue,
and when the next one is called: nobody has the lock. Who is called tries
again, and may find that somebody else was quicker. Knows nothing of transactions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

#: Called on the loop's thread when it is one's turn; False: that is no longer wanted.
Turn = Callable[[], bool]


class Turns:
    """A queue of those who wait. On the loop's thread, but for ``freed``."""

    def __init__(self, is_free: Callable[[], bool]) -> None:
        """``is_free``: whether whoever writes need not wait."""
        self._ask = is_free
        self._later: Callable[[Callable[[], None]], object] | None = None
        self._waiting: deque[Turn] = deque()

    def serve(self, later: Callable[[Callable[[], None]], object]) -> None:
        """``later`` has the loop's thread called from any."""
        self._later = later

    @property
    def is_free(self) -> bool:
        """Whether who is called now need not wait."""
        return self._ask()

    def wait(self, turn: Turn, first: bool = False) -> None:
        """Calls once, when it is time; before all others where one was called in vain (``first``)."""
        (self._waiting.appendleft if first else self._waiting.append)(turn)
        self.freed()

    def freed(self) -> None:
        """Somebody has ended to write."""
        if self._waiting and self._later is not None and self.is_free:
            self._later(self._next)

    def _next(self) -> None:
        while self._waiting and self.is_free:
            if self._waiting.popleft()():
                return

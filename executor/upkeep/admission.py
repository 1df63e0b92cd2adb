"""Back-pressure: a writer waits while the views of its stream lag too far behind (architecture, section 1).

The ring is bounded in memory and the log is not, so rows that some view still needs are: when a stream's committed rows
above the lowest durable frontier of its views exceed the budget, its writers wait until maintenance has caught up. Rows
are never shed. Only what is committed counts, since only that can be maintained: a transaction never waits for itself,
and a single large COPY may exceed the budget. Maintenance takes no lock that a waiting writer may hold.

Knows nothing of how the backlog is measured or of who moves frontiers; both are told to it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from catalog.values.errors import SqlError

_LOGGER = logging.getLogger(__name__)
#: Seconds for which a look at a stream's backlog holds: commits come more often than it can change much.
LOOK: Final = 0.05


class Admission:
    """Who may write to which stream. Safe for many threads."""

    def __init__(self, budget: int, backlog: Callable[[int], int], clock: Callable[[], float] = time.monotonic) -> None:
        """``backlog`` gives the bytes that some view of a stream (by oid) still needs; ``budget`` is in the same."""
        self._budget = budget
        self._backlog = backlog
        self._clock = clock
        self._moved = threading.Condition()
        self._looks: dict[int, tuple[float, bool]] = {}
        self._waiting: dict[int, int] = {}
        self._closed = False

    def is_open(self, stream: int) -> bool:
        """Whether a writer may go on at once. Never blocks."""
        now = self._clock()
        known = self._looks.get(stream)
        if known is not None and now < known[0]:
            return known[1]
        is_open = self._backlog(stream) <= self._budget
        self._looks[stream] = (now + LOOK, is_open)
        return is_open

    def waiting(self, stream: int) -> int:
        """How many writers wait."""
        return self._waiting.get(stream, 0)

    def wait(self, stream: int, name: str, is_cancelled: Callable[[], bool]) -> None:
        """Returns when a writer of the stream may go on. Raises 57014 when cancelled, 57P01 when the server ends."""
        if self.is_open(stream):
            return
        started = self._clock()
        _LOGGER.warning('a writer of stream "%s" waits: its views are more than %d bytes behind', name, self._budget)
        with self._moved:
            self._waiting[stream] = self._waiting.get(stream, 0) + 1
            try:
                while not self.is_open(stream):
                    if is_cancelled():
                        raise SqlError("57014", "canceling statement due to user request")
                    if self._closed:
                        raise SqlError("57P01", "the server is shutting down")
                    self._moved.wait(LOOK)
            finally:
                self._waiting[stream] -= 1
        _LOGGER.info('a writer of stream "%s" continues after %.1f s', name, self._clock() - started)

    def moved(self) -> None:
        """A frontier moved, or a view went: the writers look again."""
        if any(self._waiting.values()):
            with self._moved:
                self._looks.clear()
                self._moved.notify_all()

    def close(self) -> None:
        """Whoever waits is sent away."""
        with self._moved:
            self._closed = True
            self._moved.notify_all()

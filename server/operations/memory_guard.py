"""``memory_limit``: the process's resident size, and the statement or session that ends when it grows too large.

Owns: the thread that looks at the resident size, the estimate of what each session has taken, and the choice of what
ends. The size of the whole process is the only figure that counts everything; what grows between two looks is
attributed to the sessions whose threads computed meanwhile, in proportion to their processor time, and to cancelled
statements that still compute (``executor/embedded/detached_statements``). Beyond ``_HIGH`` of the limit freed memory
goes back to the system first. If that is not enough, the session with the largest estimate ends its statement with
53200, by the same way as a cancel request; where cancelled statements have more, these end first. Beyond the limit
itself the system is told to refuse what would make the process much larger, until the size is below ``_HIGH`` again: a
function that computes one value hears no interrupt, but gets no memory either.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final, Protocol

from executor.core.memory import bound_growth, give_back, resident, unbound_growth
from planner.cancellation import LEFT_BEHIND

#: The share of the limit from which on something has to end.
_HIGH: Final = 0.9
#: The bytes a second by which a process grows at most: one that writes to new memory alone.
_GROWTH: Final = 8 << 30
#: Seconds between two looks, far from the limit and near it.
_SLOW: Final = 0.1
_FAST: Final = 0.01
#: Seconds until another statement has to end, too: the first needs some time for that.
_PATIENCE: Final = 1.0
#: Seconds between two times that freed memory is given back while the size stays high.
_GIVE_BACK: Final = 0.5
#: The share of the limit by which the process may still grow beyond it.
_MARGIN: Final = 1 / 16
#: A session with less than this share of the limit is not to blame.
_BLAMELESS: Final = 1 / 32

logger = logging.getLogger(__name__)


class Account:
    """What a session's statement is estimated to have taken."""

    __slots__ = ("_seen", "clocks", "grown")

    def __init__(self) -> None:
        self.grown = 0.0  # bytes
        #: The processor clocks of the threads that work for the session now, with their times when they began.
        self.clocks: Mapping[int, float] = {}
        self._seen: dict[int, float] = {}

    def follow(self, clocks: Mapping[int, float]) -> None:
        """The clocks of the session's threads, as they come and go."""
        self.clocks = clocks

    def begin(self) -> None:
        """Another statement begins."""
        self.grown = 0.0

    def used(self) -> float:
        """Seconds of processor time since the last look."""
        clocks, before, self._seen = dict(self.clocks), self._seen, {}
        total = 0.0
        for clock, began in clocks.items():
            with suppress(OSError):  # the thread has ended
                self._seen[clock] = now = time.clock_gettime(clock)
                total += max(now - max(before.get(clock, began), began), 1e-6)
        return total


class Holder(Protocol):
    """A session, as the guard sees it."""

    account: Account

    @property
    def held_bytes(self) -> int:
        """Bytes that are known to be held for it, whether or not it runs a statement."""
        ...

    def exceed(self) -> None:
        """Ends what it does with 53200, or the session where that holds memory between statements."""
        ...


class MemoryGuard:
    """The thread. ``holders`` and ``exceed`` are called on the event loop's thread by way of ``call``."""

    def __init__(
        self,
        limit: int,
        holders: Callable[[], Iterable[Holder]],
        call: Callable[[Callable[[], None]], None],
        flush: Callable[[], None],
    ) -> None:
        """``flush`` has the engine give freed memory back."""
        self._flush = flush
        self._limit = limit
        self._holders = holders
        self._call = call
        self._last = resident()
        #: Of cancelled statements that still compute.
        self._left = Account()
        self._left.follow(LEFT_BEHIND)
        self._given_back = self._ended = 0.0
        self._is_bound = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory guard", daemon=True)

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def stop(self) -> None:
        """Looks no more; what ends the server gets the memory that it needs."""
        self._stopped.set()
        self._thread.join()
        if self._is_bound:
            unbound_growth()

    def _watch(self) -> None:
        wait = _SLOW
        while not self._stopped.wait(wait):
            try:
                wait = self._look()
            except Exception as error:  # without memory, the next look may succeed
                logger.debug("could not measure the memory: %s", error)

    def _look(self) -> float:
        """Looks once; seconds until the next look."""
        size = resident()
        self._attribute(size - self._last)
        if size > self._limit * _HIGH:
            size = self._relieve(size)
        self._bound(size)
        self._last = size
        return min(max((self._limit * _HIGH - size) / _GROWTH, _FAST), _SLOW)

    def _attribute(self, grown: int) -> None:
        if grown <= 0:
            return
        if not LEFT_BEHIND:
            self._left.begin()
        accounts = [self._left, *(holder.account for holder in self._holders())]
        used = [(account, account.used()) for account in accounts]
        total = sum(share for _, share in used)
        for account, share in used:
            if share:
                account.grown += grown * share / total

    def _bound(self, size: int) -> None:
        """The last resort, and its end."""
        if size > self._limit and not self._is_bound:
            logger.warning("memory_limit = %d is reached: larger allocations fail for now", self._limit)
            bound_growth(int(self._limit * _MARGIN))
            self._is_bound = True
        elif size < self._limit * _HIGH and self._is_bound:
            unbound_growth()
            self._is_bound = False

    def _relieve(self, size: int) -> int:
        """Gives freed memory back, and ends the largest statement where that was not enough; the size then."""
        now = time.monotonic()
        if now - self._given_back >= _GIVE_BACK:
            self._given_back = now
            self._flush()
            give_back()
            size = resident()
        if size > self._limit * _HIGH and now - self._ended >= _PATIENCE:
            self._ended = now
            self._call(self._end_largest)
        return size

    def _end_largest(self) -> None:
        """On the event loop's thread."""
        sizes = [(max(holder.account.grown, holder.held_bytes), holder) for holder in self._holders()]
        size, largest = max(sizes, key=lambda item: item[0], default=(0.0, None))
        if largest is None or size < self._limit * _BLAMELESS:
            logger.warning(
                "the process uses %d bytes of memory_limit = %d, and they belong to no session", resident(), self._limit
            )
            return
        if self._left.grown > size:
            logger.warning("cancelled statements that have not ended hold about %d bytes", self._left.grown)
            return
        logger.warning("a statement exceeds memory_limit = %d: it holds about %d bytes", self._limit, size)
        largest.exceed()

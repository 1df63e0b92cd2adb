"""One budget for the rows that all traces of a server hold in memory.

Owns: how many bytes each trace holds, their sum, and which trace gives memory back where the sum exceeds the budget:
the one that has not been read for the longest time, then the next. What a trace gives back can be had again: a stream's
rows from the log, a state's from storage, a table's from the engine. How a trace gives it back is the trace's own.

A trace counts its bytes under its own lock. ``keep`` is called without that lock, since it takes those of other traces.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from operator import attrgetter
from typing import Final

import pyarrow as pa

#: Gives back at least so many bytes, if the trace has them and no reader is at work on them.
GiveBack = Callable[[int], None]

#: Bytes of buffers that are not worth an exact account.
_LITTLE: Final = 256 << 10


def size_of(rows: pa.RecordBatch | pa.Table) -> int:
    """Bytes in memory. The part that a slice has of shared buffers is only measured if it may be large: that takes 30
    to 130 us, and the size of the buffers 3."""
    whole: int = rows.get_total_buffer_size()
    return whole if whole <= _LITTLE else rows.nbytes


class Held:
    """What one trace has in memory. Safe for many threads."""

    __slots__ = ("_budget", "bytes", "give_back", "last_read")

    def __init__(self, budget: TraceBudget, give_back: GiveBack) -> None:
        self._budget = budget
        self.give_back = give_back
        self.bytes = 0
        #: Greater than that of every trace that was read before.
        self.last_read = 0
        self.read()

    def read(self) -> None:
        """Somebody reads the trace."""
        self.last_read = next(self._budget.reads)

    def add(self, size: int) -> None:
        """The trace holds so many bytes more; fewer, where it is negative."""
        self._budget.count(self, size)

    def set(self, size: int) -> None:
        """The trace holds so many bytes."""
        if size != self.bytes:
            self._budget.count(self, size - self.bytes)

    def close(self) -> None:
        """The trace is no more."""
        self._budget.forget(self)


class TraceBudget:
    """The budget of one server. Safe for many threads."""

    def __init__(self, limit: int) -> None:
        """``limit`` is in bytes."""
        self.limit = limit
        #: Bytes that all traces hold.
        self.held = 0
        self.reads = itertools.count(1)
        self._traces: set[Held] = set()
        self._counting = threading.Lock()
        self._giving_back = threading.Lock()

    def register(self, give_back: GiveBack) -> Held:
        """A trace is there, which holds nothing yet."""
        found = Held(self, give_back)
        with self._counting:
            self._traces.add(found)
        return found

    def count(self, trace: Held, size: int) -> None:
        """A trace holds so many bytes more."""
        with self._counting:
            if trace in self._traces:
                trace.bytes += size
                self.held += size

    def forget(self, trace: Held) -> None:
        """A trace is no more."""
        with self._counting:
            if trace in self._traces:
                self._traces.remove(trace)
                self.held -= trace.bytes
                trace.bytes = 0

    def keep(self) -> None:
        """Has traces give back what exceeds the budget, unless another thread does so now."""
        if self.held > self.limit and self._giving_back.acquire(blocking=False):
            try:
                self._give_back()
            finally:
                self._giving_back.release()

    def _give_back(self) -> None:
        with self._counting:
            traces = sorted(self._traces, key=attrgetter("last_read"))
        for trace in traces:
            excess = self.held - self.limit
            if excess <= 0:
                return
            if trace.bytes:
                trace.give_back(excess)

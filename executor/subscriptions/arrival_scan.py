"""Reading what arrives: a scan waits, and hands out by LSN interval what has come since it last looked.

Owns: how a scan waits, how long (a session window: until nothing has come for ``stream_timeout``), how it is cancelled
and whom it tells how far it is; and ``StreamScan``, over the rows of one stream (thesis, algorithm 3.2, with intervals
for morsels). Nobody waits for a scan: rows that memory had no room for until it came are gone, and end it with 72000.
What becomes of the rows is ``executor.queries.stream_query``'s.
"""

from __future__ import annotations

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
from msgspec import Struct

from catalog.values.errors import SqlError, undefined_table, unsupported
from executor.core.core import Core
from executor.engine import Job
from executor.streams.runtime import StreamRuntime
from executor.traces.layout import LSN, ORDINAL
from executor.traces.ring import Ring

#: Seconds from one look to the next: rows that come one by one are read together; the delay is not noticeable.
PAUSE: Final = 0.02

Notify = Callable[[SqlError], None]


class Patience(Struct, frozen=True):
    """Seconds without a row after which a scan ends (0: it does not), and from one progress notice to the next (0:
    there are none); by a clock like the one of the rows' arrival."""

    timeout: float = 5.0
    progress: float = 5.0
    clock: Callable[[], float] = time.monotonic


class Interval(Struct, frozen=True):
    """Rows that came in (after, upto]."""

    after: int
    upto: int
    rows: pa.Table


class ArrivalScan(ABC):
    """One query's reading of what arrives. ``cancel`` may be called from any thread, all else from the query's."""

    def __init__(self, core: Core, name: str, patience: Patience, notify: Notify) -> None:
        self.core = core
        self.patience = patience
        self.wake = threading.Event()
        self._name = name
        self._notify = notify
        self._cancelled = threading.Event()
        self._running: Job | None = None
        self._total = 0
        self._begun = patience.clock()

    @abstractmethod
    def begin(self, lsn: int) -> None:
        """The query's other relations are as of an LSN."""

    @abstractmethod
    def watching(self) -> contextlib.AbstractContextManager[None]:
        """In it, ``wake`` is set when there may be something to take."""

    @abstractmethod
    def take(self, places: bool) -> Interval | None:
        """What has come since the last time, if anything."""

    @abstractmethod
    def last_arrival(self) -> float:
        """When something came last; 0 if nothing has."""

    @abstractmethod
    def check_source(self) -> None:
        """Raises what has become of what is read."""

    def pause(self) -> float:
        """Seconds to wait after something was taken."""
        return PAUSE

    def cancel(self) -> None:
        """Ends what runs or waits with 57014."""
        self._cancelled.set()
        self.wake.set()
        self.core.engine.interrupt(self)
        if self._running is not None:
            self.core.engine.interrupt(self._running)

    @contextlib.contextmanager
    def job(self, job: Job) -> Iterator[Job]:
        """Makes a job of an engine one that ``cancel`` interrupts."""
        self._running = job
        try:
            yield job
        finally:
            self._running = None

    def intervals(self, places: bool) -> Iterator[Interval]:
        """What comes, until nothing has come for the timeout. Raises 57014, and what reading raises."""
        with self.watching():
            told = self.patience.clock()
            while True:
                self.wake.clear()
                interval = self.take(places)
                if interval is not None:
                    self._total += interval.rows.num_rows
                told = self._tell(told)
                if interval is not None:
                    yield interval
                    self._check(self._cancelled.wait(self.pause()))
                elif not self._wait(told):
                    return

    def _wait(self, told: float) -> bool:
        """Waits until there may be something to do; False when there was silence for long enough."""
        self._check(self._cancelled.is_set())
        now, timeout, progress = self.patience.clock(), self.patience.timeout, self.patience.progress
        until = []
        if timeout:
            until.append(max(self._begun, self.last_arrival()) + timeout - now)
            if until[0] <= 0:
                return self.wake.is_set()  # by what came since the last look, if this was held up for so long
        if progress:
            until.append(max(told + progress - now, 0.0))
        self.wake.wait(min(until, default=None))
        self._check(self._cancelled.is_set())
        return True

    def _check(self, cancelled: bool) -> None:
        if cancelled:
            raise SqlError("57014", "canceling statement due to user request")
        self.check_source()

    def _tell(self, told: float) -> float:
        """Says how far the scan is, if it is time; when that was last done."""
        now = self.patience.clock()
        if not self.patience.progress or now - told < self.patience.progress:
            return told
        self._notify(SqlError("00000", f"{self._name}: {self._total} rows so far"))
        return now


class StreamScan(ArrivalScan):
    """The rows of one stream."""

    def __init__(self, core: Core, oid: int, patience: Patience, notify: Notify) -> None:
        runtime = core.streams.get(oid)
        if runtime is None:
            raise unsupported("a query of a stream in the transaction that creates it", "Commit it first.")
        super().__init__(core, f'stream "{runtime.stream.name}"', patience, notify)
        self._runtime: StreamRuntime = runtime
        self._schema = runtime.schema
        self._mark = runtime.feed.mark() if isinstance(runtime.feed, Ring) else None
        with core.sequencer.lock:
            self._upto = core.sequencer.visible

    def begin(self, lsn: int) -> None:
        """The rows after it count. A transaction's old snapshot does not bring rows back that had arrived before the
        query."""
        self._move(max(lsn, self._upto))

    def _move(self, lsn: int) -> None:
        self._upto = lsn
        if self._mark is not None:
            self._mark.after = lsn

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """A context in which the stream wakes the waiting scan."""
        runtime, lock = self._runtime, self.core.sequencer.lock
        with lock:
            runtime.waiting += (self.wake,)
        try:
            yield
        finally:
            with lock:
                runtime.waiting = tuple(event for event in runtime.waiting if event is not self.wake)

    def take(self, places: bool) -> Interval | None:
        """The rows since the last time. Raises 72000."""
        with self.core.sequencer.lock:
            after, upto, newest = self._upto, self.core.sequencer.visible, self._runtime.last_lsn
        if newest <= after:
            self._move(upto)
            return None
        rows = self._as_begun(self._runtime.feed.delta(after, upto, places))
        self._move(upto)
        return Interval(after, upto, rows)

    def _as_begun(self, rows: pa.Table) -> pa.Table:
        """The columns that there were when the query began. Raises 42703 where one is no more."""
        if self._runtime.schema is self._schema:
            return rows
        for item in self._schema:
            if item.name not in rows.column_names or rows.schema.field(item.name).type != item.type:
                message = f'column "{item.name}" of stream "{self._runtime.stream.name}" was dropped'
                raise SqlError("42703", message)
        return rows.select([*self._schema.names, LSN, ORDINAL])

    def last_arrival(self) -> float:
        """By the stream's own clock."""
        return self._runtime.last_arrival

    def check_source(self) -> None:
        """Raises 42P01 for a dropped stream, and why a file does not fit one that follows a folder."""
        if self._runtime.is_dropped:
            raise undefined_table(self._runtime.stream.name)
        self._runtime.feed.check()

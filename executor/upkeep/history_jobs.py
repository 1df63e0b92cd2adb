"""Keeping the rows of streams that have a history: rows that have gathered are written, and old ones leave.

Owns: when that happens. The rule for writing is that of a view's path (``executor.upkeep.paths``): many rows, or any
while none come or writers wait. What a run is and which runs leave is said by ``executor.traces.history``.
"""

from __future__ import annotations

import logging
import threading
import time
from functools import partial

from catalog.stream_history import history_bound
from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.streams.runtime import StreamRuntime
from executor.traces.history import History
from executor.traces.ring import Ring
from executor.upkeep.admission import Admission
from executor.upkeep.commits import RETRY
from executor.upkeep.frontiers import Frontiers
from executor.upkeep.paths import Sources, is_ready, upper_lsn

_LOGGER = logging.getLogger(__name__)


class HistoryJobs:
    """Writes and trims the histories of all streams, in one thread at a time."""

    def __init__(self, core: Core, frontiers: Frontiers, admission: Admission) -> None:
        self._core, self._frontiers, self._admission = core, frontiers, admission
        #: Until when, by the monotonic clock, a stream's history is left alone after a failure.
        self._not_before: dict[int, float] = {}
        self._at_work = threading.Lock()

    def run(self) -> bool:
        """Does what is due, unless another thread does; whether rows were written. What fails is logged, and tried
        again after a while."""
        if not self._at_work.acquire(blocking=False):
            return False
        try:
            return self._run()
        finally:
            self._at_work.release()

    def _run(self) -> bool:
        return sum(self._keep(stream, stream.history) for stream in tuple(self._core.streams.values())) > 0

    def _keep(self, stream: StreamRuntime, history: History | None) -> bool:
        oid = stream.stream.oid
        if history is None or history.damage is not None or time.monotonic() < self._not_before.get(oid, 0.0):
            return False
        bound, now = history_bound(stream.stream.option("history", "all")), time.time_ns() // 1000
        assert isinstance(stream.feed, Ring)
        try:
            is_written = self._write(stream, stream.feed, history, now)
            if not self._core.pinned.lsns:  # else a snapshot would read other rows the next time
                history.trim(bound, partial(self._frontiers.read_lsn, stream), now)
            history.compact(bound, stream.feed.layout)
        except (SqlError, OSError) as error:
            if not history.is_dropped:
                _LOGGER.error('the history of stream "%s" waits %g s: %s', stream.stream.name, RETRY, error)
                self._not_before[oid] = time.monotonic() + RETRY
            return False
        return is_written

    def _write(self, stream: StreamRuntime, ring: Ring, history: History, now: int) -> bool:
        core, after, upto = self._core, history.frontier, upper_lsn(self._core)
        is_pressed = not self._admission.is_open(stream.stream.oid) or self._frontiers.is_log_long
        if not is_ready(core, Sources((stream,)), after, upto, is_pressed) or (core.is_busy and not is_pressed):
            return False
        history.append(upto, ring.records(after, upto), now)
        self._admission.moved()
        return True

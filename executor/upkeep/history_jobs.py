"""Keeping the rows of streams that have a history: rows that have gathered are written, and old ones leave.

Owns: when that happens. The rule for writing is that of a view's path (``executor.upkeep.paths``): many rows, or any
while none come or writers wait. What a run is and which runs leave is said by ``executor.traces.history``.
"""

from __future__ import annotations

import time
from functools import partial

from catalog.stream_history import history_bound
from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.streams.runtime import StreamRuntime
from executor.traces.history import History
from executor.traces.layout import Layout
from executor.traces.ring import Ring
from executor.upkeep.admission import Admission
from executor.upkeep.frontiers import Frontiers
from executor.upkeep.paths import Sources, is_ready, upper_lsn


class HistoryJobs:
    """Writes and trims the histories of all streams, in one thread."""

    def __init__(self, core: Core, frontiers: Frontiers, admission: Admission) -> None:
        self._core, self._frontiers, self._admission = core, frontiers, admission

    def run(self) -> bool:
        """Does what is due; whether rows were written. Raises 53100, 58030, XX001."""
        return sum(self._keep(stream, stream.history) for stream in tuple(self._core.streams.values())) > 0

    def _keep(self, stream: StreamRuntime, history: History | None) -> bool:
        if history is None or history.damage is not None:
            return False
        try:
            return self._maintain(stream, history)
        except (SqlError, OSError):
            if history.is_dropped:
                return False
            raise

    def _maintain(self, stream: StreamRuntime, history: History) -> bool:
        bound, now = history_bound(stream.stream.option("history", "all")), time.time_ns() // 1000
        is_written = self._write(stream, history, now)
        if is_written:
            history.compact(bound, Layout.of(stream.stream))
        if not self._core.pinned.lsns:  # else a snapshot would read other rows the next time
            history.trim(bound, partial(self._frontiers.read_lsn, stream), now)
        return is_written

    def _write(self, stream: StreamRuntime, history: History, now: int) -> bool:
        core, after, upto = self._core, history.frontier, upper_lsn(self._core)
        is_pressed = not self._admission.is_open(stream.stream.oid) or self._frontiers.is_log_long
        if not is_ready(core, Sources((stream,)), after, upto, is_pressed) or (core.is_busy and not is_pressed):
            return False
        assert isinstance(stream.feed, Ring)
        history.append(upto, stream.feed.records(after, upto), now)
        self._admission.moved()
        return True

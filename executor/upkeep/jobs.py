"""The record of background jobs: the lines of ``millstream.jobs``, and those of the server's log.

Owns: the record of a job, from its claim of an interval to its end, and which due work is postponed and why. A job that
runs holds its paths: no other background job computes them. Knows nothing of how a job is done.
"""

from __future__ import annotations

import datetime as dt
import itertools
import logging
import threading
from collections import deque
from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

_LOGGER = logging.getLogger(__name__)
JOBS_KEPT: Final = 1000

#: The engine of a queue.
EngineName = Literal["embedded", "spark"]
#: void: nothing came of it, since the view was dropped or another job committed first; postponed: not begun.
JobStatus = Literal["running", "done", "failed", "void", "postponed"]


class JobRecord(Struct, frozen=True):
    """One line of ``millstream.jobs``; ``detail`` says why it is postponed, failed or void."""

    id: int
    views: tuple[str, ...]
    stream: str
    engine: str
    status: JobStatus
    rows: int
    after: int
    upto: int
    started: dt.datetime
    seconds: float = 0.0
    engine_jobs: tuple[int, ...] = ()
    detail: str = ""


class Total(Struct, frozen=True):
    """Of all jobs of one engine that ended in one status since the server's start."""

    jobs: int = 0
    rows: int = 0
    seconds: float = 0.0


class JobList:
    """Written by the engines' queues; may be read from any thread."""

    def __init__(self) -> None:
        self._writing = threading.Lock()
        self._ended: deque[JobRecord] = deque(maxlen=JOBS_KEPT)
        self._running: dict[int, JobRecord] = {}
        #: By engine and streams.
        self._postponed: dict[tuple[EngineName, str], JobRecord] = {}
        self._ids = itertools.count(1)
        #: By engine and status.
        self.totals: dict[tuple[str, JobStatus], Total] = {}

    def all(self) -> list[JobRecord]:
        """Oldest first; what runs and what is postponed now come last."""
        running = self._running.copy()  # first: a job that ends meanwhile is among both then, and not among neither
        ended = list(self._ended)
        for record in ended:
            running.pop(record.id, None)
        return [*ended, *running.values(), *self._postponed.copy().values()]

    def begin(
        self, views: Iterable[str], stream: str, engine: str, rows: int, after: int, upto: int, detail: str = ""
    ) -> JobRecord:
        """A job claims its interval."""
        now = dt.datetime.now(dt.UTC)
        record = JobRecord(
            next(self._ids), tuple(views), stream, engine, "running", rows, after, upto, now, detail=detail
        )
        self._running[record.id] = record
        return record

    def end(
        self, record: JobRecord, status: JobStatus, detail: str = "", engine_jobs: tuple[int, ...] = ()
    ) -> JobRecord:
        """The job is over, and its claim with it. A job that was given up has ended already."""
        seconds = (dt.datetime.now(dt.UTC) - record.started).total_seconds()
        done = replace(record, status=status, seconds=seconds, detail=detail, engine_jobs=engine_jobs)
        with self._writing:
            if record.id not in self._running:
                return record
            self._ended.append(done)
            del self._running[record.id]
            known = self.totals.get((done.engine, status), Total())
            self.totals[done.engine, status] = Total(known.jobs + 1, known.rows + done.rows, known.seconds + seconds)
        _LOGGER.log(
            logging.WARNING if status == "failed" else logging.INFO,
            "job %d: %s maintained %s over LSN (%d, %d], %d rows in %.3f s, %s%s",
            done.id,
            done.engine,
            ", ".join(done.views),
            done.after,
            done.upto,
            done.rows,
            done.seconds,
            status,
            f": {detail}" if detail else "",
        )
        return done

    def give_up(self, engine: EngineName, why: str) -> None:
        """The jobs of an engine's queue have failed."""
        for record in list(self._running.values()):
            if record.engine == engine:
                self.end(record, "failed", why)

    def postpone(self, engine: EngineName, views: Iterable[str], stream: str, why: str) -> None:
        """An engine's due work on a stream is put off."""
        known = self._postponed.get((engine, stream))
        if known is None or known.detail != why:
            now = dt.datetime.now(dt.UTC)
            self._postponed[engine, stream] = JobRecord(
                next(self._ids), tuple(views), stream, "", "postponed", 0, 0, 0, now, detail=why
            )

    def resume(self, engine: EngineName, stream: str) -> None:
        """No work of an engine on the stream is put off any more."""
        self._postponed.pop((engine, stream), None)

    def postponed_for(self, engine: EngineName, stream: str) -> float:
        """Seconds for which an engine's work on the stream has been put off; 0 when it is not."""
        known = self._postponed.get((engine, stream))
        return 0.0 if known is None else (dt.datetime.now(dt.UTC) - known.started).total_seconds()

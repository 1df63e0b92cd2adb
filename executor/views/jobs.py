"""What background maintenance does and did: the lines of ``millstream.jobs``, and the log's.

Owns: the record of a job, from its claim of an interval to its end, and what is postponed and why. A running job's
interval is its claim: nobody else in the background computes it. Knows nothing of how a job is done.
"""

from __future__ import annotations

import datetime as dt
import itertools
import logging
from collections import deque
from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

_LOGGER = logging.getLogger(__name__)
JOBS_KEPT: Final = 1000

#: void: nothing came of it, since the view was dropped or somebody else committed first; postponed: not begun.
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
    """Written by the maintenance thread; may be read from any thread."""

    def __init__(self) -> None:
        self._ended: deque[JobRecord] = deque(maxlen=JOBS_KEPT)
        self._running: dict[int, JobRecord] = {}
        self._postponed: dict[str, JobRecord] = {}
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
        """The job is over, and its claim with it."""
        seconds = (dt.datetime.now(dt.UTC) - record.started).total_seconds()
        done = replace(record, status=status, seconds=seconds, detail=detail, engine_jobs=engine_jobs)
        self._ended.append(done)
        self._running.pop(record.id, None)
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

    def give_up(self, why: str) -> None:
        """Nothing runs any more."""
        for record in list(self._running.values()):
            self.end(record, "failed", why)

    def postpone(self, views: Iterable[str], stream: str, why: str) -> None:
        """A stream's due work is put off."""
        known = self._postponed.get(stream)
        if known is None or known.detail != why:
            now = dt.datetime.now(dt.UTC)
            self._postponed[stream] = JobRecord(
                next(self._ids), tuple(views), stream, "", "postponed", 0, 0, 0, now, detail=why
            )

    def resume(self, stream: str) -> None:
        """Nothing of the stream is put off any more."""
        self._postponed.pop(stream, None)

    def postponed_for(self, stream: str) -> float:
        """Seconds for which the stream's work has been put off; 0 when it is not."""
        known = self._postponed.get(stream)
        return 0.0 if known is None else (dt.datetime.now(dt.UTC) - known.started).total_seconds()

"""The scheduler: background maintenance of continuous views, when and on the engine that settings and load allow.

Owns: when a path is due (rows or idle time, architecture section 3), which engine does it, one job at a time,
and the list of jobs that ``millstream.jobs`` shows. A commit moves a path's durable frontier by compare-and-swap
(executor/storage); whoever loses has only wasted work. Readers never wait for anything here.
"""

from __future__ import annotations

import datetime as dt
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from catalog.errors import SqlError
from executor.commit.records import FilesArrived
from executor.engine import EngineUnavailable, Inputs, Job, JobResult
from executor.sources import FileSource
from executor.spark.engine import SparkEngine
from executor.streams import FileFeed, StreamRuntime, file_format, folder_of, is_followed
from executor.trace.sealed import seal
from executor.views import Progress, ViewError, ViewRuntime, is_of_the_rows
from planner.algebra import Delta
from planner.program import State, Statement
from planner.walk import walk

if TYPE_CHECKING:
    from executor.database import Database

_LOGGER = logging.getLogger(__name__)
JOBS_KEPT: Final = 1000
#: Seconds between looks at all streams: a look costs microseconds, being woken by every commit would cost more.
TICK: Final = 0.1
#: Seconds between releases of what nobody needs while nothing is maintained.
RELEASE: Final = 1.0
#: Seconds to wait after a failure such as a full disk.
PAUSE: Final = 1.0
#: Seconds until a view is tried again after a failure such as a missing file.
RETRY: Final = 5.0
#: Seconds for which loading may hold background work back.
LONGEST_WAIT: Final = 15.0


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One line of ``millstream.jobs``. ``status`` is running, done, failed or postponed; ``detail`` says why."""

    id: int
    views: tuple[str, ...]
    stream: str
    engine: str
    status: str
    rows: int
    after: int
    upto: int
    started: dt.datetime
    seconds: float = 0.0
    engine_jobs: tuple[int, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """A view's path that is due."""

    runtime: ViewRuntime
    progress: Progress


class Maintenance:
    """The background thread. The lists may be called from any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._jobs: deque[JobRecord] = deque(maxlen=JOBS_KEPT)
        self._postponed: dict[str, JobRecord] = {}
        self._ids = itertools.count(1)
        self._ended = threading.Event()
        self._next_release = 0.0
        self._sources: dict[int, FileSource] = {}
        self._next_poll = 0.0
        #: When a view is tried again after a failure that is not its rows' fault, by oid.
        self._not_before: dict[int, float] = {}
        self._thread = threading.Thread(target=self._work, name="maintenance", daemon=True)
        options = database.options
        self.spark: SparkEngine | None = None
        if options.spark_enabled:
            self.spark = SparkEngine(
                master=options.spark_master,
                driver_memory=options.spark_driver_memory,
                directory=options.server_directory / "spark",
                job_timeout=options.spark_job_timeout,
            )

    def start(self) -> None:
        """Starts the thread, and Spark behind it."""
        self._thread.start()
        if self.spark is not None:
            self.spark.start()

    def close(self) -> None:
        """Ends both; what is running is finished or given up."""
        self._ended.set()
        if self.spark is not None:
            self.spark.close()
        if self._thread.is_alive():
            self._thread.join()

    def jobs(self) -> list[JobRecord]:
        """Jobs, oldest first, and what is postponed now."""
        return [*self._jobs, *self._postponed.values()]

    def engine_rows(self) -> list[tuple[str, str, bool, str]]:
        """(name, status, available, detail) of Spark."""
        if self.spark is None:
            return [("spark", "disabled", False, "spark is switched off in the configuration")]
        status = self.spark.status()
        return [("spark", status.state, status.state == "ready", status.detail)]

    # The loop ---------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while not self._ended.wait(TICK):
            try:
                while self._round():
                    pass
            except SqlError as error:  # the machine's fault: a row's would be its view's error
                _LOGGER.error("background maintenance failed; it goes on in %g s: %s", PAUSE, error)
                self._ended.wait(PAUSE)
            except Exception:
                _LOGGER.exception("background maintenance failed; it goes on with the next round")

    def _round(self) -> bool:
        """Looks at everything once; whether something was due."""
        self._poll_sources()
        worked = False
        for stream in list(self._database.streams.values()):
            if self._ended.is_set():
                return False
            worked |= self._maintain(stream)
        if worked or time.monotonic() >= self._next_release:
            self._next_release = time.monotonic() + RELEASE
            self._database.release()
        return worked

    def _maintain(self, stream: StreamRuntime) -> bool:
        """Runs what is due on one stream; True when something was."""
        due = [task for task in self._tasks(stream) if self._is_due(stream, task)]
        if not due:
            self._postponed.pop(stream.stream.name, None)
            return False
        if self._database.is_busy and not is_followed(stream.stream) and self._may_wait(stream):
            self._postpone(stream, due, "rows are being loaded: background work waits for an idle core")
            return False
        spark = [task for task in due if self._wants_spark(task)]
        if spark and self.spark is not None and self.spark.status().state == "starting":
            self._postpone(stream, spark, "Spark is starting")
            due = [task for task in due if task not in spark]
            spark = []
        embedded = [task for task in due if task not in spark]
        if spark:
            self._on_spark(stream, spark)
        for task in embedded:
            self._embedded(stream, task, "")
        if spark or embedded:
            self._postponed.pop(stream.stream.name, None)
        return bool(spark or embedded)

    def _may_wait(self, stream: StreamRuntime) -> bool:
        """Whether background work has not been put off for too long already."""
        known = self._postponed.get(stream.stream.name)
        return known is None or (dt.datetime.now(dt.UTC) - known.started).total_seconds() < LONGEST_WAIT

    def _tasks(self, stream: StreamRuntime) -> Iterable[Task]:
        for runtime in self._database.views_on(stream.stream.oid):
            if runtime.error is None:
                for progress in runtime.paths:
                    if progress.path.stream == stream.stream.oid:
                        yield Task(runtime, progress)

    def _is_due(self, stream: StreamRuntime, task: Task) -> bool:
        upto = min(self._database.sequencer.visible, self._database.sequencer.durable)
        if task.progress.durable >= upto or time.monotonic() < self._not_before.get(task.runtime.view.oid, 0.0):
            return False
        rows = stream.feed.rows(task.progress.durable, upto)
        if rows == 0:
            return False
        options = self._database.options
        idle = time.monotonic() - stream.last_arrival >= options.maintenance_idle
        return rows >= options.maintenance_rows or idle

    def _wants_spark(self, task: Task) -> bool:
        if self._database.engine_setting(task.runtime.view) == "embedded":
            return False
        return self._spark_can(task)[0]

    def _spark_can(self, task: Task) -> tuple[bool, str]:
        """Whether Spark can maintain a path now, or why not."""
        if self.spark is None:
            return False, "Spark is switched off"
        if task.runtime.time_zone != "UTC":
            return False, f"Spark's time zone is UTC, the view's is {task.runtime.time_zone}"
        status = self.spark.status()
        if status.state in ("absent", "failed"):
            return False, f"Spark is {status.state}: {status.detail}"
        reason = self.spark.supports(task.progress.path.statements, self._states(task))
        return reason is None, reason or ""

    def spark_for(self, runtime: ViewRuntime, stream: int) -> tuple[bool, str]:
        """Whether Spark maintains a view's path over a stream, or why not."""
        progress = next(item for item in runtime.paths if item.path.stream == stream)
        return self._spark_can(Task(runtime, progress))

    def _states(self, task: Task) -> tuple[State, ...]:
        targets = {statement.target for statement in task.progress.path.statements}
        return tuple(state for state in task.runtime.program.states if state.name in targets)

    def _postpone(self, stream: StreamRuntime, tasks: list[Task], why: str) -> None:
        known = self._postponed.get(stream.stream.name)
        if known is None or known.detail != why:
            self._postponed[stream.stream.name] = self._record(stream, tasks, "", 0, 0, "postponed", why)

    def _record(
        self, stream: StreamRuntime, tasks: list[Task], engine: str, after: int, upto: int, status: str, detail: str
    ) -> JobRecord:
        names = tuple(task.runtime.view.name for task in tasks)
        now = dt.datetime.now(dt.UTC)
        rows = 0 if status == "postponed" else stream.feed.rows(after, upto)
        return JobRecord(
            next(self._ids), names, stream.stream.name, engine, status, rows, after, upto, now, detail=detail
        )

    # Engines ----------------------------------------------------------------------------------------------------

    def _embedded(self, stream: StreamRuntime, task: Task, detail: str) -> None:
        """Commits what readers have computed already, or computes it."""
        runtime, progress = task.runtime, task.progress
        started = time.monotonic()
        upto = min(self._database.sequencer.visible, self._database.sequencer.durable)
        after = progress.durable
        record = self._record(stream, [task], "embedded", after, upto, "running", detail)
        pending = runtime.take_pending(progress)
        if pending is not None and pending.upto <= self._database.sequencer.durable:
            tables, upto = pending.tables, pending.upto
        else:
            try:
                tables = runtime.run_path(progress.path, after, upto)
            except SqlError as error:
                if is_of_the_rows(error):
                    self._fail(task, error, upto)
                else:
                    self._not_before[runtime.view.oid] = time.monotonic() + RETRY
                self._finish(record, started, "failed", str(error))
                return
        self._commit(task, after, upto, tables)
        self._finish(replace(record, upto=upto), started, "done", detail)

    def _on_spark(self, stream: StreamRuntime, tasks: list[Task]) -> None:
        """One Spark job for each group of paths that are at the same frontier."""
        frontiers = sorted({task.progress.durable for task in tasks})
        upto = min(self._database.sequencer.visible, self._database.sequencer.durable)
        for after in frontiers:
            group = [task for task in tasks if task.progress.durable == after]
            record = self._record(stream, group, "spark", after, upto, "running", "")
            self._jobs.append(record)
            started = time.monotonic()
            try:
                result = self._run_spark(stream, group, record.id, after, upto)
            except (EngineUnavailable, SqlError) as error:
                self._jobs.remove(record)
                self._finish(record, started, "failed", str(error))
                for task in group:
                    self._embedded(stream, task, f"instead of Spark: {error}")
                continue
            self._jobs.remove(record)
            done = replace(record, engine_jobs=result.engine_jobs, rows=max(record.rows, result.rows))
            for task in group:
                names = [state.name for state in self._states(task)]
                files = {name: result.runs[name] for name in names}
                self._commit(task, after, upto, {name: _paths(item) for name, item in files.items()})
            self._finish(done, started, "done", "")

    def _run_spark(self, stream: StreamRuntime, group: list[Task], job: int, after: int, upto: int) -> JobResult:
        assert self.spark is not None
        statements = tuple(statement for task in group for statement in task.progress.path.statements)
        states = tuple(state for task in group for state in self._states(task))
        statics: dict[str, pa.Table | tuple[Path, ...]] = {}
        for task in group:
            statics |= self._database.storage.static_files(task.runtime.view.oid)
        output = self._database.storage.scratch(job)
        if isinstance(stream.feed, FileFeed):
            files = stream.feed.files(after, upto)
            inputs = Inputs((), statics)
            arrived = tuple((item.lsn, item.files) for item in files)
            return self.spark.run_files(
                Job(job, statements, states, inputs, after, upto, output), stream.stream, arrived
            )
        delta = stream.feed.delta(after, upto).select(_needed(statements, stream))
        sealed = seal(self._database.storage.stream_folder(stream.stream.oid), after, upto, delta)
        try:
            return self.spark.run(Job(job, statements, states, Inputs((sealed,), statics), after, upto, output))
        finally:
            sealed.unlink(missing_ok=True)

    def _commit(
        self, task: Task, after: int, upto: int, runs: dict[str, pa.Table] | dict[str, tuple[Path, ...]]
    ) -> None:
        runtime, progress = task.runtime, task.progress
        oid = runtime.view.oid
        stored = self._database.storage.commit(oid, progress.path.stream, after, upto, runs)
        if stored is None:
            return
        runtime.absorb(progress, upto, stored)
        self._database.storage.compact(oid, runtime.program.states, self._database.engine.merge)

    def _fail(self, task: Task, error: SqlError, lsn: int) -> None:
        task.runtime.fail(ViewError(error, lsn))

    def _finish(self, record: JobRecord, started: float, status: str, detail: str) -> None:
        done = replace(record, status=status, seconds=time.monotonic() - started, detail=detail)
        self._jobs.append(done)
        level = logging.INFO if status == "done" else logging.WARNING
        _LOGGER.log(
            level,
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

    # Followed folders -------------------------------------------------------------------------------------------

    def _poll_sources(self) -> None:
        now = time.monotonic()
        if now < self._next_poll:
            return
        self._next_poll = now + self._database.options.source_poll
        for stream in list(self._database.streams.values()):
            if is_followed(stream.stream):
                self._poll_source(stream)

    def _poll_source(self, stream: StreamRuntime) -> None:
        feed = stream.feed
        assert isinstance(feed, FileFeed)
        source = self._sources.get(stream.stream.oid)
        if source is None:
            source = FileSource(folder_of(stream.stream), file_format(stream.stream))
            self._sources[stream.stream.oid] = source
        try:
            durable = self._database.durable_lsn(stream.stream.oid, self._database.sequencer.visible)
            found = source.poll(feed.known(durable))
        except SqlError as error:
            stream.error = str(error)
            return
        stream.error = None
        if found:
            part = FilesArrived(stream.stream.oid, tuple(found), file_format(stream.stream))
            self._database.sequencer.submit((part,)).wait()


def _needed(statements: tuple[Statement, ...], stream: StreamRuntime) -> list[str]:
    """The stream's columns that statements read, in the stream's order."""
    used = {
        source
        for statement in statements
        for item in walk(statement.relation)
        if isinstance(item, Delta)
        for source in item.sources
    }
    return [name for name in (*stream.schema.names, "__lsn", "__ordinal") if name in used or name == "__lsn"]


def _paths(run: pa.Table | tuple[Path, ...]) -> tuple[Path, ...]:
    assert isinstance(run, tuple)
    return run

"""The scheduler: background maintenance of continuous views, when and on the engine that settings and load allow.

Owns: when a path is due (rows or idle time, architecture section 1), which engine does it, and one job at a time, which
has claimed its interval from its begin to its end (``jobs``). A commit moves a path's durable frontier by
compare-and-swap (``storage``); whoever loses has only wasted work. Readers never wait for anything here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Final

import pyarrow as pa
from msgspec import Struct

from catalog.objects import qualified
from catalog.values.errors import SqlError
from executor.commit.files import disk_error
from executor.database.core import Core
from executor.engine import EngineUnavailable, Inputs, Job, JobResult
from executor.files.arrived import FileFeed
from executor.spark.engine import SparkEngine
from executor.streams.runtime import StreamRuntime, is_followed
from executor.trace.sealed import seal
from executor.views.admission import Admission
from executor.views.frontiers import Frontiers
from executor.views.jobs import JobList, JobRecord
from executor.views.runtime import Progress, ViewError, ViewRuntime, is_of_the_rows
from planner.algebra.relations import Delta
from planner.algebra.walk import walk
from planner.incremental.programs.program import State, Statement

_LOGGER = logging.getLogger(__name__)
#: Seconds between looks at all streams: a look costs microseconds, being woken by every commit would cost more.
TICK: Final = 0.1
#: Seconds between releases of what nobody needs while nothing is maintained.
RELEASE: Final = 1.0
#: Seconds to wait after a failure such as a full disk.
PAUSE: Final = 1.0
#: Seconds until a view is tried again after a failure such as a missing file.
RETRY: Final = 5.0
#: Seconds for which readers that have processed a view's rows may be about to process the next one's.
READING: Final = 0.25
#: Seconds for which loading and reading may hold background work back.
LONGEST_WAIT: Final = 15.0
#: States of Spark's in which it is waited for.
_COMING: Final = ("idle", "starting")

_DROPPED: Final = "the view was dropped meanwhile"


class Task(Struct, frozen=True):
    """A view's path that is due."""

    runtime: ViewRuntime
    progress: Progress


class Maintenance:
    """The background thread. The lists may be called from any thread."""

    def __init__(self, core: Core, frontiers: Frontiers, admission: Admission) -> None:
        self._core, self._frontiers, self._admission = core, frontiers, admission
        self.jobs = JobList()
        self._ended = threading.Event()
        self._next_release = 0.0
        #: When a view is tried again after a failure that is not its rows' fault, by oid.
        self._not_before: dict[int, float] = {}
        self._thread = threading.Thread(target=self._work, name="maintenance", daemon=True)
        options = core.options
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

    def retry(self, stream: int) -> None:
        """What held a stream's views up is mended: they need not wait for their next try."""
        for runtime in self._core.views_on(stream):
            self._not_before.pop(runtime.view.oid, None)

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
                _LOGGER.error("background maintenance failed; it continues in %g s: %s", PAUSE, error)
                self.jobs.give_up(str(error))
                self._ended.wait(PAUSE)
            except Exception as error:
                _LOGGER.exception("background maintenance failed; it continues with the next round")
                self.jobs.give_up(str(error))

    def _round(self) -> bool:
        """Looks at everything once; whether something was due."""
        worked = False
        for stream in list(self._core.streams.values()):
            if self._ended.is_set():
                return False
            worked |= self._maintain(stream)
        if worked or time.monotonic() >= self._next_release:
            self._next_release = time.monotonic() + RELEASE
            self._frontiers.release()
        return worked

    def _maintain(self, stream: StreamRuntime) -> bool:
        """Runs what is due on one stream; True when something was."""
        # Writers wait, or the log has grown beyond what one stream may hold: nothing is put off.
        pressed = not self._admission.is_open(stream.stream.oid) or self._frontiers.is_log_long
        tasks = list(self._tasks(stream))
        if tasks and stream.last_lsn and not self._core.is_busy:
            self._core.engine.prepare()  # for the first reader whose rows are no longer few
        due = [task for task in tasks if self._is_due(stream, task, pressed)]
        name = qualified(stream.stream)
        if not due:
            self.jobs.resume(name)
            return False
        if self._is_busy(stream) and not pressed:
            self._postpone(stream, due, "rows are being loaded or read: background work waits for an idle core")
            return False
        spark = [task for task in due if self._wants_spark(task)]
        if spark and self.spark is not None and self.spark.status().state in _COMING:
            if not pressed:
                self._postpone(stream, spark, "Spark is starting")
                due = [task for task in due if task not in spark]
            spark = []
        embedded = [task for task in due if task not in spark]
        if spark:
            self._on_spark(stream, spark, pressed)
        for task in embedded:
            self._embedded(stream, task, "")
        if spark or embedded:
            self.jobs.resume(name)
            self._admission.moved()
        return bool(spark or embedded)

    def _is_busy(self, stream: StreamRuntime) -> bool:
        """Whether background work should leave the processor to a COPY, or to readers who process themselves what it
        would process at the same time, and has not been put off for too long."""
        wait = (self._core.is_busy and not is_followed(stream.stream)) or self._is_read(stream)
        return wait and self.jobs.postponed_for(qualified(stream.stream)) < LONGEST_WAIT

    def _is_read(self, stream: StreamRuntime) -> bool:
        """Whether readers bring the stream's views up to date, one after the other."""
        since = time.monotonic() - READING
        return any(view.is_read or view.last_read > since for view in self._core.views_on(stream.stream.oid))

    def _tasks(self, stream: StreamRuntime) -> Iterable[Task]:
        for runtime in self._core.views_on(stream.stream.oid):
            if runtime.error is None and runtime.away is None:
                for progress in runtime.paths:
                    if progress.path.stream == stream.stream.oid:
                        yield Task(runtime, progress)

    def _is_due(self, stream: StreamRuntime, task: Task, pressed: bool) -> bool:
        upto = self._upto()
        if task.progress.durable >= upto or time.monotonic() < self._not_before.get(task.runtime.view.oid, 0.0):
            return False
        rows = stream.feed.rows(task.progress.durable, upto)
        if rows == 0:
            return False
        options = self._core.options
        idle = time.monotonic() - stream.last_arrival >= options.maintenance_idle
        return pressed or rows >= options.maintenance_rows or idle

    def _upto(self) -> int:
        """The LSN up to which rows may be maintained: no manifest may name one that the disk does not have."""
        return min(self._core.sequencer.visible, self._core.sequencer.durable)

    def _wants_spark(self, task: Task) -> bool:
        if self._core.engine_setting(task.runtime.view) == "embedded":
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
        reason = self.spark.supports(task.progress.path.statements, _states(task))
        return reason is None, reason or ""

    def spark_for(self, runtime: ViewRuntime, stream: int) -> tuple[bool, str]:
        """Whether Spark maintains a view's path over a stream, or why not."""
        progress = next(item for item in runtime.paths if item.path.stream == stream)
        return self._spark_can(Task(runtime, progress))

    def _postpone(self, stream: StreamRuntime, tasks: list[Task], why: str) -> None:
        self.jobs.postpone((qualified(task.runtime.view) for task in tasks), qualified(stream.stream), why)

    def _begin(
        self, stream: StreamRuntime, tasks: list[Task], engine: str, after: int, upto: int, detail: str = ""
    ) -> JobRecord:
        names = (qualified(task.runtime.view) for task in tasks)
        rows = stream.feed.rows(after, upto)
        return self.jobs.begin(names, qualified(stream.stream), engine, rows, after, upto, detail)

    # Engines ----------------------------------------------------------------------------------------------------

    def _embedded(self, stream: StreamRuntime, task: Task, detail: str) -> None:
        """Commits what readers have computed already, or computes it."""
        if self._commit_pending(stream, task):
            return
        after, upto = task.progress.durable, self._upto()
        task.runtime.claim(task.progress, upto)
        record = self._begin(stream, [task], "embedded", after, upto, detail)
        try:
            tables = task.runtime.run_path(task.progress.path, after, upto)
            self._end(record, [self._commit(task, after, upto, tables)], detail)
        except (SqlError, OSError) as error:
            if not self._core.is_live(task.runtime):
                self.jobs.end(record, "void", _DROPPED)
                return
            known = error if isinstance(error, SqlError) else disk_error(error, "maintain a view")
            self._failed(task, known, upto)
            self.jobs.end(record, "failed", f"{detail}; {known}" if detail else str(known))

    def _commit_pending(self, stream: StreamRuntime, task: Task) -> bool:
        """What readers have computed need not be computed again: commits it, if there is any."""
        pending = task.runtime.take_pending(task.progress)
        if pending is None or pending.upto > self._core.sequencer.durable:
            return False
        detail = "computed by readers"
        record = self._begin(stream, [task], "embedded", pending.after, pending.upto, detail)
        self._end(record, [self._commit(task, pending.after, pending.upto, pending.tables)], detail)
        return True

    def _on_spark(self, stream: StreamRuntime, tasks: list[Task], pressed: bool) -> None:
        """One Spark job for each group of paths that are at the same frontier."""
        tasks = [task for task in tasks if not self._is_done_by_readers(stream, task, pressed)]
        upto = self._upto()
        for after in sorted({task.progress.durable for task in tasks}):
            group = [task for task in tasks if task.progress.durable == after and self._core.is_live(task.runtime)]
            if group and stream.feed.rows(after, upto):
                self._group_on_spark(stream, group, after, upto)

    def _is_done_by_readers(self, stream: StreamRuntime, task: Task, pressed: bool) -> bool:
        """Whether committing what readers have computed leaves nothing that is due: the few rows that arrived meanwhile
        are no reason for a job, which takes all cores for a second."""
        if self._core.engine_setting(task.runtime.view) == "spark":  # who asks for Spark gets its work
            return False
        return self._commit_pending(stream, task) and not self._is_due(stream, task, pressed)

    def _group_on_spark(self, stream: StreamRuntime, group: list[Task], after: int, upto: int) -> None:
        for task in group:
            task.runtime.claim(task.progress, upto)
        record = self._begin(stream, group, "spark", after, upto)
        try:
            result = self._run_spark(stream, group, record.id, after, upto)
            committed = [
                self._commit(
                    task, after, upto, {state.name: _paths(result.runs[state.name]) for state in _states(task)}
                )
                for task in group
            ]
            self._end(record, committed, "", result.engine_jobs)
        except (EngineUnavailable, SqlError, OSError) as error:
            self._instead_of_spark(stream, group, record, error)
        finally:
            self._core.storage.discard_scratch(record.id)

    def _instead_of_spark(self, stream: StreamRuntime, group: list[Task], record: JobRecord, error: Exception) -> None:
        """What Spark could not do is the embedded engine's, unless nobody can or nobody wants it any more."""
        if not all(self._core.is_live(task.runtime) for task in group):
            self.jobs.end(record, "void", _DROPPED)  # those that are left are due again
            return
        self.jobs.end(record, "failed", str(error))
        for task in group:
            if isinstance(error, SqlError) and isinstance(stream.feed, FileFeed) and not is_of_the_rows(error):
                self._failed(task, error, record.upto)
            else:
                self._embedded(stream, task, f"instead of Spark: {error}")

    def _run_spark(self, stream: StreamRuntime, group: list[Task], job: int, after: int, upto: int) -> JobResult:
        assert self.spark is not None
        statements = tuple(statement for task in group for statement in task.progress.path.statements)
        states = tuple(state for task in group for state in _states(task))
        statics: dict[str, pa.Table | tuple[Path, ...]] = {}
        for task in group:
            statics |= self._core.storage.static_files(task.runtime.view.oid)
        output = self._core.storage.scratch(job)
        if isinstance(stream.feed, FileFeed) and stream.feed.are_exact(after, upto):
            files = stream.feed.files(after, upto)
            inputs = Inputs((), statics)
            arrived = tuple((item.place, item.files) for item in files)
            return self.spark.run_files(
                Job(job, statements, states, inputs, after, upto, output), stream.stream, arrived
            )
        sealed = self._sealed(stream, after, upto, _needed(statements, stream))
        try:
            return self.spark.run(Job(job, statements, states, Inputs((sealed,), statics), after, upto, output))
        finally:
            sealed.unlink(missing_ok=True)

    def _sealed(self, stream: StreamRuntime, after: int, upto: int, names: list[str]) -> Path:
        """Some columns of an interval's rows in a file."""
        folder = self._core.storage.stream_folder(stream.stream.oid)
        if not isinstance(stream.feed, FileFeed):
            delta = stream.feed.delta(after, upto).select(names)
            return seal(folder, after, upto, delta.schema, delta.to_batches())
        tables = (table.select(names) for table in stream.feed.tables(after, upto))
        first = next(tables)
        batches = (batch for table in chain((first,), tables) for batch in table.to_batches())
        return seal(folder, after, upto, first.schema, batches)

    # Ends -------------------------------------------------------------------------------------------------------

    def _commit(
        self, task: Task, after: int, upto: int, runs: Mapping[str, pa.Table] | Mapping[str, tuple[Path, ...]]
    ) -> bool:
        """Whether the path's frontier moved: not when the view was dropped or somebody else committed first."""
        runtime, progress = task.runtime, task.progress
        oid = runtime.view.oid
        stored = self._core.storage.commit(oid, progress.path.stream, after, upto, runs)
        if stored is None:
            return False
        runtime.absorb(progress, upto, stored)
        self._core.storage.compact(oid, runtime.program.states, self._core.engine)
        return True

    def _end(self, record: JobRecord, committed: list[bool], detail: str, jobs: tuple[int, ...] = ()) -> None:
        if any(committed):
            self.jobs.end(record, "done", detail, jobs)
        else:
            self.jobs.end(record, "void", _DROPPED, jobs)

    def _failed(self, task: Task, error: SqlError, lsn: int) -> None:
        """The rows are to blame: the error is the view's value. Else the view is tried again later."""
        if is_of_the_rows(error):
            task.runtime.fail(ViewError(error, lsn))
        else:
            self._not_before[task.runtime.view.oid] = time.monotonic() + RETRY


def _states(task: Task) -> tuple[State, ...]:
    targets = {statement.target for statement in task.progress.path.statements}
    return tuple(state for state in task.runtime.program.states if state.name in targets)


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

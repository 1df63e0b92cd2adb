"""The scheduler: background maintenance of continuous views, when and on the engine that settings and load allow.

Owns: a queue for each engine, each a thread of its own, so that views are maintained by the embedded engine, and the
log is released, while Spark works; and the choice of a path's queue. A path that one queue has in hand is not taken by
the other. When a path is due is the rule of ``paths.is_due``, and whether Spark can maintain it that of
``spark_jobs.SparkJobs.can_maintain``. Readers never wait for anything here.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from catalog.objects import qualified
from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.spark.engine import SparkEngine
from executor.upkeep.admission import Admission
from executor.upkeep.commits import Retries
from executor.upkeep.embedded_jobs import EmbeddedJobs
from executor.upkeep.frontiers import Frontiers
from executor.upkeep.history_jobs import HistoryJobs
from executor.upkeep.jobs import EngineName, JobList
from executor.upkeep.paths import PathTask, Sources, Standing, all_paths, are_read, filled, is_due
from executor.upkeep.spark_jobs import SparkJobs
from planner.incremental.programs.program import Path, Program, State, Statement

_LOGGER = logging.getLogger(__name__)
#: Seconds between looks at all paths: a look costs microseconds, being woken by every commit would cost more.
TICK: Final = 0.1
#: Seconds between releases of what no path needs while nothing is maintained.
RELEASE: Final = 1.0
#: Seconds to wait after a failure such as a full disk.
PAUSE: Final = 1.0
#: Seconds for which loading and reading may hold background work back.
LONGEST_WAIT: Final = 15.0
#: States of Spark's in which it is waited for.
_COMING: Final = ("idle", "starting")


class Maintenance:
    """The background threads. The lists may be called from any thread."""

    def __init__(self, core: Core, frontiers: Frontiers, admission: Admission) -> None:
        self._core, self._frontiers, self._admission = core, frontiers, admission
        self.jobs = JobList()
        self._retries = Retries()
        self._ended = threading.Event()
        self._next_release = 0.0
        #: The paths that a queue works on, by view and id.
        self._in_hand: set[tuple[int, int]] = set()
        self._taking = threading.Lock()
        self._histories = HistoryJobs(core, frontiers, admission)
        self.embedded = EmbeddedJobs(core, self.jobs, self._retries)
        self._threads: dict[EngineName, threading.Thread] = {}
        self.use(_spark(core))

    def use(self, spark: SparkEngine | None) -> None:
        """Views are maintained on this Spark from now on; None: on the embedded engine alone."""
        self.spark = spark
        self._spark_jobs = (
            None if spark is None else SparkJobs(self._core, spark, self.jobs, self._retries, self.embedded)
        )
        if spark is not None and self._threads:
            self._start_queue("spark")

    def start(self) -> None:
        """Starts the queues, and Spark behind them."""
        self._start_queue("embedded")
        if self.spark is not None:
            self._start_queue("spark")
            self.spark.start()

    def _start_queue(self, engine: EngineName) -> None:
        if engine not in self._threads:
            name = f"maintenance-{engine}"
            self._threads[engine] = threading.Thread(target=self._work, args=(engine,), name=name, daemon=True)
            self._threads[engine].start()

    def close(self) -> None:
        """Ends the queues and Spark; what is running is finished or given up."""
        self._ended.set()
        if self.spark is not None:
            self.spark.close()
        for thread in self._threads.values():
            thread.join()

    def retry(self, stream: int) -> None:
        """What held a stream's views up is mended: they need not wait for their next try."""
        for runtime in self._core.views_on(stream):
            self._retries.forget(runtime.view.oid)

    def engine_rows(self) -> list[tuple[str, str, bool, str]]:
        """(name, status, available, detail) of Spark."""
        if self.spark is None:
            return [("spark", "disabled", False, "spark is switched off in the configuration")]
        status = self.spark.status()
        return [("spark", status.state, status.state == "ready", status.detail)]

    def spark_for(self, time_zone: str, program: Program, path: Path) -> tuple[bool, str]:
        """Whether Spark maintains a path of a program of this time zone, or why not."""
        return self._spark_can(time_zone, path.statements, filled(program, path))

    # The queues -------------------------------------------------------------------------------------------------

    def _work(self, engine: EngineName) -> None:
        while not self._ended.wait(TICK):
            try:
                while self.round(engine, self._ended.is_set):
                    pass
            except SqlError as error:  # the machine's fault: a row's would be its view's error
                _LOGGER.error("background maintenance failed; it continues in %g s: %s", PAUSE, error)
                self.jobs.give_up(engine, str(error))
                self._ended.wait(PAUSE)
            except Exception as error:
                _LOGGER.exception("background maintenance failed; it continues with the next round")
                self.jobs.give_up(engine, str(error))

    def round(self, engine: EngineName, is_ended: Callable[[], bool] = lambda: False) -> bool:
        """An engine's queue looks at all paths once, until ``is_ended``; whether one of them was due."""
        worked = False
        for sources, tasks in all_paths(self._core):
            if is_ended():
                return False
            standing = Standing.of(tasks)
            try:
                worked |= self._maintain(engine, sources, tasks)
            except (SqlError, OSError):
                if standing.is_still_so(self._core):
                    raise
        if engine == "embedded":
            worked |= self._histories.run()
        if engine == "embedded" and (worked or time.monotonic() >= self._next_release):
            self._next_release = time.monotonic() + RELEASE
            self._frontiers.release()
        return worked

    def _maintain(self, engine: EngineName, sources: Sources, tasks: Sequence[PathTask]) -> bool:
        """Runs what is due of the paths over some streams, as far as it is the engine's; True when something was."""
        # Writers wait, or the log has grown beyond what one stream may hold: nothing is put off.
        open_ = all(self._admission.is_open(item.stream.oid) for item in sources.streams)
        pressed = not open_ or self._frontiers.is_log_long
        if engine == "embedded" and sources.last_lsn and not self._core.is_busy:
            self._core.engine.prepare()  # for the first reader whose rows are no longer few
        ready = (task for task in tasks if not self._retries.is_waiting(task.runtime.view.oid))
        due = [task for task in ready if is_due(self._core, sources, task, pressed) and self._queue(task) == engine]
        with self._taken(due) as free:
            return self._run_due(engine, sources, free, pressed)

    def _run_due(self, engine: EngineName, sources: Sources, due: Sequence[PathTask], pressed: bool) -> bool:
        why = self._reason_to_wait(engine, sources, due) if due and not pressed else ""
        if why:
            self.jobs.postpone(engine, (qualified(task.runtime.view) for task in due), sources.name, why)
            return False
        if due and engine == "spark" and not self._is_spark_coming():
            assert self._spark_jobs is not None
            self._spark_jobs.run(sources, due, pressed)
        else:
            for task in due:
                self.embedded.run(sources, task)
        self.jobs.resume(engine, sources.name)
        if due:
            self._admission.moved()
        return bool(due)

    def _reason_to_wait(self, engine: EngineName, sources: Sources, due: Sequence[PathTask]) -> str:
        """Why due work is put off; '' where it is not.

        Maintenance leaves the processor to a COPY, or to readers that process the rows themselves, unless it has been
        put off for too long.
        """
        is_loaded = self._core.is_busy and not sources.are_followed
        is_busy = is_loaded or are_read(task.runtime for task in due)
        if is_busy and self.jobs.postponed_for(engine, sources.name) < LONGEST_WAIT:
            return "rows are being loaded or read: background work waits for an idle core"
        return "Spark is starting" if engine == "spark" and self._is_spark_coming() else ""

    @contextlib.contextmanager
    def _taken(self, tasks: Sequence[PathTask]) -> Iterator[list[PathTask]]:
        """Those of some paths that no other queue has in hand; meanwhile it does not get them."""
        with self._taking:
            free = [task for task in tasks if task.key not in self._in_hand]
            self._in_hand.update(task.key for task in free)
        try:
            yield free
        finally:
            with self._taking:
                self._in_hand.difference_update(task.key for task in free)

    def _queue(self, task: PathTask) -> EngineName:
        """The engine that maintains a path."""
        if self._spark_jobs is None or self._core.engine_setting(task.runtime.view) == "embedded":
            return "embedded"
        return "spark" if self._spark_can(task.runtime.time_zone, *task.scoped)[0] else "embedded"

    def _is_spark_coming(self) -> bool:
        return self.spark is not None and self.spark.status().state in _COMING

    def _spark_can(
        self, time_zone: str, statements: tuple[Statement, ...], states: tuple[State, ...]
    ) -> tuple[bool, str]:
        if self._spark_jobs is None:
            return False, "Spark is switched off"
        return self._spark_jobs.can_maintain(time_zone, statements, states)


def _spark(core: Core) -> SparkEngine | None:
    """Spark as the configuration asks for it."""
    options = core.options
    if not options.spark_enabled:
        return None
    return SparkEngine(
        master=options.spark_master,
        driver_memory=options.spark_driver_memory,
        directory=options.server_directory / "spark",
        job_timeout=options.spark_job_timeout,
    )

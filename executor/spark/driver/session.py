"""The driver's Spark session, whichever Spark it belongs to (child process only).

Owns: what jobs and the request loop ask of Spark, the sessions that jobs borrow, and warming up. ``classic_session``
(local or on a cluster) and ``connect_session`` (behind an endpoint) implement what differs.
"""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from executor.spark.driver.kept_plans import Plans
from executor.spark.failures import describe
from executor.spark.settings import SparkSettings, cores
from executor.spark.workers.kernel_archive import archive, lacking
from executor.spark.workers.kernel_calls import Known

#: Seconds in which a JVM that answers no more has ended, if it does.
LAST_MOMENT: Final = 2.0


class Worker(Struct, frozen=True):
    """What one job at a time uses: a Spark session, the plans that it keeps for later jobs (None: it cannot), and the
    names of the functions that it knows.
    """

    spark: Any
    plans: Plans | None
    known: Known = field(default_factory=OrderedDict)


class Session(ABC):
    """One Spark for the life of the driver."""

    #: The JVM that was started for this session; None where there is none of ours.
    jvm: subprocess.Popen[bytes] | None = None

    def __init__(self, settings: SparkSettings, spark: Any, own: Mapping[str, str]) -> None:
        """``own`` are settings that each of ``spark``'s new sessions lacks and shall have."""
        self.settings = settings
        self.spark = spark
        #: For statements of one job at the same time; kept, since Spark's side of a new thread costs milliseconds.
        self.pool = ThreadPoolExecutor(max(2, cores(settings)), thread_name_prefix="statement")
        self._own = own
        self._idle: list[Worker] = []

    @property
    def version(self) -> str:
        """Spark's version."""
        return str(self.spark.version)

    @abstractmethod
    def watch(self, died: Callable[[], None]) -> None:
        """Calls ``died`` from a thread when the JVM ends, where there is one of ours."""

    def end_if_lost(self, died: Callable[[], None]) -> None:
        """Calls ``died`` where the JVM of ours ends now: its sockets close a moment before it has ended."""
        if self.jvm is not None:
            with suppress(subprocess.TimeoutExpired):
                self.jvm.wait(LAST_MOMENT)
                died()

    @abstractmethod
    def ping(self) -> None:
        """Returns when Spark answers; raises when it is gone."""

    @abstractmethod
    def group(self, session: Any, name: str) -> AbstractContextManager[None]:
        """Jobs that this thread starts meanwhile belong to a group that ``cancel`` ends."""

    @abstractmethod
    def job_ids(self, group: str) -> list[int]:
        """Spark's ids of a group's jobs, where Spark tells them."""

    @abstractmethod
    def cancel(self, group: str) -> None:
        """Ends a group's running jobs."""

    @contextmanager
    def borrowed(self, settings: Mapping[str, str]) -> Iterator[Worker]:
        """A session for one job, with temporary views and these settings of its own; used again by later jobs."""
        worker = self._idle.pop() if self._idle else self._new()
        try:
            for name, value in settings.items():
                worker.spark.conf.set(name, value)
            yield worker
        except BaseException:
            if worker.plans is not None:
                worker.plans.clear()
            raise
        finally:
            for name in settings:
                self._reset(worker.spark, name)
            self._idle.append(worker)

    def _new(self) -> Worker:
        worker = self._worker()
        for name, value in self._own.items():
            worker.spark.conf.set(name, value)
        return worker

    @abstractmethod
    def _worker(self) -> Worker:
        """A new session of this Spark."""

    def _reset(self, session: Any, name: str) -> None:
        """What a job changed is as in a new session."""
        if name in self._own:
            session.conf.set(name, self._own[name])
        else:
            session.conf.unset(name)

    def warm_up(self) -> None:
        """Runs small jobs, so that the first real one does not wait for class loading."""
        with self.borrowed({}) as worker:
            numbers = worker.spark.range(20_000)
            numbers = numbers.selectExpr("id % 7 AS k", "CAST(id AS DECIMAL(15,2)) AS v", "CAST(id AS STRING) AS t")
            with self._as_input(worker.spark, numbers) as rows:
                rows.createOrReplaceTempView("warm")
                for _ in range(3):
                    query = "SELECT k, sum(v * (1 - v)) AS a, count(*) AS b, max(t) AS c FROM warm GROUP BY k"
                    worker.spark.sql(query).toArrow()

    @abstractmethod
    def _as_input(self, session: Any, frame: Any) -> AbstractContextManager[Any]:
        """Rows in a form that is as near to a job's input as this Spark has it."""

    def kernel(self) -> str:
        """Why Spark's Python workers cannot compute the embedded engine's expressions; empty where they can.

        Those of a local Spark are this machine's own. Others are sent our packages, and asked.
        """
        if self.settings.local:
            return ""
        try:
            self._ship(archive(self.settings.scratch))
            with self.borrowed({}) as worker:
                return lacking(worker.spark, 2 * cores(self.settings))
        except Exception as error:  # whatever it is: Spark does all else
            return describe(error)["message"]

    @abstractmethod
    def _ship(self, path: Path) -> None:
        """Gives an archive of Python packages to the workers of this and all later sessions."""

    def stop(self) -> None:
        """Releases executors and ends the JVM, where they are ours."""
        self.spark.stop()

"""The driver's Spark session: local, on a cluster, or behind a Connect endpoint (child process only).

Owns: starting Spark with our configuration, warming it up, and what differs between a classic session and Connect
(job groups, tags, sessions of their own). Connect is used through the DataFrame API alone; it has no job ids to
report.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from executor.spark.plans import Plans
from executor.spark.settings import SEMANTICS, SparkSettings, configuration, cores
from executor.spark.unscaled import name_it


@dataclass(frozen=True, slots=True)
class Worker:
    """What one job at a time uses: a Spark session, and the plans that it keeps for later jobs (None: it cannot)."""

    spark: Any
    plans: Plans | None


class Session:
    """One Spark session for the life of the driver."""

    def __init__(self, settings: SparkSettings) -> None:
        """Starts Spark; takes seconds."""
        from pyspark.sql import SparkSession

        self.settings = settings
        #: For statements of one job at the same time; kept, since Spark's side of a new thread costs milliseconds.
        self.pool = ThreadPoolExecutor(max(2, cores(settings)), thread_name_prefix="statement")
        self._tagged: dict[str, Any] = {}
        self._idle: list[Worker] = []
        self._made = 0
        builder: Any = SparkSession.builder
        if settings.connect:
            builder = builder.remote(settings.master)
            for name, value in {**SEMANTICS, **settings.extra}.items():
                builder = builder.config(name, value)
        else:
            _empty(settings)
            builder = builder.master(settings.master)
            for name, value in configuration(settings).items():
                builder = builder.config(name, value)
        self.spark: Any = builder.getOrCreate()
        if not settings.connect:
            self.spark.sparkContext.setLogLevel(settings.extra.get("spark.log.level", "WARN"))

    @property
    def version(self) -> str:
        """Spark's version."""
        return str(self.spark.version)

    @property
    def jvm(self) -> subprocess.Popen[bytes] | None:
        """The JVM that was started for this session; None behind Connect."""
        return None if self.settings.connect else self.spark.sparkContext._gateway.proc

    def watch(self, died: Callable[[], None]) -> None:
        """Calls ``died`` from a thread when the JVM ends."""
        jvm = self.jvm
        if jvm is None:
            return

        def wait() -> None:
            jvm.wait()
            died()

        threading.Thread(target=wait, name="jvm", daemon=True).start()

    def ping(self) -> None:
        """Returns when Spark answers."""
        if self.settings.connect:
            assert self.spark.version
        else:
            self.spark.sparkContext._jvm.java.lang.System.nanoTime()

    @contextmanager
    def borrowed(self, settings: dict[str, str]) -> Iterator[Worker]:
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
                worker.spark.conf.unset(name)
            self._idle.append(worker)

    def _new(self) -> Worker:
        session = self.spark.newSession()
        if self.settings.connect:  # it starts from the server's defaults
            for name, value in {**SEMANTICS, **self.settings.extra}.items():
                session.conf.set(name, value)
        else:
            name_it(session)
        if not self.settings.local:
            return Worker(session, None)
        self._made += 1
        return Worker(session, Plans(session, self.settings.scratch / f"plans-{self._made}"))

    @contextmanager
    def group(self, session: Any, name: str) -> Iterator[None]:
        """Jobs that this thread starts meanwhile belong to a group that ``cancel`` ends."""
        if self.settings.connect:
            self._tagged[name] = session
            session.addTag(name)
            try:
                yield
            finally:
                session.removeTag(name)
                self._tagged.pop(name, None)
            return
        context = self.spark.sparkContext
        context.setJobGroup(name, f"millstream {name}", interruptOnCancel=True)
        try:
            yield
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)

    def job_ids(self, group: str) -> list[int]:
        """Spark's ids of a group's jobs."""
        if self.settings.connect:
            return []
        return sorted(self.spark.sparkContext.statusTracker().getJobIdsForGroup(group))

    def cancel(self, group: str) -> None:
        """Ends a group's running jobs."""
        if self.settings.connect:
            tagged = self._tagged.get(group)  # a tag is known in its own session only
            if tagged is not None:
                tagged.interruptTag(group)
        else:
            self.spark.sparkContext.cancelJobGroup(group)

    def warm_up(self) -> None:
        """Runs small jobs, so that the first real one does not wait for class loading."""
        path = str(self.settings.scratch / f"warm-up-{os.getpid()}")
        with self.borrowed({}) as worker:
            session = worker.spark
            numbers = session.range(20_000)
            numbers = numbers.selectExpr("id % 7 AS k", "CAST(id AS DECIMAL(15,2)) AS v", "CAST(id AS STRING) AS t")
            if not self.settings.connect:
                numbers.coalesce(1).write.mode("overwrite").parquet(path)
                numbers = session.read.schema(numbers.schema).parquet(path)
            numbers.createOrReplaceTempView("warm")
            for _ in range(3):
                query = "SELECT k, sum(v * (1 - v)) AS a, count(*) AS b, max(t) AS c FROM warm GROUP BY k"
                session.sql(query).toArrow()
        shutil.rmtree(path, ignore_errors=True)

    def stop(self) -> None:
        """Releases executors and ends the JVM."""
        self.spark.stop()


def _empty(settings: SparkSettings) -> None:
    """A fresh scratch folder."""
    shutil.rmtree(settings.scratch, ignore_errors=True)
    for name in ("warehouse", "local"):
        (settings.scratch / name).mkdir(parents=True, exist_ok=True)

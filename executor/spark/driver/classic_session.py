"""A Spark session with its JVM in the driver: executors are its threads, or those of a cluster (child process only).

Owns: starting Spark with our configuration, the JVM's end, and job groups.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from executor.spark.driver.kept_plans import Plans
from executor.spark.driver.session import Session, Worker
from executor.spark.settings import SparkSettings, configuration
from executor.spark.unscaled import name_it


class ClassicSession(Session):
    """Spark in a JVM of ours."""

    def __init__(self, settings: SparkSettings) -> None:
        """Starts Spark; takes seconds."""
        from pyspark.sql import SparkSession

        _empty(settings)
        builder: Any = SparkSession.builder
        builder = builder.master(settings.master)
        for name, value in configuration(settings).items():
            builder = builder.config(name, value)
        super().__init__(settings, builder.getOrCreate(), {})
        self.spark.sparkContext.setLogLevel(settings.extra.get("spark.log.level", "WARN"))
        self.jvm = self.spark.sparkContext._gateway.proc
        self._made = 0

    def watch(self, died: Callable[[], None]) -> None:
        """Calls ``died`` from a thread when the JVM ends."""

        def wait() -> None:
            assert self.jvm is not None
            self.jvm.wait()
            died()

        threading.Thread(target=wait, name="jvm", daemon=True).start()

    def ping(self) -> None:
        """Returns when the JVM answers."""
        self.spark.sparkContext._jvm.java.lang.System.nanoTime()

    def _worker(self) -> Worker:
        session = self.spark.newSession()
        name_it(session)
        if not self.settings.local:
            return Worker(session, None)
        self._made += 1
        return Worker(session, Plans(session, self.settings.scratch / f"plans-{self._made}"))

    @contextmanager
    def group(self, session: Any, name: str) -> Iterator[None]:
        """Jobs that this thread starts meanwhile belong to a job group."""
        context = self.spark.sparkContext
        context.setJobGroup(name, f"millstream {name}", interruptOnCancel=True)
        try:
            yield
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)

    def job_ids(self, group: str) -> list[int]:
        """Spark's ids of a group's jobs."""
        return sorted(self.spark.sparkContext.statusTracker().getJobIdsForGroup(group))

    def cancel(self, group: str) -> None:
        """Ends a group's running jobs."""
        self.spark.sparkContext.cancelJobGroup(group)

    def _ship(self, path: Path) -> None:
        self.spark.sparkContext.addPyFile(str(path))

    @contextmanager
    def _as_input(self, session: Any, frame: Any) -> Iterator[Any]:
        path = str(self.settings.scratch / f"warm-up-{os.getpid()}")
        frame.coalesce(1).write.mode("overwrite").parquet(path)
        yield session.read.schema(frame.schema).parquet(path)
        shutil.rmtree(path, ignore_errors=True)


def _empty(settings: SparkSettings) -> None:
    """A fresh scratch folder."""
    shutil.rmtree(settings.scratch, ignore_errors=True)
    for name in ("warehouse", "local"):
        (settings.scratch / name).mkdir(parents=True, exist_ok=True)

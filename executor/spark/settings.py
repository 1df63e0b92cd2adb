"""How the Spark driver is started: what an operator chose, and the Spark configuration that follows from it.

Owns: ``SparkSettings`` and the default configuration (loopback only, no UI, no Hive, PostgreSQL's arithmetic). This
module knows no processes and does not import pyspark, so that the server can use it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Final

from msgspec import Struct, field

#: Cores of a cluster of which nothing is known.
_CLUSTER: Final = 8
_UNITS: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class SparkSettings(Struct, frozen=True):
    """``folder`` takes scratch files and the log, and belongs to the driver alone. Times in seconds."""

    folder: Path
    master: str = "local[*]"
    driver_memory: str = "2g"
    job_timeout: float = 600.0
    start_timeout: float = 180.0
    heartbeat: float = 2.0
    heartbeat_timeout: float = 30.0
    backoff: float = 1.0  # before the first restart; doubled up to ``backoff_limit``
    backoff_limit: float = 60.0
    log_bytes: int = 16 << 20
    warm_up: bool = True  # whether small jobs load Spark's classes before it is ready
    #: Further Spark settings; they win over ours.
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        """What driver and JVM print."""
        return self.folder / "spark.log"

    @property
    def scratch(self) -> Path:
        """Spark's local files; emptied whenever a driver starts."""
        return self.folder / "scratch"

    @property
    def connect(self) -> bool:
        """Whether ``master`` is a Spark Connect endpoint."""
        return self.master.startswith("sc://")

    @property
    def local(self) -> bool:
        """Whether executors are threads of the driver."""
        return self.master.startswith("local")


#: Settings of a session that the meaning of our SQL depends on (dialect.py); a job's session sets them again.
SEMANTICS: Final[dict[str, str]] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # Keeps the scale of decimal results and raises where 38 digits do not suffice, instead of dropping digits.
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.compression.codec": "snappy",
    "spark.sql.caseSensitive": "true",
    "spark.sql.variable.substitute": "false",  # ${...} in a string literal is text
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
}


def cores(settings: SparkSettings) -> int:
    """Parallel tasks of a local master or of a cluster that says how many; else as many as suit a small cluster."""
    if settings.local:
        count = settings.master.partition("[")[2].rstrip("]").partition(",")[0]
        return int(count) if count.isdigit() else (os.cpu_count() or 1) if count == "*" else 1
    found = settings.extra
    executors, each = found.get("spark.executor.instances", ""), found.get("spark.executor.cores", "")
    whole = found.get("spark.cores.max", "")
    if executors.isdigit() and each.isdigit():
        return int(executors) * int(each)
    return int(whole) if whole.isdigit() else _CLUSTER


def heap(settings: SparkSettings) -> float:
    """Bytes for what a query holds on a local master (Spark's unified memory is 0.6 of the heap), else no limit."""
    unit = _UNITS.get(settings.driver_memory[-1:].lower())
    number = settings.driver_memory[:-1]
    return 0.6 * int(number) * unit if settings.local and unit and number.isdigit() else inf


def of_session(settings: SparkSettings) -> dict[str, str]:
    """What a session may set for itself, also one behind a Connect endpoint."""
    values = {
        "spark.sql.shuffle.partitions": str(cores(settings)),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "256",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        # A plan is printed for each job, and not read: as little of it as possible.
        "spark.sql.ui.explainMode": "simple",
        "spark.sql.maxPlanStringLength": "100",
        "spark.sql.debug.maxToStringFields": "1",
        **SEMANTICS,
    }
    return values | dict(settings.extra)


def configuration(settings: SparkSettings) -> dict[str, str]:
    """The whole configuration of a session that we start ourselves (not of a Connect endpoint)."""
    scratch = settings.scratch
    values = {
        "spark.app.name": "millstream",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": settings.driver_memory,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "local"),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={scratch}",
        "spark.default.parallelism": str(cores(settings)),
        "spark.cleaner.referenceTracking.blocking": "false",
        "spark.scheduler.mode": "FAIR",
        "spark.log.level": "WARN",
    }
    if settings.local:
        values |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        values |= {"spark.python.daemon.module": "executor.spark.workers.daemon"}
    return values | of_session(settings)

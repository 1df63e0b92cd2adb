"""Running one job in Spark: inputs become temporary views, each statement's rows become Parquet runs.

Owns: how a request's inputs are read and its results written. A small job (by rows) reads every input as one
partition, so that joins and groupings need no shuffle and each statement is a single task, and its results come back
through Arrow and are written here, which is quicker than Spark's commit protocol; a large job is partitioned,
adaptive, and written by Spark's workers. Statements of one job run at the same time. Input files are always read by
Spark's own tasks.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from executor.spark.frames import Frame
from executor.spark.raw import WHOLE_FILES, quoted, read_raw
from executor.spark.session import Session
from executor.spark.settings import cores

#: Up to this many input rows a job is one partition.
ONE_PARTITION_ROWS: Final = 500_000
#: Up to this many input rows results are written by the driver rather than by Spark's workers.
COLLECT_ROWS: Final = 2_000_000
#: From this many input rows on a job is planned adaptively.
ADAPTIVE_ROWS: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class _Sized:
    """An input and how much of it there is; rows of CSV and JSON are guessed at 100 bytes each."""

    spec: Frame
    rows: int


def run(session: Session, request: Frame) -> Frame:
    """The answer to a ``run`` request: {runs: {state: [files]}, rows, seconds, jobs}."""
    started = time.monotonic()
    inputs = [_Sized(spec, _count(spec)) for spec in request["inputs"]]
    rows = sum(item.rows for item in inputs)
    small = rows <= request.get("one_partition_rows", ONE_PARTITION_ROWS)
    output = Path(request["output"])
    output.mkdir(parents=True, exist_ok=True)
    group = group_name(request["id"])
    write = _collected if rows <= request.get("collect_rows", COLLECT_ROWS) else _written
    statements: list[Frame] = request["statements"]
    with session.borrowed(_settings(inputs, rows)) as spark:
        prefix = ", ".join(_register(spark, item.spec, small) for item in inputs)
        prefix = f"WITH {prefix} " if prefix else ""

        def one(index: int, statement: Frame) -> list[str]:
            base = output / f"{index:03d}-{re.sub(r'[^A-Za-z0-9_.-]', '_', statement['state'])[:80]}"
            with session.group(spark, group):
                return write(spark.sql(prefix + statement["sql"]), base)

        with ThreadPoolExecutor(max_workers=min(len(statements), max(2, cores(session.settings)))) as pool:
            files = list(pool.map(one, range(len(statements)), statements))
    _sync_folder(output)
    return {
        "runs": {statement["state"]: paths for statement, paths in zip(statements, files, strict=True)},
        "rows": sum(item.rows for item in inputs if item.spec.get("delta")),
        "seconds": time.monotonic() - started,
        "jobs": session.job_ids(group),
    }


def group_name(request: int) -> str:
    """The Spark job group of a request of this driver."""
    return f"request-{request}"


def _settings(inputs: list[_Sized], rows: int) -> dict[str, str]:
    """What a job changes of the session's settings."""
    found = {"spark.sql.adaptive.enabled": "true"} if rows >= ADAPTIVE_ROWS else {}
    if any(item.spec.get("raw") and item.spec["format"] != "parquet" for item in inputs):
        found |= WHOLE_FILES
    return found


def _count(spec: Frame) -> int:
    if spec.get("format", "parquet") == "parquet":
        for path in spec["files"]:
            os.stat(path)  # names the file when it is missing
        return sum(pq.read_metadata(path).num_rows for path in spec["files"])
    return sum(os.path.getsize(path) for path in spec["files"]) // 100


def _register(spark: Any, spec: Frame, small: bool) -> str:
    """Makes an input a temporary view; the WITH item that gives statements its rows under the leaf's name."""
    if spec.get("raw"):
        frame = read_raw(spark, spec)
    elif spec["files"]:
        frame = spark.read.schema(_ddl(spec)).parquet(*spec["files"])
    else:
        frame = spark.createDataFrame([], _ddl(spec))
    stored, shown = quoted("in_" + spec["view"]), quoted(spec["view"])
    frame.createOrReplaceTempView("in_" + spec["view"])
    columns = ", ".join(quoted(name) for name, _ in spec["columns"]) or "1 AS `__none`"
    return f"{shown} AS (SELECT {'/*+ COALESCE(1) */ ' if small else ''}{columns} FROM {stored})"


def _ddl(spec: Frame) -> str:
    """The columns to read; one that no file has where none is read, since Spark wants a schema."""
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in spec["columns"]) or "`__none` INT"


def _collected(frame: Any, base: Path) -> list[str]:
    """The rows as one Parquet file written here."""
    table: pa.Table = frame.toArrow()
    path = base.with_name(base.name + ".parquet")
    with open(path, "wb") as file:
        pq.write_table(table, file, compression="snappy")
        file.flush()
        os.fsync(file.fileno())
    return [str(path)]


def _written(frame: Any, base: Path) -> list[str]:
    """The rows as Parquet files written by Spark's workers."""
    folder = base.with_name(base.name + ".parts")
    frame.write.mode("overwrite").parquet(str(folder))
    found: list[str] = []
    for index, part in enumerate(sorted(folder.glob("*.parquet"))):
        path = base.with_name(f"{base.name}-{index:05d}.parquet")
        os.replace(part, path)
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        found.append(str(path))
    shutil.rmtree(folder)
    return found


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

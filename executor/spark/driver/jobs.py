"""Running one job in Spark: inputs become temporary views, and each statement's rows become Parquet runs.

Owns: how a request's inputs are read and its results written. A small job (by rows) reads every input as one partition,
so that joins and groupings need no shuffle and each statement is a single task; its results come back through Arrow and
are written here, which is quicker than Spark's commit protocol. A large job is partitioned, adaptive, and written by
Spark's workers. Statements of one job run at the same time. Input files are always read by Spark's own tasks. A job of
a known shape runs the plans that were kept of an earlier one (``kept_plans``).
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, wait
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from executor.spark.driver.kept_plans import Leaf
from executor.spark.driver.parquet_inputs import FLOATING, own_schema, quoted, read_raw, values, verify_files
from executor.spark.driver.recursion_rounds import run_rounds
from executor.spark.driver.session import Session, Worker
from executor.spark.frames import Frame
from executor.spark.workers.kernel_calls import define

#: Up to this many input rows a job is one partition.
ONE_PARTITION_ROWS: Final = 500_000
#: Up to this many input rows results are written by the driver rather than by Spark's workers.
COLLECT_ROWS: Final = 2_000_000
#: From this many input rows on a job is planned adaptively.
ADAPTIVE_ROWS: Final = 4_000_000


class _Sized(Struct, frozen=True):
    """An input and how much of it there is; rows of CSV and JSON are guessed at 100 bytes each.

    ``leaf`` is there where one reader reads all of it.
    """

    spec: Frame
    rows: int
    leaf: Leaf | None


def run(session: Session, request: Frame) -> Frame:
    """The answer to a ``run`` request: {runs: {state: [files]}, rows, seconds, jobs}."""
    started = time.monotonic()
    inputs = [_sized(spec) for spec in request["inputs"]]
    rows = sum(item.rows for item in inputs)
    small = rows <= request.get("one_partition_rows", ONE_PARTITION_ROWS)
    output = Path(request["output"])
    output.mkdir(parents=True, exist_ok=True)
    group = group_name(request["id"])
    is_collected = rows <= request.get("collect_rows", COLLECT_ROWS)
    write = _collected if is_collected else _written
    statements: list[Frame] = request["statements"]
    with session.borrowed(_settings(inputs, rows)) as worker:
        define(worker.spark, worker.known, request.get("functions", ()))
        prefix = ", ".join(_with_item(item.spec, small) for item in inputs)
        prefix = f"WITH {prefix} " if prefix else ""
        loops: list[Frame] = request.get("loops", [])
        sql = [prefix + statement["sql"] for statement in statements]
        frames = _frames(worker, inputs, sql, is_collected and not loops)
        with session.group(worker.spark, group):
            for loop in loops:
                run_rounds(worker.spark, loop, prefix, write, output)

        def one(index: int) -> list[str]:
            base = output / f"{index:03d}-{re.sub(r'[^A-Za-z0-9_.-]', '_', statements[index]['state'])[:80]}"
            with session.group(worker.spark, group):
                return write(frames[index](), base)

        files = _each(session.pool, one, len(statements))
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
    return {"spark.sql.adaptive.enabled": "true"} if rows >= ADAPTIVE_ROWS else {}


def _sized(spec: Frame) -> _Sized:
    for path in spec["files"]:
        os.stat(path)  # names the file when it is missing
    if spec.get("raw"):
        verify_files(spec)
    footers = [pq.read_metadata(path) for path in spec["files"]]
    rows = sum(footer.num_rows for footer in footers)
    files, view = tuple(spec["files"]), "in_" + spec["view"]
    if not spec.get("raw"):
        has_nan = any(kind in FLOATING for _, kind in spec["columns"])
        return _Sized(spec, rows, Leaf(view, _ddl(spec), values(spec) if has_nan else (), files))
    if len(set(zip(*spec["partitions"].values(), strict=True))) > 1:
        return _Sized(spec, rows, None)
    schema = own_schema(spec, [footer.schema.to_arrow_schema() for footer in footers])
    return _Sized(spec, rows, Leaf(view, schema, values(spec), files) if schema is not None else None)


def _frames(worker: Worker, inputs: list[_Sized], statements: Sequence[str], kept: bool) -> Sequence[Callable[[], Any]]:
    """What gives each statement's rows, analysed before or when it is called."""
    leaves = [item.leaf for item in inputs if item.leaf is not None]
    if kept and worker.plans is not None and len(leaves) == len(inputs):
        return [partial(_same, frame) for frame in worker.plans.frames(leaves, statements)]
    for item in inputs:
        _read(worker.spark, item).createOrReplaceTempView("in_" + item.spec["view"])
    return [partial(worker.spark.sql, statement) for statement in statements]


def _same(frame: Any) -> Any:
    return frame


def _read(spark: Any, item: _Sized) -> Any:
    """An input's rows."""
    if item.leaf is None:
        return read_raw(spark, item.spec)
    if not item.leaf.files:
        return spark.createDataFrame([], _ddl(item.spec))
    return item.leaf.read(spark, item.leaf.files)


def _each(pool: Executor, work: Callable[[int], list[str]], count: int) -> list[list[str]]:
    """The work for each number at the same time, ended when all of it has ended."""
    if count == 1:
        return [work(0)]
    running = [pool.submit(work, number) for number in range(count)]
    wait(running)
    return [item.result() for item in running]


def _with_item(spec: Frame, small: bool) -> str:
    """The WITH item that gives statements an input's rows under the leaf's name."""
    stored, shown = quoted("in_" + spec["view"]), quoted(spec["view"])
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
    """The rows as Parquet files written by Spark's workers.

    Their folder's name is new each time: a Connect endpoint may go on with the job of a server that was killed, whose
    ids begin again.
    """
    folder = base.with_name(f"{base.name}.{uuid4().hex}.parts")
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

"""Spark maintaining a view beside Spark's own Structured Streaming: same query, same files, interval by interval.

Ours: the program of CREATE VIEW run by the Spark engine over one file an interval, as for a stream that follows a
folder, then the run read back and merged into the view's state. The peer: the query in update mode with one file a
trigger, no sink, and Spark's own time of each batch. Each has a warm driver with the same memory, cores and shuffle
partitions, and both take turns, so that a busy moment of the machine meets either.
``python -m bench.spark_vs_streaming`` runs it alone.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from bench.harness import ROOT, Rig, Row
from catalog.catalog import Catalog
from catalog.objects import ColumnDefinition, Stream
from catalog.values.types import DATE, INT4, INT8, TEXT, SqlType, numeric
from executor.embedded.engine import EmbeddedEngine
from executor.engine import ArrivedFiles, Inputs, Job
from executor.spark.engine import SparkEngine
from executor.traces.state import StateTrace
from planner.bind import Context, bind
from planner.incremental.plan import plan
from planner.incremental.programs.program import Program
from planner.parse.parser import parse
from planner.statements.statement import CreateView
from tests.rig.tpch import QUERIES

TITLE: Final = "Spark maintaining a view beside Structured Streaming, time per interval"
BY_ORDER: Final = "select l_orderkey, sum(l_quantity) as quantity, count(*) as lines from lineitem group by l_orderkey"
MONEY: Final = numeric(15, 2)
COLUMNS: Final[dict[str, SqlType]] = {
    **dict.fromkeys(("l_orderkey",), INT8),
    **dict.fromkeys(("l_partkey", "l_suppkey", "l_linenumber"), INT4),
    **dict.fromkeys(("l_quantity", "l_extendedprice", "l_discount", "l_tax"), MONEY),
    **dict.fromkeys(("l_returnflag", "l_linestatus"), TEXT),
    **dict.fromkeys(("l_shipdate", "l_commitdate", "l_receiptdate"), DATE),
    **dict.fromkeys(("l_shipinstruct", "l_shipmode", "l_comment"), TEXT),
}
STREAM: Final = Stream(
    16384, "lineitem", tuple(ColumnDefinition(*item) for item in COLUMNS.items()), (("source", "files"),)
)
ROW_GROUP: Final = 128 * 1024
MEMORY: Final = "2g"


class Case(Struct, frozen=True):
    """A query over intervals of so many rows, and how many times faster than the peer it is to be."""

    name: str
    query: str
    rows: int
    intervals: int
    aim: float


CASES: Final = (
    Case("query 1", QUERIES["q1"], 100_000, 20, 2.0),
    Case("by l_orderkey", BY_ORDER, 100_000, 20, 3.0),
    Case("query 1", QUERIES["q1"], 1_000_000, 5, 1.2),
    Case("by l_orderkey", BY_ORDER, 1_000_000, 5, 2.0),
)


def run(rig: Rig) -> list[Row]:
    """All cases."""
    folder = Path(tempfile.mkdtemp(prefix="spark-", dir=rig.folder))
    files = {size: _split(rig, folder, size) for size in sorted({case.rows for case in CASES})}
    engine = SparkEngine(folder / "ours", driver_memory=MEMORY)
    peer = Peer(folder / "peer")
    try:
        assert engine.process.wait_ready(180), engine.status()
        return [_measure(rig, case, files[case.rows][: case.intervals], engine, peer, folder) for case in CASES]
    finally:
        engine.close()
        peer.close()
        shutil.rmtree(folder, ignore_errors=True)


def _split(rig: Rig, folder: Path, size: int) -> list[Path]:
    """lineitem as Parquet files of so many rows; what is left over at the end is not used."""
    names = list(COLUMNS)
    schema = pa.schema([pa.field(name, kind.arrow) for name, kind in COLUMNS.items()])
    found: list[Path] = []
    target = folder / f"files-{size}"
    target.mkdir()
    with pq.ParquetFile(rig.tpch.parts(rig.scale, "lineitem", 1, "parquet")[0]) as source:
        for batch in source.iter_batches(batch_size=size, columns=names):
            if batch.num_rows == size and len(found) < max(case.intervals for case in CASES):
                table = pa.Table.from_batches([batch]).cast(schema)
                found.append(target / f"{len(found):03d}.parquet")
                pq.write_table(
                    table, found[-1], row_group_size=ROW_GROUP, store_decimal_as_integer=True
                )  # as Spark does
    return found


def _measure(rig: Rig, case: Case, files: Sequence[Path], engine: SparkEngine, peer: Peer, folder: Path) -> Row:
    """Both sides in turn; the first turn of each only warms up."""
    ours, theirs = [], []
    for turn in range(rig.rounds + 1):
        mine, others = _maintain(case, files, engine, folder / "runs"), peer.run(case.query, files)
        if turn:
            ours.append(statistics.median(mine) * 1000)
            theirs.append(statistics.median(others) * 1000)
    title = f"{case.name}, intervals of {case.rows:,} rows"
    ratio = f"{case.aim:g} times faster"
    return Row(
        title,
        statistics.median(ours),
        "ms",
        statistics.median(theirs),
        "ms Structured Streaming",
        case.aim,
        ratio,
        "less",
        tuple(ours),
    )


def _maintain(case: Case, files: Sequence[Path], engine: SparkEngine, output: Path) -> list[float]:
    """Seconds that each interval takes until the view's states hold it."""
    program = _program(case.query)
    (path,) = program.paths
    embedded = EmbeddedEngine()
    states: dict[str, StateTrace] = {}
    seconds = []
    for lsn, file in enumerate(files, 1):
        started = time.perf_counter()
        stat = file.stat()
        arrived = ArrivedFiles(STREAM, ((lsn, ((str(file), stat.st_size, stat.st_mtime_ns),)),))
        inputs = Inputs({STREAM.oid: arrived})
        result = engine.run(Job(lsn, path.statements, program.states, inputs, lsn - 1, lsn, output / str(lsn)))
        for state in program.states:
            run = pa.concat_tables([pq.read_table(item) for item in result.runs[state.name]])
            if state.name in states:
                states[state.name].append(run, lsn)
            else:
                states[state.name] = StateTrace(state, run, embedded)
        seconds.append(time.perf_counter() - started)
    embedded.close()
    shutil.rmtree(output)
    return seconds


def _program(query: str) -> Program:
    text = f"CREATE VIEW v AS {query.strip()}"
    statement = bind(parse(text)[0], Context(Catalog().add(STREAM))).statement
    assert isinstance(statement, CreateView)
    return plan(statement.query).program


class Peer:
    """Structured Streaming in a process of its own, so that its JVM has nothing to do with ours."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._log = (folder / "log").open("wb")
        command = [sys.executable, "-m", "bench.spark_vs_streaming", "--peer", str(folder)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._log, cwd=ROOT, text=True)

    def run(self, query: str, files: Sequence[Path]) -> list[float]:
        """Seconds of each batch."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"query": query, "folder": str(files[0].parent), "files": len(files)}
        print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        assert line, f"Structured Streaming failed, see {self._log.name}"
        answer: list[float] = json.loads(line)
        assert len(answer) == len(files)
        return answer

    def close(self) -> None:
        """Ends it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()


def _serve_peer(folder: Path, requests: IO[str], answers: IO[str]) -> None:
    """The peer's process: a query and a folder a line, the batches' seconds as the answer."""
    from pyspark.sql import SparkSession

    from executor.spark.settings import SparkSettings, cores

    builder: Any = SparkSession.builder
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": MEMORY,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores(SparkSettings(folder))),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.master("local[*]").getOrCreate()
    for number, line in enumerate(requests):
        request = json.loads(line)
        first = f"{request['folder']}/000.parquet"
        stream = spark.readStream.schema(spark.read.parquet(first).schema).option("maxFilesPerTrigger", 1)
        names = ",".join(f"{index:03d}" for index in range(request["files"]))
        stream.parquet(f"{request['folder']}/{{{names}}}.parquet").createOrReplaceTempView("lineitem")
        writer = spark.sql(request["query"]).writeStream.format("noop").outputMode("update")
        writer = writer.option("checkpointLocation", str(folder / f"checkpoint-{number}")).trigger(availableNow=True)
        query = writer.start()
        query.awaitTermination()
        batches = [progress for progress in query.recentProgress if progress["numInputRows"]]
        print(json.dumps([progress["batchDuration"] / 1000 for progress in batches]), file=answers, flush=True)
    spark.stop()


def main() -> None:
    """The peer's process, or this benchmark alone."""
    if sys.argv[1:2] == ["--peer"]:
        _serve_peer(Path(sys.argv[2]), sys.stdin, sys.stdout)
        return
    from bench.__main__ import main as run_benchmarks

    sys.argv = ["bench", "spark_vs_streaming", *sys.argv[1:]]
    sys.exit(run_benchmarks())


if __name__ == "__main__":
    main()

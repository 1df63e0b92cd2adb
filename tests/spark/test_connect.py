"""Spark through a Connect endpoint, with a real one: its jobs, the law, its end and its return."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.values.types import INT4, TEXT
from executor.engine import Inputs, Job
from executor.spark.engine import SparkEngine
from executor.traces.manifest import schema_of
from executor.traces.parquet import read_table
from tests.rig.connect import Endpoint
from tests.rig.mirror import Mirror, cut, mirrored
from tests.rig.postgres import Postgres
from tests.rig.process import wait_until
from tests.rig.server import Millstream, has_spark
from tests.rig.tpch import QUERIES, TABLES, Tpch
from tests.spark import test_engine as engine
from tests.spark import test_raw as raw
from tests.spark.build import call, listed, snapshot, stored
from tests.spark.test_process import ENDLESS

pytestmark = [pytest.mark.spark, pytest.mark.connect, pytest.mark.slow]
#: The properties of a Spark in a child process, one for each kind of way through a job.
SHARED = [
    engine.test_grouping_with_every_aggregate,
    engine.test_all_kinds_pass_unchanged,
    engine.test_counting_rows_reads_no_column,
    engine.test_two_statements_of_one_state_merge,
    engine.test_large_jobs_are_partitioned_and_written_by_workers,
    engine.test_a_missing_input_file_is_58p01,
    raw.test_parquet_with_several_row_groups_and_narrower_types,
]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """One endpoint for all tests; the first test ends it and starts it again."""
    started = Endpoint(tmp_path_factory.mktemp("endpoint"))
    started.start()
    started.wait()
    yield started
    started.kill9()


@pytest.mark.whole  # the next tests run the same jobs, and others kill drivers
@pytest.mark.postgres
@pytest.mark.timeout(300)
def test_views_equal_their_queries_while_the_endpoint_comes_and_goes(
    endpoint: Endpoint, postgres: Postgres, tpch: Tpch
) -> None:
    source = random.Random("connect")
    lines = tpch.lines(0.01, "lineitem")
    source.shuffle(lines)
    pieces = [b"".join(piece) for piece in cut(lines, 10, source)]
    settings = {"spark_master": endpoint.master, "maintenance_engine": "spark", "maintenance_rows": 5000}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as mirror:
        _prepare(mirror, tpch)
        server.wait_for_spark()
        _load(mirror, pieces[:3])
        wait_until(lambda: mirror.jobs("spark") > 0 and not _behind(mirror), 120, "job of Spark")
        mirror.check()  # the rows committed by Spark, without a tail

        mirror.copy("lineitem", pieces[3])
        endpoint.kill9()
        _load(mirror, pieces[4:6])
        wait_until(lambda: not has_spark(mirror.client) and not _behind(mirror), 120, "the embedded engine's turn")
        assert mirror.jobs("embedded") > 0
        mirror.restart(crash=True)  # and there is no endpoint
        _load(mirror, pieces[6:8])

        endpoint.start()
        wait_until(lambda: has_spark(mirror.client), 120, "return of Spark")
        done = mirror.jobs("spark")
        _load(mirror, pieces[8:])
        wait_until(lambda: mirror.jobs("spark") > done and not _behind(mirror), 120, "job of Spark")
        mirror.check()


def _prepare(mirror: Mirror, tpch: Tpch) -> None:
    for name in ("customer", "orders"):
        mirror.table(name, TABLES[name])
        mirror.copy(name, b"".join(tpch.lines(0.01, name)))
    mirror.stream("lineitem", TABLES["lineitem"])
    for name in ("q1", "q3"):
        mirror.view(name, QUERIES[name])


def _load(mirror: Mirror, pieces: list[bytes]) -> None:
    for piece in pieces:
        mirror.copy("lineitem", piece)
        mirror.check()


def _behind(mirror: Mirror) -> int:
    row = mirror.client.execute("SELECT sum(rows_behind)::int8 FROM millstream.views").fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture(scope="module")
def spark(endpoint: Endpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkEngine]:
    """An engine on the endpoint."""
    connected = SparkEngine(tmp_path_factory.mktemp("spark"), master=endpoint.master)
    assert connected.process.wait_ready(120), connected.status()
    yield connected
    connected.close()


@pytest.mark.parametrize("shared", SHARED, ids=lambda shared: shared.__name__)
def test_jobs_are_as_in_a_jvm_of_ours(
    spark: SparkEngine, tmp_path: Path, shared: Callable[[SparkEngine, Path], None]
) -> None:
    shared(spark, tmp_path)


@pytest.mark.parametrize(
    ("name", "sqlstate", "message"),
    [
        ("int_zero", "22012", "division by zero"),
        ("smallint", "22003", "smallint out of range"),
        ("digits", "22003", "numeric field overflow"),
    ],
)
def test_errors_of_the_data_are_postgresql_s(
    spark: SparkEngine, tmp_path: Path, name: str, sqlstate: str, message: str
) -> None:
    engine.test_errors_of_the_data_are_postgresql_s(spark, tmp_path, name, sqlstate, message)


def test_workers_have_the_embedded_engine_s_kernel(spark: SparkEngine, tmp_path: Path) -> None:
    assert spark.status().kernel == ""
    leaf, c = snapshot("s", {"k": INT4})
    statement, state = listed("q", leaf, [call("to_hex", TEXT, c["k"])])
    printed = spark.printed_query(statement, state, "UTC")
    assert not isinstance(printed, str)
    table = pa.table({"k": pa.array([255, None], pa.int32())})
    inputs = Inputs({}, {"s": (stored(table, tmp_path / "in.parquet"),)})
    job = Job(1, (statement,), (state,), inputs, 0, 0, tmp_path / "out")
    runs = spark.run_query(job, printed, lambda: False).runs["q"]
    assert isinstance(runs, tuple)
    assert read_table(runs, schema_of(state)).column(0).to_pylist() == ["ff", None]


def test_cancel_ends_a_request_and_nothing_else(spark: SparkEngine, tmp_path: Path) -> None:
    before = spark.status()
    assert before.jvm is None  # the endpoint's JVM is not a child process
    statements = [{"state": name, "sql": ENDLESS} for name in ("a", "b")]
    number, future = spark.process.submit("run", job=1, inputs=[], statements=statements, output=str(tmp_path / "out"))

    def ended() -> bool:  # a job cannot be cancelled before it has begun
        spark.process.cancel(number)
        return future.done()

    wait_until(ended, 60, "end of the request")
    assert future.result()["error"]["kind"] == "cancelled"
    assert spark.status() == before

"""A job like an earlier one runs the earlier one's plans, over its own files."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog.objects import ColumnDefinition, Stream
from catalog.values.errors import SqlError
from catalog.values.types import INT4, INT8, TEXT, numeric
from executor.engine import ArrivedFiles, Inputs, Job
from executor.spark.engine import SparkEngine
from planner.algebra.nodes import AggregateCall, ColumnRef, Delta
from planner.incremental.programs.program import State, Statement
from tests.rig.compare import assert_same_rows
from tests.spark.build import COLUMNS, STREAM, call, column, delta, grouped, join, listed, lit, rows, snapshot, stored
from tests.spark.test_engine import judged, tuples

pytestmark = [pytest.mark.spark, pytest.mark.slow]
Planned = tuple[Statement, State]
COUNT = AggregateCall("count", (), INT8)


def run(
    spark: SparkEngine, folder: Path, planned: list[Planned], files: list[Path], statics: dict[str, list[Path]]
) -> list[pa.Table]:
    """A job's runs, in the order of its statements."""
    folder.mkdir()
    states = tuple(state for _, state in planned)
    inputs = Inputs({STREAM: tuple(files)}, {name: tuple(paths) for name, paths in statics.items()})
    job = Job(1, tuple(item for item, _ in planned), states, inputs, 0, 9, folder / "out")
    found = spark.run(job).runs
    return [pa.concat_tables([pq.read_table(path) for path in found[state.name]]) for state in states]


def feed(spark: SparkEngine, output: Path, planned: Planned, files: list[Path]) -> pa.Table:
    """A job's run over a stream's own files."""
    columns = tuple(ColumnDefinition(item, COLUMNS[item]) for item in ("k", "i", "t"))
    stream = Stream(STREAM, "feed", columns, (("source", "files"),))
    arrived = tuple((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files)
    inputs = Inputs({STREAM: ArrivedFiles(stream, ((1, arrived),))})
    job = Job(1, (planned[0],), (planned[1],), inputs, 0, 1, output)
    (found,) = spark.run(job).runs[planned[1].name]
    return pq.read_table(found)


def test_each_job_sees_its_own_files(spark: SparkEngine, tmp_path: Path) -> None:
    leaf, c = delta("k", "n")
    planned = [grouped("g", leaf, [c["k"]], [AggregateCall("sum", (c["n"],), numeric(38, 2)), COUNT], ["sum", "sum"])]
    for number, sizes in enumerate([(300,), (5,), (2000, 1, 40), (0,), (300, 300)]):
        tables = [rows(size, seed=number * 10 + index) for index, size in enumerate(sizes)]
        files = [stored(table, tmp_path / f"{number}-{index}.parquet") for index, table in enumerate(tables)]
        (found,) = run(spark, tmp_path / str(number), planned, files, {})
        query = "SELECT k, sum(n)::decimal(38,2), count(*) FROM t GROUP BY k"
        assert_same_rows(tuples(found), judged(query, t=pa.concat_tables(tables)))


def test_a_static_that_grows_from_nothing(spark: SparkEngine, tmp_path: Path) -> None:
    leaf, c = delta("k", "i")
    side, s = snapshot("side", {"key": INT4, "label": TEXT})
    planned = [
        listed("j", join("inner", leaf, side, call("eq", COLUMNS["ok"], c["k"], s["key"])), [c["i"], s["label"]])
    ]
    table = rows(200, seed=1)
    file = stored(table, tmp_path / "delta.parquet")
    for count in (0, 1, 2000, 3):
        static = pa.table({"key": pa.array(range(count), pa.int32()), "label": [f"x{item}" for item in range(count)]})
        paths = [stored(static, tmp_path / f"static-{count}.parquet")] if count else []
        (found,) = run(spark, tmp_path / str(count), planned, [file], {"side": paths})
        query = "SELECT i, label FROM t JOIN side ON k = key"
        expected = judged(query, t=table, side=static) if count else []
        assert_same_rows(tuples(found), expected)


def test_plans_outlive_a_job_that_fails(spark: SparkEngine, tmp_path: Path) -> None:
    leaf, c = delta("i")
    planned = [listed("l", leaf, [call("div", INT4, lit(100, INT4), c["i"])])]
    schema = pa.schema([("i", pa.int32())])
    for number, (value, expected) in enumerate([(5, 20), (0, None), (4, 25), (0, None), (2, 50)]):
        file = stored(pa.table({"i": [value]}, schema), tmp_path / f"{number}.parquet")
        if expected is None:
            with pytest.raises(SqlError) as error:
                run(spark, tmp_path / str(number), planned, [file], {})
            assert error.value.sqlstate == "22012"
        else:
            (found,) = run(spark, tmp_path / str(number), planned, [file], {})
            assert tuples(found) == [(expected,)]


@pytest.mark.whole
def test_more_kinds_of_jobs_than_are_kept(spark: SparkEngine, tmp_path: Path) -> None:
    leaf, c = delta("k", "i")
    files = [stored(rows(10 + seed, seed), tmp_path / f"{seed}.parquet") for seed in range(2)]
    kinds = [[listed("l", leaf, [c["k"], lit(number, INT4)])] for number in range(34)]
    turns = (*range(34), 0, 33), (1, 2, 17, 0, 33)
    for turn, file in enumerate(files):
        for number in turns[turn]:
            folder = tmp_path / f"{turn}-{number}"
            folder = folder if not folder.exists() else tmp_path / f"{turn}-{number}-again"
            (found,) = run(spark, folder, kinds[number], [file], {})
            assert_same_rows(tuples(found), judged(f"SELECT k, {number} FROM t", t=pq.read_table(file)))


def test_files_of_one_stream_may_differ(spark: SparkEngine, tmp_path: Path) -> None:
    """Their types decide whether they can be read together; their names and further columns do not."""
    leaf, c = delta("k", "t")
    planned = grouped("g", leaf, [c["k"]], [AggregateCall("max", (c["t"],), TEXT), COUNT], ["max", "sum"])
    first, second, third = (rows(50 + seed, seed).select(["k", "i", "t"]) for seed in range(3))
    wide = second.append_column("more", pa.array(range(second.num_rows)))
    small = third.set_column(0, "k", third["k"].cast(pa.int8()))
    paths = [
        stored(item, tmp_path / name) for item, name in ((first, "a {b,c}"), (wide, "b=1[x*"), (small, "c?.parquet"))
    ]
    tables = [first, second, third]
    for turn, chosen in enumerate([(0, 1), (1,), (0, 2), (2,), (0, 1, 2)]):
        found = feed(spark, tmp_path / f"out-{turn}", planned, [paths[item] for item in chosen])
        expected = pa.concat_tables([tables[item] for item in chosen])
        assert_same_rows(tuples(found), judged("SELECT k, max(t), count(*) FROM t GROUP BY k", t=expected))
    with pytest.raises(SqlError, match="has no column") as error:
        feed(spark, tmp_path / "out", planned, [paths[0], stored(first.drop_columns(["t"]), tmp_path / "d.parquet")])
    assert error.value.sqlstate == "22P04"


@pytest.mark.parametrize("scale", [0, 2, 18])
def test_sums_of_numerics_are_exact_however_large(spark: SparkEngine, tmp_path: Path, scale: int) -> None:
    kind = numeric(18, scale)
    most = Decimal(10**18 - 1).scaleb(-scale)
    values = [most] * 40 + [-most] * 3 + [None, Decimal(1).scaleb(-scale)]
    groups = [0] * 40 + [1] * 3 + [2, 3]
    table = pa.table({"k": pa.array(groups, pa.int32()), "n": pa.array(values, kind.arrow)})
    file = stored(table, tmp_path / "delta.parquet")
    total = numeric(38, scale)
    k, n = column("k", INT4), column("n", kind)
    leaf = Delta(STREAM, "stream", (k, n), ("k", "n"))
    planned = [grouped("g", leaf, [ColumnRef(k)], [AggregateCall("sum", (ColumnRef(n),), total)], ["sum"])]
    (found,) = run(spark, tmp_path / "job", planned, [file], {})
    one = Decimal(1).scaleb(-scale)
    assert sorted(tuples(found), key=str) == [(0, most * 40), (1, most * -3), (2, None), (3, one)]

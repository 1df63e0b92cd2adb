"""Runs computed by Spark equal those of DuckDB for the same rows; errors carry PostgreSQL's SQLSTATE."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog.values.errors import SqlError
from catalog.values.types import BOOL, FLOAT8, INT2, INT4, INT8, TEXT, numeric
from executor.engine import EngineUnavailable, Inputs, Job
from executor.spark.engine import SparkEngine
from planner.algebra.nodes import AggregateCall, Cast, Scalar
from planner.incremental.programs.program import State, Statement
from tests.rig.compare import assert_same_rows
from tests.spark.build import STREAM, call, delta, grouped, join, listed, lit, rows, snapshot, stored, where

pytestmark = [pytest.mark.spark, pytest.mark.slow]
_jobs = iter(range(1, 1_000_000))
Planned = tuple[Statement, State]


def run(
    spark: SparkEngine,
    folder: Path,
    planned: list[Planned],
    table: pa.Table,
    statics: Mapping[str, pa.Table] | None = None,
) -> dict[str, pa.Table]:
    """The runs of a job, checked to have exactly the states' types."""
    number = next(_jobs)
    files = (stored(table, folder / f"delta-{number}.parquet"),)
    paths = {name: (stored(item, folder / f"{name}-{number}.parquet"),) for name, item in (statics or {}).items()}
    states = tuple({state.name: state for _, state in planned}.values())
    inputs = Inputs({STREAM: files}, paths)
    job = Job(number, tuple(item for item, _ in planned), states, inputs, 0, 100, folder / f"out-{number}")
    assert spark.supports(job.statements, states) is None
    result = spark.run(job)
    assert result.rows == table.num_rows
    assert bool(result.engine_jobs) != spark.process.settings.connect
    found = {name: pa.concat_tables([pq.read_table(path) for path in paths]) for name, paths in result.runs.items()}
    for state in states:
        expected = [(f"c{item.id}", item.type.arrow) for item in state.columns]
        assert [(field.name, field.type) for field in found[state.name].schema] == expected
    return found


def tuples(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(item.to_pylist() for item in table.columns), strict=True))


def judged(query: str, **tables: pa.Table) -> list[tuple[object, ...]]:
    """DuckDB's answer."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            connection.register(name, table)
        return tuples(connection.sql(query).to_arrow_table())


def total(item: Scalar) -> AggregateCall:
    kind = {"int2": INT8, "int4": INT8, "int8": numeric(38, 0), "float8": FLOAT8}.get(item.type.name)
    return AggregateCall("sum", (item,), kind or numeric(38, item.type.scale))


def test_grouping_with_every_aggregate(spark: SparkEngine, tmp_path: Path) -> None:
    leaf, c = delta("k", "s", "i", "b", "n", "m", "f", "t", "ok", "d", "ts", "tz")
    square = call("mul", numeric(30, 4), c["n"], c["n"])
    aggregates = [
        AggregateCall("count", (), INT8),
        AggregateCall("count", (c["t"],), INT8, filter=call("gt", BOOL, c["i"], lit(0, INT4))),
        *(total(c[name]) for name in ("s", "i", "b", "n", "m", "f")),
        total(square),
        *(
            AggregateCall(how, (c[name],), c[name].type)
            for how in ("min", "max")
            for name in ("b", "n", "t", "d", "ts", "tz")
        ),
        AggregateCall("bool_and", (c["ok"],), BOOL),
        AggregateCall("bool_or", (c["ok"],), BOOL),
        AggregateCall("count", (c["t"],), INT8, distinct=True),
    ]
    merges = ["sum"] * 9 + ["min"] * 6 + ["max"] * 6 + ["bool_and", "bool_or", "sum"]
    planned = [grouped("g", leaf, [c["k"]], aggregates, merges), grouped("all", leaf, [], aggregates, merges)]
    table = rows(3000, seed=1)
    found = run(spark, tmp_path, planned, table)
    values = (
        "count(*), count(t) FILTER (WHERE i > 0), sum(s)::bigint, sum(i)::bigint, sum(b)::decimal(38,0),"
        " sum(n)::decimal(38,2), sum(m)::decimal(38,4), sum(f), sum(n::decimal(30,2) * n)::decimal(38,4),"
        " min(b), min(n), min(t), min(d), min(ts), min(tz), max(b), max(n), max(t), max(d), max(ts), max(tz),"
        " bool_and(ok), bool_or(ok), count(DISTINCT t)"
    )
    assert_same_rows(tuples(found["g"]), judged(f"SELECT k, {values} FROM t GROUP BY k", t=table))
    assert_same_rows(tuples(found["all"]), judged(f"SELECT {values} FROM t", t=table))


def test_no_rows_still_give_the_only_group_of_a_grouping_without_keys(spark: SparkEngine, tmp_path: Path) -> None:
    leaf, c = delta("i")
    aggregates = [AggregateCall("count", (), INT8), total(c["i"])]
    found = run(spark, tmp_path, [grouped("g", leaf, [], aggregates, ["sum", "sum"])], rows(0, seed=1))
    assert tuples(found["g"]) == [(0, None)]


@pytest.mark.parametrize("kind", ["inner", "left", "semi", "anti"])
def test_joins_with_a_static(spark: SparkEngine, tmp_path: Path, kind: str) -> None:
    leaf, c = delta("k", "i")
    side, s = snapshot("side", {"key": INT4, "label": TEXT})
    static = pa.table(
        {"key": pa.array([1, 2, 2, None, 9], pa.int32()), "label": ["one", "two", "zwei", "none", "nine"]}
    )
    joined = join(kind, leaf, side, call("eq", BOOL, c["k"], s["key"]))
    outputs = [c["k"], c["i"], *([s["label"]] if kind in ("inner", "left") else [])]
    table = rows(500, seed=2)
    found = run(spark, tmp_path, [listed("j", joined, outputs)], table, {"side": static})
    label = ", label" if kind in ("inner", "left") else ""
    query = f"SELECT k, i{label} FROM t {kind} JOIN side ON k = key"
    assert_same_rows(tuples(found["j"]), judged(query, t=table, side=static))


def test_two_statements_of_one_state_merge(spark: SparkEngine, tmp_path: Path) -> None:
    leaf, c = delta("k", "i")
    first, state = grouped("g", leaf, [c["k"]], [total(c["i"])], ["sum"])
    again, d = delta("k", "i")
    second, _ = grouped("g", where(again, call("gt", BOOL, d["i"], lit(0, INT4))), [d["k"]], [total(d["i"])], ["sum"])
    table = rows(500, seed=3)
    found = run(spark, tmp_path, [(first, state), (second, state)], table)
    query = "SELECT k, (sum(i) + coalesce(sum(i) FILTER (WHERE i > 0), 0))::bigint FROM t GROUP BY k"
    assert_same_rows(tuples(found["g"]), judged(query, t=table))


def test_distinct_state_holds_each_row_once(spark: SparkEngine, tmp_path: Path) -> None:
    leaf, c = delta("k", "t")
    table = rows(500, seed=4)
    found = run(spark, tmp_path, [listed("d", leaf, [c["k"], c["t"]], "distinct")], table)
    assert_same_rows(tuples(found["d"]), judged("SELECT DISTINCT k, t FROM t", t=table))


def test_all_kinds_pass_unchanged(spark: SparkEngine, tmp_path: Path) -> None:
    names = ["s", "i", "b", "n", "m", "f", "t", "ok", "d", "ts", "tz", "__lsn", "__ordinal"]
    leaf, c = delta(*names)
    table = rows(300, seed=5)
    found = run(spark, tmp_path, [listed("l", leaf, [c[name] for name in names])], table)
    assert_same_rows(tuples(found["l"]), tuples(table.select(names)))


def test_counting_rows_reads_no_column(spark: SparkEngine, tmp_path: Path) -> None:
    leaf, _ = delta()
    counted = grouped("g", leaf, [], [AggregateCall("count", (), INT8)], ["sum"])
    assert tuples(run(spark, tmp_path, [counted], rows(123, seed=8))["g"]) == [(123,)]


def test_large_jobs_are_partitioned_and_written_by_workers(spark: SparkEngine, tmp_path: Path) -> None:
    """The other way through jobs.py, forced by its limits."""
    path = stored(rows(2000, seed=6), tmp_path / "delta.parquet")
    answer = spark.process.request(
        "run",
        job=1,
        inputs=[{"view": "d1", "columns": [["k", "INT"], ["i", "INT"]], "delta": True, "files": [str(path)]}],
        statements=[{"state": "g", "sql": "SELECT k, sum(i) AS v FROM d1 GROUP BY k"}],
        output=str(tmp_path / "out"),
        one_partition_rows=0,
        collect_rows=0,
    )
    assert "error" not in answer, answer
    files = answer["runs"]["g"]
    assert all(Path(file).suffix == ".parquet" for file in files)
    assert sorted(item.name for item in (tmp_path / "out").iterdir()) == sorted(Path(file).name for file in files)
    found = pa.concat_tables([pq.read_table(file) for file in files])
    expected = judged("SELECT k, sum(i)::bigint FROM t GROUP BY k", t=pq.read_table(path))
    assert_same_rows(tuples(found), expected)


def one(kind: str, value: object) -> pa.Table:
    """A row with one value."""
    empty = rows(1, seed=7)
    index = empty.schema.get_field_index(kind)
    return empty.set_column(index, kind, pa.array([value], empty.schema.field(index).type))


def failing(name: str) -> tuple[Planned, pa.Table]:
    """A statement that fails on its row."""
    leaf, c = delta("i", "b", "n", "s", "f")
    big = lit(Decimal(10**12), numeric(13, 0))
    outputs: dict[str, tuple[Scalar, str, object]] = {
        "int_zero": (call("div", INT4, lit(1, INT4), c["i"]), "i", 0),
        "mod_zero": (call("mod", INT4, lit(1, INT4), c["i"]), "i", 0),
        "float_zero": (call("div", FLOAT8, c["f"], c["f"]), "f", 0.0),
        "int": (call("add", INT4, c["i"], lit(1, INT4)), "i", 2**31 - 1),
        "neg": (call("neg", INT4, c["i"]), "i", -(2**31)),
        "smallint": (call("mul", INT2, c["s"], c["s"]), "s", 300),
        "bigint": (call("add", INT8, c["b"], c["b"]), "b", 2**62),
        "div_bigint": (call("div", INT8, c["b"], lit(-1, INT8)), "b", -(2**63)),
        "cast": (Cast(c["b"], INT2), "b", 40_000),
        "numeric": (Cast(c["n"], numeric(5, 2)), "n", Decimal("1234.00")),
        "digits": (
            call("mul", numeric(38, 2), call("mul", numeric(28, 2), c["n"], big), Cast(big, numeric(13, 0))),
            "n",
            None,
        ),
    }
    scalar, source, value = outputs[name]
    table = one(source, Decimal("9999999999999.99") if value is None else value)
    if name == "digits":
        scalar = call("mul", numeric(38, 2), scalar, big)
    return listed("x", leaf, [scalar]), table


@pytest.mark.parametrize(
    ("name", "sqlstate", "message"),
    [
        ("int_zero", "22012", "division by zero"),
        ("mod_zero", "22012", "division by zero"),
        ("float_zero", "22012", "division by zero"),
        ("int", "22003", "integer out of range"),
        ("neg", "22003", "integer out of range"),
        ("smallint", "22003", "smallint out of range"),
        ("bigint", "22003", "bigint out of range"),
        ("div_bigint", "22003", "bigint out of range"),
        ("cast", "22003", "smallint out of range"),
        ("numeric", "22003", "numeric field overflow"),
        ("digits", "22003", "numeric field overflow"),
    ],
)
def test_errors_of_the_data_are_postgresql_s(
    spark: SparkEngine, tmp_path: Path, name: str, sqlstate: str, message: str
) -> None:
    planned, table = failing(name)
    with pytest.raises(SqlError) as caught:
        run(spark, tmp_path, [planned], table)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)


def test_sums_that_overflow_are_22003_and_nothing_else(spark: SparkEngine, tmp_path: Path) -> None:
    leaf, c = delta("k", "b")
    table = pa.concat_tables([one("b", 2**63 - 1)] * 3)
    found = run(spark, tmp_path, [grouped("g", leaf, [], [total(c["b"])], ["sum"])], table)
    assert tuples(found["g"]) == [(Decimal(3 * (2**63 - 1)),)]


def test_a_missing_input_file_is_58p01(spark: SparkEngine, tmp_path: Path) -> None:
    leaf, c = delta("i")
    planned, state = listed("x", leaf, [c["i"]])
    job = Job(1, (planned,), (state,), Inputs({STREAM: (tmp_path / "gone.parquet",)}), 0, 1, tmp_path / "out")
    with pytest.raises(SqlError) as caught:
        spark.run(job)
    assert caught.value.sqlstate == "58P01"


def test_arrow_inputs_are_refused(spark: SparkEngine, tmp_path: Path) -> None:
    leaf, c = delta("i")
    planned, state = listed("x", leaf, [c["i"]])
    job = Job(1, (planned,), (state,), Inputs({STREAM: rows(1, seed=1)}), 0, 1, tmp_path / "out")
    with pytest.raises(EngineUnavailable, match="not on storage"):
        spark.run(job)


def test_what_spark_cannot_print_is_unavailable_with_its_reason(spark: SparkEngine, tmp_path: Path) -> None:
    leaf, c = delta("t")
    planned, state = listed("x", leaf, [call("upper", TEXT, c["t"])])
    assert spark.supports((planned,), (state,)) == "function upper is not supported on Spark"
    job = Job(1, (planned,), (state,), Inputs(), 0, 1, tmp_path / "out")
    with pytest.raises(EngineUnavailable, match="upper"):
        spark.run(job)

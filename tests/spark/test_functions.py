"""Functions that Spark evaluates itself have PostgreSQL's results: each expression over the same rows, as a grouping
key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog.catalog import Catalog
from catalog.objects import ColumnDefinition, Stream
from executor.engine import Inputs, Job
from executor.spark.engine import SparkEngine
from executor.spark.printing.statements import reason
from planner.bind import Context, bind
from planner.incremental.plan import plan
from planner.incremental.programs.program import State, Statement
from planner.parse.parser import parse
from planner.statements.statement import CreateView
from tests.rig.compare import assert_same_rows
from tests.rig.postgres import Postgres
from tests.spark.build import COLUMNS, STREAM, rows, stored

NAMES = [name for name in COLUMNS if not name.startswith("__")]
TYPES = (
    "k int, s smallint, i int, b bigint, n numeric(15,2), m numeric(12,4), f float8,"
    " t text, ok bool, d date, ts timestamp, tz timestamptz"
)
CATALOG = Catalog().add(Stream(STREAM, "stream", tuple(ColumnDefinition(name, COLUMNS[name]) for name in NAMES)))

SUPPORTED = [
    "i + 1", "i - s", "s * 100", "s / 7", "i % 7", "-i", "abs(i)", "abs(n)", "b / 3", "b % 1000", "i * 2::bigint",
    "n + m", "n - m", "n * m", "n * (1 - m)", "n * 2", "n % 7.5", "-n", "round(n)", "round(m, 2)", "ceil(n)",
    "floor(m)", "n::int8", "m::int", "m::numeric(9,1)", "n::numeric(20,6)", "i::numeric", "f::int8", "round(f)",
    "s::int", "i::float8", "n::float8", "i::text", "ok::text", "n::text", "ok::int", "f + 1.5::float8", "f * f",
    "f / 3::float8", "-f", "abs(f)", "i = 5", "n > m", "n = i", "n <> 0", "t < 'b'", "t >= 'B'", "t = 'it''s'",
    "d < date '2001-02-03'", "ok = (i > 0)", "ts > timestamp '2000-01-01'", "tz <= timestamptz '2040-06-01 12:00+02'",
    "f < 1", "ok IS TRUE", "ok IS NOT FALSE", "i IS DISTINCT FROM k", "t IS NOT DISTINCT FROM NULL", "t IS NULL",
    "NOT ok", "ok AND i > 0", "ok OR i > 0", "k IN (1, 2, NULL)", "k NOT IN (1, 2)", "t IN ('a', 'é')",
    "k BETWEEN 2 AND 4", "coalesce(n, m, 0)", "coalesce(t, 'none')", "nullif(k, 3)", "greatest(i, k, 10)",
    "least(n, m)", "CASE WHEN k = 1 THEN n WHEN k = 2 THEN m ELSE 0 END", "CASE WHEN i > 0 THEN 1 / nullif(s, 0) END",
    "t || '-' || t", "i || t", "t LIKE '%a%'", "t LIKE '_'", "t LIKE 'x\\%%'", "t NOT LIKE '%''%'", "length(t)",
    "char_length(t)", "octet_length(t)", "substring(t, 2)", "substring(t from 1 for 2)", "left(t, 2)", "right(t, 2)",
    "lpad(t, 4, 'xy')", "rpad(t, 4)", "strpos(t, 'a')", "position('' in t)", "trim(t)", "ltrim(t)", "rtrim(t)",
    "replace(t, 'a', 'é')", "repeat(t, 2)", "reverse(t)", "split_part(t, '%', 2)", "starts_with(t, 'b')", "md5(t)",
    "t = 'back\\slash'", "t = '${x}'", "concat(t, 'x', t)", "t::varchar(2)", "t::char(3)", "t::char(3) = 'a'",
    "d + 5", "d - 5", "5 + d", "d - date '2000-01-01'", "d + interval '1 month'",
    "ts - interval '1 month 2 days 03:04:05.678'", "ts + interval '-1 second'", "tz + interval '90 minutes'",
    "d::timestamp", "ts::date", "extract(year from d)", "extract(month from ts)", "extract(dow from d)",
    "extract(isodow from d)", "extract(doy from ts)", "extract(week from d)", "extract(quarter from d)",
    "extract(hour from ts)", "extract(minute from ts)", "extract(second from ts)", "date_trunc('month', ts)",
    "date_trunc('week', ts)", "date_trunc('hour', ts)", "date_trunc('quarter', ts)",
    "date_bin('15 minutes', ts, timestamp '2001-01-01')", "date_bin('1 day', tz, timestamptz '2030-01-01 00:00+00')",
    "'2024-02-29'::date", "1e3::float8", "NULL::int", "'\\x00ff'::bytea", "true", "-2147483648",
    "9223372036854775807", "n / nullif(m, 0)", "m / 3", "i / 7.0", "b::numeric / nullif(i, 0)",
    "0.2 * (n / 7)", "n::numeric(38,2) < m::numeric(38,6)", "n::numeric(38,2) IS DISTINCT FROM m::numeric(38,4)",
    "sqrt(abs(f))", "substring(t, k)", "substring(t, 0, 2)", "left(t, -1)", "right(t, -k)", "trunc(n)", "trunc(m, 1)",
    "sign(n)", "i & k", "i | k", "i # k", "~i", "i << 2", "b >> k", "translate(t, 'ab', 'x')", "concat_ws('-', t, t)",
    "trim(both 'ab' from t)", "ltrim(t, 'b')", "ascii(t)", "extract(century from d)", "extract(decade from ts)",
    "extract(epoch from ts)", "extract(isoyear from d)", "extract(millisecond from ts)", "extract(epoch from d)",
    "date_trunc('milliseconds', ts)", "isfinite(d)", "f = 'NaN'", "f > 1e3",
]  # fmt: skip

#: Expressions whose display scale depends on both operands.
QUOTIENTS = ("n / nullif(m, 0)", "m / 3", "i / 7.0", "b::numeric / nullif(i, 0)")

REFUSED = [
    "upper(t)", "lower(t)", "initcap(t)", "t ~ 'a.*'", "t ILIKE 'A%'", "exp(f)", "power(f, 2)",
    "f::numeric", "f::text", "d::text", "ts::text", "t::int", "t::date", "ts::timestamptz", "tz::timestamp",
    "tz::date", "date_trunc('day', tz)", "extract(hour from tz)", "t LIKE t", "t LIKE 'a\\bc'",
    "tz + interval '1 day'", "ts - ts", "chr(65)",
    "(m / 3) * (n / 7)",
]  # fmt: skip


#: What is computed together, as a job takes most of its time for each statement.
_OTHERS = [item for item in SUPPORTED if item not in QUOTIENTS]
TOGETHER = [*((item,) for item in QUOTIENTS), *(tuple(_OTHERS[at : at + 5]) for at in range(0, len(_OTHERS), 5))]


def grouped(expressions: Sequence[str], more: str = "") -> str:
    """The query that counts rows by expressions."""
    names = ", ".join(f"v{place}" for place in range(len(expressions)))
    values = ", ".join(f"{expression} AS v{place}" for place, expression in enumerate(expressions))
    return f"SELECT {names}, count(*) AS n{more} FROM (SELECT {values} FROM stream) AS q GROUP BY {names}"


def planned(*expressions: str) -> tuple[Statement, State]:
    """The statement of that query, as CREATE VIEW would make it."""
    text = f"CREATE VIEW v AS {grouped(expressions)}"
    statement = bind(parse(text)[0], Context(CATALOG)).statement
    assert isinstance(statement, CreateView)
    program = plan(statement.query).program
    ((state,), (path,)) = program.states, program.paths
    return path.statements[0], state


def tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(item.to_pylist() for item in table.columns), strict=True))


@pytest.mark.parametrize("expression", SUPPORTED)
def test_spark_takes_it(expression: str) -> None:
    statement, state = planned(expression)
    assert reason((statement,), (state,)) is None


@pytest.mark.parametrize("expression", REFUSED)
def test_spark_leaves_it_to_the_embedded_engine(expression: str) -> None:
    statement, state = planned(expression)
    found = reason((statement,), (state,))
    assert found is not None
    assert found.endswith("on Spark")
    assert "\n" not in found


@pytest.fixture(scope="module")
def data() -> pa.Table:
    return rows(400, seed=11)


@pytest.fixture(scope="module")
def judge(postgres: Postgres, data: pa.Table) -> Any:
    """PostgreSQL's results for the same rows."""
    with postgres.connect() as connection:
        connection.execute(f"CREATE TEMP TABLE stream ({TYPES})")
        with connection.cursor() as cursor, cursor.copy("COPY stream FROM STDIN") as copy:
            for row in tuples(data.select(NAMES)):
                copy.write_row(row)
        yield connection


@pytest.fixture(scope="module")
def answers(
    spark: SparkEngine, data: pa.Table, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, ...], list[tuple[Any, ...]]]:
    """Spark's rows for all expressions, from one job."""
    folder = tmp_path_factory.mktemp("functions")
    pairs = [planned(*expressions) for expressions in TOGETHER]
    different = {state.name: (statement, state) for statement, state in pairs}.values()
    statements, states = tuple(item for item, _ in different), tuple(item for _, item in different)
    delta = (stored(data, folder / "delta.parquet"),)
    result = spark.run(Job(1, statements, states, Inputs({STREAM: delta}), 0, 40, folder / "out"))
    return {
        expressions: tuples(pa.concat_tables([pq.read_table(path) for path in result.runs[state.name]]))
        for expressions, (_, state) in zip(TOGETHER, pairs, strict=True)
    }


@pytest.mark.spark
@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.parametrize("expressions", TOGETHER, ids=lambda expressions: expressions[0])
def test_it_means_what_postgresql_says(
    answers: dict[tuple[str, ...], list[tuple[Any, ...]]], judge: psycopg.Connection[Any], expressions: tuple[str, ...]
) -> None:
    shown = ", max(scale(v0))" if expressions[0] in QUOTIENTS else ""
    expected = judge.execute(grouped(expressions, shown).encode()).fetchall()
    width = len(expressions) + (2 if shown else 1)
    found = [row[:width] for row in answers[expressions]]
    assert_same_rows(map(_plain, found), map(_plain, expected), "; ".join(expressions))


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(_plain_value, row))


def _plain_value(value: Any) -> Any:
    """A numeric without the zeros of a declared scale; char(n) without its padding, as it is stored."""
    if hasattr(value, "normalize"):
        return value.normalize() + 0
    return value.rstrip(" ") if isinstance(value, str) else value

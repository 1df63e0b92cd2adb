"""Every aggregate over every type that it accepts: as a continuous view and as a query over a table, compared with
PostgreSQL.

Complements ``test_property``: larger and unusual values (extremes, special floats, empty and all-NULL groups),
expressions around and inside the aggregates, and the joins, CTEs, HAVING and ORDER BY with LIMIT on top.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import psycopg
import pytest

from tests.rig.compare import assert_same_rows
from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

COLUMNS = (
    "k integer, s smallint, i integer, l bigint, n numeric(12,2), u numeric(14,6), f double precision, r real, "
    "t text, b boolean, d date, ts timestamp"
)
NUMBERS = ("s", "i", "l", "n", "u", "f", "r")
EXACT = ("s", "i", "l", "n", "u")
AGGREGATES = (
    "count(*)",
    *(f"{name}({column})" for name in ("count", "sum", "avg", "min", "max") for column in NUMBERS),
    *(f"{name}({column})" for name in ("stddev", "variance", "stddev_pop", "var_pop") for column in ("s", "n", "f")),
    *(f"count(distinct {column})" for column in (*NUMBERS, "t", "b", "d")),
    *(f"array_agg(distinct {column})" for column in (*NUMBERS, "t", "b", "d", "ts")),
    *(f"{name}(distinct {column})" for name in ("sum", "avg") for column in EXACT),
    *(f"sum({column}) filter (where b)" for column in NUMBERS),
    *(f"{name}({column})" for name in ("min", "max") for column in ("t", "d", "ts")),
    *(f"{name}(b)" for name in ("bool_and", "bool_or", "every")),
    "string_agg(t, ',' order by t, i)",
    "string_agg(distinct t, ',')",
    "string_agg(distinct t, ',' order by t desc)",
    "array_agg(i order by i desc nulls last, k)",
    "string_agg(t, b::text order by t, b)",
    "string_agg(t::bytea, ', '::bytea order by t)",
    "json_agg(t order by t)",
    "json_agg(row(t, b) order by t, b)",
    "json_agg(distinct i)",
    "jsonb_agg(array[t, b::text] order by t, b) filter (where b)",
    "jsonb_agg(jsonb_build_object('n', n, 'at', ts) order by n, ts)",
    "json_object_agg(coalesce(t, '-'), n order by t, n)",
    "jsonb_object_agg(coalesce(t, '-'), u order by t, u)",
    "count(distinct (t, b))",
    "count(distinct row(i, n, d)) filter (where k > 1)",
    *(f"{name}({column})" for name in ("bit_and", "bit_or", "bit_xor") for column in ("s", "i", "l")),
    "bit_xor(distinct i)",
    *(f"percentile_cont(0.3) within group (order by {column})" for column in ("s", "n", "f")),
    "percentile_cont(1.0 / 4) within group (order by s)",
    *(f"percentile_disc(0.6) within group (order by {column} desc)" for column in ("i", "t", "d", "n", "ts")),
    *(f"mode() within group (order by {column}) filter (where b)" for column in ("s", "t", "n", "f")),
    "rank(3) within group (order by s)",
    "dense_rank(3) within group (order by s desc)",
    "percent_rank(3, 'b') within group (order by s, t)",
    "cume_dist(3) within group (order by s nulls first)",
    "regr_count(n, f)",
    "sum(n * u)",
    "sum(n / 3)",
    "round(avg(n / 7), 8)",  # PostgreSQL keeps the largest number of decimals of any quotient
    "sum(n) / count(*)",
    "sum(i) * 1.0 / count(*)",
    "round(sum(n) / nullif(sum(i), 0), 12)",  # PostgreSQL gives small quotients more than the 20 decimals kept here
    "round(avg(n), 2)",
    "coalesce(sum(n), 0)",
    "sum(case when b then n else 0 end)",
    "round(100.00 * sum(case when t = 'a' then n else 0 end) / nullif(sum(n), 0), 12)",
    "concat(bool_and(b), max(t), min(i))",
    "min(upper(t) || b)",
    "sum(extract(day from d))",
    "max(ts) - min(ts)",
    "max(d) - min(d)",
    "date_trunc('month', max(ts))",
    "sum(i / 2) + sum(s % 7)",
)
QUERIES = {
    "inner": "select name, count(*), sum(n) from x join side on k = id group by name",
    "semi": "select k, sum(n) from x where k in (select id from side) group by k",
    "exists": "select k, sum(n) from x where exists (select 1 from side where id = k and name <> 'b') group by k",
    "outer": "select k, name, count(*), max(t) from x left join side on k = id group by k, name",
    "anti": "select k, count(*) from x where not exists (select 1 from side where id = k) group by k",
    "grouped": "select a.k, a.c, b.m from (select k, count(*) as c from x where b group by k) a "
    "full join (select k, max(n) as m from x where not b group by k) b on a.k = b.k",
    "above": "select name, c from side left join (select k, count(*) as c from x group by k) g on k = id",
    "cte": "with g as (select k, sum(n) as total from x group by k) select * from g where total > "
    "(select avg(total) from g)",
    "having": "select k, b, count(*) from x group by k, b having count(*) > 2 and min(i) is not null",
    "top": "select k, sum(s) as total from x group by k order by total desc nulls last, k limit 3",
    "scalar": "select k, sum(n) from x where s > (select min(id) from side) group by k",
    "expression": "select k % 2 as parity, coalesce(t, '-') as t, count(*) from x group by k % 2, coalesce(t, '-')",
}


def value(source: random.Random, *choices: object) -> str:
    """One of the choices as a literal, or NULL."""
    return "NULL" if source.random() < 0.2 else str(source.choice(choices))


def row(source: random.Random) -> str:
    """A row of x; groups 7 to 9 have only NULLs."""
    key = source.randint(1, 9)
    if key > 6:
        return f"({key}{', NULL' * 11})"
    day = f"'2024-0{source.randint(1, 9)}-{source.randint(10, 28)}"
    fields = (
        str(key),
        value(source, -32768, 32767, source.randint(-99, 99)),
        value(source, -2147483648, 2147483647, source.randint(-9, 9)),
        value(source, 9223372036854775807 // 400, source.randint(-9, 9)),
        value(source, "99999999.99", "-99999999.99", source.randint(-(10**6), 10**6) / 100),
        value(source, "99999999.999999", "0.000001", "-0.5"),
        value(source, "'NaN'", "'Infinity'", "'-0'", *(source.randint(-400, 400) / 8 for _ in range(9))),
        value(source, source.randint(-400, 400) / 8),
        value(source, "''", "'a'", "'B'", "'é'", "'a,b'", "'z z'"),
        value(source, "true", "false"),
        value(source, f"{day}'"),
        value(source, f"{day} 12:34:56.{source.randint(0, 999999):06}'"),
    )
    return f"({', '.join(fields)})"


@pytest.fixture(scope="module")
def mirror(postgres: Postgres, whole: bool) -> Iterator[Mirror]:
    """A stream, a table with the same rows, and a small table to join. Each aggregate is in two views with ``--whole``,
    else in one: by turns with groups and without."""
    settings = {"maintenance_engine": "embedded", "spark_enabled": False, "maintenance_rows": 40}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as pair:
        pair.stream("x", COLUMNS)
        pair.table("y", COLUMNS)
        pair.table("side", "id integer PRIMARY KEY, name text")
        pair.insert("side", [(1, "a"), (2, "b"), (3, "a"), (8, None), (20, "c")], one_statement=True)
        for number, aggregate in enumerate(AGGREGATES):
            if whole or number % 2 == 0:
                pair.view(f"grouped{number}", f"SELECT k, {aggregate} FROM x GROUP BY k")
            if whole or number % 2:
                pair.view(f"single{number}", f"SELECT {aggregate} FROM x")
        for name, query in QUERIES.items():
            pair.view(f"shape_{name}", query)
        yield pair


def test_empty(mirror: Mirror) -> None:
    mirror.check()


def test_over_rows_in_several_batches(mirror: Mirror) -> None:
    source = random.Random(7)
    for size in (1, 70, 90):
        rows = f" VALUES {', '.join(row(source) for _ in range(size))}"
        for connection in (mirror.client, mirror.judge):
            for table in ("x", "y"):
                connection.execute(f"INSERT INTO {table}{rows}".encode())
    mirror.check()


@pytest.mark.sample(4)
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_query_over_a_table(mirror: Mirror, aggregate: str) -> None:
    for grouping in ("", " GROUP BY k", " GROUP BY k, b"):
        query = f"SELECT {aggregate} FROM y{grouping}".encode()
        assert_same_rows(*(_rows(connection, query) for connection in (mirror.client, mirror.judge)), aggregate)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", QUERIES)
def test_shape_over_a_table(mirror: Mirror, name: str) -> None:
    query = QUERIES[name].replace("from x", "from y").encode()
    assert_same_rows(*(_rows(connection, query) for connection in (mirror.client, mirror.judge)), name)


def _rows(connection: psycopg.Connection, query: bytes) -> list[tuple[object, ...]]:
    return connection.execute(query).fetchall()

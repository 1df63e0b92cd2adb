"""Ad hoc queries on Spark: the same rows as the embedded engine's, in their order, and no files left behind."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog.values.errors import SqlError
from executor.core import spark_queries
from executor.database.database import Database
from executor.spark.engine import SparkEngine
from planner import placement
from planner.algebra.nodes import Relation
from planner.bind import bind
from planner.bind.state.context import Context
from planner.lowering import lowered
from planner.parse.parser import parse
from tests.executor.client import Client, open_database
from tests.rig.beside import Beside
from tests.rig.process import wait_until

SETUP = """
CREATE TYPE pair AS (a int, b text);
CREATE TABLE t (k int, n numeric(15,2), u numeric, x text, f float8, d date, z timestamptz);
INSERT INTO t WITH RECURSIVE g(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < 1000)
    SELECT i % 7, i * 1.25 - 400, i / 3.0, 'x' || i % 5, i * 0.5, date '2024-01-01' + i,
    timestamptz '2024-01-01 00:00:00+00' FROM g;
INSERT INTO t VALUES (NULL, NULL, NULL, NULL, NULL, NULL, NULL), (9, 1, 1, 'y', 'NaN', NULL, NULL);
CREATE FOREIGN TABLE s (k int, v int) SERVER stream;
CREATE VIEW c AS SELECT k, count(*) AS n, sum(v) AS v FROM s GROUP BY k;
INSERT INTO s VALUES (1, 2), (1, 3), (2, 5), (0, 1);
"""
#: Arrow's types for texts, which a Parquet file records.
TEXTS = {"a": pa.string_view(), "b": pa.dictionary(pa.int32(), pa.large_string())}
QUERIES = (
    "SELECT * FROM t ORDER BY n DESC, k",
    "SELECT k, count(*), sum(n), avg(n), avg(u), avg(k), avg(f), max(d) FROM t GROUP BY k ORDER BY k NULLS FIRST",
    "SELECT n / 7, k / 2, n / nullif(k, 0), u / 3, 0.2 * u FROM t ORDER BY 1, 2",
    "SELECT x, n FROM t WHERE n > (SELECT avg(n) FROM t) ORDER BY n LIMIT 5 OFFSET 2",
    "SELECT a.k, a.n FROM t a WHERE n = (SELECT max(n) FROM t b WHERE b.k = a.k) ORDER BY 1",
    "SELECT count(*) FROM t",
    "SELECT c.k, c.n, t.x FROM c JOIN t ON t.k = c.k ORDER BY t.n, c.k",
    "SELECT * FROM c ORDER BY k DESC",
    "SELECT count(*) FROM t, millstream.views",
    "SELECT avg(n) FILTER (WHERE k = 1), avg(DISTINCT k) FROM t",
    "SELECT avg(n) FROM t WHERE k > 100",
    "SELECT k FROM t WHERE f = 'NaN' OR f > 1e6",
    "SELECT k FROM t WHERE f IN ('NaN', 1) AND f IS NOT DISTINCT FROM 'NaN'",
    "SELECT k, n NOT IN (SELECT u FROM t WHERE k IS NULL OR k = 1) FROM t ORDER BY n, k",
    "SELECT k FROM t WHERE k NOT IN (SELECT c.k FROM c) AND (k > 5 OR k IN (SELECT c.n FROM c)) ORDER BY n",
    "SELECT c.k, v.x FROM c, LATERAL (VALUES (c.k), (c.n + 10)) v (x) ORDER BY 1, 2",
    "SELECT d + k, d - 1 + k FROM t ORDER BY n, k",
    "SELECT n, row_number() OVER w, lag(n, 2) OVER w, sum(n) OVER (PARTITION BY k ORDER BY n ROWS 3 PRECEDING), "
    "avg(n) OVER w, count(*) OVER (), nth_value(x, 2) OVER w FROM t WINDOW w AS (PARTITION BY x ORDER BY n) "
    "ORDER BY n, k",
    "SELECT DISTINCT ON (k) k, n, x FROM t ORDER BY k, n DESC",
    "SELECT k, string_agg(x, ',' ORDER BY x DESC, n), array_agg(n ORDER BY n) FILTER (WHERE n < 0), "
    "mode() WITHIN GROUP (ORDER BY k) FROM t WHERE n < -390 OR n = 1 GROUP BY ROLLUP (k) ORDER BY k",
    "SELECT upper(x), left(x, -1), substring(x, 0, k), k & 3, extract(epoch FROM z), z::date, d::timestamptz, "
    "(ARRAY[k, 2])[1], 2 = ANY (ARRAY[k, NULL]) FROM t ORDER BY n, k",
    "SELECT k, unnest(ARRAY[k, NULL, 3]) FROM t WHERE n < -390 ORDER BY n, 2",
    "SELECT x FROM t WHERE x ~ '^x[1-3]$' OR x ILIKE 'Y%' ORDER BY n",
    "SELECT k, initcap(x), to_hex(k), to_char(d, 'Mon YYYY'), d::text, regexp_split_to_array(x, ''), random() < 2, "
    "CASE WHEN k <> 0 THEN to_hex(10 / k) END, (SELECT initcap(max(b.x)) FROM t b), round(n, k) FROM t ORDER BY n, k",
    "SELECT d - timestamp '2024-01-02 03:04', make_time(k, 1, 2.5), make_interval(days => k) + time '01:00', "
    "ARRAY[make_interval(months => k)], ('{\"a\": ' || k || '}')::jsonb -> 'a' FROM t WHERE k < 24 ORDER BY n, k",
    "SELECT k FROM t WHERE make_interval(months => k) = interval '60 days' AND k <> 0 AND to_hex(6 / k) = '3'",
    "SELECT to_hex(k), make_time(k, 0, 0), count(*), max(initcap(x)) FILTER (WHERE to_hex(k) > '1') FROM t "
    "WHERE k < 24 GROUP BY 1, 2 ORDER BY make_interval(hours => max(k)) DESC",
    "SELECT a.n, c.n FROM t a LEFT JOIN c ON to_hex(a.k) = to_hex(c.k) AND c.n > 1 ORDER BY a.n, a.k, c.n",
    "SELECT a.n, c.n FROM t a FULL JOIN c ON make_interval(days => a.k) = make_interval(months => c.k, days => -30) "
    "ORDER BY a.n, a.k, c.n",
    "SELECT x, row_number() OVER (PARTITION BY initcap(x) ORDER BY to_hex(k), n) FROM t ORDER BY n, k",
    "SELECT k FROM t WHERE to_hex(k) IN (SELECT to_hex(c.k) FROM c) ORDER BY n",
    "SELECT ROW(k, x)::pair, (ROW(k, x)::pair).b, ARRAY[ARRAY[k, 1], ARRAY[2, NULL]], 't'::regclass, pg_typeof(k), "
    "ROW(make_interval(days => k), time '01:00', ARRAY[n]) FROM t WHERE n < -390 OR k IS NULL ORDER BY 1 DESC, n",
    "SELECT p, count(*), array_agg(n ORDER BY p, n) FROM (SELECT ROW(k, x)::pair AS p, n FROM t) q GROUP BY p "
    "ORDER BY p",
    "SELECT a.p, count(*) FROM (SELECT ROW(k, x)::pair AS p FROM t) a JOIN (SELECT ROW(k, 'x1')::pair AS p FROM c) b "
    "ON a.p = b.p GROUP BY 1 ORDER BY 1",
    "SELECT c.k, ARRAY(SELECT t.n FROM t WHERE t.k = c.k ORDER BY t.x DESC, t.n LIMIT 9), "
    "(SELECT string_agg(x, ',') FROM (SELECT x FROM t WHERE t.k = c.k AND t.n < 90 ORDER BY n) q) FROM c "
    "ORDER BY c.k, c.n",
    "SELECT array_agg(e) FROM (SELECT n, k FROM t WHERE n < -380 ORDER BY n DESC, k) q, unnest(ARRAY[k, n]) e",
    "SELECT m, count(*), rank() OVER (ORDER BY m DESC) FROM "
    "(SELECT ARRAY[ARRAY[k % 2], ARRAY[nullif(k, 0)]] AS m FROM t) q GROUP BY m ORDER BY m",
)


@pytest.fixture(scope="module")
def database(spark: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    opened = open_database(tmp_path_factory.mktemp("adhoc") / "data")
    opened.analytics.spark = spark
    Client(opened).run(SETUP)
    yield opened
    opened.close()


@pytest.fixture
def client(database: Database) -> Client:
    found = Client(database)
    found.session.query_engine = "spark"
    return found


def scratch(database: Database) -> list[Path]:
    return list((database.core.options.shared_directory / "scratch").iterdir())


@pytest.mark.spark
@pytest.mark.sample(3)
@pytest.mark.parametrize("query", QUERIES)
def test_both_engines_give_the_same_rows(client: Client, query: str) -> None:
    found = client.run(query)
    client.session.query_engine = "embedded"
    assert repr(found) == repr(client.run(query))  # NaN equals NaN
    assert found
    assert scratch(client.session.database) == []


@pytest.mark.spark
def test_a_result_of_several_partitions_keeps_its_order(client: Client, spark: SparkEngine) -> None:
    query = "SELECT a.n, b.n, a.x FROM t a, t b WHERE a.k < 2 AND b.k = 5 ORDER BY a.n, b.n DESC"
    plain = spark.process.submit

    def submit(op: str, seconds: float | None = None, **values: Any) -> Any:
        return plain(op, seconds, **values, one_partition_rows=0, collect_rows=0)

    spark.process.submit = submit  # type: ignore[method-assign]
    try:
        found = client.run(query)
    finally:
        del spark.process.submit  # type: ignore[method-assign]
    client.session.query_engine = "embedded"
    assert found == client.run(query)


@pytest.mark.spark
def test_parameters_are_literals(client: Client) -> None:
    (raw,) = parse("SELECT k, n FROM t WHERE k = $1 AND x = $2 ORDER BY n LIMIT $3")
    statement = bind(raw, Context(client.session.catalog)).statement
    rows = []
    for engine in ("spark", "embedded"):
        client.session.query_engine = engine
        result = client.session.execute(statement, (3, "x2", 4))
        rows.append([row for batch in result.batches or () for row in batch.to_pylist()])
    assert rows[0] == rows[1]
    assert len(rows[0]) == 4


@pytest.mark.spark
def test_a_transaction_sees_its_own_changes(client: Client) -> None:
    client.run("BEGIN; INSERT INTO t (k) VALUES (77)")
    assert client.run("SELECT k FROM t WHERE k = 77") == [(77,)]
    client.run("ROLLBACK")
    assert client.run("SELECT k FROM t WHERE k = 77") == []


@pytest.mark.spark
def test_errors_of_the_data_and_what_spark_lacks(client: Client) -> None:
    for query, sqlstate, words in (
        ("SELECT n / (k - k) FROM t", "22012", "division by zero"),
        ("SELECT d + 2147483647 FROM t", "22008", "date out of range"),
        ("SELECT to_hex(1 / (k - k)) FROM t", "22012", "division by zero"),
        ("SELECT (x || 'y')::date FROM t WHERE n = 1.25 - 400", "22007", 'invalid input syntax for type date: "x1y"'),
        ("SELECT ln(f - f) FROM t WHERE k = 1", "2201E", "cannot take logarithm of zero"),
        ("SELECT x::int FROM t", "22P02", 'invalid input syntax for type integer: "x1"'),
        (
            "SELECT sum(n) OVER (ORDER BY n, random() ROWS 1 PRECEDING EXCLUDE TIES) FROM t",
            "0A000",
            "EXCLUDE TIES in a window's frame is not supported on Spark",
        ),
        ("SELECT (SELECT n FROM t) FROM t", "21000", "more than one row returned by a subquery used as an expression"),
    ):
        with pytest.raises(SqlError) as caught:
            client.run(query)
        assert (caught.value.sqlstate, caught.value.message) == (sqlstate, words)
    assert scratch(client.session.database) == []


@pytest.mark.spark
def test_local_time_is_the_session_s(client: Client) -> None:
    query = (
        "SELECT k, z, z::date, z::text, z + k * interval '1 month', extract(hour FROM z), d::timestamptz, z = d, "
        "z > '2020-01-01', date_trunc('day', z), z AT TIME ZONE 'Asia/Tokyo' FROM t "
        "WHERE k IN (1, 6) AND z < '2025-01-01' ORDER BY n"
    )
    rows = {}
    for zone in ("UTC", "Europe/Berlin"):
        for engine in ("embedded", "spark"):
            client.session.time_zone, client.session.query_engine = zone, engine
            rows[zone, engine] = client.run(query)
        assert rows[zone, "spark"] == rows[zone, "embedded"]
    assert rows["UTC", "spark"] != rows["Europe/Berlin", "spark"]
    windows = "SELECT count(*) OVER (ORDER BY z RANGE interval '1 day' PRECEDING) FROM t"
    with pytest.raises(SqlError, match="TimeZone is Europe/Berlin"):
        client.run(windows)


@pytest.mark.spark
def test_cancel_ends_the_job_and_the_next_query_runs(client: Client, spark: SparkEngine) -> None:
    endless = "SELECT count(*) FROM t a, t b, t c, t d WHERE a.n + b.n + c.n < d.n * 2"

    running = Beside(client.run, endless)
    wait_until(lambda: spark.process._child is not None and bool(spark.process._child.pending), 60, "job")
    client.session.cancel()
    with pytest.raises(SqlError, match="57014"):
        running.result()
    assert scratch(client.session.database) == []
    assert client.run("SELECT count(*) FROM t") == [(1002,)]


@pytest.mark.spark
@pytest.mark.sample(2)
@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_files_are_read_by_spark_itself(
    client: Client, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("a", "b"):
        if format == "parquet":
            numbers = pa.array([Decimal("1.255"), Decimal("-2.5")], pa.decimal128(9, 3))
            pq.write_table(
                pa.table({"n": numbers, "i": pa.array([1, 2], pa.int32()), "t": pa.array([part, None], TEXTS[part])}),
                tmp_path / f"{part}.{format}",
            )
        elif format == "csv":
            (tmp_path / f"{part}.csv").write_text(f"i,n,t\n1,1.255,{part}\n2,-2.5,\n")
        else:
            (tmp_path / f"{part}.json").write_text(f'{{"i": 1, "n": 1.255, "t": "{part}"}}\n{{"i": 2, "n": -2.5}}\n')
    options = f"path '{tmp_path}', format '{format}'" + (", header 'true'" if format == "csv" else "")
    client.run(
        f"CREATE FOREIGN TABLE files_{format} (i bigint, n numeric(9,2), t text) SERVER files OPTIONS ({options})"
    )
    query = f"SELECT i, avg(f.n), count(f.t), max(x) FROM files_{format} f LEFT JOIN t ON i = k GROUP BY i ORDER BY i"
    found = client.run(query)
    assert client.run(f"SELECT count(*) FROM files_{format}") == [(4,)]
    monkeypatch.setattr(placement, "EMBEDDED_ROWS", 0.1)
    client.session.query_engine = "auto"
    assert client.run(f"EXPLAIN {query}")[-1][0].startswith("Engine: spark (about")
    assert client.run(query) == found
    kernel = f"SELECT initcap(t) FROM files_{format} WHERE t = 'a'"
    assert "s of it in its Python workers" in client.run(f"EXPLAIN {kernel}")[-1][0]
    assert client.run(kernel) == [("A",)]
    monkeypatch.setattr(placement, "KERNEL_PASSES", 1e12)
    assert client.run(f"EXPLAIN {kernel}")[-1][0].startswith("Engine: embedded (about")
    client.session.query_engine = "embedded"
    assert client.run(query) == found


@pytest.mark.spark
def test_partitions_and_statistics_without_nan(client: Client, tmp_path: Path) -> None:
    for year, kind in ((2023, "a"), (2024, "it's \\ it"), (2024, "__HIVE_DEFAULT_PARTITION__")):
        folder = tmp_path / f"year={year}" / f"kind={quote(kind)}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"v": [1, year], "f": [0.5, math.nan]}), folder / "x.parquet")
    client.run(
        "CREATE FOREIGN TABLE parts (v int, f float8, year int, kind text) "
        f"SERVER files OPTIONS (path '{tmp_path}', partition 'year, kind')"
    )
    for query in (
        "SELECT year, kind, v, f FROM parts ORDER BY year, kind, v",
        "SELECT kind, sum(v) FROM parts WHERE year = 2024 GROUP BY kind ORDER BY kind",
        "SELECT count(*) FROM parts WHERE kind = 'a'",
        "SELECT v FROM parts WHERE f > 100 ORDER BY v",
        "SELECT v FROM parts WHERE f = 'NaN' AND year = 2023",
        "SELECT max(f) FROM parts",
    ):
        client.session.query_engine = "spark"
        found = client.run(query)
        client.session.query_engine = "embedded"
        assert str(found) == str(client.run(query))  # NaN differs from NaN
        assert found


@pytest.mark.spark
def test_delta_tables_are_lists_of_files(client: Client, tmp_path: Path) -> None:
    deltalake: Any = pytest.importorskip("deltalake")
    for day in (1, 2):
        rows = pa.table({"i": [day, day * 10], "day": [datetime.date(2024, 1, day)] * 2, "kind": ["a", None]})
        deltalake.write_deltalake(str(tmp_path), rows, partition_by=["day", "kind"], mode="append")
    client.run(
        "CREATE FOREIGN TABLE delta (i bigint, day date, kind text) "
        f"SERVER files OPTIONS (path '{tmp_path}', format 'delta')"
    )
    for query in (
        "SELECT * FROM delta ORDER BY i",
        "SELECT sum(i) FROM delta WHERE kind IS NULL AND day > '2024-01-01'",
    ):
        client.session.query_engine = "spark"
        found = client.run(query)
        client.session.query_engine = "embedded"
        assert found == client.run(query)
    assert found == [(20,)]
    later = pa.table({"i": [3], "day": [datetime.date(2024, 1, 1)], "kind": ["a"], "late": ["x"]})
    deltalake.write_deltalake(str(tmp_path), later, mode="append", schema_mode="merge")
    client.run(f"CREATE FOREIGN TABLE late (late text) SERVER files OPTIONS (path '{tmp_path}', format 'delta')")
    for engine in ("spark", "embedded"):
        client.session.query_engine = engine
        assert client.run("SELECT count(late), count(*) FROM late") == [(1, 5)], engine


def test_without_spark_it_says_so(tmp_path: Path) -> None:
    database = open_database(tmp_path / "data")
    client = Client(database)
    client.run("CREATE TABLE t (k int)")
    client.session.query_engine = "spark"
    with pytest.raises(SqlError) as caught:
        client.run("SELECT k FROM t")
    assert (caught.value.sqlstate, caught.value.message) == (
        "55000",
        "Spark cannot run the query: Spark is switched off",
    )
    assert client.run("SELECT 1") == [(1,)]
    assert scratch(database) == []
    database.close()


@pytest.mark.spark
def test_joins_are_ordered_by_what_is_known_of_the_inputs(client: Client, tmp_path: Path) -> None:
    pq.write_table(pa.table({"i": range(5000), "b": [i % 9 for i in range(5000)]}), tmp_path / "facts.parquet")
    client.run(
        "CREATE TABLE wide (i int PRIMARY KEY, v int); CREATE TABLE few (b int PRIMARY KEY, name text);"
        "INSERT INTO wide SELECT g, g % 3 FROM generate_series(0, 4999) g;"
        "INSERT INTO few VALUES (1, 'one'), (2, 'two');"
        f"CREATE FOREIGN TABLE facts (i bigint, b bigint) SERVER files OPTIONS (path '{tmp_path}')"
    )
    query = (
        "SELECT name, v, count(*) FROM wide, facts, few "
        "WHERE facts.i = wide.i AND facts.b = few.b AND name <> $1 GROUP BY 1, 2 ORDER BY 1, 2"
    ).replace("$1", "'two'")
    client.session.query_engine = "embedded"
    expected = client.run(query)
    assert not any("rows=" in line for (line,) in client.run(f"EXPLAIN {query}"))
    client.session.query_engine = "spark"
    assert client.run(query) == expected
    plan = [line.strip() for (line,) in client.run(f"EXPLAIN {query}")]
    scans = [line for line in plan if "Scan on" in line]
    assert sorted(line.partition(" on ")[2] for line in scans)[0].startswith("facts (i, b)  (rows=5000)")
    document = json.loads(client.run(f"EXPLAIN (FORMAT JSON) {query}")[0][0])[0]["Plan"]
    assert document["Plan Rows"] >= 1


@pytest.mark.spark
@pytest.mark.parametrize("prefix", ["", "EXPLAIN ", "EXPLAIN ANALYZE "])
def test_a_query_is_made_for_spark_once(client: Client, monkeypatch: pytest.MonkeyPatch, prefix: str) -> None:
    made: list[Relation] = []

    def noted(relation: Relation) -> Relation:
        made.append(relation)
        return lowered(relation)

    monkeypatch.setattr(spark_queries, "lowered", noted)
    assert client.run(prefix + "SELECT count(*) FROM t")
    assert len(made) == 1

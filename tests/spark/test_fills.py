"""Rows of views that are kept over much data, made by Spark: they are the embedded engine's, and follow changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog.values.errors import SqlError
from executor.core.spark_queries import SPARK_FAILED, Analytics
from executor.database.database import Database
from executor.maintained import maintained_views
from executor.spark.engine import SparkEngine
from tests.executor.client import Client, open_database
from tests.rig.process import wait_until

TABLES = """
CREATE TABLE a (k int PRIMARY KEY, g int, v numeric(10,2), f float8, t text, at timestamp);
CREATE TABLE b (k int, w numeric, d date);
CREATE TABLE r (k int PRIMARY KEY, above int);
INSERT INTO a SELECT i, i % 7, i * 1.25, i / 3.0, 'x' || i % 5, timestamp '2024-01-01' + i * interval '1 hour'
    FROM generate_series(1, 500) i;
INSERT INTO a VALUES (0, NULL, NULL, 'NaN', NULL, NULL);
INSERT INTO b SELECT i % 90, i / 8.0, date '2024-01-01' + i % 30 FROM generate_series(1, 800) i;
INSERT INTO r SELECT i, i / 2 FROM generate_series(1, 100) i;
"""
VIEWS = {
    "grouped": "SELECT g, count(*) n, sum(v) s, avg(v) m, min(t) low, max(f) f FROM a GROUP BY g",
    "joined": "SELECT a.k, a.t, b.w, b.d FROM a JOIN b ON a.k = b.k WHERE a.v > 10",
    "outer_joined": "SELECT a.g, count(b.k) n, sum(b.w) w FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.g "
    "HAVING count(*) > 2",
    "windows": "SELECT k, w, sum(w) OVER (PARTITION BY k ORDER BY d, w) s FROM b",
    "first_rows": "SELECT DISTINCT ON (g) g, k, v FROM a ORDER BY g, v DESC NULLS LAST, k",
    "unmatched": "SELECT k, v FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k)",
    "united": "SELECT k FROM a UNION SELECT k FROM b",
    "recursive": "WITH RECURSIVE up (k, above) AS (SELECT k, above FROM r UNION "
    "SELECT up.k, r.above FROM up JOIN r ON up.above = r.k) SELECT above, count(*) n FROM up GROUP BY above",
    "kernel": "SELECT to_char(at, 'YYYY-MM') m, count(*) n FROM a GROUP BY 1",
    "over_views": "SELECT j.t, count(*) n, max(g.s) s FROM joined j JOIN grouped g ON g.n > j.k GROUP BY j.t",
}
CHANGES = (
    "UPDATE a SET v = v + 1, g = k % 5 WHERE k < 20",
    "DELETE FROM b WHERE k % 9 = 1",
    "INSERT INTO b VALUES (3, 1.5, '2024-02-02'), (1000, 7, NULL)",
    "UPDATE r SET above = 5 WHERE k = 40",
)


#: Views that run without ``--whole``.
SOME = ("grouped", "joined", "outer_joined", "first_rows", "kernel", "over_views")


@pytest.fixture
def database(tmp_path: Path, spark: SparkEngine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    monkeypatch.setattr(maintained_views, "AT_ONCE", -1)
    opened = open_database(tmp_path)
    opened.analytics.spark = spark
    yield opened
    opened.analytics.spark = None
    opened.close()


def bag(rows: list[Any]) -> list[str]:
    return sorted(map(repr, rows))


def made_by(client: Client, view: str) -> str:
    lines = (line.strip() for (line,) in client.run(f"EXPLAIN SELECT * FROM {view}"))
    return next((line for line in lines if line.startswith("Rows Made By")), "")


def settle(client: Client, view: str) -> None:
    """Reads a view until its rows, and those that it is made of, are kept."""

    def is_made() -> bool:
        client.run(f"SELECT * FROM {view}")
        return made_by(client, view) != ""

    wait_until(is_made, 120)


@pytest.mark.spark
def test_spark_makes_the_rows_that_follow_changes(database: Database, whole: bool) -> None:
    client, views = Client(database), VIEWS if whole else {name: VIEWS[name] for name in SOME}
    client.run(TABLES)
    for name, query in views.items():
        options = "method = 'incremental', maintenance_engine = 'spark'"
        client.run(f"CREATE MATERIALIZED VIEW {name} WITH ({options}) AS {query}")
    for name in views:
        settle(client, name)
    assert {name for name in views if "Spark" in made_by(client, name)} == views.keys()
    for change in ("SELECT", *CHANGES):
        client.run(change)
        for name, query in views.items():
            assert bag(client.run(f"SELECT * FROM {name}")) == bag(client.run(query)), (name, change)
    assert all(made_by(client, name) for name in views)


@pytest.mark.spark
@pytest.mark.parametrize("sqlstate", SPARK_FAILED)
def test_the_embedded_engine_makes_rows_that_spark_does_not(
    database: Database, monkeypatch: pytest.MonkeyPatch, sqlstate: str
) -> None:
    def fails(*_: object) -> None:
        raise SqlError(sqlstate, "Spark could not run the query")

    monkeypatch.setattr(Analytics, "run", fails)
    client = Client(database)
    client.run("CREATE TABLE a (k int, v int); INSERT INTO a SELECT i % 5, i FROM generate_series(1, 100) i")
    query = "SELECT k, sum(v) s FROM a GROUP BY k"
    client.run(f"CREATE MATERIALIZED VIEW v WITH (method = 'incremental', maintenance_engine = 'spark') AS {query}")
    settle(client, "v")
    assert "Spark" not in made_by(client, "v")
    client.run("UPDATE a SET v = v + 1")
    assert bag(client.run("SELECT * FROM v")) == bag(client.run(query))
    assert not list(database.core.storage._scratch.rglob("*.parquet"))


@pytest.mark.spark
def test_by_default_few_rows_are_made_by_the_embedded_engine(database: Database) -> None:
    client = Client(database)
    client.run("CREATE TABLE a (k int, v int); INSERT INTO a SELECT i % 5, i FROM generate_series(1, 100) i")
    client.run("CREATE MATERIALIZED VIEW v WITH (method = 'incremental') AS SELECT k, sum(v) s FROM a GROUP BY k")
    settle(client, "v")
    assert "Spark" not in made_by(client, "v")

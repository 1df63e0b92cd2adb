"""Views over streams that no grouping takes in equal their queries over tables with the same rows.

The judge is the same query over tables, which get the same statements. Some streams are joined with a table that
changes, and the server starts again in between, so that rows come from memory, from runs and from the log.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.executor.client import Client, open_database
from tests.executor.view_queries import MAINTAINED, NOT_MAINTAINED, PARTLY, bag, names, row
from tests.rig.sampling import sample

TABLES = """
CREATE TABLE a (k int, g int, v int, t text, n numeric(10,2));
CREATE TABLE b (k int, g int, w bigint, t text, f float8, m numeric);
CREATE TABLE c (k int, x int[], d date, t text);
CREATE SCHEMA arriving;
CREATE FOREIGN TABLE arriving.a (k int, g int, v int, t text, n numeric(10,2)) SERVER stream;
CREATE FOREIGN TABLE arriving.b (k int, g int, w bigint, t text, f float8, m numeric) SERVER stream;
"""
#: Beside the queries over tables: what breaks a rule of groupings of streams, each in a way of its own.
OTHERS = (
    "SELECT * FROM a",
    "SELECT k + 1, upper(t) FROM a WHERE v > 0",
    "SELECT a.k, a.v, b.w FROM a, b WHERE a.k = b.k AND b.w BETWEEN a.v - 2 AND a.v + 2",
    "SELECT x.k, y.v FROM a x JOIN a y ON x.k = y.k + 1 WHERE x.v > 0",
    "SELECT count(*) FROM a x, a y, a z WHERE x.k = y.k AND y.g = z.g",
    "SELECT k, lag(v) OVER (ORDER BY k, v, t, n, g) FROM a",
    "SELECT count(*) FROM (SELECT 1 FROM a LIMIT 3) x",
    "SELECT g, count(*) FROM a WHERE v > (SELECT avg(w) FROM b WHERE b.g = a.g) GROUP BY g",
    "SELECT g, count(*) FROM a WHERE v > (SELECT min(w) FROM b) GROUP BY g",
    "SELECT count(*) FROM a WHERE v = 1 OR EXISTS (SELECT 1 FROM c WHERE c.k = a.k)",
    "SELECT a.k, l.w FROM a, LATERAL (SELECT w FROM b WHERE b.k < a.k ORDER BY w DESC, k, g, t LIMIT 1) l",
    "SELECT a.g, sum(b.w) FROM a JOIN c USING (k) JOIN b USING (k) GROUP BY a.g",
    "SELECT k, (SELECT max(w) FROM b WHERE b.k >= a.k) FROM a",
    "SELECT a.g, count(DISTINCT b.k), array_agg(b.w ORDER BY b.w, a.k) FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.g",
    "SELECT g, w FROM b EXCEPT ALL SELECT g, v FROM a WHERE v > 0",
    "SELECT g, avg(m) FROM (SELECT a.g, max(b.m) m FROM a JOIN b USING (k) GROUP BY a.k, a.g) x GROUP BY g",
    "SELECT 1 FROM a, b",
)
QUERIES = MAINTAINED + PARTLY + NOT_MAINTAINED + OTHERS


@pytest.mark.parametrize("method", sample(["auto", "incremental"], ("incremental",)))
@pytest.mark.parametrize("seed", sample(range(8), (0,)))
def test_views_equal_their_queries(tmp_path: Path, seed: int, method: str, whole: bool) -> None:
    drawn, database, steps = random.Random(seed), open_database(tmp_path), 8 if whole else 2
    try:
        client, streams = Client(database), Client(database)
        client.run(TABLES)
        streams.session.search_path = ("arriving", "public")
        for place, query in enumerate(QUERIES):
            listed = names(client, query)
            streams.run(f"CREATE VIEW v{place}{listed} WITH (maintained, method = '{method}') AS {query}")
        for step in range(steps):
            for _ in range(drawn.randint(1, 3)):
                table = drawn.choice("aabbc")
                rows = ", ".join(row(drawn, table) for _ in range(drawn.randint(1, 5)))
                client.run(f"INSERT INTO {table} VALUES {rows}")
                if table != "c":
                    client.run(f"INSERT INTO arriving.{table} VALUES {rows}")
            if drawn.random() < 0.3:
                client.run(f"DELETE FROM c WHERE k % {drawn.randint(2, 5)} = 0")
            if step == steps // 2:
                database.close()
                database = open_database(tmp_path)
                client, streams = Client(database), Client(database)
                streams.session.search_path = ("arriving", "public")
            for place, query in enumerate(QUERIES):
                if drawn.random() < 0.5:
                    assert bag(streams.run(f"SELECT * FROM v{place}")) == bag(client.run(query)), query
    finally:
        database.close()


def test_first_rows_of_a_stream_for_each_row_of_a_table_below_a_union(tmp_path: Path) -> None:
    """They are no grouping, since they are others for each row of the table."""
    database = open_database(tmp_path)
    try:
        client = Client(database)
        client.run("CREATE TABLE c (k int); CREATE FOREIGN TABLE a (k int, t text) SERVER stream")
        first = "LATERAL (SELECT a.t FROM a WHERE a.k = c.k ORDER BY a.t LIMIT 2)"
        client.run(f"CREATE VIEW v AS SELECT k::text AS u FROM c CROSS JOIN {first} l UNION SELECT t FROM a")
        client.run("INSERT INTO c VALUES (1), (3); INSERT INTO a VALUES (1, 'x'), (1, 'y'), (1, 'z'), (2, 'y')")
        assert bag(client.run("SELECT * FROM v")) == bag([("1",), ("x",), ("y",), ("z",)])
        client.run("UPDATE c SET k = 2 WHERE k = 1; INSERT INTO a VALUES (3, 'w')")
        assert bag(client.run("SELECT * FROM v")) == bag([("2",), ("3",), ("w",), ("x",), ("y",), ("z",)])
    finally:
        database.close()

"""Statements that change tables used by continuous views: what they read, what the views show, and restarts."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from tests.executor.client import Client, open_database

CLICKS = "CREATE FOREIGN TABLE clicks (page text, n int) SERVER stream"
COUNTS = "CREATE VIEW counts AS SELECT page, count(*) AS c, sum(n) AS s FROM clicks GROUP BY page"


@pytest.mark.slow
def test_changes_read_continuous_views_everywhere(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run(f"{CLICKS}; {COUNTS}")
    client.run("CREATE TABLE t (page text PRIMARY KEY, c int, twice int GENERATED ALWAYS AS (c * 2) STORED)")
    client.run("INSERT INTO clicks VALUES ('a', 1), ('a', 2), ('b', 3)")
    client.run("CREATE TABLE copied AS SELECT page, s FROM counts")
    assert client.run("SELECT * FROM copied ORDER BY page") == [("a", 3), ("b", 3)]
    merge = (
        "MERGE INTO t USING counts v ON v.page = t.page WHEN MATCHED THEN UPDATE SET c = v.c "
        "WHEN NOT MATCHED AND v.c > 1 THEN INSERT (page, c) VALUES (v.page, v.c)"
    )
    client.run(merge)
    assert client.run("SELECT * FROM t") == [("a", 2, 4)]
    client.run("INSERT INTO clicks VALUES ('a', 1)")
    upsert = "INSERT INTO t (page) VALUES ('a') ON CONFLICT (page) DO UPDATE SET c = (SELECT sum(c) FROM counts)"
    assert client.run(f"{upsert} RETURNING c, (SELECT max(c) FROM counts)") == [(4, 3)]
    client.run(merge)
    assert client.run("WITH x AS (DELETE FROM t RETURNING *) SELECT x.twice, s FROM x JOIN counts USING (page)") == [
        (6, 4)
    ]
    database.close()


@pytest.mark.slow
def test_views_and_restarts_see_what_one_statement_changed(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run(f"{CLICKS}; {COUNTS}; CREATE TABLE names (page text PRIMARY KEY, title text)")
    client.run("CREATE TABLE old AS SELECT * FROM names WITH NO DATA")
    client.run(
        "CREATE VIEW titled AS WITH q AS (SELECT page, count(*) AS c FROM clicks GROUP BY page) "
        "SELECT title, c FROM q JOIN names USING (page)"
    )
    client.run("INSERT INTO clicks VALUES ('a', 1), ('b', 1), ('b', 1)")
    client.run("INSERT INTO names VALUES ('a', 'Alpha') ON CONFLICT DO NOTHING")
    client.run(
        "INSERT INTO names VALUES ('a', 'Aleph'), ('b', 'Beth') ON CONFLICT (page) DO UPDATE SET title = excluded.title"
    )
    assert client.run("SELECT * FROM titled ORDER BY c") == [("Aleph", 1), ("Beth", 2)]
    client.run("WITH x AS (DELETE FROM names WHERE page = 'a' RETURNING *) INSERT INTO old SELECT * FROM x")
    assert client.run("SELECT * FROM titled") == [("Beth", 2)]
    database.close()
    database = open_database(tmp_path)
    client = Client(database)
    assert client.run("SELECT * FROM titled") == [("Beth", 2)]
    assert client.run("SELECT * FROM old") == [("a", "Aleph")]
    client.run("MERGE INTO names USING old ON false WHEN NOT MATCHED THEN INSERT VALUES (old.page, old.title)")
    assert client.run("SELECT * FROM titled ORDER BY c") == [("Aleph", 1), ("Beth", 2)]
    database.close()


def test_a_statement_that_fails_halfway_changes_nothing(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run("CREATE TABLE t (k int PRIMARY KEY); CREATE TABLE u (k int); INSERT INTO t VALUES (1), (2)")
    for text in (
        "WITH x AS (DELETE FROM t RETURNING k), y AS (INSERT INTO u SELECT k FROM x) INSERT INTO t SELECT 7 FROM x",
        "MERGE INTO t USING (VALUES (1, 2), (3, 3)) q (k, n) ON q.k = t.k WHEN MATCHED THEN UPDATE SET k = n "
        "WHEN NOT MATCHED THEN INSERT VALUES (n)",
        "INSERT INTO t VALUES (1), (4) ON CONFLICT (k) DO UPDATE SET k = 2",
    ):
        with pytest.raises(SqlError) as caught:
            client.run(text)
        assert caught.value.sqlstate == "23505"
        assert client.run("SELECT k FROM t ORDER BY k") == [(1,), (2,)]
        assert client.run("SELECT * FROM u") == []
    with pytest.raises(SqlError, match="already exists"):
        client.run("CREATE TABLE u AS SELECT k FROM t")
    database.close()


def test_rows_that_changes_in_with_return_keep_their_decimals(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run("CREATE TABLE t (a int, n numeric, m numeric[])")
    client.run("INSERT INTO t VALUES (1, 2.50, '{1.0,2.500}'), (2, 3, '{4}')")
    moved = "WITH gone AS (DELETE FROM t RETURNING {}) INSERT INTO t SELECT {} FROM gone"
    shown = "SELECT n, n - n, m FROM t ORDER BY a"
    wanted = [("2.50", "0.00", ["1.0", "2.500"]), ("3", "0", ["4"])]
    assert client.run(shown) == wanted
    client.run(moved.format("*", "*"))
    assert client.run(shown) == wanted
    client.run(moved.format("a, n + 0.000 AS n, m", "a, n, m"))
    assert client.run(shown) == [("2.500", "0.000", ["1.0", "2.500"]), ("3.000", "0.000", ["4"])]
    back = "WITH x AS (UPDATE t SET n = n * 1.0 RETURNING n), y AS (SELECT n FROM x) SELECT sum(n) FROM y"
    assert client.run(back) == [("5.5000",)]
    database.close()

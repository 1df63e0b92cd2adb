"""EXPLAIN EXECUTE, and CREATE TABLE AS with parameters of the extended protocol."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.rig.server import Millstream

pytestmark = pytest.mark.slow  # a server of its own

Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture(scope="module")
def server() -> Iterator[Millstream]:
    with Millstream(settings={"spark_enabled": False}) as server:
        yield server


@pytest.fixture
def client(server: Millstream) -> Iterator[Connection]:
    with server.connect() as client:
        client.execute("CREATE TEMP TABLE t (a int PRIMARY KEY, b int)")
        client.execute("PREPARE change AS INSERT INTO t VALUES ($1, $2)")
        client.execute("PREPARE few AS SELECT * FROM t WHERE a > $1")
        yield client


def lines(client: Connection, statement: str) -> list[str]:
    return [str(line) for (line,) in client.execute(statement.encode()).fetchall()]


def test_explain_execute_shows_the_plan_and_does_nothing(client: Connection) -> None:
    assert lines(client, "EXPLAIN EXECUTE change(1, 2)")[0] == "Insert on t"
    assert "        Filter: (t.a > $1)" in lines(client, "EXPLAIN EXECUTE few(1)")
    assert client.execute("SELECT * FROM t").fetchall() == []


def test_explain_analyze_execute_runs_it_with_its_arguments(client: Connection) -> None:
    assert "Changed Rows: 1" in lines(client, "EXPLAIN ANALYZE EXECUTE change(1, 2)")
    assert client.execute("SELECT * FROM t").fetchall() == [(1, 2)]
    assert "Actual Rows: 1" in lines(client, "EXPLAIN ANALYZE EXECUTE few(0)")
    assert "Changed Rows: 1" in lines(client, "EXPLAIN ANALYZE CREATE TEMP TABLE u AS EXECUTE few(0)")
    assert client.execute("SELECT * FROM u").fetchall() == [(1, 2)]


def test_its_columns_are_explain_s(client: Connection) -> None:
    cursor = client.execute("EXPLAIN (FORMAT JSON) EXECUTE few(1)")
    assert cursor.description is not None
    assert [(column.name, column.type_code) for column in cursor.description] == [("QUERY PLAN", 114)]
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        client.execute("EXPLAIN EXECUTE missing(1)")


def test_create_table_as_takes_parameters(client: Connection) -> None:
    client.execute("CREATE TEMP TABLE w AS SELECT %s::int AS n, %s::text AS t", (7, "x"))
    assert client.execute("SELECT * FROM w").fetchall() == [(7, "x")]
    with pytest.raises(psycopg.errors.UndefinedParameter):
        client.execute("CREATE TEMP TABLE x AS SELECT $1")


def test_with_no_data_takes_the_columns_only(client: Connection) -> None:
    client.execute("INSERT INTO t VALUES (1, 2)")
    client.execute("CREATE TEMP TABLE c (x, y) AS EXECUTE few(0) WITH NO DATA")
    assert client.execute("SELECT x, y FROM c").fetchall() == []

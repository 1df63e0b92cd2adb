"""EXPLAIN of statements that change rows: its output, and that ANALYZE makes the changes of the statement."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from tests.executor.client import Client, open_database


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = open_database(tmp_path_factory.mktemp("explaining"))
    yield database
    database.close()


@pytest.fixture
def client(database: Database) -> Client:
    client = Client(database)
    client.run("DROP TABLE IF EXISTS t, u")
    client.run("CREATE TABLE t (a int PRIMARY KEY, b numeric)")
    client.run("INSERT INTO t VALUES (1, 1.5), (2, 2)")
    return client


def explained(client: Client, statement: str) -> list[str]:
    return [str(line) for (line,) in client.run(statement)]


@pytest.mark.parametrize(
    ("statement", "title", "changed", "rows"),
    [
        ("INSERT INTO t VALUES (3, 3), (4, 4)", "Insert on t", 2, 4),
        ("UPDATE t SET b = b + 1 WHERE a = 1", "Update on t", 1, 2),
        ("DELETE FROM t WHERE a = 1", "Delete on t", 1, 1),
        ("MERGE INTO t USING t u ON t.a = u.a AND t.a = 2 WHEN MATCHED THEN DELETE", "Merge on t", 1, 1),
    ],
)
def test_analyze_makes_the_changes(client: Client, statement: str, title: str, changed: int, rows: int) -> None:
    assert explained(client, f"EXPLAIN {statement}")[0] == title
    assert client.run("SELECT count(*) FROM t") == [(2,)], "without ANALYZE nothing is changed"
    client.run("BEGIN")
    lines = explained(client, f"EXPLAIN ANALYZE {statement}")
    assert lines[0] == title and f"Changed Rows: {changed}" in lines
    assert client.run("SELECT count(*) FROM t") == [(rows,)]
    client.run("ROLLBACK")
    assert client.run("SELECT count(*) FROM t") == [(2,)]
    explained(client, f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
    assert client.run("SELECT count(*) FROM t") == [(rows,)]


def test_the_document_names_operation_and_table(client: Client) -> None:
    conflict = "ON CONFLICT (a) DO UPDATE SET b = excluded.b RETURNING a"
    ((text,),) = client.run(f"EXPLAIN (ANALYZE, FORMAT JSON) INSERT INTO t VALUES (2, 7), (3, 1) {conflict}")
    (document,) = json.loads(str(text))
    plan = document["Plan"]
    names = ("Node Type", "Operation", "Relation Name", "Conflict Resolution", "Conflict Arbiter Indexes")
    assert [plan[name] for name in names] == ["ModifyTable", "Insert", "t", "UPDATE", "t_pkey"]
    assert (document["Changed Rows"], document["Actual Rows"]) == (2, 2)
    assert client.run("SELECT a FROM t ORDER BY a") == [(1,), (2,), (3,)]


def test_changes_in_with_are_parts_of_the_plan(client: Client) -> None:
    statement = "WITH gone AS (DELETE FROM t WHERE a = 1 RETURNING a) INSERT INTO t SELECT a + 10, a FROM gone"
    lines = explained(client, f"EXPLAIN ANALYZE {statement}")
    assert lines[0] == "Insert on t" and any(line.endswith("->  Delete on t") for line in lines)
    assert client.run("SELECT a FROM t ORDER BY a") == [(2,), (11,)]


def test_create_table_as_is_done_and_declare_is_not(client: Client) -> None:
    assert "Changed Rows: 2" in explained(client, "EXPLAIN ANALYZE CREATE TABLE u AS SELECT * FROM t")
    assert client.run("SELECT count(*) FROM u") == [(2,)]
    explained(client, "EXPLAIN CREATE TABLE w AS SELECT 1 AS one")
    with pytest.raises(SqlError, match='"w" does not exist'):
        client.run("SELECT * FROM w")
    assert "Actual Rows: 2" in explained(client, "EXPLAIN ANALYZE DECLARE c CURSOR FOR SELECT * FROM t")


def test_the_errors_are_the_statement_s(client: Client) -> None:
    with pytest.raises(SqlError, match="duplicate key"):
        client.run("EXPLAIN ANALYZE INSERT INTO t VALUES (1, 1)")


def test_drawn_values_are_drawn(client: Client) -> None:
    client.run("DROP SEQUENCE IF EXISTS s")
    client.run("CREATE SEQUENCE s")
    explained(client, "EXPLAIN SELECT nextval('s')")
    explained(client, "EXPLAIN ANALYZE SELECT nextval('s')")
    assert client.run("SELECT nextval('s')") == [(2,)]


def test_columns_of_arrays_are_widened_as_for_the_statement(client: Client) -> None:
    client.run("CREATE TABLE u (a int[]); CREATE VIEW v AS SELECT a FROM u")
    insert = "INSERT INTO u VALUES ('{{1,2}}')"
    with pytest.raises(SqlError, match="more than one dimension") as caught:
        client.session.execute_planned(client.planned(f"EXPLAIN ANALYZE {insert}"))
    assert (caught.value.sqlstate, "int[][]" in str(caught.value.hint)) == ("0A000", True)
    client.run("DROP VIEW v")
    client.session.execute_planned(client.planned(f"EXPLAIN {insert}"))
    assert client.run("SELECT a FROM u") == []
    client.session.execute_planned(client.planned(f"EXPLAIN ANALYZE {insert}"))
    assert client.run("SELECT array_dims(a) FROM u") == [("[1:1][1:2]",)]

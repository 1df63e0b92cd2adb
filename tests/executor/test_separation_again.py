"""Statements that run in steps again: Python continues from results that were small before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.embedded.pipeline_results import KeptResults
from executor.separation.step_runner import Stepwise
from planner.statements.statement import Statement
from tests.executor.client import Client, open_database, rows
from tests.executor.separating import QUERIES, TABLES, Asked, separable, whole

pytestmark = pytest.mark.usefixtures("everywhere")

GROUPS = "SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY n DESC, k"
#: Pipelines that read one small result, and whose own result others read.
CHAINS = (
    "SELECT max(m), count(*) FROM (SELECT max(n) AS m FROM (SELECT k, count(*) AS n FROM t GROUP BY k) y) x",
    "WITH g AS MATERIALIZED (SELECT k, sum(v) AS s FROM t GROUP BY k), "
    "h AS MATERIALIZED (SELECT k, s FROM g WHERE s > 100 ORDER BY s DESC LIMIT 7) SELECT k FROM h ORDER BY k LIMIT 3",
    "WITH g AS (SELECT k, sum(v) AS s FROM t GROUP BY k), h AS (SELECT max(s) AS m, min(s) AS l FROM g) "
    "SELECT a.m, b.l FROM h a, h b ORDER BY 1",
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = open_database(tmp_path_factory.mktemp("again"))
    Client(database).run(TABLES)
    yield database
    database.close()


@pytest.fixture
def client(database: Database) -> Client:
    return separable(database)


def again(client: Client, statement: Statement) -> list[tuple[Any, ...]]:
    result = client.session.execute(statement)
    assert result.batches is not None
    return [row for batch in result.batches for row in rows(batch)]


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The results without a table, at the end of queries."""
    found: list[str] = []
    close = KeptResults.close

    def noted(self: KeptResults) -> None:
        found.extend(self._fetched)
        close(self)

    monkeypatch.setattr(KeptResults, "close", noted)
    return found


@pytest.mark.parametrize("name", [name for name in QUERIES if "error" not in name])
def test_the_same_rows_each_time(name: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state is also the same."""
    query = QUERIES[name]
    wanted, statement = whole(client, query), client.bind(query)

    def required(found: list[tuple[Any, ...]]) -> None:
        assert (found if "ORDER BY" in query else sorted(found)) == wanted

    for _ in range(3):
        required(again(client, statement))
    for after in range(1, 20):
        with monkeypatch.context() as patch:
            asked = Asked(patch, after)
            try:
                required(again(client, statement))
                break
            except SqlError as error:
                assert error.sqlstate == "57014"
                query_id = asked.queries[0].id
        required(client.run(f"SELECT * FROM millstream.resume('{query_id}')"))  # type: ignore[arg-type]


def test_few_rows_are_fetched_once_that_is_known(client: Client, database: Database, fetched: list[str]) -> None:
    wanted, statement = whole(client, GROUPS), client.bind(GROUPS)
    assert again(client, statement) == wanted
    assert fetched == []
    assert again(client, statement) == wanted
    assert fetched == ["s_p1"]
    client.run("INSERT INTO u VALUES (1, 'w', 1)")  # whatever changes: they may be many
    assert again(client, statement) == wanted
    assert fetched == ["s_p1"]


def test_more_rows_than_before_are_a_table(client: Client, fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT id, count(*) AS n FROM t GROUP BY id ORDER BY id DESC"
    statement = client.bind(query)
    monkeypatch.setattr(KeptResults, "_is_few", lambda self, result: True)
    assert again(client, statement) == whole(client, query)
    assert fetched == []


def test_what_python_does_not_compute_is_a_table_after_all(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with an unusual value."""
    query = "SELECT k, max('infinity'::float8 * (v + 1)) + 1 AS n FROM t GROUP BY k ORDER BY n, k"
    wanted, statement = whole(client, query), client.bind(query)
    loaded: list[str] = []
    load = KeptResults._load

    def noted(self: KeptResults, name: str) -> None:
        loaded.append(name)
        load(self, name)

    monkeypatch.setattr(KeptResults, "_load", noted)
    for _ in range(3):
        assert again(client, statement) == wanted
    assert loaded == ["s_p1"] * 2


@pytest.mark.parametrize("query", CHAINS)
def test_steps_whose_few_rows_are_of_few_rows(query: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them fails, which would make the whole query run again."""
    wanted, statement = whole(client, query), client.bind(query)
    monkeypatch.setattr(Stepwise, "run", Stepwise._run)
    for _ in range(3):
        assert again(client, statement) == wanted


def test_nothing_is_left_of_temporary_results(client: Client, database: Database) -> None:
    statement = client.bind(QUERIES["groups of groups"])
    for _ in range(3):
        again(client, statement)
        snapshot = database.core.tables.snapshot()
        try:
            assert snapshot.connection.rows("SELECT table_name FROM duckdb_tables() WHERE temporary") == []
        finally:
            snapshot.close()

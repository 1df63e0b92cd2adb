"""The results with which a query leaves if it has a choice, and EXPLAIN's text about them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import force_setattr

from executor.database.database import Database
from executor.embedded.pipeline_results import KeptResults
from executor.separation import service, step_runner
from executor.separation.running_queries import Request, RunningQuery
from planner.algebra.nodes import Relation, Snapshot
from planner.separation.carried_state import Decision, decide
from tests.executor.client import Client, open_database
from tests.executor.separating import QUERIES, TABLES, Asked, leave, separable, whole

pytestmark = pytest.mark.usefixtures("everywhere")

#: Pipelines d (many rows from few), g and the result.
QUERY = (
    "WITH d AS (SELECT DISTINCT k, v FROM t), g AS (SELECT v % 7 AS m, count(*) AS n FROM d GROUP BY 1) "
    "SELECT a.m, a.n, b.m, (SELECT count(*) FROM d) FROM g a JOIN g b ON a.n >= b.n ORDER BY 1, 3"
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = open_database(tmp_path_factory.mktemp("leaving"))
    Client(database).run(TABLES)
    yield database
    database.close()


@pytest.fixture
def client(database: Database) -> Client:
    return separable(database)


def choosing_by(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Decision, set[str]], Decision]
) -> tuple[list[Request], list[Decision]]:
    """Requests the state of each query after its first pipeline, with changed decisions."""
    requests: list[Request] = []
    decisions: list[Decision] = []

    class Query(RunningQuery):
        def advance(self, rows: int, size: int) -> None:
            super().advance(rows, size)
            if self.finished == 1:
                requests.append(self.ask("suspend"))

    def decided(plan: Any, finished: set[str], *rest: Any) -> Decision:
        found = change(decide(plan, finished, *rest), set(finished))
        decisions.append(found)
        return found

    monkeypatch.setattr(service, "RunningQuery", Query)
    monkeypatch.setattr(step_runner, "decide", decided)
    return requests, decisions


@pytest.mark.slow
def test_small_states_move_at_once(client: Client, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = whole(client, QUERY)
    with monkeypatch.context() as patch:
        _, decisions = choosing_by(patch, lambda found, finished: found)
        query_id = leave(client, QUERY)
    assert query_id is not None
    assert [item.way for item in decisions] == ["move"]
    assert database.separation.stored.get(query_id).finished == 1
    assert client.run(f"SELECT * FROM millstream.resume('{query_id}')") == wanted


@pytest.mark.parametrize("kept", [(), ("d",)])
def test_a_smaller_state(
    kept: tuple[str, ...], client: Client, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query waits if possible, and leaves with less than all results."""
    wanted = whole(client, QUERY)
    names: list[str] = []

    def change(found: Decision, finished: set[str]) -> Decision:
        names[:] = finished
        if len(finished) < 2:
            return Decision("wait", frozenset(finished), 0.0, 0.0)
        return Decision("redo", frozenset(kept), 0.0, 0.0)

    with monkeypatch.context() as patch:
        requests, _ = choosing_by(patch, change)
        query_id = leave(client, QUERY)
    assert query_id is not None
    assert len(names) == 2
    assert [request.is_waiting for request in requests] == [True]
    stored = database.separation.stored.get(query_id)
    assert kept <= tuple(stored.runs)
    assert ("d" in stored.runs) == bool(kept)
    assert client.run(f"SELECT * FROM millstream.resume('{query_id}')") == wanted


@pytest.mark.slow
def test_an_older_result_is_kept_while_it_may_leave(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """No unfinished pipeline reads the groups any more, but carrying their pairs would cost more."""
    query = (
        "SELECT m, count(*) FROM (SELECT DISTINCT a.n * b.k AS m, b.k FROM "
        "(SELECT k, count(*) AS n FROM t GROUP BY k) a, u b, u c) x GROUP BY m ORDER BY m"
    )
    dropped: list[str] = []
    drop = KeptResults.drop

    def noted(self: KeptResults, result: Snapshot) -> None:
        dropped.append(result.trace)
        drop(self, result)

    wanted = whole(client, query)
    monkeypatch.setattr(KeptResults, "drop", noted)
    assert client.run(query) == wanted
    assert "p1" in dropped
    first, dropped[:] = dropped.index("p1"), []
    monkeypatch.setattr(step_runner, "LEAST", 0.0)

    def change(plan: Any, finished: set[str], *rest: Any) -> Decision:
        return Decision("redo", frozenset({"p1"}), 0.0, 0.0)

    monkeypatch.setattr(step_runner, "decide", change)
    assert client.run(query) == wanted
    assert "p1" not in dropped[: first + 1]


def test_rows_that_several_joins_meet_are_tables(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine does not know the number of Arrow rows, and would join them in any order."""
    query = QUERIES["joins"]
    wanted = whole(client, query)
    with monkeypatch.context() as patch:
        Asked(patch, 1)
        query_id = leave(client, query)
    loaded: list[str] = []
    load = KeptResults.load

    def noted(self: KeptResults, relation: Relation) -> None:
        load(self, relation)
        loaded.extend(self._tables)

    monkeypatch.setattr(KeptResults, "load", noted)
    assert client.run(f"SELECT * FROM millstream.resume('{query_id}')") == wanted
    assert len(loaded) > 2


def test_explain_says_how_a_query_would_leave(client: Client, database: Database) -> None:
    ((text,),) = client.run("EXPLAIN (FORMAT json) " + QUERY)
    pipelines = json.loads(str(text))[0]["Pipelines"]
    assert [item["Leaving"]["Way"] for item in pipelines[:-1]] == ["move"] * (len(pipelines) - 1)
    assert all(item["Plan Rows"] >= 1 and item["Plan Seconds"] > 0 for item in pipelines)
    assert all(item["Leaving"]["Bytes"] > 0 and item["Plan Bytes"] > 0 for item in pipelines[:-1])
    assert "Leaving" not in pipelines[-1]
    lines = [str(line) for (line,) in client.run("EXPLAIN " + QUERY)]
    assert sum(line.startswith("  Leaving After It: move with ") for line in lines) == len(pipelines) - 1
    force_setattr(database.core.options, "storage_bandwidth", 1000)
    try:
        lines = [str(line) for (line,) in client.run("EXPLAIN " + QUERY)]
    finally:
        force_setattr(database.core.options, "storage_bandwidth", 200 << 20)
    assert any(line.startswith("  Leaving After It: wait ") for line in lines)

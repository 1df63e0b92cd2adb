"""Queries in steps give the same rows as whole ones, and leave with everything that the rest of the query needs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from executor.database.database import Database
from executor.queries.client import Client as Asker
from executor.separation import service, steps
from executor.separation.running_queries import Request, RunningQuery
from tests.executor.client import Client, open_database
from tests.executor.separating import QUERIES, TABLES, Asked, leave, outcome, separable, whole

pytestmark = pytest.mark.usefixtures("everywhere")

#: With one pipeline, or with an error in the first.
WHOLE = ("one grouping", "an error that no row asks for")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = open_database(tmp_path_factory.mktemp("separation"))
    Client(database).run(TABLES)
    yield database
    database.close()


@pytest.fixture
def client(database: Database) -> Client:
    return separable(database)


@pytest.mark.parametrize("name", QUERIES)
def test_in_steps_as_a_whole(name: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, 0)
    assert outcome(client, QUERIES[name]) == whole(client, QUERIES[name])
    assert asked.queries or name in WHOLE


@pytest.mark.parametrize("name", QUERIES)
def test_after_every_pipeline(name: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    query = QUERIES[name]
    wanted = whole(client, query)
    for after in range(1, 20):
        with monkeypatch.context() as patch:
            Asked(patch, after)
            query_id = leave(client, query) if isinstance(wanted, list) else None
        if query_id is None:
            break
        found = client.run(f"SELECT * FROM millstream.resume('{query_id}')")
        assert (found if "ORDER BY" in query else sorted(found)) == wanted, after


def test_progress_of_steps_that_are_given_up_counts_no_more() -> None:
    """Also if another session asks for it at that moment."""
    query = RunningQuery(Asker(), ("a", "b"), (1.0, 1.0))
    query.advance(1, 1)

    def meanwhile() -> float:
        query.begin_anew(("c",), (1.0,))
        return 0.0

    query.measure = meanwhile
    assert query.progress == 0.0
    query.measure = lambda: 0.25
    assert query.progress == 0.25


@pytest.mark.parametrize("name", ["rows by a subquery", "the smallest of each"])
def test_a_long_query_has_somewhere_to_stop(name: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """By estimate it takes seconds; a shorter one of the same kind runs whole."""
    client.session.reader.separable = "auto"
    query = QUERIES[name]
    assert "Execution" not in str(client.run(f"EXPLAIN {query}"))
    monkeypatch.setattr(steps, "_STOPPABLE", 0.0)
    assert "Pipeline p1 (build)" in str(client.run(f"EXPLAIN {query}"))
    Asked(monkeypatch, 1)
    query_id = leave(client, query)
    assert query_id is not None
    assert client.run(f"SELECT * FROM millstream.resume('{query_id}')") == whole(client, query)


def test_equal_joins_are_one_pipeline(client: Client) -> None:
    found = str(client.run(f"EXPLAIN {QUERIES['equal joins']}"))
    assert found.count("Pipeline shared (shared)") == 1
    assert found.count("Snapshot of shared") == 2


@pytest.mark.parametrize("call", ["random() < 2", "clock_timestamp() > '2020-01-01'"])
def test_explain_of_volatile_functions(call: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query with volatile functions runs whole, and EXPLAIN says so."""
    query = f"SELECT n, {call} FROM (SELECT k, count(*) AS n FROM t GROUP BY k) g GROUP BY n"
    asked = Asked(monkeypatch, 0)
    assert client.run(query) == [(20, True)]
    assert asked.queries == []
    found = [str(line) for (line,) in client.run(f"EXPLAIN {query}")]
    assert "Execution: whole (it calls volatile functions)" in found
    assert not any("Pipeline" in line for line in found)


def test_asked_by_several_at_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """All sessions that asked for its state get it; it leaves once."""
    requests: list[Request] = []

    class Query(RunningQuery):
        def advance(self, rows: int, size: int) -> None:
            super().advance(rows, size)
            requests.extend(self.ask(wish, by_cost=False) for wish in ("suspend", "checkpoint", "migrate", "suspend"))

        def end(self) -> None:
            with self._lock:
                self._requests.append(Request("suspend"))  # the request came while the state was being written
            requests.extend(self._requests)
            super().end()

    monkeypatch.setattr(service, "RunningQuery", Query)
    query = QUERIES["groups of groups"]
    query_id = leave(client, query)
    assert [(item.wish, item.done) for item in requests] == [
        ("suspend", True),
        ("checkpoint", True),
        ("migrate", False),
        ("suspend", True),
        ("suspend", True),
    ]
    assert all(item.is_answered for item in requests)
    monkeypatch.undo()
    assert client.session.database.separation.forget(client.session.reader.client(), str(query_id))

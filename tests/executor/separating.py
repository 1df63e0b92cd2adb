"""Queries in steps: their sessions, plans that are cut at every place, and queries that leave at a stop.

Shared by the tests of separated queries on all engines and servers.
"""

from __future__ import annotations

from typing import Any

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.separation import service, slices, steps
from executor.separation.running_queries import Request, RunningQuery, Wish
from tests.executor.client import Client

QUERIES = {
    "one grouping": "SELECT k, sum(v) FROM t GROUP BY k",
    "sorted groups": "SELECT k % 7 AS m, count(*), sum(v), min(s) FROM t GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 5",
    "groups of groups": "SELECT n, count(*) FROM (SELECT k, count(*) AS n FROM t GROUP BY k) g GROUP BY n ORDER BY n",
    "shared": "WITH g AS (SELECT k, sum(v) AS v FROM t GROUP BY k) "
    "SELECT k, v FROM g WHERE v = (SELECT max(v) FROM g) ORDER BY k",
    "subqueries": "SELECT count(*) FROM t WHERE v > (SELECT avg(v) FROM t) AND k IN (SELECT k FROM u GROUP BY k)",
    "correlated": "SELECT k, (SELECT count(*) FROM u WHERE u.k = g.k) FROM (SELECT DISTINCT k FROM t) g ORDER BY k",
    "rows by a subquery": "SELECT id FROM t WHERE k IN (SELECT k FROM u WHERE x * 90 > "
    "(SELECT 0.5 * sum(v) FROM t y WHERE y.k = u.k AND y.id < 900)) ORDER BY id",
    "the smallest of each": "SELECT t.id, u.w FROM t JOIN u ON t.k = u.k WHERE v = "
    "(SELECT min(y.v) FROM t y JOIN u z ON y.k = z.k WHERE y.k = t.k) ORDER BY 1, 2",
    "equal joins": "SELECT t.k, sum(v * x) FROM t JOIN u ON t.k = u.k WHERE w = 'w3' GROUP BY t.k HAVING sum(v * x) > "
    "(SELECT sum(v * x) * 0.02 FROM t JOIN u ON t.k = u.k WHERE w = 'w3') ORDER BY 2 DESC, 1",
    "joins": "SELECT a.k, count(*) FROM t a JOIN u b ON a.k = b.k JOIN u c ON b.w = c.w "
    "LEFT JOIN t d ON d.k = c.k + 90 GROUP BY a.k ORDER BY 1, 2",
    "outer joins": "SELECT * FROM (SELECT k, sum(v) FROM t GROUP BY k) a FULL JOIN "
    "(SELECT k, max(w) FROM u GROUP BY k) b ON a.k = b.k ORDER BY 1, 3",
    "windows": "SELECT k, r FROM (SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v, id) AS r FROM t) x "
    "WHERE r < 3 ORDER BY 1, 2",
    "sets": "SELECT k FROM t EXCEPT SELECT k FROM u UNION ALL (SELECT k FROM u INTERSECT SELECT k FROM t) ORDER BY 1",
    "recursion": "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < "
    "(SELECT count(DISTINCT k) FROM u)) SELECT sum(n), (SELECT count(*) FROM (SELECT DISTINCT k FROM t) d) FROM r",
    "lateral": "SELECT g.k, x.v FROM (SELECT DISTINCT k FROM u) g, "
    "LATERAL (SELECT v FROM t WHERE t.k = g.k ORDER BY v DESC, id LIMIT 1) x ORDER BY 1",
    "kinds": "SELECT k, max(i), array_agg(s ORDER BY id), bool_or(b), max(n), max(d), max(j::text) FROM t "
    "GROUP BY k ORDER BY k",
    "lists": "SELECT string_agg(s, ',') FROM "
    "(SELECT s FROM (SELECT DISTINCT s, k FROM t WHERE id < 40) d ORDER BY k, s) o",
    "digits": "SELECT k, x, sum(x), avg(x) FROM (SELECT k, x, count(*) FROM u GROUP BY k, x) g "
    "GROUP BY k, x ORDER BY 1, 2",
    "digits within": "SELECT k, array_agg(x ORDER BY x), ROW(k, max(x), ROW(array_agg(x * 1.50 ORDER BY x))), "
    "array_agg(ROW(x / 3, w) ORDER BY x) FROM u GROUP BY k ORDER BY k",
    "nothing": "SELECT k, sum(v) FROM t WHERE k < 0 GROUP BY k ORDER BY 1",
    "counted": "SELECT count(*), (SELECT count(*) FROM u) FROM (SELECT DISTINCT k FROM t) d ORDER BY 1",
    "an error that no row asks for": "SELECT k, count(*) FROM t WHERE k < 0 AND v > (SELECT max(1 / (k - k)) FROM u) "
    "GROUP BY k ORDER BY 1",
}
TABLES = (
    "CREATE TABLE t (id int PRIMARY KEY, k int, v bigint, s text, i interval, b bool, n numeric(10, 2), d date,"
    " j jsonb);"
    "CREATE TABLE u (k int, w text, x numeric);"
    "INSERT INTO t SELECT g, g % 100, g * 7919 % 1000, 'text ' || g, make_interval(mins => g), g % 3 = 0, g / 4.0,"
    " date '2024-01-01' + g, jsonb_build_object('g', g) FROM generate_series(1, 2000) g;"
    "INSERT INTO u SELECT g % 60, 'w' || g % 11, g / 8.0 FROM generate_series(1, 300) g"
)


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are cut at every possible place."""
    cut_everywhere(monkeypatch)


def cut_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are cut at every possible place, for tests that share a database."""
    monkeypatch.setattr(steps, "LONG", 0.0)
    monkeypatch.setattr(steps, "is_bare", lambda relation: False)
    monkeypatch.setattr(steps, "_PROBED", 0)
    monkeypatch.setattr(steps, "_REPEATED", 0)
    monkeypatch.setattr(steps, "_SMALLER", 0)


def separable(database: Database) -> Client:
    """A session whose queries run in steps."""
    found = Client(database)
    found.session.reader.separable = "on"
    return found


def outcome(client: Client, query: str) -> Any:
    """A query's rows, in their order if it has one, or its error."""
    try:
        found = client.run(query)
    except SqlError as error:
        return error.sqlstate
    return found if "ORDER BY" in query.upper() else sorted(found)


def whole(client: Client, query: str) -> Any:
    """The outcome of a query that runs whole."""
    client.session.reader.separable = "off"
    found = outcome(client, query)
    client.session.reader.separable = "on"
    return found


class Asked:
    """Requests the state of each query after a number of pipelines, as another session would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int, wish: Wish = "suspend") -> None:
        self.requests: list[Request] = []
        self.queries: list[RunningQuery] = []
        asked = self

        class Query(RunningQuery):
            def advance(self, rows: int, size: int) -> None:
                super().advance(rows, size)
                asked.queries.append(self)
                if self.finished == after:
                    asked.requests.append(self.ask(wish, by_cost=False))

        monkeypatch.setattr(service, "RunningQuery", Query)


def leave(client: Client, query: str) -> str | None:
    """Runs a query that is asked to leave; returns its id, None if it ends first."""
    try:
        client.run(query)
    except SqlError as error:
        assert error.sqlstate == "57014", error
        assert error.hint is not None
        return error.hint.split("'")[1]
    return None


@pytest.fixture
def in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries also stop within pipelines."""
    cut_small(monkeypatch)


def cut_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices are small, and slicing always counts as worthwhile."""
    small = {"SLICE": 1e-9, "SLICE_ON_SPARK": 1e-9, "GROUP": 20, "_MOST": 4, "_FEWER": 0, "_BESIDE": 1e9}
    for name, value in small.items():
        monkeypatch.setattr(slices, name, value)
    monkeypatch.setattr(steps, "_STOPPABLE", 0.0)


class Leaving:
    """Requests the state of queries at some of their stops: between two pipelines, or two slices."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *after: int) -> None:
        self.stops = 0
        self.slices = 0
        self.progress: list[float] = []
        asked = self

        class Query(RunningQuery):
            def advance(self, rows: int, size: int) -> None:
                super().advance(rows, size)
                self._stop()

            def advance_slice(self, share: float, rows: int, size: int) -> None:
                super().advance_slice(share, rows, size)
                asked.slices += 1
                self._stop()

            def _stop(self) -> None:
                asked.stops += 1
                asked.progress.append(self.progress)
                assert self.seconds_left is not None
                if asked.stops in after:
                    self.ask("suspend", by_cost=False)

        monkeypatch.setattr(service, "RunningQuery", Query)


def go_on(client: Client, query: str, after: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The rows of a query that leaves at these stops, which are counted over all its runs."""
    with monkeypatch.context() as patch:
        Leaving(patch, *after)
        query_id = leave(client, query)
        if query_id is None:
            return None
        while True:
            try:
                found = client.run(f"SELECT * FROM millstream.resume('{query_id}')")
                return found if "ORDER BY" in query.upper() else sorted(found)
            except SqlError as error:
                assert error.sqlstate == "57014", error

"""Queries that read their input in slices give the same rows as whole ones, and can leave inside a pipeline."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.separation import running_queries, service, slices, steps
from executor.separation.query_artifact import SeparatedQueries
from tests.executor.client import Client, open_database
from tests.executor.separating import TABLES, Leaving, go_on, leave, outcome, separable, whole
from tests.rig.beside import Repeating
from tests.rig.sampling import examples

pytestmark = pytest.mark.usefixtures("everywhere", "in_slices")

QUERIES = {
    "groups": "SELECT k % 7 AS m, count(*), sum(v), avg(v), min(s), max(d), bool_or(b), avg(n), sum(i) FROM t "
    "GROUP BY 1 ORDER BY 1",
    "one group": "SELECT count(*), sum(v), avg(n), max(s), var_samp(v), stddev_pop(k) FROM t WHERE k < 40",
    "no row": "SELECT count(*), sum(v), count(v) FROM t WHERE k < 0",
    "no group": "SELECT k, sum(v) FROM t WHERE k < 0 GROUP BY k ORDER BY k",
    "distinct": "SELECT DISTINCT k, b FROM t ORDER BY 1, 2",
    "filters": "SELECT k, count(*) FILTER (WHERE b), sum(v + 0.5), max(DISTINCT v) FROM t GROUP BY k ORDER BY k",
    "having": "SELECT k, sum(v) FROM t GROUP BY k HAVING sum(v) > (SELECT avg(v) * 20 FROM t) "
    "ORDER BY 2 DESC, 1 LIMIT 5",
    "ties": "SELECT * FROM (SELECT k, count(*) AS n FROM t WHERE id % 10 <> 3 GROUP BY k ORDER BY n DESC "
    "FETCH FIRST 3 ROWS WITH TIES) x ORDER BY k",
    "joins": "SELECT w, count(*), sum(v) FROM t JOIN u USING (k) JOIN (SELECT DISTINCT k FROM u WHERE k > 3) x "
    "ON x.k = t.k GROUP BY w ORDER BY w",
    "outer joins": "SELECT w, count(v), sum(v) FROM u RIGHT JOIN t ON u.k = t.k + 50 GROUP BY w ORDER BY w",
    "membership": "SELECT k, count(*) FROM t WHERE k IN (SELECT k FROM u) AND NOT EXISTS "
    "(SELECT 1 FROM u WHERE u.k = t.k AND w = 'w3') GROUP BY k ORDER BY k",
    "groups of groups": "SELECT n, count(*), sum(a) FROM (SELECT k, count(*) AS n, avg(v) AS a FROM t GROUP BY k) g "
    "GROUP BY n ORDER BY n",
    "merged already": "SELECT k, sum(c), max(x) FROM (SELECT k, b, count(*) AS c, max(v) AS x FROM t GROUP BY k, b) g "
    "GROUP BY k ORDER BY k",
    "shared": "WITH g AS (SELECT k, sum(v) AS v FROM t GROUP BY k) SELECT g.k, g.v, h.v FROM g JOIN g h "
    "ON h.k = g.k + 1 WHERE g.v > (SELECT avg(v) FROM g) ORDER BY 1",
    "lateral": "SELECT t.k, sum(x.w) FROM t, LATERAL (SELECT t.k * u.k AS w FROM u WHERE u.k < 3) x GROUP BY t.k "
    "ORDER BY t.k",
    "elements": "SELECT e, count(*) FROM t, unnest(ARRAY[k % 3, k % 5]) AS e GROUP BY e ORDER BY e",
    "arms": "SELECT k, count(*) FROM (SELECT k FROM t UNION ALL SELECT k FROM u) b GROUP BY k ORDER BY k",
    "lists": "SELECT k, array_agg(id ORDER BY id), count(DISTINCT v), sum(x) FROM t JOIN u USING (k) GROUP BY k "
    "ORDER BY k",
    "digits": "SELECT k % 3 AS m, sum(x), avg(x) FROM u GROUP BY 1 ORDER BY 1",
    "digits of one value": "SELECT k % 3 AS m, max(x), min(x) FROM u GROUP BY 1 ORDER BY 1",
    "sampled": "SELECT k, count(*) FROM t TABLESAMPLE BERNOULLI (40) REPEATABLE (7) GROUP BY k ORDER BY k",
    "rows": "SELECT id, v * 2, s FROM t WHERE v % 9 = 1",
    "ordered rows": "SELECT id, i, n, j FROM t WHERE b ORDER BY n DESC, id",
    "first rows": "SELECT s, id % 7 FROM t WHERE k <> 3 ORDER BY 2 DESC, id LIMIT 9",
    "rows behind others": "SELECT * FROM (SELECT id, d FROM t ORDER BY v DESC, id LIMIT 20 OFFSET 1300) x ORDER BY 1",
    "no first row": "SELECT id FROM t WHERE v < 0 ORDER BY v, id LIMIT 3",
    "joined rows": "SELECT id, w FROM t JOIN u USING (k) WHERE v < 50 ORDER BY id, w, x",
    "rows of subqueries": "SELECT id FROM t WHERE v > (SELECT avg(v) * 1.9 FROM t) AND k NOT IN (SELECT k FROM u) "
    "ORDER BY id DESC",
    "rows of arms": "SELECT k, x FROM u WHERE x > 30 UNION ALL SELECT k, n FROM t WHERE n > 490 UNION ALL "
    "SELECT id, v FROM t WHERE id < 9 ORDER BY 2, 1",
    "rows of a query": "WITH f AS (SELECT id, v, k FROM t WHERE v < 400) "
    "SELECT a.id, b.k FROM f a JOIN f b ON a.id = b.id + 1 ORDER BY a.id",
    "ordered by what is not shown": "SELECT s FROM t WHERE k = 5 ORDER BY v * 7 % 11, id OFFSET 3",
    "elements of rows": "SELECT id, e FROM t, unnest(ARRAY[k, v]) AS e WHERE id % 50 = 1 ORDER BY e DESC, id",
    "one list": "SELECT array_agg(v ORDER BY id) FROM t",
    "lists of groups": "SELECT k, array_agg(v ORDER BY id) FROM t GROUP BY k",
    "an error": "SELECT sum(1 / (id - 1500)) FROM t",
    "an error of a row": "SELECT 1 / (id - 1500) FROM t",
}
#: Queries with one pipeline whose groups cannot be merged from parts.
SINGLE = {"one list", "lists of groups"}
WHOLE = {"lists", "arms"} | SINGLE


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = open_database(tmp_path_factory.mktemp("slices"))
    Client(database).run(TABLES)
    Client(database).run("DELETE FROM t WHERE id % 10 = 3; UPDATE t SET v = v + 1 WHERE id % 100 = 7")
    yield database
    database.close()


@pytest.fixture
def is_whole(request: pytest.FixtureRequest) -> bool:
    """``--whole``, as "whole" is the name of a query's rows."""
    return bool(request.getfixturevalue("whole"))


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", QUERIES)
def test_in_slices_as_a_whole(name: str, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    client = separable(database)
    with monkeypatch.context() as patch:
        seen = Leaving(patch)
        assert outcome(client, QUERIES[name]) == whole(client, QUERIES[name])
    assert bool(seen.slices) == (name not in WHOLE)
    assert seen.progress == sorted(seen.progress)
    assert not seen.progress or 0 < seen.progress[0] <= seen.progress[-1] <= 1


def test_progress_is_no_more_than_what_is_done(
    database: Database, monkeypatch: pytest.MonkeyPatch, is_whole: bool
) -> None:
    """However often other sessions ask for it, between two statements and within them."""
    off: list[float] = []

    class Query(running_queries.RunningQuery):
        def advance(self, rows: int, size: int) -> None:
            super().advance(rows, size)
            self._compare(0.0)

        def advance_slice(self, share: float, rows: int, size: int) -> None:
            super().advance_slice(share, rows, size)
            self._compare(share)

        def _compare(self, share: float) -> None:
            done = sum(self._efforts[: self.finished]) + share * self._efforts[self.finished]
            off.append(self.progress - done / sum(self._efforts))

    monkeypatch.setattr(service, "RunningQuery", Query)
    client, seen = separable(database), 0

    def ask() -> None:
        nonlocal seen
        seen += sum(query.progress <= 1 for query in database.separation.running.all())

    with Repeating(ask) as asking:
        while seen < (500 if is_whole else 200) and not asking.has_failed:
            for query in list(QUERIES.values())[:: 1 if is_whole else 3]:
                outcome(client, query)
    assert len(off) > 50
    assert off == pytest.approx([0.0] * len(off))


@pytest.mark.sample(5)
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in QUERIES if not name.startswith("an error")])
def test_leaving_at_every_stop(name: str, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    client, query = separable(database), QUERIES[name]
    wanted = whole(client, query)
    for after in itertools.count(1):
        found = go_on(client, query, (after,), monkeypatch)
        if found is None:
            break
        assert found == wanted, after
    assert after > 1 or name in SINGLE


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(
    st.sampled_from(sorted(name for name in QUERIES if not name.startswith("an error"))),
    st.sets(st.integers(1, 30), min_size=1, max_size=5),
)
@example("having", {1, 7, 9, 16, 22})
def test_leaving_again_and_again(database: Database, name: str, after: set[int]) -> None:
    """The law of separable state: wherever and however often a query leaves, it gives the same rows as the whole
    query."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        client, query = separable(database), QUERIES[name]
        wanted = whole(client, query)
        found = go_on(client, query, tuple(after), monkeypatch)
        assert found is None or found == wanted


def test_the_state_of_a_begun_aggregation_is_its_groups(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    client = separable(database)
    sizes = []
    for after in (1, 2, 3):
        with monkeypatch.context() as patch:
            Leaving(patch, after)
            query_id = leave(client, "SELECT k % 7 AS m, sum(v) FROM t WHERE v < 1000 GROUP BY 1 ORDER BY 1")
        assert query_id is not None
        stored = database.separation.stored.get(query_id)
        assert (stored.pipelines, stored.finished) == (3, 0)
        groups, rest = sorted(run.rows for run in stored.runs.values())
        assert groups == 7
        sizes.append(rest)
        database.separation.forget(client.session.reader.client(), query_id)
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3


def test_explain_shows_slices(database: Database) -> None:
    lines = [line for (line,) in separable(database).run(f"EXPLAIN {QUERIES['groups']}")]
    assert any(line.startswith("Pipeline p1 (group, in slices of ") and line.endswith(" rows of t)") for line in lines)
    ((text,),) = separable(database).run(f"EXPLAIN (FORMAT JSON) {QUERIES['groups']}")
    assert json.loads(text)[0]["Pipelines"][0]["Sliced"] == "t"


def test_short_queries_are_not_sliced(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE", 0.5)
    seen = Leaving(monkeypatch)
    client = separable(database)
    client.run(QUERIES["groups of groups"])
    assert (seen.stops > 0, seen.slices) == (True, 0)
    monkeypatch.setattr(steps, "LONG", 1.0)
    client.session.reader.separable = "auto"
    client.run(QUERIES["groups"])
    assert seen.slices == 0


# -- checkpoints -------------------------------------------------------------------------------------------------------


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The states written for a session that wants a copy at each stop."""
    monkeypatch.setattr(running_queries, "_PAUSE", 0)
    states: list[str] = []
    write = SeparatedQueries.write

    def written(self: SeparatedQueries, query_id: str, *rest: Any, **about: Any) -> None:
        write(self, query_id, *rest, **about)
        states.append(about["state"])

    monkeypatch.setattr(SeparatedQueries, "write", written)
    return states


def test_copies_while_it_runs(database: Database, copied: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    client = separable(database)
    query = QUERIES["groups of groups"]
    wanted = whole(client, query)
    client.run(query)
    assert copied == []
    client.session.reader.checkpoint_interval = 1e-9
    seen = Leaving(monkeypatch)
    before = database.separation.stored.ids()  # from other tests
    assert client.run(query) == wanted
    assert copied == ["checkpoint"] * seen.stops
    assert database.separation.stored.ids() == before


def test_what_a_crash_leaves_goes_on(database: Database, copied: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    client = separable(database)
    client.session.reader.checkpoint_interval = 1e-9
    query = QUERIES["groups of groups"]
    wanted = whole(client, query)
    monkeypatch.setattr(service.Separation, "_ended", lambda self, reader, query: None)
    client.run(query)
    ((query_id, state, is_known),) = client.run(
        "SELECT query_id, state, copied IS NOT NULL FROM millstream.queries WHERE state = 'checkpoint'"
    )
    assert (state, is_known) == ("checkpoint", True)
    assert client.run(f"SELECT * FROM millstream.resume('{query_id}')") == wanted
    database.separation.stored.delete(query_id)


def test_what_cannot_be_copied_is_said_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def failing(self: SeparatedQueries, query_id: str, *rest: Any, **about: Any) -> None:
        tried.append(query_id)
        raise SqlError("53100", "no space left on device")

    monkeypatch.setattr(SeparatedQueries, "write", failing)
    client = separable(database)
    client.session.reader.checkpoint_interval = 1e-9
    heard: list[SqlError] = []
    client.session.reader.notify = heard.append
    query = QUERIES["groups of groups"]
    assert client.run(query) == whole(client, query)
    assert len(tried) == 1
    assert [(item.sqlstate, item.message[-23:]) for item in heard] == [("01000", "no space left on device")]

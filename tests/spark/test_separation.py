"""Queries that change engines on their way: what left the embedded engine goes on on Spark, and the other way round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from catalog.errors import SqlError
from executor import analytics
from executor.analytics import Analytics
from executor.database import Database
from executor.separation import choosing, service
from executor.separation.running import RunningQuery
from executor.spark.engine import SparkEngine
from tests.executor.client import Client, open_database
from tests.executor.separating import TABLES as SMALL
from tests.executor.separating import Asked, Leaving, cut_small, leave, separable
from tests.rig.tpch import TABLES, Tpch
from tests.sql.leaving import rows_of
from tests.sql.test_tpch_separation import QUERIES, SCALE

pytestmark = [pytest.mark.spark, pytest.mark.slow]

#: Of TPC-H: one aggregation, groups of groups, a WITH query that is read twice, many joins, membership.
NAMES = ("q1", "q6", "q11", "q13", "q15", "q16", "q18", "q22")
#: Those that take longest.
LONG = ("q1", "q18")
ENGINES = ("embedded", "spark")


@pytest.fixture(scope="module")
def database(spark: SparkEngine, tpch: Tpch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    opened = open_database(tmp_path_factory.mktemp("separation") / "data")
    opened.analytics = Analytics(spark, opened.storage)
    client = Client(opened)
    client.run(SMALL)
    for name, columns in TABLES.items():
        client.run(f"CREATE TABLE {name} ({columns})")
        client.copy(f"COPY {name} FROM STDIN", rows_of(opened, name, tpch.csv(SCALE, name)))
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "LONG", 0.0)


def on(database: Database, engine: str) -> Client:
    """A session whose queries run in steps on an engine."""
    client = separable(database)
    client.session.query_engine = engine
    return client


def resumed(database: Database, engine: str, query_id: str) -> Any:
    """The rest of a query's rows from an engine."""
    client = on(database, engine)
    found = client.run(f"SELECT * FROM millstream.resume('{query_id}')")
    assert client.session.database.separation.forget(client.session.reader.client(), query_id)
    return found


@pytest.mark.parametrize("begins", ENGINES)
@pytest.mark.parametrize("name", NAMES)
def test_on_the_other_engine(
    name: str, begins: str, database: Database, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    if name in LONG and not whole:
        pytest.skip("runs with --whole: the others stand for it")
    monkeypatch.setattr(choosing, "_REPEATED", 0)  # query 11 computes its joins once
    query = next(path for path in QUERIES if path.stem == name).read_text()
    client, other = on(database, begins), ENGINES[1 - ENGINES.index(begins)]
    wanted = Client(database).run(query)
    cut_small(monkeypatch)
    monkeypatch.setattr(analytics, "_ROWS_OF_FILE", 1 << 13)
    for after in (1, 2):
        with monkeypatch.context() as patch:
            seen = Leaving(patch, after)
            query_id = leave(client, query)
        if query_id is None:
            break
        assert resumed(database, other, query_id) == wanted, after
    assert seen.slices or name not in ("q1", "q6")


def test_between_engines_and_back(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    query = (
        "WITH g AS (SELECT k, sum(v) AS v, max(i) AS i FROM t GROUP BY k) SELECT g.k, g.v, g.i, w FROM g "
        "JOIN (SELECT k, max(w) AS w FROM u GROUP BY k) h ON h.k = g.k WHERE g.v > (SELECT avg(v) FROM g) ORDER BY 1, 4"
    )
    wanted = Client(database).run(query)
    with monkeypatch.context() as patch:
        Asked(patch, 1)
        query_id = leave(on(database, "spark"), query)
    assert query_id is not None
    for engine in ("embedded", "spark", "embedded"):
        with monkeypatch.context() as patch:
            Asked(patch, 1)
            try:
                assert on(database, engine).run(f"SELECT * FROM millstream.resume('{query_id}')") == wanted
                break
            except SqlError as error:
                assert error.sqlstate == "57014", error
    assert resumed(database, "spark", query_id) == wanted


def test_a_resumed_query_is_copied_more_than_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it came with is read until its end, also when newer copies have taken the place of what it was in."""
    query = (
        "SELECT a.k, a.v, b.v, c.v FROM (SELECT k, sum(v) AS v FROM t GROUP BY k) a "
        "JOIN (SELECT k, min(v) AS v FROM t GROUP BY k) b ON b.k = a.k "
        "JOIN (SELECT k, max(w) AS v FROM u GROUP BY k) c ON c.k = a.k ORDER BY 1"
    )
    wanted, copies = Client(database).run(query), []

    class Copied(RunningQuery):
        def advance(self, rows: int, size: int) -> None:
            super().advance(rows, size)
            copies.append(self.ask("checkpoint", by_cost=False))

    with monkeypatch.context() as patch:
        Asked(patch, 1)
        query_id = leave(on(database, "embedded"), query)
    assert query_id is not None
    with monkeypatch.context() as patch:
        patch.setattr(service, "RunningQuery", Copied)
        assert on(database, "spark").run(f"SELECT * FROM millstream.resume('{query_id}')") == wanted
    assert [item.done for item in copies] == [True, True]
    assert resumed(database, "embedded", query_id) == wanted


def test_what_spark_does_not_compute(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    query = (
        "SELECT n, max(r) FROM (SELECT k, count(*) AS n, max(k::regclass::text) AS r FROM t GROUP BY k) g GROUP BY n"
    )
    with monkeypatch.context() as patch:
        Asked(patch, 1)
        query_id = leave(on(database, "embedded"), query)
    assert query_id is not None
    assert len(resumed(database, "embedded", query_id)) == 1


def test_nothing_stays_in_the_scratch_folder(database: Database) -> None:
    on(database, "spark").run("SELECT n, count(*) FROM (SELECT k, count(*) AS n FROM t GROUP BY k) g GROUP BY n")
    assert list((database.options.shared_directory / "scratch").iterdir()) == []


def test_explain_shows_the_pipelines_on_spark(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line for (line,) in on(database, "spark").run(f"EXPLAIN {QUERIES[0].read_text()}")]
    assert "Execution: pipeline by pipeline (separable = on)" in lines
    assert not any("in slices" in line for line in lines)
    cut_small(monkeypatch)
    lines = [line for (line,) in on(database, "spark").run(f"EXPLAIN {QUERIES[0].read_text()}")]
    assert any("in slices" in line for line in lines)

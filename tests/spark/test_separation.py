"""Queries that change engines: queries that left the embedded engine continue on Spark, and the reverse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from catalog.values.errors import SqlError
from executor.core import spark_queries
from executor.database.database import Database
from executor.engine import EngineUnavailable
from executor.separation import service, steps
from executor.separation.running_queries import RunningQuery
from executor.separation.service import Separation
from executor.spark.engine import SparkEngine
from tests.executor.client import Client, open_database
from tests.executor.separating import TABLES as SMALL
from tests.executor.separating import Asked, Leaving, cut_small, leave, separable
from tests.executor.test_migration import Leaving as Migrating
from tests.executor.test_separation_artifact import signed
from tests.rig.sampling import sample
from tests.rig.tpch import TABLES, Tpch
from tests.sql.leaving import rows_of
from tests.sql.test_tpch_separation import QUERIES, SCALE

pytestmark = [pytest.mark.spark, pytest.mark.slow]

#: Queries of TPC-H: one aggregation, groups of groups, a WITH query that is read twice, many joins, membership.
NAMES = ("q1", "q6", "q11", "q13", "q15", "q16", "q18", "q22")
ENGINES = ("embedded", "spark")
#: Quick queries, one of each kind, from either engine to the other one.
CHOSEN = (("q11", "spark"), ("q15", "embedded"), ("q16", "embedded"), ("q22", "spark"))
ENUM = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy'); CREATE TABLE f (k int, m mood);"
    "INSERT INTO f SELECT g % 50, (ARRAY['happy', 'sad', NULL, 'ok']::mood[])[1 + g % 4] FROM generate_series(1, 90) g"
)


@pytest.fixture(scope="module")
def database(spark: SparkEngine, tpch: Tpch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    opened = open_database(tmp_path_factory.mktemp("separation") / "data")
    opened.analytics.spark = spark
    client = Client(opened)
    client.run(SMALL)
    client.run(ENUM)
    for name, columns in TABLES.items():
        client.run(f"CREATE TABLE {name} ({columns})")
        client.copy(f"COPY {name} FROM STDIN", rows_of(opened, name, tpch.csv(SCALE, name)))
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "LONG", 0.0)


def on(database: Database, engine: str) -> Client:
    """A session whose queries run in steps on an engine."""
    client = separable(database)
    client.session.query_engine = engine
    return client


def resumed(database: Database, engine: str, query_id: str) -> Any:
    """The remaining rows of a query, computed by an engine."""
    client = on(database, engine)
    found = client.run(f"SELECT * FROM millstream.resume('{query_id}')")
    assert client.session.database.separation.forget(client.session.reader.client(), query_id)
    return found


@pytest.mark.parametrize(("name", "begins"), sample(product(NAMES, ENGINES), CHOSEN))
def test_on_the_other_engine(name: str, begins: str, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_REPEATED", 0)  # query 11 computes its joins once
    query = next(path for path in QUERIES if path.stem == name).read_text()
    client, other = on(database, begins), ENGINES[1 - ENGINES.index(begins)]
    wanted = Client(database).run(query)
    cut_small(monkeypatch)
    monkeypatch.setattr(spark_queries, "_ROWS_OF_FILE", 1 << 13)
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


FIVE = (
    "SELECT a.m, a.n, b.n, c.n, d.n FROM (SELECT m, count(*) AS n FROM f GROUP BY m) a "
    "JOIN (SELECT m, sum(k) AS n FROM f GROUP BY m) b ON b.m = a.m "
    "JOIN (SELECT m, max(k) AS n FROM f GROUP BY m) c ON c.m = a.m "
    "JOIN (SELECT m, count(DISTINCT k) AS n FROM f GROUP BY m) d ON d.m = a.m ORDER BY a.m DESC"
)


def test_on_the_engine_where_it_was(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless its session sets another; and an enum keeps its order there."""
    wanted = Client(database).run(FIVE)
    assert isinstance(wanted, list)
    assert len(wanted) == 3
    with monkeypatch.context() as patch:
        Asked(patch, 1)
        query_id = leave(on(database, "spark"), FIVE)
    assert query_id is not None
    for engine, used in (("auto", "spark"), ("embedded", "embedded"), ("auto", "embedded")):
        with monkeypatch.context() as patch:
            Asked(patch, 1)
            assert leave(on(database, engine), f"SELECT * FROM millstream.resume('{query_id}')") is not None
        assert database.separation.stored.get(query_id).engine == used, engine
    assert resumed(database, "auto", query_id) == wanted


def test_where_spark_ends_it_goes_on_embedded(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a pipeline there: only the session that began the query had requested Spark."""
    wanted = Client(database).run(FIVE)
    with monkeypatch.context() as patch:
        Asked(patch, 1)
        query_id = leave(on(database, "spark"), FIVE)
    assert query_id is not None
    run, jobs = SparkEngine.run_query, []

    def ending(self: SparkEngine, *job: Any) -> Any:
        jobs.append(job)
        if len(jobs) > 1:
            raise EngineUnavailable("the JVM has ended")
        return run(self, *job)

    with monkeypatch.context() as patch:
        patch.setattr(SparkEngine, "run_query", ending)
        seen = Leaving(patch)
        assert on(database, "auto").run(f"SELECT * FROM millstream.resume('{query_id}')") == wanted
        assert len(jobs) > 1
        assert seen.progress == sorted(seen.progress[:1]) + sorted(seen.progress[1:]), "it has begun anew"
        with pytest.raises(SqlError, match="Spark"):
            on(database, "spark").run(f"SELECT * FROM millstream.resume('{query_id}')")
    assert resumed(database, "spark", query_id) == wanted


def test_a_query_migrates_to_spark(spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = {"storage": str(tmp_path / "storage"), "server_lease": 600}
    a, b = (open_database(tmp_path / name, server_name=name, **shared) for name in "ab")
    try:
        for database in (a, b):
            database.analytics.spark = spark
        Client(a).run(ENUM)
        wanted, where = Client(a).run(FIVE), []
        on_spark = Separation._only_on_spark

        def seen(self: Separation, *rest: Any) -> Any:
            where.append(self)
            return on_spark(self, *rest)

        monkeypatch.setattr(Separation, "_only_on_spark", seen)
        leaving = Migrating(monkeypatch, a, "b")
        assert on(a, "spark").run(FIVE) == wanted
        assert (len(leaving.ids), where) == (1, [b.separation])
    finally:
        a.close()
        b.close()


def test_a_resumed_query_is_copied_more_than_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its original files are read until its end, also if newer copies have replaced the artifact that contained
    them."""
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
    query = "SELECT row(i), count(*) FROM (SELECT k, min(i) AS i FROM t GROUP BY k) g GROUP BY 1"
    with monkeypatch.context() as patch:
        Asked(patch, 1)
        query_id = leave(on(database, "embedded"), query)
    assert query_id is not None
    path = database.core.options.shared_directory / "queries" / query_id / "manifest.json"
    path.write_bytes(signed({**json.loads(path.read_bytes())["query"], "engine": "spark"}))
    with pytest.raises(SqlError) as raised:
        on(database, "spark").run(f"SELECT * FROM millstream.resume('{query_id}')")
    assert raised.value.sqlstate == "0A000"
    assert len(resumed(database, "auto", query_id)) == 100


def test_nothing_stays_in_the_scratch_folder(database: Database) -> None:
    on(database, "spark").run("SELECT n, count(*) FROM (SELECT k, count(*) AS n FROM t GROUP BY k) g GROUP BY n")
    assert list((database.core.options.shared_directory / "scratch").iterdir()) == []


def test_explain_shows_the_pipelines_on_spark(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line for (line,) in on(database, "spark").run(f"EXPLAIN {QUERIES[0].read_text()}")]
    assert "Execution: pipeline by pipeline (separable = on)" in lines
    assert not any("in slices" in line for line in lines)
    cut_small(monkeypatch)
    lines = [line for (line,) in on(database, "spark").run(f"EXPLAIN {QUERIES[0].read_text()}")]
    assert any("in slices" in line for line in lines)

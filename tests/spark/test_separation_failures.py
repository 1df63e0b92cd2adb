"""kill -9 of the JVM while a query on Spark leaves or continues: it leaves nevertheless, or its client gets an error
about Spark, and the state on storage can be continued elsewhere. Starting another JVM takes seconds: most steps run
with ``--whole`` only."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.separation import query_artifact, query_moves, service
from executor.separation.spark_results import SparkResults
from executor.spark.engine import SparkEngine
from executor.spark.java import Java
from executor.spark.supervisor import SparkProcess
from tests.executor.client import Client, open_database
from tests.executor.separating import TABLES, Asked, separable
from tests.executor.test_migration import Leaving, settled
from tests.rig.process import wait_until
from tests.rig.sampling import sample

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("everywhere")]

QUERY = (
    "WITH g AS (SELECT k, sum(v) AS v, max(s) AS s FROM t GROUP BY k) SELECT g.k, g.v, g.s, w FROM g "
    "JOIN (SELECT k, max(w) AS w FROM u GROUP BY k) h ON h.k = g.k WHERE g.v > (SELECT avg(v) FROM g) ORDER BY 1, 4"
)


class Mortal(SparkProcess):
    """A supervisor whose next driver starts when a test lets it, not while the test checks the state without one."""

    may_start = True

    def _spawn(self, java: Java | None) -> Any:
        if not self.may_start:
            raise OSError("not yet")
        return super()._spawn(java)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkEngine]:
    """The engine whose JVM is killed."""
    engine = SparkEngine(tmp_path_factory.mktemp("spark"), master="local[2]", driver_memory="512m")
    engine.process = Mortal(replace(engine.settings, backoff=0.1, backoff_limit=0.1))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def servers(engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Database, Database]]:
    """One server with Spark and one without, which share a storage."""
    folder = tmp_path_factory.mktemp("servers")
    shared = {"storage": str(folder / "storage"), "server_lease": 600}
    a, b = (open_database(folder / name, server_name=name, **shared) for name in "ab")
    a.analytics.spark = engine
    Client(a).run(TABLES)
    yield a, b
    a.close()
    b.close()


class Victim:
    """Spark's JVM, which dies once at a step."""

    def __init__(self, engine: SparkEngine) -> None:
        self._engine = engine
        self.deaths: list[str] = []

    def die(self, step: str) -> None:
        jvm, process = self._engine.status().jvm, self._engine.process
        assert jvm is not None and isinstance(process, Mortal)
        process.may_start = False
        os.kill(jvm, signal.SIGKILL)
        wait_until(lambda: self._engine.status().state != "ready", 60, "notice of the JVM's end")
        self.deaths.append(step)

    def at(self, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
        """Kills the JVM at a failpoint."""

        def failpoint(name: str) -> None:
            if name == step and not self.deaths:
                self.die(step)

        for module in (query_artifact, query_moves, service):
            monkeypatch.setattr(module, "failpoint", failpoint)


def living(engine: SparkEngine) -> Victim:
    """The current JVM, or the next one."""
    assert isinstance(engine.process, Mortal)
    engine.process.may_start = True
    assert engine.process.wait_ready(180), engine.status()
    return Victim(engine)


def on_spark(database: Database) -> Client:
    client = separable(database)
    client.session.query_engine = "spark"
    return client


def assert_fails(database: Database, statement: str) -> None:
    """Checks that a statement's client gets the error that there is no Spark, or that it has ended."""
    with pytest.raises(SqlError, match="Spark") as raised:
        on_spark(database).run(statement)
    assert raised.value.sqlstate in ("55000", "58000")


@pytest.fixture(scope="module")
def wanted(servers: tuple[Database, Database]) -> Any:
    return Client(servers[0]).run(QUERY)


@pytest.mark.parametrize("step", sample(("files", "manifest", "given", "ended"), ("files",)))
def test_a_query_migrates_without_its_jvm(
    step: str, servers: tuple[Database, Database], engine: SparkEngine, wanted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its state was read before its files were written: no later step needs the JVM."""
    a, victim = servers[0], living(engine)
    victim.at(monkeypatch, step)
    leaving = Leaving(monkeypatch, a, "b")
    assert on_spark(a).run(QUERY) == wanted
    assert (victim.deaths, len(leaving.ids)) == ([step], 1)
    settled(a)
    assert a.separation.stored.ids() == []


def test_the_jvm_dies_while_state_is_read(
    servers: tuple[Database, Database], engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query ends as it does if the JVM dies in a pipeline, and nothing of it is left."""
    a, victim = servers[0], living(engine)
    with monkeypatch.context() as patch:
        victim.at(patch, "claimed")
        Leaving(patch, a, "b")
        assert_fails(a, QUERY)
    assert victim.deaths == ["claimed"]
    assert (a.separation.claims.all(), a.separation.stored.ids()) == ({}, [])


@pytest.mark.whole
def test_a_query_goes_on_from_what_it_left(
    servers: tuple[Database, Database], engine: SparkEngine, wanted: Any, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """The JVM dies in a pipeline after a checkpoint, and while the rest of the query begins."""
    a, victim = servers[0], living(engine)
    with monkeypatch.context() as patch:
        asked = Asked(patch, 1, "checkpoint")

        class Query(service.RunningQuery):
            def advance(self, rows: int, size: int) -> None:
                super().advance(rows, size)
                if self.finished == 2:
                    victim.die("pipeline")

        patch.setattr(service, "RunningQuery", Query)
        assert_fails(a, QUERY)
    assert (len(victim.deaths), a.separation.claims.all()) == (1, {})
    rest = f"SELECT * FROM millstream.resume('{asked.queries[0].id}')"
    assert_fails(a, rest)
    assert Client(a).run(rest) == wanted
    if whole:
        again = living(engine)
        with monkeypatch.context() as patch:
            again.at(patch, "begun")
            assert_fails(a, rest)
        assert (again.deaths, a.separation.claims.all()) == (["begun"], {})
        again = living(engine)
        with monkeypatch.context() as patch:
            again.at(patch, "begun")
            assert Client(a).run(rest) == wanted, "embedded, since nobody asked for Spark"
        assert again.deaths == ["begun"]
        living(engine)
        assert on_spark(a).run(rest) == wanted
    assert a.separation.stored.delete(asked.queries[0].id)
    assert list((a.core.options.shared_directory / "scratch").iterdir()) == []


@pytest.mark.whole  # it needs another JVM
def test_a_query_whose_state_cannot_be_read(
    servers: tuple[Database, Database], engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, victim = servers[0], living(engine)
    asked = Asked(monkeypatch, 1, "checkpoint")
    rows = SparkResults.rows

    def dying(self: SparkResults, *arguments: Any) -> Any:
        if not victim.deaths:
            victim.die("rows")
        return rows(self, *arguments)

    monkeypatch.setattr(SparkResults, "rows", dying)
    assert_fails(a, QUERY)
    with pytest.raises(SqlError, match="Spark"):
        asked.requests[0].wait(lambda: False)
    assert (a.separation.stored.ids(), a.separation.claims.all()) == ([], {})

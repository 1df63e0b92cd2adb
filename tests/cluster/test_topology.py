"""The cluster of docker/compose.cluster.yaml as plain processes: two servers with one storage folder, Spark's master
and two workers. The rows are the same whichever server computes them and whichever process dies meanwhile."""

from __future__ import annotations

import contextlib
import math
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from executor.failpoints import VARIABLE
from tests.rig.beside import Beside
from tests.rig.process import is_alive, wait_until
from tests.rig.server import Millstream
from tests.rig.standalone import Standalone
from tests.server.cluster import expire
from tests.server.test_cluster_views import SETUP, Writer, require
from tests.server.test_separation import BRIEF, NUMBERS, begun
from tests.spark.test_maintenance import driver

# Servers with one storage, and Spark's drivers and workers, are tested apart in every run: tests/server/test_cluster*,
# tests/spark. Ten JVMs together take three minutes.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.whole, pytest.mark.timeout(600)]

Client = psycopg.Connection[Any]
ROWS = 200


class Cluster:
    """The whole cluster; server ``two`` dies as soon as it begins a query of another server."""

    def __init__(self, storage: Path, spark: Standalone, one: Millstream, two: Millstream) -> None:
        self.storage = storage
        self.spark = spark
        self.one = one
        self.two = two


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with Standalone(folder / "spark") as spark:
        shared = {
            "storage": folder / "storage",
            "server_lease": 600,
            "spark_master": spark.master,
            "spark_driver_memory": "512m",
            "maintenance_idle": 0.05,
        }
        near = {"SPARK_LOCAL_IP": "127.0.0.1"}
        one = Millstream(settings={**shared, "server_name": "one"}, environment=near)
        two = Millstream(settings={**shared, "server_name": "two"}, environment={**near, VARIABLE: "begun"})
        with contextlib.ExitStack() as running:
            for server in (one, two):
                running.enter_context(server)
                server.wait_for_spark(300)  # one after the other, as each one starts three more JVMs
                with server.connect() as client:
                    client.execute("CREATE TABLE t (k int)")
                    client.execute(f"INSERT INTO t SELECT g FROM generate_series(1, {ROWS}) g".encode())
                    client.execute("CREATE FOREIGN TABLE s (k int, n int) SERVER stream")
                    client.execute(
                        "CREATE VIEW v WITH (maintenance_engine = spark) AS SELECT k, sum(n) FROM s GROUP BY k"
                    )
            yield Cluster(folder / "storage", spark, one, two)


def spark_maintains(client: Client, rows: int) -> None:
    """Inserts rows into the stream, and waits until jobs on Spark have processed the last one."""
    client.execute(f"INSERT INTO s SELECT g % 3, 1 FROM generate_series(1, {rows}) g".encode())
    behind = "SELECT rows_behind FROM millstream.views WHERE name = 'v'"
    wait_until(lambda: client.execute(behind).fetchone() == (0,), 120, "Spark's maintenance")
    running = "SELECT count(*) FROM millstream.jobs WHERE status = 'running'"  # visible before the job ends
    wait_until(lambda: client.execute(running).fetchone() == (0,), 60, "end of the jobs")
    engines = "SELECT DISTINCT engine FROM millstream.jobs WHERE views NOT LIKE '%e.v%' AND status = 'done'"
    assert client.execute(engines).fetchall() == [("spark",)]


def test_both_servers_compute_on_one_spark(cluster: Cluster) -> None:
    for server in (cluster.one, cluster.two):
        with server.connect() as client:
            query = "SELECT k % 10, count(*), sum(k) FROM t GROUP BY 1 ORDER BY 1"
            wanted = client.execute(query).fetchall()
            client.execute("SET query_engine = spark")
            assert client.execute(query).fetchall() == wanted
            spark_maintains(client, 300)
            client.execute("SET query_engine = embedded")
            assert client.execute("SELECT * FROM v ORDER BY k").fetchall() == [(0, 100), (1, 100), (2, 100)]


def test_a_view_changes_engines_and_servers_under_copy(cluster: Cluster) -> None:
    """The view changes repeatedly while rows arrive: it has every acknowledged row once and in order."""
    one, two = cluster.one, cluster.two
    with one.connect() as writing, one.connect() as client, two.connect() as there:
        for session in (writing, client, there):
            session.execute("CREATE SCHEMA IF NOT EXISTS e; SET search_path = e")
        client.execute(SETUP)
        with Writer(writing) as writer:
            for engine in ("spark", "embedded", "spark"):
                client.execute(f"ALTER VIEW v SET (maintenance_engine = {engine})".encode())
                for at, target in ((client, "two"), (there, "one")):
                    wait_until(partial(_is_maintained_by, at, engine), 120, f"a job of {engine}")
                    least = writer.done
                    require(at, least, math.inf)
                    assert at.execute("SELECT millstream.migrate('e.v', %s)", (target,)).fetchone() is not None
        require(client, writer.done)
        client.execute("DROP VIEW v; DROP FOREIGN TABLE s")


def _is_maintained_by(client: Client, engine: str) -> bool:
    """Whether an engine ran the view's last job."""
    last = "SELECT engine FROM millstream.jobs WHERE views LIKE '%e.v%' AND status = 'done' ORDER BY id DESC LIMIT 1"
    return client.execute(last).fetchone() == (engine,)


def test_spark_maintains_a_guest_that_has_read_another_view(cluster: Cluster) -> None:
    """One job has the view's own groups and those of the other view."""
    with cluster.one.connect() as client, cluster.two.connect() as there:
        for session in (client, there):
            session.execute("CREATE SCHEMA two_views; SET search_path = two_views")
        client.execute(
            """CREATE FOREIGN TABLE s (k int, n int) SERVER stream;
            CREATE VIEW v WITH (maintenance_engine = spark) AS SELECT k, sum(n) AS n FROM s GROUP BY k;
            CREATE VIEW w WITH (maintenance_engine = spark) AS
                SELECT g.k, g.c, v.n FROM (SELECT k, count(*) AS c FROM s GROUP BY k) g JOIN v USING (k)"""
        )
        rows = "INSERT INTO s SELECT g % 3, 2 FROM generate_series(1, 300) g"
        client.execute(rows.encode())
        assert client.execute("SELECT millstream.migrate('w', 'two')").fetchone() is not None
        client.execute(rows.encode())
        assert there.execute("SELECT * FROM w ORDER BY k").fetchall() == [(k, 200, 400) for k in range(3)]
        jobs = "SELECT DISTINCT engine FROM millstream.jobs WHERE views LIKE '%two_views.w%' AND status = 'done'"
        wait_until(lambda: there.execute(jobs).fetchall() == [("spark",)], 60, "Spark's maintenance")
        for session in (client, there):
            assert session.execute("SELECT * FROM w ORDER BY k").fetchall() == [(k, 200, 400) for k in range(3)]
        client.execute("DROP SCHEMA two_views CASCADE")


def test_a_query_of_sparks_outlives_a_worker_and_a_server(cluster: Cluster) -> None:
    """The query migrates to a server that dies with it, and the waiting server continues it; another query is computed
    while one of the two workers dies."""
    one, two = cluster.one, cluster.two
    with one.connect() as client, one.connect() as asking:
        wanted = client.execute(BRIEF.format(next(NUMBERS)).encode()).fetchall()
        children, process = two.processes()[1:], driver(client)
        assert len(children) > 1
        os.kill(process, signal.SIGSTOP)  # until it gets the request, the query stays in its first pipeline
        migrating = begun(one, client, "spark")
        asked = Beside(asking.execute, "SELECT millstream.migrate(%s, 'two')", (migrating.pid,))
        state = f"SELECT state FROM pg_stat_activity WHERE pid = {asking.info.backend_pid}".encode()
        wait_until(lambda: client.execute(state).fetchone() == ("active",), 60, "the question")
        os.kill(process, signal.SIGCONT)
        ((query_id,),) = asked.result().fetchall()
        assert query_id is not None
        assert two.wait(60) < 0
        expire(cluster.storage, "two")
        wait_until(lambda: not any(map(is_alive, children)), 60, "end of the driver and its JVM")
        total = "SELECT coalesce(sum(sum), 0) FROM v"
        ((before,),) = client.execute(total).fetchall()
        staying = begun(one, client, "spark")
        cluster.spark.kill_worker()
        spark_maintains(client, 300)
        assert client.execute(total).fetchone() == (before + 300,)
        for query in (migrating, staying):
            query.wait()
            assert query.error is None
            assert query.rows == wanted
        states = "SELECT name, state, epoch FROM millstream.servers ORDER BY name"
        assert client.execute(states).fetchall() == [("one", "up", 1), ("two", "lost", 2)]
        assert client.execute("SELECT query_id FROM millstream.queries").fetchall() == []

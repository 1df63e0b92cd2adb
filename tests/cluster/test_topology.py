"""What docker/compose.cluster.yaml describes, as plain processes: two servers with one storage folder, Spark's master
and two workers. Rows are the same whoever computes them, and a query outlives its server."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.rig.process import wait_until
from tests.rig.server import Millstream
from tests.rig.standalone import Standalone
from tests.server.test_separation import LONG, Running, is_running

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

NUMBERS = itertools.count(1000)
Pair = tuple[Millstream, Millstream]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("cluster")
    with Standalone(folder / "spark") as spark:
        shared = {"storage": folder / "storage", "spark_master": spark.master, "spark_driver_memory": "1g"}
        near = {"SPARK_LOCAL_IP": "127.0.0.1"}
        one = Millstream(settings={**shared, "server_name": "one", "server_lease": 5}, environment=near)
        two = Millstream(settings={**shared, "server_name": "two", "server_lease": 60}, environment=near)
        with one, two:
            for server in (one, two):
                with server.connect() as client:
                    client.execute("CREATE TABLE t (k int)")
                    client.execute("INSERT INTO t SELECT g FROM generate_series(1, 350) g")
            yield one, two


def begun(server: Millstream, client: psycopg.Connection[Any]) -> Running:
    running = Running(server, LONG.format(next(NUMBERS)))
    wait_until(lambda: is_running(client, running.pid), 60, "the query")
    return running


@pytest.mark.parametrize("place", [0, 1])
def test_both_servers_compute_on_one_spark(place: int, servers: Pair) -> None:
    servers[place].wait_for_spark(400)  # three JVMs come before it
    with servers[place].connect() as client:
        query = "SELECT k % 10, count(*), sum(k) FROM t GROUP BY 1 ORDER BY 1"
        wanted = client.execute(query).fetchall()
        client.execute("SET query_engine = spark")
        assert client.execute(query).fetchall() == wanted
        client.execute("SET maintenance_engine = spark")
        client.execute("CREATE FOREIGN TABLE s (k int, n int) SERVER stream")
        client.execute("CREATE VIEW v AS SELECT k, sum(n) AS n FROM s GROUP BY k")
        client.execute("INSERT INTO s SELECT g % 3, 1 FROM generate_series(1, 300) g")
        done = "SELECT count(*) > 0 FROM millstream.jobs WHERE engine = 'spark' AND status = 'done'"
        wait_until(lambda: client.execute(done).fetchone() == (True,), 60, "a job of Spark's")
        client.execute("SET query_engine = embedded")
        assert client.execute("SELECT * FROM v ORDER BY k").fetchall() == [(0, 100), (1, 100), (2, 100)]


def test_a_query_goes_there_and_another_comes_back(servers: Pair) -> None:
    for source, target in (servers, servers[::-1]):
        with source.connect() as client:
            wanted = client.execute(LONG.format(next(NUMBERS)).encode()).fetchall()
            running = begun(source, client)
            name = target.settings["server_name"]
            assert client.execute("SELECT millstream.migrate(%s, %s)", (running.pid, name)).fetchone() != (None,)
            running.wait()
            assert running.rows == wanted


def test_a_query_outlives_its_server(servers: Pair) -> None:
    one, two = servers
    with one.connect() as client, two.connect() as other:
        wanted = other.execute(LONG.format(next(NUMBERS)).encode()).fetchall()
        running = begun(one, client)
        ((query_id,),) = client.execute("SELECT millstream.checkpoint(%s)", (running.pid,)).fetchall()
        one.kill9()
        running.wait()
        left = "SELECT state FROM millstream.queries WHERE query_id = %s"
        wait_until(lambda: other.execute(left, (query_id,)).fetchone() == ("finished",), 60, "its rows")
        assert other.execute(f"SELECT * FROM millstream.resume('{query_id}')".encode()).fetchall() == wanted
        assert other.execute("SELECT millstream.forget(%s)", (query_id,)).fetchone() == (True,)
        states = "SELECT name, state, epoch FROM millstream.servers ORDER BY name"
        assert other.execute(states).fetchall() == [("one", "lost", 2), ("two", "up", 1)]
        one.restart()
        assert other.execute(states).fetchall() == [("one", "up", 3), ("two", "up", 1)]
        with one.connect() as again:
            assert again.execute("SELECT * FROM v ORDER BY k").fetchall() == [(0, 100), (1, 100), (2, 100)]

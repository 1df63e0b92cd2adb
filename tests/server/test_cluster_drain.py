"""A server is drained of queries and views, and it or a receiver is killed at a step of that: clients get their rows or
an error, each acknowledged row counts once, and everything has one owner."""

from __future__ import annotations

import signal
from typing import Any

import psycopg
import pytest

from tests.rig.beside import Beside
from tests.rig.process import wait_until
from tests.rig.sampling import sample
from tests.rig.server import Millstream
from tests.server.cluster import TABLE, Cluster, expire, name_of
from tests.server.test_separation import Running, begun

pytestmark = pytest.mark.slow

Client = psycopg.Connection[Any]

ROWS = 1000


class Home:
    """The drained server: it has a stream and two views of it, with their own names, and two queries."""

    def __init__(self, server: Millstream) -> None:
        self.server, self.name = server, name_of(server)
        self.views = f"v_{self.name}", f"w_{self.name}"
        self.rows = 0
        with server.connect() as client:
            client.execute(TABLE)
            client.execute(f"CREATE FOREIGN TABLE s_{self.name} (n bigint) SERVER stream".encode())
            for view in self.views:
                query = f"SELECT count(*) AS c, sum(n) AS n FROM s_{self.name}"
                client.execute(f"CREATE VIEW {view} AS {query}".encode())
            self.write(client)

    def begin(self) -> list[Running]:
        with self.server.connect() as client:
            return [begun(self.server, client) for _ in range(2)]

    def write(self, client: Client) -> None:
        numbers = f"generate_series({self.rows}, {self.rows + ROWS - 1})"
        client.execute(f"INSERT INTO s_{self.name} SELECT {numbers}".encode())
        self.rows += ROWS

    def require(self) -> None:
        """Inserts rows and checks that the views have each once, wherever they are now."""
        with self.server.connect() as client:
            wait_until(lambda: all(can_be_read(client, view) for view in self.views), 60, "the views")
            for _ in range(2):
                for view in self.views:
                    found = client.execute(f"SELECT c, n FROM {view}".encode()).fetchall()
                    assert found == [(self.rows, self.rows * (self.rows - 1) // 2)], view
                self.write(client)

    def forget(self, cluster: Cluster) -> None:
        """Drops the views; checks that each had one owner, and now has none."""
        with self.server.connect() as client, cluster.survivor.connect() as other:
            query = f"SELECT server FROM millstream.views WHERE name LIKE '_\\_{self.name}' ORDER BY name"

            def is_settled() -> bool:
                owners = client.execute(query.encode()).fetchall()
                there = other.execute(query.encode()).fetchall()
                return len(owners) == 2 and there == [owner for owner in owners if owner == ("s",)]

            wait_until(is_settled, 60, "one owner of each")
            client.execute(f"DROP VIEW {', '.join(self.views)}".encode())
            wait_until(lambda: other.execute(query.encode()).fetchall() == [], 60, "the guests' end")


def can_be_read(client: Client, view: str) -> bool:
    """Whether a view can be read, which it cannot on a lost server."""
    try:
        return client.execute(f"SELECT c FROM {view}".encode()).fetchone() is not None
    except psycopg.OperationalError:
        return False


def drain(cluster: Cluster, name: str) -> int:
    with cluster.survivor.connect() as client:
        ((moved,),) = client.execute("SELECT millstream.drain(%s)", (name,)).fetchall()
        return int(moved)


STEPS = ("claimed", "files", "manifest", "given", "view-files", "view-written", "view-entry", "view-given")


@pytest.mark.parametrize("failpoint", sample(STEPS, ("view-given",)))
def test_the_drained_server_dies(failpoint: str, cluster: Cluster, wanted: list[Any]) -> None:
    with cluster.doomed(failpoint) as server:
        home = Home(server)
        running = home.begin()
        draining = Beside(drain, cluster, home.name)
        assert server.wait(60) == -signal.SIGKILL
        expire(cluster.storage, home.name)
        assert isinstance(draining.error(), psycopg.errors.ObjectNotInPrerequisiteState)
        for query in running:
            query.wait()
            assert query.rows == wanted or isinstance(query.error, psycopg.OperationalError)
        cluster.settled()
        with cluster.survivor.connect() as other:
            left = other.execute("SELECT query_id, state FROM millstream.queries").fetchall()
            assert len(left) <= len(running)
            for query_id, state in left:
                assert state == "finished"
                assert other.execute(f"SELECT * FROM millstream.resume('{query_id}')".encode()).fetchall() == wanted
                assert other.execute("SELECT millstream.forget(%s)", (query_id,)).fetchone() == (True,)
        server.environment = {}
        server.restart()
        home.require()
        home.forget(cluster)
        assert cluster.queries() == []


@pytest.mark.parametrize(
    "failpoint", sample(("begun", "files", "manifest", "kept", "view-seen", "view-begun"), ("view-begun",))
)
def test_a_receiver_dies(failpoint: str, cluster: Cluster, wanted: list[Any]) -> None:
    """One of two servers that receive in turns: what was on its way to it continues, and goes to the other one."""
    with cluster.doomed("") as server, cluster.doomed(failpoint) as target:
        home = Home(server)
        running = home.begin()
        draining = Beside(drain, cluster, home.name)
        assert target.wait(60) == -signal.SIGKILL
        expire(cluster.storage, name_of(target))
        for query in running:
            query.wait()
            assert query.rows == wanted
        assert draining.result() >= len(home.views)
        cluster.settled()
        home.require()
        home.forget(cluster)
    assert cluster.queries() == []

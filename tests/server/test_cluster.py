"""Two servers with one storage folder, as processes: kill -9 at every step of a migration, drain, and a zombie."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Any

import psycopg
import pytest

from tests.rig.process import wait_until
from tests.rig.server import Millstream
from tests.server.cluster import TABLE, Cluster, expire, name_of, stands_still
from tests.server.test_separation import MANY, NUMBERS, begun, suspended, types

pytestmark = [pytest.mark.slow, pytest.mark.sample(9)]

PARITIES = (
    f"SELECT p, count(*) FROM (SELECT (ARRAY['odd', 'even']::parity[])[2 - a.k % 2] AS p FROM {MANY} "
    "AND a.k < {} GROUP BY a.k) g GROUP BY p ORDER BY p"
)


def lost(cluster: Cluster, server: Millstream) -> None:
    """Waits until a server stands still, and then until the others know that it is lost."""
    wait_until(lambda: stands_still(server), 60, "the failpoint")
    expire(cluster.storage, name_of(server))
    with cluster.survivor.connect() as client:
        query = f"SELECT state FROM millstream.servers WHERE name = '{name_of(server)}'"
        wait_until(lambda: client.execute(query.encode()).fetchone() == ("lost",), 60, "the end of the lease")


def test_a_query_migrates(cluster: Cluster, wanted: list[Any]) -> None:
    with cluster.doomed("") as server, server.connect() as client:
        client.execute(TABLE)
        running = begun(server, client)
        ((query_id,),) = client.execute("SELECT millstream.migrate(%s, 's')", (running.pid,)).fetchall()
        running.wait()
        assert running.rows == wanted
        cluster.settled()
        assert query_id is not None
        assert cluster.queries() == []
        for statement in ("SELECT millstream.migrate(1, 's')", f"SELECT millstream.migrate(1, '{name_of(server)}')"):
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
                client.execute(statement.encode())
        with pytest.raises(psycopg.errors.UndefinedObject):
            client.execute("SELECT millstream.migrate(1, 'nobody')")


def test_a_query_over_an_enum_migrates(cluster: Cluster) -> None:
    """The waiting client gets its server's type, which the other server lacks and carries as text."""
    with cluster.doomed("") as server, server.connect() as client:
        client.execute(f"CREATE TYPE parity AS ENUM ('odd', 'even'); {TABLE}")
        ((oid,),) = client.execute("SELECT 'parity'::regtype::oid").fetchall()
        wanted = client.execute(PARITIES.format(next(NUMBERS)).encode()).fetchall()
        assert [row[0] for row in wanted] == ["odd", "even"]
        running = begun(server, client, query=PARITIES)
        assert client.execute("SELECT millstream.migrate(%s, 's')", (running.pid,)).fetchone() != (None,)
        running.wait()
        assert (running.types, running.rows) == ([oid, 20], wanted)
        rest = f"SELECT * FROM millstream.resume('{suspended(server, client, PARITIES)}')".encode()
        with cluster.survivor.connect() as other:
            for connection, kind in ((client, oid), (other, 25)):
                found = connection.execute(rest)
                assert (types(found), found.fetchall()) == ([kind, 20], wanted)
        client.execute(rest.replace(b"* FROM millstream.resume", b"millstream.forget"))
    assert cluster.queries() == []


@pytest.mark.parametrize("failpoint", ["claimed", "files", "manifest", "given", "ended"])
def test_the_source_dies(failpoint: str, cluster: Cluster, wanted: list[Any]) -> None:
    with cluster.doomed(failpoint) as server, server.connect() as client:
        client.execute(TABLE)
        running = begun(server, client)
        with contextlib.suppress(psycopg.OperationalError):  # the server died before it could answer
            client.execute("SELECT millstream.migrate(%s, 's')", (running.pid,))
        running.wait()
        assert server.wait(60) == -signal.SIGKILL
        assert isinstance(running.error, psycopg.OperationalError)
        lost(cluster, server)
        cluster.settled()
        with cluster.survivor.connect() as other:
            left = other.execute("SELECT query_id, state FROM millstream.queries").fetchall()
            assert [state for _, state in left] == ([] if failpoint in ("claimed", "files") else ["finished"])
            for query_id, _ in left:
                assert other.execute(f"SELECT * FROM millstream.resume('{query_id}')".encode()).fetchall() == wanted
                assert other.execute("SELECT millstream.forget(%s)", (query_id,)).fetchone() == (True,)
        server.environment = {}
        server.restart()
        with server.connect() as again:
            state = again.execute("SELECT state, epoch, address FROM millstream.servers WHERE is_this").fetchall()
            assert state == [("up", 3, f"127.0.0.1:{server.port}")]
        assert cluster.queries() == [], "nor what never counted"


@pytest.mark.parametrize("failpoint", ["begun", "files", "manifest", "kept"])
def test_the_target_dies(failpoint: str, cluster: Cluster, wanted: list[Any]) -> None:
    with cluster.doomed(failpoint) as target, cluster.survivor.connect() as client:
        running = begun(cluster.survivor, client)
        client.execute("SELECT millstream.migrate(%s, %s)", (running.pid, name_of(target)))
        assert target.wait(60) == -signal.SIGKILL
        expire(cluster.storage, name_of(target))
        running.wait()
        assert running.rows == wanted
        cluster.settled()
    assert cluster.queries() == []


@pytest.mark.parametrize("failpoint", ["lost", "inherited", "begun"])
def test_the_server_that_takes_over_dies(failpoint: str, cluster: Cluster, wanted: list[Any]) -> None:
    """The query's own server is lost, and so is the next one, at a step of taking the query over: a third one has
    it."""
    with cluster.doomed("manifest:stop") as first, cluster.doomed(failpoint) as second:
        with first.connect() as client, contextlib.closing(first.connect()) as asking:
            client.execute(TABLE)
            os.kill(cluster.survivor.pid, signal.SIGSTOP)
            try:
                running = begun(first, client)
                asking.pgconn.send_query(f"SELECT millstream.checkpoint({running.pid})".encode())
                wait_until(lambda: stands_still(first), 60, "the failpoint")
                expire(cluster.storage, name_of(first))
                assert second.wait(60) == -signal.SIGKILL
            finally:
                os.kill(cluster.survivor.pid, signal.SIGCONT)
            first.kill9()
            running.wait()
        lost(cluster, second)
        cluster.settled()
    with cluster.survivor.connect() as other:
        ((query_id, state),) = other.execute("SELECT query_id, state FROM millstream.queries").fetchall()
        assert state == "finished"
        assert other.execute(f"SELECT * FROM millstream.resume('{query_id}')".encode()).fetchall() == wanted
        assert other.execute("SELECT millstream.forget(%s)", (query_id,)).fetchone() == (True,)


@pytest.mark.parametrize("failpoint", ["claimed", "files", "manifest"])
def test_the_server_that_suspends_a_query_dies(failpoint: str, cluster: Cluster, wanted: list[Any]) -> None:
    """If its manifest exists, the query has left and continues by itself; otherwise nothing of it is left."""
    with cluster.doomed(failpoint) as server, server.connect() as client:
        client.execute(TABLE)
        running = begun(server, client)
        with contextlib.suppress(psycopg.OperationalError):
            client.execute("SELECT millstream.suspend(%s)", (running.pid,))
        running.wait()
        assert server.wait(60) == -signal.SIGKILL
        lost(cluster, server)
        cluster.settled()
        with cluster.survivor.connect() as other:
            left = other.execute("SELECT query_id, state FROM millstream.queries").fetchall()
            assert [state for _, state in left] == (["finished"] if failpoint == "manifest" else [])
            for query_id, _ in left:
                assert other.execute(f"SELECT * FROM millstream.resume('{query_id}')".encode()).fetchall() == wanted
                assert other.execute("SELECT millstream.forget(%s)", (query_id,)).fetchone() == (True,)


def test_the_server_that_resumes_a_query_dies(cluster: Cluster, wanted: list[Any]) -> None:
    """Another server continues the query, and its rows are kept."""
    with cluster.survivor.connect() as other:
        query_id = suspended(cluster.survivor, other)
        with cluster.doomed("begun") as server, server.connect() as client:
            with pytest.raises(psycopg.OperationalError):
                client.execute(f"SELECT * FROM millstream.resume('{query_id}')".encode())
            assert server.wait(60) == -signal.SIGKILL
            lost(cluster, server)
            cluster.settled()
        assert other.execute("SELECT query_id, state FROM millstream.queries").fetchall() == [(query_id, "finished")]
        assert other.execute(f"SELECT * FROM millstream.resume('{query_id}')".encode()).fetchall() == wanted
        assert other.execute("SELECT millstream.forget(%s)", (query_id,)).fetchone() == (True,)


def test_a_zombie(cluster: Cluster, wanted: list[Any]) -> None:
    """The server stands still between the manifest and the claim, its query is taken over, and it continues: it has
    lost the query."""
    with cluster.doomed("manifest:stop") as server, server.connect() as client:
        client.execute(TABLE)
        running = begun(server, client)
        asking = server.connect()
        asking.pgconn.send_query(f"SELECT millstream.checkpoint({running.pid})".encode())
        lost(cluster, server)
        cluster.settled()
        os.kill(server.pid, signal.SIGCONT)
        running.wait()
        assert running.rows == wanted, "its own client's, in its own snapshot"
        asking.close()
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="no query that can leave"):
            client.execute("SELECT millstream.checkpoint(%s)", (running.pid,))
        again = begun(server, client)
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="its lease was taken over"):
            client.execute("SELECT millstream.checkpoint(%s)", (again.pid,))
        again.wait()
        assert again.rows == wanted
    with cluster.survivor.connect() as other:
        ((query_id, state),) = other.execute("SELECT query_id, state FROM millstream.queries").fetchall()
        assert state == "finished"
        assert other.execute("SELECT millstream.forget(%s)", (query_id,)).fetchone() == (True,)


def test_a_server_is_drained(cluster: Cluster, wanted: list[Any]) -> None:
    with cluster.doomed("") as server, server.connect() as client, cluster.survivor.connect() as other:
        client.execute(TABLE)
        running = [begun(server, client) for _ in range(4)]
        notices: list[str | None] = []
        other.add_notice_handler(lambda notice: notices.append(notice.message_primary))
        ((moved,),) = other.execute("SELECT millstream.drain(%s)", (name_of(server),)).fetchall()
        assert str(notices[-1]).startswith(f'server "{name_of(server)}": {moved} ')
        for query in running:
            query.wait()
        assert [query.rows for query in running] == [wanted] * 4
        assert 0 < moved <= 4
        state = other.execute("SELECT state FROM millstream.servers WHERE name = %s", (name_of(server),)).fetchone()
        assert state == ("drained",)
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            other.execute("SELECT millstream.drain('s')")
        client.execute("CREATE ROLE other LOGIN")
        with (
            psycopg.connect(server.dsn().replace("user=millstream", "user=other"), autocommit=True) as guest,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            guest.execute("SELECT millstream.drain('s')")
    cluster.settled()
    assert cluster.queries() == []

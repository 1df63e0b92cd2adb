"""A shared storage that is gone, full or read-only for a while: servers stay up, statements report why they fail,
queries continue where they are, no server counts as lost, and once the storage is back everything works."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.rig.process import wait_until
from tests.rig.server import Millstream
from tests.server.cluster import TABLE, expire, server
from tests.server.test_full_disk import full, mounted
from tests.server.test_separation import BRIEF, NUMBERS, Running, begun, suspended

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounting a small disk needs root"),
    pytest.mark.sample(9),
]

Client = psycopg.Connection[Any]
Servers = tuple[Millstream, Millstream]


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file system of 16 MB."""
    folder = tmp_path_factory.mktemp("disk")
    with mounted(folder, "-t", "tmpfs", "-o", "size=16m", "tmpfs"):
        yield folder / "storage"


@pytest.fixture(scope="module")
def servers(storage: Path) -> Iterator[Servers]:
    one, two = server(storage, "one"), server(storage, "two")
    for each in (one, two):
        each.settings["log_on_storage"] = False
    with one, two:
        for each in (one, two):
            with each.connect() as client:
                client.execute(TABLE)
        yield one, two


@contextlib.contextmanager
def renamed(storage: Path) -> Iterator[None]:
    away = storage.with_name("away")
    storage.rename(away)
    try:
        yield
        assert not storage.exists(), "nobody makes another one"
    finally:
        away.rename(storage)


@contextlib.contextmanager
def unmounted(storage: Path) -> Iterator[None]:
    """Unmounts the storage: shows the mount point without its file system."""
    with mounted(storage, "-t", "tmpfs", "tmpfs"):
        yield
        assert list(storage.iterdir()) == [], "nobody writes to it"


def read_only(storage: Path) -> AbstractContextManager[None]:
    return mounted(storage, "--bind", "-o", "ro", str(storage))


FAULTS = {
    "renamed": (renamed, "58030"),
    "unmounted": (unmounted, "58030"),
    "read-only": (read_only, "58030"),
    "full": (full, "53100"),
}


def fails(client: Client, statement: str, *arguments: object) -> str:
    """The SQLSTATE of a statement's error."""
    with pytest.raises(psycopg.Error) as raised:
        client.execute(statement.encode(), arguments)
    return str(raised.value.sqlstate)


def states(client: Client) -> list[Any]:
    return client.execute("SELECT name, state, epoch FROM millstream.servers ORDER BY name").fetchall()


@pytest.mark.parametrize("fault", FAULTS)
def test_servers_outlive_their_storage(fault: str, servers: Servers, storage: Path) -> None:
    one, two = servers
    broken, sqlstate = FAULTS[fault]
    with one.connect() as client, two.connect() as other:
        wanted = client.execute(BRIEF.format(next(NUMBERS)).encode()).fetchall()
        before = states(client)
        query_id = suspended(one, client)
        with broken(storage if fault != "full" else storage.parent):
            running: list[Running] = []
            for wish in ("checkpoint(%s)", "suspend(%s)", "migrate(%s, 'two')"):
                running.append(begun(one, client))
                assert fails(client, f"SELECT millstream.{wish}", running[-1].pid) == sqlstate, wish
            for query in running:
                query.wait()
                assert query.error is None
                assert query.rows == wanted, "it goes on where it was"
            resumed = f"SELECT * FROM millstream.resume('{query_id}')"
            assert fails(client, resumed) == sqlstate
            assert fails(other, "SELECT millstream.drain('one')") == sqlstate
            for session in (client, other):
                assert session.execute("INSERT INTO t VALUES (0)").statusmessage == "INSERT 0 1"
                assert session.execute("DELETE FROM t WHERE k = 0").statusmessage == "DELETE 1"
        assert client.execute(resumed.encode()).fetchall() == wanted
        assert client.execute("SELECT millstream.forget(%s)", (query_id,)).fetchone() == (True,)
        last = begun(one, client)
        ((moved,),) = client.execute("SELECT millstream.migrate(%s, 'two')", (last.pid,)).fetchall()
        last.wait()
        assert (moved is not None, last.rows) == (True, wanted)
        assert states(client) == states(other) == before
        left = "SELECT count(*) FROM millstream.queries"
        wait_until(lambda: client.execute(left).fetchone() == (0,), 60, "end of all queries")
        assert list(storage.glob("queries/*")) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_views_stay_where_they_are(fault: str, servers: Servers, storage: Path) -> None:
    """Requests to move a view fail, rows continue to arrive, and all requests work once the storage is back."""
    one, two = servers
    broken, sqlstate = FAULTS[fault]
    wishes = ("checkpoint('v')", "suspend('v')", "migrate('v', 'two')")
    with one.connect() as client, two.connect() as other:
        client.execute("CREATE FOREIGN TABLE s (k int) SERVER stream; CREATE VIEW v AS SELECT count(*) AS c FROM s")
        client.execute("INSERT INTO s SELECT generate_series(1, 100)")
        client.execute("CREATE FOREIGN TABLE r (k int) SERVER stream; CREATE VIEW w AS SELECT count(*) AS c FROM r")
        client.execute("SELECT millstream.suspend('w')")
        with broken(storage if fault != "full" else storage.parent):
            for number, wish in enumerate(wishes, 1):
                assert fails(client, f"SELECT millstream.{wish}") == sqlstate, wish
                client.execute("INSERT INTO s VALUES (0)")
                assert client.execute("SELECT c FROM v").fetchone() == (100 + number,)
            for session in (client, other):
                assert fails(session, "SELECT millstream.resume('w')") == sqlstate
        for wish in wishes:
            assert client.execute(f"SELECT millstream.{wish}".encode()).fetchone() == ("v",)
            if wish.startswith("suspend"):
                client.execute("SELECT millstream.resume('v')")
        client.execute("INSERT INTO s VALUES (0)")
        for session in (client, other):
            assert session.execute("SELECT c FROM v").fetchone() == (104,)
        client.execute("SELECT millstream.resume('w')")
        assert client.execute("SELECT c FROM w").fetchone() == (0,)
        client.execute("DROP VIEW v, w; DROP FOREIGN TABLE s, r")
        left = "SELECT count(*) FROM millstream.streams"
        wait_until(lambda: other.execute(left).fetchone() == (0,), 60, "the guest's end")


def test_a_server_that_dies_meanwhile_is_taken_over_afterwards(servers: Servers, storage: Path) -> None:
    three = server(storage, "three", failpoint="manifest:stop")
    three.settings["log_on_storage"] = False
    with three, servers[1].connect() as other:
        wanted = other.execute(BRIEF.format(next(NUMBERS)).encode()).fetchall()
        with three.connect() as client, contextlib.closing(three.connect()) as asking:
            client.execute(TABLE)
            running = begun(three, client)
            asking.pgconn.send_query(f"SELECT millstream.checkpoint({running.pid})".encode())
            wait_until(lambda: bool(list(storage.glob("queries/*/manifest.json"))), 60, "the checkpoint")
            with renamed(storage):
                three.kill9()
            running.wait()
        expire(storage, "three")
        ended = "SELECT query_id FROM millstream.queries WHERE state = 'finished'"
        wait_until(lambda: other.execute(ended).fetchone() is not None, 60, "its rows")
        ((query_id,),) = other.execute(ended).fetchall()
        assert other.execute(f"SELECT * FROM millstream.resume('{query_id}')".encode()).fetchall() == wanted
        assert other.execute("SELECT millstream.forget(%s)", (query_id,)).fetchone() == (True,)
        assert ("three", "lost", 2) in states(other)

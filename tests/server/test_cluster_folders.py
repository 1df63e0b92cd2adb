"""Continuous views over a folder that several servers find at the same path, as processes: files arrive all the time,
and whichever process is killed, each of their rows counts once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.rig.process import wait_until
from tests.rig.server import Millstream, together
from tests.server.cluster import expire, server
from tests.server.test_cluster_views import placed

pytestmark = [pytest.mark.slow, pytest.mark.sample(2)]

VIEW = "CREATE VIEW v AS SELECT k, count(*) AS c, sum(n) AS n, array_agg(n) AS every FROM s GROUP BY k"
PACE = {"source_poll": 0.05, "maintenance_idle": 0.05}


class Folder:
    """A folder in which numbered files of one row each arrive."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        path.mkdir()

    def put(self, files: int) -> None:
        for number in range(self.count, self.count + files):
            (self.path / "_new").write_text(f"1,{number}\n")
            (self.path / "_new").rename(self.path / f"{number:06}.csv")
        self.count += files

    def shows(self, client: psycopg.Connection) -> bool:
        """Whether the view has all rows; asserts that none is repeated or out of order."""
        try:
            row = client.execute("SELECT c, n, every FROM v").fetchone()
        except psycopg.OperationalError:  # its server has been killed
            return False
        count, total, every = row or (0, 0, [])
        assert every == sorted(set(every))
        assert (len(every), sum(every)) == (count, total)
        return count == self.count

    def await_in(self, *running: Millstream) -> None:
        for each in running:
            with each.connect() as client:
                wait_until(lambda: self.shows(client), 60, "the files' rows")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "incoming")


@pytest.fixture
def pair(tmp_path: Path, folder: Folder) -> Iterator[tuple[Millstream, Millstream]]:
    servers = [server(tmp_path / "storage", name) for name in "ab"]
    for each in servers:
        each.settings |= PACE
    with together(*servers) as (a, b):
        with a.connect() as client:
            options = f"source 'files', path '{folder.path}', format 'csv'"
            client.execute(f"CREATE FOREIGN TABLE s (k int, n bigint) SERVER stream OPTIONS ({options})".encode())
            client.execute(VIEW)
            folder.put(5)
            folder.await_in(a)
            client.execute("SELECT millstream.migrate('v', 'b')")
        yield a, b


def test_both_are_killed(pair: tuple[Millstream, Millstream], folder: Folder) -> None:
    a, b = pair
    for killed in ((a,), (b,), (a, b), (b, a)):
        folder.put(5)
        folder.await_in(a, b)
        folder.put(5)
        for each in killed:
            each.kill9()
        folder.put(5)
        for each in killed:
            each.restart()
        folder.await_in(a, b)
    with b.connect() as client:
        client.execute("SELECT millstream.migrate('v', 'a')")
    folder.put(5)
    folder.await_in(a)


def test_its_server_is_lost(pair: tuple[Millstream, Millstream], folder: Folder, tmp_path: Path) -> None:
    a, b = pair
    folder.put(5)
    folder.await_in(b)
    b.kill9()
    folder.put(5)
    expire(tmp_path / "storage", "b")
    with a.connect() as client:
        wait_until(lambda: placed(client) == ("a",), 60, "the take-over")
    folder.await_in(a)


def test_its_home_is_gone_for_good(pair: tuple[Millstream, Millstream], folder: Folder, tmp_path: Path) -> None:
    """Files that arrive while no server looks are found by the streams' next server, also after it was killed."""
    a, b = pair
    folder.put(5)
    a.kill9()
    folder.put(5)
    expire(tmp_path / "storage", "a")
    with b.connect() as client:
        state = "SELECT state FROM millstream.servers WHERE name = 'a'"
        wait_until(lambda: client.execute(state).fetchone() == ("lost",), 60, "the loss")
        assert client.execute("SELECT millstream.adopt('a')").fetchone() == (1,)
    folder.await_in(b)
    for _ in range(2):
        folder.put(5)
        b.kill9()
        b.restart()
        folder.await_in(b)

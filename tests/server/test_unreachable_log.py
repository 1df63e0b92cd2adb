"""A shared storage with the servers' logs that is gone, full or read-only for a while: acknowledged rows are there,
once; failed ones are not; reads continue, and so do writers once the storage is back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.rig.process import wait_until
from tests.server.cluster import server
from tests.server.test_cluster_views import Writer, migrate
from tests.server.test_full_disk import mounted
from tests.server.test_unreachable_storage import FAULTS, Client, Servers

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounting a small disk needs root"),
]

SETUP = """
    CREATE FOREIGN TABLE s (k int, n bigint) SERVER stream;
    CREATE TABLE t (k int PRIMARY KEY);
    CREATE VIEW v AS SELECT k, count(*) AS c, sum(n) AS n FROM s GROUP BY k;
    CREATE VIEW w AS SELECT count(*) AS c, sum(n) AS n FROM s
"""


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file system of 48 MB."""
    folder = tmp_path_factory.mktemp("disk")
    with mounted(folder, "-t", "tmpfs", "-o", "size=48m", "tmpfs"):
        yield folder / "storage"


@pytest.fixture(scope="module")
def servers(storage: Path) -> Iterator[Servers]:
    """A stream's home, and the server of one of its two views."""
    one, two = server(storage, "one"), server(storage, "two")
    for each in (one, two):
        each.settings["log_segment_bytes"] = 1 << 18
    with one, two, one.connect() as client:
        client.execute(SETUP)
        migrate(client, "two")
        yield one, two


def require(client: Client, view: str, rows: int) -> None:
    """Checks that a view has the first numbers, each once."""
    found = client.execute(f"SELECT sum(c), sum(n) FROM {view}".encode()).fetchone()
    assert found == (rows, rows * (rows - 1) // 2)


def first_error(writer: Writer) -> str | None:
    """The error that ends the writing, which must come when the log needs another file."""
    for _ in range(200):
        try:
            writer.copy(5000)
        except psycopg.Error as error:
            return error.sqlstate
    return None


@pytest.mark.parametrize("fault", FAULTS)
def test_writers_outlive_their_storage(fault: str, servers: Servers, storage: Path) -> None:
    one, two = servers
    broken, sqlstate = FAULTS[fault]
    with one.connect() as client, one.connect() as writing, two.connect() as there:
        ((done,),) = client.execute("SELECT coalesce(sum(c), 0)::bigint FROM w").fetchall()
        writer = Writer(writing, done)
        writer.copy(5000)
        require(there, "v", writer.done)
        with broken(storage if fault != "full" else storage.parent):
            for _ in range(2):
                assert first_error(writer) == sqlstate
                require(client, "w", writer.done)
                assert client.execute("SELECT count(*) FROM t").fetchone() is not None
                assert there.execute("SELECT 1").fetchone() == (1,)
        writer.copy(5000)
        assert client.execute(b"INSERT INTO t VALUES (%s)" % str(writer.done).encode()).statusmessage == "INSERT 0 1"
        require(client, "w", writer.done)
        wait_until(lambda: can_be_read(there), 60, "the guest")
        require(there, "v", writer.done)
        require(client, "v", writer.done)


def can_be_read(client: Client) -> bool:
    try:
        return client.execute("SELECT count(*) FROM v").fetchone() is not None
    except psycopg.Error:
        return False


def test_a_server_that_dies_meanwhile_has_all_rows(servers: Servers, storage: Path) -> None:
    one, two = servers
    broken, sqlstate = FAULTS["unmounted"]
    with one.connect() as client:
        ((done,),) = client.execute("SELECT coalesce(sum(c), 0)::bigint FROM w").fetchall()
        writer = Writer(client, done)
        with broken(storage):
            assert first_error(writer) == sqlstate
            one.kill9()
    one.start()
    with one.connect() as client, two.connect() as there:
        require(client, "w", writer.done)
        require(there, "v", writer.done)
        Writer(client, writer.done).copy(1000)
        require(there, "v", writer.done + 1000)

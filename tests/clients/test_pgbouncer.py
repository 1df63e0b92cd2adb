"""A real PgBouncer in front: its sessions and transactions, prepared statements and resets."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.rig.process import die_with_parent, end, free_port, wait_until
from tests.rig.server import DATABASE, USER, Millstream

BINARY = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:" + os.environ.get("PATH", ""))
pytestmark = pytest.mark.skipif(BINARY is None, reason="PgBouncer is not installed: apt-get install pgbouncer")


@pytest.fixture(scope="module")
def server() -> Iterator[Millstream]:
    """The server behind the pools."""
    with Millstream(settings={"maintenance_engine": "embedded", "spark_enabled": False}) as server:
        yield server


@pytest.fixture(scope="module", params=["session", "transaction"])
def pool(request: pytest.FixtureRequest, server: Millstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A connection string for a pool with one server connection, so that clients share it."""
    port, folder = free_port(), tmp_path_factory.mktemp("pgbouncer")
    (folder / "users.txt").write_text(f'"{USER}" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"""[databases]
{DATABASE} = host=127.0.0.1 port={server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users.txt
pool_mode = {request.param}
default_pool_size = 1
server_check_delay = 0
"""
    )
    process = _start(folder)
    dsn = f"host=127.0.0.1 port={port} user={USER} dbname={DATABASE}"
    try:
        wait_until(lambda: process.poll() is not None or _answers(dsn), 60, "PgBouncer")
        yield dsn
    finally:
        end(process)


def _start(folder: Path) -> subprocess.Popen[bytes]:
    assert BINARY is not None
    account = ["-u", "nobody"] if os.geteuid() == 0 else []  # PgBouncer refuses to run as root
    if account:
        for item in (folder.parent, folder, *folder.iterdir()):
            item.chmod(0o755)
    command = [BINARY, "-q", *account, str(folder / "pgbouncer.ini")]
    return subprocess.Popen(command, preexec_fn=die_with_parent(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _answers(dsn: str) -> bool:
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return False
    return True


def connect(dsn: str, **options: Any) -> psycopg.Connection[Any]:
    """A client of the pool."""
    return psycopg.connect(dsn, **options)


def test_clients_take_turns_at_one_connection(pool: str, server: Millstream) -> None:
    with server.connect() as direct:
        direct.execute("CREATE TABLE IF NOT EXISTS turns (a integer)")
        direct.execute("TRUNCATE turns")
    pids = set()
    for value in range(5):
        with connect(pool) as client:
            client.execute("INSERT INTO turns VALUES (%s)", (value,))
            pids.add(client.execute("SELECT pg_backend_pid()").fetchone())
    with connect(pool) as client:
        assert client.execute("SELECT count(*), sum(a) FROM turns").fetchone() == (5, 10)
    assert len(pids) == 1


def test_what_a_client_has_set_is_not_the_next_ones(pool: str, request: pytest.FixtureRequest) -> None:
    with connect(pool) as client:
        client.execute("SET LOCAL stream_timeout = 7")
        assert client.execute("SHOW stream_timeout").fetchone() == ("7ms",)
    with connect(pool) as client:
        assert client.execute("SHOW stream_timeout").fetchone() == ("5s",)
    if "session" in request.node.name:
        with connect(pool, autocommit=True) as client:
            client.execute("SET stream_timeout = 8")
        with connect(pool) as client:
            assert client.execute("SHOW stream_timeout").fetchone() == ("5s",)


def test_a_failed_transaction_leaves_nothing(pool: str) -> None:
    with connect(pool) as client:
        with pytest.raises(psycopg.errors.DivisionByZero):
            client.execute("SELECT 1 / 0")
        client.rollback()
        assert client.execute("SELECT 2").fetchone() == (2,)


def test_parameters_and_streams_through_the_pool(pool: str, server: Millstream) -> None:
    with server.connect() as direct:
        direct.execute("DROP VIEW IF EXISTS pooled_sums")
        direct.execute("DROP FOREIGN TABLE IF EXISTS pooled")
        direct.execute("CREATE FOREIGN TABLE pooled (k text, v integer) SERVER stream")
        direct.execute("CREATE VIEW pooled_sums AS SELECT k, sum(v) FROM pooled GROUP BY k")
    with connect(pool, autocommit=True, prepare_threshold=None) as client:
        for value in range(10):
            client.execute("INSERT INTO pooled VALUES (%s, %s)", ("x", value))
        with client.cursor().copy("COPY pooled FROM STDIN") as copy:
            copy.write_row(("x", 100))
        assert client.execute("SELECT * FROM pooled_sums WHERE k = %s", ("x",)).fetchall() == [("x", 145)]

"""A full disk (a small tmpfs): 53100, no effect of the failed statement is visible, and work continues once there is
space."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.rig.process import wait_until
from tests.rig.sampling import sample
from tests.rig.server import Millstream

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounting a small disk needs root"),
]

SETTINGS = {
    "maintenance_engine": "embedded",
    "spark_enabled": False,
    "log_segment_bytes": "4MB",
    "maintenance_idle": 3,
}
#: Settings with which the background's first commit finds the disk full, on any machine, and is tried again soon after.
LATE = {**SETTINGS, "maintenance_idle": 12, "maintenance_rows": 1001}
Client = psycopg.Connection[Any]


@contextlib.contextmanager
def mounted(folder: Path, *words: str) -> Iterator[None]:
    """Mounts a file system over a folder for a while; skips the test if mounting is not possible."""
    found = subprocess.run(["mount", *words, str(folder)], capture_output=True)
    if found.returncode:
        pytest.skip(f"nothing can be mounted here: {found.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with mounted(folder, "-t", "tmpfs", "-o", "size=64m", "tmpfs"):
        yield folder


@contextlib.contextmanager
def full(disk: Path) -> Iterator[None]:
    """A file that takes all remaining space."""
    ballast = disk / "ballast"
    with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(1 << 16)):
            pass
    try:
        yield
    finally:
        ballast.unlink()


def noise(rows: int, first: int = 0) -> bytes:
    """CSV lines that compression does not shrink, 516 bytes each."""
    return b"".join(b"%d,%s\n" % (first + number, os.urandom(256).hex().encode()) for number in range(rows))


def copy(client: Client, table: str, data: bytes) -> None:
    """COPY FROM STDIN."""
    with client.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN (FORMAT csv)".encode()) as writer:
        writer.write(data)


def shown(client: Client) -> list[Any]:
    """Everything that failing statements could have changed."""
    tables = ("SELECT * FROM n", "SELECT count(*), max(length(text)) FROM kept")
    return [client.execute(query.encode()).fetchall() for query in tables]


def background_work_is_done(client: Client) -> bool:
    """Whether every view's durable frontier is at the stream's end."""
    row = client.execute("SELECT bool_and(rows_behind = 0) FROM millstream.views").fetchone()
    return row == (True,)


def a_job_failed(client: Client) -> bool:
    """Whether a background job has failed."""
    return client.execute("SELECT count(*) > 0 FROM millstream.jobs WHERE status = 'failed'").fetchone() == (True,)


def set_up(client: Client) -> None:
    """A stream with a small and a large view, and a table."""
    client.execute("CREATE FOREIGN TABLE noise (number integer, text text) SERVER stream")
    client.execute("CREATE VIEW n AS SELECT count(*), sum(number) FROM noise")
    client.execute("CREATE VIEW wide AS SELECT text, count(*) FROM noise GROUP BY text")
    client.execute("CREATE TABLE kept (id integer PRIMARY KEY, text text)")
    client.execute("INSERT INTO kept VALUES (1, 'a')")
    copy(client, "noise", noise(1000))


@pytest.mark.parametrize("crash", sample((False, True), (True,)))
def test_full_disk_fails_statements_and_nothing_else(disk: Path, crash: bool) -> None:
    with Millstream(disk / "data", LATE) as server:
        with server.connect() as client:
            set_up(client)
            with full(disk):
                before = shown(client)
                for table in ("noise", "kept"):
                    with pytest.raises(psycopg.errors.DiskFull):
                        copy(client, table, noise(20_000, 10))
                for statement in (
                    "INSERT INTO noise SELECT 1, md5(a.text || b.text) FROM wide a, wide b",
                    "INSERT INTO kept VALUES (2, 'b')",
                    "UPDATE kept SET text = text || 'b'",
                    "CREATE VIEW later AS SELECT max(number) FROM noise",
                    "CREATE TABLE later (a integer)",
                    "CREATE FOREIGN TABLE later (a integer) SERVER stream",
                ):
                    with pytest.raises(psycopg.errors.DiskFull):
                        client.execute(statement.encode())
                    with pytest.raises(psycopg.errors.UndefinedTable):
                        client.execute("SELECT * FROM later")
                assert shown(client) == before
                wait_until(lambda: a_job_failed(client), 60, "background commit that fails")
                assert client.execute("SELECT count(*) FROM wide").fetchone() == (1000,)
            client.execute("CREATE VIEW later AS SELECT max(number) FROM noise")
            client.execute("UPDATE kept SET text = text || 'b'")
            client.execute("INSERT INTO noise VALUES (5000, 'x')")
            copy(client, "noise", noise(1001, 1000))
            after = [[(2002, 2001 * 2000 // 2 + 5000)], [(1, 2)]]
            assert shown(client) == after
            wait_until(lambda: background_work_is_done(client), 60, "background work")
        if crash:
            server.kill9()
        server.restart()
        with server.connect() as client:
            assert shown(client) == after
            assert client.execute("SELECT count(*) FROM wide").fetchone() == (2002,)
            assert client.execute("SELECT * FROM later").fetchone() == (5000,)


def test_disk_that_fills_up_loses_nothing_acknowledged(disk: Path) -> None:
    with Millstream(disk / "data", SETTINGS) as server:
        with server.connect() as client:
            set_up(client)
            acknowledged = 1000
            with pytest.raises(psycopg.errors.DiskFull):
                for _ in range(400):
                    copy(client, "noise", noise(1000))
                    acknowledged += 1000
            assert client.execute("SELECT count FROM n").fetchone() == (acknowledged,)
        subprocess.run(["mount", "-o", "remount,size=160m", str(disk)], check=True)
        server.restart()
        with server.connect() as client:
            assert client.execute("SELECT count FROM n").fetchone() == (acknowledged,)
            assert client.execute("SELECT count(*) FROM wide").fetchone() == (acknowledged,)

"""Really exhausted resources: memory that the system refuses, and file descriptors. One statement or one client gets an
error; the others continue, and so does the server once the resource is available again."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.rig.server import Millstream

_PAGE = resource.getpagesize()
_NO_SPARK = {"maintenance_engine": "embedded", "spark_enabled": False}
Client = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def server() -> Iterator[Millstream]:
    with Millstream(settings=_NO_SPARK) as running:
        yield running


@contextlib.contextmanager
def limited(server: Millstream, kind: int, limit: int) -> Iterator[None]:
    """Limits a resource of the server's process."""
    before = resource.prlimit(server.pid, kind)
    resource.prlimit(server.pid, kind, (limit, before[1]))
    try:
        yield
    finally:
        resource.prlimit(server.pid, kind, before)


def mapped(server: Millstream) -> int:
    """The size of the server's address space in bytes."""
    return int(Path(f"/proc/{server.pid}/statm").read_text().split()[0]) * _PAGE


def _copy(client: Client, piece: bytes) -> None:
    with client.cursor().copy("COPY taken FROM STDIN") as copy:
        for _ in range(80):
            copy.write(piece)


def _parameter(client: Client) -> None:
    client.execute("SELECT length(%s)", ["x" * 80_000_000])


def _result(client: Client) -> None:
    client.execute("SELECT repeat('x', 1000000) || i FROM generate_series(1, 400) i")


def _rows(client: Client) -> None:
    _copy(client, b"x" * 999_999 + b"\n")


def test_memory_that_the_system_refuses_ends_one_statement_or_one_session(server: Millstream) -> None:
    with server.connect() as other, contextlib.ExitStack() as stack:
        other.execute("CREATE TABLE taken (text text)")
        assert other.execute("SELECT 1").fetchone() == (1,)
        for exceed in (_parameter, _rows, _result):
            with server.connect() as client, limited(server, resource.RLIMIT_AS, mapped(server) + (64 << 20)):
                with pytest.raises(psycopg.OperationalError) as caught:
                    exceed(client)
                assert caught.value.sqlstate in ("53200", "53000", None), exceed  # None: the session has ended
            for client in (other, stack.enter_context(server.connect())):
                assert client.execute("SELECT count(*) FROM taken").fetchone() == (0,), exceed


def test_descriptors_that_run_out_refuse_clients_and_files_and_end_nothing(server: Millstream, tmp_path: Path) -> None:
    for number in range(20):
        parquet.write_table(pa.table({"a": [number]}), tmp_path / f"{number}.parquet")
    with server.connect() as client, contextlib.ExitStack() as clients:
        client.execute(f"CREATE FOREIGN TABLE numbers (a bigint) SERVER files OPTIONS (path '{tmp_path}')")
        assert client.execute("SELECT count(*) FROM numbers").fetchone() == (20,)
        with limited(server, resource.RLIMIT_NOFILE, 64):
            with pytest.raises(psycopg.OperationalError, match="too many clients already"):
                for _ in range(64):
                    clients.enter_context(server.connect())
            with pytest.raises(psycopg.errors.InsufficientResources, match="too many open files"):
                client.execute("SELECT count(*) FROM numbers")
            assert client.execute("SELECT sum(i) FROM generate_series(1, 100) i").fetchone() == (5050,)
            client.execute("CREATE TABLE IF NOT EXISTS others AS SELECT 1 AS a")
        assert client.execute("SELECT count(*) FROM numbers").fetchone() == (20,)

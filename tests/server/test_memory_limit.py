"""``memory_limit``: a statement beyond it ends with 53200, the others continue, and the process becomes small again;
rows that a client does not read are not computed."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import asyncpg
import psycopg
import pytest
from psycopg.pq import ExecStatus

from executor.core.memory import available
from server.operations.config import Config, ConfigError
from tests.rig.process import wait_until
from tests.rig.server import DATABASE, USER, Millstream

_MB = 1 << 20
_LIMIT = 768 * _MB
#: The size of the process when idle, and its most size beyond the limit: the growth of a thirtieth of a second.
_AT_REST, _BEYOND = 350 * _MB, 200 * _MB
#: How much the process may grow while a client leaves 2 GB unread, as it returns no memory yet.
_UNREAD = 250 * _MB
_ROWS = "SELECT repeat('x', 1000) || i FROM generate_series(1, 2000000) i"
#: Begins a transaction that has changed tables in the engine.
_WRITES = "BEGIN; UPDATE numbers SET i = i"
Client = psycopg.Connection[Any]
Isolation = Literal["read_committed", "repeatable_read"]


@pytest.fixture(scope="module")
def server() -> Iterator[Millstream]:
    settings = {"maintenance_engine": "embedded", "spark_enabled": False, "memory_limit": _LIMIT}
    with Millstream(settings=settings) as running:
        with running.connect() as client:
            client.execute("CREATE TABLE numbers AS SELECT i FROM generate_series(1, 1000) i")
        yield running


def size(server: Millstream) -> int:
    """The server's resident bytes."""
    return int(Path(f"/proc/{server.pid}/statm").read_text().split()[1]) * resource.getpagesize()


def largest(server: Millstream) -> int:
    """The most resident bytes since ``forget_largest``."""
    lines = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def _may_grow(server: Millstream) -> bool:
    """Whether the system gives the process all the memory that it requests."""
    limits = Path(f"/proc/{server.pid}/limits").read_text().splitlines()
    return any(line.split()[3] == "unlimited" for line in limits if line.startswith("Max address space"))


def forget_largest(server: Millstream) -> None:
    """Waits until earlier statements have ended, which the engine notices after the current vector, and until the
    system gives the process memory again."""
    wait_until(lambda: size(server) < _AT_REST and _may_grow(server), 60, "memory that is given back")
    forget(server)


def forget(server: Millstream) -> None:
    """Restarts the measurement of ``largest``."""
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")


@pytest.mark.parametrize(
    ("text", "beyond"),
    [
        ("SELECT repeat('x', 10000000) || i FROM generate_series(1, 2000) i ORDER BY 1 LIMIT 1", _BEYOND),
        # The engine doubles the text that grows: it has both while it copies the one, which nothing interrupts.
        ("SELECT length(string_agg(repeat('x', 1000000) || i, ',')) FROM generate_series(1, 3000) i", _LIMIT),
    ],
)
def test_a_statement_that_exceeds_the_limit_ends_and_no_other_does(server: Millstream, text: str, beyond: int) -> None:
    forget_largest(server)
    with server.connect() as other, server.connect() as client:
        with pytest.raises(psycopg.errors.OutOfMemory):
            client.execute(text)  # type: ignore[call-overload] -- a text is no literal here
        assert other.execute("SELECT sum(i) FROM numbers").fetchone() == (500500,)
        assert client.execute("SELECT count(*) FROM numbers").fetchone() == (1000,)
    assert largest(server) < _LIMIT + beyond


def test_rows_that_are_held_for_a_statement_count_and_are_given_back(server: Millstream) -> None:
    """Again and again: threads come and go, and no heap of an earlier one keeps what was freed."""
    forget_largest(server)
    with server.connect() as other, server.connect() as client:
        for _ in range(5):
            with pytest.raises(psycopg.errors.OutOfMemory, match="memory_limit"), client.transaction():
                client.execute(f"DECLARE held CURSOR FOR {_ROWS}")
        assert other.execute("SELECT sum(i) FROM numbers").fetchone() == (500500,)
        assert client.execute("SELECT count(*) FROM numbers").fetchone() == (1000,)
        wait_until(lambda: size(server) < _AT_REST, 60, "memory that is given back")
    assert largest(server) < _LIMIT + _BEYOND


@pytest.mark.parametrize("text", [_ROWS, f"COPY ({_ROWS}) TO STDOUT"])
@pytest.mark.parametrize("begin", ["", "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM numbers", _WRITES])
def test_rows_that_a_client_does_not_read_are_not_computed(server: Millstream, text: str, begin: str) -> None:
    """Neither while the client waits nor after it has gone."""
    before = size(server)
    forget(server)
    with server.connect() as other, server.connect() as client:
        if begin:
            client.execute(begin)  # type: ignore[call-overload]
        client.pgconn.send_query(text.encode())
        if text == _ROWS:
            client.pgconn.set_single_row_mode()
        client.pgconn.flush()
        for _ in range(20):  # while other statements run
            assert other.execute("SELECT sum(i + random() * 0) FROM numbers").fetchone() is not None
        found = client.pgconn.get_result()
        assert found is not None
        assert found.status in (ExecStatus.SINGLE_TUPLE, ExecStatus.COPY_OUT)
        client.pgconn.finish()
        sessions = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        wait_until(lambda: other.execute(sessions).fetchone() == (1,), 60, "end of the session")
        assert largest(server) < before + _UNREAD


def test_all_rows_of_a_large_result_come_in_order(server: Millstream) -> None:
    with server.connect() as client:
        rows = client.execute("SELECT i, 'r' || i FROM generate_series(1, 100000) i ORDER BY i").fetchall()
        assert rows == [(i, f"r{i}") for i in range(1, 100001)]


def test_an_error_behind_the_first_rows_ends_the_result(server: Millstream) -> None:
    with server.connect() as client:
        with pytest.raises(psycopg.errors.DivisionByZero):
            client.execute("SELECT 1 / (90000 - i) FROM generate_series(1, 100000) i").fetchall()
        assert client.execute("SELECT count(*) FROM numbers").fetchone() == (1000,)


def test_a_transaction_that_has_written_reads_its_rows_as_they_are_computed(server: Millstream) -> None:
    """An open portal keeps its rows while the transaction continues to write; ROLLBACK TO undoes an error after the
    first rows, like any other."""
    with server.connect() as client:
        client.execute("CREATE TABLE written AS SELECT i FROM generate_series(1, 60000) i")
        with client.transaction():
            client.execute("UPDATE written SET i = i + 1")
            client.execute("DECLARE portal CURSOR FOR SELECT i FROM written ORDER BY i")
            found = client.execute("FETCH 10 FROM portal").fetchall()
            client.execute("UPDATE written SET i = i + 1")
            found += client.execute("FETCH ALL FROM portal").fetchall()
            assert found == [(i + 1,) for i in range(1, 60001)]
            with pytest.raises(psycopg.errors.DivisionByZero), client.transaction():
                client.execute("UPDATE written SET i = 0")
                client.execute("SELECT 1 / (50000 - i) FROM (SELECT i + row_number() OVER () AS i FROM written) w")
            assert client.execute("SELECT sum(i) FROM written").fetchone() == (sum(range(3, 60003)),)
            with pytest.raises(psycopg.errors.DivisionByZero), client.transaction():
                client.execute(
                    "SELECT 1 / (50000 - i) FROM generate_series(1, 60000) i, (SELECT 1 FROM written LIMIT 1) w"
                )
            client.execute("DELETE FROM written WHERE i > 10")
        assert client.execute("SELECT i FROM written ORDER BY i").fetchall() == [(i,) for i in range(3, 11)]
        client.execute("DROP TABLE written")


@pytest.mark.parametrize("isolation", ["read_committed", "repeatable_read"])
def test_a_portal_keeps_its_snapshot_while_other_statements_run(server: Millstream, isolation: Isolation) -> None:
    """The rows after the first fetch are as of the portal's snapshot, whatever runs on its connection meanwhile."""

    async def read(client: asyncpg.Connection[Any], other: Client) -> list[int]:
        async with client.transaction(isolation=isolation):
            portal = await client.cursor("SELECT i FROM many ORDER BY i")
            found = await portal.fetch(10)
            other.execute("DELETE FROM many")
            kept = 60000 if isolation == "repeatable_read" else 0
            assert await client.fetchval("SELECT count(*) FROM many") == kept
            found += await portal.fetch(20000)
            return [row["i"] for row in found + await portal.fetch(60000)]

    async def run(other: Client) -> list[int]:
        client = await asyncpg.connect(host="127.0.0.1", port=server.port, user=USER, database=DATABASE)
        try:
            return await read(client, other)
        finally:
            await client.close()

    with server.connect() as other:
        other.execute("CREATE TABLE many AS SELECT i FROM generate_series(1, 60000) i")
        assert asyncio.run(run(other)) == list(range(1, 60001))
        other.execute("DROP TABLE many")


def test_the_limit_bounds_the_shares_of_caches() -> None:
    config = Config(memory_limit=1024 * _MB)
    assert config.options().trace_memory == 384 * _MB
    assert Config(memory_limit=1024 * _MB, trace_memory=64 * _MB).options().trace_memory == 64 * _MB
    assert config.result_cache == 64 * _MB
    assert Config().memory == available() * 3 // 4
    with pytest.raises(ConfigError, match="memory_limit"):
        Config(memory_limit=_MB)

"""Cancelling: by another connection, by timeout, during COPY; and events that must not cancel."""

from __future__ import annotations

import asyncio
import gc
import struct
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest

from catalog.values.errors import SqlError
from server.messages.sessions import open_session
from server.net.cancel_keys import CancelRegistry
from server.operations.config import Address, Config
from server.operations.memory_guard import Account
from tests.rig.beside import Beside
from tests.rig.process import is_busy, wait_until
from tests.rig.server import Millstream
from tests.server.in_process import count, opened, request
from tests.server.wire import Wire, error_fields, letters, rows

Client = psycopg.Connection[Any]

#: Takes hours unless it is cancelled.
ENDLESS = "SELECT count(*) FROM numbers a, numbers b, numbers c, numbers d WHERE a.n + b.n = c.n * d.n"


@pytest.fixture(scope="module")
def numbers(running: Millstream) -> Millstream:
    with running.connect() as client:
        client.execute("CREATE TABLE numbers (n integer)")
        values = ",".join(f"({number})" for number in range(2000))
        client.execute(f"INSERT INTO numbers VALUES {values}".encode())
    return running


def await_active(server: Millstream, pid: int) -> None:
    """Returns once the server works on a session's request: an earlier cancel would have no effect."""
    query = "SELECT state FROM pg_stat_activity WHERE pid = %s AND query LIKE 'SELECT count(*) FROM numbers a%%'"
    with server.connect() as client:
        wait_until(lambda: client.execute(query, (pid,)).fetchone() == ("active",), 60, "query")


@pytest.mark.slow
def test_cancel_request_stops_a_query_and_keeps_the_session(numbers: Millstream) -> None:
    with numbers.connect() as client:
        working = Beside(client.execute, ENDLESS)
        await_active(numbers, client.info.backend_pid)
        client.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled) as caught:
            working.result()
        assert str(caught.value).startswith("canceling statement due to user request")
        assert client.execute("SELECT 1").fetchone() == (1,)


def test_a_cancel_that_comes_before_the_thread_of_its_query(tmp_path: Path) -> None:
    """The server reads the cancel request together with the query."""
    config = replace(Config(), data=tmp_path, listen=Address("127.0.0.1", 0), spark_enabled=False)
    with opened(config, {}) as house:
        peer = house.peer()
        peer.query("CREATE TABLE numbers AS SELECT n FROM generate_series(1, 2000) n; SET statement_timeout = '20s'")
        assert b"due to user request" in peer.feed(request(("Q", ENDLESS.encode() + b"\0")), then=peer.session.cancel)
        assert b"2000" in peer.query("SELECT count(*) FROM numbers")


#: A value whose text takes seconds to read.
RANGES = b"{" + b"[1,2)," * 2_000_000 + b"[1,2)}"


def test_the_values_of_a_bind_are_read_beside_other_clients_and_can_be_cancelled(tmp_path: Path) -> None:
    config = replace(Config(), data=tmp_path, listen=Address("127.0.0.1", 0), spark_enabled=False)
    with opened(config, {}) as house:
        peer, other = house.peer(), house.peer()
        other.query("SELECT 1")
        bind = b"\0\0\0\0\0\1" + struct.pack(">i", len(RANGES)) + RANGES + b"\0\0"
        messages = request(("P", b"\0SELECT $1::int4multirange\0\0\0"), ("H", b""))
        peer.feed(messages, answers=0)
        peer.connection.data_received(request(("B", bind), ("S", b"")))
        assert b"SELECT 1" in other.query("SELECT 1")
        assert not count(peer.pipe.data), "it was read before the other client was served"
        assert b"57014" in peer.feed(b"", then=peer.session.cancel)


def test_clients_are_served_between_many_messages_of_another(tmp_path: Path) -> None:
    config = replace(Config(), data=tmp_path, listen=Address("127.0.0.1", 0), spark_enabled=False)
    with opened(config, {}) as house:
        peer, other = house.peer(), house.peer()
        other.query("SELECT 1")
        peer.ask(("P", b"one\0SELECT 1\0\0\0"), ("S", b""))
        peer.connection.data_received(request(*[("D", b"Sone\0")] * 20_000, ("S", b"")))
        assert b"SELECT 1" in other.query("SELECT 1")
        assert not count(peer.pipe.data)
        answer = peer.feed(b"")
        assert count(answer) == 1
        assert answer.count(b"?column?") == 20_000


def test_statement_timeout(numbers: Millstream) -> None:
    with numbers.connect() as client:
        with pytest.raises(psycopg.errors.QueryCanceled) as caught:
            client.execute(f"SET statement_timeout = '200ms'; {ENDLESS}".encode())  # rolled back: no limit afterwards
        assert str(caught.value).startswith("canceling statement due to statement timeout")
        assert client.execute("SELECT 1").fetchone() == (1,)


def test_cancel_in_a_transaction_fails_it(numbers: Millstream) -> None:
    with numbers.connect() as client:
        client.execute("BEGIN")
        client.execute("SET LOCAL statement_timeout = 100")
        with pytest.raises(psycopg.errors.QueryCanceled):
            client.execute(ENDLESS)
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            client.execute("SELECT 1")
        client.execute("ROLLBACK")
        assert client.execute("SHOW statement_timeout").fetchone() == ("0",)


def test_a_cancel_of_an_idle_session_does_nothing(running: Millstream, wire: Wire) -> None:
    _request(running, *wire.backend)
    assert rows(wire.query("SELECT 1")) == [(b"1",)]


@pytest.mark.slow
def test_a_wrong_key_does_nothing(numbers: Millstream) -> None:
    with Wire(numbers.port) as wire:
        wire.start()
        process, key = wire.backend
        wire.send(("Q", ENDLESS.encode() + b"\0"))
        await_active(numbers, process)
        _request(numbers, process, bytes((key[0] ^ 1, *key[1:])))
        wire.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            wire.message()
        wire.socket.settimeout(20)
        _request(numbers, process, key)
        assert error_fields(wire.until_ready())["C"] == "57014"


def test_cancel_during_copy(running: Millstream, wire: Wire) -> None:
    wire.query("CREATE TABLE cancelled (a integer)")
    wire.send(("Q", b"COPY cancelled FROM STDIN\0"), ("d", b"1\n"))
    wire.until("G")
    _request(running, *wire.backend)
    messages = wire.until_ready()
    assert letters(messages) == "EZ"
    assert error_fields(messages)["C"] == "57014"
    assert rows(wire.query("SELECT count(*) FROM cancelled")) == [(b"0",)]


@pytest.mark.slow
def test_a_vanished_client_stops_working(numbers: Millstream) -> None:
    """Its query ends: the server is otherwise idle soon after."""
    with Wire(numbers.port) as wire:
        wire.start()
        wire.send(("Q", ENDLESS.encode() + b"\0"))
        wait_until(lambda: is_busy(numbers.pid), 60, "query")
    wait_until(lambda: not is_busy(numbers.pid), 60, "end of the query")


def _request(server: Millstream, process: int, key: bytes) -> None:
    with Wire(server.port) as client:
        client.socket.sendall(struct.pack(">iiI", 12 + len(key), 80877102, process) + key)
        assert client.message() is None


def test_registry() -> None:
    registry, cancelled = CancelRegistry(), []
    first = registry.register(lambda: cancelled.append(1), 4, "a")
    second = registry.register(lambda: cancelled.append(2), 32, "b")
    assert first.process != second.process
    assert not registry.cancel(first.process, second.key)
    assert not registry.cancel(99, first.key)
    assert registry.cancel(second.process, second.key)
    assert cancelled == [2]
    registry.forget(second)
    assert not registry.cancel(second.process, second.key)


class Worked:
    """A session with a message in progress, without a client."""

    def __init__(self, loop: asyncio.AbstractEventLoop, workers: ThreadPoolExecutor) -> None:
        self.loop = loop
        server = SimpleNamespace(
            loop=loop,
            workers=workers,
            cancels=CancelRegistry(),
            channels=None,
            change_channels=None,
            transaction_numbers=None,
        )
        self.connection = SimpleNamespace(is_busy=True, end=None, account=Account(), stop_draining=lambda: None)
        settings = SimpleNamespace(key=(), seconds=lambda name: 0.0)
        # What ends just then hears nothing.
        self.db = db = SimpleNamespace(
            database=None, reader=SimpleNamespace(), cancel=lambda: None, describe_itself=lambda own: None
        )
        given = cast(Any, self.connection), cast(Any, server), cast(Any, db), cast(Any, settings)
        self.session = open_session(*given, "u", 4)

    def cancelled_as_it_ends(self) -> str:
        self.loop.call_soon_threadsafe(self.session.cancel)  # before the server knows that it has ended
        return "a portion"


def worked(scenario: Callable[[Worked], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        with ThreadPoolExecutor(1) as workers:
            await scenario(Worked(asyncio.get_running_loop(), workers))

    asyncio.run(run())


def test_a_cancel_that_comes_as_a_portion_ends_ends_the_next() -> None:
    async def scenario(at: Worked) -> None:
        assert await at.session.work.run(at.cancelled_as_it_ends) == "a portion"
        with pytest.raises(SqlError, match=r"57014.*user request"):
            await at.session.work.portion(lambda: "another")
        assert await at.session.work.portion(lambda: "and is forgotten") == "and is forgotten"

    worked(scenario)


def test_a_cancel_between_two_portions_ends_the_next_and_keeps_nothing_alive() -> None:
    async def scenario(at: Worked) -> None:
        class Held:
            pass

        kept = weakref.ref(held := Held())

        async def statement(cursor: Held) -> None:
            at.session.cancel()
            await at.session.work.portion(lambda: cursor)

        try:
            await statement(held)
        except SqlError as error:
            assert "user request" in error.message
        else:
            pytest.fail("it goes on")
        del held
        assert kept() is None

    gc.disable()  # what the statement reads is released at its end, not when the garbage collector runs
    try:
        worked(scenario)
    finally:
        gc.enable()


def test_a_statement_that_ends_as_it_times_out_does_not_end_the_session() -> None:
    """The following statements of the same message have their own time limits."""

    async def scenario(at: Worked) -> None:
        ended: list[SqlError] = []
        at.connection.end, at.connection.is_lost = ended.append, False
        at.db.database = SimpleNamespace(shared=SimpleNamespace(pulse=SimpleNamespace(is_silent=False)))
        with at.session.work.timed():
            at.session.work.cancel(SqlError("57014", "canceling statement due to statement timeout"))
            told = at.session.work._to_end
        assert told is not None
        at.session.work._leave_behind(told, "", 100.0)
        assert not ended

    worked(scenario)


def test_a_cancel_that_a_statement_does_not_hear_ends_the_next_of_its_message(tmp_path: Path) -> None:
    config = replace(Config(), data=tmp_path, listen=Address("127.0.0.1", 0), spark_enabled=False)
    with opened(config, {}) as house:
        peer = house.peer()
        listens = "".join(f"LISTEN c{number};" for number in range(100))
        answer = peer.feed(request(("Q", listens.encode() + b"\0")), then=peer.session.cancel)
        assert b"57014" in answer
        assert answer.count(b"LISTEN\0") < 100


def test_a_cancel_of_a_session_at_rest_means_nothing() -> None:
    async def scenario(at: Worked) -> None:
        at.connection.is_busy = False
        at.session.cancel()
        at.connection.is_busy = True
        assert await at.session.work.portion(lambda: "all") == "all"

    worked(scenario)


def test_a_process_that_is_none_is_warned_of(running: Millstream) -> None:
    told: list[str | None] = []
    with running.connect() as client:
        client.add_notice_handler(lambda notice: told.append(notice.message_primary))
        assert client.execute("SELECT pg_cancel_backend(999999), pg_terminate_backend(999998)").fetchone() == (
            False,
            False,
        )
    assert told == [f"PID {process} is not a PostgreSQL backend process" for process in (999999, 999998)]

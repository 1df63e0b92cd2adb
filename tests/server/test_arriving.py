"""Queries of streams by real clients: rows are sent as they arrive, and a query ends by itself or on request."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import psycopg
import pytest

from tests.rig.beside import at_once
from tests.rig.process import wait_until
from tests.rig.server import Millstream
from tests.server.wire import Wire, bind, error_fields, letters, parse, rows, tags

Client = psycopg.Connection[Any]

#: One way each of running a query of a stream.
WAYS = ("SELECT n FROM {}", "SELECT count(*) FROM {}", "SELECT n FROM {} ORDER BY n")
_numbers = itertools.count(1)


@pytest.fixture
def stream(sql: Client) -> Iterator[str]:
    """An empty stream's name."""
    name = f"arriving_{next(_numbers)}"
    sql.execute(f"CREATE FOREIGN TABLE {name} (w integer, n integer) SERVER stream".encode())
    yield name
    sql.execute(f"DROP FOREIGN TABLE {name}".encode())


@pytest.fixture
def wait_queries(sql: Client, stream: str) -> Callable[[int], None]:
    """Returns once this many queries read the stream."""
    text = f"SELECT queries FROM millstream.streams WHERE name = '{stream}'".encode()
    return lambda count: wait_until(lambda: sql.execute(text).fetchone() == (count,), 60, f"{count} queries")


def _execute_message(limit: int) -> tuple[str, bytes]:
    return "E", b"\0" + struct.pack(">i", limit)


def test_rows_go_out_as_they_come(sql: Client, wire: Wire, stream: str, wait_queries: Callable[[int], None]) -> None:
    wire.query("SET stream_timeout = 0")
    wire.send(("Q", f"SELECT n, n + 1 AS m FROM {stream} LIMIT 3\0".encode()))
    wait_queries(1)
    for number in (10, 20, 30):
        sql.execute(f"INSERT INTO {stream} VALUES (0, {number})".encode())
        assert rows(wire.until("D")) == [(str(number).encode(), str(number + 1).encode())]
    assert tags(wire.until_ready()) == ["SELECT 3"]
    wait_queries(0)


def test_a_portal_takes_rows_by_and_by(
    sql: Client, wire: Wire, stream: str, wait_queries: Callable[[int], None]
) -> None:
    wire.query("SET stream_timeout = 0")
    wire.send(parse(f"SELECT n FROM {stream} WHERE n > $1 LIMIT 3"), bind([b"1"]), _execute_message(2), ("H", b""))
    wait_queries(1)
    sql.execute(f"INSERT INTO {stream} VALUES (0, 1), (0, 2), (0, 3), (0, 4)".encode())
    assert rows(wire.until("s")) == [(b"2",), (b"3",)]
    wire.send(_execute_message(2), ("S", b""))
    messages = wire.until_ready()
    assert rows(messages) == [(b"4",)]
    assert tags(messages) == ["SELECT 1"]
    wait_queries(0)


def test_copy_sends_a_stream_s_rows(running: Millstream, sql: Client, stream: str) -> None:
    with running.connect() as client, ThreadPoolExecutor(1) as pool:
        client.execute("SET stream_timeout = 0")

        def copy() -> bytes:
            with client.cursor().copy(f"COPY (SELECT n FROM {stream} LIMIT 2) TO STDOUT".encode()) as source:
                return b"".join(map(bytes, source))

        found = pool.submit(copy)
        for number in itertools.count():
            sql.execute(f"INSERT INTO {stream} VALUES (0, {number})".encode())
            if found.done():
                break
        first, second = map(int, found.result().split())
        assert second == first + 1


@pytest.mark.parametrize("query", WAYS)
def test_a_silent_stream_ends_the_query(sql: Client, stream: str, query: str) -> None:
    sql.execute("SET stream_timeout = '20ms'")
    assert sql.execute(query.format(stream).encode()).fetchall() in ([], [(0,)])
    assert sql.execute(query.format(stream).encode(), prepare=True).fetchall() in ([], [(0,)])


@pytest.mark.parametrize("query", WAYS)
def test_any_session_can_end_the_query(
    running: Millstream, sql: Client, stream: str, wait_queries: Callable[[int], None], query: str
) -> None:
    text = query.format(stream).encode()
    with running.connect() as client, ThreadPoolExecutor(1) as pool:
        client.execute("SET stream_timeout = 0")
        found = pool.submit(client.execute, text)
        wait_queries(1)
        sql.execute(f"INSERT INTO {stream} VALUES (1, 1)".encode())
        client.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled, match="user request"):
            found.result(60)
        wait_queries(0)
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            client.execute(b"SET statement_timeout = '30ms'; " + text)  # rolled back: no limit afterwards
        assert client.execute("SELECT 1").fetchone() == (1,)
    with Wire(running.port) as wire:
        wire.start(options="-c stream_timeout=0")
        wire.send(("Q", text + b"\0"))
        wait_queries(1)
    wait_queries(0)


def test_notices_tell_how_far_a_query_is(sql: Client, stream: str, wire: Wire) -> None:
    wire.query("SET stream_timeout = 0; SET stream_progress = '10ms'")
    wire.send(("Q", f"SELECT count(*) FROM {stream}\0".encode()))
    notice = error_fields(wire.until("N"))
    assert (notice["S"], notice["M"]) == ("NOTICE", f'stream "{stream}": 0 rows so far')
    sql.execute(f"INSERT INTO {stream} VALUES (1, 1)".encode())
    while error_fields(wire.until("N"))["M"] != f'stream "{stream}": 1 rows so far':
        pass
    with Wire(wire.socket.getpeername()[1]) as quiet:
        quiet.start()
        quiet.query("SET client_min_messages = warning; SET stream_progress = '1ms'; SET stream_timeout = '50ms'")
        assert letters(quiet.query(f"SELECT n FROM {stream}")) == "TCZ"


@pytest.mark.slow
def test_a_query_sees_every_row_of_each_writer_once_and_in_order(
    running: Millstream, stream: str, wait_queries: Callable[[int], None]
) -> None:
    grouped = "SELECT w, count(*), sum(n), min(n), max(n) FROM {} GROUP BY w ORDER BY w"
    queries = ("SELECT w, n FROM {}", grouped, "SELECT w, n FROM {} ORDER BY w, n")
    writers, each = 3, 100

    def ask(text: str) -> list[tuple[Any, ...]]:
        with running.connect() as client:
            client.execute("SET stream_timeout = '8s'")  # until the first row, and between two rows
            return client.execute(text.format(stream).encode()).fetchall()

    def write(writer: int) -> None:
        with running.connect() as client:
            for n in range(0, each, 4):
                client.execute(f"INSERT INTO {stream} VALUES ({writer}, {n})".encode())
                client.execute(f"INSERT INTO {stream} VALUES ({writer}, {n + 1}), ({writer}, {n + 2})".encode())
                with client.cursor().copy(f"COPY {stream} FROM STDIN".encode()) as copy:
                    copy.write(f"{writer}\t{n + 3}\n")

    with ThreadPoolExecutor(len(queries)) as pool:
        asked = [pool.submit(ask, text) for text in queries]
        wait_queries(len(queries))
        at_once(partial(write, writer) for writer in range(writers))
        came, sums, ordered = (future.result() for future in asked)
    assert [(w, n) for w, n in ordered] == [(w, n) for w in range(writers) for n in range(each)]
    assert sorted(came, key=lambda row: row[0]) == ordered  # stable: each writer's rows in their order
    assert sums == [(w, each, each * (each - 1) // 2, 0, each - 1) for w in range(writers)]

"""Who has the floor: one client alone gets it after some statements, and loses it at the first sign of another; what it
writes meanwhile is there once, in order, whatever others do."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast

import psycopg
import pytest
from msgspec import Struct

from server.fastpath.busy_poll import LOOK, Floor
from server.net.connection import Connection
from tests.rig.beside import Beside, at_once
from tests.rig.server import Millstream
from tests.server.wire import SYNC, Wire, bind, execute, parse, tags


class _Client(Struct, eq=False):
    is_busy: bool = False


def _heard(floor: Floor, client: _Client) -> None:
    """What a connection does when bytes come."""
    if floor.speaker is not cast(Connection, client):
        floor.give(cast(Connection, client))


def _asked(floor: Floor, client: _Client, times: int) -> list[bool]:
    found = []
    for _ in range(times):
        _heard(floor, client)
        found.append(floor.take())
    return found


def test_who_is_heard_alone_has_it_after_a_while_whoever_else_is_connected() -> None:
    client, idle = _Client(), _Client()
    floor = Floor(cast(list[Connection], [client, idle]))
    assert _asked(floor, client, 2 * LOOK) == [False] * (LOOK - 1) + [True] * (LOOK + 1)


def test_one_word_of_another_takes_it_away() -> None:
    client, other = _Client(), _Client()
    floor = Floor(cast(list[Connection], [client, other]))
    _asked(floor, client, LOOK)
    _heard(floor, other)
    assert _asked(floor, client, LOOK) == [False] * (LOOK - 1) + [True]
    assert not any(_asked(floor, each, 1)[0] for _ in range(2 * LOOK) for each in (other, client))


def test_nobody_has_it_while_something_runs_for_another() -> None:
    client, other = _Client(is_busy=True), _Client(is_busy=True)
    floor = Floor(cast(list[Connection], [client, other]))
    assert not any(_asked(floor, client, LOOK))
    other.is_busy = False
    assert _asked(floor, client, LOOK) == [False] * (LOOK - 1) + [True]
    other.is_busy = True  # it is seen at the next look
    assert _asked(floor, client, LOOK) == [True] * (LOOK - 1) + [False]


TABLE = "CREATE FOREIGN TABLE spoken (w integer, n integer) SERVER stream"
VIEW = "CREATE VIEW heard AS SELECT w, count(*) AS rows, sum(n) AS total, max(n) AS last FROM spoken GROUP BY w"


@pytest.fixture
def heard(sql: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    """One who reads the view."""
    sql.execute(TABLE)
    sql.execute(VIEW)
    yield sql
    sql.execute("DROP VIEW heard")
    sql.execute("DROP FOREIGN TABLE spoken")


def _speak(client: Wire, writer: int, first: int, count: int) -> None:
    """Rows, each by a request of its own, as drivers send a prepared statement."""
    for number in range(first, first + count):
        client.send(bind([b"%d" % writer, b"%d" % number], "row"), execute(), SYNC)
        assert tags(client.until_ready()) == ["INSERT 0 1"]


def _all(count: int) -> tuple[int, int, int]:
    return count, count * (count - 1) // 2, count - 1


@pytest.mark.slow
def test_rows_of_one_beside_idle_clients_and_then_among_others(
    running: Millstream, heard: psycopg.Connection[Any]
) -> None:
    with ExitStack() as stack:
        idle = [stack.enter_context(running.connect()) for _ in range(3)]
        idle[0].execute("LISTEN spoken")
        idle[1].execute("BEGIN")
        idle[1].execute("INSERT INTO spoken VALUES (9, 0)")
        writers = [stack.enter_context(Wire(running.port)) for _ in range(3)]
        for each in writers:
            each.start()
            each.send(parse("INSERT INTO spoken VALUES ($1, $2)", "row", [23, 23]), SYNC)
            each.until_ready()
        _speak(writers[0], 0, 0, 2 * LOOK)
        assert heard.execute("SELECT rows, total, last FROM heard WHERE w = 0").fetchall() == [_all(2 * LOOK)]

        def copy() -> None:
            with idle[2].cursor().copy("COPY spoken FROM STDIN") as target:
                target.write(b"".join(b"3\t%d\n" % number for number in range(1000)))

        def cancel() -> None:
            with pytest.raises(psycopg.errors.QueryCanceled):
                idle[2].execute("SET statement_timeout = '20ms'; SELECT pg_sleep(20)")

        beside = Beside(_speak, writers[0], 0, 2 * LOOK, 2 * LOOK)
        at_once([copy, lambda: _speak(writers[1], 1, 0, LOOK), lambda: _speak(writers[2], 2, 0, LOOK)])
        idle[1].execute("NOTIFY spoken")
        idle[1].execute("COMMIT")
        cancel()
        beside.result()
        _speak(writers[0], 0, 4 * LOOK, LOOK + 4)
        assert heard.execute("SELECT w, rows, total, last FROM heard ORDER BY w").fetchall() == [
            (0, *_all(5 * LOOK + 4)),
            (1, *_all(LOOK)),
            (2, *_all(LOOK)),
            (3, *_all(1000)),
            (9, *_all(1)),
        ]
        assert [note.channel for note in idle[0].notifies(timeout=60, stop_after=1)] == ["spoken"]


def _listening() -> Floor:
    """One whose speaker has it."""
    client = _Client()
    floor = Floor(cast(list[Connection], [client]))
    _asked(floor, client, LOOK)
    assert floor.listens
    return floor


def test_who_has_it_is_listened_to() -> None:
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        floor = _listening()
        there.send(b"next")
        assert floor.listen(here.fileno()) == b"next"
        assert not floor.listens, "until its next statement"
        floor.take()
        assert floor.listens
        there.close()
        assert floor.listen(here.fileno()) is None, "the loop finds out that the client is gone"


def test_who_takes_its_time_is_not_listened_to_for_a_while() -> None:
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        floor = _listening()
        assert floor.listen(here.fileno()) is None
        found = []
        for _ in range(LOOK):
            floor.take()
            found.append(floor.listens)
        assert found == [False] * (LOOK - 1) + [True]


def test_one_who_is_quick_may_be_slow_now_and_then() -> None:
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        floor = _listening()
        for _ in range(4):
            there.send(b"next")
            assert floor.listen(here.fileno()) == b"next"
            floor.take()
        assert floor.listen(here.fileno()) is None
        floor.take()
        assert floor.listens

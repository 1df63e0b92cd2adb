"""LISTEN and NOTIFY between sessions: who gets which notification, and when."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Iterator
from typing import Any

import asyncpg
import psycopg
import pytest

from server.notify.channels import WAITING, Channels, Listening, Notification
from tests.rig.process import wait_until
from tests.rig.server import Millstream
from tests.server.wire import SYNC, Wire, bind, error_fields, execute, letters, parse


@pytest.fixture
def other(running: Millstream) -> Iterator[Wire]:
    with Wire(running.port) as client:
        client.start()
        yield client


def told(messages: list[tuple[str, bytes]]) -> list[tuple[int, str, str]]:
    """Process, channel and payload of the notifications among messages."""
    found = []
    for letter, body in messages:
        if letter == "A":
            channel, payload = body[4:-1].decode().split("\0")
            found.append((struct.unpack(">I", body[:4])[0], channel, payload))
    return found


def test_an_idle_listener_is_notified_at_once(wire: Wire, other: Wire) -> None:
    wire.query("LISTEN rest")
    other.query("NOTIFY rest, 'a'; NOTIFY elsewhere; NOTIFY rest, 'b'")
    process = other.backend[0]
    assert told([message for _ in range(2) if (message := wire.message())]) == [
        (process, "rest", "a"),
        (process, "rest", "b"),
    ]


def test_a_session_is_told_of_its_own_before_ready(wire: Wire) -> None:
    wire.query("LISTEN own")
    assert letters(wire.query("NOTIFY own")) == "CAZ"
    assert letters(wire.query("SELECT pg_notify('own', 'x')")) == "TDCAZ"
    wire.send(parse("SELECT pg_notify('own', $1)"), bind([b"y"]), execute(), SYNC)
    messages = wire.until_ready()
    assert letters(messages) == "12DCAZ"
    assert told(messages) == [(wire.backend[0], "own", "y")]


def test_once_for_a_transaction_and_in_order(wire: Wire) -> None:
    wire.query("LISTEN c")
    wire.query("BEGIN")
    for payload in ("1", "2", "1", "3"):
        assert letters(wire.query(f"NOTIFY c, '{payload}'")) == "CZ"
    wire.query("SAVEPOINT s")
    wire.query("NOTIFY c, '4'")
    wire.query("ROLLBACK TO s")
    assert [payload for _, _, payload in told(wire.query("COMMIT"))] == ["1", "2", "3"]


def test_what_is_rolled_back_is_not_said(wire: Wire) -> None:
    wire.query("LISTEN c")
    assert letters(wire.query("BEGIN; NOTIFY c; ROLLBACK")) == "CCCZ"
    assert letters(wire.query("NOTIFY c; SELECT 1/0")) == "CEZ"
    assert letters(wire.query("SELECT pg_notify('c', ''), 1/0")) == "EZ"
    assert letters(wire.query("BEGIN; NOTIFY c; SELECT 1/0")) == "CCEZ"
    assert letters(wire.query("COMMIT")) == "CZ"
    assert letters(wire.query("SELECT 1")) == "TDCZ"


def test_no_listener_is_notified_within_a_transaction(wire: Wire, other: Wire) -> None:
    wire.query("LISTEN c")
    wire.query("BEGIN")
    other.query("NOTIFY c, 'late'")
    assert letters(wire.query("SELECT 1")) == "TDCZ"
    assert [payload for _, _, payload in told(wire.query("COMMIT"))] == ["late"]


def test_listen_and_unlisten_follow_their_transaction(wire: Wire) -> None:
    wire.query("BEGIN; LISTEN c; ROLLBACK")
    assert letters(wire.query("NOTIFY c")) == "CZ"
    assert letters(wire.query("BEGIN; LISTEN c; NOTIFY c; COMMIT")) == "CCCCAZ"
    wire.query("BEGIN; UNLISTEN c; ROLLBACK")
    assert letters(wire.query("NOTIFY c")) == "CAZ"
    assert letters(wire.query("UNLISTEN *; NOTIFY c")) == "CCZ"
    wire.query("LISTEN c")
    wire.query("DISCARD ALL")
    assert letters(wire.query("NOTIFY c")) == "CZ"


def test_a_listener_that_leaves_is_forgotten(running: Millstream, other: Wire) -> None:
    with Wire(running.port) as gone:
        gone.start()
        gone.query("LISTEN gone")
    assert letters(other.query("NOTIFY gone")) == "CZ"


def test_two_phase_commit_is_refused(wire: Wire) -> None:
    assert error_fields(wire.query("BEGIN; PREPARE TRANSACTION 'x'"))["C"] == "0A000"
    wire.query("ROLLBACK")


def test_psycopg_and_asyncpg(running: Millstream, sql: psycopg.Connection[Any]) -> None:
    async def listen() -> tuple[str, str]:
        connection = await asyncpg.connect(host="127.0.0.1", port=running.port, user="millstream")
        found: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
        await connection.add_listener("drivers", lambda _, __, *rest: found.set_result(rest))
        await asyncio.to_thread(sql.execute, "SELECT pg_notify('drivers', 'hello')")
        result = await asyncio.wait_for(found, 60)
        await connection.close()
        return result

    sql.execute("LISTEN drivers")
    assert asyncio.run(listen()) == ("drivers", "hello")
    (notice,) = sql.notifies(timeout=60, stop_after=1)
    assert (notice.channel, notice.payload, notice.pid) == ("drivers", "hello", sql.info.backend_pid)


class Slow:
    """A listener that keeps its notifications."""

    told_bytes = WAITING // 2

    def __init__(self) -> None:
        self.heard: list[Notification] = []

    def notified(self, notifications: tuple[Notification, ...]) -> None:
        self.heard += notifications

    def send(self) -> bool:
        return False


def test_how_full_the_queue_is() -> None:
    channels, slow = Channels(lambda call: call()), Slow()
    listening = Listening(channels, slow, 7, lambda channel, listens: None)
    assert channels.usage() == 0
    listening.listen("a")
    listening.notify("a", "x")
    listening.commit()
    assert slow.heard == [Notification("a", "x", 7)]
    assert channels.usage() == 0.5
    listening.close()
    assert channels.usage() == 0


def rows_told(connection: psycopg.Connection[Any], enough: int) -> list[tuple[int, int]]:
    """LSNs and row counts in notifications about views, up to a number of rows."""
    found: list[tuple[int, int]] = []
    for notice in connection.notifies(timeout=60):
        payload = json.loads(notice.payload)
        found.append((payload["lsn"], payload["rows"]))
        if sum(rows for _, rows in found) >= enough:
            break
    return found


def test_listen_to_a_view(running: Millstream, sql: psycopg.Connection[Any]) -> None:
    sql.execute("CREATE FOREIGN TABLE watched_stream (k int) SERVER stream")
    sql.execute("CREATE VIEW watched AS SELECT k, count(*) AS n FROM watched_stream GROUP BY k")
    with running.connect() as listener, running.connect() as reader:
        listener.execute("LISTEN watched")
        sql.execute("INSERT INTO watched_stream VALUES (1), (2)")
        ((first, rows),) = rows_told(listener, 2)
        assert rows == 2
        sql.execute("INSERT INTO watched_stream VALUES (2), (3)")
        ((second, rows),) = rows_told(listener, 3)
        assert (rows, second > first) == (3, True)
        reader.execute("SET stream_timeout = '1ms'")
        found = reader.execute("SELECT diff, k, n FROM millstream.changes('watched', %s)", (first,)).fetchall()
        assert sorted(found) == [(-1, 2, 1), (1, 2, 2), (1, 3, 1)]
        sql.execute("NOTIFY watched, 'by hand'")
        (notice,) = listener.notifies(timeout=60, stop_after=1)
        assert notice.payload == "by hand"


def test_listen_to_a_table(running: Millstream, sql: psycopg.Connection[Any]) -> None:
    sql.execute("CREATE TABLE watched_table (k int PRIMARY KEY, v text)")
    with running.connect() as listener, running.connect() as reader:
        listener.execute("LISTEN watched_table")
        sql.execute("INSERT INTO watched_table VALUES (1, 'a'), (2, 'b')")
        ((first, rows),) = rows_told(listener, 2)
        assert rows == 2
        sql.execute("UPDATE watched_table SET v = 'c' WHERE k = 2")  # by key, at once
        ((second, rows),) = rows_told(listener, 2)
        assert (rows, second > first) == (2, True)
        reader.execute("SET stream_timeout = '1ms'")
        query = "SELECT lsn, diff, k, v FROM millstream.changes('watched_table', %s)"
        assert reader.execute(query, (first,)).fetchall() == [(second, -1, 2, "b"), (second, 1, 2, "c")]


def test_a_view_that_comes_later_and_again(running: Millstream, sql: psycopg.Connection[Any]) -> None:
    sql.execute("CREATE FOREIGN TABLE later_stream (k int) SERVER stream")
    with running.connect() as listener:
        listener.execute("LISTEN later")
        for _ in range(2):
            sql.execute("CREATE VIEW later AS SELECT count(*) AS n FROM later_stream HAVING count(*) > 0")
            wait_until(lambda: _hears(sql, listener), 60, "a notice")
            sql.execute("DROP VIEW later")


def test_a_view_that_comes_with_rows_is_told(running: Millstream, sql: psycopg.Connection[Any]) -> None:
    sql.execute("CREATE FOREIGN TABLE arriving_stream (k int) SERVER stream")
    view = "AS SELECT k, count(*) AS n FROM arriving_stream GROUP BY k"
    with running.connect() as listener:
        listener.execute("LISTEN arriving")
        sql.execute(f"CREATE VIEW arriving {view}")
        sql.execute("INSERT INTO arriving_stream VALUES (1), (2), (2)")
        assert sum(rows for _, rows in rows_told(listener, 2)) == 2
        sql.execute("ALTER VIEW arriving RENAME TO arriving_elsewhere")
        sql.execute("INSERT INTO arriving_stream VALUES (3)")
        sql.execute("ALTER VIEW arriving_elsewhere RENAME TO arriving")
        assert rows_told(listener, 1)


def _hears(sql: psycopg.Connection[Any], listener: psycopg.Connection[Any]) -> bool:
    sql.execute("INSERT INTO later_stream VALUES (1)")
    return bool(list(listener.notifies(timeout=0.05, stop_after=1)))


def test_a_role_that_may_not_read_a_view_is_not_notified(running: Millstream, sql: psycopg.Connection[Any]) -> None:
    sql.execute("CREATE FOREIGN TABLE hidden_stream (k int) SERVER stream")
    sql.execute("CREATE VIEW hidden AS SELECT count(*) AS n FROM hidden_stream")
    sql.execute("CREATE ROLE nosy")
    with running.connect() as listener:
        listener.execute("SET ROLE nosy")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            listener.execute("SELECT * FROM millstream.changes('hidden')")
        listener.execute("LISTEN hidden")
        sql.execute("INSERT INTO hidden_stream VALUES (1)")
        sql.execute("NOTIFY hidden, 'by hand'")
        assert [notice.payload for notice in listener.notifies(timeout=60, stop_after=1)] == ["by hand"]
        sql.execute("GRANT SELECT ON hidden TO nosy")
        wait_until(lambda: _changes(sql, listener), 60, "a notice")
    sql.execute("REVOKE SELECT ON hidden FROM nosy")
    sql.execute("DROP ROLE nosy")


def _changes(sql: psycopg.Connection[Any], listener: psycopg.Connection[Any]) -> bool:
    sql.execute("INSERT INTO hidden_stream VALUES (1)")
    return bool(list(listener.notifies(timeout=0.05, stop_after=1)))

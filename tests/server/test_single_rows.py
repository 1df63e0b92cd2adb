"""Rows that a client inserts one at a time are there once and in order, whatever other clients do meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

from tests.rig.beside import Beside, at_once
from tests.rig.server import Millstream
from tests.server.wire import SYNC, Wire, bind, execute, parse, tags

#: Rows that one client inserts in sequence.
LOOK = 32

TABLE = "CREATE FOREIGN TABLE spoken (w integer, n integer) SERVER stream"
VIEW = "CREATE VIEW heard AS SELECT w, count(*) AS rows, sum(n) AS total, max(n) AS last FROM spoken GROUP BY w"


@pytest.fixture
def heard(sql: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    """A client that reads the view."""
    sql.execute(TABLE)
    sql.execute(VIEW)
    yield sql
    sql.execute("DROP VIEW heard")
    sql.execute("DROP FOREIGN TABLE spoken")


def _speak(client: Wire, writer: int, first: int, count: int) -> None:
    """Inserts rows, each by its own request, as drivers send a prepared statement."""
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

"""SQL cursors as drivers use them; tests/sql/scripts/cursors.sql tests their directions."""

from __future__ import annotations

import struct
from typing import Any

import psycopg
import pytest

from tests.rig.postgres import Postgres
from tests.rig.server import Millstream
from tests.server.wire import SYNC, Wire, bind, close, describe, error_fields, execute, letters, parse, rows, tags


def test_rows_come_in_the_order_of_the_direction(sql: psycopg.Connection[Any]) -> None:
    with sql.transaction():
        sql.execute("DECLARE c SCROLL CURSOR FOR SELECT g FROM generate_series(1, 5) g")
        sql.execute("MOVE 4 c")
        assert sql.execute("FETCH BACKWARD 3 c").fetchall() == [(3,), (2,), (1,)]
        assert sql.execute("FETCH FORWARD ALL c").fetchall() == [(2,), (3,), (4,), (5,)]


def test_psycopg_server_cursors(sql: psycopg.Connection[Any]) -> None:
    with sql.transaction(), sql.cursor("held", scrollable=True) as cursor:
        cursor.itersize = 7
        cursor.execute("SELECT g, g * %s FROM generate_series(1, 20) g", (2,))
        assert [column.name for column in cursor.description or ()] == ["g", "?column?"]
        assert sum(value for _, value in cursor) == 420
        cursor.scroll(-2)
        assert cursor.fetchone() == (20, 40)
    with sql.cursor("kept", withhold=True, binary=True) as cursor:
        cursor.execute("SELECT 1.5::float8, 'x'")
        assert cursor.fetchall() == [(1.5, "x")]


def test_a_binary_cursor_speaks_binary(wire: Wire) -> None:
    wire.query("BEGIN; DECLARE b BINARY CURSOR FOR SELECT 258::int4")
    messages = wire.query("FETCH b")
    assert rows(messages) == [(struct.pack(">i", 258),)]
    assert dict(messages)["T"].endswith(struct.pack(">h", 1))
    wire.send(parse("FETCH FIRST b"), describe("S"), bind(), execute(), SYNC)
    assert rows(wire.until_ready()) == [(b"258",)]  # here the client chooses the format


def test_cursors_and_portals_share_their_names(wire: Wire) -> None:
    wire.query("BEGIN; DECLARE c CURSOR FOR SELECT 1 AS x")
    wire.send(describe("P", "c"), SYNC)
    assert letters(wire.until_ready()) == "TZ"
    wire.send(parse("SELECT 2"), bind(portal="c"), SYNC)
    assert error_fields(wire.until_ready())["C"] == "42P03"
    wire.query("ROLLBACK; BEGIN; DECLARE c CURSOR FOR SELECT 1 AS x")
    wire.send(parse("SELECT 2"), bind(portal="p"), SYNC)
    wire.until_ready()
    assert rows(wire.query("SELECT name FROM pg_cursors ORDER BY name")) == [(b"c",), (b"p",)]
    assert letters(wire.query("CLOSE p")) == "CZ"
    wire.send(close("P", "c"), SYNC)
    assert letters(wire.until_ready()) == "3Z"
    assert error_fields(wire.query("FETCH c"))["C"] == "34000"


PORTALS: list[list[str | tuple[str, bytes]]] = [
    ["FETCH p", "MOVE 2 p", ("E", b"p\0\0\0\0\2"), "FETCH ALL p", "FETCH p", ("E", b"p\0\0\0\0\0")],
    [("E", b"p\0\0\0\0\3"), "FETCH 2 p", "MOVE FORWARD ALL p", ("E", b"p\0\0\0\0\1")],
    [("E", b"p\0\0\0\0\3"), "FETCH ABSOLUTE 5 p", "FETCH RELATIVE 2 p", "FETCH PRIOR p"],
    [("E", b"p\0\0\0\0\3"), "FETCH ABSOLUTE 2 p"],
    [("E", b"p\0\0\0\0\3"), "FETCH 0 p"],
    ["FETCH FIRST p", "FETCH LAST p"],
    ["MOVE 20 p", "FETCH p", "CLOSE p", "FETCH p"],
    [("E", b"d\0\0\0\0\2"), "FETCH d", ("E", b"d\0\0\0\0\0"), "FETCH BACKWARD 1 d"],
    [("D", b"Pd\0"), ("E", b"d\0\0\0\0\1"), ("C", b"Pd\0"), "FETCH d"],
    [("D", b"Pb\0"), ("E", b"b\0\0\0\0\0"), "FETCH BACKWARD 1 b"],
    ["FETCH r", "FETCH ALL r", "SELECT * FROM shared_rows"],
]


@pytest.mark.postgres
@pytest.mark.parametrize("steps", PORTALS)
def test_both_protocols_take_rows_of_one_portal(
    steps: list[str | tuple[str, bytes]], running: Millstream, postgres: Postgres
) -> None:
    found, wanted = taken(running.port, "millstream", steps), taken(postgres.port, "postgres", steps)
    assert found == wanted


def taken(port: int, user: str, steps: list[str | tuple[str, bytes]]) -> list[Any]:
    """The results of each step over the portals p and r and the cursors d and b: letters of messages, rows, tags,
    errors."""
    with Wire(port) as client:
        client.start(user)
        client.query(
            "BEGIN; CREATE TABLE shared_rows (a int); DECLARE d SCROLL CURSOR FOR SELECT generate_series(1, 4) g"
        )
        client.query("DECLARE b BINARY SCROLL CURSOR FOR SELECT 258")
        client.send(parse("SELECT g, 'x' FROM generate_series(1, 9) g"), bind(portal="p"), SYNC)
        client.until_ready()
        client.send(parse("INSERT INTO shared_rows VALUES (1), (2) RETURNING a"), bind(portal="r"), SYNC)
        client.until_ready()
        results = []
        for step in steps:
            client.send(*([("Q", step.encode() + b"\0")] if isinstance(step, str) else [step, SYNC]))
            messages = client.until_ready()
            code = error_fields(messages).get("C") if "E" in letters(messages) else None
            results.append((letters(messages), rows(messages), tags(messages), code))
        return results


def test_several_statements_are_a_block(wire: Wire) -> None:
    assert letters(wire.query("DECLARE c CURSOR FOR SELECT 1; FETCH c; FETCH c")) == "CTDCTCZ"
    assert error_fields(wire.query("FETCH c"))["C"] == "34000"
    assert letters(wire.query("DECLARE h CURSOR WITH HOLD FOR SELECT 1; FETCH h")) == "CTDCZ"
    assert letters(wire.query("FETCH FIRST h")) == "TDCZ"


def test_a_failed_commit_ends_what_its_transaction_made(wire: Wire) -> None:
    wire.query("CREATE TABLE failing (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    wire.query("LISTEN f")
    wire.query("BEGIN; SET LOCAL statement_timeout = '90s'; DECLARE h CURSOR WITH HOLD FOR SELECT 1; NOTIFY f")
    wire.query("INSERT INTO failing VALUES (1), (1)")
    assert letters(wire.query("COMMIT")) == "EZ"
    assert error_fields(wire.query("FETCH h"))["C"] == "34000"
    assert rows(wire.query("SHOW statement_timeout")) == [(b"0",)]


def test_a_cursor_over_a_stream_fetches_what_comes(running: Millstream, sql: psycopg.Connection[Any]) -> None:
    sql.execute("CREATE FOREIGN TABLE fetched (a int) SERVER stream")
    with running.connect() as reader, reader.transaction():
        reader.execute("SET LOCAL stream_timeout = 0")
        reader.execute("DECLARE c CURSOR FOR SELECT a FROM fetched")
        sql.execute("INSERT INTO fetched VALUES (1), (2), (3)")
        assert reader.execute("FETCH 2 c").fetchall() == [(1,), (2,)]
        sql.execute("INSERT INTO fetched VALUES (4), (5)")
        assert reader.execute("MOVE 1 c").statusmessage == "MOVE 1"
        assert reader.execute("FETCH RELATIVE 2 c").fetchall() == [(5,)]
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState), reader.transaction():
            reader.execute("FETCH PRIOR c")

"""Settings that affect the session itself: time limits, the isolation of a transaction, the engine of new views."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.rig.server import Millstream
from tests.server.wire import Wire, error_fields, letters, tags

Client = psycopg.Connection[Any]

SLOW = "SELECT count(*) FROM timed a, timed b, timed c WHERE (a.i + b.i * c.i) % 5 = 9"


@pytest.fixture(scope="module")
def numbers(running: Millstream) -> None:
    """A table of 2,000 rows."""
    with running.connect() as client:
        client.execute("CREATE TABLE timed (i integer)")
        with client.cursor() as cursor, cursor.copy("COPY timed FROM STDIN") as copy:
            copy.write("".join(f"{i}\n" for i in range(2000)))


def test_statement_timeout(sql: Client, numbers: None) -> None:
    sql.execute("SET statement_timeout = '50ms'")
    with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
        sql.execute(SLOW)
    with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
        sql.execute(SLOW, prepare=True)
    assert sql.execute("SELECT 1").fetchone() == (1,)


def test_statement_timeout_of_a_copy_that_waits_for_its_client(wire: Wire, numbers: None) -> None:
    wire.query("SET statement_timeout = '50ms'")
    wire.send(("Q", b"COPY timed FROM STDIN\0"))
    assert wire.until("G")[-1][0] == "G"
    wire.send(("d", b"-9\n"))
    messages = wire.until("E")
    assert error_fields(messages)["C"] == "57014"
    assert error_fields(messages)["M"] == "canceling statement due to statement timeout"
    wire.send(("f", b"given up\0"))
    assert letters(wire.until_ready()) == "Z"
    wire.query("SET statement_timeout = 0")
    assert ("D", b"\0\1\0\0\0\1" + b"0") in wire.query("SELECT count(*) FROM timed WHERE i = -9")


def test_lock_timeout(running: Millstream, sql: Client, numbers: None) -> None:
    with running.connect() as other:
        other.execute("BEGIN")
        other.execute("LOCK TABLE timed IN EXCLUSIVE MODE")
        sql.execute("SET lock_timeout = '30ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable, match="canceling statement due to lock timeout"):
            sql.execute("DELETE FROM timed WHERE i < 0")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            sql.execute("CREATE INDEX timed_i ON timed (i)")
        sql.execute("BEGIN")
        sql.execute("SET LOCAL lock_timeout = '20ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            sql.execute("DELETE FROM timed WHERE i < 0")
        sql.execute("ROLLBACK")
    sql.execute("DELETE FROM timed WHERE i < 0")


@pytest.mark.parametrize(
    ("setting", "before", "state"),
    [
        ("idle_session_timeout", "SELECT 1", "57P05"),
        ("idle_in_transaction_session_timeout", "BEGIN", "25P03"),
        ("idle_in_transaction_session_timeout", "BEGIN; SELECT 1/0", "25P03"),
    ],
)
def test_idle_session_is_ended(wire: Wire, setting: str, before: str, state: str) -> None:
    wire.query(f"SET {setting} = '50ms'")
    messages = wire.query(before)
    while messages[-1][0] == "Z":
        messages = wire.until_ready()
    fields = error_fields(messages)
    assert (fields["C"], fields["S"]) == (state, "FATAL")
    assert wire.message() is None


def test_idle_clock_runs_only_while_the_session_is_idle(sql: Client, numbers: None) -> None:
    sql.execute("SET idle_in_transaction_session_timeout = '20ms'")
    sql.execute("SET idle_session_timeout = '1h'")
    sql.execute("SELECT count(*) FROM timed a, timed b, timed c WHERE (a.i + b.i * c.i) % 5 = 9 AND a.i < 20")
    sql.execute("SET idle_session_timeout = 0")
    for _ in range(3):  # the same bytes again: a shorter path must not forget the time limit
        assert sql.execute("SELECT 1").fetchone() == (1,)


def test_rows_of_an_ended_transaction_are_gone(running: Millstream, sql: Client, numbers: None) -> None:
    with Wire(running.port) as wire:
        wire.start(options="-c idle_in_transaction_session_timeout=30")
        wire.query("BEGIN; INSERT INTO timed VALUES (-5)")
        assert error_fields(wire.until_ready())["C"] == "25P03"
    sql.execute("DELETE FROM timed WHERE i = -7")  # the writer's lock is free again
    assert sql.execute("SELECT count(*) FROM timed WHERE i = -5").fetchone() == (0,)


def test_isolation_set_in_the_transaction_acts(running: Millstream, sql: Client, numbers: None) -> None:
    sql.execute("BEGIN")
    sql.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    assert sql.execute("SHOW transaction_isolation").fetchone() == ("repeatable read",)
    before = sql.execute("SELECT count(*) FROM timed").fetchone()
    with running.connect() as other:
        other.execute("INSERT INTO timed VALUES (-1)")
        assert sql.execute("SELECT count(*) FROM timed").fetchone() == before
        sql.execute("COMMIT")
        assert sql.execute("SELECT count(*) FROM timed WHERE i = -1").fetchone() == (1,)
        other.execute("DELETE FROM timed WHERE i = -1")


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        ("SELECT 1", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "must be called before any query"),
        ("SAVEPOINT a", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "must not be called in a subtransaction"),
        ("SELECT 1", "SET transaction_isolation = 'repeatable read'", "must be called before any query"),
        ("SET TRANSACTION READ ONLY; SELECT 1", "SET TRANSACTION READ WRITE", "must be set before any query"),
    ],
)
def test_mode_set_too_late_is_an_error(sql: Client, first: str, then: str, message: str) -> None:
    sql.execute("BEGIN")
    for statement in first.split("; "):
        sql.execute(statement.encode())
    sql.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")  # the value that it has already
    with pytest.raises(psycopg.errors.ActiveSqlTransaction, match=message):
        sql.execute(then.encode())
    sql.execute("ROLLBACK")


def test_mode_outside_a_transaction_warns_and_does_nothing(wire: Wire) -> None:
    messages = wire.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    assert (letters(messages), tags(messages)) == ("NCZ", ["SET"])
    assert error_fields(messages)["M"] == "SET TRANSACTION can only be used in transaction blocks"
    wire.query("SET transaction_read_only = on")
    assert tags(wire.query("SHOW transaction_read_only")) == ["SHOW"]
    assert ("D", b"\0\1\0\0\0\3off") in wire.query("SHOW transaction_read_only")


def test_maintenance_engine_of_the_session_is_that_of_its_views(running: Millstream, sql: Client) -> None:
    sql.execute("CREATE FOREIGN TABLE engines (i integer) SERVER stream")
    sql.execute("CREATE VIEW engine_server AS SELECT count(*) FROM engines")
    sql.execute("SET maintenance_engine = 'auto'")
    sql.execute("CREATE VIEW engine_session AS SELECT count(*) FROM engines")
    sql.execute("CREATE VIEW engine_own WITH (maintenance_engine = 'spark') AS SELECT count(*) FROM engines")
    sql.execute("RESET maintenance_engine")
    sql.execute("CREATE VIEW engine_reset AS SELECT count(*) FROM engines")
    query = "SELECT name, maintenance_engine FROM millstream.views WHERE name LIKE 'engine_%' ORDER BY name"
    assert sql.execute(query).fetchall() == [
        ("engine_own", "spark"),
        ("engine_reset", "embedded"),
        ("engine_server", "embedded"),
        ("engine_session", "auto"),
    ]
    sql.execute("DROP FOREIGN TABLE engines CASCADE")


def test_a_relation_that_exists_already_is_a_notice(wire: Wire) -> None:
    wire.query("CREATE TABLE IF NOT EXISTS twice (i integer)")
    fields = error_fields(wire.query("CREATE TABLE IF NOT EXISTS twice (i integer)"))
    assert (fields["S"], fields["C"]) == ("NOTICE", "42P07")

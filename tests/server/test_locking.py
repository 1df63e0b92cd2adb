"""FOR UPDATE against another session's transaction, and the conflicts that SERIALIZABLE prevents."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.rig.beside import Beside, at_once
from tests.rig.process import wait_until
from tests.rig.server import Millstream

Client = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def job(running: Millstream) -> None:
    """A table of one job, and a stream with a view."""
    with running.connect() as client:
        client.execute("CREATE TABLE job (id integer PRIMARY KEY, tries integer)")
        client.execute("INSERT INTO job VALUES (1, 0)")
        client.execute("CREATE FOREIGN TABLE job_event (id integer) SERVER stream")
        client.execute("CREATE VIEW job_events AS SELECT count(*) FROM job_event")


def test_rows_locked_stay_as_they_were_read(running: Millstream, sql: Client, job: None) -> None:
    """Two sessions each read, add one and write: no update is lost."""

    def add() -> None:
        with running.connect() as client, client.transaction():
            row = client.execute("SELECT tries FROM job WHERE id = 1 FOR UPDATE").fetchone()
            assert row is not None
            client.execute("UPDATE job SET tries = %s WHERE id = 1", [row[0] + 1])

    at_once([add] * 4)
    assert sql.execute("SELECT tries FROM job").fetchone() == (4,)


@pytest.mark.parametrize("clause", ["FOR UPDATE", "FOR SHARE", "FOR UPDATE SKIP LOCKED"])
def test_rows_that_changed_since_the_snapshot_are_not_locked(
    running: Millstream, sql: Client, job: None, clause: str
) -> None:
    """A locking read must return the current row, as the row then stays."""
    query = f"SELECT tries FROM job WHERE id = 1 {clause}".encode()
    with running.connect() as other:
        sql.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        sql.execute("SELECT tries FROM job")
        assert sql.execute(query).fetchone() == other.execute("SELECT tries FROM job").fetchone()
        sql.execute("COMMIT")
        sql.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        sql.execute("SELECT tries FROM job")
        other.execute("UPDATE job SET tries = tries + 1")
        with pytest.raises(psycopg.errors.SerializationFailure, match="concurrent update"):
            sql.execute(query)
        sql.execute("ROLLBACK")


def test_nowait_and_lock_timeout(running: Millstream, sql: Client, job: None) -> None:
    with running.connect() as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM job FOR SHARE")
        with pytest.raises(psycopg.errors.LockNotAvailable, match='could not obtain lock on row in relation "job"'):
            sql.execute("SELECT * FROM job FOR UPDATE NOWAIT")
        assert sql.execute("SELECT id FROM job FOR KEY SHARE NOWAIT").fetchall() == [(1,)]
        sql.execute("SET lock_timeout = '20ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable, match="canceling statement due to lock timeout"):
            sql.execute("SELECT * FROM job FOR UPDATE")
        assert sql.execute("SELECT count(*) FROM job").fetchone() == (1,)
        other.execute("ROLLBACK")
    assert sql.execute("SELECT id FROM job FOR UPDATE NOWAIT").fetchall() == [(1,)]
    with sql.cursor() as cursor, cursor.copy("COPY (SELECT id FROM job FOR UPDATE) TO STDOUT") as copy:
        assert b"".join(copy) == b"1\n"


def test_lock_table_shows_its_mode(running: Millstream, sql: Client, job: None) -> None:
    with running.connect() as other:
        with pytest.raises(psycopg.errors.NoActiveSqlTransaction):
            other.execute("LOCK TABLE job IN SHARE MODE")
        for mode in ("ACCESS SHARE", "SHARE UPDATE EXCLUSIVE", "SHARE", "EXCLUSIVE", "ACCESS EXCLUSIVE"):
            other.execute("BEGIN")
            other.execute(f"LOCK TABLE job IN {mode} MODE".encode())
            with pytest.raises(psycopg.errors.LockNotAvailable, match='could not obtain lock on relation "job"'):
                sql.execute("BEGIN; LOCK TABLE job NOWAIT")
            sql.execute("ROLLBACK")
            locks = "SELECT relation::regclass::text, mode, granted FROM pg_locks WHERE pid = %s"
            shown = sql.execute(locks, (other.info.backend_pid,)).fetchall()
            assert shown == [("job", f"{mode.title().replace(' ', '')}Lock", True)]
            other.execute("COMMIT")


def test_pg_locks_shows_what_a_transaction_has_changed(running: Millstream, sql: Client, job: None) -> None:
    locks = "SELECT relation::regclass::text, mode, granted FROM pg_locks WHERE locktype = 'relation' AND pid = %s"
    with running.connect() as other:
        pid = other.info.backend_pid
        for change in ("UPDATE job SET tries = 2", "UPDATE job SET tries = 3 WHERE id = 1", "DELETE FROM job"):
            other.execute("BEGIN")
            assert sql.execute(locks, (pid,)).fetchall() == []
            other.execute(change.encode())
            assert ("job", "RowExclusiveLock", True) in sql.execute(locks, (pid,)).fetchall()
            other.execute("ROLLBACK")
        assert sql.execute(locks, (pid,)).fetchall() == []
    assert ("pg_locks", "AccessShareLock", True) in sql.execute(locks, (sql.info.backend_pid,)).fetchall()


def test_serializable_refuses_write_skew_over_a_table_and_a_stream(running: Millstream, sql: Client, job: None) -> None:
    """Each transaction reads what the other one changes; one of the two must not commit."""
    with running.connect() as first, running.connect() as second:
        for client in (first, second):
            client.execute("SET default_transaction_isolation = 'serializable'")
            client.execute("BEGIN")
        assert first.execute("SHOW transaction_isolation").fetchone() == ("serializable",)
        first.execute("SELECT tries FROM job")
        second.execute("SELECT * FROM job_events")
        first.execute("INSERT INTO job_event VALUES (1)")
        first.execute("COMMIT")
        with pytest.raises(psycopg.errors.SerializationFailure):
            second.execute("UPDATE job SET tries = 100")
        second.execute("ROLLBACK")
    assert sql.execute("SELECT * FROM job_events").fetchone() == (1,)


def test_locking_in_a_view_is_refused(sql: Client, job: None) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="FOR UPDATE in a view"):
        sql.execute("CREATE VIEW job_locked AS SELECT * FROM job FOR UPDATE")


@pytest.mark.parametrize("statement", ["UPDATE turned SET n = n + 1 WHERE k = 1", "UPDATE turned SET n = n + 1"])
def test_a_wait_for_the_tables_is_shown_in_pg_stat_activity(statement: str, running: Millstream, sql: Client) -> None:
    sql.execute("CREATE TABLE IF NOT EXISTS turned (k integer PRIMARY KEY, n integer)")
    sql.execute("INSERT INTO turned VALUES (1, 1) ON CONFLICT DO NOTHING")
    with running.connect() as first, running.connect() as second:
        first.execute("BEGIN; UPDATE turned SET n = 0")
        second.execute("BEGIN")
        waiting = Beside(lambda: second.execute(statement.encode()))
        query = "SELECT state, wait_event_type, wait_event FROM pg_stat_activity WHERE pid = %s"
        about = (second.info.backend_pid,)
        seen = []

        def is_waiting() -> bool:
            seen.append(sql.execute(query, about).fetchone())
            return seen[-1] is not None and seen[-1][:2] == ("active", "Lock")

        wait_until(is_waiting, 60, "the wait")
        waits = {("active", "Lock", "object"), ("active", "Lock", "tuple")}
        assert set(seen) <= {*waits, ("active", None, None), ("idle in transaction", None, None)}
        first.execute("COMMIT")
        waiting.result()
        assert sql.execute(query, about).fetchone() == ("idle in transaction", None, None)

"""Advisory locks between sessions: waiting, the order of waiting and its ends, circles, and the locks' rows in
pg_locks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.rig.beside import Beside
from tests.rig.process import wait_until
from tests.rig.server import Millstream

Client = psycopg.Connection[Any]


def pid(client: Client) -> int:
    """The process id of a session."""
    return client.info.backend_pid


#: The row in pg_locks of a statement that waits.
Waiting = Beside[list[Any]]
Begin = Callable[[Client, str, Client], Waiting]


@pytest.fixture
def begin(sql: Client) -> Begin:
    """Begins a statement; returns once it waits for another session, according to pg_blocking_pids()."""

    def run(client: Client, statement: str, by: Client) -> Waiting:
        waiting: Waiting = Beside(lambda: client.execute(statement.encode()).fetchall())
        query, wanted = "SELECT pg_blocking_pids(%s)", ([pid(by)],)
        wait_until(lambda: sql.execute(query, (pid(client),)).fetchone() == wanted, 20, f"wait in {statement}")
        return waiting

    return run


def test_a_waiting_session_continues_when_the_lock_is_released(running: Millstream, sql: Client, begin: Begin) -> None:
    with running.connect() as first, running.connect() as second:
        first.execute("SELECT pg_advisory_lock(71)")
        assert second.execute("SELECT pg_try_advisory_lock(71)").fetchone() == (False,)
        assert second.execute("SELECT pg_try_advisory_lock_shared(71)").fetchone() == (False,)
        waiting = begin(second, "SELECT pg_advisory_lock(71)", first)
        shown = sql.execute("SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE pid = %s", (pid(second),))
        assert shown.fetchone() == ("Lock", "advisory")
        locks = "SELECT pid, granted FROM pg_locks WHERE locktype = 'advisory' AND objid = 71 ORDER BY granted"
        assert sql.execute(locks).fetchall() == [(pid(second), False), (pid(first), True)]
        first.execute("SELECT pg_advisory_unlock(71)")
        waiting.result()
    wait_until(lambda: sql.execute(locks).fetchall() == [], 20, "both sessions have ended")


def test_a_transactions_is_free_once_others_see_what_it_did(running: Millstream, begin: Begin) -> None:
    with running.connect() as first, running.connect() as second:
        first.execute("CREATE TABLE guarded (n integer)")
        first.execute("BEGIN")
        first.execute("SELECT pg_advisory_xact_lock(72)")
        first.execute("INSERT INTO guarded VALUES (1)")
        waiting = begin(second, "SELECT pg_advisory_xact_lock(72)", first)
        first.execute("COMMIT")
        waiting.result()
        assert second.execute("SELECT count(*) FROM guarded").fetchone() == (1,)
        # the second lock belonged to its statement
        assert first.execute("SELECT pg_try_advisory_lock(72)").fetchone() == (True,)


def test_shared_locks_wait_behind_earlier_requests(running: Millstream, begin: Begin) -> None:
    with running.connect() as reader, running.connect() as writer, running.connect() as late:
        reader.execute("SELECT pg_advisory_lock_shared(73)")
        assert late.execute("SELECT pg_try_advisory_xact_lock_shared(73)").fetchone() == (True,)
        waiting = begin(writer, "SELECT pg_advisory_lock(73)", reader)
        assert late.execute("SELECT pg_try_advisory_lock_shared(73)").fetchone() == (False,)
        assert reader.execute("SELECT pg_try_advisory_lock_shared(73)").fetchone() == (True,)  # it has the lock already
        reader.execute("SELECT pg_advisory_unlock_all()")
        waiting.result()


def test_a_circle_is_an_error(running: Millstream, begin: Begin) -> None:
    with running.connect() as first, running.connect() as second:
        first.execute("SELECT pg_advisory_lock(74)")
        second.execute("SELECT pg_advisory_lock(75)")
        waiting = begin(first, "SELECT pg_advisory_lock(75)", second)
        with pytest.raises(psycopg.errors.DeadlockDetected):
            second.execute("SELECT pg_advisory_lock(74)")
        second.execute("SELECT pg_advisory_unlock(75)")
        waiting.result()


def test_a_circle_by_way_of_tables_is_one_too(running: Millstream, begin: Begin) -> None:
    with running.connect() as first, running.connect() as second:
        first.execute("CREATE TABLE circled (n integer)")
        second.execute("SELECT pg_advisory_lock(76)")
        first.execute("BEGIN")
        first.execute("LOCK TABLE circled IN EXCLUSIVE MODE")
        waiting = begin(second, "INSERT INTO circled VALUES (2) RETURNING n", first)
        with pytest.raises(psycopg.errors.DeadlockDetected):
            first.execute("SELECT pg_advisory_lock(76)")
        first.execute("ROLLBACK")
        assert waiting.result() == [(2,)]


def test_waiting_ends_by_timeout_and_by_cancel(running: Millstream, begin: Begin) -> None:
    with running.connect() as first, running.connect() as second:
        first.execute("SELECT pg_advisory_lock(77)")
        second.execute("SET lock_timeout = '20ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable, match="lock timeout"):
            second.execute("SELECT pg_advisory_lock(77)")
        second.execute("RESET lock_timeout")
        waiting = begin(second, "SELECT pg_advisory_lock(77)", first)
        second.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled):
            waiting.result()
        first.execute("DISCARD ALL")
        assert second.execute("SELECT pg_try_advisory_lock(77)").fetchone() == (True,)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT g FROM generate_series(1, 3) AS g WHERE pg_try_advisory_lock(g + 80) LIMIT 1",
        "SELECT g FROM generate_series(1, 3) AS g WHERE pg_try_advisory_lock(g + 80) AND g > 1",
        "SELECT g FROM generate_series(1, 3) AS g WHERE g = 1 OR pg_try_advisory_lock(g + 80)",
        "SELECT 1 WHERE EXISTS (SELECT FROM generate_series(1, 3) AS g WHERE pg_try_advisory_lock(g + 80))",
        "SELECT a FROM generate_series(1, 3) a JOIN generate_series(1, 3) b ON a = b WHERE pg_try_advisory_lock(b)",
    ],
)
def test_where_rows_are_locked_that_a_plan_chooses_is_refused(sql: Client, query: str) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="pg_try_advisory_lock"):
        sql.execute(query.encode())
    locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
    assert sql.execute(locks).fetchone() == (0,)

"""SKIP LOCKED and locks on single rows, as job queues use them."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.rig.beside import at_once
from tests.rig.server import Millstream

Client = psycopg.Connection[Any]
NEXT = "SELECT id, tries + 1 AS t FROM queued WHERE done IS NULL ORDER BY id LIMIT {n} FOR UPDATE SKIP LOCKED"


@pytest.fixture
def queued(running: Millstream) -> None:
    with running.connect() as client:
        client.execute("DROP TABLE IF EXISTS queued, taken")
        client.execute("CREATE TABLE queued (id int PRIMARY KEY, tries int NOT NULL DEFAULT 0, done int)")
        client.execute("CREATE TABLE taken (id int)")
        client.execute("INSERT INTO queued (id) SELECT generate_series(1, 40)")


def test_rows_that_others_have_locked_are_left_out(running: Millstream, sql: Client, queued: None) -> None:
    with running.connect() as first, running.connect() as second:
        first.execute("BEGIN")
        assert first.execute(NEXT.format(n=2).encode()).fetchall() == [(1, 1), (2, 1)]
        second.execute("BEGIN; UPDATE queued SET tries = 5 WHERE id = 4")
        assert sql.execute(NEXT.format(n=3).encode()).fetchall() == [(3, 1), (5, 1), (6, 1)]
        assert second.execute(NEXT.format(n=2).encode()).fetchall() == [(3, 1), (4, 6)]
        with pytest.raises(psycopg.errors.LockNotAvailable):
            second.execute("SELECT FROM queued WHERE id = 1 FOR UPDATE NOWAIT")
        second.execute("ROLLBACK")
        first.execute("UPDATE queued SET done = 1 WHERE id = 1")
        first.execute("COMMIT")
        assert sql.execute(NEXT.format(n=2).encode()).fetchall() == [(2, 1), (3, 1)]
        first.execute("BEGIN; LOCK TABLE queued IN SHARE MODE")
        assert sql.execute(NEXT.format(n=1).encode()).fetchall() == [(2, 1)]
        first.execute("ROLLBACK; BEGIN; UPDATE queued SET tries = 0")
        first.execute("ROLLBACK")


def test_workers_take_each_job_once(running: Millstream, sql: Client, queued: None) -> None:
    def work() -> None:
        with running.connect() as client:
            while True:
                client.execute("BEGIN")
                row = client.execute(NEXT.format(n=1).encode()).fetchone()
                if row is None:
                    client.execute("COMMIT")
                    return
                client.execute("INSERT INTO taken VALUES (%s)", row[:1])
                client.execute("UPDATE queued SET done = 1 WHERE id = %s", row[:1])
                client.execute("COMMIT")

    at_once([work] * 4)
    assert sql.execute("SELECT count(*), count(DISTINCT id) FROM taken").fetchone() == (40, 40)


def test_a_job_is_taken_by_one_statement_once(running: Millstream, sql: Client, queued: None) -> None:
    """The statement of queues without transactions: those that want the same job wait, and then take the next one."""
    take = (
        "UPDATE queued SET done = 1 WHERE id = (SELECT id FROM queued WHERE done IS NULL ORDER BY id"
        " FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id"
    )

    def work() -> None:
        with running.connect() as client:
            while (row := client.execute(take.encode()).fetchone()) is not None:
                client.execute("INSERT INTO taken VALUES (%s)", row)

    at_once([work] * 4)
    assert sql.execute("SELECT count(*), count(DISTINCT id) FROM taken").fetchone() == (40, 40)


def test_writers_of_different_rows_do_not_wait(running: Millstream, queued: None) -> None:
    with running.connect() as first, running.connect() as second:
        second.execute("SET lock_timeout = '100ms'")
        for held, text in (
            ("UPDATE queued SET tries = 1 WHERE id = 1", "UPDATE queued SET tries = 2 WHERE id = 2"),
            ("UPDATE queued SET tries = 1 WHERE id + 0 = 1", "UPDATE queued SET tries = 2 WHERE id + 0 = 2"),
            ("DELETE FROM queued WHERE id = 1", "INSERT INTO queued (id) VALUES (1000)"),
            ("INSERT INTO queued (id) VALUES (1000)", "INSERT INTO queued (id) SELECT 1001"),
            ("SELECT * FROM queued WHERE id = 1 FOR UPDATE", "UPDATE queued SET tries = 2 WHERE id = 2"),
            ("INSERT INTO taken SELECT generate_series(1, 100)", "INSERT INTO taken SELECT generate_series(1, 100)"),
        ):
            first.execute("BEGIN")
            first.execute(held.encode())
            second.execute(f"BEGIN; {text}; ROLLBACK".encode())
            first.execute("ROLLBACK")
        for held, text in (
            ("UPDATE queued SET tries = 1 WHERE id = 1", "UPDATE queued SET tries = 2 WHERE id + 0 = 1"),
            ("INSERT INTO queued (id) VALUES (1000)", "INSERT INTO queued (id) VALUES (1000)"),
            ("DELETE FROM queued WHERE id = 1", "INSERT INTO queued (id) VALUES (1)"),
            ("SELECT * FROM queued WHERE id = 1 FOR SHARE", "DELETE FROM queued WHERE id = 1"),
            ("UPDATE queued SET tries = 1", "INSERT INTO queued (id) VALUES (1001) ON CONFLICT (id) DO NOTHING"),
        ):
            first.execute("BEGIN")
            first.execute(held.encode())
            if "ON CONFLICT" in text:  # 40 rows are locked one by one
                second.execute(text.encode())
            else:
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    second.execute(text.encode())
            first.execute("ROLLBACK")

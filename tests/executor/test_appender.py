"""Rows of INSERTs on their way into the log: collected while the disk is busy, written by the log's writer thread."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from catalog.values.types import INT4
from executor.commit.recovery import replay
from executor.commit.ticket import Ticket
from executor.database.database import Database
from planner.bind import bind
from planner.bind.state.context import Context
from planner.parse.parser import parse
from planner.statements.statement import Insert
from tests.executor.client import Client, open_database
from tests.executor.logs import LONG, CountingDisk
from tests.rig.process import wait_until


class Loop:
    """An event loop's part: appends rows, and makes the calls that other threads schedule."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.client = Client(database)
        self.answers: list[SqlError | None] = []
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        database.appender.serve(self._calls.put, self._calls.put)

    def bound(self, text: str, parameters: int) -> Insert:
        (raw,) = parse(text)
        found = bind(raw, Context(self.client.session.catalog, ("public",), (INT4,) * parameters)).statement
        assert isinstance(found, Insert)
        return found

    def insert(self, text: str, *rows: tuple[int, ...]) -> None:
        found = self.bound(text, len(rows[0]))
        assert self.client.session.at_once.append(found, list(rows), self.answers.append)

    def hold(self, disk: CountingDisk) -> Ticket:
        """Returns once the writer thread waits for the disk, until ``may_sync``."""
        records = self.records() + 1
        disk.may_sync.clear()
        syncing = self.database.core.sequencer.submit(())
        wait_until(lambda: self.records() == records, LONG, "a record that waits for the disk")
        return syncing

    def turn(self, answers: int) -> list[SqlError | None]:
        """Runs until this many statements are answered; returns the answers."""
        while len(self.answers) < answers:
            self._calls.get(timeout=LONG)()
        assert len(self.answers) == answers
        found, self.answers = self.answers, []
        return found

    def records(self) -> int:
        """How many records the log has."""
        return sum(1 for _ in replay(self.database.core.log, 0))


@pytest.fixture
def disk() -> CountingDisk:
    return CountingDisk()


@pytest.fixture
def loop(tmp_path: Path, disk: CountingDisk) -> Iterator[Loop]:
    database = open_database(tmp_path / "data", maintenance_rows=1 << 40, maintenance_idle=1e9)
    client = Client(database)
    client.run("CREATE FOREIGN TABLE a (k integer, t text) SERVER stream")
    client.run("CREATE FOREIGN TABLE b (k integer, n numeric(6,2) NOT NULL) SERVER stream")
    client.run("CREATE VIEW sums AS SELECT t, sum(k), count(*) FROM a GROUP BY t")
    client.run("CREATE VIEW totals AS SELECT sum(n), count(*) FROM b")
    client.run("INSERT INTO b VALUES (0, 0)")
    database.maintenance.close()  # its rounds would be in the way of a commit at once, now and then
    database.core.log._files = disk
    yield Loop(database)
    disk.may_sync.set()
    database.close()


_A = "INSERT INTO a VALUES ($1, 'x')"
_B = "INSERT INTO b VALUES ($1, $2)"


def test_rows_that_come_while_the_disk_is_busy_are_one_record_and_one_sync(loop: Loop, disk: CountingDisk) -> None:
    loop.insert(_A, (1,))
    loop.turn(1)
    records, syncs = loop.records() + 1, disk.syncs + 1
    syncing = loop.hold(disk)
    for number in range(5):
        loop.insert(_A, (number,), (10 * number,))
        loop.insert(_B, (number, 7))
    assert loop.answers == []
    disk.may_sync.set()
    assert loop.turn(10) == [None] * 10
    assert syncing.wait(LONG)
    assert loop.records() == records + 1
    assert disk.syncs == syncs + 1
    assert loop.client.run("SELECT * FROM sums") == [("x", 111, 11)]
    assert [str(value) for value in loop.client.run("SELECT * FROM totals")[0]] == ["35.00", "6"]


def test_rows_of_one_turn_are_one_record_on_an_idle_disk(loop: Loop, disk: CountingDisk) -> None:
    records, syncs = loop.records(), disk.syncs
    for number in range(5):
        loop.insert(_A, (number,))
    assert loop.turn(5) == [None] * 5
    assert loop.records() == records + 1
    assert disk.syncs == syncs + 1


def test_many_rows_are_a_batch(loop: Loop) -> None:
    loop.insert(_A, *((number,) for number in range(5000)))
    loop.insert(_A, (1,))
    assert loop.turn(2) == [None, None]
    assert loop.client.run("SELECT * FROM sums") == [("x", 5000 * 4999 // 2 + 1, 5001)]


def test_full_disk_fails_the_rows_of_its_record(loop: Loop, disk: CountingDisk) -> None:
    loop.insert(_A, (1,))
    loop.turn(1)
    syncing = loop.hold(disk)
    disk.refuse_writes = 1
    loop.insert(_A, (2,))
    loop.insert(_B, (2, 2))
    disk.may_sync.set()
    assert [error.sqlstate if error else "" for error in loop.turn(2)] == ["53100", "53100"]
    assert syncing.wait(LONG)
    loop.insert(_A, (4,))
    assert loop.turn(1) == [None]
    assert loop.client.run("SELECT * FROM sums") == [("x", 5, 2)]


def test_failed_sync_stops_the_log(loop: Loop, disk: CountingDisk) -> None:
    loop.insert(_A, (1,))
    loop.turn(1)
    disk.refuse_syncs = True
    loop.insert(_A, (2,))
    (error,) = loop.turn(1)
    assert error is not None
    assert error.sqlstate == "58030"
    disk.refuse_syncs = False
    loop.insert(_A, (3,))
    (error,) = loop.turn(1)
    assert error is not None
    assert error.sqlstate == "58030"


def test_failing_answer_stops_no_other(loop: Loop) -> None:
    def fail(error: SqlError | None) -> None:
        raise ValueError("its owner's fault")

    (raw,) = parse("INSERT INTO a VALUES (1, 'x')")
    found = bind(raw, Context(loop.client.session.catalog)).statement
    assert isinstance(found, Insert)
    assert loop.client.session.at_once.append(found, [()], fail)
    loop.insert(_A, (2,))
    assert loop.turn(1) == [None]


def test_refused_value_keeps_nothing(loop: Loop) -> None:
    records = loop.records()
    with pytest.raises(SqlError) as caught:
        loop.insert("INSERT INTO b VALUES ($1, NULL)", (1,))
    assert caught.value.sqlstate == "23502"
    assert loop.records() == records

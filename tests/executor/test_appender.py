"""Rows of INSERTs on their way into the log: by the thread that gathers them, or by the log's writer thread."""

from __future__ import annotations

import os
import queue
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from catalog.values.types import INT4
from executor.commit.delay import CommitDelay
from executor.commit.recovery import replay
from executor.database.database import Database
from planner.bind import bind
from planner.bind.state.context import Context
from planner.parse.parser import parse
from planner.statements.statement import Insert
from tests.executor.client import Client, open_database
from tests.executor.logs import LONG, CountingDisk, KernelDisk, holding


class Loop:
    """An event loop's part: calls on this thread, those of its own as well as those of others."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.client = Client(database)
        self.answers: list[SqlError | None] = []
        self._own: deque[Callable[[], None]] = deque()
        self._others: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        database.appender.serve(self._own.append, self._others.put, lambda descriptor, call: None)
        assert database.appender._soon is not None

    def bound(self, text: str, parameters: int) -> Insert:
        (raw,) = parse(text)
        found = bind(raw, Context(self.client.session.catalog, ("public",), (INT4,) * parameters)).statement
        assert isinstance(found, Insert)
        return found

    def insert(self, text: str, *rows: tuple[int, ...]) -> None:
        found = self.bound(text, len(rows[0]))
        assert self.client.session.at_once.append(found, list(rows), self.answers.append)

    def calls(self) -> None:
        """Runs what this thread was called for."""
        while self._own:
            self._own.popleft()()

    def step(self) -> None:
        """One turn of the loop: what is called for meanwhile is for the next one."""
        for _ in range(len(self._own)):
            self._own.popleft()()

    def turn(self, answers: int) -> list[SqlError | None]:
        """Runs until so many statements are answered; their answers."""
        while len(self.answers) < answers:
            call = self._own.popleft() if self._own else self._others.get(timeout=LONG)
            call()
        assert len(self.answers) == answers
        found, self.answers = self.answers, []
        return found

    def records(self) -> int:
        """How many records the log has."""
        return sum(1 for _ in replay(self.database.log, 0))


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
    database.log._files = disk
    yield Loop(database)
    disk.may_sync.set()
    database.close()


_A = "INSERT INTO a VALUES ($1, 'x')"
_B = "INSERT INTO b VALUES ($1, $2)"


@pytest.mark.slow
def test_rows_of_a_turn_are_one_record_and_one_sync(loop: Loop, disk: CountingDisk) -> None:
    loop.insert(_A, (1,))
    loop.turn(1)
    records, syncs = loop.records(), disk.syncs
    for number in range(5):
        loop.insert(_A, (number,), (10 * number,))
        loop.insert(_B, (number, 7))
    assert loop.turn(10) == [None] * 10
    assert loop.records() == records + 1
    assert disk.syncs == syncs + 1
    assert loop.client.run("SELECT * FROM sums") == [("x", 111, 11)]
    assert [str(value) for value in loop.client.run("SELECT * FROM totals")[0]] == ["35.00", "6"]


def test_rows_that_are_waited_for(loop: Loop) -> None:
    """Only where nothing else is under way, and the disk takes whole blocks past the system's memory."""
    database, at_once = loop.database, loop.client.session.at_once
    loop.insert(_A, (1,))
    loop.turn(1)
    log = database.log
    target = log._current
    assert target is not None
    insert, following = loop.bound(_A, 1), database.sequencer._next
    seen: list[tuple[int, int]] = []

    def durable() -> None:
        seen.append((log.last_lsn, database.sequencer.visible))

    direct, target.direct = target.direct, None
    assert not at_once.append_durably(insert, (2,), durable)
    assert database.sequencer._next == following  # nothing was tried
    target.direct = os.open(target.path, os.O_RDWR) if direct is None else direct
    records = loop.records()
    assert at_once.append_durably(insert, (2,), durable)
    assert loop.records() == records + 1
    assert seen == [(following, following - 1)]  # it was told before its row was visible
    assert loop.client.run("SELECT * FROM sums") == [("x", 3, 2)]
    assert not at_once.append_durably(loop.bound("INSERT INTO a SELECT $1, 'x'", 1), (2,), durable)
    loop.insert(_A, (3,))
    assert not at_once.append_durably(insert, (4,), durable)  # there is more to gather
    loop.turn(1)
    loop.client.session.synchronous_commit = False
    assert not at_once.append_durably(insert, (4,), durable)
    loop.client.session.synchronous_commit = True
    with pytest.raises(SqlError, match="null value"):
        at_once.append_durably(loop.bound(_B, 2), (5, None), durable)
    assert loop.client.run("SELECT * FROM sums") == [("x", 6, 3)]
    assert len(seen) == 1


def test_rows_whose_answer_fails_are_there_once(loop: Loop) -> None:
    insert = loop.bound(_A, 1)
    loop.insert(_A, (1,))
    loop.turn(1)
    target = loop.database.log._current
    assert target is not None
    target.direct = os.open(target.path, os.O_RDWR) if target.direct is None else target.direct

    def failing() -> None:
        raise RuntimeError("the client is gone")

    assert loop.client.session.at_once.append_durably(insert, (2,), failing)
    assert loop.client.run("SELECT * FROM sums") == [("x", 3, 2)]


def test_busy_writer_gives_the_rows_back(loop: Loop, disk: CountingDisk) -> None:
    loop.insert(_A, (1,))
    loop.turn(1)
    sequencer = loop.database.sequencer
    disk.may_sync.clear()
    held = sequencer.submit(())
    loop.insert(_A, (2,))
    loop._own.popleft()()  # finds the writer thread at work
    assert not loop._own
    loop.insert(_A, (3,))
    assert not loop._own  # the rows before it are on their way
    disk.may_sync.set()
    assert loop.turn(2) == [None, None]
    assert held.wait(LONG)
    assert loop.client.run("SELECT * FROM sums") == [("x", 6, 3)]


def test_rows_that_come_while_the_disk_is_busy_are_the_next_record(loop: Loop) -> None:
    loop.insert(_A, (1,))
    loop.turn(1)
    disk = loop.database.log._files = KernelDisk()
    records = loop.records()
    loop.insert(_A, (2,))
    loop.calls()
    for number in range(5):
        loop.insert(_A, (number,))
        loop.insert(_B, (number, 7))
        loop.calls()
    assert (loop.records(), loop.answers) == (records + 1, [])
    disk.end_sync()
    assert (loop.records(), loop.answers) == (records + 2, [None])
    loop.insert(_A, (3,))
    loop.calls()
    disk.end_sync()
    disk.end_sync()
    assert loop.turn(12) == [None] * 12
    assert loop.records() == records + 3
    assert loop.client.run("SELECT * FROM sums") == [("x", 16, 8)]


def test_without_syncs_in_the_background_the_writer_waits(
    loop: Loop, disk: CountingDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    appender = loop.database.appender
    appender._soon = None
    monkeypatch.setattr(disk, "watch", lambda watch: False)
    appender.serve(loop._own.append, loop._others.put, lambda descriptor, call: None)
    assert appender._soon is None
    disk.may_sync.clear()
    loop.insert(_A, (1,))  # would block here
    loop.insert(_B, (1, 1))
    assert not loop._own
    disk.may_sync.set()
    assert loop.turn(2) == [None] * 2
    assert loop.client.run("SELECT * FROM sums") == [("x", 1, 1)]


@pytest.mark.slow
def test_what_is_in_the_way_sends_the_rows_to_the_writer(loop: Loop) -> None:
    loop.insert(_A, (1,))
    loop.turn(1)
    with holding(loop.database.log._lock):
        loop.insert(_A, (2,))
        loop._own.popleft()()
    assert loop.turn(1) == [None]
    loop.insert(_A, (3,))
    assert loop.turn(1) == [None]
    assert loop.client.run("SELECT * FROM sums") == [("x", 6, 3)]


def test_many_rows_are_a_batch(loop: Loop) -> None:
    loop.insert(_A, *((number,) for number in range(5000)))
    loop.insert(_A, (1,))
    assert loop.turn(2) == [None, None]
    assert loop.client.run("SELECT * FROM sums") == [("x", 5000 * 4999 // 2 + 1, 5001)]


def test_full_disk_fails_the_rows_of_its_record(loop: Loop, disk: CountingDisk) -> None:
    loop.insert(_A, (1,))
    loop.turn(1)
    disk.refuse_writes = 1
    loop.insert(_A, (2,))
    loop.insert(_B, (2, 2))
    assert [error.sqlstate if error else "" for error in loop.turn(2)] == ["53100", "53100"]
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


def test_those_who_are_answered_join_the_next_record(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    loop.database.maintenance.close()  # its looks at the sequencer would now and then send a record the other way
    loop.insert(_A, (1,))
    loop.turn(1)
    now = 0.0
    monkeypatch.setattr(loop.database.appender, "_delay", CommitDelay(lambda: now))
    disk = loop.database.log._files = KernelDisk()
    for _ in range(2):  # two clients at the disk, and two on their way there
        loop.insert(_A, (1,))
        loop.insert(_A, (1,))
        loop.step()
    answered = []
    for _ in range(50):
        disk.end_sync()
        answered.append(len(loop.answers))
        loop.answers.clear()
        for _ in range(answered[-1]):
            loop.insert(_A, (1,))
        loop.step()
    assert (answered[0], answered[-1]) == (2, 4)
    disk.end_sync()
    loop.insert(_A, (1,))
    loop.step()
    assert not disk.begun  # others may come
    now = 1.0
    loop.step()
    disk.end_sync()
    assert loop.client.run("SELECT count FROM sums") == [(1 + 4 + sum(answered) + 1,)]

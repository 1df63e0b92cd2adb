"""Changes of single rows without a thread have the same results as with the engine, and share their syncs."""

from __future__ import annotations

import queue
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from catalog.values.errors import SqlError
from executor.commit import log as logs
from executor.database.database import Database
from executor.key_access.point_sources import point_reader
from planner.statements.statement import Delete, Insert, Query, Update
from tests.executor.client import Client, key_services, open_database
from tests.executor.logs import LONG, CountingDisk
from tests.rig.crash import copy_crashed
from tests.rig.sampling import sample

_TABLE = "(k int PRIMARY KEY, name text UNIQUE, n smallint NOT NULL, d numeric(6, 2), at timestamp)"


class Loop:
    """An event loop's part: makes the calls that it and other threads schedule."""

    def __init__(self, database: Database) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.answers: list[SqlError | None] = []
        self._taken = 0
        database.maintenance.close()
        database.row_changes.serve(self._calls.put, self._calls.put)

    def run(self) -> None:
        """Makes the scheduled calls."""
        while not self._calls.empty():
            self._calls.get()()

    def turn(self) -> None:
        """Runs until all accepted changes are answered."""
        self.run()
        while len(self.answers) < self._taken:
            self._calls.get(timeout=LONG)()

    def change(self, client: Client, text: str, *parameters: Any) -> bool:
        """Whether a statement was accepted; ``turn`` gives its result."""
        statement = client.bind(text)
        assert isinstance(statement, Insert | Update | Delete)
        taken = client.session.at_once.change(statement, parameters, self.answers.append)
        self._taken += taken
        return taken

    def within(self, client: Client, text: str, *parameters: Any) -> bool:
        """Whether a statement was run at once within the client's block."""
        statement = client.bind(text)
        assert isinstance(statement, Insert | Update | Delete)
        return client.session.at_once.change_within(statement, parameters)

    def awaits(self, client: Client, text: str) -> bool:
        """Whether a statement that was not run at once waits for a lock."""
        statement = client.bind(text)
        assert isinstance(statement, Insert | Update | Delete)
        return client.session.at_once.awaits_turn(statement)

    def commit(self, client: Client) -> bool:
        """Whether a block was accepted for commit; ``turn`` gives its result."""
        taken = client.session.at_once.commit(self.answers.append)
        self._taken += taken
        return taken


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> CountingDisk:
    disk = CountingDisk()
    monkeypatch.setattr(logs, "Files", lambda: disk)
    return disk


@pytest.fixture
def served(disk: CountingDisk, tmp_path: Path) -> Iterator[Database]:
    """A database with the tables' rows in memory."""
    with closing(open_database(tmp_path / "served")) as database:
        client = Client(database)
        client.run(f"CREATE TABLE t {_TABLE}; CREATE TABLE o {_TABLE}")
        for name in "to":
            client.run(f"INSERT INTO {name} VALUES (0, 'a', 0, 1.5, '2020-01-01'), (1, NULL, 1, NULL, NULL)")
            client.run(f"UPDATE {name} SET n = 0 WHERE k = 0; UPDATE {name} SET n = 0 WHERE k = 0")
        yield database


def _statement(chance: random.Random) -> str:
    key, value, name = chance.randrange(6), chance.choice((1, 2, 30000, "NULL")), chance.choice(("'a'", "'b'", "NULL"))
    return chance.choice(
        [
            f"INSERT INTO {{t}} VALUES ({key}, {name}, {value}, 3.25, '2024-05-06 07:08:09')",
            f"INSERT INTO {{t}} (k, n) VALUES ({key}, {value})",
            f"UPDATE {{t}} SET n = n + {value}::smallint WHERE k = {key}",
            f"UPDATE {{t}} SET n = {value}, d = d WHERE k = {key} AND n < 100",
            f"UPDATE {{t}} SET d = d + 0.5 WHERE k = {key}",
            f"UPDATE {{t}} SET name = {name} WHERE k = {key}",
            f"UPDATE {{t}} SET k = k + 1 WHERE k = {key}",
            f"DELETE FROM {{t}} WHERE k = {key}",
            f"DELETE FROM {{t}} WHERE name = {name}",
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", sample(range(3), range(1)))
def test_what_is_taken_does_what_the_engines_way_does(served: Database, seed: int, tmp_path: Path) -> None:
    """Some changes wait in a group while others arrive; statements that are not accepted go the general way, as in a
    server."""
    chance, loop, client, other = random.Random(seed), Loop(served), Client(served), Client(served)
    taken = 0
    for step in range(120):
        text = _statement(chance)
        try:
            expected = str(other.run(text.format(t="o")))
        except SqlError as error:
            expected = error.sqlstate
        if loop.change(client, text.format(t="t")):
            taken += 1
            assert expected in ("INSERT 0 1", "UPDATE 1", "DELETE 1"), text
        else:
            loop.turn()
            with_error = ""
            try:
                with_error = str(client.run(text.format(t="t")))
            except SqlError as error:
                with_error = error.sqlstate
            assert with_error == expected, text
        loop.turn()
        if step % 20 == 19:
            assert client.run("SELECT * FROM t ORDER BY k") == other.run("SELECT * FROM o ORDER BY k")
    assert taken > 20 and len(loop.answers) == taken and not any(loop.answers)
    copy_crashed(tmp_path / "served", tmp_path / "crashed")
    with closing(open_database(tmp_path / "crashed")) as copy:
        assert Client(copy).run("SELECT * FROM t ORDER BY k") == client.run("SELECT * FROM t ORDER BY k")


_STEPS = ("SAVEPOINT s", "ROLLBACK TO s", "RELEASE s", "ROLLBACK", "COMMIT", "COMMIT", "COMMIT")


def _outcome(client: Client, text: str) -> str:
    try:
        return str(client.run(text))
    except SqlError as error:
        return error.sqlstate


@pytest.mark.slow
@pytest.mark.parametrize("seed", sample(range(4), range(1)))
def test_blocks_do_at_once_what_the_engines_way_does(served: Database, seed: int, tmp_path: Path) -> None:
    """One client's statements run without waiting where possible, the other's never do."""
    chance, loop, client, other = random.Random(seed), Loop(served), Client(served), Client(served)
    taken = commits = 0
    for _ in range(60):
        script = [
            "BEGIN",
            *(
                chance.choice((_statement(chance), _statement(chance), chance.choice(_STEPS)))
                for _ in range(chance.randrange(1, 9))
            ),
            "COMMIT",
        ]
        expected = [_outcome(other, text.format(t="o")) for text in script]
        answers = []
        for text, answer in zip(script, expected, strict=True):
            mine, waits = text.format(t="t"), len(loop.answers)
            if text == "COMMIT" and loop.commit(client):
                loop.turn()
                assert loop.answers[waits:] == [None]
                commits += 1
                answers.append(answer)
            elif "{t}" in text and loop.within(client, mine):
                taken += 1
                assert answer in ("INSERT 0 1", "UPDATE 1", "DELETE 1"), text
                answers.append(answer)
            else:
                answers.append(_outcome(client, mine))
        assert answers == expected, script
        assert client.run("SELECT * FROM t ORDER BY k") == other.run("SELECT * FROM o ORDER BY k")
    assert taken > 10
    assert commits > 1
    copy_crashed(tmp_path / "served", tmp_path / "crashed")
    with closing(open_database(tmp_path / "crashed")) as copy:
        assert Client(copy).run("SELECT * FROM t ORDER BY k") == client.run("SELECT * FROM t ORDER BY k")


def test_a_block_whose_commit_fails_has_done_nothing(served: Database, disk: CountingDisk) -> None:
    loop, client = Loop(served), Client(served)
    client.run("BEGIN")
    assert loop.within(client, "UPDATE t SET n = n + 1::smallint WHERE k = 1")
    disk.refuse_writes = 1
    assert loop.commit(client)
    loop.turn()
    assert [error and error.sqlstate for error in loop.answers] == ["53100"]
    assert client.session.status == "I"
    assert client.run("SELECT n FROM t WHERE k = 1") == [(1,)]
    assert client.run("UPDATE t SET n = n + 1::smallint WHERE k = 1") == "UPDATE 1"


def test_others_wait_for_a_block_and_are_called_in_turn(served: Database) -> None:
    loop, clients = Loop(served), [Client(served) for _ in range(3)]
    first, second, third = clients
    change = "UPDATE t SET n = n + 1::smallint WHERE k = 1"
    called = list[str]()
    for client in clients:
        client.run("BEGIN")
    assert loop.within(first, change)
    requests = []
    for client, name in ((second, "second"), (third, "third")):
        assert not loop.within(client, change)
        assert loop.awaits(client, change)
        requests.append(client.session.at_once.ask(partial(called.append, name)))
    loop.turn()
    assert not called
    assert loop.commit(first)
    loop.turn()
    assert loop.answers == [None]
    assert called == ["second"]
    assert second.session.at_once.answer(requests[0])
    assert loop.within(second, change)
    assert loop.commit(second)
    loop.turn()
    assert called == ["second", "third"]
    assert third.session.at_once.answer(requests[1])
    third.run("ROLLBACK")
    assert first.run("SELECT n FROM t WHERE k = 1") == [(3,)]
    assert served.core.tables.locks.shown() == []


def test_a_block_begins_before_the_one_in_front_is_on_the_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    disk = CountingDisk()
    monkeypatch.setattr(logs, "Files", lambda: disk)
    with closing(open_database(tmp_path / "served")) as database:
        loop, first, second, reader = Loop(database), Client(database), Client(database), Client(database)
        apart = Client(database)
        reader.run("CREATE TABLE t (k int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0)")
        reader.run("UPDATE t SET n = 0 WHERE k = 1")
        for client in (first, second, apart):
            client.run("BEGIN")
        assert loop.within(first, "UPDATE t SET n = n + 1 WHERE k = 1")
        disk.may_sync.clear()
        assert loop.commit(first)
        assert loop.within(second, "UPDATE t SET n = n + 10 WHERE k = 1")
        assert loop.within(apart, "UPDATE t SET n = n + 5 WHERE k = 2")
        query = second.bind("SELECT n FROM t WHERE k = $1")
        assert isinstance(query, Query)
        point = point_reader(*key_services(database), query, database.core.catalog)
        assert point is not None
        assert second.session.at_once.read_within(point, (1,)) is None  # no answer promises rows that may be lost
        own = apart.session.at_once.read_within(point, (2,))  # a row that must not be lost
        assert own is not None and own.table.to_pylist() == [{"k": 2, "n": 5}]
        assert apart.session.at_once.read_within(point, (1,)) is None
        apart.run("ROLLBACK")
        assert loop.commit(second)
        loop.run()
        assert loop.answers == []
        assert reader.run("SELECT n FROM t WHERE k = 1") == [(0,)]
        disk.may_sync.set()
        loop.turn()
        assert loop.answers == [None, None]
        assert reader.run("SELECT n FROM t WHERE k = 1") == [(11,)]
        copy_crashed(tmp_path / "served", tmp_path / "crashed")
    with closing(open_database(tmp_path / "crashed")) as copy:
        assert Client(copy).run("SELECT n FROM t ORDER BY k") == [(11,), (0,)]


_WIDE = (
    "(k int PRIMARY KEY, n int, b bool, r real, f float8, c bytea, j jsonb, a int[], s time, z timetz, day date,"
    " at timestamp, tz timestamptz, i interval, u uuid, m numeric(9, 3), free numeric, e mood, p char(4), q varchar(3))"
)
_WIDE_ROWS = (
    r"""1, 0, true, 1.5, 0.1, '\x00ff', '{"a": 1}', '{1,NULL}', '12:34:56.789', '01:02:03+04', '2024-02-29',"""
    " '2020-01-01', '2020-01-01 00:00+01', '1 mon 2 days 3 s', '6ecd8c99-4036-403d-bf84-cf8400f67836', 1.5, 1.500,"
    " 'glad', 'ab', 'ä'",
    "2" + ", NULL" * 19,
    "3, 0, false, 'NaN', '-0', '', '[]', '{}', '23:59:59.999999', '24:00+00', '0001-01-01',"
    " '9999-12-31', '9999-12-31 00:00Z', '-1 day', '00000000-0000-0000-0000-000000000000', 0, 1e18, 'sad', '', ''",
    "4, 0, false, '-Infinity', 'Infinity', '', 'null', NULL, '00:00', '00:00+00', '-infinity', 'infinity',"
    " '-infinity', '0', NULL, -1, 0.00, 'sad', ' ', ' '",
)


def test_a_change_leaves_all_other_values_as_they_are(served: Database, tmp_path: Path) -> None:
    loop, client, taken = Loop(served), Client(served), []
    client.run("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    for name in ("wide", "other"):
        client.run(f"CREATE TABLE {name} {_WIDE}")
        for row in _WIDE_ROWS:
            client.run(f"INSERT INTO {name} VALUES ({row})")
    for _ in range(3):
        for key in range(1, 5):
            client.run(f"UPDATE other SET n = n + {key} WHERE k = {key}")
            change = f"UPDATE wide SET n = n + {key} WHERE k = {key}"
            if loop.change(client, change):
                taken.append(key)
            else:
                client.run(change)
            loop.turn()
    assert {1, 2, 3} <= set(taken) and not any(loop.answers)
    shown = "SELECT {0}::text FROM {0} ORDER BY k"
    expected = str(client.run(shown.format("other"))).replace("other", "wide")
    copy_crashed(tmp_path / "served", tmp_path / "crashed")
    assert str(client.run(shown.format("wide"))) == expected
    with closing(open_database(tmp_path / "crashed")) as copy:
        assert str(Client(copy).run(shown.format("wide"))) == expected


@pytest.mark.slow
def test_changes_of_a_turn_are_one_record_and_one_sync(served: Database, disk: CountingDisk) -> None:
    loop, clients, before = Loop(served), [Client(served) for _ in range(8)], disk.syncs
    lsn = served.core.sequencer.visible
    for client in clients:
        assert loop.change(client, "UPDATE t SET n = n + 1::smallint WHERE k = $1::int", 1)
    assert loop.change(clients[0], "INSERT INTO t VALUES ($1, 'z', 1, 1, NULL)", 5)
    assert clients[0].run("SELECT n FROM t WHERE k = 1") == [(1,)]
    assert not loop.change(clients[0], "INSERT INTO t VALUES ($1, 'y', 1, 1, NULL)", 5)
    assert not loop.change(clients[0], "UPDATE t SET n = n + 1::smallint WHERE k = $1::int", 77)
    assert not loop.change(clients[0], "UPDATE t SET n = n + 32767::smallint WHERE k = $1::int", 1)
    assert not loop.answers
    loop.turn()
    assert loop.answers == [None] * 9
    assert (disk.syncs, served.core.sequencer.visible) == (before + 1, lsn + 1)
    assert clients[0].run("SELECT n FROM t WHERE k IN (1, 5) ORDER BY k") == [(9,), (1,)]


def test_a_failure_is_told_to_all_of_a_group(served: Database, disk: CountingDisk) -> None:
    loop, client = Loop(served), Client(served)
    for _ in range(2):
        assert loop.change(client, "UPDATE t SET n = 5::smallint WHERE k = $1::int", 1)
    disk.refuse_writes = 1
    loop.turn()
    assert [error and error.sqlstate for error in loop.answers] == ["53100"] * 2
    assert client.run("SELECT n FROM t WHERE k = 1") == [(1,)]
    client.run("UPDATE t SET n = n + 1 WHERE k = 1")
    assert loop.change(client, "UPDATE t SET n = n + 1::smallint WHERE k = $1::int", 1)
    disk.refuse_syncs = True
    loop.turn()
    assert [error and error.sqlstate for error in loop.answers][2:] == ["58030"]
    assert client.run("SELECT n FROM t WHERE k = 1") == [(2,)]


def test_what_is_not_so_plain(served: Database) -> None:
    loop, client = Loop(served), Client(served)
    client.run("CREATE TABLE r (k int PRIMARY KEY REFERENCES t, c int CHECK (c > 0)); INSERT INTO r VALUES (1, 1)")
    client.run("CREATE TABLE i (k int PRIMARY KEY, x text); CREATE UNIQUE INDEX ON i (lower(x))")
    client.run("INSERT INTO i VALUES (1, 'a'); UPDATE i SET k = 1 WHERE k = 1; UPDATE r SET k = 1 WHERE k = 1")
    texts = (
        "DELETE FROM t WHERE k = 0",
        "UPDATE t SET k = 3 WHERE k = 0",
        "UPDATE t SET n = n + 1 WHERE k = 0 RETURNING n",
        "UPDATE t SET n = 1 WHERE n = 0",
        "UPDATE r SET c = 2 WHERE k = 1",
        "INSERT INTO r VALUES (0, 1)",
        "INSERT INTO i VALUES (2, 'b')",
        "UPDATE i SET x = 'b' WHERE k = 1",
        "INSERT INTO o VALUES (7, 'q', 1, 1, NULL), (8, 'p', 1, 1, NULL)",
    )
    assert [text for text in texts if loop.change(client, text)] == []
    assert served.core.tables.locks.shown() == []

"""The next writer begins before the disk has the record of the one before: many share a sync, and none is acknowledged
early."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.commit import log as logs
from executor.database.database import Database
from tests.executor.client import Client, open_database
from tests.executor.logs import LONG, CountingDisk
from tests.rig.beside import Beside
from tests.rig.crash import copy_crashed
from tests.rig.process import wait_until


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> CountingDisk:
    disk = CountingDisk()
    monkeypatch.setattr(logs, "Files", lambda: disk)
    return disk


@pytest.fixture
def held(disk: CountingDisk, tmp_path: Path) -> Iterator[Database]:
    """A database with a table's rows in memory, whose log can be blocked."""
    with closing(open_database(tmp_path / "held")) as database:
        client = Client(database)
        client.run("CREATE TABLE t (k int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
        client.run("UPDATE t SET n = 0 WHERE k = 1")
        yield database
        disk.may_sync.set()


def begin(client: Client, text: str) -> Beside[object]:
    """Runs a client's text in its own thread; gives the outcome, or an error's SQLSTATE."""

    def run() -> object:
        try:
            return client.run(text)
        except SqlError as error:
            return error.sqlstate

    return Beside(run)


def _begun(database: Database, count: int) -> Callable[[], bool]:
    """Whether so many transactions have their place in the log."""
    journals = database.core.tables.unsettled._journals
    return lambda: len(journals) == count


def _run_behind_each_other(database: Database, texts: list[str]) -> list[Beside[object]]:
    running: list[Beside[object]] = []
    for text in texts:
        running.append(begin(Client(database), text))
        wait_until(_begun(database, len(running)), LONG, "place in the log")
    return running


def test_writers_share_a_sync_and_readers_see_none_of_them_before_it(held: Database, disk: CountingDisk) -> None:
    reader, before = Client(held), disk.syncs
    disk.may_sync.clear()
    running = _run_behind_each_other(held, ["UPDATE t SET n = n + 1 WHERE k = 1"] * 8)
    assert not any(item.is_over for item in running)
    assert reader.run("SELECT n FROM t WHERE k = 1") == [(0,)]
    assert reader.run("SELECT sum(n) FROM t") == [(0,)]
    disk.may_sync.set()
    assert [item.result() for item in running] == ["UPDATE 1"] * 8
    assert disk.syncs - before <= 3
    assert reader.run("SELECT n FROM t WHERE k = 1") == [(8,)]
    assert held.core.tables.unsettled.last == 0 and not any(held.core.tables.unsettled._rows.values())


@pytest.mark.parametrize(
    ("first", "text", "expected"),
    [
        ("UPDATE t SET n = 7 WHERE k = 1", "UPDATE t SET n = 1 WHERE k = 9", "UPDATE 0"),
        ("INSERT INTO t VALUES (4, 1)", "INSERT INTO t VALUES (4, 4)", "23505"),
        ("UPDATE t SET n = 7 WHERE k = 1", "UPDATE t SET n = n + 1 WHERE n = 7", "UPDATE 1"),
        ("UPDATE t SET n = 7 WHERE k = 1", "BEGIN; UPDATE t SET n = n + 1 WHERE k = 1 RETURNING n", [(8,)]),
    ],
    ids=["nothing changed", "an error", "by an engine", "in a block"],
)
def test_nothing_is_answered_that_the_disk_does_not_have(
    held: Database, disk: CountingDisk, monkeypatch: pytest.MonkeyPatch, first: str, text: str, expected: object
) -> None:
    unsettled, waits = held.core.tables.unsettled, threading.Event()
    wait = unsettled.wait
    monkeypatch.setattr(unsettled, "wait", lambda *arguments: (waits.set(), wait(*arguments)))
    disk.may_sync.clear()
    (other,) = _run_behind_each_other(held, [first])
    client = Client(held)
    waiting = begin(client, text)
    assert waits.wait(LONG)
    assert not waiting.is_over
    disk.may_sync.set()
    assert other.result() in ("UPDATE 1", "INSERT 0 1")
    assert waiting.result() == expected
    client.session.close()


def test_a_failed_sync_fails_all(held: Database, disk: CountingDisk) -> None:
    disk.may_sync.clear()
    running = _run_behind_each_other(held, ["UPDATE t SET n = n + 1 WHERE k = 1"] * 3)
    disk.refuse_syncs = True
    disk.may_sync.set()
    assert [item.result() for item in running] == ["58030"] * 3
    assert Client(held).run("SELECT n FROM t WHERE k = 1") == [(0,)]
    with pytest.raises(SqlError) as caught:
        Client(held).run("UPDATE t SET n = n + 1 WHERE k = 1")
    assert caught.value.sqlstate == "58030"


def test_a_writer_that_has_seen_a_refused_change_is_refused(held: Database, disk: CountingDisk) -> None:
    disk.may_sync.clear()
    first, sequencer = _run_behind_each_other(held, ["UPDATE t SET n = 5 WHERE k = 1"]), held.core.sequencer
    wait_until(lambda: sequencer._last_written == held.core.tables.unsettled.last, LONG, "write before the one refused")
    running = [*first]
    for text in ["UPDATE t SET n = 6 WHERE k = 2", "UPDATE t SET n = n + 1 WHERE k = 2", "DELETE FROM t WHERE k = 3"]:
        running.append(begin(Client(held), text))
        wait_until(_begun(held, len(running)), LONG, "place in the log")
    disk.refuse_writes = 1
    disk.may_sync.set()
    assert [item.result() for item in running] == ["UPDATE 1", "53100", "53100", "53100"]
    client = Client(held)
    assert client.run("SELECT k, n FROM t ORDER BY k") == [(1, 5), (2, 0), (3, 0)]


@pytest.mark.slow
def test_counters_of_many_sessions_survive_a_crash(tmp_path: Path) -> None:
    """Every acknowledged change counts once, in this process and after a crash; changes that were not acknowledged may
    count."""
    with closing(open_database(tmp_path / "live")) as database:
        Client(database).run(
            "CREATE TABLE c (k int PRIMARY KEY, n int); INSERT INTO c SELECT i, 0 FROM generate_series(0, 3) AS g (i)"
        )
        asked, answered, ended = [0] * 4, [0] * 4, threading.Event()
        lock = threading.Lock()

        def work(number: int) -> None:
            chance, client = random.Random(number), Client(database)
            while not ended.is_set():
                key = chance.randrange(4)
                with lock:
                    asked[key] += 1
                if number % 3:
                    client.run(f"UPDATE c SET n = n + 1 WHERE k = {key}")
                else:
                    client.run(
                        f"BEGIN; SELECT n FROM c WHERE k = {key}; UPDATE c SET n = n + 1 WHERE k = {key}; COMMIT"
                    )
                with lock:
                    answered[key] += 1

        counting = [Beside(work, number) for number in range(6)]
        for number in range(3):
            wait_until(lambda wanted=60 * (number + 1): sum(answered) > wanted, LONG, "changes")  # type: ignore[misc]
            with lock:
                before = list(answered)
            copy_crashed(tmp_path / "live", tmp_path / str(number))
            with lock:
                after = list(asked)
            with closing(open_database(tmp_path / str(number))) as copy:
                found = [n for (n,) in Client(copy).run("SELECT n FROM c ORDER BY k")]  # type: ignore[misc]
            assert all(low <= n <= high for low, n, high in zip(before, found, after, strict=True))
        ended.set()
        for client in counting:
            client.result()
        assert Client(database).run("SELECT n FROM c ORDER BY k") == [(n,) for n in answered]
        assert asked == answered

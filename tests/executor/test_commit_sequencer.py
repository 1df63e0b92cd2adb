"""The sequencer: LSNs in order, durable before acknowledged, all changes visible at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.values.errors import SqlError
from executor.commit.log import Log
from executor.commit.records import CatalogChange, Spooled, StreamRows, TransactionRecord
from executor.commit.recovery import StreamReader, replay
from executor.commit.sequencer import Sequencer
from tests.executor.logs import LONG, CountingDisk, batch, change, contents
from tests.rig.beside import Beside, at_once

SEGMENT = 64 * 1024


@pytest.fixture
def disk() -> CountingDisk:
    return CountingDisk()


@pytest.fixture
def log(tmp_path: Path, disk: CountingDisk) -> Iterator[Log]:
    log = Log(tmp_path / "log", SEGMENT, files=disk)
    yield log
    log.close()


@pytest.fixture
def sequencer(log: Log) -> Iterator[Sequencer]:
    sequencer = Sequencer(log)
    yield sequencer
    sequencer.close()


def document(record: TransactionRecord) -> str:
    (part,) = record
    assert isinstance(part, CatalogChange)
    return part.document


def test_many_threads_publish_in_lsn_order(sequencer: Sequencer, log: Log) -> None:
    published: list[tuple[int, str]] = []
    sequencer.on_publish(lambda lsn, record: published.append((lsn, document(record))))

    def work(number: int) -> None:
        for count in range(50):
            sequencer.submit(change(f"{number}.{count}"), sync=count % 3 > 0).wait(LONG)

    at_once(partial(work, number) for number in range(8))
    sequencer.flush().wait(LONG)
    assert [lsn for lsn, _ in published] == list(range(1, 401))
    assert contents(log) == published
    assert (sequencer.visible, sequencer.durable) == (400, 400)
    for number in range(8):
        own = [text for _, text in published if text.startswith(f"{number}.")]
        assert own == [f"{number}.{count}" for count in range(50)]


def test_submitters_share_a_sync(sequencer: Sequencer, disk: CountingDisk) -> None:
    sequencer.submit(change("first")).wait(LONG)
    disk.may_sync.clear()
    held = sequencer.submit(change("held"))
    tickets = [sequencer.submit(change(str(number))) for number in range(100)]
    assert not any(ticket.done for ticket in (held, *tickets))
    before = disk.syncs
    disk.may_sync.set()
    assert tickets[-1].wait(LONG)
    assert all(ticket.done for ticket in tickets)
    assert disk.syncs - before <= 3


def test_nothing_is_visible_before_it_is_durable(sequencer: Sequencer, disk: CountingDisk) -> None:
    sequencer.submit(change("first")).wait(LONG)
    disk.may_sync.clear()
    ticket = sequencer.submit(change("second"))
    assert not ticket.wait(0.01)
    assert (sequencer.visible, sequencer.durable) == (1, 1)
    disk.may_sync.set()
    assert ticket.wait(LONG)
    assert (sequencer.visible, sequencer.durable) == (2, 2)


def test_without_sync_visible_runs_ahead_and_the_disk_follows(log: Log, disk: CountingDisk) -> None:
    sequencer = Sequencer(log, sync_within=0.02)
    sequencer.submit(change("first")).wait(LONG)
    disk.may_sync.clear()
    disk.synced.clear()
    assert sequencer.submit(change("second"), sync=False).wait(LONG)
    assert (sequencer.visible, sequencer.durable) == (2, 1)
    disk.may_sync.set()
    assert disk.synced.wait(LONG)  # without a request
    sequencer.close()
    assert sequencer.durable == 2


def test_flush_waits_for_what_did_not(log: Log) -> None:
    sequencer = Sequencer(log, sync_within=1000)
    sequencer.submit(change("a"), sync=False).wait(LONG)
    assert sequencer.durable == 0
    ticket = sequencer.flush()
    assert ticket.wait(LONG)
    assert (ticket.lsn, sequencer.durable) == (1, 1)
    sequencer.close()


def test_lock_fixes_visible_and_what_is_published(sequencer: Sequencer) -> None:
    count = 0

    def publish(lsn: int, record: TransactionRecord) -> None:
        nonlocal count
        count += 1

    sequencer.on_publish(publish)
    tickets = []
    for _ in range(200):
        tickets.append(sequencer.submit(change("x"), sync=False))
        with sequencer.lock:
            assert sequencer.visible == count
    tickets[-1].wait(LONG)


def test_callbacks_come_once_even_when_late(sequencer: Sequencer, disk: CountingDisk) -> None:
    calls: list[Exception | None] = []
    happened = threading.Event()
    disk.may_sync.clear()  # earlier ones in their order, on the writer thread
    ticket = sequencer.submit(change("a"))
    ticket.on_done(calls.append)
    ticket.on_done(lambda error: happened.set())
    disk.may_sync.set()
    assert happened.wait(LONG)
    ticket.on_done(calls.append)
    assert calls == [None, None]


def test_a_failing_callback_stops_no_other(sequencer: Sequencer, disk: CountingDisk) -> None:
    def fail(error: Exception | None) -> None:
        raise ValueError("a callback's own fault")

    disk.may_sync.clear()
    ticket = sequencer.submit(change("a"))
    calls: list[Exception | None] = []
    ticket.on_done(fail)
    ticket.on_done(calls.append)
    disk.may_sync.set()
    assert sequencer.submit(change("b")).wait(LONG)
    assert calls == [None]


def test_spooled_batches_are_part_of_their_commit_only(sequencer: Sequencer, log: Log) -> None:
    published: list[TransactionRecord] = []
    sequencer.on_publish(lambda lsn, record: published.append(record))
    rows = [batch(*range(start, start + 500)) for start in range(0, 5000, 500)]
    lost = [sequencer.spool(7, rows[0]) for _ in range(3)]
    references = tuple(sequencer.spool(7, each) for each in rows)
    sequencer.discard(lost)
    sequencer.submit((Spooled(7, references), StreamRows(7, (batch(1),)))).wait(LONG)
    ((spooled, _),) = published
    assert isinstance(spooled, Spooled)
    assert [each.batch for each in spooled.references] == rows
    ((lsn, record),) = replay(log, 0)
    assert lsn == 1
    assert isinstance(record[0], Spooled)
    reader = StreamReader(log, 7)
    assert [reader.spooled(each) for each in record[0].references] == [(each,) for each in rows]
    assert not any(each.pinned or each.readers for each in log._segments)


def test_spool_beyond_its_memory_keeps_no_batch(log: Log) -> None:
    sequencer = Sequencer(log, spool_memory=batch(*range(100)).nbytes * 2)
    references = [sequencer.spool(7, batch(*range(100))) for _ in range(3)]
    assert [each.batch is None for each in references] == [False, False, True]
    sequencer.discard(references)
    again = sequencer.spool(7, batch(*range(100)))
    assert again.batch is not None
    sequencer.close()


def test_discarding_twice_is_harmless(sequencer: Sequencer, log: Log) -> None:
    first, second = (sequencer.spool(7, batch(*range(100))) for _ in range(2))
    sequencer.discard([first])
    sequencer.discard([first])
    for lsn in range(1, 6):
        assert sequencer.submit(change("x" * 40_000)).lsn == lsn
    sequencer.flush().wait(LONG)
    assert log.recycle(5) == 0  # the second transaction is still open
    sequencer.discard([second])
    assert log.recycle(5) > 0


def test_lsn_is_told_before_publication(sequencer: Sequencer) -> None:
    waiting: set[int] = set()
    sequencer.on_publish(lambda lsn, record: waiting.remove(lsn))
    tickets = [sequencer.submit(change("x"), on_lsn=waiting.add) for _ in range(100)]
    assert tickets[-1].wait(LONG)
    assert not waiting


def test_full_disk_fails_one_statement(log: Log, disk: CountingDisk, tmp_path: Path) -> None:
    sequencer = Sequencer(log)
    published: list[int] = []
    sequencer.on_publish(lambda lsn, record: published.append(lsn))
    sequencer.submit(change("a" * 40_000)).wait(LONG)
    disk.refuse_files = True
    with pytest.raises(SqlError) as caught:
        sequencer.submit(change("b" * 40_000)).wait(LONG)
    assert caught.value.sqlstate == "53100"
    with pytest.raises(SqlError) as caught:
        sequencer.spool(7, pa.record_batch([pa.array(["c" * 60_000])], names=["a"]).slice(0))
    assert caught.value.sqlstate == "53100"
    assert sequencer.visible == 1  # never an LSN that the log lacks
    sequencer.submit(change("fits")).wait(LONG)
    disk.refuse_files = False
    sequencer.submit(change("d" * 40_000)).wait(LONG)
    assert published == [1, 3, 4]
    assert sequencer.visible == 4
    sequencer.close()
    assert [lsn for lsn, _ in contents(log)] == [1, 3, 4]


def test_failed_sync_is_final(log: Log, disk: CountingDisk) -> None:
    sequencer = Sequencer(log)
    sequencer.submit(change("a")).wait(LONG)
    disk.refuse_syncs = True
    with pytest.raises(SqlError) as caught:
        sequencer.submit(change("b")).wait(LONG)
    assert caught.value.sqlstate == "58030"
    disk.refuse_syncs = False
    with pytest.raises(SqlError) as caught:
        sequencer.submit(change("c"))
    assert caught.value.sqlstate == "58030"
    assert sequencer.visible == 1
    sequencer.close()


def test_failing_publisher_is_final(log: Log) -> None:
    sequencer = Sequencer(log)

    def publish(lsn: int, record: TransactionRecord) -> None:
        if document(record) == "bad":
            raise ValueError("cannot publish")

    sequencer.on_publish(publish)
    sequencer.submit(change("good")).wait(LONG)
    with pytest.raises(SqlError) as caught:
        sequencer.submit(change("bad")).wait(LONG)
    assert caught.value.sqlstate == "XX000"
    with pytest.raises(SqlError):
        sequencer.submit(change("good"))
    assert sequencer.visible == 1
    sequencer.close()


def test_close_writes_what_was_submitted(tmp_path: Path) -> None:
    log = Log(tmp_path / "closing", SEGMENT)
    sequencer = Sequencer(log, sync_within=1000)
    tickets = [sequencer.submit(change(str(number)), sync=False) for number in range(100)]
    sequencer.close()
    assert all(ticket.done and ticket.error is None for ticket in tickets)
    assert sequencer.durable == 100
    with pytest.raises(SqlError) as caught:
        sequencer.submit(change("late"))
    assert caught.value.sqlstate == "57P01"
    sequencer.close()
    log.close()
    assert not sequencer._writer.is_alive()


def test_lsns_continue_above_log_and_floor(tmp_path: Path) -> None:
    for floor, expected in ((0, 1), (0, 2), (10, 11), (0, 12)):
        log = Log(tmp_path / "again", SEGMENT)
        sequencer = Sequencer(log, floor)
        assert sequencer.submit(change("x")).lsn == expected
        sequencer.close()
        log.close()


def test_commit_is_done_on_return_and_on_the_callers_thread(sequencer: Sequencer, log: Log) -> None:
    threads: list[str] = []
    sequencer.on_publish(lambda lsn, record: threads.append(threading.current_thread().name))
    told: list[int] = []
    for number in range(1, 4):
        sequencer.commit(change(str(number)), on_lsn=told.append)
        assert (sequencer.visible, sequencer.durable) == (number, number)
    assert told == [1, 2, 3]
    assert threads == [threading.current_thread().name] * 3
    assert contents(log) == [(1, "1"), (2, "2"), (3, "3")]


def test_commits_beside_the_writer_thread_stay_in_lsn_order(sequencer: Sequencer, log: Log) -> None:
    published: list[tuple[int, str]] = []
    sequencer.on_publish(lambda lsn, record: published.append((lsn, document(record))))

    def work(number: int) -> None:
        for count in range(50):
            if (number + count) % 2:
                sequencer.commit(change(f"{number}.{count}"), sync=count % 3 > 0)
            else:
                sequencer.submit(change(f"{number}.{count}")).wait(LONG)

    at_once(partial(work, number) for number in range(6))
    sequencer.flush().wait(LONG)
    assert contents(log) == published
    assert [lsn for lsn, _ in published] == list(range(1, 301))


def test_commit_joins_those_that_wait_for_the_disk(sequencer: Sequencer, disk: CountingDisk, log: Log) -> None:
    sequencer.commit(change("first"))
    disk.may_sync.clear()
    held = sequencer.submit(change("held"))
    begun = [Beside(sequencer.commit, change(str(number))) for number in range(3)]
    assert not held.done
    disk.may_sync.set()
    for commit in begun:
        commit.result()
    assert len(contents(log)) == 5
    assert sequencer.durable == sequencer.visible == 5


def test_a_refused_commit_raises_and_leaves_its_lsn_unused(sequencer: Sequencer, disk: CountingDisk, log: Log) -> None:
    sequencer.commit(change("first"))
    disk.refuse_writes = 1
    with pytest.raises(SqlError, match="53100"):
        sequencer.commit(change("refused"))
    sequencer.commit(change("fits"))
    assert contents(log) == [(1, "first"), (3, "fits")]


def test_no_commit_after_the_end(log: Log) -> None:
    sequencer = Sequencer(log)
    sequencer.commit(change("first"), sync=False)
    sequencer.close()
    assert sequencer.durable == 1
    with pytest.raises(SqlError, match="57P01"):
        sequencer.commit(change("late"))

"""Another server's log, read while it is written: each row once, in order, whichever process is killed at any time."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.values.errors import SqlError
from executor.commit.log import Log
from executor.commit.log_follower import Arrived, LogFollower
from executor.commit.records import Spooled, StreamRows
from executor.commit.sequencer import Sequencer

OTHER, OWN = 7, 8
SEGMENT = 8192


def batch(first: int, rows: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(first, first + rows), pa.int64())})


class Writer:
    """A server's log, to which rows with consecutive numbers are written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.log = Log(folder, SEGMENT, pool=2)
        self.sequencer = Sequencer(self.log)
        self.rows = 0

    def write(self, rows: int) -> None:
        """Commits rows of the stream, and of another stream."""
        parts = (StreamRows(OTHER, (batch(-5, 2),)), StreamRows(OWN, (batch(self.rows, rows),)))
        self.sequencer.commit(parts, sync=False)
        self.rows += rows

    def spool(self, rows: int) -> None:
        """Writes rows ahead of their commit."""
        reference = self.sequencer.spool(OWN, batch(self.rows, rows))
        for _ in range(3):
            self.other()
        self.sequencer.commit((Spooled(OWN, (reference,)),), sync=True)
        self.rows += rows

    def other(self) -> None:
        """Commits a transaction without rows of the stream."""
        self.sequencer.commit((StreamRows(OTHER, (batch(-9, 200),)),), sync=False)

    def close(self) -> None:
        self.sequencer.close()
        self.log.close()

    def restart(self) -> None:
        """A new process, which continues in a new segment."""
        self.close()
        self.log = Log(self._folder, SEGMENT, pool=2)
        self.sequencer = Sequencer(self.log)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    made = Writer(tmp_path)
    yield made
    made.close()


def numbers(found: list[Arrived]) -> list[int]:
    return [number for item in found for part in item.batches for number in part.column(0).to_pylist()]


@pytest.mark.parametrize("seed", range(4))
def test_each_row_once(seed: int, writer: Writer, tmp_path: Path) -> None:
    chance = random.Random(seed)
    follower = LogFollower(tmp_path, frozenset((OWN,)), 0)
    seen: list[int] = []
    for _ in range(120):
        match chance.randrange(8):
            case 0 | 1:
                writer.write(chance.randrange(1, 40))
            case 2:
                writer.spool(chance.randrange(1, 500))
            case 3:
                writer.other()
            case 4 if chance.random() < 0.3:
                writer.restart()
            case 5:
                seen += numbers(follower.read(chance.choice((1, 3000, 1 << 20))))
            case 6:
                writer.log.recycle(follower.position + 1)
            case _:
                position = follower.position
                follower.close()
                follower = LogFollower(tmp_path, frozenset((OWN,)), position)
    while found := follower.read():
        seen += numbers(found)
    assert seen == list(range(writer.rows))
    assert not follower.is_behind()
    assert follower.position == writer.sequencer.visible
    follower.close()


def test_behind_as_soon_as_there_is_more(writer: Writer, tmp_path: Path) -> None:
    writer.write(1)
    follower = LogFollower(tmp_path, frozenset((OWN,)), 0)
    assert follower.is_behind()
    follower.read()
    assert not follower.is_behind()
    assert not follower.is_behind(waits=False) or not reads_at_once(tmp_path)
    for waits in (True, False):
        writer.write(1)
        assert follower.is_behind(waits)
        follower.read()
    follower.close()


def reads_at_once(folder: Path) -> bool:
    """Whether the file system answers from its cache without waiting: most local ones do, and network ones do not."""
    path = folder / "remembered"
    path.write_bytes(b"0")
    with path.open("rb") as file, contextlib.suppress(AttributeError, OSError):
        return os.preadv(file.fileno(), (bytearray(1),), 0, os.RWF_NOWAIT) == 1
    return False


def test_what_was_recycled_is_missed(writer: Writer, tmp_path: Path) -> None:
    for _ in range(30):
        writer.write(200)
    writer.log.recycle(writer.sequencer.visible)
    with pytest.raises(SqlError, match="72000"):
        LogFollower(tmp_path, frozenset((OWN,)), 0).read()


def test_what_was_recycled_under_ones_feet_is_missed(writer: Writer, tmp_path: Path) -> None:
    writer.write(1)
    follower = LogFollower(tmp_path, frozenset((OWN,)), 0)
    follower.read()
    for _ in range(30):
        writer.write(200)
    writer.log.recycle(writer.sequencer.visible)
    assert follower.is_behind()
    with pytest.raises(SqlError, match=r"XX001|72000"):
        while follower.read():
            pass
    with pytest.raises(SqlError, match="72000"):
        follower.read()


def test_half_a_record_is_none_yet(writer: Writer, tmp_path: Path) -> None:
    writer.write(3)
    writer.write(4)
    follower = LogFollower(tmp_path, frozenset((OWN,)), 0)
    (path,) = tmp_path.glob("*.log")
    whole = path.read_bytes()
    end = whole.rstrip(b"\0")
    path.write_bytes(end[:-3].ljust(len(whole), b"\0"))
    assert numbers(follower.read()) == [0, 1, 2]
    assert numbers(follower.read()) == []
    path.write_bytes(whole)
    assert numbers(follower.read()) == [3, 4, 5, 6]
    follower.close()


def test_a_log_that_lost_what_was_read_is_no_longer_followed(writer: Writer, tmp_path: Path) -> None:
    writer.write(3)
    writer.write(4)
    follower = LogFollower(tmp_path, frozenset((OWN,)), 0)
    follower.read()
    (path,) = tmp_path.glob("*.log")
    whole = path.read_bytes()
    path.write_bytes(whole.rstrip(b"\0")[:-3].ljust(len(whole), b"\0"))
    writer.restart()
    writer.write(1)
    with pytest.raises(SqlError, match="XX001"):
        follower.read()


def test_what_is_no_news_is_passed_over_in_steps_too(writer: Writer, tmp_path: Path) -> None:
    for _ in range(40):
        writer.write(5)
    position = writer.sequencer.visible
    writer.write(5)
    follower = LogFollower(tmp_path, frozenset((OWN,)), position)
    seen: list[int] = []
    before = None
    while follower.place != before:
        before = follower.place
        seen += numbers(follower.read(100))
    assert seen == list(range(200, 205))
    follower.close()

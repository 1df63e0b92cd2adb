"""Records that go past the operating system's memory: whole blocks, torn anywhere, and never beside other writes."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.values.errors import SqlError
from executor.commit import aio
from executor.commit.background import BackgroundFiles
from executor.commit.encoding import encode_record
from executor.commit.files import Files, Synced
from executor.commit.log import Log, Position
from tests.executor.logs import LONG, append, change, contents
from tests.executor.test_commit_background import Watcher
from tests.rig.beside import Beside
from tests.rig.process import wait_until

SEGMENT = 1 << 20
SECTOR = 512


class HeldDisk(Files):
    """A disk whose direct writes are held until told to land, or to land in part."""

    def __init__(self) -> None:
        self.held: list[tuple[int, bytes, int, Synced]] = []
        self.begun = self.syncs = 0

    def sync(self, descriptor: int) -> None:
        self.syncs += 1
        super().sync(descriptor)

    def open_direct(self, path: Path) -> int | None:
        return os.open(path, os.O_RDWR)

    def begin_write(self, descriptor: int, address: int, length: int, offset: int, synced: Synced) -> None:
        assert length % 4096 == offset % 4096 == 0
        self.begun += 1
        self.held.append((descriptor, ctypes.string_at(address, length), offset, synced))

    def tear(self, sectors: list[bool]) -> None:
        """Some sectors of what is held land, and nobody is told."""
        ((descriptor, data, offset, _),) = self.held
        for number in range(len(data) // SECTOR):
            if sectors[number % len(sectors)]:
                at = number * SECTOR
                os.pwrite(descriptor, data[at : at + SECTOR], offset + at)

    def land(self, error: OSError | None = None) -> None:
        """What is held lands, or fails."""
        if error is None:
            self.tear([True])
        self.held.pop()[3](error)


@pytest.fixture
def disk() -> HeldDisk:
    return HeldDisk()


@pytest.fixture
def log(tmp_path: Path, disk: HeldDisk) -> Iterator[Log]:
    log = Log(tmp_path / "log", SEGMENT, files=disk)
    append(log, 1, "first")  # fills the file
    log.sync()
    yield log
    while disk.held:
        disk.land()
    log.close()


def begin(log: Log, lsn: int, text: str, told: list[SqlError | None]) -> Position | SqlError | None:
    return log.append_at_once(encode_record(change(text)), lsn, told.append)


def durably(log: Log, lsn: int, text: str) -> Position | SqlError | None:
    return log.append_durably(encode_record(change(text)), lsn)


@pytest.mark.skipif(not aio.is_possible(), reason="not Linux")
def test_records_of_every_way_follow_each_other(tmp_path: Path) -> None:
    """By the kernel itself. Sizes go over blocks, beyond what the file was filled with and what the tail has room
    for."""
    files = BackgroundFiles()
    log = Log(tmp_path / "log", SEGMENT, files=files)
    watcher = Watcher(files)
    told: list[SqlError | None] = []
    written, waited = [], 0
    for lsn in range(1, 201):
        text = chr(65 + lsn % 26) * (lsn * 37 % 9000 if lsn % 50 else 70_000)
        if lsn % 7 == 0:
            append(log, lsn, text)
            if lsn % 2:
                log.sync()
        elif lsn % 3 == 0 and durably(log, lsn, text) is not None:
            waited += 1
        elif begin(log, lsn, text, told) is None:  # a roll
            append(log, lsn, text)
            log.sync()
        else:
            before = len(told)
            while len(told) == before:
                watcher.turn()
        written.append((lsn, text))
        if lsn % 40 == 0:
            assert contents(log) == written
    assert told.count(None) == len(told) > 60
    assert waited > 30
    log.close()
    log = Log(tmp_path / "log", SEGMENT)
    assert contents(log) == written
    log.close()


def test_small_records_go_direct_where_all_before_them_is_on_the_disk(log: Log, disk: HeldDisk) -> None:
    told: list[SqlError | None] = []
    assert isinstance(begin(log, 2, "direct", told), Position)
    assert (disk.begun, told) == (1, [])
    disk.land()
    assert told == [None]
    append(log, 3, "buffered")
    begin(log, 4, "syncs what is before it", told)
    assert (disk.begun, told) == (1, [None, None])
    log.append_at_once(encode_record(change("not synced")), 5)
    begin(log, 6, "syncs", told)
    assert disk.begun == 1
    begin(log, 7, "direct", told)
    disk.land()
    begin(log, 8, "large" * 20_000, told)
    assert (disk.begun, disk.held) == (2, [])
    assert [lsn for lsn, _ in contents(log)] == list(range(1, 9))


def test_a_record_is_there_for_readers_when_the_disk_has_it(log: Log, disk: HeldDisk) -> None:
    begin(log, 2, "x", told := [])
    assert [lsn for lsn, _ in contents(log)] == [1]
    assert begin(log, 3, "y", told) is None  # one at a time
    disk.land()
    assert [lsn for lsn, _ in contents(log)] == [1, 2]
    assert log.last_lsn == 2


def test_other_writers_wait_and_are_not_overtaken(log: Log, disk: HeldDisk) -> None:
    begin(log, 2, "x", told := [])
    other = Beside(append, log, 3, "other")
    wait_until(lambda: log._waiting > 0, LONG, "a writer that waits")
    assert contents(log) == [(1, "first")]
    disk.land()
    other.result()
    assert contents(log) == [(1, "first"), (2, "x"), (3, "other")]
    begin(log, 4, "after", told)  # syncs
    assert told == [None, None]
    assert disk.begun == 1


def test_no_write_begins_while_somebody_waits(log: Log) -> None:
    log._waiting = 1
    assert begin(log, 2, "x", []) is None
    log._waiting = 0


def test_who_waits_for_the_disk_finds_the_record_there(log: Log, disk: HeldDisk) -> None:
    assert isinstance(durably(log, 2, "x"), Position)
    assert contents(log) == [(1, "first"), (2, "x")]
    append(log, 3, "buffered")
    assert durably(log, 4, "what is before it is not on the disk") is None
    log.sync()
    begin(log, 5, "y", told := [])
    assert durably(log, 6, "one at a time") is None
    disk.land()
    assert told == [None]
    assert isinstance(durably(log, 7, "z"), Position)
    assert contents(log) == [(1, "first"), (2, "x"), (3, "buffered"), (5, "y"), (7, "z")]


def test_failed_write_that_was_waited_for_ends_the_log(
    log: Log, disk: HeldDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda *arguments: 512)
        refused = durably(log, 2, "x")
    assert isinstance(refused, SqlError)
    assert refused.sqlstate == "58030"
    assert isinstance(begin(log, 3, "y", []), SqlError)
    assert durably(log, 4, "z") is None
    assert contents(log) == [(1, "first")]


def test_failed_write_ends_the_log(log: Log, disk: HeldDisk) -> None:
    begin(log, 2, "x", told := [])
    disk.land(OSError(errno.EIO, "broken"))
    (error,) = told
    assert error is not None
    assert error.sqlstate == "58030"
    refused = begin(log, 3, "y", told)
    assert isinstance(refused, SqlError)
    with pytest.raises(SqlError):
        log.sync()
    assert contents(log) == [(1, "first")]


def test_without_direct_writes_records_are_synced(tmp_path: Path) -> None:
    assert BackgroundFiles().open_direct(tmp_path) is None
    (tmp_path / "short").write_bytes(b"less than a block")
    assert BackgroundFiles().open_direct(tmp_path / "short") is None
    assert (tmp_path / "short").read_bytes() == b"less than a block"
    log = Log(tmp_path / "log", SEGMENT)
    told: list[SqlError | None] = []
    for lsn in range(1, 10):
        where = begin(log, lsn, "x", told)
        if where is None:
            append(log, lsn, "x")
    assert told == [None] * 8
    assert [lsn for lsn, _ in contents(log)] == list(range(1, 10))
    log.close()


def test_a_write_that_cannot_begin_goes_the_other_way(
    log: Log, disk: HeldDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[SqlError | None] = []
    begin(log, 2, "direct", told)
    disk.land()

    def refuse(*arguments: object) -> None:
        raise OSError(errno.EAGAIN, "no room")

    with monkeypatch.context() as patch:
        patch.setattr(disk, "begin_write", refuse)
        begin(log, 3, "synced", told)
    begin(log, 4, "direct", told)
    disk.land()
    assert told == [None] * 3
    assert contents(log) == [(1, "first"), (2, "direct"), (3, "synced"), (4, "direct")]


def test_what_could_not_be_written_in_either_way_is_not_written_later(
    log: Log, disk: HeldDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[SqlError | None] = []
    begin(log, 2, "direct", told)
    disk.land()

    def refuse(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    write, failures = Files.write, iter([True])

    def fail_once(files: Files, *arguments: Any) -> None:
        if next(failures, False):
            refuse()
        write(files, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(disk, "begin_write", refuse)
        patch.setattr(HeldDisk, "write", fail_once)
        assert isinstance(begin(log, 3, "refused", told), SqlError)
    append(log, 4, "written")
    log.sync()
    begin(log, 5, "direct", told)
    disk.land()
    assert contents(log) == [(1, "first"), (2, "direct"), (4, "written"), (5, "direct")]


_SIZES = st.lists(st.one_of(st.integers(0, 300), st.integers(3900, 4100), st.integers(0, 9000)), max_size=12)


@settings(max_examples=40, deadline=None)
@given(_SIZES, st.integers(0, 9000), st.lists(st.booleans(), min_size=1, max_size=24))
def test_torn_anywhere_everything_acknowledged_is_there(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], last: int, sectors: list[bool]
) -> None:
    """Any sectors of the write under way may have landed: what was acknowledged is whole, and nothing else is found but
    the record under way."""
    folder = tmp_path_factory.mktemp("torn")
    disk = HeldDisk()
    log = Log(folder / "log", SEGMENT // 4, files=disk)
    told: list[SqlError | None] = []
    append(log, 1, "first")
    log.sync()
    written = [(1, "first")]
    for lsn, size in enumerate(sizes, 2):
        text = chr(65 + lsn % 26) * size
        if size % 2 or durably(log, lsn, text) is None:
            begin(log, lsn, text, told)
        if disk.held:
            disk.land()
        written.append((lsn, text))
    assert told == [None] * len(told)
    lsn = len(sizes) + 2
    begin(log, lsn, "?" * last, told)
    if disk.held:
        disk.tear(sectors)
    crashed = folder / "crashed"
    shutil.copytree(folder / "log", crashed)
    again = Log(crashed, SEGMENT // 4)
    assert contents(again) in (written, [*written, (lsn, "?" * last)])
    again.close()
    while disk.held:
        disk.land()
    log.close()
    shutil.rmtree(folder)

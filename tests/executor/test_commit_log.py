"""The log: appended records can be read again, whatever happens to the bytes after the last sync."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.values.errors import SqlError
from executor.commit.chain import Chain
from executor.commit.encoding.payloads import encode_data, encode_record
from executor.commit.files import Files
from executor.commit.log import Log, Position
from executor.commit.records import Spooled, StreamRows
from executor.commit.recovery import StreamReader
from executor.commit.segment import HEADER, RECORD
from tests.executor.logs import FullDisk, append, batch, change, contents

SEGMENT = 4096


class Watched(Files):
    """Remembers the bytes of each write."""

    def __init__(self) -> None:
        self.writes: list[tuple[int, int]] = []

    def write(self, descriptor: int, pieces: Sequence[bytes | memoryview], offset: int) -> None:
        self.writes.append((offset, sum(map(len, pieces))))
        super().write(descriptor, pieces, offset)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "log"


def test_records_span_segments_and_survive_reopening(folder: Path) -> None:
    log = Log(folder, SEGMENT)
    written = [(lsn, "x" * (lsn % 900)) for lsn in range(1, 60)]
    for lsn, text in written:
        append(log, lsn, text)
    assert contents(log) == written
    assert contents(log, 41) == written[41:]
    log.close()
    log = Log(folder, SEGMENT)
    assert log.last_lsn == 59
    assert contents(log) == written
    append(log, 60, "after")
    assert contents(log, 58) == [written[-1], (60, "after")]
    log.close()


def test_record_larger_than_a_segment(folder: Path) -> None:
    log = Log(folder, SEGMENT)
    texts = ["small", "L" * (3 * SEGMENT), "small again", "M" * (2 * SEGMENT)]
    for lsn, text in enumerate(texts, 1):
        append(log, lsn, text)
    log.close()
    log = Log(folder, SEGMENT)
    assert contents(log) == list(enumerate(texts, 1))
    log.close()


def test_group_that_spans_segments_is_written_whole(folder: Path) -> None:
    log = Log(folder, SEGMENT)
    outcome = log.append([(encode_record(change("g" * 500)), lsn) for lsn in range(1, 40)])
    assert all(isinstance(each, Position) for each in outcome)
    assert [lsn for lsn, _ in contents(log)] == list(range(1, 40))
    log.close()


@pytest.mark.slow
def test_large_write_goes_in_many_vectors(folder: Path) -> None:
    log = Log(folder)
    encoded = encode_record(tuple(StreamRows(stream, (batch(*range(100)),)) for stream in range(1, 20)))
    entries = [(encoded, lsn) for lsn in range(1, 101)]
    assert all(isinstance(each, Position) for each in log.append(entries))
    payload = b"".join(encoded.pieces)
    assert [(lsn, bytes(found)) for lsn, found in log.records(0)] == [(lsn, payload) for _, lsn in entries]
    log.close()


def test_small_records_are_written_where_the_file_was_filled_before(folder: Path) -> None:
    size, files = 1 << 20, Watched()
    log = Log(folder, size, files=files)
    places = [append(log, lsn, "small").offset for lsn in range(1, 2000)]
    record = places[1] - places[0]
    covered = HEADER
    for offset, length in files.writes[1:]:
        if offset + record > covered:
            assert (offset + length) % 4096 == 0
            assert length - record > 100_000
        else:
            assert length == record
        covered = max(covered, offset + length)
    files.writes.clear()
    append(log, 2000, "x" * 300_000)  # written and synced once, so zeros after it save nothing
    ((offset, length),) = files.writes
    assert length < 300_000 + 2 * record
    for lsn in range(2001, 2100):
        append(log, lsn, "y" * 5_000)
        offset, length = files.writes[-1]
        assert offset + length <= size
    assert [lsn for lsn, _ in contents(log)] == list(range(1, 2100))
    log.close()
    assert [lsn for lsn, _ in contents(Log(folder, size))] == list(range(1, 2100))


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[int], int]:
    sizes = draw(st.lists(st.integers(0, 700), min_size=1, max_size=25))
    return sizes, draw(st.integers(0, len(sizes)))


def _bounds(folder: Path) -> Iterator[tuple[Path, int, int]]:
    """Record boundaries (file, start, end) in log order."""
    log = Log(folder, SEGMENT)
    for each in log._segments:
        for found in each.records(HEADER, each.end):
            yield each.path, found.offset, found.end
    log.close()


@pytest.mark.slow
@settings(max_examples=60)
@given(histories(), st.data())
def test_crash_at_any_byte_keeps_a_prefix_with_all_that_was_acknowledged(
    tmp_path_factory: pytest.TempPathFactory, history: tuple[list[int], int], data: st.DataObject
) -> None:
    """Bytes after the last sync may be cut or overwritten at any place; bytes before it are not changed."""
    sizes, acknowledged = history
    folder = tmp_path_factory.mktemp("crash")
    log = Log(folder, SEGMENT)
    for lsn, size in enumerate(sizes, 1):
        append(log, lsn, chr(65 + lsn % 26) * size)
    log.close()
    bounds = list(_bounds(folder))
    last_file = bounds[-1][0]
    safe = [at for at, (path, _, _) in enumerate(bounds) if path != last_file]  # synced when the segment was changed
    acknowledged = max(acknowledged, len(safe))
    start = bounds[acknowledged - 1][2] if acknowledged > len(safe) else HEADER
    at = data.draw(st.integers(start, last_file.stat().st_size - 1), label="byte")
    _damage(last_file, at, data)
    log = Log(folder, SEGMENT)
    written = [(lsn, chr(65 + lsn % 26) * size) for lsn, size in enumerate(sizes, 1)]
    found = contents(log)
    assert found == written[: len(found)]
    assert acknowledged <= len(found) <= sum(end <= at or path != last_file for path, _, end in bounds)
    _assert_goes_on(log, folder, found)
    shutil.rmtree(folder)


def _damage(path: Path, at: int, data: st.DataObject) -> None:
    how = data.draw(st.sampled_from(["zero", "flip", "cut"]))
    if how == "cut":
        os.truncate(path, at)
        return
    content = bytearray(path.read_bytes())
    if how == "flip":
        content[at] ^= data.draw(st.integers(1, 255))
    else:  # at least one byte must change
        content[at] ^= 0xFF
        content[at + 1 :] = bytes(len(content) - at - 1)
    path.write_bytes(content)


def _assert_goes_on(log: Log, folder: Path, found: list[tuple[int, str]]) -> None:
    """Lost LSNs are used again, and nothing after the damage reappears."""
    expected = list(found)
    for _ in range(2):
        lsn = log.last_lsn + 1
        assert lsn == len(expected) + 1
        append(log, lsn, "new")
        expected.append((lsn, "new"))
        log.close()
        log = Log(folder, SEGMENT)
        assert contents(log) == expected
    log.close()


def test_damage_before_the_tail_is_an_error(folder: Path) -> None:
    log = Log(folder, SEGMENT)
    for lsn in range(1, 30):
        append(log, lsn, "x" * 500)
    log.close()
    first = min(folder.glob("*.log"))
    content = bytearray(first.read_bytes())
    content[HEADER + RECORD + 3] ^= 1
    first.write_bytes(content)
    with pytest.raises(SqlError) as caught:
        Log(folder, SEGMENT)
    assert caught.value.sqlstate == "XX001"


def test_missing_segment_is_an_error(folder: Path) -> None:
    log = Log(folder, SEGMENT)
    for lsn in range(1, 40):
        append(log, lsn, "x" * 500)
    log.close()
    sorted(folder.glob("*.log"))[1].unlink()
    with pytest.raises(SqlError) as caught:
        Log(folder, SEGMENT)
    assert caught.value.sqlstate == "XX001"


def test_segments_are_recycled_and_their_old_records_stay_unread(folder: Path) -> None:
    log = Log(folder, SEGMENT, pool=2)
    for lsn in range(1, 61):
        append(log, lsn, f"{lsn:0500}")
    files = len(list(folder.glob("*.log")))
    assert log.recycle(50) > 3
    assert len(list(folder.glob("*.log"))) < files
    pooled = {path.stat().st_ino for path in folder.glob("free-*")}
    assert len(pooled) == 2
    assert log.first_lsn < 50
    assert [lsn for lsn, _ in contents(log, 49)] == list(range(50, 61))
    with pytest.raises(SqlError) as caught:
        next(log.records(0))
    assert caught.value.sqlstate == "72000"
    for lsn in range(61, 71):
        append(log, lsn, f"{lsn:0500}")
    assert pooled & {path.stat().st_ino for path in folder.glob("*.log")}
    log.close()
    log = Log(folder, SEGMENT)
    assert [lsn for lsn, _ in contents(log, 49)] == list(range(50, 71))
    log.close()


def test_empty_log_keeps_its_lsn(folder: Path) -> None:
    log = Log(folder, SEGMENT)
    for lsn in range(1, 31):
        append(log, lsn, "x" * 500)
    log.close()
    log = Log(folder, SEGMENT)
    log.recycle(31)
    append(log, 31, "y")
    log.recycle(32)
    log.close()
    log = Log(folder, SEGMENT)
    assert log.last_lsn == 31
    assert contents(log, 30) == [(31, "y")]
    log.close()


def test_data_written_ahead_holds_its_segment(folder: Path) -> None:
    log = Log(folder, SEGMENT)
    ahead = batch(*range(20))
    reference = log.append_data(encode_data(ahead), 20)
    for lsn in range(1, 31):
        append(log, lsn, "x" * 500)
    assert log.recycle(31) == 0  # its transaction is still open
    log.append([(encode_record((Spooled(5, (reference,)),)), 31)])
    log.unpin((reference,))
    assert log.recycle(31) == 0  # LSN 31 needs it
    assert StreamReader(log, 5).spooled(reference) == (ahead,)
    log.close()
    log = Log(folder, SEGMENT)
    assert log.recycle(31) == 0  # also after a restart
    assert StreamReader(log, 5).spooled(reference) == (ahead,)
    append(log, 32, "x")
    assert log.recycle(32) > 0
    with pytest.raises(SqlError) as caught:
        StreamReader(log, 5).spooled(reference)
    assert caught.value.sqlstate == "72000"
    log.close()


def test_what_becomes_free_while_the_log_notes_what_it_forgets_stays(folder: Path) -> None:
    """A segment was the last one until then: the noted part ends before it."""
    log = Log(folder, SEGMENT)
    for lsn in range(1, 31):
        append(log, lsn, "x" * 500)
    noted: list[int] = []

    def note(upto: int) -> bool:
        noted.append(upto)
        for lsn in range(31, 61):
            append(log, lsn, "x" * 500)
        return True

    assert log.recycle(61, note) > 0
    assert [log.first_lsn] == noted
    assert log.recycle(61, lambda _: False) == 0
    assert [log.first_lsn] == noted
    assert log.recycle(61) > 0
    log.close()


def test_orphaned_data_is_ignored(folder: Path) -> None:
    log = Log(folder, SEGMENT)
    append(log, 1, "a")
    for _ in range(20):
        log.append_data(encode_data(batch(*range(100))), 100)
    append(log, 2, "b")
    log.close()
    log = Log(folder, SEGMENT)
    assert contents(log) == [(1, "a"), (2, "b")]
    append(log, 3, "c")
    assert log.recycle(2) > 1
    assert contents(log, 1) == [(2, "b"), (3, "c")]
    log.close()


def test_reader_holds_its_segments(folder: Path) -> None:
    log = Log(folder, SEGMENT)
    for lsn in range(1, 31):
        append(log, lsn, "x" * 500)
    reading = log.records(0)
    next(reading)
    assert log.recycle(31) == 0
    assert [lsn for lsn, _ in reading] == list(range(2, 31))
    assert log.recycle(31) > 0
    log.close()


def test_full_disk_fails_the_record_and_nothing_else(folder: Path) -> None:
    disk = FullDisk()
    log = Log(folder, SEGMENT, files=disk)
    append(log, 1, "x" * 3000)
    disk.refuse_files = True
    outcome = log.append([(encode_record(change(text)), lsn) for lsn, text in enumerate(["y" * 3000, "fits"], 2)])
    assert isinstance(outcome[0], SqlError)
    assert outcome[0].sqlstate == "53100"
    assert isinstance(outcome[1], Position)
    disk.refuse_files = False
    append(log, 4, "z" * 3000)
    log.sync()
    log.close()
    assert not list(folder.glob("new-*"))
    log = Log(folder, SEGMENT)
    assert [lsn for lsn, _ in contents(log)] == [1, 3, 4]
    log.close()


def test_what_stands_on_a_refused_record_is_refused_and_nothing_else(folder: Path) -> None:
    disk = FullDisk()
    log = Log(folder, SEGMENT, files=disk)
    append(log, 1, "x" * 3000)
    first, second = Chain(), Chain()
    disk.refuse_files = 1
    texts = ["L" * SEGMENT, "fits", "other", "same", "none", "L" * SEGMENT, "last"]
    chains = [first, None, second, first, None, second, second]
    entries = [(encode_record(change(text)), lsn) for lsn, text in enumerate(texts, 2)]
    outcomes = log.append(entries, chains)
    assert [isinstance(item, Position) for item in outcomes] == [False, True, True, False, True, False, False]
    disk.refuse_files = 0
    append(log, 9, "after")
    assert [text for _, text in contents(log, 1)] == ["fits", "other", "none", "after"]
    log.close()


def test_refused_write_leaves_nothing_behind(folder: Path) -> None:
    disk = FullDisk()
    log = Log(folder, SEGMENT, files=disk)
    append(log, 1, "a")
    disk.refuse_writes = 1
    outcome = log.append([(encode_record(change(text)), lsn) for lsn, text in enumerate("bcde", 2)])
    assert [each.sqlstate for each in outcome if isinstance(each, SqlError)] == ["53100"] * 4
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    crashed = Log(copy, SEGMENT)
    assert contents(crashed) == [(1, "a")]
    crashed.close()
    append(log, 6, "f")
    log.close()
    log = Log(folder, SEGMENT)
    assert contents(log) == [(1, "a"), (6, "f")]
    log.close()


def test_failed_sync_ends_the_log(folder: Path) -> None:
    disk = FullDisk()
    log = Log(folder, SEGMENT, files=disk)
    append(log, 1, "a")
    disk.refuse_syncs = True
    with pytest.raises(SqlError) as caught:
        log.sync()
    assert caught.value.sqlstate == "58030"
    disk.refuse_syncs = False
    (outcome,) = log.append([(encode_record(change("b")), 2)])
    assert isinstance(outcome, SqlError)
    log.close()


def test_stream_reader_numbers_a_records_parts(folder: Path) -> None:
    log = Log(folder, SEGMENT)
    reference = log.append_data(encode_data(batch(9)), 1)
    record = (
        StreamRows(5, (batch(1),)),
        StreamRows(6, (batch(2),)),
        Spooled(5, (reference,)),
        StreamRows(5, (batch(3), batch(4))),
    )
    log.append([(encode_record(record), 1), (encode_record((StreamRows(5, (batch(7),)),)), 2)])
    found = [
        (lsn, number, [value for each in batches for value in each.column(0).to_pylist()])
        for lsn, number, batches in StreamReader(log, 5).rows(0, 2)
    ]
    assert found == [(1, 0, [1]), (1, 1, [3, 4]), (2, 0, [7])]
    log.close()

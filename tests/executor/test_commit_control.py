"""References between files: the control file's marks, chained lines, and a log that is shorter than confirmed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.commit.checked_lines import End, add_lines, read_lines
from executor.commit.control import Control, Mark
from executor.commit.encoding.payloads import encode_record
from executor.commit.log import Log
from executor.commit.records import CatalogChange

SEGMENT = 1 << 14


def test_a_mark_is_there_again_though_the_file_was_not_closed(tmp_path: Path) -> None:
    control = Control(tmp_path / "control")
    assert (control.log.found, control.sequences.found) == (None, None)
    control.log.put(1, 100)
    control.log.put(2, 50)
    control.sequences.put(7, 8, 9)
    again = Control(tmp_path / "control")
    assert (again.log.found, again.sequences.found) == (Mark(2, 50), Mark(7, 8, 9))
    again.log.put(2, 60)
    control.close()
    assert Control(tmp_path / "control").log.found == Mark(2, 60)


@pytest.mark.parametrize("copy", [1, 2])
def test_of_a_mark_that_was_being_stored_the_one_before_counts(copy: int, tmp_path: Path) -> None:
    with closing(Control(tmp_path / "control")) as control:
        for end in (100, 200, 300):
            control.log.put(1, end)
    content = bytearray((tmp_path / "control").read_bytes())
    content[64 * copy + 20] ^= 1
    (tmp_path / "control").write_bytes(content)
    found = Control(tmp_path / "control").log.found
    assert found == Mark(1, 300 if copy == 1 else 200)


@pytest.mark.parametrize("content", [b"", b"x", b"MILLCTL1", b"MILLCTL1".ljust(4096, b"x")])
def test_a_control_file_that_is_none_confirms_nothing_and_is_made_anew(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "control").write_bytes(content)
    with closing(Control(tmp_path / "control")) as control:
        assert control.log.found is None
        control.log.put(1, 64)
        control.sequences.put(1, 1)
    assert Control(tmp_path / "control").log.found == Mark(1, 64)


def test_a_line_that_was_changed_ends_its_file() -> None:
    documents = [[number, "x" * number] for number in range(5)]
    data, ends = add_lines(End(), documents[:3])
    more, later = add_lines(ends[-1], documents[3:])
    whole = read_lines(data + more)
    assert (list(whole.documents), list(whole.ends), whole.is_plain) == (documents, ends + later, False)
    for place in range(len(data + more)):
        changed = bytearray(data + more)
        changed[place] ^= 1
        found = read_lines(bytes(changed))
        before = sum(end.length <= place for end in whole.ends)
        assert found.documents == whole.documents[:before]
        assert not found.confirms(whole.end)
    assert read_lines(data).confirms(ends[1])
    assert not read_lines(more).ends


def test_lines_of_earlier_versions_have_no_checksums() -> None:
    found = read_lines(b'[1, 2]\n[3, 4]\n[5, "tor')
    assert (found.documents, found.is_plain) == (([1, 2], [3, 4]), True)


def _fill(log: Log, count: int) -> None:
    for lsn in range(log.last_lsn + 1, log.last_lsn + count + 1):
        assert not isinstance(log.append([(encode_record((CatalogChange("x" * 100),)), lsn)])[0], SqlError)
        log.sync()


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda path, end: path.write_bytes(path.read_bytes()[: end - 20].ljust(SEGMENT, b"\0")), "is damaged"),
        (lambda path, end: path.write_bytes(path.read_bytes()[:100]), "is damaged"),
        (lambda path, end: path.write_bytes(b""), "does not begin with"),
        (lambda path, end: path.unlink(), "is missing"),
    ],
)
def test_a_log_that_is_shorter_than_confirmed(damage: Callable[[Path, int], None], why: str, tmp_path: Path) -> None:
    control = Control(tmp_path / "control")
    log = Log(tmp_path / "log", SEGMENT, control=control)
    _fill(log, 200)
    path = max((tmp_path / "log").glob("*.log"))
    assert path.name != "0000000000000001.log"
    damage(path, log._segments[-1].end)
    with pytest.raises(SqlError, match=why) as raised:
        Log(tmp_path / "log", SEGMENT, control=Control(tmp_path / "control"))
    assert raised.value.sqlstate == "XX001"
    assert path.name in raised.value.message


def test_unacknowledged_records_may_be_torn(tmp_path: Path) -> None:
    """Records after the last sync may be damaged by a power cut; the log continues, and is confirmed again."""
    log = Log(tmp_path / "log", SEGMENT, control=Control(tmp_path / "control"))
    _fill(log, 20)
    end = log._segments[-1].end
    log.append([(encode_record((CatalogChange("x" * 100),)), 21)])
    (path,) = (tmp_path / "log").glob("*.log")
    shutil.copytree(tmp_path / "log", tmp_path / "torn")
    shutil.copy(tmp_path / "control", tmp_path / "control.torn")
    content = path.read_bytes()
    (tmp_path / "torn" / path.name).write_bytes(content[: end + 20].ljust(SEGMENT, b"\0"))
    again = Log(tmp_path / "torn", SEGMENT, control=Control(tmp_path / "control.torn"))
    assert again.last_lsn == 20
    _fill(again, 5)
    third = Log(tmp_path / "torn", SEGMENT, control=Control(tmp_path / "control.torn"))
    assert third.last_lsn == 25
    for each in (log, again, third):
        each.close()

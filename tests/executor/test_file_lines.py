"""Lines of text files, whatever their portions are."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.errors import SqlError
from executor.files import lines
from executor.files.lines import count_lines, line_end


@pytest.fixture(params=[1, 2, 3, 7, 1 << 22])
def _portions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_PORTION", request.param)


@pytest.mark.usefixtures("_portions")
@pytest.mark.parametrize(
    ("text", "quotes", "count", "end"),
    [
        ("", True, 0, None),
        ("\r\n\n", True, 0, None),
        ("a\r\nb\nc\rd", True, 3, None),
        ('"a\nb",1\r\n\r\n"c"', True, 2, "\r\n"),
        ('"a\nb",1\r\n\r\n"c"', False, 3, "\r\n"),
        ('"a\r\nb"\n"\n"\n', True, 2, "\n"),
        ('"a\nb"\r"\n"\r', True, 1, "\r"),
        ('"a\n""\n"', True, 1, "\n"),
    ],
)
def test_lines(tmp_path: Path, text: str, quotes: bool, count: int, end: str | None) -> None:
    path = tmp_path / "a"
    path.write_bytes(text.encode())
    assert (count_lines(str(path), quotes), line_end(str(path))) == (count, end)


def test_lines_that_end_in_several_ways_beside_fields_of_several(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b'"a\nb"\r\nc\nd\n')
    with pytest.raises(SqlError, match="22P04"):
        line_end(str(path))

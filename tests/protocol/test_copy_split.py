"""Cutting COPY's data: in linear time, however long a line is and whatever it contains."""

from __future__ import annotations

import random
import tracemalloc
from itertools import pairwise

import pytest

from catalog.values.errors import SqlError
from protocol.copy import split as splitting
from protocol.copy.fast import _escapes_structure
from protocol.copy.format import CopyFormat
from protocol.copy.split import Block, LineSplitter
from tests.embedded.test_long_statements import calls_of

TEXT, CSV = CopyFormat(), CopyFormat("csv", ",", "")
ESCAPED = CopyFormat("csv", ",", "", escape="\\")


def cut(format_: CopyFormat, data: bytes, size: int, portion: int) -> list[Block]:
    splitter = LineSplitter(format_, size)
    blocks = [block for at in range(0, len(data), portion) for block in splitter.split(data[at : at + portion])]
    return blocks + splitter.finish()


@pytest.mark.parametrize("format_", [TEXT, CSV, ESCAPED])
def test_a_long_line_is_looked_at_again_when_it_is_twice_as_long(format_: CopyFormat) -> None:
    splitter, looks = LineSplitter(format_, 16), 0
    for _ in range(1024):
        looks += splitter.is_due(16)
        assert splitter.split(b'"' + b"x" * 15 if format_ is not TEXT else b"x" * 16) == []
    assert looks <= 12
    assert splitter.finish()[0].data.endswith(b"xxx")


@pytest.mark.parametrize(
    ("format_", "piece", "end"),
    [
        (CSV, b"\n", b'"\n'),
        (CSV, b'""\n', b'"\n'),
        (CSV, b"\n\\.\n", b'"\n'),
        (ESCAPED, b'\\"\n', b'"\n'),
        (CSV, b"\r\n", b'"\r\n'),
    ],
)
def test_quoted_ends_of_lines_cost_no_call_each(format_: CopyFormat, piece: bytes, end: bytes) -> None:
    def calls(count: int) -> int:
        return calls_of(lambda: cut(format_, b'"' + piece * count + end, 64, 1 << 20))

    once, twice = calls(2000), calls(4000)
    assert twice - once < 2000 or piece == b"\n\\.\n"


@pytest.mark.parametrize("format_", [TEXT, CSV, ESCAPED])
def test_blocks_are_the_same_lines_however_the_data_come(format_: CopyFormat) -> None:
    draw = random.Random(1)
    pieces = [b"a", b",", b'""', b"\n", b"\\", b'"x\ny"', b"\\\n", b'\\"', b"\n\\.x\n"]
    for _ in range(300):
        data = b"".join(draw.choice(pieces) for _ in range(draw.randrange(40)))
        (whole,) = cut(format_, data, 1 << 20, 1 << 20) or [Block(b"", 1)]
        for size, portion in ((1, 1), (7, 3), (20, 50)):
            parts = cut(format_, data, size, portion)
            assert b"".join(block.data for block in parts) == whole.data
            for block, following in pairwise(parts):
                assert following.line > block.line


def test_a_line_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "LONGEST", 100)
    splitter = LineSplitter(TEXT, 16)
    with pytest.raises(SqlError) as caught:
        for _ in range(100):
            splitter.split(b"x" * 10)
    assert caught.value.sqlstate == "54000"


def test_a_run_of_backslashes_takes_no_memory() -> None:
    """The run is searched once from its beginning, and no place in it is remembered for backtracking."""
    run = b"\\" * (1 << 20)
    tracemalloc.start()
    try:
        assert not _escapes_structure(run, "\t")
        assert _escapes_structure(run + b"\\\t", "\t")
        assert tracemalloc.get_traced_memory()[1] < 4 * len(run)
    finally:
        tracemalloc.stop()

"""Rows of binary COPY found together: the same rows as in a loop, for any bytes."""

from __future__ import annotations

from struct import pack, unpack_from

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.values.errors import SqlError
from catalog.values.types import by_name
from protocol.copy import CopyFormat, CopyReader
from protocol.copy.binary import SIGNATURE, TRAILER
from protocol.copy.chain import find_rows
from tests.rig.sampling import examples

BYTEA, INT4 = by_name("bytea"), by_name("int4")
Field = bytes | None

#: Values that look like rows, parts of them, or a trailer.
VALUES = st.one_of(
    st.none(),
    st.binary(max_size=6),
    st.sampled_from([b"\0\2", b"\0\2\0\0\0\0\xff\xff\xff\xff", b"\0\2\0\0\0\1x", b"\xff\xff", b"\0" * 12, b"\0\2" * 7]),
)
ROWS = st.lists(st.tuples(VALUES, VALUES), max_size=12)


def framed(row: tuple[Field, ...]) -> bytes:
    """A row's bytes."""
    fields = (pack(">i", -1) if value is None else pack(">i", len(value)) + value for value in row)
    return pack(">h", len(row)) + b"".join(fields)


def walk(data: bytes, position: int, width: int) -> tuple[list[list[tuple[int, int]]], int]:
    """The slow and obvious way: fields (start, length) of each whole row, and the end of the last row."""
    rows: list[list[tuple[int, int]]] = []
    while data[position : position + 2] == pack(">h", width):
        place, fields = position + 2, []
        while len(fields) < width and place + 4 <= len(data):
            (length,) = unpack_from(">i", data, place)
            fields.append((place + 4, length))
            place += 4 + max(length, 0)
            if length < -1:
                return rows, position
        if len(fields) < width or place > len(data):
            break
        rows.append(fields)
        position = place
    return rows, position


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(
    st.lists(st.one_of(ROWS.map(lambda rows: b"".join(map(framed, rows))), st.binary(max_size=9)), max_size=4),
    st.integers(0, 3),
    st.integers(0, 9),
)
def test_found_is_walked(pieces: list[bytes], width: int, start: int) -> None:
    data = b"".join(pieces)
    start = min(start, len(data))
    starts, lengths, end = find_rows(data, start, width)
    expected, expected_end = walk(data, start, width)
    found = [list(zip(*each, strict=True)) for each in zip(starts.T.tolist(), lengths.T.tolist(), strict=True)]
    assert (found, end) == (expected, expected_end)


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(ROWS, st.integers(1, 40), st.integers(1, 60), st.booleans())
def test_any_portions_and_blocks_give_the_rows(
    rows: list[tuple[Field, Field]], portion: int, block: int, ends: bool
) -> None:
    data = SIGNATURE + bytes(8) + b"".join(map(framed, rows)) + (TRAILER if ends else b"")
    reader = CopyReader([BYTEA, BYTEA], ["a", "b"], CopyFormat("binary"), "t", block_size=block)
    batches = [batch for at in range(0, len(data), portion) for batch in reader.feed(data[at : at + portion])]
    batches += reader.finish()
    assert [tuple(row.values()) for batch in batches for row in batch.to_pylist()] == rows


@pytest.mark.parametrize("portion", [1, 50, 10_000])
@pytest.mark.parametrize(
    ("behind", "message", "where"),
    [
        (b"\0\3", "row field count is 3, expected 2", "line 101"),
        (b"\0\2\0\0\0\4\0\0\0\1\xff\xff\xff\xfe", "invalid field size", "line 101, column b"),
        (b"\0\2\0\0\0\4\0\0\0\1\0\0\0\x09abc", "unexpected EOF in COPY data", "line 101, column b"),
        (b"\0\2\0\0\0\4\0", "unexpected EOF in COPY data", "line 101, column a"),
        (b"\0\2", "unexpected EOF in COPY data", "line 101, column a"),
        (b"\xff\xff\0", "received copy data after EOF marker", "line 101"),
    ],
)
def test_what_is_wrong_behind_rows_comes_after_what_is_wrong_in_them(
    behind: bytes, message: str, where: str, portion: int
) -> None:
    good, bad = framed((b"\0\0\0\1", b"x" * 30)), framed((b"\0", b""))
    for rows, expected in (
        (good * 100, (message, f"COPY t, {where}")),
        (good * 50 + bad + good * 49, ("incorrect binary data format for type integer", "COPY t, line 51, column a")),
    ):
        data = SIGNATURE + bytes(8) + rows + behind
        reader = CopyReader([INT4, BYTEA], ["a", "b"], CopyFormat("binary"), "t", block_size=1000)
        with pytest.raises(SqlError) as caught:
            for at in range(0, len(data), portion):
                reader.feed(data[at : at + portion])
            reader.finish()
        assert (caught.value.message, caught.value.where) == expected


def test_a_single_byte_at_the_end_is_an_end() -> None:
    """As in PostgreSQL, where an incomplete field count means the end."""
    reader = CopyReader([INT4], ["a"], CopyFormat("binary"), "t")
    assert reader.feed(SIGNATURE + bytes(8) + framed((b"\0\0\0\7",)) + b"\0") == []
    assert [batch.to_pylist() for batch in reader.finish()] == [[{"a": 7}]]

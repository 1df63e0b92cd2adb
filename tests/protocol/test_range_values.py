"""Ranges and multiranges: their canonical form and order, encoding and decoding, and invalid ones."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.values import multiranges, ranges
from catalog.values.errors import SqlError
from catalog.values.ranges import Bounds, canonical, unpacked
from catalog.values.ranges import packed as range_bytes
from catalog.values.types import RANGES, SqlType, by_name
from protocol.values.codec import ColumnError
from protocol.values.registry import decode_binary_column, decode_text_column, decode_value, encode_binary, encode_text
from tests.protocol.generated import bounds_of, column, same


@pytest.mark.parametrize("name", RANGES)
@settings(max_examples=25)
@given(data=st.data())
def test_ranges_are_canonical_and_ordered_by_their_bytes(name: str, data: st.DataObject) -> None:
    """range_cmp(): the empty range comes first; others are sorted by lower bounds, then by upper ones."""
    kind = by_name(name)
    found = [canonical(kind, bounds) for bounds in data.draw(st.lists(bounds_of(kind), min_size=2, max_size=6))]

    def key(bounds: Bounds | None) -> tuple[Any, ...]:
        if bounds is None:
            return (0,)
        lower = (0, 0, 0) if bounds.lower is None else (1, bounds.lower, not bounds.with_lower)
        upper = (1, 0, 0) if bounds.upper is None else (0, bounds.upper, bounds.with_upper)
        return (1, lower, upper)

    carried = [range_bytes(kind, bounds) for bounds in found]
    assert [unpacked(kind, item) for item in carried] == found
    assert [canonical(kind, bounds) for bounds in found if bounds is not None] == [item for item in found if item]
    assert sorted(carried) == [range_bytes(kind, bounds) for bounds in sorted(found, key=key)]
    texts = encode_text(column(carried, kind), kind, "UTC")
    assert same(decode_text_column(texts, kind), column(carried, kind))


@pytest.mark.parametrize(
    ("name", "text", "sqlstate"),
    [
        ("int4range", "[2,1]", "22000"),
        ("int4range", "[1,2147483647]", "22003"),
        ("int8range", "(9223372036854775807,)", "22003"),
        ("numrange", "[3,1)", "22000"),
        ("daterange", "[infinity,2020-01-01]", "22000"),
        ("daterange", "[2020-13-01,)", "22008"),
        ("int4range", "[1,2", "22P02"),
        ("int4range", '["",2)', "22P02"),
        ("int4range", "[a,2)", "22P02"),
    ],
)
def test_wrong_ranges(name: str, text: str, sqlstate: str) -> None:
    kind = by_name(name)
    with pytest.raises(SqlError) as alone:
        decode_value(text.encode(), kind, 0)
    with pytest.raises(ColumnError) as among:
        decode_text_column(pa.array([None, "empty", text, "(,)"]), kind)
    assert alone.value.sqlstate == among.value.error.sqlstate == sqlstate
    assert among.value.index == 2


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x02\0\0\0\4\0\0", b"\x18x", b"\1x", b"\x0a\xff\xff\xff\xff"])
def test_bad_binary_ranges(data: bytes) -> None:
    kind = by_name("int4range")
    with pytest.raises(SqlError) as alone:
        decode_value(data, kind, 1)
    with pytest.raises(ColumnError) as among:
        decode_binary_column(pa.array([None, b"\1", data]), kind)
    assert alone.value.sqlstate == among.value.error.sqlstate == "22P03"
    assert among.value.index == 2


@pytest.mark.parametrize("name", ["int4multirange", "nummultirange"])
@settings(max_examples=50)
@given(data=st.data())
def test_multiranges_are_unions(name: str, data: st.DataObject) -> None:
    """A column of ranges in any order gives the same multiranges as each row's ranges alone; a row's value is within it
    or not."""
    kind = by_name(name)
    single = multiranges.range_of(kind)
    few = st.integers(-3, 12).map(lambda number: number * (1 if name == "int4multirange" else 10**18))
    bounds = st.builds(Bounds, st.none() | few, st.none() | few, st.booleans(), st.booleans())
    ordered = bounds.filter(lambda item: item.lower is None or item.upper is None or item.lower <= item.upper)
    parts = ordered.map(lambda item: range_bytes(single, canonical(single, item)))
    rows = data.draw(st.lists(st.lists(parts, max_size=6), min_size=1, max_size=4))
    carried = [multiranges.made(kind, each) for each in rows]
    for each, found in zip(rows, carried, strict=True):
        kept = multiranges.parts_of(kind, found)
        half = len(kept[0]) // 2 if kept else 0
        assert all(before[half:] < after[:half] for before, after in pairwise(kept))
        for part in each:
            assert part[0] == 0 or any(one[:half] <= part[:half] and part[half:] <= one[half:] for one in kept)
    texts = ["{" + ", ".join(ranges.written(single, part) for part in each) + "}" for each in rows]
    assert decode_text_column(pa.array(texts), kind).to_pylist() == carried
    assert [decode_value(text.encode(), kind, 0) for text in texts] == carried
    fields = [[field for part in each for field in _sent(part, single)] for each in rows]
    binaries = [struct.pack(">i", len(each)) + b"".join(sent) for each, sent in zip(rows, fields, strict=True)]
    assert decode_binary_column(pa.array([None, *binaries], pa.binary()), kind).to_pylist() == [None, *carried]
    assert [decode_value(binary, kind, 1) for binary in binaries] == carried


def _sent(part: bytes, kind: SqlType) -> tuple[bytes, bytes]:
    (field,) = encode_binary(column([part], kind), kind).to_pylist()
    return struct.pack(">i", len(field)), field


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("", "22P02"),
        ("[1,2)", "22P02"),
        ("{,}", "22P02"),
        ("{[1,2),}", "22P02"),
        ("{[1,2)", "22P02"),
        ("{[1,2)}x", "22P02"),
        ("{[1,2) [3,4)}", "22P02"),
        ("{[1,2),[a,2)}", "22P02"),
        ("{[1,2),[2,1)}", "22000"),
        ("{[1,2),[1,2147483647]}", "22003"),
    ],
)
def test_wrong_multiranges(text: str, sqlstate: str) -> None:
    kind = by_name("int4multirange")
    with pytest.raises(SqlError) as alone:
        decode_value(text.encode(), kind, 0)
    with pytest.raises(ColumnError) as among:
        decode_text_column(pa.array([None, "{[1,2),[5,6)}", text, "{(,)}"]), kind)
    assert alone.value.sqlstate == among.value.error.sqlstate == sqlstate
    assert among.value.index == 2


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\xff\xff\xff\xff", b"\0\0\0\1", b"\0\0\0\1\0\0\0\2\1", b"\0\0\0\0x", b"\0\0\0\1\0\0\0\0"]
)
def test_bad_binary_multiranges(data: bytes) -> None:
    kind = by_name("int4multirange")
    with pytest.raises(SqlError) as alone:
        decode_value(data, kind, 1)
    with pytest.raises(ColumnError) as among:
        decode_binary_column(pa.array([None, b"\0\0\0\1\0\0\0\1\1", data, b"\0\0\0\0"]), kind)
    assert alone.value.sqlstate == among.value.error.sqlstate == "22P03"
    assert among.value.index == 2

"""Columns there and back: every type, both formats, with nulls and in slices; psycopg's codecs as judges."""

from __future__ import annotations

import datetime as dt
import json
import struct
import uuid
from decimal import Decimal
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import Format

from catalog import multiranges, ranges
from catalog.errors import SqlError
from catalog.moments import INFINITE_DAYS, INFINITE_MICROSECONDS
from catalog.ranges import Bounds, canonical, unpacked
from catalog.ranges import packed as range_bytes
from catalog.shapes import shaped as shaped_as
from catalog.types import (
    BOOL,
    MULTIRANGES,
    QUOTIENT,
    RANGES,
    SPANS,
    TYPES,
    UNCONSTRAINED,
    Composite,
    SqlType,
    array,
    by_name,
    numeric,
    row,
    shaped,
)
from catalog.zoned_times import DAY, LIMIT, packed
from protocol.values.codec import ColumnError
from protocol.values.jsons import canonical_jsonb
from protocol.values.registry import (
    decode_binary_column,
    decode_text_column,
    decode_value,
    encode_binary,
    encode_column,
    encode_text,
)

ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "+05:30"]
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
MOMENTS = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
INTERVALS = st.tuples(
    st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6), st.integers(-(9 * 10**15), 9 * 10**15)
)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(lambda unscaled: Decimal(unscaled).scaleb(-scale, context=None))


#: Numbers of the bounds of ranges whose canonical forms have values of their own again.
NUMBERS = {
    "int4range": st.integers(-(2**31), 2**31 - 2),
    "int8range": st.integers(-(2**63), 2**63 - 2),
    "numrange": st.integers(-(10**38) + 1, 10**38 - 1),
    "daterange": st.integers(-719_162, 2_932_895) | st.sampled_from((INFINITE_DAYS, -INFINITE_DAYS)),
    "tsrange": st.integers(-(10**16), 10**17) | st.sampled_from((INFINITE_MICROSECONDS, -INFINITE_MICROSECONDS)),
    "tstzrange": st.integers(-(10**16), 10**17) | st.sampled_from((INFINITE_MICROSECONDS, -INFINITE_MICROSECONDS)),
}


def bounds_of(kind: SqlType) -> st.SearchStrategy[Bounds]:
    """Bounds in order."""
    number = st.none() | NUMBERS[kind.name]
    pairs = st.tuples(number, number).map(
        lambda pair: pair if pair[0] is None or pair[1] is None else (min(pair), max(pair))
    )
    return st.builds(lambda pair, lower, upper: Bounds(*pair, lower, upper), pairs, st.booleans(), st.booleans())


def ranges_of(kind: SqlType) -> st.SearchStrategy[bytes]:
    """Ranges as they are carried."""
    return bounds_of(kind).map(lambda bounds: range_bytes(kind, canonical(kind, bounds)))


def multiranges_of(kind: SqlType) -> st.SearchStrategy[bytes]:
    """Multiranges as they are carried."""
    return st.lists(ranges_of(multiranges.range_of(kind)), max_size=4).map(partial(multiranges.made, kind))


SCALARS: dict[str, tuple[SqlType, st.SearchStrategy[Any]]] = {
    "bool": (by_name("bool"), st.booleans()),
    "int2": (by_name("int2"), st.integers(-(2**15), 2**15 - 1)),
    "int4": (by_name("int4"), st.integers(-(2**31), 2**31 - 1)),
    "int8": (by_name("int8"), st.integers(-(2**63), 2**63 - 1)),
    "oid": (by_name("oid"), st.integers(0, 2**32 - 1)),
    "float4": (by_name("float4"), st.floats(width=32)),
    "float8": (by_name("float8"), st.floats()),
    "numeric(15,2)": (numeric(15, 2), decimals(15, 2)),
    "numeric": (by_name("numeric"), decimals(28, 18)),
    "numeric(38,0)": (numeric(38, 0), decimals(28, 0)),
    "numeric(3,3)": (numeric(3, 3), decimals(3, 3)),
    "text": (by_name("text"), TEXT),
    "varchar": (by_name("varchar"), TEXT),
    "name": (by_name("name"), TEXT),
    "bpchar(14)": (SqlType("bpchar", (14,)), TEXT.map(lambda text: text.rstrip(" "))),
    "bytea": (by_name("bytea"), st.binary(max_size=12)),
    "uuid": (by_name("uuid"), st.uuids().map(str)),
    "json": (by_name("json"), JSON_VALUES.map(json.dumps)),
    "jsonb": (by_name("jsonb"), JSON_VALUES.map(json.dumps).map(canonical_jsonb)),
    "date": (by_name("date"), st.dates()),
    "time": (by_name("time"), st.times()),
    "timestamp": (by_name("timestamp"), MOMENTS),
    "timestamptz": (by_name("timestamptz"), MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC))),
    "timetz": (by_name("timetz"), st.builds(packed, st.integers(0, DAY), st.integers(1 - LIMIT, LIMIT - 1))),
    "interval": (by_name("interval"), INTERVALS),
    **{name: (by_name(name), ranges_of(by_name(name))) for name in RANGES},
    **{name: (by_name(name), multiranges_of(by_name(name))) for name in MULTIRANGES},
}


def arrow_value(value: Any) -> Any:
    """A literal's value as pyarrow takes it."""
    if isinstance(value, list):
        return [arrow_value(item) for item in value]
    return pa.MonthDayNano([*value[:2], value[2] * 1000]) if isinstance(value, tuple) else value


def column(values: list[Any], type_: SqlType) -> pa.Array:
    return pa.array([arrow_value(value) for value in values], type_.arrow)


def as_list(value: object) -> list[object]:
    """An array's value as pyarrow takes it."""
    assert isinstance(value, tuple)
    return list(value)


def same(left: pa.Array, right: pa.Array) -> bool:
    """Equality that takes NaN for itself, and -0 for 0."""
    return left.type == right.type and repr(left.to_pylist()) == repr(right.to_pylist())


@pytest.mark.parametrize("name", SCALARS)
@settings(max_examples=25)
@given(data=st.data())
def test_column_there_and_back(name: str, data: st.DataObject) -> None:
    type_, values = SCALARS[name]
    zone = data.draw(st.sampled_from(ZONES))
    items = data.draw(st.lists(st.none() | values, max_size=8))
    before = data.draw(st.integers(0, 2))
    array_ = column([*items[:before], *items], type_)[len(items[:before]) :]
    texts = encode_text(array_, type_, zone)
    binaries = encode_binary(array_, type_)
    assert texts.type == pa.string()
    assert same(decode_text_column(texts, type_, zone), array_)
    assert same(decode_binary_column(binaries.cast(pa.binary()), type_), array_)
    for item, text, binary in zip(items, texts.to_pylist(), binaries.to_pylist(), strict=True):
        if item is None:
            assert text is binary is None
            continue
        assert same(column([decode_value(text.encode(), type_, 0, zone)], type_), column([item], type_))
        assert same(column([decode_value(binary, type_, 1, zone)], type_), column([item], type_))


@pytest.mark.parametrize("name", SCALARS)
@settings(max_examples=12)
@given(data=st.data())
def test_array_there_and_back(name: str, data: st.DataObject) -> None:
    element, values = SCALARS[name]
    type_ = array(element)
    items = data.draw(st.lists(st.none() | st.lists(st.none() | values, max_size=4), max_size=5))
    whole = column([[None], *items], type_)[1:]
    texts, binaries = encode_text(whole, type_), encode_binary(whole, type_)
    assert same(decode_text_column(texts, type_), whole)
    assert same(decode_binary_column(binaries, type_), whole)
    for item, text, binary in zip(items, texts.to_pylist(), binaries.to_pylist(), strict=True):
        if item is not None:
            assert same(column([as_list(decode_value(text.encode(), type_, 0))], type_), column([item], type_))
            assert same(column([as_list(decode_value(binary, type_, 1))], type_), column([item], type_))


@settings(max_examples=60)
@given(st.data())
def test_row_there_and_back(data: st.DataObject) -> None:
    """Rows of any fields, also in arrays and in rows, with NULLs and slices."""
    names = data.draw(st.lists(st.sampled_from(sorted(SCALARS)), min_size=1, max_size=4))
    kinds = [SCALARS[name][0] for name in names]
    fields = st.tuples(*(st.none() | SCALARS[name][1] for name in names))
    inner = row(Composite(1, "inner", tuple((f"a{place}", kind) for place, kind in enumerate(kinds))))
    type_ = row(Composite(3, "outer", (("one", inner), ("several", array(inner)))))
    values = data.draw(st.lists(st.none() | st.tuples(st.none() | fields, st.none() | st.lists(st.none() | fields))))

    def arrow(value: Any) -> Any:
        if value is None:
            return None
        pairs = zip(value, kinds, strict=True)
        return {f"f{place}": arrow_value(item) for place, (item, _) in enumerate(pairs, 1)}

    rows = [
        value and {"f1": arrow(value[0]), "f2": None if value[1] is None else list(map(arrow, value[1]))}
        for value in values
    ]
    array_ = pa.array([None, *rows], type_.arrow)[1:]
    assert same(decode_text_column(encode_text(array_, type_, "UTC"), type_, "UTC"), array_)
    assert same(decode_binary_column(encode_binary(array_, type_).cast(pa.binary()), type_), array_)


SIZES: Final = st.lists(st.integers(1, 3), min_size=1, max_size=4)


@st.composite
def shaped_values(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> dict[str, list[Any]]:
    """An array of any dimensions and bounds, as Arrow carries it."""
    sizes = draw(SIZES)
    lowers = draw(st.lists(st.integers(-9, 9), min_size=len(sizes), max_size=len(sizes)))
    count = prod(sizes)
    items = draw(st.lists(st.none() | values, min_size=count, max_size=count))
    return {"items": items, "shape": list(shaped_as(sizes, lowers))}


@pytest.mark.parametrize("name", ["int4", "text", "timetz", "numeric(15,2)", "timestamptz"])
@settings(max_examples=25)
@given(data=st.data())
def test_shaped_array_there_and_back(name: str, data: st.DataObject) -> None:
    element, values = SCALARS[name]
    type_ = shaped(element)
    empty = st.just({"items": [], "shape": [0]})
    items = data.draw(st.lists(st.none() | empty | shaped_values(values), max_size=5))
    whole = pa.array([None, *items], type_.arrow)[1:]
    texts, binaries = encode_text(whole, type_), encode_binary(whole, type_)
    assert same(decode_text_column(texts, type_), whole)
    assert same(decode_binary_column(binaries, type_), whole)
    for item, text, binary in zip(items, texts.to_pylist(), binaries.to_pylist(), strict=True):
        if item is not None:
            given = (tuple(item["items"]), tuple(item["shape"]))
            assert decode_value(text.encode(), type_, 0) == decode_value(binary, type_, 1) == given


@pytest.mark.parametrize("name", ["int4", "text"])
@settings(max_examples=25)
@given(data=st.data())
def test_shaped_arrays_that_are_lists_are_written_as_these(name: str, data: st.DataObject) -> None:
    element, values = SCALARS[name]
    type_ = shaped(element)
    lists = data.draw(st.lists(st.none() | st.lists(st.none() | values, max_size=3), max_size=5))
    items = [None if item is None else {"items": item, "shape": list(shaped_as([len(item)]))} for item in lists]
    bounded = {"items": [None], "shape": [1, 1, 0]}
    alone, beside = (pa.array([None, *found], type_.arrow)[1:] for found in (items, [*items, bounded]))
    for encode in (encode_text, encode_binary):
        assert encode(alone, type_).equals(encode(pa.array(lists, array(element).arrow), array(element)))
        assert encode(alone, type_).to_pylist() == encode(beside, type_).to_pylist()[:-1]


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        *(
            (text, "22P02")
            for text in ("{{1,2},{3}}", "{{1},2}", "{1", "{1,}", "{,1}", "{{1}{2}}", "{1}x", "[1:3]={1}")
        ),
        ("[2:1]={}", "2202E"),
        ("{{{{{{{1}}}}}}}", "54000"),
        ("{{x}}", "22P02"),
    ],
)
def test_bad_shaped_arrays(text: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as caught:
        decode_value(text.encode(), shaped(by_name("int4")), 0)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize("scale", [2, 390, 399, 401, 4097, 16383])
def test_numeric_with_any_scale(scale: int) -> None:
    data = struct.pack(">hhHhhh", 2, 0, 0, scale, 5000, 1234)
    assert decode_value(data, SqlType("numeric", (38, 20)), 1) == Decimal("5000.12" if scale == 2 else "5000.1234")


@pytest.mark.parametrize(
    ("data", "sqlstate"),
    [
        (b"", "22P03"),
        (b"\0\0\0\2", "42804"),
        (b"\0\0\0\1\0\0\0\x19\0\0\0\1\0", "42804"),
        (b"\0\0\0\1\0\0\0\x17\0\0\0\4\0", "22P03"),
        (b"\0\0\0\1\0\0\0\x17\0\0\0\4\0\0\0\1x", "22P03"),
    ],
)
def test_bad_binary_rows(data: bytes, sqlstate: str) -> None:
    type_ = row(Composite(1, "one", (("a", by_name("int4")),)))
    with pytest.raises(SqlError) as caught:
        decode_value(data, type_, 1)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize("name", RANGES)
@settings(max_examples=25)
@given(data=st.data())
def test_ranges_are_canonical_and_ordered_by_their_bytes(name: str, data: st.DataObject) -> None:
    """range_cmp(): the empty range first, then by lower bounds, then by upper ones."""
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
    """A column of ranges in any order makes what each row's ranges make alone; a row's value is within it or not."""
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


#: Types whose values psycopg loads as the Python values that we encode.
JUDGED = [name for name in SCALARS if name not in ("json", "jsonb", "interval", "timetz", "bpchar(14)", *SPANS)]


@pytest.mark.parametrize("name", JUDGED)
@pytest.mark.parametrize("format_", [0, 1])
@settings(max_examples=12)
@given(data=st.data())
def test_psycopg_reads_what_we_write(name: str, format_: int, data: st.DataObject) -> None:
    type_, values = SCALARS[name]
    items = data.draw(st.lists(values, min_size=1, max_size=5))
    fields = encode_column(column(items, type_), type_, format_).to_pylist()
    loader = Transformer().get_loader(type_.oid, Format(format_))
    for item, written in zip(items, fields, strict=True):
        read = loader.load(written.encode() if isinstance(written, str) else written)
        if isinstance(read, uuid.UUID):
            read = str(read)
        if isinstance(read, float):
            assert same(column([read], type_), column([item], type_))
        else:
            assert read == item


WRITTEN: list[tuple[Any, str]] = [
    (True, "bool"),
    (7, "int2"),
    (-5, "int8"),
    (0.1, "float8"),
    (Decimal("-12.50"), "numeric"),
    ("déjà", "text"),
    (b"\0\xff", "bytea"),
    (dt.date(2020, 2, 29), "date"),
    (dt.time(1, 2, 3, 4), "time"),
    (dt.datetime(1999, 12, 31, 23, 59, 59, 999999), "timestamp"),
    (dt.datetime(2020, 7, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2))), "timestamptz"),
    ([1, 2, 3], "int2"),
]


@pytest.mark.parametrize(
    ("value", "type_name", "format_"),
    # What libpq writes for the text of bytea depends on the process's connections; test_clients has one.
    [(*each, way) for way in (PyFormat.TEXT, PyFormat.BINARY) for each in WRITTEN if (each[1], way) != ("bytea", "t")],
)
def test_we_read_what_psycopg_writes(value: Any, type_name: str, format_: PyFormat) -> None:
    dumper = Transformer().get_dumper(value, format_)
    type_ = array(by_name(type_name)) if isinstance(value, list) else by_name(type_name)
    if format_ is PyFormat.BINARY and type_name in ("int2", "int8"):
        type_ = array(by_name("int2")) if isinstance(value, list) else by_name("int2")
    data = dumper.dump(value)
    assert data is not None
    found = decode_value(bytes(data), type_, int(format_ is PyFormat.BINARY))
    assert (as_list(found) if isinstance(value, list) else found) == value


@pytest.mark.parametrize("name", [name for name in TYPES if name not in ("text", "varchar", "bpchar", "name")])
def test_empty_binary_field_is_an_error_or_a_value(name: str) -> None:
    type_ = by_name(name)
    try:
        value = decode_value(b"", type_, 1)
    except SqlError as error:
        with pytest.raises(ColumnError) as column_error:
            decode_binary_column(pa.array([None, b""], pa.binary()), type_)
        assert (column_error.value.index, column_error.value.error.sqlstate) == (1, error.sqlstate)
    else:
        assert decode_binary_column(pa.array([b""], pa.binary()), type_).to_pylist() == [value]


def test_unknown_format_is_refused() -> None:
    with pytest.raises(SqlError, match="unsupported format code: 2"):
        decode_value(b"t", BOOL, 2)


def test_first_wrong_value_is_reported() -> None:
    with pytest.raises(ColumnError) as caught:
        decode_text_column(pa.array(["1", None, "2x", "3y"]), by_name("int4"))
    assert caught.value.index == 2
    assert caught.value.error.message == 'invalid input syntax for type integer: "2x"'


def test_text_that_is_no_utf8_is_22021() -> None:
    with pytest.raises(SqlError) as caught:
        decode_value(b"a\xe4b", by_name("text"), 0)
    assert caught.value.sqlstate == "22021"
    assert caught.value.message == 'invalid byte sequence for encoding "UTF8": 0xe4 0x62'


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        (2**63 - 1, "infinity"),
        (-(2**63 - 1), "-infinity"),
        (253_402_300_800_000_000, "10000-01-01 00:00:00"),
        (-62_135_596_800_000_001, "0001-12-31 23:59:59.999999 BC"),
    ],
)
def test_moments_outside_of_pythons_years(moment: int, shown: str) -> None:
    type_ = by_name("timestamp")
    array_ = pa.array([0, moment, None], pa.int64()).cast(type_.arrow)
    assert encode_text(array_, type_).to_pylist() == ["1970-01-01 00:00:00", shown, None]


@pytest.mark.parametrize(
    ("day", "shown"), [(2**31 - 1, "infinity"), (-719_163, "0001-12-31 BC"), (2_932_897, "10000-01-01")]
)
def test_days_outside_of_pythons_years(day: int, shown: str) -> None:
    type_ = by_name("date")
    array_ = pa.array([day, 0, None], pa.int32()).cast(type_.arrow)
    assert encode_text(array_, type_).to_pylist() == [shown, "1970-01-01", None]


def test_wall_clock_follows_the_zone() -> None:
    type_ = by_name("timestamptz")
    moments = pa.array([dt.datetime(2020, month, 1, tzinfo=dt.UTC) for month in (1, 7)], type_.arrow)
    berlin = ["2020-01-01 01:00:00+01", "2020-07-01 02:00:00+02"]
    assert encode_text(moments, type_, "Europe/Berlin").to_pylist() == berlin
    assert encode_text(moments, type_, "Asia/Kolkata")[0].as_py() == "2020-01-01 05:30:00+05:30"


def test_wall_clocks_have_summers_after_2037() -> None:
    type_ = by_name("timestamptz")
    texts = ["2037-07-01 12:00:00+02", "2038-07-01 12:00:00+02", "2100-12-01 12:00:00.5+01", "9999-12-30 01:00:00+01"]
    moments = decode_text_column(pa.array([*texts, None]), type_, "Europe/Berlin")
    assert encode_text(moments, type_, "Europe/Berlin").to_pylist() == [*texts, None]
    written = pa.array([text[:-3] for text in texts])
    assert decode_text_column(written, type_, "Europe/Berlin").to_pylist() == moments.to_pylist()[:-1]
    assert encode_text(moments, type_, "Asia/Kolkata")[1].as_py() == "2038-07-01 15:30:00+05:30"


def test_unknown_zone_is_22023() -> None:
    with pytest.raises(SqlError) as caught:
        encode_text(pa.array([0], pa.timestamp("us", "UTC")), by_name("timestamptz"), "Nowhere/Else")
    assert caught.value.sqlstate == "22023"


def test_quotients_have_as_many_zeros_as_division_gives() -> None:
    values = pa.array([None, *map(Decimal, ("16.5", "0", "-0.25", "12345.5", "123456789"))], pa.decimal128(38, 20))
    shown = encode_column(values, numeric(*QUOTIENT), 0).to_pylist()
    assert shown == [
        None,
        "16.5000000000000000",
        "0.00000000000000000000",
        "-0.25000000000000000000",
        "12345.500000000000",
        "123456789.00000000",
    ]


@pytest.mark.parametrize(
    "type_", [numeric(38, 10), numeric(9, 2), numeric(7, 0), numeric(*UNCONSTRAINED), numeric(*QUOTIENT)]
)
def test_numerics_print_alike_in_short_and_long_columns(type_: SqlType) -> None:
    units = [0, 1, -1, 10, 5 * 10**18, -(10**20), 10**7 - 1, 123456, *range(1, 100)]
    values = [None, *(Decimal(unit).scaleb(-type_.scale) for unit in units if abs(unit) < 10**type_.precision)]
    column = pa.array(values, type_.arrow)
    alone = [encode_text(column[index : index + 1], type_)[0].as_py() for index in range(len(column))]
    assert encode_text(column, type_).to_pylist() == alone


def test_numbers_of_transactions_that_are_none_are_zero_and_large_ones_refused() -> None:
    kind = by_name("xid8")
    assert decode_text_column(pa.array(["7", "0x10", "none", None]), kind).to_pylist() == [7, 16, 0, None]
    assert decode_binary_column(pa.array([(7).to_bytes(8, "big"), None]), kind).to_pylist() == [7, None]
    with pytest.raises(SqlError) as alone:
        decode_value(b"\xff" * 8, kind, 1)
    with pytest.raises(ColumnError) as inside:
        decode_binary_column(pa.array([bytes(8), b"\xff" * 8]), kind)
    assert (alone.value.sqlstate, inside.value.index, inside.value.error.sqlstate) == ("0A000", 1, "0A000")

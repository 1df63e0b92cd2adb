"""Columns encoded and decoded: every type, both formats, with nulls and in slices; and invalid values."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.values.errors import SqlError
from catalog.values.types import BOOL, QUOTIENT, TYPES, UNCONSTRAINED, SqlType, by_name, numeric
from protocol.values.codec import ColumnError
from protocol.values.registry import (
    decode_binary_column,
    decode_text_column,
    decode_value,
    encode_binary,
    encode_column,
    encode_text,
)
from tests.protocol.generated import SCALARS, ZONES, column, same
from tests.rig.sampling import examples


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", SCALARS)
@settings(max_examples=examples(25))
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


@pytest.mark.parametrize("scale", [2, 390, 399, 401, 4097, 16383])
def test_numeric_with_any_scale(scale: int) -> None:
    data = struct.pack(">hhHhhh", 2, 0, 0, scale, 5000, 1234)
    assert decode_value(data, SqlType("numeric", (38, 20)), 1) == Decimal("5000.12" if scale == 2 else "5000.1234")


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

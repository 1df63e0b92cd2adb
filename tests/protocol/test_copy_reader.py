"""COPY FROM in text and CSV: the three parsers agree, portions do not matter, errors name line and column."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.values.errors import SqlError
from catalog.values.types import SqlType, array, by_name, numeric
from protocol.copy import Block, CopyFormat, CopyReader
from protocol.copy.exact import parse_exactly
from protocol.copy.fast import NotFast, fast_parser
from protocol.copy.format import CopyTarget
from protocol.copy.text import unescape, unescape_value
from protocol.values.codec import ColumnError
from tests.rig.sampling import examples

CSV = CopyFormat("csv", ",", "")
TEXT = CopyFormat()
FORCED = CopyFormat("csv", ",", "", force_not_null=frozenset((1,)), force_null=frozenset((0, 1)))
#: For each type, every way through the fast parser.
TYPES = {
    "small": by_name("int2"),
    "large": by_name("int8"),
    "ratio": by_name("float8"),
    "price": numeric(9, 2),
    "code": SqlType("bpchar", (3,)),
    "note": SqlType("varchar", (6,)),
    "day": by_name("date"),
    "moment": by_name("timestamp"),
    "instant": by_name("timestamptz"),
    "flag": by_name("bool"),
}


def read(
    data: bytes, types: dict[str, SqlType], format_: CopyFormat, portion: int = 1 << 16, block: int = 1 << 20
) -> Any:
    """Rows as tuples."""
    reader = CopyReader(list(types.values()), list(types), format_, "t", block_size=block)
    batches = [b for start in range(0, len(data), portion) for b in reader.feed(data[start : start + portion])]
    batches += reader.finish()
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def fails(data: bytes, types: dict[str, SqlType], format_: CopyFormat) -> SqlError:
    with pytest.raises(SqlError) as caught:
        read(data, types, format_)
    return caught.value


def is_fast(data: bytes, types: dict[str, SqlType], format_: CopyFormat) -> bool:
    target = CopyTarget(tuple(types.values()), tuple(types), "t")
    try:
        fast_parser(target, format_).parse(Block(data, 1))
    except NotFast:
        return False
    return True


GOOD = "7,-9,2.5,12.50,ab ,note,2020-02-29,2020-01-01 10:11:12.5,2020-01-01 10:11:12+02,t\n"
GOOD_ROW = (
    7,
    -9,
    2.5,
    Decimal("12.50"),
    "ab",
    "note",
    dt.date(2020, 2, 29),
    dt.datetime(2020, 1, 1, 10, 11, 12, 500000),
    dt.datetime(2020, 1, 1, 8, 11, 12, tzinfo=dt.UTC),
    True,
)


def test_a_row_of_many_types() -> None:
    assert read(GOOD.encode(), TYPES, CSV) == [GOOD_ROW]
    assert read(GOOD.replace(",", "\t").encode(), TYPES, TEXT) == [GOOD_ROW]
    assert is_fast(GOOD.encode(), TYPES, CSV)


def test_nulls() -> None:
    nulls = (None,) * len(TYPES)
    assert read(b"," * 9 + b"\n", TYPES, CSV) == [nulls]
    assert read(b"\t".join([b"\\N"] * 10) + b"\n", TYPES, TEXT) == [nulls]
    assert read(b"NULL," * 9 + b"NULL\n", TYPES, CopyFormat("csv", ",", "NULL")) == [nulls]


def test_quoted_empty_is_a_value() -> None:
    types = {"a": by_name("text"), "b": by_name("text")}
    assert read(b'"",\n', types, CSV) == [("", None)]
    assert read(b'"NULL",NULL\n', types, CopyFormat("csv", ",", "NULL")) == [("NULL", None)]
    error = fails(b'1\n""\n', {"a": by_name("int4")}, CSV)
    assert (error.sqlstate, error.where) == ("22P02", 'COPY t, line 2, column a: ""')


#: Values that pyarrow and PostgreSQL read differently, and PostgreSQL's answer.
@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        (by_name("int4"), " 5 ", 5),
        (by_name("int4"), "+5", 5),
        (by_name("int4"), "0x10", "22P02"),
        (by_name("int4"), "0X1f", "22P02"),
        (by_name("int4"), "2147483648", "22003"),
        (by_name("int2"), "32768", "22003"),
        (by_name("oid"), "-1", 2**32 - 1),
        (by_name("float8"), "1e400", "22003"),
        (by_name("float8"), "1e-400", "22003"),
        (by_name("float8"), "0.0", 0.0),
        (by_name("float8"), "Infinity", float("inf")),
        (by_name("float8"), "nan(1)", "22P02"),
        (by_name("float4"), "1e39", "22003"),
        (numeric(5, 2), "1.005", Decimal("1.01")),
        (numeric(5, 2), "-1.005", Decimal("-1.01")),
        (numeric(5, 2), " 1e2 ", Decimal("100.00")),
        (numeric(5, 2), "1234.5", "22003"),
        (numeric(5, 2), "999.995", "22003"),
        (numeric(38, 18), "12345678901234567890.5", Decimal("12345678901234567890.5")),
        (numeric(38, 18), "123456789012345678901", "22003"),
        (numeric(20, 10), "12345678901.5", "22003"),
        # Numbers that exceed 128 bits, and of which a valid number remains.
        (numeric(5, 2), "3500", "22003"),
        (numeric(15, 15), "-4.35", "22003"),
        (numeric(38, 18), "400000000000000000000.5", "22003"),
        (numeric(38, 20), "4000000000000000000", "22003"),
        (numeric(30, 15), "400000000000000000000000", "22003"),
        (numeric(36, 2), "4e36", "22003"),
        (by_name("numeric"), "NaN", "0A000"),
        (by_name("bool"), "yes", True),
        (by_name("bool"), " OFF ", False),
        (by_name("bool"), "2", "22P02"),
        (by_name("date"), "Jan 5 2020", dt.date(2020, 1, 5)),
        (by_name("date"), "0000-01-01", "22008"),
        (by_name("date"), "2020-02-30", "22008"),
        (by_name("time"), "10:11", dt.time(10, 11)),
        (by_name("timestamp"), "2020-01-01 10", "22007"),
        (by_name("timestamp"), "2020-01-01 1011", dt.datetime(2020, 1, 1, 10, 11)),
        (by_name("timestamp"), "2020-01-01 101", "22007"),
        (by_name("timestamp"), "2020-01-01 24:00:00", dt.datetime(2020, 1, 2)),
        (by_name("timestamp"), "2020-01-01T10:11:12Z", dt.datetime(2020, 1, 1, 10, 11, 12)),
        (by_name("timestamp"), "0000-01-01 00:00:00", "22008"),
        (by_name("interval"), "1 day", pa.MonthDayNano([0, 1, 0])),
        (by_name("uuid"), "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        (by_name("uuid"), "a0eebc99", "22P02"),
        (by_name("json"), "[1", "22P02"),
        (by_name("bytea"), "\\x0aff", b"\x0a\xff"),
        (array(by_name("int4")), "{1;2}", "22P02"),
        (SqlType("varchar", (3,)), "äöü  ", "äöü"),
        (SqlType("varchar", (3,)), "äöüx", "22001"),
        (SqlType("bpchar", (3,)), "a  ", "a"),
    ],
)
def test_values_mean_what_postgresql_means(type_: SqlType, text: str, expected: object) -> None:
    types = {"first": by_name("int4"), "second": type_}
    data = f"1,\n2,{text}\n".encode()
    if isinstance(expected, str) and len(expected) == 5 and expected[:2].isdigit():
        error = fails(data, types, CSV)
        assert error.sqlstate == expected
        assert error.where == f'COPY t, line 2, column second: "{text}"'
    elif isinstance(expected, str) and expected == "0A000":
        assert fails(data, types, CSV).sqlstate == expected
    else:
        assert read(data, types, CSV) == [(1, None), (2, expected)]


@pytest.mark.parametrize(
    ("data", "message", "where"),
    [
        (b"1,a\n2\n", 'missing data for column "b"', 'COPY t, line 2: "2"'),
        (b"1,a\n2,b,c\n", "extra data after last expected column", 'COPY t, line 2: "2,b,c"'),
        (b"1,a\n\n", 'missing data for column "b"', 'COPY t, line 2: ""'),
        (b'1,a\n2,"b\n', "unterminated CSV quoted field", 'COPY t, line 3: "2,"b\n"'),
        (b"1,a\n2,b\r\n", "unquoted carriage return found in data", "COPY t, line 2"),
        (b"1,a\r\n2,b\n", "unquoted newline found in data", "COPY t, line 2"),
        (b"1,a\n2,\0\n", 'invalid byte sequence for encoding "UTF8": 0x00', "COPY t, line 2"),
        (b"1,a\n2,\xe4\xb8\n", 'invalid byte sequence for encoding "UTF8": 0xe4 0xb8', "COPY t, line 2"),
        (b"1,a\nx,b\n3\n", 'invalid input syntax for type integer: "x"', 'COPY t, line 2, column a: "x"'),
        (b'1,"a\nb"\nx,b\n', 'invalid input syntax for type integer: "x"', 'COPY t, line 3, column a: "x"'),
    ],
)
def test_errors_of_csv_lines(data: bytes, message: str, where: str) -> None:
    error = fails(data, {"a": by_name("int4"), "b": by_name("text")}, CSV)
    assert error.message == message
    assert error.where is not None
    assert error.where.startswith(where)


@pytest.mark.parametrize(
    ("data", "message", "where"),
    [
        (b"1\ta\n2\n", 'missing data for column "b"', 'COPY t, line 2: "2"'),
        (b"1\ta\n2\tb\tc\n", "extra data after last expected column", 'COPY t, line 2: "2\tb\tc"'),
        (b"1\ta\r2\tb\n", "literal newline found in data", "COPY t, line 2"),
        (b"1\ta\n2\tb\rc\n", "literal carriage return found in data", "COPY t, line 2"),
        (b"1\ta\n2\t\\xff\n", 'invalid byte sequence for encoding "UTF8": 0xff', "COPY t, line 2"),
    ],
)
def test_errors_of_text_lines(data: bytes, message: str, where: str) -> None:
    error = fails(data, {"a": by_name("int4"), "b": by_name("text")}, TEXT)
    assert (error.message, error.where) == (message, where)


def test_first_error_by_line_then_by_column() -> None:
    types = {"a": by_name("int4"), "b": by_name("int4")}
    assert fails(b"1,2\n3,y\nx,4\n", types, CSV).where == 'COPY t, line 2, column b: "y"'
    assert fails(b"1,2\nx,y\n", types, CSV).where == 'COPY t, line 2, column a: "x"'


def test_long_values_are_cut_in_the_context() -> None:
    error = fails(b"x" * 150 + b"\n", {"a": by_name("int4")}, CSV)
    assert error.where == f'COPY t, line 1, column a: "{"x" * 100}..."'


def test_lines_are_counted_across_blocks_and_the_header() -> None:
    types = {"a": by_name("int4")}
    reader = CopyReader(list(types.values()), list(types), CopyFormat("csv", ",", "", True), "t", block_size=16)
    rows = 0
    with pytest.raises(SqlError) as caught:
        for portion in [b"a\n", *[b"%d\n" % row for row in range(50)], b"x\n", b"1\n" * 20]:
            rows += sum(batch.num_rows for batch in reader.feed(portion))
    assert caught.value.where == 'COPY t, line 52, column a: "x"'
    assert rows > 30


@pytest.mark.parametrize("format_", [CSV, TEXT])
def test_end_marker(format_: CopyFormat) -> None:
    types = {"a": by_name("int4")}
    assert read(b"1\n\\.\nrubbish\n", types, format_, portion=2, block=1) == [(1,)]
    assert read(b"\\.", types, format_) == []
    assert read(b"1\r\n\\.\r\n", types, format_) == [(1,)]


def test_header() -> None:
    types = {"a": by_name("int4"), "b": by_name("text")}
    with_header = CopyFormat("csv", ",", "", True)
    assert read(b'"a\nx",b\n1,c\n', types, with_header, portion=3) == [(1, "c")]
    assert read(b"a,b\n", types, with_header) == []
    assert read(b"", types, with_header) == []
    error = fails(b'"a\nx",b\ny,c\n', types, with_header)
    assert error.where == 'COPY t, line 3, column a: "y"'


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_ends_of_lines(end: str) -> None:
    data = f'1,"a{end}b"{end}2,"c""d"{end}3,'.encode()
    expected = [(1, f"a{end}b"), (2, 'c"d'), (3, None)]
    for portion in (1, 4, 100):
        assert read(data, {"a": by_name("int4"), "b": by_name("text")}, CSV, portion, 4) == expected


def test_no_rows_make_no_batches() -> None:
    reader = CopyReader([by_name("int4")], ["a"], CSV, "t")
    assert reader.feed(b"") == []
    assert reader.finish() == []


def test_table_without_columns() -> None:
    reader = CopyReader([], [], TEXT, "t")
    with pytest.raises(SqlError, match="extra data"):
        reader.feed(b"1\n")
        reader.finish()


def test_fast_way_takes_what_is_usual() -> None:
    types = {"a": by_name("int4"), "b": by_name("text"), "c": numeric(5, 2)}
    for data in (b"1,x,1.50\n", b'1,"x,""y""\n",1.5\n', b"1,,\n", b" 1 ,x,1.505\n"):
        assert is_fast(data, types, CSV), data
    for data in (b'1,x"y",1.5\n', b"1,x,1.5\n\n", b'1,"x"y,1.5"\n', b"1,x\0,1.5\n", b"1,x\n"):
        assert not is_fast(data, types, CSV), data
    assert is_fast(b"1\t\\N\t\\N\n2\ta\\tb\\\\\t1.5\n", types, TEXT)
    assert not is_fast(b"1\ta\\\tb\t1\n", types, TEXT)


#: CSV of an integer and a text, written in any legal or almost legal way.
FIELDS = st.sampled_from(["1", "", " 2", "x", '"1"', '""', '"a""b"', '"a\nb"', 'a"b"', "0x1", "é", "\\N", "\\.", '"'])
LINES = st.lists(st.lists(FIELDS, min_size=1, max_size=3).map(",".join), min_size=1, max_size=5)


#: Decimals as written, and almost legal ones.
NUMBERS = st.one_of(
    st.from_regex(r"[-+]?[0-9]{1,16}(\.[0-9]{0,4})?", fullmatch=True),
    st.from_regex(r"[-+]?[0-9]{0,3}\.[0-9]{1,3}(0|5|49|50)[0-9]{0,22}", fullmatch=True),
    st.sampled_from(["", "-0", "NaN", "inf", "-Infinity", "1e3", "1e-400", "1e400", "0x1", " 7.5 ", "1d2", "1_0", "."]),
)


@settings(max_examples=examples(150))
@given(st.lists(NUMBERS, min_size=1, max_size=4), st.sampled_from([(5, 2), (15, 2), (15, 0), (15, 15), (9, 3)]))
def test_decimals_read_as_doubles_are_those_of_the_texts(texts: list[str], digits: tuple[int, int]) -> None:
    types = {"a": numeric(*digits), "b": by_name("text")}
    data = "".join(f"{text},x\n" for text in texts).encode()
    target = CopyTarget(tuple(types.values()), tuple(types), "t")
    try:
        expected = parse_exactly(Block(data, 1), target, CSV)
    except SqlError as error:
        assert fails(data, types, CSV).message == error.message
    else:
        assert read(data, types, CSV) == list(zip(*[column.to_pylist() for column in expected], strict=True))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.285", "0.29"),
        ("1.005", "1.01"),
        ("0.00499999999999999999999", "0.00"),
        ("1.0000000000000000000001", "1.00"),
        ("9999999999999.99", "9999999999999.99"),
        ("-9999999999999.98", "-9999999999999.98"),
    ],
)
def test_decimals_at_the_edge_of_doubles(text: str, value: str) -> None:
    assert read(f"{text}\n".encode(), {"a": numeric(15, 2)}, CSV) == [(Decimal(value),)]


def _first_end(text: str) -> str:
    """The end of the first line, which all lines must have; empty if quotes stay open."""
    quoted = False
    for before, char in zip(" " + text, text, strict=False):
        quoted ^= char == '"'
        if char == "\n" and not quoted:
            return "\r\n" if before == "\r" else "\n"
    return ""


@pytest.mark.slow
@settings(max_examples=100)
@given(LINES, st.sampled_from(["\n", "\r\n"]), st.integers(1, 9), st.integers(1, 30), st.sampled_from([CSV, FORCED]))
def test_fast_exact_and_any_portions_agree(
    lines: list[str], end: str, portion: int, block: int, format_: CopyFormat
) -> None:
    types = {"a": by_name("int4"), "b": by_name("text")}
    data = "".join(line + end for line in lines).encode()
    target = CopyTarget(tuple(types.values()), tuple(types), "t")

    def outcome(portion: int, block: int) -> Any:
        try:
            return read(data, types, format_, portion, block)
        except SqlError as error:
            return error.sqlstate, error.message, error.where

    whole = outcome(len(data), 1 << 20)
    assert outcome(portion, block) == whole
    if "\\." not in data.decode() and _first_end(data.decode()) in (end, ""):
        try:
            columns = parse_exactly(Block(data, 1, end.encode()), target, format_)
        except SqlError as error:
            assert whole[:2] == (error.sqlstate, error.message)
            # If quotes stay open, there may be no end of a line from which to learn how lines end.
            assert whole[2] == error.where or "unterminated" in error.message
        else:
            assert whole == list(zip(*[column.to_pylist() for column in columns], strict=True))


@settings(max_examples=60)
@given(st.lists(st.binary(max_size=12), max_size=4), st.sampled_from([CSV, TEXT]))
def test_any_bytes_make_rows_or_an_error_with_a_context(portions: list[bytes], format_: CopyFormat) -> None:
    reader = CopyReader([by_name("int4"), by_name("text")], ["a", "b"], format_, "t", block_size=8)
    try:
        batches = [batch for portion in portions for batch in reader.feed(portion)] + reader.finish()
    except SqlError as error:
        assert error.where is not None
        assert error.where.startswith("COPY t, line ")
    else:
        assert all(batch.num_rows for batch in batches)


@settings(max_examples=examples(200))
@given(st.lists(st.none() | st.text("\\\\\\bfnrtvx0417.é\t", max_size=9), max_size=6))
def test_escapes_of_a_column_are_those_of_its_values(texts: list[str | None]) -> None:
    expected = [None if text is None else unescape_value(text.encode()) for text in texts]
    column = pa.array(texts, pa.string())
    try:
        result = unescape(column).to_pylist()
    except ColumnError:
        assert any(value is not None and not is_utf8(value) for value in expected)
    else:
        assert [None if text is None else text.encode() for text in result] == expected


def is_utf8(data: bytes) -> bool:
    """Whether PostgreSQL accepts the bytes as text, which must not contain zero bytes."""
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def test_blocks_grow_with_the_data() -> None:
    reader = CopyReader([by_name("int4")], ["a"], CopyFormat("csv", ",", ""), "t", block_size=64)
    data = b"".join(b"%d\n" % number for number in range(1000, 1200))
    blocks = [block for start in range(0, len(data), 10) for block in reader.split(data[start : start + 10])]
    assert [len(block.data) for block in blocks] == [60, 125, 255, 255, 255]
    rest = reader.rest()
    assert [block.line for block in [*blocks, *rest]] == [1, 13, 38, 89, 140, 191]
    numbers = [value for block in [*blocks, *rest] for value in reader.parse(block).column(0).to_pylist()]
    assert numbers == list(range(1000, 1200))

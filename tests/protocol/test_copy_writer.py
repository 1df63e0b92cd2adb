"""COPY TO: the output can be read back, and equals PostgreSQL's."""

from __future__ import annotations

import csv
import io
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.values.errors import SqlError
from catalog.values.types import BYTEA, INT4, TEXT, TIMESTAMPTZ, SqlType, by_name, numeric
from protocol import rowmessages
from protocol.copy import CopyFormat, CopyReader, CopyWriter
from tests.protocol.test_values import SCALARS, column
from tests.rig.sampling import examples

FORMATS = {
    "text": CopyFormat(),
    "text, other": CopyFormat("text", "|", "nil", True),
    "csv": CopyFormat("csv", ",", ""),
    "csv, other": CopyFormat("csv", ";", "NULL", True, "'", "\\"),
    "binary": CopyFormat("binary"),
}


def taken_apart(messages: bytes) -> list[bytes]:
    """The payloads of CopyData messages."""
    found = []
    while messages:
        assert messages[:1] == b"d"
        end = 1 + int.from_bytes(messages[1:5])
        found.append(messages[5:end])
        messages = messages[end:]
    return found


def written(batch: pa.RecordBatch | pa.Table, types: list[SqlType], format_: CopyFormat) -> bytes:
    writer = CopyWriter(types, batch.schema.names, format_)
    head, rows, tail = (taken_apart(part) for part in (writer.header(), writer.encode(batch), writer.trailer()))
    assert len(rows) == batch.num_rows
    return b"".join(head + rows + tail)


def read(data: bytes, types: list[SqlType], names: list[str], format_: CopyFormat, portion: int) -> pa.Table:
    reader = CopyReader(types, names, format_, "t", block_size=portion)
    batches = [batch for start in range(0, len(data), portion) for batch in reader.feed(data[start : start + portion])]
    schema = pa.schema([(name, type_.arrow) for name, type_ in zip(names, types, strict=True)])
    return pa.Table.from_batches([*batches, *reader.finish()], schema)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=examples(60))
@given(data=st.data())
def test_there_and_back(name: str, data: st.DataObject) -> None:
    format_ = FORMATS[name]
    chosen = data.draw(st.lists(st.sampled_from(sorted(SCALARS)), min_size=1, max_size=4))
    types = [SCALARS[type_name][0] for type_name in chosen]
    count = data.draw(st.integers(0, 6))
    columns = [
        column(data.draw(st.lists(st.none() | SCALARS[type_name][1], min_size=count, max_size=count)), type_)
        for type_name, type_ in zip(chosen, types, strict=True)
    ]
    names = [f"c{index}" for index in range(len(types))]
    table = pa.Table.from_arrays(columns, names)
    portion = data.draw(st.sampled_from([3, 50, 10_000]))
    back = read(written(table, types, format_), types, names, format_, portion)
    assert repr(back.to_pylist()) == repr(table.to_pylist())


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.text("ab,\"\n\r\\ é'", max_size=5), st.integers(-9, 9)), min_size=1, max_size=5))
def test_pythons_csv_reads_what_we_write(rows: list[tuple[str, int]]) -> None:
    batch = pa.record_batch({"a": [row[0] for row in rows], "b": pa.array([row[1] for row in rows], pa.int32())})
    text = written(batch, [TEXT, INT4], CopyFormat("csv", ",", "")).decode()
    assert [(a, int(b)) for a, b in csv.reader(io.StringIO(text, newline=""))] == rows


@pytest.mark.parametrize(
    ("format_", "values", "expected"),
    [
        (CopyFormat(), ["a\tb\\c\nd\re\b\f\v", None, "\\N", ""], "a\\tb\\\\c\\nd\\re\\b\\f\\v\n\\N\n\\\\N\n\n"),
        (CopyFormat("text", "|", ""), ["a|b\tc", None], "a\\|b\\tc\n\n"),
        (CopyFormat("csv", ",", ""), ['a"b', "a,b", "a\nb", "", None, "\\."], '"a""b"\n"a,b"\n"a\nb"\n""\n\n"\\."\n'),
        (CopyFormat("csv", ",", "NA"), ["NA", None, "", "a b"], '"NA"\nNA\n\na b\n'),
        (CopyFormat("csv", ";", "", False, "'", "\\"), ["it's", "a\\b", "a\\;b"], "'it\\'s'\na\\b\n'a\\\\;b'\n"),
    ],
)
def test_escapes_and_quotes(format_: CopyFormat, values: list[Any], expected: str) -> None:
    batch = pa.record_batch({"a": pa.array(values, pa.string())})
    assert written(batch, [TEXT], format_).decode() == expected


def test_header_is_quoted_like_a_value() -> None:
    writer = CopyWriter([TEXT, TEXT], ["a,b", "c"], CopyFormat("csv", ",", "", True))
    assert taken_apart(writer.header()) == [b'"a,b",c\n']
    assert taken_apart(CopyWriter([TEXT], ["a\tb"], CopyFormat("text", header=True)).header()) == [b"a\\tb\n"]


def test_values_of_any_type_are_quoted_where_they_hold_the_delimiter() -> None:
    batch = pa.record_batch({"a": column([5, -5], numeric(3, 1)), "b": column([b"\1", None], BYTEA)})
    assert written(batch, [numeric(3, 1), BYTEA], CopyFormat("csv", ".", "")) == b'"5.0".\\x01\n"-5.0".\n'
    assert written(batch, [numeric(3, 1), BYTEA], CopyFormat()) == b"5.0\t\\\\x01\n-5.0\t\\N\n"


def test_time_zone_of_the_session() -> None:
    batch = pa.record_batch({"a": pa.array([0], TIMESTAMPTZ.arrow)})
    writer = CopyWriter([TIMESTAMPTZ], ["a"], CopyFormat("csv", ",", ""), "Europe/Berlin")
    assert taken_apart(writer.encode(batch)) == [b"1970-01-01 01:00:00+01\n"]


def test_rows_without_columns() -> None:
    batch = pa.record_batch({"a": [1, 2]}).select([])
    assert written(batch, [], CopyFormat()) == b"\n\n"
    assert written(batch, [], CopyFormat("binary")).endswith(b"\0\0\0\0\xff\xff")


def binary(rows: bytes) -> bytes:
    return b"PGCOPY\n\xff\r\n\0" + bytes(8) + rows


ROW = b"\0\2\0\0\0\4\0\0\0\7\0\0\0\1x"


@pytest.mark.parametrize(
    ("data", "state", "message"),
    [
        (b"1,2\n", "22P04", "COPY file signature not recognized"),
        (b"PGCOPY\n", "22P04", "COPY file signature not recognized"),
        (b"PGCOPY\n\xff\r\n\0\0\1\0\0\0\0\0\0", "22P04", "invalid COPY file header (WITH OIDS)"),
        (b"PGCOPY\n\xff\r\n\0\0\2\0\0\0\0\0\0", "22P04", "unrecognized critical flags in COPY file header"),
        (binary(b"\0\3"), "22P04", "row field count is 3, expected 2"),
        (binary(ROW + ROW[:-1]), "22P04", "unexpected EOF in COPY data"),
        (binary(ROW + b"\xff\xffmore"), "22P04", "received copy data after EOF marker"),
        (binary(b"\0\2\xff\xff\xff\xfe\0\0\0\0"), "22P04", "invalid field size"),
        (binary(b"\0\2\0\0\0\1\1\0\0\0\0"), "22P03", "incorrect binary data format for type integer"),
        (binary(ROW + ROW[:-1] + b"\xff"), "22021", 'invalid byte sequence for encoding "UTF8": 0xff'),
    ],
)
@pytest.mark.parametrize("portion", [1, 1000])
def test_binary_errors(data: bytes, state: str, message: str, portion: int) -> None:
    with pytest.raises(SqlError) as caught:
        read(data, [INT4, TEXT], ["a", "b"], FORMATS["binary"], portion)
    assert (caught.value.sqlstate, caught.value.message) == (state, message)


def test_binary_errors_name_row_and_column() -> None:
    with pytest.raises(SqlError) as caught:
        read(binary(ROW + ROW[:-1] + b"\xff"), [INT4, TEXT], ["a", "b"], FORMATS["binary"], 100)
    assert caught.value.where == "COPY t, line 2, column b"


@pytest.mark.parametrize("end", [b"\xff\xff", b""])
@pytest.mark.parametrize("portion", [1, 7, 1000])
def test_binary_rows_alike_and_not(end: bytes, portion: int) -> None:
    other = b"\0\2\0\0\0\4\0\0\0\x08\xff\xff\xff\xff"
    data = binary(ROW * 5 + other + ROW + other * 3 + ROW) + end
    table = read(data, [INT4, TEXT], ["a", "b"], FORMATS["binary"], portion)
    one, two = {"a": 7, "b": "x"}, {"a": 8, "b": None}
    assert table.to_pylist() == [one] * 5 + [two, one] + [two] * 3 + [one]


def test_binary_of_fixed_widths_is_found_many_rows_at_a_time() -> None:
    table = pa.table({"a": pa.array(range(1000), pa.int32()), "b": pa.array(range(1000))})
    types = [INT4, by_name("int8")]
    data = written(table, types, FORMATS["binary"])
    reader = CopyReader(types, ["a", "b"], FORMATS["binary"], "t")
    assert reader.split(data) == []
    (block,) = reader.rest()
    assert reader.parse(block).to_pylist() == table.to_pylist()


@pytest.mark.parametrize("name", FORMATS)
def test_lines_beyond_one_arrow_array_are_made_in_halves(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pa.record_batch({"a": [str(row) * 9 for row in range(10)], "b": pa.array(range(10), pa.int32())})
    whole = written(batch, [TEXT, INT4], FORMATS[name])
    monkeypatch.setattr(rowmessages, "_LIMIT", 100)
    assert written(batch, [TEXT, INT4], FORMATS[name]) == whole

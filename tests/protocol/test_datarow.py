"""Rows as messages: equal to the result of encoding value by value."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.values.errors import SqlError
from catalog.values.types import BYTEA, DATE, FLOAT8, INT4, INT8, TEXT, SqlType, numeric
from protocol import datarow, rowmessages
from protocol.datarow import encode_rows
from protocol.values.registry import encode_column
from tests.protocol.wire import data_row

COLUMNS: list[tuple[SqlType, st.SearchStrategy[Any]]] = [
    (INT4, st.integers(-5, 10**9)),
    (TEXT, st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)),
    (FLOAT8, st.floats(allow_nan=False)),
    (DATE, st.dates()),
    (BYTEA, st.binary(max_size=5)),
    (SqlType("bpchar", (4,)), st.text("aé", max_size=4)),
    (numeric(9, 2), st.decimals(-(10**6), 10**6, places=2)),
]


def slow_rows(columns: list[pa.Array], types: list[SqlType], formats: list[int], zone: str) -> list[bytes]:
    """Each row by itself."""
    encoded = [
        [None if field is None else field.encode() if isinstance(field, str) else field for field in fields]
        for fields in (
            encode_column(column, type_, format_, zone).to_pylist()
            for column, type_, format_ in zip(columns, types, formats, strict=True)
        )
    ]
    return [data_row(fields) for fields in zip(*encoded, strict=True)]


@pytest.mark.slow
@settings(max_examples=80)
@given(st.data())
def test_rows_equal_those_encoded_one_by_one(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=4))
    types = [type_ for type_, _ in chosen]
    formats = data.draw(st.lists(st.integers(0, 1), min_size=len(types), max_size=len(types)))
    nulls = st.none() if data.draw(st.booleans()) else st.nothing()
    count = data.draw(st.integers(0, 6))
    columns = [
        pa.array(data.draw(st.lists(nulls | values, min_size=count + 1, max_size=count + 1)), type_.arrow)[1:]
        for type_, values in chosen
    ]
    expected = slow_rows(columns, types, formats, "UTC")
    names = [str(index) for index in range(len(columns))]
    batch = pa.RecordBatch.from_arrays(columns, names)
    table = pa.Table.from_batches([batch.slice(0, 2), batch.slice(2)])
    for source, few in ((batch, 16), (table, 16), (batch, 0), (table, 0)):  # by Python, and by Arrow
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(datarow, "_FEW", few)
            rows = encode_rows(source, types, formats)
        assert len(rows) == count
        assert rows.data == b"".join(expected)
        assert [bytes(rows.rows(row, row + 1)) for row in range(count)] == expected


def test_few_rows_of_many_bytes_are_arrows() -> None:
    long = "ä" * datarow._FEW_BYTES
    rows = encode_rows(pa.record_batch({"a": pa.array([long, None])}), [TEXT])
    assert rows.data == data_row([long.encode()]) + data_row([None])


def test_fixed_width_rows_without_nulls() -> None:
    batch = pa.record_batch({"a": pa.array([1, 2, 3], pa.int32()), "b": pa.array([4, 5, 6])}).slice(1)
    rows = encode_rows(batch, [INT4, INT8], [1])
    expected = [data_row([a.to_bytes(4, "big"), b.to_bytes(8, "big")]) for a, b in ((2, 5), (3, 6))]
    assert rows.data == b"".join(expected)
    assert rows.offsets.tolist() == [0, len(expected[0]), 2 * len(expected[0])]
    assert rows.offsets.dtype == np.int64


def test_many_rows_are_joined_in_slices() -> None:
    count = 3 * rowmessages._ROWS + 5
    table = pa.table({"a": np.arange(count), "b": pa.array(map(str, range(count)))})
    rows = encode_rows(table, [INT8, TEXT])
    assert len(rows) == count
    for row in (0, rowmessages._ROWS - 1, rowmessages._ROWS, count - 1):
        assert bytes(rows.rows(row, row + 1)) == data_row([str(row).encode()] * 2)


def test_rows_without_columns() -> None:
    batch = pa.record_batch({"a": [1, 2]}).select([])
    assert encode_rows(batch, []).data == data_row([]) * 2


def test_no_rows() -> None:
    rows = encode_rows(pa.record_batch({"a": pa.array([], pa.int32())}), [INT4])
    assert (rows.data, len(rows), rows.offsets.tolist()) == (b"", 0, [0])


def test_all_nulls() -> None:
    batch = pa.record_batch({"a": pa.array([None, None], pa.int32()), "b": pa.array([None, "x"], pa.string())})
    for formats in ([0, 0], [1, 1]):
        assert encode_rows(batch, [INT4, TEXT], formats).data == data_row([None, None]) + data_row([None, b"x"])


def test_time_zone_of_the_session() -> None:
    type_ = SqlType("timestamptz")
    batch = pa.record_batch({"a": pa.array([dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], type_.arrow)})
    assert encode_rows(batch, [type_], (), "Europe/Berlin").data == data_row([b"2020-01-01 01:00:00+01"])


def test_formats_must_be_none_one_or_one_each() -> None:
    batch = pa.record_batch({"a": [1], "b": [2], "c": [3]})
    with pytest.raises(SqlError) as caught:
        encode_rows(batch, [INT8] * 3, [0, 1])
    assert caught.value.sqlstate == "08P01"


def test_rows_beyond_one_arrow_array_are_made_in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowmessages, "_LIMIT", 100)
    monkeypatch.setattr(datarow, "_FEW", 0)
    batch = pa.record_batch({"a": pa.array([str(row) * 9 for row in range(10)])})
    expected = [data_row([(str(row) * 9).encode()]) for row in range(10)]
    rows = encode_rows(batch, [TEXT])
    assert [bytes(rows.rows(row, row + 1)) for row in range(10)] == expected


@pytest.mark.slow
def test_rows_of_many_columns() -> None:
    """The most columns that a result may have: fewer rows are assembled together."""
    names = [f"c{place}" for place in range(1600)]
    columns = [pa.array([f"{place}-{row}" if row % 7 else None for row in range(400)]) for place in range(1600)]
    assert rowmessages.slice_rows(1600) < 400
    rows = encode_rows(pa.RecordBatch.from_arrays(columns, names), [TEXT] * 1600)
    for row in (1, 7, 399):
        fields = [f"{place}-{row}".encode() if row % 7 else None for place in range(1600)]
        assert bytes(rows.rows(row, row + 1)) == data_row(fields)

"""psycopg's codecs compared with Millstream's, in both directions."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import Format

from catalog.values.types import SPANS, array, by_name
from protocol.values.registry import decode_value, encode_column
from tests.protocol.generated import SCALARS, as_list, column, same

#: Types whose values psycopg loads as the Python values that are encoded.
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
    # libpq's text for bytea depends on the process's connections; test_clients has one.
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

"""Rows of Parquet files in a relation's types: each value as it is, or an error that names the column.

Owns: what becomes of a file's type that is not the column's (``_converted``), and the check of texts, which PostgreSQL
wants in UTF-8 and without zero bytes. Values of one type become those of another as PostgreSQL reads the text that it
writes of them, so that what does not fit is its error; times are rounded to microseconds.

    file's type                         SQL type of its values
    dictionaries, extension types       that of what they hold; UUID: uuid
    signed and unsigned integers        smallint, integer, bigint, numeric
    half, float, double                 real, real, double precision
    decimals                            numeric
    dates, times, timestamps, INT96     date, time, timestamp (with UTC: timestamptz), in microseconds
    texts, bytes                        text, bytea (read as text, too, where it is one)
    lists, structs, maps                none: they are refused (0A000)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from catalog.objects import ColumnDefinition
from catalog.values.errors import SqlError
from catalog.values.types import (
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    MAX_PRECISION,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    SqlType,
)
from protocol.compute import pc
from protocol.utf8 import first_invalid, invalid_encoding
from protocol.values.codec import ColumnError, value_bytes
from protocol.values.registry import decode_binary_column, decode_text_column, encode_text

#: Rows that are converted at once.
_ROWS: Final = 1 << 16
_TEXTS: Final = ("text", "varchar", "bpchar")
#: Types whose values are made of no numbers, dates or times.
_APART: Final = ("uuid", "bytea", "json", "jsonb")
_SAME: Final[Mapping[pa.DataType, SqlType]] = {
    pa.bool_(): BOOL,
    pa.float32(): FLOAT4,
    pa.float64(): FLOAT8,
    pa.date32(): DATE,
    pa.string(): TEXT,
    pa.int16(): INT2,
    pa.int32(): INT4,
    pa.int64(): INT8,
    pa.time64("us"): TIME,
    pa.timestamp("us"): TIMESTAMP,
    pa.timestamp("us", "UTC"): TIMESTAMPTZ,
}
#: Types that Arrow widens without loss.
_WIDER: Final[Mapping[pa.DataType, pa.DataType]] = {
    pa.int8(): pa.int16(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


def batches(path: str, wanted: Sequence[ColumnDefinition], lenient: bool) -> Iterator[pa.RecordBatch]:
    """The rows of a file in its order, with the wanted columns; with ``lenient`` one that was added to the table after
    the file was written is NULL. Raises 22021, 22P04, 0A000, what a type's input raises, pa.ArrowException, OSError.
    """
    schema = pa.schema([(item.name, item.type.arrow) for item in wanted])
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us", arrow_extensions_enabled=True) as file:
        found = file.schema_arrow.names
        missing = [item.name for item in wanted if item.name not in found]
        if missing and not lenient:
            raise SqlError("22P04", f'file "{path}" has no column "{missing[0]}"')
        for batch in file.iter_batches(_ROWS, columns=[item.name for item in wanted if item.name in found]):
            columns = [
                pa.nulls(batch.num_rows, item.type.arrow)
                if item.name in missing
                else _column(batch.column(item.name), item)
                for item in wanted
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(values: pa.Array, column: ColumnDefinition) -> pa.Array:
    """A column's values in its type. Raises errors that name it."""
    own, where = values.type, f"column {column.name}"
    try:
        return _converted(values, column.type)
    except ColumnError as error:
        cause = error.error
        raise SqlError(cause.sqlstate, cause.message, cause.detail, cause.hint, where=where) from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError) as error:
        message = f'column "{column.name}" of type {column.type} does not take a value of type {own}'
        raise SqlError("22P04", message, str(error).splitlines()[0], where=where) from None
    except _Refused:
        construct = f'reading values of type {own} into column "{column.name}" of type {column.type}'
        hint = "Leave the column out, or write its parts or its text to separate columns."
        raise SqlError("0A000", f"{construct} is not supported", hint=hint, where=where) from None


class _Refused(Exception):
    """No values of a type are made of another."""


def _converted(values: pa.Array, kind: SqlType) -> pa.Array:
    """The values in a type. Raises ColumnError, _Refused, pa.ArrowException."""
    is_uuid = isinstance(values.type, pa.UuidType)
    values = _plain(values)
    own, types = values.type, pa.types
    if types.is_null(own):
        return values.cast(kind.arrow)
    if types.is_string(own):
        values = require_text(values)
        return values if kind.name in ("text", "varchar") else decode_text_column(values, kind)
    if own == kind.arrow:
        return values
    if types.is_fixed_size_binary(own):
        return _of_fixed_bytes(values, kind, is_uuid)
    if types.is_binary(own):
        return _converted(require_text(values).cast(pa.string()), kind)
    if types.is_decimal(own):
        return _of_decimals(values, kind)
    if own not in _SAME or kind.name in _APART:
        raise _Refused
    is_wider = types.is_integer(own) and types.is_integer(kind.arrow) and own.bit_width < kind.arrow.bit_width
    are_moments = types.is_timestamp(own) and types.is_timestamp(kind.arrow)  # one is the other in UTC
    if is_wider or are_moments or (own == pa.float32() and kind == FLOAT8):
        return values.cast(kind.arrow)
    texts = values.cast(pa.string()) if types.is_boolean(own) else encode_text(values, _SAME[own])
    return decode_text_column(texts, kind)


def _of_fixed_bytes(values: pa.Array, kind: SqlType, is_uuid: bool) -> pa.Array:
    """Bytes of one length in a type: a uuid has 16, and of a text it must be known that they are one."""
    is_text = kind.name in _TEXTS
    if values.type.byte_width == 16 and (kind.name == "uuid" or (is_uuid and is_text)):
        texts = decode_binary_column(values.cast(pa.binary()), UUID)
        return decode_text_column(texts, kind) if is_text else texts
    if kind.name != "bytea":
        raise _Refused
    return values.cast(pa.binary())


def _plain(values: pa.Array) -> pa.Array:
    """The values in the type that stands for all that hold the same."""
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(values.storage)
    if pa.types.is_dictionary(kind):
        return _plain(values.dictionary_decode())
    if kind in _WIDER:
        return values.cast(_WIDER[kind])
    if pa.types.is_time(kind):
        return _in_microseconds(values, kind, pa.time64("us"))
    if pa.types.is_timestamp(kind):
        return _in_microseconds(values, kind, pa.timestamp("us", None if kind.tz is None else "UTC"))
    return values


def _in_microseconds(values: pa.Array, kind: Any, target: pa.DataType) -> pa.Array:
    """Times in microseconds; halves of these go away from zero. Raises pa.ArrowInvalid where one is too large."""
    if kind.unit != "ns":
        return values.cast(target)
    counts = values.cast(pa.int64())
    numbers = counts.fill_null(0).to_numpy()
    rounded = np.sign(numbers) * ((np.abs(numbers) + 500) // 1000)
    mask = counts.is_null().to_numpy(zero_copy_only=False)
    return pa.array(rounded, pa.int64(), mask=mask).cast(target)


def _of_decimals(values: pa.Array, kind: SqlType) -> pa.Array:
    """Decimals in a type; digits beyond a numeric's scale are rounded, halves away from zero."""
    if kind.name in (*_APART, "bool"):
        raise _Refused
    own = values.type
    if kind.name == "numeric" and own.precision <= MAX_PRECISION and own.scale >= 0:
        known = values.cast(pa.decimal128(own.precision, own.scale))
        if own.scale > kind.scale:
            known = pc.call_function("round", [known], pc.RoundOptions(kind.scale, "half_towards_infinity"))
        with contextlib.suppress(pa.ArrowInvalid):  # where a value has too many digits
            return known.cast(kind.arrow)
    texts = pa.array([None if item is None else format(item, "f") for item in values.to_pylist()], pa.string())
    return decode_text_column(texts, kind)


def require_text(values: pa.Array) -> pa.Array:
    """Texts or bytes, each of which is UTF-8 without a zero byte. Raises ColumnError with 22021."""
    data = value_bytes(values)
    is_text = not data.size or (bool(data.all()) and _is_valid(values))
    if is_text:
        return values
    for place, item in enumerate(values.cast(pa.binary())):
        value = item.as_py()
        if value and (start := first_invalid(value)) is not None:
            raise ColumnError(place, invalid_encoding(value, start))
    return values


def _is_valid(values: pa.Array) -> bool:
    """Whether texts are UTF-8."""
    try:
        (values if pa.types.is_string(values.type) else values.cast(pa.string())).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True

"""The codec of every type, and the conversions that other layers call.

Formats are the protocol's: 0 is text, 1 is binary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from catalog.values.array_shapes import is_shaped
from catalog.values.encodings import UTF8
from catalog.values.errors import SqlError
from catalog.values.types import MULTIRANGES, RANGES, ROUNDED, TYPES, SqlType
from protocol.utf8 import decode_utf8
from protocol.values.codec import Codec, Value
from protocol.values.forms import addresses, bits, catalog_types, geometry, hstores, snapshots, text_search, xmls
from protocol.values.nested.arrays import array_codec
from protocol.values.nested.multiranges import multirange_codec
from protocol.values.nested.ranges import range_codec
from protocol.values.nested.rows import row_codec
from protocol.values.nested.shaped_arrays import shaped_codec
from protocol.values.numbers import booleans, integers_and_floats, money, numeric, numeric_text
from protocol.values.styles import encoding_of
from protocol.values.text import bytea, enums, jsons, strings, uuids
from protocol.values.times import datetimes, intervals, zoned_times
from protocol.values.times.precision import fitted
from protocol.values.transcoding import transcoder

TEXT_FORMAT: Final = 0
BINARY_FORMAT: Final = 1

_CODECS: Final[dict[str, Codec]] = {
    **integers_and_floats.CODECS,
    **numeric.CODECS,
    **strings.CODECS,
    **booleans.CODECS,
    **bytea.CODECS,
    **uuids.CODECS,
    **jsons.CODECS,
    **datetimes.CODECS,
    **zoned_times.CODECS,
    **intervals.CODECS,
    **catalog_types.CODECS,
    **addresses.CODECS,
    **bits.CODECS,
    **geometry.CODECS,
    **hstores.CODECS,
    **text_search.CODECS,
    **money.CODECS,
    **snapshots.CODECS,
    **xmls.CODECS,
}
_CODECS.update(dict.fromkeys(RANGES, range_codec(_CODECS)))
_CODECS.update(dict.fromkeys(MULTIRANGES, multirange_codec(_CODECS)))
assert _CODECS.keys() == TYPES.keys(), "every type has a codec"
_CODECS.update({name: fitted(_CODECS[name]) for name in ROUNDED})
_CODECS.update(enums.CODECS)
_CODECS["array"] = array_codec(_CODECS)
_CODECS["shaped"] = shaped_codec(_CODECS)
_CODECS["record"] = row_codec(_CODECS)

#: Functions that write one value of a type, which are quicker than Arrow for few values.
PRINTED: Final[dict[str, Callable[[Any, SqlType], str]]] = {
    **dict.fromkeys(("int2", "int4", "int8"), lambda value, type_: str(value)),
    "numeric": numeric_text.numeric_out,
    "money": money.money_out,
}
_WRITTEN: Final = {**PRINTED, "bpchar": strings.bpchar_out}


def encode_text(array: pa.Array, type_: SqlType, timezone: str = "UTC") -> pa.Array:
    """A column's fields in text format, as a string array."""
    return _CODECS[type_.name].text(array, type_, timezone)


def encode_binary(array: pa.Array, type_: SqlType) -> pa.Array:
    """A column's fields in binary format, as a binary or fixed-size binary array."""
    return _CODECS[type_.name].binary(array, type_)


def encode_column(array: pa.Array, type_: SqlType, format_: int, timezone: str = "UTC") -> pa.Array:
    """A column's fields in a format, texts in the client's encoding. Raises 22P05."""
    is_text = format_ != BINARY_FORMAT
    found = encode_text(array, type_, timezone) if is_text else encode_binary(array, type_)
    encoding = encoding_of(timezone)
    recoder = None if encoding == UTF8 else transcoder(encoding)
    return found if recoder is None else recoder.fields(found, type_, is_text)


def encode_few(array: pa.Array, type_: SqlType, format_: int, timezone: str = "UTC") -> list[bytes | None]:
    """The fields of a few values. For few values, Python is quicker than a call of Arrow."""
    if format_ == TEXT_FORMAT and type_.name in _WRITTEN and encoding_of(timezone) == UTF8:
        write = _WRITTEN[type_.name]
        return [None if value is None else write(value, type_).encode() for value in array.to_pylist()]
    fields = encode_column(array, type_, format_, timezone).to_pylist()
    return [field.encode() if isinstance(field, str) else field for field in fields]


def decode_value(data: bytes | memoryview, type_: SqlType, format_: int, timezone: str = "UTC") -> Value:
    """One parameter's value as planner.algebra.nodes.Literal holds it; a tuple for an array.

    Raises PostgreSQL's error for invalid data, and 22023 for an unknown format.
    """
    codec = _CODECS[type_.name]
    if format_ == BINARY_FORMAT:
        return codec.from_binary(bytes(data), type_)
    if format_ != TEXT_FORMAT:
        raise SqlError("22023", f"unsupported format code: {format_}")
    return codec.from_text(decode_utf8(bytes(data)), type_, timezone)


def says_shape(data: bytes | memoryview, format_: int) -> bool:
    """Whether an array's field has several dimensions or a lower bound other than 1."""
    if format_ != BINARY_FORMAT:
        return is_shaped(decode_utf8(bytes(data)))
    head = bytes(data[:20])
    return len(head) == 20 and (head[:4] != b"\0\0\0\1" or head[16:] != b"\0\0\0\1")


def value_decoder(type_: SqlType, format_: int, timezone: str = "UTC") -> Callable[[bytes], Value]:
    """A function like ``decode_value`` for one type and format."""
    digits = integers_and_floats.SAFE_DIGITS.get(type_.name, 0) if format_ == TEXT_FORMAT else 0

    def decode(data: bytes) -> Value:
        return decode_value(data, type_, format_, timezone)

    def decode_digits(data: bytes) -> Value:
        return int(data) if len(data) <= digits and data.isdigit() else decode(data)

    return decode_digits if digits else decode


def decode_text_column(texts: pa.Array, type_: SqlType, timezone: str = "UTC") -> pa.Array:
    """Decodes fields in text format to a column of ``type_.arrow``. Raises ``ColumnError``."""
    return _CODECS[type_.name].column_from_text(texts, type_, timezone)


def decode_binary_column(binaries: pa.Array, type_: SqlType) -> pa.Array:
    """Decodes fields in binary format to a column of ``type_.arrow``. Raises ``ColumnError``."""
    return _CODECS[type_.name].column_from_binary(binaries, type_)

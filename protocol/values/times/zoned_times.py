"""timetz: ``10:20:30.5+02`` in text; in binary, microseconds of the day and the zone's seconds west of Greenwich.

Arrow carries the numbers that ``catalog.values.times.timetz`` defines.
"""

from __future__ import annotations

from functools import partial
from struct import error as StructError
from struct import unpack
from typing import Final

import numpy as np
import pyarrow as pa

from catalog.values.errors import SqlError
from catalog.values.times.timestamps import parse_timetz
from catalog.values.times.timetz import DAY, LIMIT, packed, unpacked, written
from catalog.values.types import SqlType
from protocol.compute import constant, pc
from protocol.values.codec import (
    Codec,
    ColumnError,
    bad_binary,
    fast_or_exact,
    fixed,
    from_vector,
    offsets,
    value_bytes,
    vector,
)
from protocol.values.styles import order_of, zone_of

_LAYOUT: Final = np.dtype([("microseconds", ">i8"), ("west", ">i4")])
_PLAIN: Final = r"^(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?[+-](?:0\d|1[0-5])(?::[0-5]\d)?$"
_OFFSET: Final = r"^(?P<clock>.*)(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d)?$"


def _text(array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    """A column's texts; each distinct time is formatted once."""
    encoded = array.dictionary_encode()
    return pa.array(map(written, encoded.dictionary.to_pylist()), pa.string()).take(encoded.indices)


def _binary(array: pa.Array, type_: SqlType) -> pa.Array:
    fields = np.empty(len(array), _LAYOUT)
    fields["microseconds"], fields["west"] = unpacked(vector(array, "<i8"))
    return fixed(fields.view(np.uint8).reshape(len(array), _LAYOUT.itemsize), array)


def _from_text(text: str, type_: SqlType, timezone: str) -> int:
    return parse_timetz(text, zone_of(timezone), order_of(timezone))


def _wrong(microseconds: int, west: int) -> SqlError | None:
    if not 0 <= microseconds <= DAY:
        return SqlError("22008", "time out of range")
    return None if abs(west) < LIMIT else SqlError("22009", "time zone displacement out of range")


def _from_binary(data: bytes, type_: SqlType) -> int:
    try:
        microseconds, west = unpack(">qi", data)
    except StructError:
        raise bad_binary(str(type_)) from None
    if (error := _wrong(microseconds, west)) is not None:
        raise error
    number: int = packed(microseconds, west)
    return number


def _convert(texts: pa.Array) -> pa.Array:
    """Splits a column into local time and offset."""
    clock, sign, hours, minutes = pc.extract_regex(texts, _OFFSET).flatten()
    moments = pc.binary_join_element_wise(constant("1970-01-01"), clock, constant(" ")).cast(pa.timestamp("us"))
    minutes = pc.if_else(pc.equal(minutes, constant("")), constant("0"), minutes)
    seconds = pc.add(
        pc.multiply(hours.cast(pa.int64()), constant(3600)), pc.multiply(minutes.cast(pa.int64()), constant(60))
    )
    west = pc.if_else(pc.equal(sign, constant("-")), seconds, pc.negate(seconds))
    return from_vector(packed(vector(moments, "<i8"), vector(west, "<i8")), pa.int64(), west)


def _column_from_text(strings: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    return fast_or_exact(strings, _PLAIN, _convert, partial(_from_text, type_=type_, timezone=timezone), pa.int64())


def _column_from_binary(binaries: pa.Array, type_: SqlType) -> pa.Array:
    valid, lengths = np.asarray(pc.is_valid(binaries)), np.diff(offsets(binaries))
    wrong = np.flatnonzero(valid & (lengths != _LAYOUT.itemsize))
    if len(wrong):
        raise ColumnError(int(wrong[0]), bad_binary(str(type_)))
    fields = np.zeros(len(binaries), _LAYOUT)
    fields[valid] = value_bytes(binaries.drop_null() if binaries.null_count else binaries).view(_LAYOUT)
    microseconds, west = fields["microseconds"].astype(np.int64), fields["west"].astype(np.int64)
    wrong = np.flatnonzero((microseconds < 0) | (microseconds > DAY) | (np.abs(west) >= LIMIT))
    if len(wrong):
        index = int(wrong[0])
        error = _wrong(int(microseconds[index]), int(west[index]))
        assert error is not None
        raise ColumnError(index, error)
    return from_vector(packed(microseconds, west), pa.int64(), binaries)


CODECS: Final[dict[str, Codec]] = {
    "timetz": Codec(
        text=_text,
        binary=_binary,
        from_text=_from_text,
        from_binary=_from_binary,
        column_from_text=_column_from_text,
        column_from_binary=_column_from_binary,
    )
}

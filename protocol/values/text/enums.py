"""Enums: the labels in both formats. Arrow carries the labels' positions (``catalog.values.types.Enumeration``)."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from catalog.values.errors import SqlError
from catalog.values.types import Enumeration, SqlType
from protocol.compute import pc
from protocol.utf8 import decode_utf8
from protocol.values.codec import Codec, ColumnError
from protocol.values.text.strings import utf8_column


def _declared(type_: SqlType) -> Enumeration:
    assert type_.enum is not None
    return type_.enum


def _text(array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    declared = _declared(type_)
    found = pc.index_in(array, pa.array(declared.places, pa.int64()))
    if found.null_count > array.null_count:
        raise SqlError("22P03", f"invalid internal value for enum {declared}")
    return pa.array(declared.labels, pa.string()).take(found)


def _binary(array: pa.Array, type_: SqlType) -> pa.Array:
    return _text(array, type_, "").cast(pa.binary())


def invalid_label(text: str, declared: Enumeration) -> SqlError:
    """The error 22P02 for a label."""
    return SqlError("22P02", f'invalid input value for enum {declared}: "{text}"')


def _from_text(text: str, type_: SqlType, timezone: str) -> int:
    declared = _declared(type_)
    if text not in declared.labels:
        raise invalid_label(text, declared)
    return declared.places[declared.labels.index(text)]


def _from_binary(data: bytes, type_: SqlType) -> int:
    return _from_text(decode_utf8(data), type_, "")


def _column_from_text(strings: pa.Array, type_: SqlType, timezone: str = "") -> pa.Array:
    declared = _declared(type_)
    found = pc.index_in(strings.cast(pa.string()), pa.array(declared.labels, pa.string()))
    if found.null_count > strings.null_count:
        place = pc.index(pc.and_(pc.is_null(found), pc.is_valid(strings)), True).as_py()
        raise ColumnError(place, invalid_label(strings[place].as_py(), declared))
    return pa.array(declared.places, pa.int64()).take(found)


def _column_from_binary(binaries: pa.Array, type_: SqlType) -> pa.Array:
    return _column_from_text(utf8_column(binaries), type_)


CODECS: Final[dict[str, Codec]] = {
    "enum": Codec(
        text=_text,
        binary=_binary,
        from_text=_from_text,
        from_binary=_from_binary,
        column_from_text=_column_from_text,
        column_from_binary=_column_from_binary,
    )
}

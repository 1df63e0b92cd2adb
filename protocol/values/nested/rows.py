"""Rows: ``(1,"a b",)`` and the binary form, made by their fields' codecs.

Owns: both forms as PostgreSQL's record_out() and record_send() write them. Columns of rows are split into columns of
their fields, and assembled from such columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from struct import error as StructError
from struct import unpack_from
from typing import Final

import numpy as np
import pyarrow as pa

from catalog.values.errors import SqlError
from catalog.values.nested_texts import split_row
from catalog.values.types import Composite, SqlType
from protocol.compute import constant, pc
from protocol.values.codec import Codec, Codecs, ColumnError, Value, bad_binary, codec_over
from protocol.values.framing import fixed_binaries, framed

_NEEDS_QUOTES: Final = r'^$|[(),"\\ \t\n\v\f\r]'


def row_codec(codecs: Codecs) -> Codec:
    """The codec of all types of rows over the codecs of their fields."""
    return codec_over(codecs, _text, _binary, _from_text, _from_binary, _column_from_text, _column_from_binary)


def _declared(type_: SqlType) -> Composite:
    assert type_.row is not None
    return type_.row


def _kinds(type_: SqlType) -> list[SqlType]:
    return [kind for _, kind in _declared(type_).fields]


# --- to the client ---------------------------------------------------------------------------------------------------


def _text(codecs: Codecs, array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    pairs = zip(array.flatten(), _kinds(type_), strict=True)
    fields = [_quoted(codecs[kind.name].text(field, kind, timezone).cast(pa.string())) for field, kind in pairs]
    body = fields[0] if len(fields) == 1 else pc.binary_join_element_wise(*fields, constant(","))
    texts = pc.binary_join_element_wise(constant("("), body, constant(")"), constant(""))
    return pc.if_else(pc.is_valid(array), texts, constant(None))


def _quoted(texts: pa.Array) -> pa.Array:
    """Fields as a row's text shows them; NULL is an empty text."""
    quoted = pc.match_substring_regex(texts, _NEEDS_QUOTES)
    if pc.any(quoted).as_py():
        escaped = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '""')
        marks = constant('"')
        texts = pc.if_else(quoted, pc.binary_join_element_wise(marks, escaped, marks, constant("")), texts)
    return texts.fill_null(constant(""))


def _binary(codecs: Codecs, array: pa.Array, type_: SqlType) -> pa.Array:
    kinds = _kinds(type_)
    pieces: list[pa.Array] = [_repeated(len(kinds), len(array))]
    for field, kind in zip(array.flatten(), kinds, strict=True):
        pieces += [_repeated(kind.oid, len(array)), framed(codecs[kind.name].binary(field, kind))]
    data = pc.binary_join_element_wise(*pieces, constant(b""))
    return pc.if_else(pc.is_valid(array), data, pa.scalar(None, pa.binary()))


def _repeated(number: int, count: int) -> pa.Array:
    return fixed_binaries(np.full(count, number, ">u4"))


# --- from the client -------------------------------------------------------------------------------------------------


def split_binary(data: bytes, kinds: Sequence[SqlType]) -> list[bytes | None]:
    """The fields in a row's binary form. Raises 22P03 and 42804."""
    fields: list[bytes | None] = []
    try:
        (count,) = unpack_from(">i", data)
        if count != len(kinds):
            raise SqlError("42804", f"wrong number of columns: {count}, expected {len(kinds)}")
        position = 4
        for place, kind in enumerate(kinds, 1):
            oid, length = unpack_from(">Ii", data, position)
            if oid != kind.oid:
                message = f"binary data has type {oid} instead of expected {kind.oid} in record column {place}"
                raise SqlError("42804", message)
            position += 8
            if length < -1 or position + max(length, 0) > len(data):
                raise bad_binary("record")
            fields.append(None if length < 0 else data[position : position + length])
            position += max(length, 0)
    except StructError:
        raise bad_binary("record") from None
    if position != len(data):
        raise bad_binary("record")
    return fields


def _require_declared(type_: SqlType) -> None:
    if not _declared(type_).oid:
        raise SqlError("0A000", "input of anonymous composite types is not implemented")


def _from_text(codecs: Codecs, text: str, type_: SqlType, timezone: str) -> tuple[Value, ...]:
    _require_declared(type_)
    kinds = _kinds(type_)
    pairs = list(zip(split_row(text, len(kinds)), kinds, strict=True))
    return tuple(None if item is None else codecs[kind.name].from_text(item, kind, timezone) for item, kind in pairs)


def _from_binary(codecs: Codecs, data: bytes, type_: SqlType) -> tuple[Value, ...]:
    _require_declared(type_)
    kinds = _kinds(type_)
    pairs = zip(split_binary(data, kinds), kinds, strict=True)
    return tuple(None if item is None else codecs[kind.name].from_binary(item, kind) for item, kind in pairs)


def column(
    array: pa.Array,
    type_: SqlType,
    target: SqlType,
    split: Callable[..., Iterator[str | None] | list[bytes | None]],
    decode: Callable[[pa.Array, SqlType], pa.Array],
) -> pa.Array:
    """Splits each row in Python and decodes each field's values as one column. ``target`` is a row type of as many
    fields."""
    kinds = _kinds(type_)
    rows: list[tuple[str | bytes | None, ...]] = []
    for index, value in enumerate(array.to_pylist()):
        try:
            rows.append((None,) * len(kinds) if value is None else tuple(split(value)))
        except SqlError as error:
            raise ColumnError(index, error) from None
    columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
    fields = [decode(pa.array(values, array.type), kind) for values, kind in zip(columns, kinds, strict=True)]
    mask = pc.is_null(array) if array.null_count else None
    return pa.StructArray.from_arrays(fields, fields=list(target.arrow), mask=mask)


def _column_from_text(codecs: Codecs, strings: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    _require_declared(type_)
    width = len(_kinds(type_))
    texts = strings.cast(pa.string())
    return column(
        texts,
        type_,
        type_,
        lambda text: split_row(text, width),
        lambda values, kind: codecs[kind.name].column_from_text(values, kind, timezone),
    )


def _column_from_binary(codecs: Codecs, binaries: pa.Array, type_: SqlType) -> pa.Array:
    _require_declared(type_)
    kinds = _kinds(type_)
    return column(
        binaries,
        type_,
        type_,
        lambda data: split_binary(data, kinds),
        lambda values, kind: codecs[kind.name].column_from_binary(values, kind),
    )

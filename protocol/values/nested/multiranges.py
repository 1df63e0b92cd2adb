"""Multiranges: ``{[1,5),[7,9)}`` and the binary form, made by the codecs of their ranges.

Owns: both forms as PostgreSQL's multirange_out() and multirange_send() write them, and the conversion of columns of
multiranges to and from columns of their ranges (``catalog.values.multiranges`` defines the bytes and the union within a
row). A text without escapes and without the word "empty", such as PostgreSQL writes for all these types, is split
together with its whole column; other texts are parsed one by one.
"""

from __future__ import annotations

from struct import error as StructError
from struct import unpack_from
from typing import Final

import numpy as np
import pyarrow as pa

from catalog.values.multiranges import made, range_of, read, united, width_of
from catalog.values.ranges import subtype_of
from catalog.values.types import SqlType
from protocol.compute import constant, pc
from protocol.values.codec import (
    Codec,
    Codecs,
    ColumnError,
    Vector,
    bad_binary,
    codec_over,
    fast_or_exact,
    joined,
    offsets,
    pieces,
    value_bytes,
    variable,
)
from protocol.values.framing import fixed_binaries, framed
from protocol.values.nested.ranges import next_field

_BLANK: Final = r"[ \t\n\v\f\r]*"
_RANGE: Final = r'[\[(](?:"[^"\\\[\]()]+"|[^",)(\[\]\\])*,(?:"[^"\\\[\]()]+"|[^",)(\[\]\\])*[\])]'
_PLAIN: Final = rf"^{_BLANK}\{{{_BLANK}(?:{_RANGE}{_BLANK}(?:,{_BLANK}{_RANGE}{_BLANK})*)?\}}{_BLANK}$"
#: The end of one range and the begin of the next.
_BETWEEN: Final = rf"([\])]){_BLANK},{_BLANK}([\[(])"
#: A mark to put between ranges: a character that no plain text contains.
_MARK: Final = "\x1f"
#: An array without nulls, for ``pieces``.
_WHOLE: Final = pa.array([], pa.binary())


def multirange_codec(codecs: Codecs) -> Codec:
    """The codec of all multirange types over the codecs of their ranges and bounds."""
    return codec_over(codecs, _text, _binary, _from_text, _from_binary, _column_from_text, _column_from_binary)


# --- columns of bytes ------------------------------------------------------------------------------------------------


def opened(array: pa.Array, type_: SqlType) -> tuple[pa.Array, Vector]:
    """All ranges of a column, and where each row's ranges begin among them; a null row has no ranges."""
    width = width_of(type_)
    whole = array.fill_null(constant(b"")) if array.null_count else array
    bounds = offsets(whole)
    data = value_bytes(whole).reshape(-1, width)
    return fixed_binaries(data), (bounds - bounds[0]) // width


def closed(parts: pa.Array, bounds: Vector, type_: SqlType, like: pa.Array) -> pa.Array:
    """The multiranges of consecutive ranges; ``bounds`` says where each row's ranges begin. Null where ``like`` is
    null."""
    data = value_bytes(parts).reshape(-1, width_of(type_))
    return variable(*united(data, np.diff(bounds)), like)


# --- to the client ---------------------------------------------------------------------------------------------------


def _text(codecs: Codecs, array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    parts, bounds = opened(array, type_)
    single = range_of(type_)
    texts = codecs[single.name].text(parts, single, timezone).cast(pa.string())
    shown = pc.binary_join_element_wise(constant("{"), joined(texts, bounds, ","), constant("}"), constant(""))
    return pc.if_else(pc.is_valid(array), shown, constant(None)) if array.null_count else shown


def _binary(codecs: Codecs, array: pa.Array, type_: SqlType) -> pa.Array:
    parts, bounds = opened(array, type_)
    single = range_of(type_)
    fields = framed(codecs[single.name].binary(parts, single))
    counts = variable(np.diff(bounds).astype(">i4").view(np.uint8), np.full(len(array), 4), array)
    return pc.binary_join_element_wise(counts, joined(fields, bounds, b""), constant(b""))


# --- from the client -------------------------------------------------------------------------------------------------


def _from_text(codecs: Codecs, text: str, type_: SqlType, timezone: str) -> bytes:
    subtype = subtype_of(range_of(type_))
    decode = codecs[subtype.name].from_text
    return read(text, type_, lambda bound: decode(bound, subtype, timezone))


def _from_binary(codecs: Codecs, data: bytes, type_: SqlType) -> bytes:
    single = range_of(type_)
    parts, place = [], 4
    try:
        (count,) = unpack_from(">i", data)
        for _ in range(count):
            (length,) = unpack_from(">i", data, place)
            place += 4 + max(length, 0)
            if length < 0 or place > len(data):
                raise bad_binary(type_.name)
            part = codecs[single.name].from_binary(data[place - length : place], single)
            assert isinstance(part, bytes)
            parts.append(part)
    except StructError:
        raise bad_binary(type_.name) from None
    if count < 0 or place != len(data):
        raise bad_binary(type_.name)
    return made(type_, parts)


def _column_from_text(codecs: Codecs, texts: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    single = range_of(type_)

    def convert(plain: pa.Array) -> pa.Array:
        inner = pc.utf8_trim(pc.utf8_trim(plain, " \t\n\v\f\r"), "{} \t\n\v\f\r")
        inner = pc.if_else(pc.equal(inner, constant("")), constant(None), inner)
        marked = pc.replace_substring_regex(inner, _BETWEEN, rf"\1{_MARK}\2")
        lists = pc.split_pattern(marked, _MARK)
        bounds = np.zeros(len(lists) + 1, np.int32)
        np.cumsum(np.asarray(pc.list_value_length(lists).fill_null(constant(0))), out=bounds[1:])
        try:
            parts = codecs[single.name].column_from_text(lists.flatten(), single, timezone)
        except ColumnError as error:
            raise _in_row(error, bounds) from None
        return closed(parts, bounds, type_, plain)

    strings = texts.cast(pa.string())
    return fast_or_exact(strings, _PLAIN, convert, lambda text: _from_text(codecs, text, type_, timezone), pa.binary())


def _in_row(error: ColumnError, bounds: Vector) -> ColumnError:
    """The error of a range, reported for the range's row."""
    return ColumnError(int(np.searchsorted(bounds, error.index, "right")) - 1, error.error)


def _column_from_binary(codecs: Codecs, binaries: pa.Array, type_: SqlType) -> pa.Array:
    single = range_of(type_)
    data = value_bytes(binaries)
    bounds = offsets(binaries) - (offsets(binaries)[0] if len(binaries) else 0)
    valid = np.asarray(pc.is_valid(binaries))
    ends = bounds[1:]
    place = bounds[:-1] + 4 * valid
    _refuse(place > ends, type_)
    counts = np.zeros(len(binaries), np.int64)
    counts[valid] = data[bounds[:-1][valid][:, None] + np.arange(4)].view(">i4")[:, 0]
    _refuse((counts < 0) | (4 * counts > ends - place), type_)
    found = []  # by turns: the first range of each row, then the second of each, and so on
    for turn in range(int(counts.max(initial=0))):
        present = counts > turn
        start, place = next_field(data, place, ends, present, type_)
        rows = np.flatnonzero(present)
        found.append(np.stack((rows, start[rows], place[rows])))
    _refuse(place != ends, type_)
    rows, starts, stops = np.hstack(found) if found else np.empty((3, 0), np.int64)
    order = np.argsort(rows, kind="stable")
    starts, stops = starts[order], stops[order]
    limits = np.append(0, np.cumsum(counts))
    try:
        parts = codecs[single.name].column_from_binary(pieces(data, starts, stops, _WHOLE), single)
    except ColumnError as error:
        raise _in_row(error, limits) from None
    return closed(parts, limits, type_, binaries)


def _refuse(wrong: Vector, type_: SqlType) -> None:
    """Raises ``ColumnError`` for the first row that the mask ``wrong`` marks."""
    if wrong.any():
        raise ColumnError(int(np.flatnonzero(wrong)[0]), bad_binary(type_.name))

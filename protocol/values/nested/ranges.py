"""Ranges: ``[1,5)`` and the binary form, made by their bounds' codecs.

Owns: both forms as PostgreSQL's range_out() and range_send() write them, and the conversion of columns of ranges to and
from columns of their bounds (``catalog.values.ranges`` defines the bytes). A text without escapes, such as PostgreSQL
writes for all these types, is split together with its whole column; other texts are parsed one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import error as StructError
from struct import unpack_from
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from catalog.values.errors import SqlError
from catalog.values.ranges import (
    ABOVE,
    AT,
    BELOW,
    LARGEST,
    Bounds,
    canonical,
    empty,
    is_infinite,
    made,
    number_of,
    read,
    subtype_of,
    width_of,
)
from catalog.values.types import RANGES, SqlType
from protocol.compute import constant, pc
from protocol.values.codec import (
    Codec,
    Codecs,
    ColumnError,
    Value,
    Vector,
    bad_binary,
    codec_over,
    fast_or_exact,
    offsets,
    pieces,
    value_bytes,
    variable,
    vector,
)
from protocol.values.framing import fixed_binaries, framed

#: Flags of the binary form (rangetypes.h).
_EMPTY, _WITH_LOWER, _WITH_UPPER, _NO_LOWER, _NO_UPPER = (1 << bit for bit in range(5))
_NULL: Final = pa.scalar(None, pa.binary())
#: An array without nulls, for ``pieces``.
_WHOLE: Final = pa.array([], pa.binary())
_NEEDS_QUOTES: Final = r'^$|[(),\[\]"\\ \t\n\v\f\r]'
_BLANK: Final = r"[ \t\n\v\f\r]*"
_BOUND: Final = r'(?:"(?P<quoted_{0}>[^"\\]+)"|(?P<{0}>[^",)\]\\]*))'
#: A text with each bound either wholly in quotes or without quotes.
_PLAIN: Final = (
    rf"^{_BLANK}(?:(?P<empty>[eE][mM][pP][tT][yY])|(?P<open>[\[(])"
    + _BOUND.format("lower")
    + ","
    + _BOUND.format("upper")
    + rf"(?P<close>[\])])){_BLANK}$"
)


def range_codec(codecs: Codecs) -> Codec:
    """The codec of all range types over the codecs of their bounds."""
    return codec_over(codecs, _text, _binary, _from_text, _from_binary, _column_from_text, _column_from_binary)


# --- columns of bytes ------------------------------------------------------------------------------------------------


class Column(Struct, frozen=True):
    """A column of ranges: its bounds as columns of their type, null for an absent bound, and vectors of booleans."""

    lower: pa.Array
    upper: pa.Array
    with_lower: Vector
    with_upper: Vector
    is_empty: Vector


def opened(array: pa.Array, type_: SqlType) -> Column:
    """The bounds of a column of ranges."""
    width = width_of(type_)
    data = value_bytes(array.fill_null(constant(empty(type_)))).reshape(-1, 2 * width + 4)
    halves = (data[:, : width + 2], data[:, width + 2 :])
    lower, upper = (_values(half, type_) for half in halves)
    with_lower, with_upper = (
        (half[:, 0] == AT) & (half[:, -1] == side) for half, side in zip(halves, (0, 1), strict=True)
    )
    return Column(lower, upper, with_lower, with_upper, data[:, 0] == 0)


def _values(cuts: Vector, type_: SqlType) -> pa.Array:
    """The values of cuts, null where a cut is not at a value."""
    arrow = subtype_of(type_).arrow
    numbers = np.ascontiguousarray(cuts[:, -2:0:-1])
    numbers[:, -1] ^= 0x80
    carrier = arrow if pa.types.is_decimal(arrow) else pa.int64()
    present = pa.array(cuts[:, 0] == AT).buffers()[1]
    found = pa.Array.from_buffers(carrier, len(cuts), [present, pa.py_buffer(numbers)])
    if carrier == arrow:
        return found
    return found.cast(pa.int32()).view(arrow) if arrow.bit_width == 32 else found.view(arrow)


def closed(column: Column, type_: SqlType, like: pa.Array) -> pa.Array:
    """The canonical ranges with these bounds, null where ``like`` is null. Raises ``ColumnError``."""
    lower, upper = column.lower, column.upper
    has_lower, has_upper = (np.asarray(pc.is_valid(side)) for side in (lower, upper))
    with_lower, with_upper = column.with_lower & has_lower, column.with_upper & has_upper
    if (wrong := _where(pc.greater, lower, upper)).any():
        raise _refused(column, type_, int(np.flatnonzero(wrong)[0]))
    is_empty = column.is_empty | (_where(pc.equal, lower, upper) & ~(with_lower & with_upper))
    if (name := RANGES[type_.name]) in LARGEST:
        numbers = [_integers(side) for side in (lower, upper)]
        after = [has_lower & ~with_lower & ~is_empty, with_upper & ~is_empty]
        for side, (number, moves) in enumerate(zip(numbers, after, strict=True)):
            moves &= np.logical_not(is_infinite(name, number))
            if (last := moves & (number >= LARGEST[name][0])).any():
                raise _refused(column, type_, int(np.flatnonzero(last)[0]))
            numbers[side] = number + moves
        with_lower, with_upper = with_lower | after[0], with_upper & ~after[1]
        is_empty |= has_lower & has_upper & (numbers[0] == numbers[1]) & ~(with_lower & with_upper)
        keys = [_big_endian(number) for number in numbers]
    else:
        keys = [_keys(side) for side in (lower, upper)]
    halves = (
        _cuts(keys[0], has_lower, ~with_lower & has_lower, BELOW),
        _cuts(keys[1], has_upper, with_upper, ABOVE),
    )
    data = np.hstack(halves)
    data[is_empty] = 0
    return variable(data.reshape(-1), np.full(len(data), 2 * width_of(type_) + 4), like)


def _where(compare: Callable[[pa.Array, pa.Array], pa.Array], lower: pa.Array, upper: pa.Array) -> Vector:
    """A mask of the rows that have both bounds and for which the comparison is true."""
    return np.asarray(compare(lower, upper).fill_null(constant(False)))


def _refused(column: Column, type_: SqlType, index: int) -> ColumnError:
    """PostgreSQL's error for the bounds of the row at ``index``."""
    lower, upper = (_number(side, index) for side in (column.lower, column.upper))
    bounds = Bounds(lower, upper, bool(column.with_lower[index]), bool(column.with_upper[index]))
    try:
        canonical(type_, bounds)
    except SqlError as error:
        return ColumnError(index, error)
    raise AssertionError(bounds)


def _number(values: pa.Array, index: int) -> int | None:
    if not values[index].is_valid:
        return None
    return number_of(values[index].as_py()) if pa.types.is_decimal(values.type) else int(_integers(values)[index])


def _integers(values: pa.Array) -> Vector:
    """The values as 64-bit integers, 0 for a null."""
    numbers = vector(values, "<i4" if values.type.bit_width == 32 else "<i8").astype("<i8")
    return np.where(np.asarray(pc.is_valid(values)), numbers, 0) if values.null_count else numbers


def _big_endian(numbers: Vector) -> Vector:
    """The 8-byte keys of numbers in cuts, as rows of a matrix."""
    keys = numbers.astype(">i8").view(np.uint8).reshape(-1, 8)
    keys[:, 0] ^= 0x80
    return keys


def _keys(values: pa.Array) -> Vector:
    """The keys of a column's values in cuts, as rows of a matrix."""
    if not pa.types.is_decimal(values.type):
        return _big_endian(_integers(values))
    numbers = np.frombuffer(values.buffers()[1], np.uint8).reshape(-1, 16)[values.offset : values.offset + len(values)]
    keys = numbers[:, ::-1].copy()
    keys[:, 0] ^= 0x80
    return keys


def _cuts(keys: Vector, present: Vector, above: Vector, otherwise: int) -> Vector:
    """The cuts at keys, as rows of a matrix."""
    cuts = np.empty((len(keys), keys.shape[1] + 2), np.uint8)
    cuts[:, 0] = np.where(present, AT, otherwise)
    cuts[:, 1:-1] = keys * present[:, None]
    cuts[:, -1] = above
    return cuts


# --- to the client ---------------------------------------------------------------------------------------------------


def _text(codecs: Codecs, array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    column, subtype = opened(array, type_), subtype_of(type_)
    texts = (codecs[subtype.name].text(side, subtype, timezone) for side in (column.lower, column.upper))
    lower, upper = (_quoted(side.cast(pa.string())) for side in texts)
    left, right = (
        pc.if_else(pa.array(included), constant(bracket), constant(otherwise))
        for included, bracket, otherwise in ((column.with_lower, "[", "("), (column.with_upper, "]", ")"))
    )
    nothing = constant("")
    shown = pc.binary_join_element_wise(left, lower, constant(","), upper, right, nothing)
    shown = pc.if_else(pa.array(column.is_empty), constant("empty"), shown)
    return pc.if_else(pc.is_valid(array), shown, constant(None)) if array.null_count else shown


def _quoted(texts: pa.Array) -> pa.Array:
    """Bounds as a range's text shows them, an absent bound as an empty text. No type of bounds has quotes in its
    texts."""
    quoted = pc.match_substring_regex(texts, _NEEDS_QUOTES)
    if pc.any(quoted).as_py():
        marks = constant('"')
        texts = pc.if_else(quoted, pc.binary_join_element_wise(marks, texts, marks, constant("")), texts)
    return texts.fill_null(constant(""))


def _binary(codecs: Codecs, array: pa.Array, type_: SqlType) -> pa.Array:
    column, subtype = opened(array, type_), subtype_of(type_)
    flags = np.where(column.is_empty, _EMPTY, 0) | column.with_lower * _WITH_LOWER | column.with_upper * _WITH_UPPER
    sides = []
    for side, absent in ((column.lower, _NO_LOWER), (column.upper, _NO_UPPER)):
        present = pc.is_valid(side)
        flags |= (~np.asarray(present) & ~column.is_empty) * absent
        fields = framed(codecs[subtype.name].binary(side, subtype))
        sides.append(pc.if_else(present, fields, constant(b"")))
    data = pc.binary_join_element_wise(fixed_binaries(flags.astype(np.uint8)), *sides, constant(b""))
    return pc.if_else(pc.is_valid(array), data, _NULL) if array.null_count else data


# --- from the client -------------------------------------------------------------------------------------------------


def _from_text(codecs: Codecs, text: str, type_: SqlType, timezone: str) -> bytes:
    subtype = subtype_of(type_)
    decode = codecs[subtype.name].from_text
    return read(text, type_, lambda bound: decode(bound, subtype, timezone))


def _from_binary(codecs: Codecs, data: bytes, type_: SqlType) -> bytes:
    subtype = subtype_of(type_)
    flags, place = data[0] if data else 0, 1
    values: list[Value] = []
    for absent in (_NO_LOWER, _NO_UPPER):
        if flags & (absent | _EMPTY):
            values.append(None)
            continue
        try:
            (length,) = unpack_from(">i", data, place)
        except StructError:
            raise bad_binary(type_.name) from None
        place += 4 + max(length, 0)
        if length < 0 or place > len(data):
            raise bad_binary(type_.name)
        values.append(codecs[subtype.name].from_binary(data[place - length : place], subtype))
    if place != len(data):
        raise bad_binary(type_.name)
    if flags & _EMPTY:
        return empty(type_)
    return made(type_, values[0], values[1], (bool(flags & _WITH_LOWER), bool(flags & _WITH_UPPER)))


def _column_from_text(codecs: Codecs, texts: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    strings = texts.cast(pa.string())
    subtype = subtype_of(type_)

    def convert(plain: pa.Array) -> pa.Array:
        parts = pc.extract_regex(plain, _PLAIN)
        lower, upper = (
            codecs[subtype.name].column_from_text(_written_bound(parts, side), subtype, timezone)
            for side in ("lower", "upper")
        )
        marks = {name: parts.field(name).fill_null(constant("")) for name in ("empty", "open", "close")}
        with_lower, with_upper = (
            np.asarray(pc.equal(marks[name], constant(mark))) for name, mark in (("open", "["), ("close", "]"))
        )
        is_empty = np.asarray(pc.not_equal(marks["empty"], constant("")))
        return closed(Column(lower, upper, with_lower, with_upper, is_empty), type_, plain)

    return fast_or_exact(strings, _PLAIN, convert, lambda text: _from_text(codecs, text, type_, timezone), pa.binary())


def _written_bound(parts: pa.StructArray, side: str) -> pa.Array:
    """The texts of one side's bounds, null for an absent bound."""
    nothing = constant("")
    plain, quoted = (
        pc.if_else(pc.equal(field, nothing), pa.scalar(None, pa.string()), field)
        for field in (_field(parts, side), _field(parts, f"quoted_{side}"))
    )
    return pc.coalesce(quoted, plain)


def _field(parts: pa.StructArray, name: str) -> pa.Array:
    """A field, null where the whole range is null."""
    return parts.flatten()[parts.type.get_field_index(name)]


def _column_from_binary(codecs: Codecs, binaries: pa.Array, type_: SqlType) -> pa.Array:
    subtype = subtype_of(type_)
    data = value_bytes(binaries)
    bounds = offsets(binaries) - (offsets(binaries)[0] if len(binaries) else 0)
    valid = np.asarray(pc.is_valid(binaries))
    if (short := valid & (np.diff(bounds) < 1)).any():
        raise ColumnError(int(np.flatnonzero(short)[0]), bad_binary(type_.name))
    flags = np.full(len(binaries), _EMPTY, np.uint8)
    flags[valid] = data[bounds[:-1][valid]]
    place = bounds[:-1] + valid
    sides = []
    for absent in (_NO_LOWER, _NO_UPPER):
        present = (flags & (absent | _EMPTY)) == 0
        start, place = next_field(data, place, bounds[1:], present, type_)
        fields = pc.if_else(pa.array(present), pieces(data, start, place, _WHOLE), _NULL)
        sides.append(codecs[subtype.name].column_from_binary(fields, subtype))
    if (longer := valid & (place != bounds[1:])).any():
        raise ColumnError(int(np.flatnonzero(longer)[0]), bad_binary(type_.name))
    column = Column(sides[0], sides[1], (flags & _WITH_LOWER) > 0, (flags & _WITH_UPPER) > 0, (flags & _EMPTY) > 0)
    return closed(column, type_, binaries)


def next_field(data: Vector, place: Vector, ends: Vector, present: Vector, type_: SqlType) -> tuple[Vector, Vector]:
    """Where each row's next field begins and ends, after the field's length. Raises ``ColumnError``."""
    if (short := present & (place + 4 > ends)).any():
        raise ColumnError(int(np.flatnonzero(short)[0]), bad_binary(type_.name))
    lengths = np.zeros(len(place), np.int64)
    at = place[present][:, None] + np.arange(4)
    lengths[present] = np.ascontiguousarray(data[at]).view(">i4")[:, 0]
    start = place + 4 * present
    if (wrong := (lengths < 0) | (start + lengths > ends)).any():
        raise ColumnError(int(np.flatnonzero(wrong)[0]), bad_binary(type_.name))
    return start, start + lengths

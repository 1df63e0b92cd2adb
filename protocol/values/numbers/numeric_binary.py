"""numeric in binary: base-10000 digits with a weight, a sign and a display scale (numeric_send, numeric_recv)."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Context, Decimal
from struct import error as StructError
from struct import unpack_from
from typing import Final

import numpy as np
import pyarrow as pa

from catalog.values.errors import SqlError
from catalog.values.types import MAX_PRECISION, UNCONSTRAINED, SqlType
from protocol.compute import constant, pc
from protocol.values.codec import ColumnError, Vector, bad_binary, from_vector, offsets, pieces, value_bytes, variable
from protocol.values.numbers.numeric_text import (
    WORD_DIGITS,
    fit_numeric,
    not_finite,
    numeric_text,
    round_to,
    unscaled_digits,
)

_CONTEXT: Final = Context(prec=1000)
#: The most decimals that are counted in a binary form, far more than Millstream keeps.
_DECIMALS: Final = 600
_POSITIVE, _NEGATIVE = 0x0000, 0x4000
_BASE: Final = 10_000
_HEAD: Final = np.dtype([("count", ">i2"), ("weight", ">i2"), ("sign", ">i2"), ("scale", ">i2")])
_HEAD_GROUPS: Final = 4
#: How many zeros a group of four digits ends with, by the group's value.
_ENDING_ZEROS: Final = (np.arange(_BASE)[:, None] % (10, 100, 1000, _BASE) == 0).sum(axis=1)


def _digit_groups(array: pa.Array) -> tuple[Vector, Vector, int]:
    """The values' base-10000 digits as a matrix, a mask of the negative ones, and how many columns are before the
    point."""
    scale = array.type.scale
    digits = unscaled_digits(array).fill_null(constant("0"))
    negative = np.asarray(pc.starts_with(digits, "-"))
    bounds = offsets(digits)
    lengths = np.diff(bounds)
    data = value_bytes(digits)
    before, after = -(-(MAX_PRECISION - scale) // 4), -(-scale // 4)
    matrix = np.zeros((len(digits), 4 * (before + after)), np.uint8)
    point = 4 * before + scale  # where the digits of the unscaled value end
    ends = np.arange(len(digits)) * matrix.shape[1] + point
    targets = np.repeat(ends - (bounds[1:] - bounds[0]), lengths) + np.arange(len(data))
    matrix.reshape(-1)[targets] = data - np.uint8(ord("0"))
    matrix.reshape(-1)[(ends - lengths)[negative]] = 0  # the sign
    weights = np.array((1000, 100, 10, 1), np.int16)
    return (matrix.reshape(len(digits), -1, 4) * weights).sum(axis=2, dtype=np.int16), negative, before


def _decimals(texts: pa.Array) -> Vector:
    """The number of digits after the point in each text."""
    texts = texts.fill_null(constant("0"))
    points = np.asarray(pc.find_substring(texts, "."))
    return np.where(points < 0, 0, np.diff(offsets(texts)) - points - 1).astype(np.int16)


def _display_scales(array: pa.Array, type_: SqlType) -> Vector:
    """The number of digits after the point in the text form of each value."""
    if array.type != pa.string() and not type_.is_loose:
        return np.full(len(array), array.type.scale, np.int16)
    return _decimals(numeric_text(array, type_))


def encode_numeric(array: pa.Array, type_: SqlType) -> pa.Array:
    """Encodes a column as numeric_send does."""
    if not len(array):
        return pa.array([], pa.binary())
    own = array.type != pa.string() and type_.modifiers == UNCONSTRAINED  # each value's scale follows from its digits
    scales = None if own else _display_scales(array, type_)
    if array.type == pa.string():
        assert scales is not None
        array = array.cast(pa.decimal128(MAX_PRECISION, int(scales.max())))
    parts = _parts(array)
    if parts is None:
        return _encode_wide(array, _display_scales(array, type_) if scales is None else scales)
    return _encode_words(array, scales, parts)


#: Absolute values that fit in 64 bits each, how many groups they have at most, and how many digits the last group has
#: (0: four).
_Part = tuple[Vector, int, int]


def _parts(array: pa.Array) -> list[_Part] | None:
    """The digits of each value in one 64-bit word, or else in one word on each side of the point; 0 for a null.

    The last digits come first. None if some values do not fit.
    """
    scale = array.type.scale
    words = _words(array)
    if words is not None:
        digits = len(str(int(np.abs(words).max())))
        return [(np.abs(words), _groups(digits - scale % 4) + (scale % 4 > 0), scale % 4)]
    if not 0 < scale <= WORD_DIGITS:
        return None
    whole = _words(array.cast(pa.decimal128(MAX_PRECISION, 0), safe=False))
    if whole is None:
        return None
    fraction = _low(array) - whole * 10**scale  # exact: both sides lack the same multiple of 2 ** 64
    if array.null_count:
        fraction = np.where(np.asarray(pc.is_valid(array)), fraction, 0)
    digits = len(str(int(np.abs(whole).max())))
    return [(np.abs(fraction), _groups(scale), scale % 4), (np.abs(whole), _groups(digits), 0)]


def _groups(digits: int) -> int:
    """The number of groups that hold this number of digits."""
    return max(0, -(-digits // 4))


def _low(array: pa.Array) -> Vector:
    """The lower 64 bits of decimals."""
    return np.frombuffer(array.buffers()[1], "<i8")[2 * array.offset : 2 * (array.offset + len(array)) : 2]


def _high(array: pa.Array) -> Vector:
    """The upper 64 bits of decimals, with the sign."""
    return np.frombuffer(array.buffers()[1], "<i8")[2 * array.offset + 1 : 2 * (array.offset + len(array)) : 2]


def _words(array: pa.Array) -> Vector | None:
    """The unscaled values, 0 for a null; None if some exceed 64 bits."""
    words = _low(array)
    valid = np.asarray(pc.is_valid(array)) if array.null_count else None
    if array.type.precision > WORD_DIGITS:
        exceeds = (_high(array) != words >> 63) | (words == np.iinfo(np.int64).min)
        if (exceeds if valid is None else exceeds & valid).any():
            return None
    return words if valid is None else np.where(valid, words, 0)


def _base_digits(parts: list[_Part]) -> Iterator[Vector]:
    """Groups of four digits, from the last group to the first."""
    for values, count, odd in parts:
        rest = values
        for place in range(count):
            base = 10**odd if odd and not place else _BASE
            higher = rest // base
            yield (rest - higher * base) * (_BASE // base)
            rest = higher


def _encode_words(array: pa.Array, scales: Vector | None, parts: list[_Part]) -> pa.Array:
    """The binary form of values whose digits are in words.

    Each header is written directly before the first group other than 0, so that a value is one piece of a matrix row.
    Without ``scales``, each value has the scale that its digits need.
    """
    rows, count = len(array), sum(groups for _, groups, _ in parts)
    matrix = np.empty((rows, _HEAD_GROUPS + count), ">i2")
    first, end, last = np.full(rows, count, np.int32), np.zeros(rows, np.int32), np.zeros(rows, np.int64)
    for place, group in zip(range(count - 1, -1, -1), _base_digits(parts), strict=True):
        matrix[:, _HEAD_GROUPS + place] = group
        used = group != 0
        first[used] = place
        if scales is None:
            last = np.where(end == 0, group, last)
        np.maximum(end, np.where(used, place + 1, 0), out=end)
    nothing = first == count  # the value is zero
    first[nothing] = 0
    after = _groups(array.type.scale)
    heads = np.empty(rows, _HEAD)
    heads["count"] = end - first
    heads["weight"] = np.where(nothing, 0, count - 1 - after - first)
    heads["sign"] = np.where(_high(array) < 0, _NEGATIVE, _POSITIVE)
    if scales is None:
        scales = np.where(nothing, 0, np.maximum(4 * (end - count + after) - _ENDING_ZEROS[last], 0))
    heads["scale"] = scales
    starts = np.arange(0, rows * matrix.shape[1], matrix.shape[1], dtype=np.int32)
    room = np.ndarray(matrix.size - _HEAD_GROUPS + 1, _HEAD, matrix, 0, (matrix.itemsize,))
    room[starts + first] = heads
    return pieces(matrix, 2 * (starts + first), 2 * (starts + np.where(nothing, 0, end) + _HEAD_GROUPS), array)


def _encode_wide(array: pa.Array, scales: Vector) -> pa.Array:
    """The binary form of values of any size, made from their digits."""
    groups, negative, before = _digit_groups(array)
    used = groups != 0
    nonzero = used.any(axis=1)
    first = used.argmax(axis=1)
    last = groups.shape[1] - 1 - used[:, ::-1].argmax(axis=1)
    counts = np.where(nonzero, last - first + 1, 0)
    head = np.empty((len(array), 4), np.int16)
    head[:, 0] = counts
    head[:, 1] = np.where(nonzero, before - 1 - first, 0)
    head[:, 2] = np.where(negative, _NEGATIVE, _POSITIVE)
    head[:, 3] = scales
    columns = np.arange(groups.shape[1])
    shown = (columns >= first[:, None]) & (columns <= last[:, None]) & nonzero[:, None]
    everything = np.concatenate([head, groups], axis=1).astype(">i2")
    keep = np.concatenate([np.ones(head.shape, bool), shown], axis=1)
    return variable(everything[keep].view(np.uint8), 8 + 2 * counts, array)


def decode_numeric(data: bytes, type_: SqlType) -> Decimal:
    """Decodes one value as numeric_recv does. Raises 22P03 and 22003."""
    try:
        count, weight, sign, scale = unpack_from(">hhHh", data)
        groups = unpack_from(f">{count}h", data, 8)
    except StructError:
        raise bad_binary("numeric") from None
    if sign not in (_POSITIVE, _NEGATIVE):
        if sign in (0xC000, 0xD000, 0xF000):
            raise not_finite({0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}[sign])
        raise SqlError("22P03", 'invalid sign in external "numeric" value')
    if len(data) != 8 + 2 * count or scale < 0:
        raise bad_binary("numeric")
    if any(not 0 <= group < 10000 for group in groups):
        raise SqlError("22P03", 'invalid digit in external "numeric" value')
    unscaled = 0
    for group in groups:
        unscaled = unscaled * 10000 + group
    value = Decimal(-unscaled if sign == _NEGATIVE else unscaled).scaleb(4 * (weight + 1 - count), _CONTEXT)
    if weight < 100:
        value = value.quantize(Decimal(1).scaleb(-min(scale, _DECIMALS)), ROUND_HALF_UP, _CONTEXT)
    return fit_numeric(value, type_)


def sent_scales(binaries: pa.Array) -> pa.Array:
    """The display scale of each well-formed binary form, at most the largest scale of a numeric of undeclared
    digits."""
    starts = offsets(binaries)[:-1] - offsets(binaries)[0]
    present = np.asarray(pc.is_valid(binaries))
    words = value_bytes(binaries).view(">i2")
    found = np.zeros(len(binaries), np.int32)
    found[present] = np.minimum(words[starts[present] // 2 + 3], UNCONSTRAINED[1])
    return pa.array(found, mask=~present)


def decode_numeric_column(binaries: pa.Array, type_: SqlType) -> pa.Array:
    """Binary forms as decimals, rounded to the type's scale. Raises ColumnError."""
    small = _small_values(binaries, type_)
    if small is not None:
        # decimal128 is a little-endian two's complement number of 16 bytes
        return from_vector(np.stack([small, small >> 63], axis=1), type_.arrow, binaries)
    values: list[Decimal | None] = []
    for index, data in enumerate(binaries.to_pylist()):
        try:
            values.append(None if data is None else round_to(decode_numeric(data, type_), type_))
        except SqlError as error:
            raise ColumnError(index, error) from None
    return pa.array(values, type_.arrow)


def _small_values(binaries: pa.Array, type_: SqlType) -> Vector | None:
    """The unscaled values if all are well-formed, fit in 18 digits and need no rounding; else None."""
    bounds = offsets(binaries)
    lengths = np.diff(bounds)
    present = np.asarray(pc.is_valid(binaries))
    if ((lengths < 8) & present).any() or (lengths % 2).any():
        return None
    words = value_bytes(binaries).view(">i2")
    if not len(words):
        return np.zeros(len(binaries), np.int64)
    starts = np.where(present, (bounds[:-1] - bounds[0]) // 2, 0)
    count, weight, sign, shown = (np.where(present, words[starts + i], 0).astype(np.int64) for i in range(4))
    if (8 + 2 * count != lengths)[present].any() or (shown > type_.scale).any() or (shown < 0).any():
        return None
    if not np.isin(sign, (_POSITIVE, _NEGATIVE)).all() or (4 * (weight + 1) + type_.scale > 18).any():
        return None
    result = np.zeros(len(binaries), np.int64)
    for place in range(int(count.max())):
        here = place < count
        group = words[np.where(here, starts + 4 + place, 0)].astype(np.int64)
        power = 4 * (weight - place) + type_.scale
        if ((group < 0) | (group > 9999) | (power < -3))[here].any():
            return None
        scaled = np.where(power >= 0, group * 10 ** np.maximum(power, 0), group // 10 ** np.maximum(-power, 0))
        result += np.where(here, scaled, 0)
    if (result >= 10**type_.precision).any():
        return None
    return np.where(sign == _NEGATIVE, -result, result)

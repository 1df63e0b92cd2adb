"""numeric in binary: base-10000 digits with a weight, a sign and a display scale (numeric_send, numeric_recv)."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from struct import error as StructError
from struct import unpack_from
from typing import Final

import numpy as np
import pyarrow as pa

from catalog.errors import SqlError
from catalog.types import MAX_PRECISION, SqlType
from protocol.compute import constant, pc
from protocol.values.codec import ColumnError, Vector, bad_binary, from_vector, offsets, value_bytes, variable
from protocol.values.decimal_text import fit_numeric, not_finite, numeric_text, round_to, strips_zeros, unscaled_digits

_CONTEXT: Final = Context(prec=400)
_POSITIVE, _NEGATIVE = 0x0000, 0x4000


def _digit_groups(array: pa.Array) -> tuple[Vector, Vector, int]:
    """Each value's base-10000 digits as a matrix, whether it is negative, and how many columns lie before the point."""
    scale = array.type.scale
    digits = unscaled_digits(array).fill_null(constant("0"))
    negative = np.asarray(pc.starts_with(digits, "-"))
    bounds = offsets(digits)
    lengths = np.diff(bounds)
    data = value_bytes(digits)
    before, after = -(-(MAX_PRECISION - scale) // 4), -(-scale // 4)
    matrix = np.zeros((len(digits), 4 * (before + after)), np.uint8)
    point = 4 * before + scale  # where the unscaled digits end
    ends = np.arange(len(digits)) * matrix.shape[1] + point
    targets = np.repeat(ends - (bounds[1:] - bounds[0]), lengths) + np.arange(len(data))
    matrix.reshape(-1)[targets] = data - np.uint8(ord("0"))
    matrix.reshape(-1)[(ends - lengths)[negative]] = 0  # the sign
    weights = np.array((1000, 100, 10, 1), np.int16)
    return (matrix.reshape(len(digits), -1, 4) * weights).sum(axis=2, dtype=np.int16), negative, before


def _display_scales(array: pa.Array, type_: SqlType) -> Vector:
    """Digits after the point that the text form of each value has."""
    if not strips_zeros(type_):
        return np.full(len(array), array.type.scale, np.int16)
    text = numeric_text(array, type_).fill_null(constant("0"))
    points = np.asarray(pc.find_substring(text, "."))
    return np.where(points < 0, 0, np.diff(offsets(text)) - points - 1).astype(np.int16)


def encode_numeric(array: pa.Array, type_: SqlType) -> pa.Array:
    """numeric_send."""
    if not len(array):
        return pa.array([], pa.binary())
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
    head[:, 3] = _display_scales(array, type_)
    columns = np.arange(groups.shape[1])
    shown = (columns >= first[:, None]) & (columns <= last[:, None]) & nonzero[:, None]
    everything = np.concatenate([head, groups], axis=1).astype(">i2")
    keep = np.concatenate([np.ones(head.shape, bool), shown], axis=1)
    return variable(everything[keep].view(np.uint8), 8 + 2 * counts, array)


def decode_numeric(data: bytes, type_: SqlType) -> Decimal:
    """numeric_recv. Raises 22P03 and 22003."""
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
        value = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _CONTEXT)
    return fit_numeric(value, type_)


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
    """The unscaled values where all are well-formed, fit 18 digits and need no rounding; else None."""
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

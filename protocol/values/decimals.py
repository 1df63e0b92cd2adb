"""numeric: exact decimals of at most 38 digits, as text and in PostgreSQL's base-10000 binary form.

A numeric of undeclared scale (``UNCONSTRAINED``, ``QUOTIENT``) prints without trailing zeros after the point, any
other with its scale. Values with more digits than the scale are rounded half away from zero, as numeric_in does.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial
from struct import error as StructError
from struct import unpack_from
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import SqlError, invalid_text, unsupported
from catalog.types import MAX_PRECISION, QUOTIENT, UNCONSTRAINED, SqlType
from protocol.values.codec import (
    BLANKS,
    Codec,
    ColumnError,
    Vector,
    bad_binary,
    fast_or_exact,
    offsets,
    value_bytes,
    variable,
)

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_PLAIN: Final = r"^[+-]?[0-9]{1,38}(\.[0-9]{0,38})?$"
_SPECIAL: Final = ("nan", "inf", "infinity", "-inf", "-infinity", "+inf", "+infinity")
_CONTEXT: Final = Context(prec=400)
_POSITIVE, _NEGATIVE = 0x0000, 0x4000


def _strips_zeros(type_: SqlType) -> bool:
    return type_.modifiers in (UNCONSTRAINED, QUOTIENT)


def _unscaled(array: pa.Array) -> pa.Array:
    """The digits of each value without the point, as text."""
    whole = pa.Array.from_buffers(
        pa.decimal128(MAX_PRECISION, 0), len(array), array.buffers(), array.null_count, array.offset
    )
    return whole.cast(pa.string())


def _text(array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    scale = array.type.scale
    text = array.cast(pa.string())
    # Arrow writes 1E-7 where the first digit is more than six places after the point.
    if scale > 6 and pc.any(pc.match_substring(text, "E")).as_py():
        digits = _unscaled(array)
        negative = pc.starts_with(digits, "-")
        digits = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, "0")
        sign = pc.if_else(negative, "-", "")
        whole, fraction = pc.utf8_slice_codeunits(digits, 0, -scale), pc.utf8_slice_codeunits(digits, -scale)
        text = pc.binary_join_element_wise(pc.binary_join_element_wise(sign, whole, ""), fraction, ".")
    if scale and _strips_zeros(type_):
        text = pc.utf8_rtrim(pc.utf8_rtrim(text, "0"), ".")
    return text


def round_to(value: Decimal, type_: SqlType) -> Decimal:
    """The value at the type's scale. Raises 22003 where it has more digits than the type."""
    precision, scale = type_.modifiers
    rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _CONTEXT) if value.adjusted() < 100 else value
    if rounded and rounded.adjusted() >= precision - scale:
        limit = f"10^{precision - scale}" if precision > scale else "1"
        raise SqlError(
            "22003",
            "numeric field overflow",
            f"A field with precision {precision}, scale {scale} must round to an absolute value less than {limit}.",
        )
    return rounded


def _fit(value: Decimal, type_: SqlType) -> Decimal:
    """A parameter's value: as written where nobody declared a scale and it fits, else rounded to the scale."""
    if _strips_zeros(type_) and -value.as_tuple().exponent <= type_.scale:  # type: ignore[operator]
        round_to(value, type_)
        return value
    return round_to(value, type_)


def parse_numeric(text: str, type_: SqlType, timezone: str = "") -> Decimal:
    """numeric_in. Raises 22P02 and 22003, and 0A000 for NaN and the infinities."""
    stripped = text.strip(BLANKS)
    if not _NUMBER.match(stripped):
        if stripped.lower() in _SPECIAL:
            raise _no_special(stripped)
        raise invalid_text("numeric", text)
    mantissa, _, exponent = stripped.lower().partition("e")
    if exponent and abs(int(exponent)) > 5000:
        stripped = mantissa if not mantissa.strip("+-0.") else f"1e{500 if int(exponent) > 0 else -500}"
    return _fit(Decimal(stripped), type_)


def _no_special(text: str) -> SqlError:
    return unsupported(f"numeric {text}", "Use double precision for values that are not finite.")


def _parse_column_value(text: str, type_: SqlType) -> Decimal:
    return round_to(parse_numeric(text, type_), type_)


def _column(strings: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    parse = partial(_parse_column_value, type_=type_)
    return fast_or_exact(strings, _PLAIN, lambda a: a.cast(type_.arrow), parse, type_.arrow)


def round_column(strings: pa.Array, type_: SqlType) -> pa.Array | None:
    """Plain decimals with more digits than the scale, rounded at once; None where some value needs the exact way."""
    precision, scale = type_.modifiers
    wider = min(MAX_PRECISION - (precision - scale), MAX_PRECISION)
    if wider <= scale:
        return None
    try:
        exact = strings.cast(pa.decimal128(MAX_PRECISION, wider))
        return pc.round(exact, scale, "half_towards_infinity").cast(type_.arrow)
    except pa.ArrowInvalid:
        return None


def _column_rounding(strings: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    try:
        return strings.cast(type_.arrow)
    except pa.ArrowInvalid:
        rounded = round_column(strings, type_)
        return rounded if rounded is not None else _column(strings, type_, timezone)


def _digit_groups(array: pa.Array) -> tuple[Vector, Vector, int]:
    """Each value's base-10000 digits as a matrix, whether it is negative, and how many columns lie before the point."""
    scale = array.type.scale
    digits = _unscaled(array).fill_null("0")
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
    if not _strips_zeros(type_):
        return np.full(len(array), array.type.scale, np.int16)
    text = _text(array, type_, "").fill_null("0")
    points = np.asarray(pc.find_substring(text, "."))
    return np.where(points < 0, 0, np.diff(offsets(text)) - points - 1).astype(np.int16)


def _binary(array: pa.Array, type_: SqlType) -> pa.Array:
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


def _from_binary(data: bytes, type_: SqlType) -> Decimal:
    try:
        count, weight, sign, scale = unpack_from(">hhHh", data)
        groups = unpack_from(f">{count}h", data, 8)
    except StructError:
        raise bad_binary("numeric") from None
    if sign not in (_POSITIVE, _NEGATIVE):
        if sign in (0xC000, 0xD000, 0xF000):
            raise _no_special({0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}[sign])
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
    return _fit(value, type_)


def _column_from_binary(binaries: pa.Array, type_: SqlType) -> pa.Array:
    values: list[Decimal | None] = []
    for index, data in enumerate(binaries.to_pylist()):
        try:
            values.append(None if data is None else round_to(_from_binary(data, type_), type_))
        except SqlError as error:
            raise ColumnError(index, error) from None
    return pa.array(values, type_.arrow)


CODECS: Final[dict[str, Codec]] = {
    "numeric": Codec(
        text=_text,
        binary=_binary,
        from_text=parse_numeric,
        from_binary=_from_binary,
        column_from_text=_column_rounding,
        column_from_binary=_column_from_binary,
    )
}

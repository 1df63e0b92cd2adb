"""Reads and prints numeric as text: exact decimals of at most 38 digits.

A numeric of undeclared scale (``UNCONSTRAINED``) prints without trailing zeros after the point. A ``QUOTIENT`` has as
many decimals as division gives a value of its size (numeric.c, select_div_scale); so has a ``SPREAD``, except that zero
has none. Other numerics print with their scale. Values with more digits than the scale are rounded half away from zero,
as in numeric_in. A column in which each value has its own scale arrives as texts, which are printed unchanged.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial
from typing import Final

import pyarrow as pa

from catalog.values.errors import SqlError, invalid_text, unsupported
from catalog.values.types import MAX_PRECISION, SPREAD, UNCONSTRAINED, SqlType
from protocol.compute import constant, pc
from protocol.values.codec import (
    BLANKS,
    fast_or_exact,
)

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_PLAIN: Final = r"^[+-]?[0-9]{1,38}(\.[0-9]{0,38})?$"
#: A number without an exponent and with a limited number of digits before its point.
_WHOLE: Final = r"^[+-]?0*[0-9]{0,%d}(\.[0-9]*)?$"
_SPECIAL: Final = ("nan", "inf", "infinity", "-inf", "-infinity", "+inf", "+infinity")
_EVEN: Final = re.compile(r"1(?:0000)*\Z")
_CONTEXT: Final = Context(prec=400)
#: The most digits with which every number fits in 64 bits, the lower half of a decimal128.
WORD_DIGITS: Final = 18
#: The most values for which a loop in Python is quicker than a dozen calls of Arrow.
_FEW: Final = 64


def unscaled_digits(array: pa.Array) -> pa.Array:
    """The digits of each value without the point, as text."""
    whole = pa.Array.from_buffers(
        pa.decimal128(MAX_PRECISION, 0), len(array), array.buffers(), array.null_count, array.offset
    )
    return whole.cast(pa.string())


def numeric_text(array: pa.Array, type_: SqlType, timezone: str = "") -> pa.Array:
    """Prints a column as numeric_out does."""
    if array.type == pa.string():
        return array
    scale = array.type.scale
    if len(array) <= _FEW and scale >= 0:
        return pa.array(
            [None if value is None else numeric_out(value, type_) for value in array.to_pylist()], pa.string()
        )
    text = array.cast(pa.string())
    # Arrow writes 1E-7 where the first digit is more than six places after the point.
    if scale > 6 and pc.any(pc.match_substring(text, "E")).as_py():
        digits = unscaled_digits(array)
        negative = pc.starts_with(digits, "-")
        digits = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, "0")
        sign = pc.if_else(negative, constant("-"), constant(""))
        whole, fraction = pc.utf8_slice_codeunits(digits, 0, -scale), pc.utf8_slice_codeunits(digits, -scale)
        text = pc.binary_join_element_wise(
            pc.binary_join_element_wise(sign, whole, constant("")), fraction, constant(".")
        )
    if scale and type_.is_loose:
        text = pc.utf8_rtrim(pc.utf8_rtrim(text, "0"), ".")
        return text if type_.modifiers == UNCONSTRAINED else _with_zeros(text, type_)
    return text


def _with_zeros(text: pa.Array, type_: SqlType) -> pa.Array:
    """Quotients with 16 digits after the point for one to four before it, 4 fewer for each 4 more, and 20 for none.

    PostgreSQL decides by the operands, and prints 4 more digits if both begin with the same digits (5 / 5 has 20).
    """
    whole = pc.replace_substring_regex(text, r"\..*$", "")
    fraction = pc.replace_substring_regex(text, r"^[^.]*\.?", "")
    size = pc.utf8_length(pc.utf8_ltrim(whole, "-"))
    is_fraction = pc.equal(pc.utf8_ltrim(whole, "-"), constant("0"))
    groups = pc.if_else(is_fraction, constant(-1), pc.divide(pc.subtract(size, constant(1)), constant(4)))
    groups = pc.if_else(_is_round(whole, fraction), pc.subtract(groups, constant(1)), groups)
    for group in pc.unique(groups).to_pylist():
        if group is not None and group < 4:
            padded = pc.binary_join_element_wise(whole, pc.utf8_rpad(fraction, 16 - 4 * group, "0"), constant("."))
            text = pc.if_else(pc.equal(groups, constant(group)), padded, text)
    if type_.modifiers == SPREAD:
        text = pc.if_else(pc.and_(is_fraction, pc.equal(fraction, constant(""))), constant("0"), text)
    return text


def numeric_out(value: Decimal | str, type_: SqlType) -> str:
    """Prints one value as numeric_out does."""
    if isinstance(value, str):
        return value
    text = f"{value:f}"
    if "." in text and type_.is_loose:
        text = text.rstrip("0").rstrip(".")
        is_bare = type_.modifiers == UNCONSTRAINED or (type_.modifiers == SPREAD and not value)
        return text if is_bare else _padded(text)
    return text


def _is_round(whole: pa.Array, fraction: pa.Array) -> pa.Array:
    """Whether a quotient is a power of 10000, which is so for operands that begin with the same digits."""
    return pc.and_(pc.equal(fraction, constant("")), pc.match_substring_regex(whole, "^-?1(0000)*$"))


def _padded(text: str) -> str:
    """One quotient, padded with its zeros."""
    whole, _, fraction = text.partition(".")
    digits = whole.lstrip("-")
    group = -1 if digits == "0" else (len(digits) - 1) // 4 - (not fraction and _EVEN.match(digits) is not None)
    return f"{whole}.{fraction.ljust(16 - 4 * group, '0')}" if group < 4 else text


def written_scales(texts: pa.Array) -> pa.Array:
    """The number of decimals in each text, at most the largest scale of a numeric of undeclared digits."""
    texts = pc.utf8_trim(texts, BLANKS)
    if pc.any(pc.match_substring_regex(texts, "[eE]")).as_py():
        values = (None if text is None else -int(Decimal(text).as_tuple().exponent) for text in texts.to_pylist())
        found = pa.array(values, pa.int32())
    else:
        points = pc.find_substring(texts, ".")
        decimals = pc.subtract(pc.subtract(pc.binary_length(texts), points), constant(1))
        found = pc.if_else(pc.less(points, constant(0)), constant(0), decimals).cast(pa.int32())
    return pc.min_element_wise(pc.max_element_wise(found, constant(0)), constant(UNCONSTRAINED[1])).cast(pa.int32())


def round_to(value: Decimal, type_: SqlType) -> Decimal:
    """The value rounded to the type's scale. Raises 22003 if the value has more digits than the type."""
    precision, scale = type_.precision, type_.scale
    rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _CONTEXT) if value.adjusted() < 100 else value
    if type_.modifiers == UNCONSTRAINED and rounded != value:  # without a declared scale nothing is rounded
        raise SqlError("22003", "value overflows numeric format", "At most 38 digits are kept, 18 of them decimals.")
    if rounded and rounded.adjusted() >= precision - scale:
        limit = f"10^{precision - scale}" if precision > scale else "1"
        raise SqlError(
            "22003",
            "numeric field overflow",
            f"A field with precision {precision}, scale {scale} must round to an absolute value less than {limit}.",
        )
    return rounded


def fit_numeric(value: Decimal, type_: SqlType) -> Decimal:
    """A parameter's value: unchanged if no scale is declared and the value fits, else rounded to the scale."""
    if type_.is_loose and -value.as_tuple().exponent <= type_.scale:  # type: ignore[operator]
        round_to(value, type_)
        return value
    return round_to(value, type_)


def parse_numeric(text: str, type_: SqlType, timezone: str = "") -> Decimal:
    """Reads one value as numeric_in does. Raises 22P02 and 22003, and 0A000 for NaN and the infinities."""
    stripped = text.strip(BLANKS)
    if not _NUMBER.match(stripped):
        if stripped.lower() in _SPECIAL:
            raise not_finite(stripped)
        raise invalid_text("numeric", text)
    mantissa, _, exponent = stripped.lower().partition("e")
    if exponent and abs(int(exponent)) > 5000:
        stripped = mantissa if not mantissa.strip("+-0.") else f"1e{500 if int(exponent) > 0 else -500}"
    return fit_numeric(Decimal(stripped), type_)


def not_finite(text: str) -> SqlError:
    """The error 0A000 for NaN and the infinities."""
    return unsupported(f"numeric {text}", "Use double precision for values that are not finite.")


def _parse_column_value(text: str, type_: SqlType) -> Decimal:
    return round_to(parse_numeric(text, type_), type_)


def _column(strings: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    parse = partial(_parse_column_value, type_=type_)
    return fast_or_exact(strings, _PLAIN, lambda a: _cast(a, type_.precision, type_.scale), parse, type_.arrow)


def _cast(strings: pa.Array, precision: int, scale: int) -> pa.Array:
    """Texts as decimals. Raises ArrowInvalid for a text that does not fit or has too many digits before its point.

    Arrow multiplies by the scale in 128 bits, drops higher bits, and counts digits afterwards: 3500 as decimal(38, 35)
    would become 97.1763... So the digits before the point are limited.
    """
    found = strings.cast(pa.decimal128(precision, scale))
    if not pc.all(pc.match_substring_regex(strings, _WHOLE % (MAX_PRECISION - scale)), min_count=0).as_py():
        raise pa.ArrowInvalid("a decimal may not fit in 128 bits")
    return found


def round_column(strings: pa.Array, type_: SqlType) -> pa.Array | None:
    """Plain decimals with more digits than the scale, rounded together; None if a value needs the exact way."""
    precision, scale = type_.precision, type_.scale
    wider = min(MAX_PRECISION - (precision - scale), MAX_PRECISION)
    if wider <= scale:
        return None
    try:
        exact = _cast(strings, MAX_PRECISION, wider)
        return pc.round(exact, scale, "half_towards_infinity").cast(type_.arrow)
    except pa.ArrowInvalid:
        return None


def numeric_column(strings: pa.Array, type_: SqlType, timezone: str = "") -> pa.Array:
    """Texts as decimals, rounded to the type's scale. Raises ColumnError."""
    try:
        return _cast(strings, type_.precision, type_.scale)
    except pa.ArrowInvalid:
        rounded = round_column(strings, type_)
        return rounded if rounded is not None else _column(strings, type_, timezone)

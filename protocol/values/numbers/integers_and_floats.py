"""Integers, oid and floating point: text as int4out and float8out print it, binary in network byte order.

Floats are printed in PostgreSQL's shortest form: with an exponent of at least two digits below 1e-4 and from 1e15
(float4: 1e6) on. Arrow prints the same digits but uses exponents in another range, so the few values for which the two
differ are rewritten.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from struct import error as StructError
from struct import unpack
from typing import Final

import numpy as np
import pyarrow as pa

from catalog.values.errors import invalid_text, out_of_range
from catalog.values.types import SqlType
from protocol.compute import pc
from protocol.values.codec import (
    BLANKS,
    Codec,
    bad_binary,
    big_endian,
    by_value,
    fast_or_exact,
    from_vector,
    network_vector,
    vector,
)
from protocol.values.styles import SHORTEST, digits_of

_RANGES: Final = {
    "int2": (-(2**15), 2**15 - 1),
    "int4": (-(2**31), 2**31 - 1),
    "int8": (-(2**63), 2**63 - 1),
    "oid": (0, 2**32 - 1),
}
#: For oid and similar types.
_OID_RANGE: Final = _RANGES["oid"]
#: The most digits with which every number is within the type's range.
SAFE_DIGITS: Final = {"int2": 4, "int4": 9, "int8": 18, "oid": 9}
_INTEGER: Final = re.compile(r"[+-]?[0-9]+\Z")
_FLOAT: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_HEX_FLOAT: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?\Z")
_SPECIAL: Final = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}
_PLAIN_FLOAT: Final = r"^-?[0-9]{1,15}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,2})?$"


def _cast_text(array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    return array.cast(pa.string())


def parse_integer(text: str, type_: SqlType, timezone: str = "") -> int:
    """int2in, int4in, int8in, oidin. Raises 22P02 and 22003."""
    stripped = text.strip(BLANKS)
    if not _INTEGER.match(stripped):
        raise invalid_text(str(type_), text)
    value = int(stripped) if len(stripped) < 40 else 2**99
    low, high = _RANGES.get(type_.name, _OID_RANGE)
    if high == _OID_RANGE[1] and -(2**31) <= value < 0:
        return value + 2**32
    if not low <= value <= high:
        raise out_of_range(f'value "{text}" is out of range for type {type_}')
    return value


def _integer_column(strings: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    if type_.name != "oid" and not pc.any(pc.match_substring_regex(strings, "[xX]")).as_py():
        try:
            return strings.cast(type_.arrow)
        except pa.ArrowInvalid:
            pass
    plain = "^[0-9]{1,9}$" if type_.name == "oid" else "^-?[0-9]+$"
    parse = partial(parse_integer, type_=type_)
    return fast_or_exact(strings, plain, lambda a: a.cast(type_.arrow), parse, type_.arrow)


def _integer_binary(dtype: str) -> Callable[[pa.Array, SqlType], pa.Array]:
    return lambda array, type_: big_endian(array, dtype)


def _oid_binary(array: pa.Array, type_: SqlType) -> pa.Array:
    return big_endian(from_vector(vector(array, "<i8").astype("<u4"), pa.uint32(), array), "u4")


def _number_from_binary(code: str) -> Callable[[bytes, SqlType], int | float]:
    layout = ">" + code

    def decode(data: bytes, type_: SqlType) -> int | float:
        try:
            value: int | float = unpack(layout, data)[0]
        except StructError:
            raise bad_binary(str(type_)) from None
        return value

    return decode


def _number_column_from_binary(wire: str, native: str) -> Callable[[pa.Array, SqlType], pa.Array]:
    def decode(binaries: pa.Array, type_: SqlType) -> pa.Array:
        return from_vector(network_vector(binaries, wire, str(type_)).astype(native), type_.arrow, binaries)

    return decode


def parse_float(text: str, type_: SqlType, timezone: str = "") -> float:
    """float4in, float8in. Raises 22P02 and 22003."""
    stripped = text.strip(BLANKS)
    if _FLOAT.match(stripped):
        value = float(stripped)
    elif _HEX_FLOAT.match(stripped):
        value = _hex_float(stripped)
    else:
        special = _SPECIAL.get(stripped.lstrip("+-").lower()) if stripped[1:2] not in ("+", "-") else None
        if special is None:
            raise invalid_text(str(type_), text)
        return -special if stripped.startswith("-") else special
    rounded = _to_float4(value) if type_.name == "float4" else value
    if math.isinf(rounded) or (rounded == 0 and _has_digits(stripped)):
        raise out_of_range(f'"{stripped}" is out of range for type {type_}')
    return rounded


def _hex_float(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return math.inf


def _has_digits(text: str) -> bool:
    """Whether a number's text has a digit other than zero."""
    mantissa = re.split("[pP]" if "x" in text.lower() else "[eE]", text)[0]
    return any(digit not in "+-.0xX" for digit in mantissa)


def _to_float4(value: float) -> float:
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(value))


def _float_column(strings: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    parse = partial(parse_float, type_=type_)
    if type_.name == "float4":
        try:
            result = fast_or_exact(strings, _PLAIN_FLOAT, lambda a: a.cast(pa.float32()), parse, pa.float32())
        except pa.ArrowInvalid:
            return by_value(strings, parse, type_.arrow)
        # Overflow and underflow show only in the result, for texts such as 1e40 and 1e-50.
        suspect = np.isinf(vector(result, "<f4")) | (vector(result, "<f4") == 0)
        return by_value(strings, parse, type_.arrow) if suspect.any() else result
    return fast_or_exact(strings, _PLAIN_FLOAT, lambda a: a.cast(pa.float64()), parse, pa.float64())


def _float_text(array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    single = type_.name == "float4"
    if (extra := digits_of(timezone)) < SHORTEST:
        return _rounded_text(array, max((6 if single else 15) + extra, 1))
    text = array.cast(pa.string())
    if not len(array):
        return text
    size = np.abs(vector(array, "<f4" if single else "<f8"))
    with np.errstate(invalid="ignore"):
        usual = ((size >= 1e-4) & (size < (1e6 if single else 1e10))) | (size == 0)
        huge = (size >= (2**24 if single else 2**53)) & np.isfinite(size)
    if usual.all():
        return text
    valid = pc.is_valid(array)
    unusual = pc.and_(pa.array(~usual), valid)
    text = pc.replace_with_mask(text, unusual, _respell(text.filter(unusual), single))
    if huge.any():
        rows = pc.and_(pa.array(huge), valid)
        pairs = zip(array.filter(rows).to_pylist(), text.filter(rows).to_pylist(), strict=True)
        text = pc.replace_with_mask(text, rows, pa.array([_inside(*pair, single) for pair in pairs], pa.string()))
    return text


def _rounded_text(array: pa.Array, digits: int) -> pa.Array:
    """Floats with a number of digits, as C's %g prints them."""
    names = {math.inf: "Infinity", -math.inf: "-Infinity"}
    shown = (
        None if value is None else "NaN" if value != value else names.get(value) or f"{value:.{digits}g}"
        for value in array.to_pylist()
    )
    return pa.array(shown, pa.string())


def _respell(text: pa.Array, single: bool) -> pa.Array:
    """Rewrites Arrow's texts of very large and very small floats as PostgreSQL prints them."""
    text = _replace(text, "^(-?)inf$", r"\1Infinity")
    text = _replace(text, "^-?nan$", "NaN")
    for exponent in (5, 6):
        text = _replace(text, rf"^(-?)0\.0{{{exponent - 1}}}([1-9])(\d*)$", rf"\1\2.\3e-{exponent:02}")
    if single:
        for exponent in range(6, 10):
            text = _replace(text, rf"^(-?)(\d)(\d{{{exponent}}})(?:\.(\d+))?$", rf"\1\2.\3\4e+{exponent:02}")
        text = _replace(text, r"(\.\d*?)0*e", r"\1e")
    else:
        for exponent in range(10, 15):
            text = _replace(text, rf"^(-?)(\d)\.?(\d*)e\+{exponent}$", rf"\1\2\3{'0' * exponent}#")
            text = _replace(text, rf"^(-?)(\d{{{exponent + 1}}})(\d*?)0*#$", r"\1\2.\3")
    text = _replace(text, r"\.e", "e")
    text = _replace(text, r"\.$", "")
    return _replace(text, r"e([+-])(\d)$", r"e\10\2")


def _inside(value: float, text: str, single: bool) -> str:
    """The shortest text strictly inside the float's rounding interval, as PostgreSQL's Ryu finds it.

    Arrow also accepts the interval's ends, which are short decimals only where neighbouring floats are integers apart.
    """
    exact = abs(int(value))
    ulp = 2 ** (exact.bit_length() - (24 if single else 53))
    below = ulp // 2 if exact & (exact - 1) == 0 else ulp
    digits = len(text.split("e")[0].replace("-", "").replace(".", ""))
    while True:
        distance = int(Decimal(text)) - int(value) if value > 0 else int(value) - int(Decimal(text))
        if -below < 2 * distance < ulp:
            return text
        digits += 1
        text = f"{value:.{digits - 1}e}"


def _replace(text: pa.Array, pattern: str, replacement: str) -> pa.Array:
    return pc.replace_substring_regex(text, pattern, replacement)


def _float_binary(dtype: str) -> Callable[[pa.Array, SqlType], pa.Array]:
    return lambda array, type_: big_endian(array, dtype)


def _integer(code: str, dtype: str) -> Codec:
    return Codec(
        text=_cast_text,
        binary=_integer_binary(dtype),
        from_text=parse_integer,
        from_binary=_number_from_binary(code),
        column_from_text=_integer_column,
        column_from_binary=_number_column_from_binary(">" + dtype, "<" + dtype),
    )


def _floating(code: str, dtype: str) -> Codec:
    return Codec(
        text=_float_text,
        binary=_float_binary(dtype),
        from_text=parse_float,
        from_binary=_number_from_binary(code),
        column_from_text=_float_column,
        column_from_binary=_number_column_from_binary(">" + dtype, "<" + dtype),
    )


CODECS: Final[dict[str, Codec]] = {
    "int2": _integer("h", "i2"),
    "int4": _integer("i", "i4"),
    "int8": _integer("q", "i8"),
    "oid": Codec(
        text=_cast_text,
        binary=_oid_binary,
        from_text=parse_integer,
        from_binary=_number_from_binary("I"),
        column_from_text=_integer_column,
        column_from_binary=_number_column_from_binary(">u4", "<i8"),
    ),
    "float4": _floating("f", "f4"),
    "float8": _floating("d", "f8"),
}

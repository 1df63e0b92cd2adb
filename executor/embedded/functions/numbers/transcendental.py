"""exp, ln, log and power of numerics with PostgreSQL's digits, and trigonometry in degrees, as functions of the engine.

Owns: ``FUNCTIONS``, ``num_*`` and ``deg_*``. A numeric result has at least 16 significant digits, and at least the
arguments' display scale (numeric.c); decimals beyond the 20th are rounded away. Functions of degrees are exact where
floats can be (float.c).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, Overflow
from typing import Final

from catalog.values.errors import SqlError
from executor.embedded.functions.batches import Functions

_EXACT: Final = Context(prec=100, rounding=ROUND_HALF_UP, Emax=10_000, Emin=-10_000)
_SIGNIFICANT: Final = 16
_MOST: Final = 20
_LOG10_E: Final = 0.434294481903252
#: Between these values, the logarithm is about the value less 1.
_NEAR: Final = (Decimal("0.9"), Decimal("1.1"))


def _fitted(value: Decimal, decimals: int, shown: int) -> Decimal:
    """The value rounded to its decimals, at most 20. Raises 22003."""
    if value and value.adjusted() > 37 - _MOST:
        raise SqlError("22003", "value out of range: more than 38 digits")
    return value.quantize(Decimal(1).scaleb(-min(max(decimals, shown, 0), _MOST)), ROUND_HALF_UP, _EXACT)


def _logarithm(value: Decimal) -> Decimal:
    if value <= 0:
        raise SqlError("2201E", f"cannot take logarithm of {'a negative number' if value else 'zero'}")
    return value.ln(_EXACT)


def _weight(value: Decimal, logarithm: Decimal) -> int:
    """The decimal weight of a value's logarithm; near 1, the weight of the value less 1 (estimate_ln_dweight)."""
    if value == 1:
        return 0
    return (value - 1).adjusted() if _NEAR[0] <= value <= _NEAR[1] else int(math.log10(abs(logarithm)))


def _exp(value: Decimal, shown: int) -> Decimal:
    try:
        return _fitted(value.exp(_EXACT), _SIGNIFICANT - int(float(value) * _LOG10_E), shown)
    except Overflow:
        raise SqlError("22003", "value overflows numeric format") from None


def _ln(value: Decimal, shown: int) -> Decimal:
    found = _logarithm(value)
    return _fitted(found, _SIGNIFICANT - _weight(value, found), shown)


def _log(base: Decimal, value: Decimal, shown: int) -> Decimal:
    above, below = _logarithm(value), _logarithm(base)
    if not below:
        raise SqlError("22012", "division by zero")
    return _fitted(_EXACT.divide(above, below), _SIGNIFICANT - _weight(value, above) + _weight(base, below), shown)


def _log10(value: Decimal, shown: int) -> Decimal:
    return _log(Decimal(10), value, shown)


def _power(base: Decimal, exponent: Decimal, shown: int) -> Decimal:
    if not base and exponent < 0:
        raise SqlError("2201F", "zero raised to a negative power is undefined")
    whole = exponent == exponent.to_integral_value()
    if base < 0 and not whole:
        raise SqlError("2201F", "a negative number raised to a non-integer power yields a complex result")
    if not base or not exponent:
        return _fitted(Decimal(0 if exponent else 1), _SIGNIFICANT, shown)
    digits = float(exponent) * math.log10(abs(base))
    if digits > 200:
        raise SqlError("22003", "value overflows numeric format")
    if digits < -200:
        return _fitted(Decimal(0), _SIGNIFICANT if whole else _MOST, shown)
    found = _EXACT.power(base, exponent.to_integral_value() if whole else exponent)
    return _fitted(found, _SIGNIFICANT if whole else _SIGNIFICANT - int(digits), shown)


def _sqrt(value: Decimal, shown: int) -> Decimal:
    """The square root, with the decimals that half of the digits in groups of four leave (numeric_sqrt)."""
    if value < 0:
        raise SqlError("2201F", "cannot take square root of a negative number")
    half = (value.adjusted() // 4 + 1 if value else 1) * 2 - 1
    return _fitted(_EXACT.sqrt(value), _SIGNIFICANT - half, shown)


def _decimals(function: Callable[..., Decimal]) -> Callable[..., int]:
    """The display scale of a function's result."""
    return lambda *arguments: -int(function(*arguments).as_tuple().exponent)


def _gcd(left: Decimal, right: Decimal) -> Decimal:
    scale = max(-min(int(item.as_tuple().exponent), 0) for item in (left, right))
    return Decimal(math.gcd(*(int(item.scaleb(scale, _EXACT)) for item in (left, right)))).scaleb(-scale, _EXACT)


def _lcm(left: Decimal, right: Decimal) -> Decimal:
    if not left or not right:
        return Decimal(0)
    found = abs(_EXACT.multiply(_EXACT.divide(left, _gcd(left, right)), right))
    if found.adjusted() >= 20:
        raise SqlError("22003", "value out of range: more than 38 digits")
    return found


# --- degrees ---------------------------------------------------------------------------------------------------------

_RADIAN: Final = 0.0174532925199432957692
_SIN_30: Final = math.sin(30 * _RADIAN)
_ONE_MINUS_COS_60: Final = 1.0 - math.cos(60 * _RADIAN)
_ASIN_HALF, _ACOS_HALF, _ATAN_ONE = math.asin(0.5), math.acos(0.5), math.atan(1.0)


def _sine_to_30(degrees: float) -> float:
    return math.sin(degrees * _RADIAN) / _SIN_30 / 2.0


def _cosine_to_60(degrees: float) -> float:
    return 1.0 - (1.0 - math.cos(degrees * _RADIAN)) / _ONE_MINUS_COS_60 / 2.0


def _sine(degrees: float) -> float:
    return _sine_to_30(degrees) if degrees <= 30.0 else _cosine_to_60(90.0 - degrees)


def _cosine(degrees: float) -> float:
    return _cosine_to_60(degrees) if degrees <= 60.0 else _sine_to_30(90.0 - degrees)


def _over(above: float, below: float) -> float:
    return math.copysign(math.inf, above) if below == 0 else above / below


_TAN_45: Final = _sine(45.0) / _cosine(45.0)
_COT_45: Final = _cosine(45.0) / _sine(45.0)


def _turned(of: Callable[[float], float], below: bool, half: bool, zero: bool = False) -> Callable[[float], float]:
    """A function that is defined for the first quadrant, extended to all angles: which of the other quadrants change
    its sign."""

    def turned(value: float) -> float:
        if math.isnan(value):
            return value
        if math.isinf(value):
            raise SqlError("22003", "input is out of range")
        degrees, sign = math.fmod(value, 360.0), 1.0
        if degrees < 0.0:
            degrees, sign = -degrees, -1.0 if below else 1.0
        if degrees > 180.0:
            degrees, sign = 360.0 - degrees, -sign if below else sign
        if degrees > 90.0:
            degrees, sign = 180.0 - degrees, -sign if half else sign
        found = sign * of(degrees)
        return 0.0 if zero and found == 0.0 else found

    return turned


def _within_one(value: float) -> float:
    if abs(value) > 1.0:
        raise SqlError("22003", "input is out of range")
    return value


def _arc_sine(value: float) -> float:
    if value <= 0.5:
        return math.asin(value) / _ASIN_HALF * 30.0
    return 90.0 - math.acos(value) / _ACOS_HALF * 60.0


def _asind(value: float) -> float:
    if math.isnan(value):
        return value
    return math.copysign(_arc_sine(abs(_within_one(value))), value)


def _acosd(value: float) -> float:
    if math.isnan(value):
        return value
    if _within_one(value) < 0.0:
        return 90.0 + _arc_sine(-value)
    if value <= 0.5:
        return 90.0 - math.asin(value) / _ASIN_HALF * 30.0
    return math.acos(value) / _ACOS_HALF * 60.0


_NUMERIC: Final[dict[str, Callable[..., Decimal]]] = {
    "exp": _exp,
    "ln": _ln,
    "log": _log10,
    "log_base": _log,
    "power": _power,
    "sqrt": _sqrt,
}
FUNCTIONS: Final[Functions] = {
    **{f"num_{name}": (function, "DECIMAL(38, 20)") for name, function in _NUMERIC.items()},
    **{f"num_{name}_scale": (_decimals(function), "INTEGER") for name, function in _NUMERIC.items()},
    "num_gcd": (_gcd, "DECIMAL(38, 18)"),
    "num_lcm": (_lcm, "DECIMAL(38, 18)"),
    "deg_sind": (_turned(_sine, below=True, half=False), "DOUBLE"),
    "deg_cosd": (_turned(_cosine, below=False, half=True), "DOUBLE"),
    "deg_tand": (_turned(lambda x: _over(_sine(x), _cosine(x)) / _TAN_45, True, True, zero=True), "DOUBLE"),
    "deg_cotd": (_turned(lambda x: _over(_cosine(x), _sine(x)) / _COT_45, True, True, zero=True), "DOUBLE"),
    "deg_asind": (_asind, "DOUBLE"),
    "deg_acosd": (_acosd, "DOUBLE"),
    "deg_atand": (lambda value: math.atan(value) / _ATAN_ONE * 45.0, "DOUBLE"),
    "deg_atan2d": (lambda y, x: math.atan2(y, x) / _ATAN_ONE * 45.0, "DOUBLE"),
}

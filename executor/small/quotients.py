"""Averages and quotients of a few values at PostgreSQL's scale, and numerics with their display scale.

Owns: select_div_scale of numeric.c, one value at a time. ``executor/embedded/functions/numbers/quotients`` is the
embedded engine's counterpart.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from catalog.values.types import QUOTIENT, UNCONSTRAINED, SqlType
from executor.small.values import EXACT, INTEGERS, Unusual

_LARGEST: Final = 10**38


def shows(kind: SqlType) -> bool:
    """Whether ``scaled_text_of`` writes numbers of this type."""
    return kind.name == "numeric" and kind.modifiers in (QUOTIENT, UNCONSTRAINED)


def scaled_text_of(kind: SqlType) -> Callable[[Any, Any], Any]:
    """A function that writes a number with at least the given number of decimals.

    If that is NULL, a quotient gets the number of decimals expected for its value, and another number keeps its own.
    """
    unknown = _expected_decimals if kind.modifiers == QUOTIENT else lambda _: 0
    scale = kind.scale

    def write(value: Any, shown: Any) -> Any:
        if value is None:
            return None
        least = unknown(value) if shown is None else shown
        text = f"{Decimal(value):.{max(scale, least)}f}"  # with a point, as the type has decimals
        end = len(text) - max(scale - least, 0)
        return (text[:end] + text[end:].rstrip("0")).rstrip(".")

    return write


def _expected_decimals(value: Decimal) -> int:
    """The decimals of a quotient by its value: 16 for up to four digits before the point, 4 fewer for every four more
    digits, and 4 more for none and for a power of 10000 (``embedded.functions.quotients``)."""
    whole = str(abs(int(value)))
    starts_alike = whole == "0" or (value == int(value) and whole.rstrip("0") == "1" and len(whole) % 4 == 1)
    return min(max(16 - 4 * ((len(whole) - 1) // 4) + 4 * starts_alike, 0), 20)


def quotient_scale_of(left: SqlType, right: SqlType) -> Callable[[Any, Any, Any], Any] | None:
    """A function for the display scale of a quotient of these types: at least its third argument."""
    if not all(kind.name in (*INTEGERS, "numeric") for kind in (left, right)):
        return None
    scale = max(kind.scale if kind.name == "numeric" else 0 for kind in (left, right))

    def decimals(a: Any, b: Any, least: Any) -> Any:
        if a is None or b is None or not b:
            return None
        return quotient_decimals(_units(a, scale), _units(b, scale), scale, least or 0)

    return decimals


def _units(value: Any, scale: int) -> int:
    """A number's absolute value as a count of 10^-scale."""
    return int(EXACT.scaleb(abs(value), scale)) if type(value) is Decimal else abs(value) * 10**scale


def average_of(total: SqlType) -> Callable[[Any, Any], Any] | None:
    """A function that computes avg from a sum of this type and a count."""
    if total.name == "float8":
        return lambda value, count: None if value is None or not count else value / count
    if total.name not in (*INTEGERS, "numeric"):
        return None
    scale = total.scale if total.name == "numeric" else 0
    shown = 0 if total.name != "numeric" or SqlType("numeric", (38, scale)).is_loose else min(scale, 20)
    power = 10**scale

    def average(value: Any, count: Any) -> Any:
        if value is None or not count:
            return None
        units = int(EXACT.scaleb(value, scale)) if type(value) is Decimal else value * power
        result = quotient(units, count * power, scale, shown)
        if abs(result) >= _LARGEST:
            raise Unusual
        return EXACT.scaleb(Decimal(result), -20)

    return average


def quotient(left: int, right: int, scale: int, shown: int) -> int:
    """left / right, both counts of 10^-scale, as a count of 10^-20, rounded to the scale of PostgreSQL's division."""
    a, b = abs(left), abs(right)
    if a == 0:
        return 0
    digits = quotient_decimals(a, b, scale, shown)
    cut = 10 ** (20 - digits)
    whole, rest = divmod(a * 10**20, b)
    if cut > 1:
        whole = (whole + cut // 2) // cut * cut
    elif rest >= b - rest:
        whole += 1
    return -whole if (left < 0) != (right < 0) else whole


@lru_cache(maxsize=4096)  # for an average, the value and its scale need the same quotient
def quotient_decimals(a: int, b: int, scale: int, shown: int) -> int:
    """The number of decimals of a / b: neither negative, b not zero, both counts of 10^-scale.

    numeric.c, select_div_scale: 16 significant digits by the weights of both sides in base 10000, and at least
    ``shown`` decimals.
    """
    x, y = _weight(a, scale) if a else 0, _weight(b, scale)
    starts_lower = (_first(a, x, scale) if a else 0) <= _first(b, y, scale)
    return min(20, max(shown, 16 - 4 * (x - y - starts_lower)))


def _weight(units: int, scale: int) -> int:
    """The exponent of a number's first digit in base 10000."""
    return (len(str(units)) + 3999 - scale) // 4 - 1000


def _first(units: int, weight: int, scale: int) -> int:
    """A number's first digit in base 10000."""
    exponent = 4 * weight + scale
    power: int = 10 ** abs(exponent)
    return units // power if exponent >= 0 else units * power

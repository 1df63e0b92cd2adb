"""Type modifiers of times and intervals: the digits of a second, and the fields of an interval, that a type keeps.

Owns: where such modifiers apply (``expressed``: types that store values have them, expressions do not), rounding
(AdjustTimeForTypmod, AdjustTimestampForTypmod) and truncation (AdjustIntervalForTypmod of PostgreSQL 15), as plain
arithmetic for integers and numpy's vectors, and for the values of parameters and literals. Halves are rounded away from
zero, which for a timestamp is 2000-01-01. ``protocol.values.times.precision`` handles columns, and the engines' casts
have the same results.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any, Final

from msgspec.structs import replace

from catalog.values.errors import SqlError, unsupported
from catalog.values.interval_fields import FULL_RANGE, smallest_of
from catalog.values.times.intervals import cut
from catalog.values.times.timetz import DAY, packed, unpacked
from catalog.values.types import FULL_PRECISION, MICROSECONDS, ROUNDED, SqlType

#: 2000-01-01 in microseconds since 1970-01-01.
EPOCH: Final = 946_684_800_000_000
_EPOCH: Final = datetime(2000, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)


def expressed(kind: SqlType) -> SqlType:
    """The type of expressions over values of a type: without the modifier, as the results of computations with rounded
    or truncated values need not fit it."""
    if kind.element is not None:
        return kind if (inner := expressed(kind.element)) == kind.element else replace(kind, element=inner)
    return SqlType(kind.name) if kind.modifiers and kind.name in ROUNDED else kind


def declared(kind: SqlType, typmod: int) -> SqlType:
    """The type of a column that stores an expression's values with a modifier: the inverse of ``expressed``."""
    if kind.element is not None:
        return replace(kind, element=declared(kind.element, typmod))
    if kind.name not in ROUNDED or typmod < 0:
        return kind
    return SqlType(kind.name, divmod(typmod, 1 << 16) if kind.name == "interval" else (typmod,))


def unit_of(kind: SqlType) -> int:
    """The unit, in microseconds, of a type's values; 1 if the type keeps all digits."""
    if kind.name not in ROUNDED or not kind.modifiers:
        return 1
    digits = kind.modifiers[-1]
    return 1 if digits == FULL_PRECISION else 10 ** (MICROSECONDS - digits)


def smallest_field(kind: SqlType) -> str:
    """The smallest field that an interval type keeps."""
    return smallest_of(kind.modifiers[0] if kind.name == "interval" and kind.modifiers else FULL_RANGE)


def is_fitted(kind: SqlType) -> bool:
    """Whether a type's modifier changes values, instead of only stating a property that all values have."""
    return unit_of(kind) > 1 or smallest_field(kind) != "second"


def rounded(microseconds: Any, unit: int) -> Any:
    """Rounded to whole units, halves away from zero."""
    sign = 1 - 2 * (microseconds < 0)
    return sign * ((sign * microseconds + unit // 2) // unit * unit)


def fit_interval(kind: SqlType, months: Any, days: Any, microseconds: Any) -> tuple[Any, Any, Any]:
    """An interval reduced to the fields that a type keeps."""
    months, days, microseconds = cut((months, days, microseconds), smallest_field(kind))
    return months, days, rounded(microseconds, unit_of(kind))


def fit_zoned(kind: SqlType, number: Any) -> Any:
    """A time of day with a zone, in the form of ``catalog.values.times.timetz``, rounded."""
    microseconds, west = unpacked(number)
    return packed(rounded(microseconds, unit_of(kind)), west)


def fit_moment(value: Any, kind: SqlType) -> Any:
    """A time or an interval as its type stores it. Raises 22008, and 0A000 for the time 24:00:00."""
    if value is None or not is_fitted(kind):
        return value
    match value:
        case datetime():
            return _timestamp(value, unit_of(kind))
        case time():
            return _time(value, unit_of(kind))
        case (months, days, microseconds):
            return fit_interval(kind, months, days, microseconds)
        case int():
            return fit_zoned(kind, value)
        case _:  # an infinite date or timestamp
            return value


def _timestamp(value: datetime, unit: int) -> datetime:
    epoch = _EPOCH.replace(tzinfo=value.tzinfo)
    try:
        return epoch + timedelta(microseconds=rounded((value - epoch) // _MICROSECOND, unit))
    except OverflowError:
        raise unsupported("a timestamp before Christ or beyond the year 9999") from None


def _time(value: time, unit: int) -> time:
    found = rounded((datetime.combine(datetime.min, value) - datetime.min) // _MICROSECOND, unit)
    if found == DAY:
        raise end_of_day()
    return (datetime.min + timedelta(microseconds=found)).time()


def end_of_day() -> SqlError:
    """The error for a time of 24 hours."""
    return unsupported("time 24:00:00", "Use 23:59:59.999999 or a timestamp.")

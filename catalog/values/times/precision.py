"""Digits of a second that a type keeps, and the fields of an interval: what a modifier does with a value.

Owns: where such modifiers stay (``expressed``: with what stores values, and never with an expression), rounding
(AdjustTimeForTypmod, AdjustTimestampForTypmod) and cutting (AdjustIntervalForTypmod of PostgreSQL 15), as plain
arithmetic that takes integers and numpy's vectors alike, and over the values that parameters and literals have. Halves
go away from zero, which for a timestamp is 2000-01-01. Columns are ``protocol.values.times.precision``'s, and the
engines' casts print the same.
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
    """The type of expressions over values of a type: what rounded a time or cut an interval is gone, as nothing that is
    computed of them keeps to it."""
    if kind.element is not None:
        return kind if (inner := expressed(kind.element)) == kind.element else replace(kind, element=inner)
    return SqlType(kind.name) if kind.modifiers and kind.name in ROUNDED else kind


def declared(kind: SqlType, typmod: int) -> SqlType:
    """The type of a column that keeps values of an expression with a modifier: the reverse of ``expressed``."""
    if kind.element is not None:
        return replace(kind, element=declared(kind.element, typmod))
    if kind.name not in ROUNDED or typmod < 0:
        return kind
    return SqlType(kind.name, divmod(typmod, 1 << 16) if kind.name == "interval" else (typmod,))


def unit_of(kind: SqlType) -> int:
    """The microseconds of which a type's values are whole numbers; 1 where it keeps them all."""
    if kind.name not in ROUNDED or not kind.modifiers:
        return 1
    digits = kind.modifiers[-1]
    return 1 if digits == FULL_PRECISION else 10 ** (MICROSECONDS - digits)


def smallest_field(kind: SqlType) -> str:
    """The smallest field that an interval's type keeps."""
    return smallest_of(kind.modifiers[0] if kind.name == "interval" and kind.modifiers else FULL_RANGE)


def is_fitted(kind: SqlType) -> bool:
    """Whether a type's modifier changes values, and not only says what they have anyway."""
    return unit_of(kind) > 1 or smallest_field(kind) != "second"


def rounded(microseconds: Any, unit: int) -> Any:
    """Whole units, halves away from zero."""
    sign = 1 - 2 * (microseconds < 0)
    return sign * ((sign * microseconds + unit // 2) // unit * unit)


def fit_interval(kind: SqlType, months: Any, days: Any, microseconds: Any) -> tuple[Any, Any, Any]:
    """The fields that a type keeps of an interval."""
    months, days, microseconds = cut((months, days, microseconds), smallest_field(kind))
    return months, days, rounded(microseconds, unit_of(kind))


def fit_zoned(kind: SqlType, number: Any) -> Any:
    """A time of day with a zone, as ``catalog.values.times.timetz`` has it."""
    microseconds, west = unpacked(number)
    return packed(rounded(microseconds, unit_of(kind)), west)


def fit_moment(value: Any, kind: SqlType) -> Any:
    """One value of a time or an interval as its type keeps it. Raises 22008, and 0A000 for the time 24:00:00."""
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
        case _:  # an infinite one
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
    """The error of a time that is a whole day."""
    return unsupported("time 24:00:00", "Use 23:59:59.999999 or a timestamp.")

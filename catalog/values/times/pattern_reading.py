"""to_date(), to_timestamp() and jsonpath's .datetime(): a text read by a pattern (formatting.c, do_to_timestamp).

Owns: the combination of a text's fields. The year is determined first; a Julian day is a complete date; days and months
take precedence over a week; and the day of the year supplies missing days and months. Years before Christ and beyond
9999 raise 0A000.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from functools import lru_cache
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError
from catalog.values.times.pattern_fields import Fields, Shape, fields, shape_of
from catalog.values.times.precision import fit_moment
from catalog.values.times.zones import session_zone, to_utc
from catalog.values.types import SqlType

_TEXTS: Final = 1 << 14
_ENDS: Final = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365)
_FARTHEST: Final = 15
#: The first and the last day of PostgreSQL's dates and timestamps.
_FIRST: Final = (-4713, 11, 24)
_LAST_YEAR: Final = {"date": 5_874_897, "timestamp": 294_276}
#: The Julian day of 1970-01-01.
_JULIAN: Final = 2_440_588


class _Missing(Exception):
    """22008: the date or the time of day does not exist; the caller adds the text."""


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01, in the Gregorian calendar for all years."""
    shifted = year - (month <= 2)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return shifted * 365 + shifted // 4 - shifted // 100 + shifted // 400 + of_year - 719_468


def _date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day for a count of days since 1970-01-01: the inverse of ``_days``."""
    cycle, rest = divmod(days + 719_468, 146_097)
    of_cycle = (rest - rest // 1460 + rest // 36_524 - rest // 146_096) // 365
    of_year = rest - (365 * of_cycle + of_cycle // 4 - of_cycle // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return cycle * 400 + of_cycle + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _first_week(year: int) -> int:
    """The Monday of the week with January 4."""
    fourth = _days(year, 1, 4)
    return fourth - (fourth + 3) % 7


def _year(found: Fields) -> int:
    """The year, where 0 is 1 BC and -1 is 2 BC."""
    sign = -1 if found.before_christ else 1
    century = sign * found.century
    if found.year and not (found.century and found.year_digits <= 2):
        year = sign * found.year
        return year + 1 if year < 0 else year
    if found.year:
        within = found.year % 100 if found.year > 0 else -(-found.year % 100)
        if not within:
            return century * 100 + (century < 0)
        return within + (century - 1) * 100 if century >= 0 else (century + 1) * 100 - within + 1
    if found.century:
        return (century - 1) * 100 + 1 if century >= 0 else century * 100 + 1
    return 0


class _Day(Struct):
    """A date whose missing parts are 1 BC, January and the first day."""

    year: int
    has_year: bool
    month: int = 1
    has_month: bool = False
    day: int = 1
    has_day: bool = False

    def put(self, days: int) -> None:
        """Sets the complete date from days since 1970-01-01."""
        self.year, self.month, self.day = _date_of(days)
        self.has_year = self.has_month = self.has_day = True


def _day(found: Fields) -> tuple[int, int, int]:
    """Year, month and day. Raises 22007 and ``_Missing``."""
    made = _Day(_year(found), bool(found.year or found.century))
    day_of_year, by_weeks = found.day_of_year, found.convention == "week"
    if found.julian:
        made.put(found.julian - _JULIAN)
    if found.week and by_weeks:
        after = 0 if not found.day_of_week else found.day_of_week - 2 if found.day_of_week > 1 else 6
        made.put(_first_week(made.year) + (found.week - 1) * 7 + after)
    elif found.week:
        day_of_year = (found.week - 1) * 7 + 1
    if day := (found.week_of_month - 1) * 7 + 1 if found.week_of_month else found.day:
        made.day, made.has_day = day, True
    if found.month:
        made.month, made.has_month = found.month, True
    if day_of_year and (made.month <= 1 or made.day <= 1):
        if not made.year and not found.before_christ:
            raise SqlError("22007", "cannot calculate day of year without year information")
        if by_weeks:
            made.put(_first_week(made.year) - 1 + day_of_year)
        else:
            made.month, made.day = _within(made.year, made.month, made.day, day_of_year)
            made.has_month = made.has_day = True
    _check(made)
    return made.year, made.month, made.day


def _within(year: int, month: int, day: int, day_of_year: int) -> tuple[int, int]:
    """Sets unknown month and day from a day of the year; a thirteenth month is past the year's end."""
    ends = [end + (place > 1 and _is_leap(year)) for place, end in enumerate(_ENDS)]
    of_year = next((place for place in range(1, 13) if day_of_year <= ends[place]), 13)
    return of_year if month <= 1 else month, day_of_year - ends[of_year - 1] if day <= 1 else day


def _check(made: _Day) -> None:
    """Raises ``_Missing`` for a month or day that no year has, or that a complete date's month does not have
    (ValidateDate)."""
    if (made.has_month and not 1 <= made.month <= 12) or (made.has_day and not 1 <= made.day <= 31):
        raise _Missing
    if made.has_year and made.has_month and made.has_day:
        length = _ENDS[made.month] - _ENDS[made.month - 1] + (made.month == 2 and _is_leap(made.year))
        if made.day > length:
            raise _Missing


def _clock(found: Fields) -> tuple[int, int, int]:
    """Hour, minute and second. Raises 22007."""
    sign, of_day = (-1 if found.second_of_day < 0 else 1), abs(found.second_of_day)
    hour = found.hour or sign * (of_day // 3600)
    if found.on_12_hours:
        if not 1 <= hour <= 12:
            hint = "Use the 24-hour clock, or give an hour between 1 and 12."
            raise SqlError("22007", f'hour "{hour}" is invalid for the 12-hour clock', hint=hint)
        hour = hour % 12 + (12 if found.afternoon else 0)
    return hour, found.minute or sign * (of_day // 60 % 60), found.second or sign * (of_day % 60)


def _time(found: Fields, hour: int, minute: int, second: int) -> timedelta:
    """The time since midnight. Raises ``_Missing``."""
    below = found.millisecond * 1000 + found.microsecond
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and 0 <= below < 1_000_000):
        raise _Missing
    return timedelta(hours=hour, minutes=minute, seconds=second, microseconds=below)


def _east(found: Fields, text: str) -> timedelta | None:
    """The zone offset in a text. Raises 22009."""
    if not found.east:
        return None
    if not (0 <= found.zone_hours <= _FARTHEST and 0 <= found.zone_minutes < 60):
        raise SqlError("22009", f'time zone displacement out of range: "{text}"')
    return found.east * timedelta(hours=found.zone_hours, minutes=found.zone_minutes)


class _Moment(Struct, frozen=True):
    """A date with a time of day; ``east`` is the offset from Greenwich, and ``digits`` how many digits of a second to
    keep."""

    local: datetime
    east: timedelta | None
    digits: int


def _read(text: str, pattern: str, name: str, strict: bool = False) -> _Moment:
    """The moment in a text. Raises 22007, 22008, 22009 and 0A000."""
    found = fields(text, pattern, strict)
    clock = _clock(found)
    try:
        days = _days(1, 1, 1) if name == "time" else _days(*_day(found))
        time = _time(found, *clock)
    except _Missing:
        raise SqlError("22008", f'date/time field value out of range: "{text}"') from None
    east = _east(found, text)
    year, month, day = _date_of(days)
    if not _FIRST <= (year, month, day) <= (_LAST_YEAR.get(name, year), 12, 31):
        quoted = f': "{text}"' if name == "date" else ""
        raise SqlError("22008", f"{name} out of range{quoted}")
    if not 1 <= year <= 9999:
        raise Beyond(name)
    return _Moment(datetime(year, month, day) + time, east, found.digits)


class Beyond(SqlError):
    """0A000 for a year that Python does not support."""

    def __init__(self, name: str) -> None:
        super().__init__("0A000", f"a {name} before Christ or beyond the year 9999 is not supported")


@lru_cache(_TEXTS)
def read_date(text: str, pattern: str) -> date:
    """to_date(). Raises 22007, 22008, 22009 and 0A000."""
    return _read(text, pattern, "date").local.date()


@lru_cache(_TEXTS)
def read_timestamp(text: str, pattern: str) -> datetime:
    """to_timestamp() in the session's local time, for a pattern without a zone and without digits of a second."""
    return _read(text, pattern, "timestamp").local


@lru_cache(_TEXTS)
def read_instant(text: str, pattern: str, zone: str) -> datetime:
    """to_timestamp(); a text without a zone is read in the session's. Raises 22007, 22008, 22009 and 0A000."""
    found = _read(text, pattern, "timestamp")
    try:
        instant = to_utc(found.local, session_zone(zone) if found.east is None else timezone(found.east))
    except OverflowError:
        raise Beyond("timestamp") from None
    return instant if not found.digits else fit_moment(instant, SqlType("timestamptz", (found.digits,)))


class Standard(Struct, frozen=True):
    """The result of parse_datetime(): from a pattern with fields of a date, of a time, and with or without a zone.

    ``local`` has January 1 of the year 1 if there is no date.
    """

    shape: Shape
    local: datetime
    east: timedelta | None


@lru_cache(_TEXTS)
def read_standard(text: str, pattern: str) -> Standard:
    """Reads a text that matches a pattern exactly. Raises 22007, 22008, 22009, 0A000 for fields that can only be
    written, and ``Beyond``."""
    shape = shape_of(pattern)
    name = "time" if not shape.is_dated else "timestamp" if shape.is_timed else "date"
    found = _read(text, pattern, name, strict=True)
    if not shape.is_dated and not shape.is_timed:
        raise SqlError("22007", "datetime format is not dated and not timed")
    if shape.is_zoned and not shape.is_timed:
        raise SqlError("22007", "datetime format is zoned but not timed")
    local = found.local if not found.digits else fit_moment(found.local, SqlType("timestamp", (found.digits,)))
    return Standard(shape, local, found.east)

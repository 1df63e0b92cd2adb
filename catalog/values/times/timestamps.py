"""Reading PostgreSQL's date and time texts, one at a time, in each of DateStyle's orders.

Owns: each type's value for a text's moment (``moment_texts``), and the errors of its input function. Columns are read
by faster code, in the protocol and in the engine, which calls this module for unusual texts. Years before Christ and
beyond 9999 raise 0A000; an infinite date is a float, as Python's dates cannot be infinite.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from typing import Final

from catalog.values.errors import SqlError, unsupported
from catalog.values.times.moment_texts import Moment, decode
from catalog.values.times.time_fields import MDY, DateOverflow, Displacement, Malformed, Overflow
from catalog.values.times.timetz import packed
from catalog.values.times.zone_texts import Zone
from catalog.values.times.zones import session_zone, to_utc

_RELATIVE: Final = frozenset(("now", "today", "tomorrow", "yesterday"))
_INFINITE: Final = {"infinity": math.inf, "-infinity": -math.inf}
#: The carrier of an infinite date or timestamp: the greatest count of days or of microseconds, by the number of bits.
INFINITE_DAYS: Final = 2**31 - 1
INFINITE_MICROSECONDS: Final = 2**63 - 1
#: The characters that C's isspace() treats as blank.
_BLANKS: Final = " \t\n\v\f\r"
_DAY: Final = 86_400_000_000
_LAST_YEAR: Final = {"date": 5_874_897, "timestamp": 294_276}
_FIRST_DAY: Final = (-4713, 11, 24)  # in which the year 0 is 1 BC


def parse_date(text: str, order: str = MDY) -> date | float:
    """date_in. Raises 22007 and 22008."""
    moment = _read(text, "date", order)
    return _INFINITE[moment.word] if moment.word in _INFINITE else _date(moment, text)


def parse_timestamp(text: str, order: str = MDY) -> datetime | float:
    """Reads a timestamp as timestamp_in does; a zone in the text is read and ignored. Raises 22007 and 22008."""
    moment = _read(text, "timestamp", order)
    return _INFINITE[moment.word] if moment.word in _INFINITE else _datetime(moment, text)


def parse_timestamptz(text: str, zone: str, order: str = MDY) -> datetime | float:
    """Reads a timestamptz as timestamptz_in does: an instant in UTC. A text without a zone is in the session's zone.
    Raises 22007 and 22008."""
    moment = _read(text, "timestamp with time zone", order)
    if moment.word in _INFINITE:
        return _INFINITE[moment.word]
    local = _datetime(moment, text)
    try:
        return _instant(local, session_zone(zone) if moment.zone is None else moment.zone)
    except OverflowError:
        raise _out_of_range("timestamp", text) from None


def _instant(local: datetime, zone: Zone) -> datetime:
    return (local - zone).replace(tzinfo=UTC) if isinstance(zone, timedelta) else to_utc(local, zone)


def parse_time(text: str, order: str = MDY) -> clock:
    """time_in. Raises 22007 and 22008, and 0A000 for 24:00:00."""
    moment = _read(text, "time", order, is_time=True)
    if moment.microseconds == _DAY:
        raise unsupported("time 24:00:00", "Use 23:59:59.999999 or a timestamp.")
    return (datetime.min + timedelta(microseconds=moment.microseconds)).time()


def parse_timetz(text: str, zone: str, order: str = MDY) -> int:
    """Reads a timetz as timetz_in does, as a number of ``catalog.values.times.timetz``. A text without a zone gets the
    offset of the session's zone on that day, or today. Raises 22007, 22008 and 22009."""
    moment = _read(text, "time with time zone", order, is_time=True)
    rules = session_zone(zone) if moment.zone is None else moment.zone
    if isinstance(rules, timedelta):
        return _packed(moment.microseconds, -rules)
    day = _date(moment, text) if moment.has_date else datetime.now(rules).date()
    local = datetime(day.year, day.month, day.day) + timedelta(microseconds=moment.microseconds)
    return _packed(moment.microseconds, to_utc(local, rules).replace(tzinfo=None) - local)


def _packed(microseconds: int, west: timedelta) -> int:
    if abs(west) >= timedelta(days=1):
        raise unsupported("a time in a zone that is a day or more from UTC", "Use a timestamp with time zone.")
    number: int = packed(microseconds, round(west.total_seconds()))
    return number


def carried_moment(value: date | float) -> date | int:
    """A timestamp in the form that Arrow accepts for an array."""
    return (INFINITE_MICROSECONDS if value > 0 else -INFINITE_MICROSECONDS) if isinstance(value, float) else value


def carried_day(value: date | float) -> date | int:
    """A date in the form that Arrow accepts for an array."""
    return (INFINITE_DAYS if value > 0 else -INFINITE_DAYS) if isinstance(value, float) else value


def _date(moment: Moment, text: str, name: str = "date") -> date:
    day = (moment.year, moment.month, moment.day)
    if moment.year > _LAST_YEAR[name] or day < _FIRST_DAY:
        raise _out_of_range(name, text)
    if not 1 <= moment.year <= 9999:
        raise unsupported(f"a {name} before Christ or beyond the year 9999")
    return date(*day)


def _datetime(moment: Moment, text: str) -> datetime:
    day = _date(moment, text, "timestamp")
    try:
        return datetime(day.year, day.month, day.day) + timedelta(microseconds=moment.microseconds)
    except OverflowError:
        raise _out_of_range("timestamp", text) from None


def _malformed(type_name: str, text: str) -> SqlError:
    return SqlError("22007", f'invalid input syntax for type {type_name}: "{text}"')


def _field_overflow(text: str, hint: str | None = None) -> SqlError:
    return SqlError("22008", f'date/time field value out of range: "{text}"', hint=hint)


def _out_of_range(name: str, text: str) -> SqlError:
    return SqlError("22008", f'{name} out of range: "{text}"')


def _read(text: str, type_name: str, order: str, is_time: bool = False) -> Moment:
    """The content of a text. Raises the errors of the type's input function."""
    stripped = text.strip(_BLANKS).lower()
    if stripped in _RELATIVE:
        raise unsupported(f"{type_name} '{stripped}'", "Use now() or current_date.")
    try:
        moment = decode(text, order, is_time)
    except Malformed:
        raise _malformed(type_name, text) from None
    except DateOverflow:
        raise _field_overflow(text, 'Perhaps you need a different "datestyle" setting.') from None
    except Overflow:
        raise _field_overflow(text) from None
    except Displacement:
        raise SqlError("22009", f'time zone displacement out of range: "{text}"') from None
    return Moment(1970, 1, 1, has_date=True, zone=timedelta()) if moment.word == "epoch" else moment

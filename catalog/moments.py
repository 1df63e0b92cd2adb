"""Reading PostgreSQL's date and time texts, one at a time, in each of DateStyle's orders.

Owns: the grammar (ParseDateTime, DecodeDateTime) and its errors. Columns have fast ways of their own, on the wire and
in the engine, and come here for what is written unusually. Years before Christ and beyond 9999 are 0A000; an infinite
date is a float, as Python has no other.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from datetime import time as clock
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from catalog.errors import SqlError, unsupported
from catalog.zoned_times import packed
from catalog.zones import displacement, find_zone, session_zone, to_utc

_TOKEN: Final = re.compile(
    r"(?P<time>\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d*)?)?)"
    r"|(?P<date>\d{1,8}(?P<separator>[-/.])(?:\d{1,8}|[a-z]{3,9})(?P=separator)\d{1,8})(?![\d.:])"
    r"|(?P<offset>[+-]\d{1,2}(?::\d{1,2}){0,2}(?!\d)|[+-]\d{3,8}(?!\d))"
    r"|(?P<julian>j\d+(?:\.\d+)?)"
    r"|(?P<labelled>(?:mm|[ymdhs])\d+(?:\.\d*)?)"
    r"|(?P<number>\d+(?:\.\d*)?)"
    r"|(?P<named>[a-z]{3,9}(?P<mark>[-/.])\d{1,8}(?P=mark)\d{1,8})(?![\d.:])"
    r"|(?P<posix>[a-z]{3,}[+-]\d{1,2}(?::\d{2}){0,2}(?![\d/.-]))"
    r"|(?P<word>[a-z]+(?:[/_][a-z0-9_+-]+)*)"
    r"|(?P<blank>[\s,]+)",
    re.ASCII,
)
_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTH_NUMBERS: Final = {name: i for i, name in enumerate(_MONTHS, 1)} | {
    name[:3]: i for i, name in enumerate(_MONTHS, 1)
}
_MONTH_NUMBERS["sept"] = 9
_DAYS: Final = re.compile("(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?")
#: The order in which a date's numbers are read where none of them tells what it is (DateStyle).
MDY, DMY, YMD = "MDY", "DMY", "YMD"
_RELATIVE: Final = frozenset(("now", "today", "tomorrow", "yesterday"))
#: Tokens that a date may end with.
_DATES: Final = ("date", "separator", "number")
_INFINITE: Final = {"infinity": math.inf, "-infinity": -math.inf}
#: What carries an infinite date or timestamp: the greatest count of days or of microseconds, by its bits.
INFINITE_DAYS: Final = 2**31 - 1
INFINITE_MICROSECONDS: Final = 2**63 - 1
#: What C's isspace() takes for blank.
_BLANKS: Final = " \t\n\v\f\r"
_DAY: Final = 86_400_000_000
_LAST_YEAR: Final = {"date": 5_874_897, "timestamp": 294_276}
_UNITS: Final = {"h": 3_600_000_000, "n": 60_000_000, "s": 1_000_000}  # by the label of a time's part
_FIRST_DAY: Final = (-4714, 11, 24)  # before Christ
_JULIAN_EPOCH: Final = 1_721_425  # the Julian day of ordinal 0
_LAST_CLOCK: Final = 24 * 60 * 60 + 1


class Moment(Struct):
    """What a text says: a date, microseconds since midnight, a zone; each may be missing."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    microseconds: int | None = None
    zone: tzinfo | None = None
    before_christ: bool = False
    afternoon: bool | None = None
    month_named: bool = False
    marked: bool = False  # a number may be a time: a T stood before it, or a time is wanted
    order: str = MDY
    short_year: bool = False  # of two digits at most
    labels: str = ""  # those of its parts that have one: y2001m12d27h04m05s06


class _Malformed(Exception):
    """22007; the caller knows the type and the text."""


class _Overflow(Exception):
    """22008."""


class _DateOverflow(_Overflow):
    """22008 for a month or a day that no year has: it may be the other one."""


class _Displacement(Exception):
    """22009."""


def _infinite(text: str) -> float | None:
    return _INFINITE.get(text.strip(_BLANKS).lower())


def parse_date(text: str, order: str = MDY) -> date | float:
    """date_in. Raises 22007 and 22008."""
    if (infinite := _infinite(text)) is not None:
        return infinite
    moment = _read(text, "date", order)
    return _date(moment, text)


def parse_timestamp(text: str, order: str = MDY) -> datetime | float:
    """timestamp_in; a zone in the text is read and means nothing. Raises 22007 and 22008."""
    if (infinite := _infinite(text)) is not None:
        return infinite
    moment = _read(text, "timestamp", order)
    return _datetime(moment, text, "timestamp")


def parse_timestamptz(text: str, zone: str, order: str = MDY) -> datetime | float:
    """timestamptz_in: an instant in UTC; a text without a zone is read in the session's. Raises 22007 and 22008."""
    if (infinite := _infinite(text)) is not None:
        return infinite
    moment = _read(text, "timestamp with time zone", order)
    local = _datetime(moment, text, "timestamp")
    try:
        return to_utc(local, moment.zone or session_zone(zone))
    except OverflowError:
        raise _out_of_range("timestamp", text) from None


def parse_time(text: str, order: str = MDY) -> clock:
    """time_in. Raises 22007 and 22008, and 0A000 for 24:00:00."""
    moment = _read(text, "time", order, needs_date=False)
    if moment.microseconds is None or (moment.year is None and isinstance(moment.zone, ZoneInfo)):
        raise _malformed("time", text)
    if moment.microseconds == _DAY:
        raise unsupported("time 24:00:00", "Use 23:59:59.999999 or a timestamp.")
    if moment.microseconds > _DAY:
        raise _field_overflow(text)
    return (datetime.min + timedelta(microseconds=moment.microseconds)).time()


def parse_timetz(text: str, zone: str, order: str = MDY) -> int:
    """timetz_in, as the number of ``catalog.zoned_times``; a text without a zone gets the session's of that day, or of
    today. Raises 22007, 22008 and 22009.
    """
    moment = _read(text, "time with time zone", order, needs_date=False)
    if moment.microseconds is None or (moment.year is None and isinstance(moment.zone, ZoneInfo)):
        raise _malformed("time with time zone", text)
    if moment.microseconds > _DAY:
        raise _field_overflow(text)
    rules = moment.zone or session_zone(zone)
    day = datetime.now(rules).date() if moment.year is None else _date(moment, text)
    local = datetime(day.year, day.month, day.day) + timedelta(microseconds=moment.microseconds)
    west = to_utc(local, rules).replace(tzinfo=None) - local
    number: int = packed(moment.microseconds, round(west.total_seconds()))
    return number


def carried_moment(value: date | float) -> date | int:
    """A timestamp as Arrow takes it into an array."""
    return (INFINITE_MICROSECONDS if value > 0 else -INFINITE_MICROSECONDS) if isinstance(value, float) else value


def carried_day(value: date | float) -> date | int:
    """A date as Arrow takes it into an array."""
    return (INFINITE_DAYS if value > 0 else -INFINITE_DAYS) if isinstance(value, float) else value


def _date(moment: Moment, text: str, name: str = "date") -> date:
    assert moment.year is not None
    assert moment.month is not None
    assert moment.day is not None
    is_before = moment.before_christ and (-moment.year, moment.month, moment.day) < _FIRST_DAY
    if moment.year > _LAST_YEAR[name] or is_before:
        raise _out_of_range(name, text)
    if moment.before_christ or moment.year > 9999:
        raise unsupported(f"a {name} before Christ or beyond the year 9999")
    try:
        return date(moment.year, moment.month, moment.day)
    except ValueError:
        raise _field_overflow(text) from None


def _datetime(moment: Moment, text: str, name: str) -> datetime:
    day = _date(moment, text, name)
    try:
        return datetime(day.year, day.month, day.day) + timedelta(microseconds=moment.microseconds or 0)
    except OverflowError:
        raise _out_of_range(name, text) from None


def _malformed(type_name: str, text: str) -> SqlError:
    return SqlError("22007", f'invalid input syntax for type {type_name}: "{text}"')


def _field_overflow(text: str, hint: str | None = None) -> SqlError:
    return SqlError("22008", f'date/time field value out of range: "{text}"', hint=hint)


def _out_of_range(name: str, text: str) -> SqlError:
    return SqlError("22008", f'{name} out of range: "{text}"')


def _read(text: str, type_name: str, order: str, needs_date: bool = True) -> Moment:
    """All fields of a text, checked one by one but for the days of the month."""
    stripped = text.strip(_BLANKS).lower()
    if stripped in _RELATIVE:
        raise unsupported(f"{type_name} '{stripped}'", "Use now() or current_date.")
    if stripped == "epoch":
        return Moment(1970, 1, 1, 0, UTC)
    try:
        moment = _tokens(stripped, Moment(marked=not needs_date, order=order))
        _complete(moment, needs_date)
    except _Malformed:
        raise _malformed(type_name, text) from None
    except _DateOverflow:
        raise _field_overflow(text, 'Perhaps you need a different "datestyle" setting.') from None
    except _Overflow:
        raise _field_overflow(text) from None
    except _Displacement:
        raise SqlError("22009", f'time zone displacement out of range: "{text}"') from None
    return moment


def _tokens(text: str, moment: Moment) -> Moment:
    position, before = 0, None
    while position < len(text):
        match = _TOKEN.match(text, position)
        # a date and a minus are one token of PostgreSQL's, and no date
        if match is None or (before in _DATES and text[position] == "-" and moment.microseconds is None):
            raise _Malformed
        position, before = match.end(), match.lastgroup
        match {"separator": "date", "mark": "named"}.get(str(match.lastgroup), match.lastgroup):
            case "time":
                _set_time(moment, match["time"])
            case "date":
                _set_date(moment, re.split("[-/.]", match["date"]))
            case "offset":
                _set_offset(moment, match["offset"])
            case "julian":
                _set_julian(moment, match["julian"][1:])
            case "labelled":
                _set_labelled(moment, match["labelled"])
            case "number":
                _set_number(moment, match["number"])
            case "named":
                month, day, year = re.split("[-/.]", match["named"])
                _set_date(moment, [day, month, year])
            case "posix":
                _set_rule(moment, match["posix"])
            case "word":
                _set_word(moment, match["word"])
            case _:
                pass
    return moment


def _set_time(moment: Moment, text: str) -> None:
    if moment.microseconds is not None:
        raise _Malformed
    hours, minutes, *rest = text.split(":")
    seconds, _, fraction = (rest[0] if rest else "0").partition(".")
    if int(minutes) > 59 or int(seconds) > 60:
        raise _Overflow
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    if whole >= _LAST_CLOCK or (whole == _LAST_CLOCK - 1 and fraction.strip("0")):
        raise _Overflow
    moment.microseconds = whole * 1_000_000 + round(float(f"0.{fraction or 0}") * 1_000_000)


def _set_date(moment: Moment, parts: list[str]) -> None:
    if moment.year is not None or moment.day is not None:
        raise _Malformed
    for name in filter(str.isalpha, parts):
        if moment.month is not None:
            raise _Malformed
        moment.month, moment.month_named = _month(name), True
    for digits in filter(str.isdigit, parts):
        _set_part(moment, digits)


def _set_part(moment: Moment, digits: str) -> None:
    """The next number of a date: what is there already and the order say which (DecodeNumber)."""
    has_month, has_year = moment.month is not None, moment.year is not None
    if has_year and not has_month and moment.day is None and len(digits) == 3 and 1 <= int(digits) <= 366:
        _set_day_of_year(moment, int(digits))
    elif not has_year and moment.day is None and (not has_month or moment.month_named):
        if len(digits) >= 3 or moment.order == YMD:
            _set_year(moment, digits)
        elif has_month or moment.order == DMY:
            moment.day = int(digits)
        else:
            moment.month = int(digits)
    elif not has_month:
        moment.month = int(digits)
    elif moment.day is None:
        if has_year and moment.month_named and len(digits) >= 3 and moment.short_year:
            moment.day = (moment.year or 0) % 100  # the first number was no year
            _set_year(moment, digits)
        else:
            moment.day = int(digits)
    elif not has_year:
        _set_year(moment, digits)
    else:
        raise _Malformed


def _set_year(moment: Moment, digits: str) -> None:
    moment.year, moment.short_year = _year(digits), len(digits) <= 2


def _month(name: str) -> int:
    if name not in _MONTH_NUMBERS:
        raise _Malformed
    return _MONTH_NUMBERS[name]


def _year(text: str) -> int:
    year = int(text)
    if len(text) <= 2:
        return year + (2000 if year < 70 else 1900)
    return year


def _set_offset(moment: Moment, text: str) -> None:
    if (moment.microseconds is None and moment.year is None) or (moment.zone is not None and moment.zone is not UTC):
        raise _Malformed
    try:
        east = displacement(text)
    except OverflowError:
        raise _Displacement from None
    if east is None:
        raise _Malformed
    moment.zone = timezone(east)


def _set_rule(moment: Moment, text: str) -> None:
    """A zone by a name of one's own and its hours to the west, unlike those of an offset (POSIX)."""
    if moment.microseconds is None and moment.year is None:
        raise _Malformed
    digits = text.lstrip("abcdefghijklmnopqrstuvwxyz")
    _set_offset(moment, ("-" if digits[0] == "+" else "+") + digits[1:])


def _set_number(moment: Moment, text: str) -> None:
    whole, point, fraction = text.partition(".")
    timed = moment.marked or None not in (moment.year, moment.month, moment.day)
    if timed and moment.microseconds is None and len(whole) in (4, 6):
        padded = whole.ljust(6, "0")
        _set_time(moment, f"{padded[:2]}:{padded[2:4]}:{padded[4:]}.{fraction or 0}")
        return
    if point and len(whole) == 4 and len(fraction) == 3 and moment.year is None:  # the day of a year
        moment.year = int(whole)
        if not moment.year or not 1 <= int(fraction) <= 366:
            raise _DateOverflow
        _set_day_of_year(moment, int(fraction))
        return
    if point:
        raise _Malformed
    if len(text) in (6, 8) and moment.year is None and moment.month is None:
        moment.year, moment.month, moment.day = _year(text[:-4]), int(text[-4:-2]), int(text[-2:])
    else:
        _set_part(moment, text)


def _set_day_of_year(moment: Moment, number: int) -> None:
    year, moment.year = moment.year or 0, None
    if not 1 <= year <= date.max.year:
        raise unsupported("the day of a year before Christ or beyond 9999")
    _set_ordinal(moment, date(year, 1, 1).toordinal() + number - 1)


def _set_ordinal(moment: Moment, ordinal: int) -> None:
    if moment.year is not None or moment.day is not None:
        raise _Malformed
    if not 1 <= ordinal <= date.max.toordinal():
        raise unsupported("a date before Christ or beyond the year 9999")
    day = date.fromordinal(ordinal)
    moment.year, moment.month, moment.day = day.year, day.month, day.day


def _set_julian(moment: Moment, text: str) -> None:
    """A Julian day, and as its fraction the time."""
    whole, _, fraction = text.partition(".")
    _set_ordinal(moment, int(whole) - _JULIAN_EPOCH)
    if fraction and moment.microseconds is not None:
        raise _Malformed
    moment.microseconds = int(float(f"0.{fraction}") * _DAY) if fraction else moment.microseconds


def _set_labelled(moment: Moment, text: str) -> None:
    """A number behind what it is: m is a minute once there are a month and an hour, mm is always one."""
    label, digits = text.rstrip("0123456789."), text.lstrip("ymdhs")
    if label == "mm" or (label == "m" and "h" in moment.labels and moment.month is not None):
        label = "n"
    if label in moment.labels or ("." in digits and label != "s"):
        raise _Malformed
    moment.labels += label
    if label in _UNITS:
        if moment.microseconds is not None and not set(moment.labels[:-1]) & set(_UNITS):
            raise _Malformed
        moment.microseconds = (moment.microseconds or 0) + round(float(digits) * _UNITS[label])
        return
    field = {"y": "year", "m": "month", "d": "day"}[label]
    if getattr(moment, field) is not None:
        raise _Malformed
    setattr(moment, field, int(digits))


def _set_word(moment: Moment, word: str) -> None:
    if word == "t":
        moment.marked = True
    elif word in ("am", "pm"):
        moment.afternoon = word == "pm"
    elif word in ("bc", "ad"):
        moment.before_christ = word == "bc"
    elif word in _RELATIVE:
        raise unsupported(f"'{word}' as a part of a date", "Use now() or current_date.")
    elif word == "allballs":
        moment.microseconds, moment.zone = 0, UTC
    elif word in _MONTH_NUMBERS and not moment.month_named and (moment.month is None or moment.day is None):
        moment.day = moment.day if moment.month is None else moment.month  # the number was the day's
        moment.month, moment.month_named = _MONTH_NUMBERS[word], True
    elif not _DAYS.fullmatch(word):
        if moment.microseconds is None and moment.year is None:
            raise _Malformed
        try:
            moment.zone = find_zone(word)
        except SqlError:
            if "/" in word:
                raise
            raise _Malformed from None


def _complete(moment: Moment, needs_date: bool) -> None:
    """Checks that the fields make a date, and applies AM and PM."""
    missing = moment.year is None or moment.month is None or moment.day is None
    if missing and (needs_date or (moment.year, moment.month, moment.day) != (None, None, None)):
        raise _Malformed
    if not missing and moment.year == 0:
        raise _Overflow
    if not missing and not (1 <= (moment.month or 0) <= 12 and 1 <= (moment.day or 0) <= 31):
        raise _DateOverflow
    if moment.afternoon is not None:
        hour = (moment.microseconds or 0) // 3_600_000_000
        if moment.microseconds is None or not 0 <= hour <= 12:
            raise _Overflow
        shift = (12 if moment.afternoon else 0) - (12 if hour == 12 else 0)
        moment.microseconds += shift * 3_600_000_000

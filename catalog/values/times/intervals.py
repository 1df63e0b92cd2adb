"""Reading PostgreSQL's interval texts: its own units, SQL's ``1-2 3 4:05:06`` and ISO 8601's ``P1Y2M``.

Owns: the grammar (ParseDateTime, DecodeInterval, DecodeISO8601Interval of PostgreSQL 15) and its errors. An interval is
(months, days, microseconds). Fractions are carried to the next smaller of the three, in double precision as in
PostgreSQL.
"""

from __future__ import annotations

import re
from typing import Any, Final

from catalog.values.errors import SqlError, unsupported
from catalog.values.interval_fields import FULL_RANGE, smallest_of

Interval = tuple[int, int, int]

_SECOND: Final = 1_000_000
_DAY: Final = 86_400 * _SECOND
_YEARS: Final = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
_MICROSECONDS: Final = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3600 * _SECOND,
}
_SECONDS: Final = frozenset(("second", "millisecond", "microsecond"))
_CLOCK: Final = _SECONDS | {"hour", "minute"}
_WORDS: Final = {
    "microsecond": "us usec usecs usecond useconds microsecond",
    "millisecond": "ms msec msecs msecond mseconds millisecond",
    "second": "s sec secs second seconds",
    "minute": "m min mins minute minutes",
    "hour": "h hr hrs hour hours",
    "day": "d day days",
    "week": "w week weeks",
    "month": "mon mons month months",
    "year": "y yr yrs year years",
    "decade": "dec decs decade decades",
    "century": "c cent century centuries",
    "millennium": "mil mils millennium millennia",
}
#: The number of significant letters of a word.
_LETTERS: Final = 10
_UNITS: Final = {word[:_LETTERS]: unit for unit, words in _WORDS.items() for word in words.split()}
#: A word with other characters than letters is a date, unless one of these precedes a digit.
_TOKEN: Final = re.compile(
    r"(?P<clock>[0-9]+:[0-9:.]*)"
    r"|(?P<number>[0-9]+(?:(?P<mark>[-/.])(?:[0-9]+(?:(?P=mark)(?:[0-9]|(?P=mark))*)?|(?:[a-z0-9]|(?P=mark))*))?|\.[0-9]*)"
    r"|(?P<word>(?:d|dec|h|m|mon|s|y)(?=[0-9+])|[a-z]+(?![-/.0-9+]))"
    r"|(?P<signed>[+-]\s*[0-9][0-9:.-]*)"
    r"|(?P<blank>[\s!-*,/:-@\[-`{-~]+)",
    re.ASCII,
)
_FIELDS: Final = 25
_LONGEST: Final = 256
_WHOLE: Final = re.compile(r"[+-]?[0-9]*", re.ASCII)
_ISO_NUMBER: Final = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_ISO_DATE: Final = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_ISO_CLOCK: Final = {"H": "hour", "M": "minute", "S": "second"}

_MINUTE_TO_SECOND: Final = 1 << 11 | 1 << 12
_ISO_NAMES: Final = {True: ("year", "month", "day"), False: ("hour", "minute", "second")}


def unit_of_word(word: str) -> str | None:
    """The unit that a lower-case word names, in singular or plural; None if it names none."""
    return _UNITS.get(word[:_LETTERS])


class _Malformed(Exception):
    """DTERR_BAD_FORMAT."""


class _OutOfRange(Exception):
    """DTERR_FIELD_OVERFLOW."""


def parse_interval(text: str, fields: int = FULL_RANGE, shares_sign: bool = False) -> Interval:
    """Reads an interval's text as interval_in does, with the fields of a type's modifier. Raises 22007, 22008 and
    22015.

    ``shares_sign``, for IntervalStyle sql_standard: a minus before the first field applies to all fields, if no other
    field has a sign.
    """
    smallest = smallest_of(fields)
    try:
        try:
            value = _verbose(text, smallest, fields == _MINUTE_TO_SECOND, shares_sign)
        except _Malformed:
            value = _iso(text)
    except _Malformed:
        raise SqlError("22007", f'invalid input syntax for type interval: "{text}"') from None
    except _OutOfRange:
        raise SqlError("22015", f'interval field value out of range: "{text}"') from None
    months, days, microseconds = cut(value, smallest)
    return months, days, microseconds


def carried_interval(text: str, fields: int = FULL_RANGE, shares_sign: bool = False) -> Interval:
    """An interval in Arrow's form: months, days and nanoseconds. Raises 0A000 if the time does not fit."""
    months, days, microseconds = parse_interval(text, fields, shares_sign)
    if abs(microseconds) > (2**63 - 1) // 1000:
        raise unsupported("an interval of more than 2562047 hours")
    return months, days, microseconds * 1000


class _Total:
    """The sums of the fields read so far; each must fit its number of bits."""

    def __init__(self) -> None:
        self.years = self.months = self.days = self.microseconds = 0

    def add(self, unit: str, whole: int, part: float) -> None:
        """Adds a number of units: an integer and a fraction."""
        if unit in _MICROSECONDS:
            self._add(0, 0, 0, whole * _MICROSECONDS[unit])
            self._add_part(part, _MICROSECONDS[unit])
        elif unit == "day":
            self._add(0, 0, whole, 0)
            self._add_part(part, _DAY)
        elif unit in ("week", "month"):
            self._add(0, *((0, whole * 7) if unit == "week" else (whole, 0)), 0)
            days = part * (7 if unit == "week" else 30)
            self._add(0, 0, int(days), 0)
            self._add_part(days - int(days), _DAY)
        else:
            self._add(whole * _YEARS[unit], round(part * _YEARS[unit] * 12), 0, 0)

    def _add(self, years: int, months: int, days: int, microseconds: int) -> None:
        self.years, self.months, self.days = self.years + years, self.months + months, self.days + days
        self.microseconds += microseconds
        small = (self.years, self.months, self.days)
        if not (all(-(2**31) <= value < 2**31 for value in small) and -(2**63) <= self.microseconds < 2**63):
            raise _OutOfRange

    def _add_part(self, part: float, scale: int) -> None:
        part *= scale
        whole = int(part)
        rest = part - whole
        self._add(0, 0, 0, whole + (rest > 0.5) - (rest < -0.5))

    def negate(self) -> None:
        """Negates the interval, for ``ago``."""
        years, months, days, microseconds = self.years, self.months, self.days, self.microseconds
        self.years = self.months = self.days = self.microseconds = 0
        self._add(-years, -months, -days, -microseconds)

    def value(self) -> Interval:
        """The sums. Raises 22008 for too many months."""
        months = self.years * 12 + self.months
        if not -(2**31) <= months < 2**31:
            raise SqlError("22008", "interval out of range")
        return months, self.days, self.microseconds


# -- PostgreSQL's and SQL's --------------------------------------------------------------------------------------------


def _tokens(text: str) -> list[tuple[str, str]]:
    """(kind, text) of the fields."""
    lower, position = text.lower(), 0
    found: list[tuple[str, str]] = []
    while position < len(lower):
        match = _TOKEN.match(lower, position)
        if match is None or match.lastgroup is None:
            raise _Malformed
        position = match.end()
        kind = next(name for name in ("clock", "number", "word", "signed", "blank") if match[name] is not None)
        if kind != "blank":
            found.append((kind, "".join(match[0].split())))
    if len(found) > _FIELDS or sum(len(item) + 1 for _, item in found) > _LONGEST:
        raise _Malformed
    return found


def _has_shared_sign(tokens: list[tuple[str, str]]) -> bool:
    """Whether the first field has a minus and no other field has a sign."""
    signs = [item[0] for _, item in tokens]
    return bool(signs) and signs[0] == "-" and not {"+", "-"} & set(signs[1:])


def _verbose(text: str, smallest: str, short: bool, shares_sign: bool) -> Interval:
    """Reads the fields from right to left, since a number's unit follows it; a number without one has the default for
    its place."""
    total, seen, tokens = _Total(), set[str](), _tokens(text)
    is_negative = shares_sign and _has_shared_sign(tokens)
    unit: str | None = None
    is_before = False
    for kind, item in reversed(tokens):
        if kind == "word":
            is_before = is_before or item == "ago"
            unit = "ago" if item == "ago" else unit_of_word(item)
            if unit is None:
                raise _Malformed
            continue
        if kind == "clock" or (kind == "signed" and _is_clock(item, short)):
            read, microseconds = _CLOCK, _clock(item, short)
            total.add("microsecond", -abs(microseconds) if is_negative else microseconds, 0.0)
            unit = "day"
        else:
            whole, part, months = _number(item)
            unit = "month" if months else unit or smallest
            if unit == "ago":
                raise _Malformed
            total.add(unit, *((-abs(whole), -abs(part)) if is_negative else (whole, part)))
            read = _SECONDS if unit == "second" and part else frozenset((unit,))
            unit = "day" if unit == "hour" else unit
        if read & seen:
            raise _Malformed
        seen |= read
    if not seen:
        raise _Malformed
    if is_before:
        total.negate()
    return total.value()


def _is_clock(item: str, short: bool) -> bool:
    try:
        _clock(item, short)
    except (_Malformed, _OutOfRange):
        return False
    return True


def _clock(item: str, short: bool) -> int:
    """The microseconds of h:m, h:m:s, m:s.f and, with the corresponding type modifier, m:s."""
    match = re.fullmatch(r"([+-]?)([0-9]+):([0-9]*)(?:(?::([0-9]*))?(\.[0-9]*)?)?", item, re.ASCII)
    if match is None:
        raise _Malformed
    sign, *numbers, part = match.groups()
    hours, minutes, seconds = (int(number or 0) for number in numbers)
    if numbers[2] is None and (short or part is not None):
        hours, minutes, seconds = 0, hours, minutes
    rest = round(float(f"0{part}") * _SECOND) if part and len(part) > 1 else 0
    if minutes > 59 or seconds > 60:
        raise _OutOfRange
    found = (hours * 3600 + minutes * 60 + seconds) * _SECOND + rest
    if found >= 2**63:
        raise _OutOfRange
    return -found if sign == "-" else found


def _number(item: str) -> tuple[int, float, bool]:
    """A number, its fraction, and whether it is years and months, which are returned as months."""
    match = _WHOLE.match(item)
    assert match is not None
    whole, rest = int(match[0]) if match[0].strip("+-") else 0, item[match.end() :]
    if not -(2**63) <= whole < 2**63:
        raise _OutOfRange
    if rest.startswith("-"):
        months = _WHOLE.match(rest, 1)
        assert months is not None
        count = int(months[0]) if months[0].strip("+-") else 0
        if not 0 <= count < 12:
            raise _OutOfRange
        if months.end() < len(rest):
            raise _Malformed
        return whole * 12 + (-count if item.startswith("-") else count), 0.0, True
    if not re.fullmatch(r"(?:\.[0-9]*)?", rest, re.ASCII):
        raise _Malformed
    part = float(f"0{rest}") if rest else 0.0
    return whole, -part if item.startswith("-") else part, False


# -- ISO 8601 ----------------------------------------------------------------------------------------------------------


class _Iso:
    """Reads an ISO 8601 text."""

    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0

    def unit(self) -> str:
        """The next character, none at the end."""
        self.place += 1
        return self.text[self.place - 1 : self.place]

    def number(self) -> tuple[int, float]:
        """A number and its fraction."""
        match = _ISO_NUMBER.match(self.text, self.place)
        if match is None:
            raise _Malformed
        self.place = match.end()
        value = float(match[0])
        if abs(value) > 1e15:
            raise _OutOfRange
        return int(value), value - int(value)


def _iso(text: str) -> Interval:
    """Reads designators (P1Y2M3DT4H), or an alternative format (P0001-02-03T04:05:06, P00010203T040506)."""
    if len(text) < 2 or text[0] != "P":
        raise _Malformed
    total, reader = _Total(), _Iso(text[1:])
    units, is_read = _ISO_DATE, False
    while reader.place < len(reader.text):
        if reader.text[reader.place] == "T":
            units, is_read, reader.place = _ISO_CLOCK, False, reader.place + 1
            continue
        start = reader.place
        whole, part = reader.number()
        written = reader.text[start : reader.place].lstrip("-").partition(".")[0]
        unit = reader.unit()
        if unit in units:
            total.add(units[unit], whole, part)
            is_read = True
            continue
        mark, ends, width = ("-", ("", "T"), 8) if units is _ISO_DATE else (":", ("",), 6)
        if is_read or unit not in (mark, *ends):
            raise _Malformed
        if unit != mark and len(written) == width:
            _add_digits(total, units is _ISO_DATE, whole, part)
        else:
            _add_marked(total, reader, _ISO_NAMES[units is _ISO_DATE], (whole, part), (unit, mark, *ends))
        units = _ISO_CLOCK
    return total.value()


def _add_digits(total: _Total, is_date: bool, whole: int, part: float) -> None:
    """Adds three fields that are the digits of one number; the last field has the number's fraction."""
    sign, digits = (-1 if whole < 0 else 1), abs(whole)
    for name, count in zip(_ISO_NAMES[is_date], (digits // 10000, digits // 100 % 100, digits % 100), strict=True):
        total.add(name, sign * count, 0.0)
    total.add("day" if is_date else "microsecond", 0, part)


def _add_marked(
    total: _Total, reader: _Iso, names: tuple[str, ...], first: tuple[int, float], ends: tuple[str, ...]
) -> None:
    """Adds up to three fields separated by a mark; ``ends``: the units of the fields after the first one, the mark, and
    the characters that may follow."""
    unit, mark, *last = ends
    total.add(names[0], *first)
    for name in names[1:]:
        if unit in last:
            return
        total.add(name, *reader.number())
        unit = reader.unit()
        if unit not in (mark, *last):
            raise _Malformed
    if unit == mark:
        raise _Malformed


def cut(value: tuple[Any, Any, Any], smallest: str) -> tuple[Any, Any, Any]:
    """AdjustIntervalForTypmod: removes everything below the smallest field; for integers, or numpy vectors."""
    months, days, microseconds = value
    match smallest:
        case "year":
            return _whole(months, 12), days * 0, microseconds * 0
        case "month":
            return months, days * 0, microseconds * 0
        case "day":
            return months, days, microseconds * 0
        case "hour" | "minute":
            return months, days, _whole(microseconds, _MICROSECONDS[smallest])
        case _:
            return value


def _whole(value: Any, unit: int) -> Any:
    """A whole number of units, rounded towards zero."""
    sign = 1 - 2 * (value < 0)
    return sign * (sign * value // unit * unit)

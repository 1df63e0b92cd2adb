"""Text of an interval -> (months, days, microseconds).

Owns: PostgreSQL's verbose, SQL-standard and ISO 8601 spellings, and the fields of ``interval '3' day`` (the binder
passes the unit that a bare number has, and what lies below the last field is cut off).
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Final

from catalog.errors import SqlError

Interval = tuple[int, int, int]

_MICROSECONDS: Final = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": 10**6,
    "minute": 60 * 10**6,
    "hour": 3600 * 10**6,
}
_MONTHS: Final = {"month": 1, "year": 12, "decade": 120, "century": 1200, "millennium": 12000}
_DAYS: Final = {"day": 1, "week": 7}
_UNITS: Final[dict[str, str]] = {
    **{unit: unit for unit in (*_MICROSECONDS, *_MONTHS, *_DAYS)},
    **{f"{unit}s": unit for unit in (*_MICROSECONDS, *_MONTHS, *_DAYS)},
    **dict.fromkeys(("us", "usec", "usecs", "microsecon"), "microsecond"),
    **dict.fromkeys(("ms", "msec", "msecs"), "millisecond"),
    **dict.fromkeys(("s", "sec", "secs"), "second"),
    **dict.fromkeys(("m", "min", "mins"), "minute"),
    **dict.fromkeys(("h", "hr", "hrs"), "hour"),
    **dict.fromkeys(("d",), "day"),
    **dict.fromkeys(("w",), "week"),
    **dict.fromkeys(("mon", "mons"), "month"),
    **dict.fromkeys(("y", "yr", "yrs"), "year"),
    **dict.fromkeys(("dec", "decs"), "decade"),
    **dict.fromkeys(("c", "cent", "centuries"), "century"),
    **dict.fromkeys(("mil", "mils", "millennia"), "millennium"),
}
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<clock>[+-]?[0-9]+:[0-9]{1,2}(?::[0-9]{1,2}(?:\.[0-9]*)?)?)"
    r"|(?P<years>[+-]?[0-9]+-[0-9]{1,2})(?![0-9-])"
    r"|(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))"
    r"|(?P<word>[A-Za-z]+)|(?P<at>@))\s*"
)
_ISO: Final = re.compile(
    r"P(?:([-+]?[0-9.]+)Y)?(?:([-+]?[0-9.]+)M)?(?:([-+]?[0-9.]+)W)?(?:([-+]?[0-9.]+)D)?"
    r"(?:T(?:([-+]?[0-9.]+)H)?(?:([-+]?[0-9.]+)M)?(?:([-+]?[0-9.]+)S)?)?"
)
#: Fields of the typmod's range (utils/timestamp.h, INTERVAL_MASK), smallest last, with the unit each stands for.
_FIELDS: Final = (
    (1 << 2, "year"),
    (1 << 1, "month"),
    (1 << 3, "day"),
    (1 << 10, "hour"),
    (1 << 11, "minute"),
    (1 << 12, "second"),
)
FULL_RANGE: Final = 0x7FFF


def interval_value(text: str, fields: int = FULL_RANGE) -> Interval:
    """An interval's text. Raises 22007 and 22008."""
    smallest = "second"
    if fields != FULL_RANGE:
        smallest = [unit for mask, unit in _FIELDS if fields & mask][-1]
    total = _Total(text)
    word = text.strip()
    if match := _ISO.fullmatch(word):
        if len(word) < 3:
            raise total.invalid()
        for number, unit in zip(
            match.groups(), ("year", "month", "week", "day", "hour", "minute", "second"), strict=True
        ):
            if number is not None:
                total.add(Decimal(number), unit)
    else:
        _read_verbose(word, smallest, total)
    return _cut(total.value(), smallest)


class _Total:
    """Sums of the fields read so far."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.months = 0
        self.days = 0
        self.microseconds = Decimal(0)

    def invalid(self) -> SqlError:
        years = re.match(r"\s*[+-]?[0-9]+-([0-9]+)", self.text)
        if years is not None and int(years[1]) > 11:
            return SqlError("22015", f'interval field value out of range: "{self.text}"')
        return SqlError("22007", f'invalid input syntax for type interval: "{self.text}"')

    def add(self, number: Decimal, unit: str) -> None:
        """Fractions pass down as in PostgreSQL: a month has 30 days there, a day 24 hours."""
        if unit in _MICROSECONDS:
            self.microseconds += number * _MICROSECONDS[unit]
            return
        if unit in _MONTHS:
            months = number * _MONTHS[unit]
            whole = int(months) if unit == "month" else int(months.quantize(Decimal(1), ROUND_HALF_EVEN))
            self.months += whole
            if unit != "month":
                return
            number, unit = (months - whole) * 30, "day"
        days = number * _DAYS[unit]
        self.days += int(days)
        self.microseconds += (days - int(days)) * 86400 * 10**6

    def negate(self) -> None:
        self.months, self.days, self.microseconds = -self.months, -self.days, -self.microseconds

    def value(self) -> Interval:
        microseconds = int(self.microseconds.quantize(Decimal(1), ROUND_HALF_UP))
        if max(abs(self.months), abs(self.days)) >= 1 << 31 or abs(microseconds) >= 1 << 63:
            raise SqlError("22008", f'interval field value out of range: "{self.text}"')
        return self.months, self.days, microseconds


def _read_verbose(word: str, smallest: str, total: _Total) -> None:
    position, pending, seen = 0, None, False
    while position < len(word):
        match = _TOKEN.match(word, position)
        if match is None:
            raise total.invalid()
        position = match.end()
        if pending is not None and match.lastgroup != "word":
            # 1 12:00:00: a number before a clock counts days
            if match.lastgroup != "clock":
                raise total.invalid()
            total.add(pending, "day")
            pending = None
        if match.lastgroup == "number":
            pending, seen = Decimal(match["number"]), True
        elif match.lastgroup == "word":
            _take_word(match["word"].lower(), pending, position == len(word), total)
            pending = None
        elif match.lastgroup != "at":
            _take_clock(match, total)
            seen = True
    if pending is not None:
        total.add(pending, smallest)
    if not seen:
        raise total.invalid()


def _take_word(word: str, pending: Decimal | None, last: bool, total: _Total) -> None:
    if word == "ago" and pending is None and last:
        total.negate()
    elif pending is not None and word in _UNITS:
        total.add(pending, _UNITS[word])
    elif not (word == "and" and pending is None):
        raise total.invalid()


def _take_clock(match: re.Match[str], total: _Total) -> None:
    if match["years"]:
        years, months = match["years"].lstrip("+-").split("-")
        sign = -1 if match["years"].startswith("-") else 1
        total.months += sign * (int(years) * 12 + int(months))
        return
    parts = match["clock"].lstrip("+-").split(":")
    sign = -1 if match["clock"].startswith("-") else 1
    for number, unit in zip(parts, ("hour", "minute", "second"), strict=False):
        if unit != "hour" and Decimal(number) >= 60:
            raise SqlError("22008", f'interval field value out of range: "{total.text}"')
        total.add(sign * Decimal(number), unit)


def _cut(value: Interval, smallest: str) -> Interval:
    months, days, microseconds = value
    match smallest:
        case "year":
            return int(months / 12) * 12, 0, 0
        case "month":
            return months, 0, 0
        case "day":
            return months, days, 0
        case "hour" | "minute":
            unit = _MICROSECONDS[smallest]
            return months, days, int(Decimal(microseconds) / unit) * unit
        case _:
            return value

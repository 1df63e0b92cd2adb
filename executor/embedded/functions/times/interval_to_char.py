"""to_char() of intervals, as a function (formatting.c, DCH_to_char of an interval).

Owns: ``FUNCTIONS``. An interval is not a date: its years are months divided by twelve, its day of the year counts
months of 30 days, and fields that need a date use the date that its numbers would form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError
from catalog.values.times.patterns import Between, Word, moment_pattern
from executor.embedded.functions.batches import Functions

_ROMAN: Final = ("XII", "XI", "X", "IX", "VIII", "VII", "VI", "V", "IV", "III", "II", "I")
_HINT: Final = "Intervals are not tied to specific calendar dates."
#: Functions that write a field of an interval, padded or not.
_Field = Callable[["Span", bool], str]


class Span(Struct, frozen=True):
    """The fields of an interval (interval2itm), each with its sign."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    micros: int

    @property
    def day_of_year(self) -> int:
        return (self.year * 12 + self.month) * 30 + self.day


def _of(months: int, days: int, time: int) -> Span:
    year, month = _divided(months, 12)
    seconds, micros = _divided(time, 1_000_000)
    minutes, second = _divided(seconds, 60)
    hour, minute = _divided(minutes, 60)
    return Span(year, month, days, hour, minute, second, micros)


def _divided(value: int, by: int) -> tuple[int, int]:
    """Quotient and remainder as in C."""
    quotient = abs(value) // by * (1 if value >= 0 else -1)
    return quotient, value - quotient * by


def _over(value: int, by: int) -> int:
    return _divided(value, by)[0]


def shown(months: int, days: int, time: int, pattern: str) -> str:
    """The result of to_char() for an interval with its time in microseconds. Raises 22007."""
    span = _of(months, days, time)
    return "".join(item.text if isinstance(item, Between) else _word(span, item) for item in moment_pattern(pattern))


def _word(span: Span, word: Word) -> str:
    if word.name == "FX":
        return ""
    if word.name in _HALVES:
        names = _HALVES[word.name]
        found = names[_divided(span.hour, 24)[1] >= 12]
        return found if word.text == word.name else found.lower()
    if word.name == "RM":
        found = _roman(span, word.fill)
        return found if word.text == word.name else found.lower()
    field = _FIELDS.get(word.name)
    if field is None:
        raise SqlError("22007", "invalid format specification for an interval value", hint=_HINT)
    found = field(span, word.fill)
    return found + _ordinal(found, word.ordinal) if word.ordinal and found else found


def _ordinal(number: str, suffix: str) -> str:
    """The suffix st, nd, rd or th in the pattern's case (get_th)."""
    last = "" if number[-2:-1] == "1" and len(number) > 1 else number[-1]
    found = {"1": "st", "2": "nd", "3": "rd"}.get(last, "th")
    return found.upper() if suffix == "TH" else found


def _roman(span: Span, fill: bool) -> str:
    if not span.month and not span.year:
        return ""
    month = span.month
    place = (0 if span.year >= 0 else 11) if not month else -month - 1 if month < 0 else 12 - month
    return f"{_ROMAN[place]:4}" if fill else _ROMAN[place]


def _digits(value: int, width: int, fill: bool) -> str:
    """A number with a number of digits, not counting its sign."""
    return f"{value:0{width + (value < 0)}d}" if fill else str(value)


def _plain(width: int, value: Callable[[Span], int]) -> _Field:
    """A number whose sign counts among its digits."""
    return lambda span, fill: f"{value(span):0{width}d}" if fill else str(value(span))


def _signed(width: int, value: Callable[[Span], int]) -> _Field:
    return lambda span, fill: _digits(value(span), width, fill)


def _fraction(digits: int) -> _Field:
    return lambda span, fill: f"{_over(span.micros, 10 ** (6 - digits)):0{digits}d}"


def _year(digits: int, year: Callable[[Span], int]) -> _Field:
    """The last digits of a year; how many depends on the sign of the interval's year."""

    def field(span: Span, fill: bool) -> str:
        found = year(span) if digits == 4 else _divided(year(span), 10**digits)[1]
        return f"{found:0{digits + (span.year < 0)}d}" if fill and digits > 1 else str(found)

    return field


def _half(span: Span, fill: bool) -> str:
    found = _divided(span.hour, 12)[1] or 12
    return f"{found:0{2 + (span.hour < 0)}d}" if fill else str(found)


def _century(span: Span, fill: bool) -> str:
    found = _over(span.year, 100)
    return _digits(found, 2, fill) if abs(found) <= 99 else str(found)


def _thousands(span: Span, fill: bool) -> str:
    thousands, rest = _divided(span.year, 1000)
    return f"{thousands},{rest:03d}"


# --- the date that an interval's numbers would be ---------------------------------------------------------------------


def _julian(year: int, month: int, day: int) -> int:
    """The Julian day number (date2j)."""
    month, year = (month + 1, year + 4800) if month > 2 else (month + 13, year + 4799)
    century = _over(year, 100)
    days = year * 365 - 32167 + _over(year, 4) - century + _over(century, 4)
    return days + _over(7834 * month, 256) + day


def _of_date(span: Span) -> int:
    return _julian(span.year, span.month, span.day)


def _first_monday(year: int) -> int:
    """The first day of the first ISO week of a year."""
    fourth = _julian(year, 1, 4)
    return fourth - fourth % 7


def _iso(span: Span) -> tuple[int, int]:
    """The ISO year and week (date2isoyear, date2isoweek)."""
    day, year = _of_date(span), span.year
    if day < _first_monday(year):
        year -= 1
    week = _over(day - _first_monday(year), 7) + 1
    if week >= 52 and day >= _first_monday(year + 1):
        year += 1
        week = _over(day - _first_monday(year), 7) + 1
    return year, week


_HALVES: Final = {
    **dict.fromkeys(("AM", "PM"), ("AM", "PM")),
    **dict.fromkeys(("A.M.", "P.M."), ("A.M.", "P.M.")),
}
_FIELDS: Final[Mapping[str, _Field]] = {
    **dict.fromkeys(("HH", "HH12"), _half),
    "HH24": _signed(2, lambda span: span.hour),
    "MI": _signed(2, lambda span: span.minute),
    "SS": _signed(2, lambda span: span.second),
    **dict.fromkeys(("SSSS", "SSSSS"), lambda span, fill: str(span.hour * 3600 + span.minute * 60 + span.second)),
    **{f"FF{digits}": _fraction(digits) for digits in range(1, 7)},
    "MS": _fraction(3),
    "US": _fraction(6),
    "MM": _signed(2, lambda span: span.month),
    "DD": _plain(2, lambda span: span.day),
    "DDD": _plain(3, lambda span: span.day_of_year),
    "IDDD": _plain(3, lambda span: _of_date(span) - _first_monday(_iso(span)[0]) + 1),
    "WW": _plain(2, lambda span: _over(span.day_of_year - 1, 7) + 1),
    "IW": _plain(2, lambda span: _iso(span)[1]),
    "W": lambda span, fill: str(_over(span.day - 1, 7) + 1),
    "Q": lambda span, fill: str(_over(span.month - 1, 3) + 1) if span.month else "",
    "CC": _century,
    "Y,YYY": _thousands,
    "YYYY": _year(4, lambda span: span.year),
    "YYY": _year(3, lambda span: span.year),
    "YY": _year(2, lambda span: span.year),
    "Y": _year(1, lambda span: span.year),
    "IYYY": _year(4, lambda span: _iso(span)[0]),
    "IYY": _year(3, lambda span: _iso(span)[0]),
    "IY": _year(2, lambda span: _iso(span)[0]),
    "I": _year(1, lambda span: _iso(span)[0]),
    "J": lambda span, fill: str(_of_date(span)),
}
FUNCTIONS: Final[Functions] = {"moments_shown_interval": (shown, "VARCHAR")}

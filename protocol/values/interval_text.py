"""Reading PostgreSQL's interval texts: its own units, SQL's ``1-2 3 4:05:06`` and ISO 8601's ``P1Y2M``.

Owns: the grammar (DecodeInterval, DecodeISO8601Interval). An interval is (months, days, microseconds); fractions flow
down into the next smaller of the three.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from catalog.errors import SqlError
from protocol.values.codec import BLANKS

Interval = tuple[int, int, int]

_SECOND: Final = 1_000_000
_DAY: Final = 86_400 * _SECOND
_MONTHS: Final = {"month": 1, "year": 12, "decade": 120, "century": 1200, "millennium": 12_000}
_DAYS: Final = {"day": 1, "week": 7}
_MICROSECONDS: Final = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3600 * _SECOND,
}
_UNITS: Final = {
    "us": "microsecond", "usec": "microsecond", "usecs": "microsecond", "usecond": "microsecond",
    "useconds": "microsecond", "microseconds": "microsecond", "microsecon": "microsecond",
    "ms": "millisecond", "msec": "millisecond", "msecs": "millisecond", "msecond": "millisecond",
    "mseconds": "millisecond", "milliseconds": "millisecond", "millisecon": "millisecond",
    "s": "second", "sec": "second", "secs": "second", "seconds": "second",
    "m": "minute", "min": "minute", "mins": "minute", "minutes": "minute",
    "h": "hour", "hr": "hour", "hrs": "hour", "hours": "hour",
    "d": "day", "days": "day", "w": "week", "weeks": "week",
    "mon": "month", "mons": "month", "months": "month",
    "y": "year", "yr": "year", "yrs": "year", "years": "year",
    "dec": "decade", "decs": "decade", "decades": "decade",
    "c": "century", "cent": "century", "centuries": "century",
    "mil": "millennium", "mils": "millennium", "millennia": "millennium",
} | {unit: unit for unit in (*_MONTHS, *_DAYS, *_MICROSECONDS)}  # fmt: skip
_TOKEN: Final = re.compile(
    r"(?P<time>[+-]?\d+:\d+(?::\d+)?(?:\.\d*)?)"
    r"|(?P<months>[+-]?\d+-\d+)(?![\d-])"
    r"|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))\s*(?P<unit>[a-z]+)?"
    r"|(?P<ago>ago)"
    r"|(?P<blank>[\s@,]+)",
    re.ASCII,
)
_ISO: Final = re.compile(r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<unit>[A-Z])|(?P<mark>T)", re.ASCII)
_ISO_DATE: Final = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_ISO_TIME: Final = {"H": "hour", "M": "minute", "S": "second"}
_ISO_FIELDS: Final = re.compile(
    r"P(?:(?P<year>-?\d+)-(?P<month>-?\d+)-(?P<day>-?\d+))?"
    r"(?:T(?P<hour>-?\d+):(?P<minute>-?\d+):(?P<second>-?\d+(?:\.\d*)?))?\Z",
    re.ASCII,
)


def parse_interval(text: str) -> Interval:
    """interval_in. Raises 22007 for syntax, 22015 and 22008 for range."""
    stripped = text.strip(BLANKS)
    fields = _from_iso(stripped, text) if stripped.startswith("P") else _from_units(stripped.lower(), text)
    if any(abs(field) >= 2**31 for field in fields[:2]):
        raise SqlError("22015", f'interval field value out of range: "{text}"')
    if abs(fields[2]) > (2**63 - 1) // 1000:  # Arrow keeps nanoseconds
        raise SqlError("22008", "interval out of range")
    return fields


def _malformed(text: str) -> SqlError:
    return SqlError("22007", f'invalid input syntax for type interval: "{text}"')


def _field(unit: str, value: Fraction) -> Interval:
    """So many of a unit, its fraction carried into smaller fields as PostgreSQL does."""
    if unit in _MICROSECONDS:
        return 0, 0, round(value * _MICROSECONDS[unit])
    if unit in _DAYS:
        days = value * _DAYS[unit]
        return 0, int(days), round((days - int(days)) * _DAY)
    if unit != "month":  # whole months only
        return round(value * _MONTHS[unit]), 0, 0
    days = (value - int(value)) * 30
    return int(value), int(days), round((days - int(days)) * _DAY)


def _sum(fields: list[Interval]) -> Interval:
    return sum(f[0] for f in fields), sum(f[1] for f in fields), sum(f[2] for f in fields)


def _from_units(lower: str, text: str) -> Interval:
    fields: list[Interval] = []
    seen: set[str] = set()
    ago = False
    position = 0
    while position < len(lower):
        match = _TOKEN.match(lower, position)
        if match is None or ago:
            raise _malformed(text)
        position = match.end()
        if match["time"]:
            units, field = "time", _clock(match["time"], text)
        elif match["months"]:
            units, field = "months", _years_and_months(match["months"], text)
        elif match["number"]:
            units = _unit(match, lower, text)
            field = _field(units, Fraction(match["number"].rstrip(".")))
        else:
            ago = match["ago"] is not None
            continue
        if units in seen:
            raise _malformed(text)
        seen.add(units)
        fields.append(field)
    if not fields:
        raise _malformed(text)
    months, days, microseconds = _sum(fields)
    return (-months, -days, -microseconds) if ago else (months, days, microseconds)


def _unit(match: re.Match[str], lower: str, text: str) -> str:
    """A number's unit: as written; a day before a clock time; else a second, at the end."""
    if match["unit"] == "ago":
        raise _malformed(text)
    if match["unit"]:
        if match["unit"] not in _UNITS:
            raise _malformed(text)
        return _UNITS[match["unit"]]
    rest = lower[match.end() :].strip()
    if re.match(r"[+-]?\d+:", rest):
        return "day"
    if rest not in ("", "ago"):
        raise _malformed(text)
    return "second"


def _clock(token: str, text: str) -> Interval:
    sign = -1 if token[0] == "-" else 1
    first, second, *rest = token.lstrip("+-").split(":")
    if not rest and "." in second:  # minutes and seconds
        first, second, rest = "0", first, [second]
    seconds = Fraction(rest[0].rstrip(".") if rest else 0)
    if int(second) > 59 or seconds >= 61:
        raise SqlError("22015", f'interval field value out of range: "{text}"')
    return 0, 0, sign * round((int(first) * 3600 + int(second) * 60 + seconds) * _SECOND)


def _years_and_months(token: str, text: str) -> Interval:
    sign = -1 if token[0] == "-" else 1
    years, months = token.lstrip("+-").split("-")
    if int(months) > 11:
        raise SqlError("22015", f'interval field value out of range: "{text}"')
    return sign * (int(years) * 12 + int(months)), 0, 0


def _from_iso(body: str, text: str) -> Interval:
    whole = _ISO_FIELDS.match(body)
    if whole and len(body) > 1:
        named = {unit: value for unit, value in whole.groupdict().items() if value is not None}
        return _sum([_field(unit, Fraction(value.rstrip("."))) for unit, value in named.items()])
    fields: list[Interval] = []
    units = _ISO_DATE
    position = 1
    while position < len(body):
        match = _ISO.match(body, position)
        if match is None or (match["mark"] and units is _ISO_TIME):
            raise _malformed(text)
        position = match.end()
        if match["mark"]:
            units = _ISO_TIME
        elif match["unit"] in units:
            fields.append(_field(units[match["unit"]], Fraction(match["number"].rstrip("."))))
        else:
            raise _malformed(text)
    if not fields:
        raise _malformed(text)
    return _sum(fields)

"""Ranges, each carried as bytes that order as PostgreSQL's range_cmp() does.

Owns: these bytes, the canonical form, and the text form of a single range. A range is what lies between two cuts, each
just below or just above a value:

    range  =  lower cut, upper cut              cut  =  class, number, side

    class   0 in the empty range, 1 below all values, 2 at a value, 3 above all values
    number  the value as its type is carried (days, microseconds, units of 10^-18), with its sign bit turned, most
            significant byte first: 8 bytes, 16 of numeric; 0 where the class is not 2
    side    0 just below the value ("[1", "1)"), 1 just above it ("(1", "1]"); 0 where the class is not 2

So every operator on two ranges is a comparison of cuts as bytes: they overlap if each begins before the other ends.
Infinite dates and timestamps are values (class 2), as in PostgreSQL. The protocol converts columns of ranges.
https://www.postgresql.org/docs/15/rangetypes.html
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from catalog.values.errors import SqlError
from catalog.values.times.timestamps import INFINITE_DAYS, INFINITE_MICROSECONDS
from catalog.values.types import RANGES, UNCONSTRAINED, SqlType, by_name

EMPTY, BELOW, AT, ABOVE = range(4)
#: The decimals of a numeric bound's number.
SCALE: Final = UNCONSTRAINED[1]
#: The largest value of a discrete type that has a successor, and the error for larger ones.
LARGEST: Final = {
    "int4": (2**31 - 1, "22003", "integer out of range"),
    "int8": (2**63 - 1, "22003", "bigint out of range"),
    "date": (2_145_042_905, "22008", "date out of range"),
}
_DAY_ONE: Final = dt.date(1970, 1, 1).toordinal()
_LAST_DAY: Final = dt.date.max.toordinal()
_EPOCH: Final = dt.datetime(1970, 1, 1)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_EXACT: Final = Context(prec=60)
_BOUNDS: Final = {"[]": (True, True), "[)": (True, False), "(]": (False, True), "()": (False, False)}

_BLANKS: Final = " \t\n\v\f\r"
_BOUND: Final = re.compile(r'(?:[^",)\]\\]|\\.|"(?:[^"\\]|\\.|"")*")*', re.DOTALL)
_PIECE: Final = re.compile(r'\\(.)|"((?:[^"\\]|\\.|"")*)"|([^"\\]+)', re.DOTALL)
_QUOTED: Final = re.compile(r'\\(.)|""', re.DOTALL)
_NEEDS_QUOTES: Final = re.compile(r'[(),\[\]"\\ \t\n\v\f\r]')


class Bounds(Struct, frozen=True):
    """A range that is not empty: the numbers of its bounds, None for an absent bound."""

    lower: int | None
    upper: int | None
    with_lower: bool
    with_upper: bool


def subtype_of(kind: SqlType) -> SqlType:
    """The type of a range's bounds."""
    return by_name(RANGES[kind.name])


def width_of(kind: SqlType) -> int:
    """The number of bytes of a bound's number."""
    return 16 if kind.name == "numrange" else 8


def empty(kind: SqlType) -> bytes:
    """The empty range."""
    return bytes(2 * width_of(kind) + 4)


# --- bytes -----------------------------------------------------------------------------------------------------------


def packed(kind: SqlType, bounds: Bounds | None) -> bytes:
    """A canonical range's bytes; None stands for the empty range."""
    if bounds is None:
        return empty(kind)
    width = width_of(kind)
    return _cut(bounds.lower, BELOW, not bounds.with_lower, width) + _cut(bounds.upper, ABOVE, bounds.with_upper, width)


def _cut(value: int | None, otherwise: int, above: bool, width: int) -> bytes:
    if value is None:
        return bytes((otherwise,)) + bytes(width + 1)
    return bytes((AT,)) + (value + (1 << 8 * width - 1)).to_bytes(width) + bytes((above,))


def unpacked(kind: SqlType, data: bytes) -> Bounds | None:
    """The range for bytes of ``packed``."""
    if data[0] == EMPTY:
        return None
    width = width_of(kind)
    (lower, above), (upper, with_upper) = (_uncut(data[start:], width) for start in (0, width + 2))
    return Bounds(lower, upper, lower is not None and not above, with_upper)


def _uncut(data: bytes, width: int) -> tuple[int | None, bool]:
    if data[0] != AT:
        return None, False
    return int.from_bytes(data[1 : width + 1]) - (1 << 8 * width - 1), bool(data[width + 1])


def canonical(kind: SqlType, bounds: Bounds) -> Bounds | None:
    """A range in the form in which PostgreSQL stores it; None if it is empty. Raises 22000, 22003 and 22008.

    https://www.postgresql.org/docs/15/rangetypes.html#RANGETYPES-DISCRETE
    """
    lower, upper = bounds.lower, bounds.upper
    if lower is not None and upper is not None:
        if lower > upper:
            raise SqlError("22000", "range lower bound must be less than or equal to range upper bound")
        if lower == upper and not (bounds.with_lower and bounds.with_upper):
            return None
    with_lower, with_upper = bounds.with_lower and lower is not None, bounds.with_upper and upper is not None
    if (discrete := RANGES[kind.name]) in LARGEST:
        if lower is not None and not with_lower and not is_infinite(discrete, lower):
            lower, with_lower = _next(discrete, lower), True
        if upper is not None and with_upper and not is_infinite(discrete, upper):
            upper, with_upper = _next(discrete, upper), False
        if lower is not None and lower == upper and not (with_lower and with_upper):
            return None
    return replace(bounds, lower=lower, upper=upper, with_lower=with_lower, with_upper=with_upper)


def is_infinite(name: str, value: Any) -> Any:
    """Whether a value of a discrete type has no successor and predecessor; for a vector, a mask."""
    return (abs(value) == INFINITE_DAYS) & (name == "date")


def _next(name: str, value: int) -> int:
    largest, sqlstate, message = LARGEST[name]
    if value >= largest:
        raise SqlError(sqlstate, message)
    return value + 1


# --- values ----------------------------------------------------------------------------------------------------------


def number_of(value: object) -> int:
    """The number of a bound's value, in the form of literals. Raises 22003 for a numeric of more than 38 digits."""
    match value:
        case dt.datetime():
            utc = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
            return (utc - _EPOCH) // _MICROSECOND
        case dt.date():
            return value.toordinal() - _DAY_ONE
        case Decimal():
            return int(value.scaleb(SCALE, _EXACT))
        case int():
            return value
        case _:
            raise AssertionError(value)


def infinite_number(value: float, kind: SqlType) -> int:
    """The number of an infinite date or timestamp."""
    most = INFINITE_DAYS if kind.name == "daterange" else INFINITE_MICROSECONDS
    return most if value > 0 else -most


def bound_number(value: object, kind: SqlType) -> int | None:
    """The number of a bound of a range type, None for NULL."""
    if value is None:
        return None
    return infinite_number(value, kind) if isinstance(value, float) else number_of(value)


def bound_value(number: int, kind: SqlType) -> object:
    """The value of a bound's number, in the form of literals; a text for a date beyond Python's range."""
    match RANGES[kind.name]:
        case "date" if abs(number) == INFINITE_DAYS:
            return math.copysign(math.inf, number)
        case "date" if not 0 < number + _DAY_ONE <= _LAST_DAY:  # the day after 9999-12-31
            return str(pa.scalar(number, pa.date32()).cast(pa.string()))
        case "date":
            return dt.date.fromordinal(number + _DAY_ONE)
        case "timestamp" | "timestamptz" if abs(number) == INFINITE_MICROSECONDS:
            return math.copysign(math.inf, number)
        case "timestamp" | "timestamptz" as name:
            moment = _EPOCH + number * _MICROSECOND
            return moment if name == "timestamp" else moment.replace(tzinfo=dt.UTC)
        case "numeric":
            return Decimal(number).scaleb(-SCALE, _EXACT).normalize(_EXACT)
        case _:
            return number


def made(kind: SqlType, lower: object, upper: object, inclusive: tuple[bool, bool]) -> bytes:
    """The range of two values; None is an absent bound. Raises 22000, 22003 and 22008."""
    return packed(kind, canonical(kind, Bounds(bound_number(lower, kind), bound_number(upper, kind), *inclusive)))


def read_flags(flags: str | None) -> tuple[bool, bool]:
    """Which bounds a constructor's third argument includes. Raises 22000 and 42601."""
    if flags is None:
        raise SqlError("22000", "range constructor flags argument must not be null")
    if flags not in _BOUNDS:
        hint = 'Valid values are "[]", "[)", "(]", and "()".'
        raise SqlError("42601", "invalid range bound flags", hint=hint)
    return _BOUNDS[flags]


# --- text ------------------------------------------------------------------------------------------------------------


class Written(Struct, frozen=True):
    """The parts of a range's text: the texts of its bounds, None for an absent bound, and which bounds are included."""

    lower: str | None
    upper: str | None
    inclusive: tuple[bool, bool]


def malformed_range(text: str, detail: str) -> SqlError:
    """The error 22P02 for a malformed range."""
    return SqlError("22P02", f'malformed range literal: "{text}"', detail)


def split_range(text: str) -> Written | None:
    """The parts of a range's text; None for the empty range (range_parse()). Raises 22P02."""
    body = text.lstrip(_BLANKS)
    if body[:5].lower() == "empty":
        if body[5:].strip(_BLANKS):
            raise malformed_range(text, 'Junk after "empty" key word.')
        return None
    if body[:1] not in ("[", "("):
        raise malformed_range(text, "Missing left parenthesis or bracket.")
    lower, place = _bound(text, body, 1)
    if body[place] != ",":
        raise malformed_range(text, "Missing comma after lower bound.")
    upper, place = _bound(text, body, place + 1)
    if body[place] == ",":
        raise malformed_range(text, "Too many commas.")
    if body[place + 1 :].strip(_BLANKS):
        raise malformed_range(text, "Junk after right parenthesis or bracket.")
    return Written(lower, upper, (body[0] == "[", body[place] == "]"))


def _bound(text: str, body: str, start: int) -> tuple[str | None, int]:
    """A bound's text, and where it ends: at a comma, parenthesis or bracket."""
    found = _BOUND.match(body, start)
    assert found is not None
    if found.end() == len(body) or body[found.end()] not in ",)]":
        raise malformed_range(text, "Unexpected end of input.")
    return _PIECE.sub(_plain, found[0]) if found[0] else None, found.end()


def _plain(piece: re.Match[str]) -> str:
    if piece[2] is None:
        return piece[1] or piece[3]
    return _QUOTED.sub(lambda escaped: escaped[1] or '"', piece[2])


def read(text: str, kind: SqlType, value: Callable[[str], object]) -> bytes:
    """A range from its text; ``value`` reads a bound's text. Raises 22P02 and the errors of ``value``."""
    found = split_range(text)
    if found is None:
        return empty(kind)
    lower, upper = (None if bound is None else value(bound) for bound in (found.lower, found.upper))
    return made(kind, lower, upper, found.inclusive)


def written(kind: SqlType, data: bytes, shown: Callable[[object], str] = str) -> str:
    """A range's text; ``shown`` writes a bound's value (range_out())."""
    bounds = unpacked(kind, data)
    if bounds is None:
        return "empty"
    lower, upper = (
        "" if number is None else _quoted(shown(bound_value(number, kind))) for number in (bounds.lower, bounds.upper)
    )
    return f"{'[' if bounds.with_lower else '('}{lower},{upper}{']' if bounds.with_upper else ')'}"


def _quoted(text: str) -> str:
    if text and not _NEEDS_QUOTES.search(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'

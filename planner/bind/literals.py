"""Text of literals -> typed values, as PostgreSQL's input functions read it.

Owns: ``value_of(text, type)`` for every stored type (ISO dates; intervals have their own file). A ``bpchar`` value is
kept without its trailing blanks, which no comparison sees. Knows nothing of the wire (protocol/ has columnar
readers).
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from catalog.errors import SqlError, invalid_text, out_of_range, unsupported
from catalog.types import DISPLAY, MAX_PRECISION, OIDS, OPAQUE, QUOTIENT, UNCONSTRAINED, VECTORS, SqlType
from planner.bind.intervals import interval_value
from planner.documents import canonical, check, parse
from planner.expression import Value

INTEGER_BITS: Final = {"int2": 16, "int4": 32, "int8": 64}
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})|([0-9]{4})([0-9]{2})([0-9]{2})")
_TIME: Final = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]*))?)?")
_ZONE: Final = re.compile(r"([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_UUID: Final = re.compile(r"\{?([0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}\}?")
_EXACT: Final = Context(prec=200)
_UNIX_EPOCH: Final = datetime.datetime(1970, 1, 1)


def value_of(text: str, kind: SqlType, time_zone: str = "UTC") -> Value:
    """A text's value in a type, modifiers applied as in an assignment. Raises 22P02, 22003, 22007, 22008, 22001."""
    if kind.name in VECTORS:
        assert kind.element is not None
        return tuple(_integer(word, kind.element) for word in text.split())
    if kind.element is not None:
        return _array(text, kind, time_zone)
    if kind.name == "timestamptz":
        return _timestamptz(text, time_zone)
    reader = _READERS.get(kind.name)
    if reader is None:
        raise invalid_text(str(kind), text)
    return reader(text, kind)


def _bool(text: str, kind: SqlType) -> Value:
    word = text.strip().lower()
    for value, spellings in ((True, ("true", "yes", "on", "1")), (False, ("false", "no", "off", "0"))):
        for spelling in spellings:
            shortest = 2 if spelling in ("on", "off") else 1
            if len(word) >= shortest and spelling.startswith(word):
                return value
    raise invalid_text("boolean", text)


def _integer(text: str, kind: SqlType) -> Value:
    word = text.strip()
    name = DISPLAY.get(kind.name, kind.name)
    if not _INTEGER.fullmatch(word):
        raise invalid_text(name, text)
    if len(word) > 400:
        raise out_of_range(f'value "{text}" is out of range for type {name}')
    value = int(word)
    bits = INTEGER_BITS.get(kind.name)
    low, high = (0, 1 << 32) if bits is None else (-(1 << bits - 1), 1 << bits - 1)
    if not low <= value < high:
        raise out_of_range(f'value "{text}" is out of range for type {name}')
    return value


def _float(text: str, kind: SqlType) -> Value:
    word = text.strip()
    special = {"nan": math.nan, "infinity": math.inf, "inf": math.inf, "-infinity": -math.inf, "-inf": -math.inf}
    if (found := special.get(word.lower().lstrip("+"))) is not None:
        return found
    name = DISPLAY[kind.name]
    if not _NUMBER.fullmatch(word):
        raise invalid_text(name, text)
    value = float(word)
    single = kind.name == "float4"
    if math.isinf(value) or (single and abs(value) > 3.4028235677973366e38) or _underflows(word, value, single):
        raise out_of_range(f'"{text}" is out of range for type {name}')
    return value


def _underflows(word: str, value: float, single: bool) -> bool:
    """Whether a number that is not zero reads as zero."""
    least = 2.0**-150 if single else 0.0  # which rounds to zero itself
    return abs(value) <= least and Decimal(word) != 0


def _numeric(text: str, kind: SqlType) -> Value:
    word = text.strip()
    if word.lower().lstrip("+-") in ("nan", "infinity", "inf"):
        raise SqlError(
            "0A000", f'numeric value "{word}" is not supported', hint="Use double precision for NaN and Infinity."
        )
    if not _NUMBER.fullmatch(word):
        raise invalid_text("numeric", text)
    try:
        return fit_numeric(Decimal(word), kind)
    except InvalidOperation:
        raise out_of_range("value overflows numeric format") from None


def fit_numeric(value: Decimal, kind: SqlType) -> Decimal:
    """A number rounded half away from zero to a numeric's scale. Raises 22003 where its digits do not fit."""
    precision, scale = kind.modifiers
    if value and value.adjusted() > 2 * MAX_PRECISION:
        raise _overflow(precision, scale, kind.modifiers in (UNCONSTRAINED, QUOTIENT))
    rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _EXACT)
    if rounded and rounded.adjusted() >= precision - scale:
        raise _overflow(precision, scale, kind.modifiers in (UNCONSTRAINED, QUOTIENT))
    return rounded


def _overflow(precision: int, scale: int, unconstrained: bool) -> SqlError:
    if unconstrained:
        return SqlError(
            "22003", "value overflows numeric format", detail="At most 38 digits are kept, 18 of them decimals."
        )
    bound = f"10^{precision - scale}" if precision > scale else "1"
    detail = f"A field with precision {precision}, scale {scale} must round to an absolute value less than {bound}."
    return SqlError("22003", "numeric field overflow", detail=detail)


def _text(text: str, kind: SqlType) -> Value:
    return fit_text(text, kind, explicit=False)


def fit_text(text: str, kind: SqlType, explicit: bool) -> str:
    """A string in a type's length; an assignment may only lose blanks. Raises 22001."""
    if kind.name == "name":
        return text.encode()[:63].decode(errors="ignore")
    if kind.name == "char":
        return text[:1]
    if kind.modifiers and len(text) > kind.modifiers[0]:
        if not explicit and text[kind.modifiers[0] :].strip(" "):
            raise SqlError("22001", f"value too long for type {kind}")
        text = text[: kind.modifiers[0]]
    return text.rstrip(" ") if kind.name == "bpchar" else text


def _bytea(text: str, kind: SqlType) -> Value:
    return read_bytea(text)


def read_bytea(text: str) -> bytes:
    """byteain: hexadecimal digits behind \\x, else characters and octal escapes. Raises 22023 and 22P02."""
    if text.startswith("\\x"):
        digits = re.sub(r"[ \t\n\r]", "", text[2:])
        if (wrong := re.search("[^0-9a-fA-F]", digits)) is not None:
            raise SqlError("22023", f'invalid hexadecimal digit: "{wrong.group()}"')
        if len(digits) % 2:
            raise SqlError("22023", "invalid hexadecimal data: odd number of digits")
        return bytes.fromhex(digits)
    pieces = re.sub(r"\\([0-3][0-7]{2}|\\)", lambda m: "\\" if m[1] == "\\" else f"\0{int(m[1], 8):02x}", text)
    if re.search(r"\\(?!\\|[0-3][0-7]{2})", text.replace("\\\\", "")):
        raise invalid_text("bytea", text)
    parts = pieces.split("\0")
    return parts[0].encode() + b"".join(bytes.fromhex(part[:2]) + part[2:].encode() for part in parts[1:])


def _invalid_time(kind: str, text: str) -> SqlError:
    return SqlError("22007", f'invalid input syntax for type {kind}: "{text}"')


def _field_range(text: str, hint: str | None = None) -> SqlError:
    return SqlError("22008", f'date/time field value out of range: "{text}"', hint=hint)


def _read_date(word: str, name: str, text: str) -> datetime.date:
    if word.lower() == "epoch":
        return _UNIX_EPOCH.date()
    if word.lower() in ("now", "today", "tomorrow", "yesterday", "infinity", "-infinity"):
        raise SqlError("0A000", f'{name} value "{word}" is not supported', hint="Use now() or current_date.")
    match = _DATE.fullmatch(word)
    if match is None:
        raise _invalid_time(name, text)
    year, month, day = (int(part) for part in match.groups() if part is not None)
    try:
        return datetime.date(year, month, day)
    except ValueError:
        style = None if 1 <= month <= 12 and 1 <= day <= 31 else 'Perhaps you need a different "datestyle" setting.'
        raise _field_range(text, style) from None


def _read_time(word: str, name: str, text: str) -> datetime.timedelta:
    match = _TIME.fullmatch(word)
    if match is None:
        raise _invalid_time(name, text)
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    if hour > 24 or minute > 59 or second > 60 or (hour == 24 and (minute or second)):
        raise _field_range(text)
    fraction = Decimal("0." + (match[4] or "0")).quantize(Decimal("0.000001"))
    return datetime.timedelta(hours=hour, minutes=minute, seconds=second, microseconds=int(fraction * 1_000_000))


def _date(text: str, kind: SqlType) -> Value:
    return _split(text, "date")[0]


def _time(text: str, kind: SqlType) -> Value:
    word = text.strip()
    if re.match(r"[0-9]+-[^:]*\s", word):  # a date and a time: the date is looked at and left out
        span = _split(re.sub(r"(:[0-9.]+)\s*([+-][0-9:]+|[zZ])$", r"\1", word), "time")[1]
    else:
        span = _read_time(word, "time", text)
    if span >= datetime.timedelta(days=1):
        raise SqlError("0A000", f'time value "{word}" is not supported', hint="Use 00:00:00.")
    return (_UNIX_EPOCH + span).time()


def _split(text: str, name: str) -> tuple[datetime.date, datetime.timedelta, str]:
    """Date, time of day and what is left (a zone) of a timestamp's text."""
    word = text.strip()
    parts = re.split(r"[T\s]+", word, maxsplit=1) if re.match(r"[0-9]", word) else [word]
    day = _read_date(parts[0], name, text)
    if len(parts) == 1:
        return day, datetime.timedelta(0), ""
    clock = re.match(r"[0-9:.]+", parts[1])
    if clock is None:
        raise _invalid_time(name, text)
    return day, _read_time(clock[0], name, text), parts[1][clock.end() :].strip()


def _combine(day: datetime.date, clock: datetime.timedelta, text: str) -> datetime.datetime:
    try:
        return datetime.datetime.combine(day, datetime.time()) + clock
    except OverflowError:
        raise _field_range(text) from None


def _timestamp(text: str, kind: SqlType) -> Value:
    day, clock, rest = _split(text, "timestamp")
    if rest:
        _zone(rest, "timestamp", text)  # PostgreSQL checks a zone and ignores it
    return _combine(day, clock, text)


def _timestamptz(text: str, time_zone: str) -> Value:
    name = "timestamp with time zone"
    day, clock, rest = _split(text, name)
    zone = _zone(rest or time_zone, name, text)
    try:
        return _combine(day, clock, text).replace(tzinfo=zone).astimezone(datetime.UTC)
    except OverflowError:
        raise _field_range(text) from None


def _zone(word: str, name: str, text: str) -> datetime.tzinfo:
    if word.upper() in ("Z", "UTC", "GMT"):
        return datetime.UTC
    if match := _ZONE.fullmatch(word):
        minutes = int(match[2]) * 60 + int(match[3] or 0)
        return datetime.timezone(datetime.timedelta(minutes=-minutes if match[1] == "-" else minutes))
    try:
        return ZoneInfo(word)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise _invalid_time(name, text) from None


def _interval(text: str, kind: SqlType) -> Value:
    return interval_value(text)


def _uuid(text: str, kind: SqlType) -> Value:
    if not _UUID.fullmatch(text) or text.startswith("{") != text.endswith("}"):
        raise invalid_text("uuid", text)
    digits = re.sub(r"[{}-]", "", text).lower()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _enum(text: str, kind: SqlType) -> Value:
    assert kind.enum is not None
    if text not in kind.enum.labels:
        raise SqlError("22P02", f'invalid input value for enum {kind}: "{text}"')
    return kind.enum.places[kind.enum.labels.index(text)]


def _json(text: str, kind: SqlType) -> Value:
    return check(text)


def _jsonb(text: str, kind: SqlType) -> Value:
    return canonical(parse(text))


def _array(text: str, kind: SqlType, time_zone: str) -> Value:
    """A one-dimensional array's text."""
    assert kind.element is not None
    element = kind.element
    return tuple(None if item is None else value_of(item, element, time_zone) for item in array_elements(text))


_ELEMENT: Final = re.compile(
    r'[ \t\n\v\f\r]*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>(?:[^,{}"\\]|\\.)+))[ \t\n\v\f\r]*(?P<end>[,}])',
    re.DOTALL,
)
_BLANKS: Final = " \t\n\v\f\r"


def array_elements(text: str) -> Iterator[str | None]:
    """The texts of an array's elements; quotes and backslashes as PostgreSQL's array_in has them."""
    word = text.strip(_BLANKS)
    inner = word[1:-1].strip(_BLANKS)
    if word.startswith("[") or (word.startswith("{") and inner.startswith("{")):
        raise unsupported("an array of several dimensions or with bounds", "Use an array of one dimension from 1 on.")
    if not (word.startswith("{") and word.endswith("}")):
        raise SqlError("22P02", f'malformed array literal: "{text}"')
    position, end = 1, "," if inner else "}"
    while end == ",":
        match = _ELEMENT.match(word, position)
        if match is None or (match["quoted"] is None and not match["plain"].strip(_BLANKS)):
            raise SqlError("22P02", f'malformed array literal: "{text}"')
        position, end = match.end(), match["end"]
        plain = match["plain"]
        if plain is not None and plain.strip(_BLANKS).lower() == "null":
            yield None
        else:
            yield re.sub(r"\\(.)", r"\1", match["quoted"] if plain is None else plain.strip(_BLANKS), flags=re.DOTALL)
    if inner and position != len(word):
        raise SqlError("22P02", f'malformed array literal: "{text}"')


_READERS: Final[dict[str, Callable[[str, SqlType], Value]]] = {
    "bool": _bool,
    "int2": _integer,
    "int4": _integer,
    "int8": _integer,
    **dict.fromkeys(OIDS | {"xid", "cid"}, _integer),
    **dict.fromkeys(OPAQUE, _text),
    "char": _text,
    "float4": _float,
    "float8": _float,
    "numeric": _numeric,
    "text": _text,
    "varchar": _text,
    "bpchar": _text,
    "name": _text,
    "unknown": _text,
    "bytea": _bytea,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "interval": _interval,
    "uuid": _uuid,
    "enum": _enum,
    "json": _json,
    "jsonb": _jsonb,
}

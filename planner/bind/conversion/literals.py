"""Texts of literals become typed values, as PostgreSQL's input functions read them.

Owns: ``value_of(text, type)`` for every stored type (dates and intervals have files of their own). A ``bpchar`` value
is kept without its trailing blanks, which comparisons ignore. Values on the wire are ``protocol``'s.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Final

from catalog.values import multiranges, ranges
from catalog.values.array_shapes import split_shaped
from catalog.values.errors import SqlError, invalid_text, out_of_range
from catalog.values.forms.bits import fit_bits
from catalog.values.forms.numbers import read_unsigned
from catalog.values.interval_fields import FULL_RANGE
from catalog.values.json_documents import canonical, check, parse
from catalog.values.jsonpath.text import canonical_path
from catalog.values.money import read_money
from catalog.values.multiranges import range_of
from catalog.values.nested_texts import split_array, split_row
from catalog.values.nested_types import delimiter_of
from catalog.values.opaque import canonical as canonical_opaque
from catalog.values.ranges import subtype_of
from catalog.values.scales import is_padded
from catalog.values.times.intervals import parse_interval
from catalog.values.times.precision import expressed, fit_moment
from catalog.values.times.styles import USUAL, Reading
from catalog.values.times.timestamps import parse_date, parse_time, parse_timestamp, parse_timestamptz, parse_timetz
from catalog.values.types import (
    BITS,
    DISPLAY,
    MAX_PRECISION,
    MULTIRANGES,
    OIDS,
    OPAQUE,
    RANGES,
    ROUNDED,
    UNCONSTRAINED,
    VECTORS,
    Composite,
    SqlType,
)
from planner.algebra.nodes import Value

INTEGER_BITS: Final = {"int2": 16, "int4": 32, "int8": 64}
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_UUID: Final = re.compile(r"\{?([0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}\}?")
_EXACT: Final = Context(prec=200)


def value_of(text: str, kind: SqlType, time_zone: str = "UTC", reading: Reading = USUAL) -> Value:
    """A text's value in a type, modifiers applied as in an assignment. Raises 22P02, 22003, 22007, 22008, 22001."""
    if kind.name in VECTORS:
        assert kind.element is not None
        return tuple(_integer(word, kind.element) for word in text.split())
    if kind.element is not None:
        return _array(text, kind, time_zone, reading)
    if kind.row is not None:
        return _row(text, kind.row, time_zone, reading)
    if kind.name in RANGES:
        return ranges.read(text, kind, _reader(subtype_of(kind), time_zone, reading))
    if kind.name in MULTIRANGES:
        return multiranges.read(text, kind, _reader(subtype_of(range_of(kind)), time_zone, reading))
    if kind.name in ROUNDED:
        return fit_moment(_moment(text, kind, time_zone, reading), kind)
    if kind.name == "date":
        return parse_date(text, reading.dates)
    reader = _READERS.get(kind.name)
    if reader is None:
        raise invalid_text(str(kind), text)
    return reader(text, kind)


def _reader(kind: SqlType, time_zone: str, reading: Reading) -> Callable[[str], Value]:
    """What reads a bound."""
    return lambda text: value_of(text, kind, time_zone, reading)


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
    low, high = (-(1 << 31), 1 << 32) if bits is None else (-(1 << bits - 1), 1 << bits - 1)
    if not low <= value < high:
        raise out_of_range(f'value "{text}" is out of range for type {name}')
    return value if bits is not None else value % (1 << 32)  # oidin() takes 32 bits with or without a sign


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
    """A number rounded half away from zero to a numeric's scale, or with fewer decimals where no scale is declared.
    Raises 22003 where its digits do not fit."""
    precision, scale = kind.precision, kind.scale
    exponent = value.as_tuple().exponent
    if kind.is_loose and isinstance(exponent, int):
        scale = min(max(-exponent, 0), scale)
    if value and value.adjusted() > 2 * MAX_PRECISION:
        raise _overflow(precision, scale, kind.is_loose)
    rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _EXACT)
    if kind.modifiers == UNCONSTRAINED and rounded != value:  # rounding is not declared
        raise _overflow(precision, scale, True)
    if rounded and rounded.adjusted() >= precision - kind.scale:
        raise _overflow(precision, scale, kind.is_loose)
    return unsigned_zero(rounded)


def unsigned_zero(value: Decimal) -> Decimal:
    """A number as a numeric, whose zero has no sign."""
    return value or value.copy_abs()


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
        return _char(text)
    if kind.modifiers and len(text) > kind.modifiers[0]:
        if not explicit and text[kind.modifiers[0] :].strip(" "):
            raise SqlError("22001", f"value too long for type {kind}")
        text = text[: kind.modifiers[0]]
    return text.rstrip(" ") if kind.name == "bpchar" else text


def _char(text: str) -> str:
    """charin: the first character, or that of a backslash and three octal digits. Raises 0A000 beyond ASCII."""
    if re.fullmatch(r"\\[0-7]{3}", text):
        text = chr(int(text[1:], 8) % 256).strip("\0")
    if text[:1] > "\x7f":
        raise SqlError("0A000", 'a "char" beyond ASCII is not supported', hint="Use text.")
    return text[:1]


def _bits(text: str, kind: SqlType) -> Value:
    digits = canonical_opaque(kind.name, text)
    return fit_bits(digits, kind.name, kind.modifiers[0], explicit=False) if kind.modifiers else digits


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
        raise SqlError("22P02", "invalid input syntax for type bytea")
    parts = pieces.split("\0")
    return parts[0].encode() + b"".join(bytes.fromhex(part[:2]) + part[2:].encode() for part in parts[1:])


def _moment(text: str, kind: SqlType, time_zone: str, reading: Reading) -> Value:
    """A time's or an interval's value, of which only the fields are the type's yet."""
    match kind.name:
        case "time":
            return parse_time(text, reading.dates)
        case "timetz":
            return parse_timetz(text, time_zone, reading.dates)
        case "timestamp":
            return parse_timestamp(text, reading.dates)
        case "timestamptz":
            return parse_timestamptz(text, time_zone, reading.dates)
        case _:
            fields = kind.modifiers[0] if kind.modifiers else FULL_RANGE
            return parse_interval(text, fields, reading.shares_sign)


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


def _jsonpath(text: str, kind: SqlType) -> Value:
    return canonical_path(text)


def _part(text: str, kind: SqlType, time_zone: str, reading: Reading) -> Value:
    """A value within a constant, which says itself with which blanks it is shown (``planner.scales``)."""
    return text if is_padded(kind) else value_of(text, kind, time_zone, reading)


def _array(text: str, kind: SqlType, time_zone: str, reading: Reading) -> Value:
    """An array's text; of any dimensions where the type keeps them. What rounds or cuts elements comes after."""
    assert kind.element is not None
    element, read = kind.element, expressed(kind.element)

    def value(item: str | None) -> Value:
        return None if item is None else fit_moment(_part(item, read, time_zone, reading), element)

    if kind.name == "shaped":
        items, shape = split_shaped(text)
        return tuple(map(value, items)), shape
    return tuple(map(value, split_array(text, delimiter_of(element))))


def _row(text: str, declared: Composite, time_zone: str, reading: Reading) -> Value:
    """A row's text."""
    if not declared.oid:
        raise SqlError("0A000", "input of anonymous composite types is not implemented")
    pairs = list(zip(split_row(text, len(declared.fields)), declared.fields, strict=True))
    return tuple(None if item is None else _part(item, kind, time_zone, reading) for item, (_, kind) in pairs)


_READERS: Final[dict[str, Callable[[str, SqlType], Value]]] = {
    "bool": _bool,
    "int2": _integer,
    "int4": _integer,
    "int8": _integer,
    **dict.fromkeys(OIDS, _integer),
    **dict.fromkeys(("xid", "cid", "xid8"), lambda text, kind: read_unsigned(text, kind.name)),
    "money": lambda text, kind: read_money(text),
    **dict.fromkeys(OPAQUE, lambda text, kind: canonical_opaque(kind.name, text)),
    **dict.fromkeys(BITS, _bits),
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
    "uuid": _uuid,
    "enum": _enum,
    "json": _json,
    "jsonb": _jsonb,
    "jsonpath": _jsonpath,
    "void": lambda text, kind: "",
}

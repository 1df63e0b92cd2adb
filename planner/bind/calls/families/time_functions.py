"""Functions of dates and times with constants that the planner reads: fields, zones, named parts.

Owns: extract() with the digits of its result, zones that are named in a call, and make_interval().
"""

from __future__ import annotations

import zoneinfo
from datetime import timedelta
from typing import Any, Final

from catalog.values.errors import SqlError, unsupported
from catalog.values.times.intervals import unit_of_word
from catalog.values.times.zones import UTC_NAMES, abbreviations, displacement, find_zone, fixed_offset
from catalog.values.types import BOOL, DATE, FLOAT8, INT4, INTERVAL, QUOTIENT, TEXT, TIMESTAMP, TIMETZ, SqlType, numeric
from planner.algebra.nodes import Call, Cast, Literal, Scalar
from planner.bind.calls.overloading.call_forms import Special, called
from planner.bind.calls.overloading.choice import no_function
from planner.bind.conversion.coercion import coerce
from planner.bind.conversion.requirements import required, wrong_for
from planner.bind.lookup.type_names import display
from planner.bind.state.environment import Environment

#: Fields of extract() with the digits of their values, by what has them.
_DATE_FIELDS: Final = (
    "year",
    "month",
    "day",
    "quarter",
    "week",
    "dow",
    "isodow",
    "doy",
    "isoyear",
    "decade",
    "century",
    "millennium",
)
_TIME_FIELDS: Final = ("hour", "minute", "second", "milliseconds", "microseconds")
_ZONE_FIELDS: Final = ("timezone", "timezone_hour", "timezone_minute")
#: Fields that exist, but not of a type.
_REFUSED: Final[dict[str, tuple[str, ...]]] = {
    "date": (*_TIME_FIELDS, *_ZONE_FIELDS),
    "time": (*_DATE_FIELDS, *_ZONE_FIELDS, "julian"),
    "timetz": (*_DATE_FIELDS, "julian"),
    "timestamp": _ZONE_FIELDS,
    "interval": ("week", "dow", "isodow", "doy", "isoyear", "julian", *_ZONE_FIELDS),
}
_EPOCHS: Final = {"date": (12, 0), "interval": (22, 6)}
_DIGITS: Final = {"second": (8, 6), "milliseconds": (8, 3), "microseconds": (10, 0)}
#: Words that name no unit of intervals; only so many letters of a word count.
_OTHERS: Final = {
    **{word: word for word in ("quarter", "timezone", "dow", "doy", "isodow", "isoyear", "epoch")},
    "qtr": "quarter",
    "timezone_h": "timezone_hour",
    "timezone_m": "timezone_minute",
    **dict.fromkeys(("j", "jd", "julian"), "julian"),
}
_LETTERS: Final = 10


def _field(word: str) -> str | None:
    """The field that a word names (DecodeUnits and DecodeSpecial of PostgreSQL 15); None: it names none."""
    unit = unit_of_word(word.lower())
    if unit in ("millisecond", "microsecond"):
        return f"{unit}s"
    return unit or _OTHERS.get(word.lower()[:_LETTERS])


def _extract(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    field, source = arguments
    if not isinstance(field, Literal) or not isinstance(field.value, str):
        raise unsupported(f"{name}() of a computed field", "Name the field as a constant.", env.binding.position(node))
    word = _field(field.value)
    if name == "date_part" and source.type == DATE:  # of a date it is that of its midnight
        source = Cast(source, TIMESTAMP)
    kind = FLOAT8 if name == "date_part" else SqlType("numeric", QUOTIENT)
    if word is None:
        return wrong_for(source, kind, "22023", f'unit "{field.value}" not recognized for type {display(source.type)}')
    if word in _REFUSED.get(source.type.name, ()):
        return wrong_for(source, kind, "0A000", f'unit "{field.value}" not supported for type {display(source.type)}')
    digits = _EPOCHS.get(source.type.name, (20, 6)) if word == "epoch" else (10, 0)
    if word == "julian" and source.type.name != "date":
        call = Call("julian", (source,), SqlType("numeric", QUOTIENT))
    else:
        call = Call("extract", (Literal(word, TEXT), source), numeric(*_DIGITS.get(word, digits)))
    return Cast(call, FLOAT8, True) if name == "date_part" else call


_FIXED_ZONES: Final = {name.lower(): name for name in UTC_NAMES}
_REGIONS: Final = {name.lower(): name for name in zoneinfo.available_timezones() if name.lower() not in abbreviations()}


def _zone(env: Environment, scalar: Scalar, node: Any) -> Scalar:
    """A zone's name, or its offset as an interval. Raises 22023."""
    assert isinstance(scalar, Literal)
    if scalar.value is None:
        return scalar
    name = str(scalar.value)
    found = _FIXED_ZONES.get(name.lower()) or _REGIONS.get(name.lower())
    offset = None if found else fixed_offset(name)
    if offset is not None:
        return _offset(offset)
    if found is None:
        find_zone(name)  # an abbreviation whose meaning has changed, or a rule
        found = name.upper()
    return Literal(found, TEXT)


def _timezone(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    zone, moment = arguments
    if zone.type == INTERVAL:
        assert isinstance(zone, Literal)
        if moment.type != TIMETZ and isinstance(zone.value, tuple) and any(zone.value[:2]):
            raise env.error("22023", "interval time zone must not include months or days", None)
    return _moved(zone if zone.type == INTERVAL else _zone(env, zone, node), moment)


def _moved(zone: Scalar, moment: Scalar) -> Scalar:
    """The wall clock of a zone at a moment, or the moment of its wall clock; ``zone`` is a name or an offset."""
    if moment.type == TIMETZ:
        return Call("timezone", (zone, moment), TIMETZ)
    kind = SqlType("timestamptz") if moment.type.name == "timestamp" else TIMESTAMP
    if zone.type != INTERVAL:
        return Call("timezone", (zone, moment), kind)
    utc = Literal("UTC", TEXT)
    if kind == TIMESTAMP:
        return Call("add", (Call("timezone", (utc, moment), kind), zone), kind)
    return Call("timezone", (utc, Call("sub", (moment, zone), TIMESTAMP)), kind)


#: What date_trunc() takes; the other fields of extract() are none to cut at.
_CUTS: Final = ("year", "month", "day", "quarter", "week", "decade", "century", "millennium", *_TIME_FIELDS)


def _wrong_cut(field: Scalar, moment: Scalar) -> Scalar | None:
    """What date_trunc() is where the field does not exist (22023), or not for the type (0A000)."""
    if not isinstance(field, Literal) or field.value is None:
        return None
    kind = moment.type
    word = _field(str(field.value))
    if word in _ZONE_FIELDS or (word == "week" and kind == INTERVAL):
        return _uncut(moment, "0A000", f'unit "{field.value}" not supported for type {display(kind)}')
    if word not in _CUTS:
        return _uncut(moment, "22023", f'unit "{field.value}" not recognized for type {display(kind)}')
    return None


def _uncut(moment: Scalar, sqlstate: str, message: str) -> Scalar:
    """NULL and what is infinite, of which no field is looked at; any other moment is an error."""
    if moment.type == INTERVAL:
        return wrong_for(moment, moment.type, sqlstate, message)
    is_infinite = Call("not", (Call("isfinite", (moment,), BOOL),), BOOL)
    return required(Call("or", (Call("is_null", (moment,), BOOL), is_infinite), BOOL), moment, sqlstate, message)


def _date_trunc(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    wrong = _wrong_cut(arguments[0], arguments[1])
    if wrong is not None:
        return wrong
    if isinstance(arguments[0], Literal) and arguments[0].value is not None:
        arguments[0] = Literal(_field(str(arguments[0].value)), TEXT)
    if len(arguments) == 3:
        zone = _zone(env, arguments[2], node)
        if zone.type == INTERVAL:
            local = called(env, "date_trunc", [arguments[0], _moved(zone, arguments[1])], TIMESTAMP, name, node)
            return _moved(zone, local)
        arguments[2] = zone
    return called(env, "date_trunc", arguments, arguments[1].type, name, node)


def _age(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    """age(x) is the age at the last midnight."""
    if len(arguments) == 1:
        today = called(env, "current_date", [], DATE, name, node)
        arguments = [Cast(today, arguments[0].type), *arguments]
    return called(env, "age", arguments, INTERVAL, name, node)


def _make_timestamptz(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    kind = SqlType("timestamptz")
    local = Call("make_timestamp", tuple(arguments[:6]), TIMESTAMP)
    if len(arguments) == 6:
        return Cast(local, kind)
    try:
        return _moved(_signed_zone(env, arguments[6], node), local)
    except SqlError as error:
        if error.sqlstate != "22023":
            raise
        return wrong_for(local, kind, error.sqlstate, error.message)  # a date that is none comes before it


def _signed_zone(env: Environment, scalar: Scalar, node: Any) -> Scalar:
    """A zone by name, or hours east of Greenwich with their sign, unlike POSIX' (parse_sane_timezone). Raises 22023."""
    assert isinstance(scalar, Literal)
    name = str(scalar.value or "")
    if name[:1].isdigit():
        raise env.error("22023", f'invalid input syntax for type numeric time zone: "{name}"', None)
    try:
        east = displacement(name)
    except OverflowError:
        raise env.error("22023", f'numeric time zone "{name}" out of range', None) from None
    return _zone(env, scalar, node) if east is None else _offset(east)


def _offset(east: timedelta) -> Literal:
    return Literal((0, 0, east // timedelta(microseconds=1)), INTERVAL)


def _overlaps(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    """A period that is written with its length ends after it."""
    ends = [
        Call("add", (start, end), start.type) if end.type == INTERVAL else end
        for start, end in (arguments[:2], arguments[2:])
    ]
    return Call("overlaps", (arguments[0], ends[0], arguments[2], ends[1]), BOOL)


_PARTS: Final = ("years", "months", "weeks", "days", "hours", "mins", "secs")


def make_interval(env: Environment, node: Any) -> Scalar:
    """make_interval(), whose parts are mostly given by name."""
    found: dict[str, Scalar] = {}
    for place, item in enumerate(node.args or ()):
        named = type(item).__name__ == "NamedArgExpr"
        value = item.arg if named else item
        part = item.name if named else _PARTS[place] if place < len(_PARTS) else ""
        scalar = env.bind(value)
        coerced = coerce(env.binding, scalar, FLOAT8 if part == "secs" else INT4, "implicit", value)
        if part not in _PARTS or part in found or coerced is None:
            raise no_function(env, [*found.values(), scalar], node)
        found[part] = coerced
    zeros = {part: Literal(0.0, FLOAT8) if part == "secs" else Literal(0, INT4) for part in _PARTS}
    return Call("make_interval", tuple(found.get(part, zeros[part]) for part in _PARTS), INTERVAL)


TIME_FUNCTIONS: Final[dict[str, Special]] = {
    "extract": _extract,
    "timezone": _timezone,
    "date_trunc": _date_trunc,
    "age": _age,
    "make_timestamptz": _make_timestamptz,
    "overlaps": _overlaps,
}

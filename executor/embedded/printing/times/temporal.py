"""Fields of dates and times, and their truncation, with PostgreSQL's results.

Owns: ``extract`` (numeric; seconds and epochs with microseconds), ``date_trunc``, ``date_bin`` and ``hop_start``. The
fields of a timestamptz are those of the session's local time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from catalog.values.errors import unsupported
from catalog.values.times.zones import UTC_NAMES
from catalog.values.types import INT4, TEXT, SqlType
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import bound, called, cast_to, decimal, in_zone, local, macro
from executor.embedded.printing.times import timetz
from executor.printing.nodes import Expr, binary, case, function, number, operand, text
from planner.algebra.nodes import Call, Literal

_PARTS: Final[Mapping[str, str]] = {
    **{name: name for name in ("year", "month", "day", "hour", "minute", "quarter", "week", "dow", "isodow", "doy")},
    **{name: name for name in ("decade", "century", "millennium", "isoyear")},
}


#: Fields that are infinite for an infinite date; other fields are NULL.
_UNBOUNDED: Final = ("year", "decade", "century", "millennium", "isoyear", "julian", "epoch")
_LONG: Final = {"century": 100, "millennium": 1000}
#: Units shorter than a day, in microseconds.
_BELOW_DAY: Final = {"microsecond": 1, "millisecond": 1000, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6}


def _field(node: Call) -> str:
    field = node.arguments[0]
    if not isinstance(field, Literal):
        raise unsupported(f"{node.function} with a field that is not a literal")
    return str(field.value).lower().rstrip("s") if str(field.value).lower() != "s" else "second"


def extract(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    field, source, value = _field(node), node.arguments[1].type, arguments[1]
    if source.name == "timestamptz" and field != "epoch" and not field.startswith("timezone"):
        value = local(printer, value)
    if timetz.is_zoned(source):
        if field == "epoch" or field.startswith("timezone"):
            found = timetz.part(value, field)
            return cast_to(printer, _shifted(found, 6) if field == "epoch" else found, node.type)
        value = macro("ms_timetz_time", value)
    if source.name == "date" and field in ("epoch", "second", "microsecond", "millisecond", "hour", "minute"):
        value = cast_to(printer, value, SqlType("timestamp"))
    if field in _PARTS:
        part = function("datepart", text(_PARTS[field]), value)
    elif field == "epoch":
        part = _shifted(called("ms_interval_epoch" if source.name == "interval" else "epoch_us", value), 6)
    elif field in ("second", "millisecond"):
        part = _shifted(function("microsecond", value), 6 if field == "second" else 3)
    elif field == "microsecond":
        part = function("microsecond", value)
    elif field == "julian":
        part = function("datepart", text("julian"), value)
    else:
        part = _zone_part(printer, field, arguments[1])
    if field in _UNBOUNDED and source.name not in ("interval", "time", "timetz"):
        return _bounded(printer, cast_to(printer, part, node.type), arguments[1], node)
    return cast_to(printer, part, node.type)


def _bounded(printer: EntryPoints, part: Expr, moment: Expr, node: Call) -> Expr:
    """A field of a date; for an infinite date it is infinite, which is refused, where DuckDB returns NULL."""
    infinite = cast_to(printer, macro("ms_infinite_number", moment.copy()), node.type)
    return function("coalesce", part, infinite)


def julian(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """The Julian day, with the elapsed part of the day as a fraction."""
    zoned = node.arguments[0].type.name == "timestamptz"
    day = macro("ms_julian", local(printer, arguments[0]) if zoned else arguments[0])
    return _bounded(printer, day, arguments[0], node)


def _zone_part(printer: EntryPoints, field: str, moment: Expr) -> Expr:
    """timezone, timezone_hour, timezone_minute: the session's offset from UTC at an instant, in seconds or as a part of
    it."""
    utc = function("timezone", text("UTC"), moment.copy())
    seconds = function("date_diff", text("second"), utc, local(printer, moment))
    match field:
        case "timezone":
            return seconds
        case "timezone_hour":
            return binary(exp.IntDiv, seconds, exp.Literal.number(3600))
        case _:
            minutes = binary(exp.IntDiv, seconds, exp.Literal.number(60))
            return binary(exp.Mod, minutes, exp.Literal.number(60))


def _shifted(micros: Expr, digits: int) -> Expr:
    """micros * 10^-digits as an exact decimal."""
    whole = SqlType("numeric", (22, 0))
    unit = exp.Cast(this=text("0." + "0" * (digits - 1) + "1"), to=decimal(digits, digits))
    return exp.Mul(this=exp.Cast(this=micros, to=decimal(*whole.modifiers)), expression=unit)


def date_trunc(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    field, source, value = _field(node), node.arguments[1].type, arguments[1]
    named = node.arguments[2] if len(arguments) == 3 else Literal(printer.timezone, TEXT)
    assert isinstance(named, Literal), "a zone that is computed is put off"
    zone = str(named.value)
    if source.name == "timestamptz":
        if field in _BELOW_DAY:
            return bound(value, lambda instant: _below_day(instant, zone, _BELOW_DAY[field]))
        value = in_zone(zone, value)
    result = function("date_trunc", text(field), value)
    if field in _LONG and source.name != "interval":  # the first century began with the year 1
        place = exp.Mod(
            this=exp.Paren(this=exp.Sub(this=function("year", value.copy()), expression=exp.Literal.number(1))),
            expression=exp.Literal.number(_LONG[field]),
        )
        result = exp.Sub(
            this=function("date_trunc", text("year"), value),
            expression=function("to_years", cast_to(printer, place, INT4)),
        )
        result = function("coalesce", result, _kept_infinite(value.copy()))
    if source.name == "timestamptz":
        return in_zone(zone, result)
    return cast_to(printer, result, node.type)


def _below_day(instant: Expr, zone: str, unit: int) -> Expr:
    """The instant less the part of the local time beyond a whole unit. Its UTC offset does not change, so the two
    occurrences of a repeated hour stay distinct (timestamptz_trunc_internal)."""
    wall = instant.copy() if zone in UTC_NAMES else in_zone(zone, instant.copy())
    beyond = function("ms_beyond", function("epoch_us", wall), number(unit))
    whole = exp.Sub(this=function("epoch_us", instant.copy()), expression=beyond)
    return function("coalesce", function("make_timestamptz", whole), instant)  # infinite values have no epoch


def _kept_infinite(moment: Expr) -> Expr:
    return case([(function("isinf", moment), moment.copy())], exp.null())


def age(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """age() of timestamps, by the session's local calendar."""
    if node.arguments[0].type.name == "timestamptz":
        arguments = [local(printer, value) for value in arguments]
    infinite = [function("isinf", value.copy()) for value in arguments]
    out = function("error", text("!22008!timestamp out of range"))
    return case([(binary(exp.Or, *infinite) if len(infinite) == 2 else infinite[0], out)], function("age", *arguments))


def is_finite(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """Whether a value is finite; every interval is."""
    if node.arguments[0].type.name != "interval":
        return function("isfinite", *arguments)
    return case(
        [(exp.Not(this=exp.Paren(this=exp.Is(this=operand(arguments[0]), expression=exp.null()))), exp.true())],
        exp.null(),
    )


def date_bin(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    return macro("ms_date_bin", *arguments)


def hop_start(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    slide, _, *rest = arguments
    return macro("ms_hop_start", slide, *rest)

"""Expressions over timetz: input, casts, zones, fields and arithmetic.

A time without a zone gets the session zone's current offset. AT TIME ZONE uses a region's current offset, as
timetz_zone() does.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from catalog.values.errors import unsupported
from catalog.values.types import SqlType
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import called, in_zone, macro
from executor.printing.nodes import Build, Expr, function, text
from planner.algebra.nodes import Call, Literal

#: Seconds per unit of a zone's field.
_ZONE_PARTS: Final = {"timezone": 1, "timezone_hour": 3600, "timezone_minute": 60}


def is_zoned(kind: SqlType) -> bool:
    """Whether a type is timetz."""
    return kind.name == "timetz"


def read(printer: EntryPoints, argument: Expr) -> Expr:
    """A timetz from a text (timetz_in). Raises 22007, 22008 and 22009."""
    return function("moments_timetz", argument, text(printer.timezone))


def _utc(instant: Expr) -> Expr:
    return function("timezone", text("UTC"), instant)


def _local(printer: EntryPoints, instant: Expr) -> Expr:
    return in_zone(printer.timezone, instant)


def of_instant(printer: EntryPoints, instant: Expr) -> Expr:
    """The session's local time at an instant (timestamptz_timetz)."""
    return macro("ms_timetz_of", _local(printer, instant), _utc(instant.copy()))


def of_time(printer: EntryPoints, time: Expr) -> Expr:
    """A time with the session's offset at that time of the current day (time_timetz)."""
    today = exp.Cast(this=_local(printer, function("now")), to=exp.DataType(this=exp.DataType.Type.DATE))
    return of_instant(printer, _local(printer, exp.Paren(this=exp.Add(this=today, expression=time))))


def moved(arguments: list[Expr], node: Call, negative: bool) -> Expr:
    """timetz plus or minus the time of an interval; date plus timetz, which is a timestamptz."""
    left, right = arguments
    if node.type.name == "timestamptz":
        day, time = (left, right) if node.arguments[0].type.name == "date" else (right, left)
        return macro("ms_timetz_moment", day, time)
    time, span = (left, right) if is_zoned(node.arguments[0].type) else (right, left)
    return macro("ms_timetz_moved", time, exp.Neg(this=exp.Paren(this=span)) if negative else span)


def part(value: Expr, field: str) -> Expr:
    """extract() of a zone's field, or of the epoch in microseconds; see ``ms_timetz_time`` for other fields."""
    if field == "epoch":
        return macro("ms_timetz_utc", value)
    east = exp.Neg(this=macro("ms_timetz_west", value))
    unit = _ZONE_PARTS[field]
    hours = exp.Mod(this=exp.Paren(this=east), expression=exp.Literal.number(3600)) if unit == 60 else east
    return exp.IntDiv(this=exp.Paren(this=hours), expression=exp.Literal.number(unit))


def at_zone(otherwise: Build) -> Build:
    """timezone() of a timetz: the same instant in another zone."""

    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        zone, moment = arguments
        named = node.arguments[0]
        if not is_zoned(node.type):
            if isinstance(named, Literal) and named.value is not None:
                return in_zone(str(named.value), moment)
            return otherwise(printer, arguments, node)
        if named.type.name == "interval":
            return macro("ms_timetz_at_span", moment, zone)
        now = function("now")
        local = in_zone(str(named.value), now) if isinstance(named, Literal) else function("timezone", zone, now)
        west = called("ms_west_of", local, _utc(now.copy()))
        return macro("ms_timetz_at", moment, west)

    return build


def cast(printer: EntryPoints, argument: Expr, source: SqlType, target: SqlType) -> Expr:
    """Between timetz and time or timestamptz."""
    match source.name, target.name:
        case "timetz", "time":
            return macro("ms_timetz_time", argument)
        case "time", "timetz":
            return of_time(printer, argument)
        case "timestamptz", "timetz":
            return of_instant(printer, argument)
        case "timetz", "timetz":
            return argument
        case _:
            raise unsupported(f"a cast from {source} to {target}")

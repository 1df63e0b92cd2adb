"""timetz in DuckDB: a BIGINT (``catalog.values.times.timetz``), taken apart by macros.

Owns: what makes, shows, moves and takes apart such numbers. A time without a zone gets the session's of today; AT TIME
ZONE means a region's offset of now, as timetz_zone() does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from catalog.values.errors import unsupported
from catalog.values.times.timestamps import parse_timetz
from catalog.values.types import SqlType
from executor.embedded.functions.batches import Functions
from executor.embedded.printing.nodes import called, in_zone, macro
from executor.printing.nodes import Build, Expr, function, text
from planner.algebra.scalars import Call, Literal

if TYPE_CHECKING:
    from executor.embedded.printing.dialect import DuckPrinter

FUNCTIONS: Final[Functions] = {"moments_timetz": (parse_timetz, "BIGINT")}

STATEMENTS: Final = """
CREATE MACRO ms_timetz(us, west) AS (us + west * 1000000 + 86400000000) * 262144 + west + 131072;
CREATE MACRO ms_timetz_west(x) AS (x & 262143) - 131072;
CREATE MACRO ms_timetz_us(x) AS (x >> 18) - 86400000000 - ms_timetz_west(x) * 1000000;
CREATE MACRO ms_timetz_utc(x) AS (x >> 18) - 86400000000;
CREATE MACRO ms_timetz_time(x) AS CASE WHEN ms_timetz_us(x) = 86400000000
    THEN error('!0A000!the time 24:00:00 is not supported')
    ELSE CAST('00:00' AS TIME) + to_microseconds(ms_timetz_us(x)) END;
CREATE MACRO ms_timetz_offset(west) AS CASE WHEN west > 0 THEN '-' ELSE '+' END
    || lpad(CAST(abs(west) // 3600 AS VARCHAR), 2, '0')
    || CASE WHEN west % 3600 = 0 THEN '' ELSE ':' || lpad(CAST(abs(west) // 60 % 60 AS VARCHAR), 2, '0') END
    || CASE WHEN west % 60 = 0 THEN '' ELSE ':' || lpad(CAST(abs(west) % 60 AS VARCHAR), 2, '0') END;
CREATE MACRO ms_timetz_text(x) AS CASE WHEN ms_timetz_us(x) = 86400000000 THEN '24:00:00'
    ELSE CAST(CAST('00:00' AS TIME) + to_microseconds(ms_timetz_us(x)) AS VARCHAR) END
    || ms_timetz_offset(ms_timetz_west(x));
CREATE MACRO ms_timetz_within(us, west) AS ms_timetz((us % 86400000000 + 86400000000) % 86400000000, west);
CREATE MACRO ms_timetz_moved(x, span) AS ms_timetz_within(
    ms_timetz_us(x) + epoch_us(ms_interval_time(span)), ms_timetz_west(x));
CREATE MACRO ms_timetz_at(x, west) AS ms_timetz_within(ms_timetz_utc(x) - west * 1000000, west);
CREATE MACRO ms_timetz_at_span(x, span) AS CASE
    WHEN datepart('year', span) <> 0 OR datepart('month', span) <> 0 OR datepart('day', span) <> 0
    THEN error('!22023!interval time zone "' || ms_interval_text(span) || '" must not include months or days')
    ELSE ms_timetz_at(x, -(epoch_us(span) // 1000000)) END;
CREATE MACRO ms_west_of(local, instant) AS CAST((epoch_us(instant) - epoch_us(local)) // 1000000 AS BIGINT);
CREATE MACRO ms_timetz_of(local, instant) AS CASE WHEN isfinite(local)
    THEN ms_timetz(epoch_us(CAST(local AS TIME)), ms_west_of(local, instant)) END;
CREATE MACRO ms_timetz_moment(day, x) AS timezone('UTC', CAST(day AS TIMESTAMP) + to_microseconds(ms_timetz_utc(x)));
"""
#: Seconds of the unit of a zone's field.
_ZONE_PARTS: Final = {"timezone": 1, "timezone_hour": 3600, "timezone_minute": 60}


def is_zoned(kind: SqlType) -> bool:
    """Whether a type is timetz."""
    return kind.name == "timetz"


def read(printer: DuckPrinter, argument: Expr) -> Expr:
    """timetz_in. Raises 22007, 22008 and 22009."""
    return function("moments_timetz", argument, text(printer.timezone))


def _utc(instant: Expr) -> Expr:
    return function("timezone", text("UTC"), instant)


def _local(printer: DuckPrinter, instant: Expr) -> Expr:
    return in_zone(printer.timezone, instant)


def of_instant(printer: DuckPrinter, instant: Expr) -> Expr:
    """timestamptz_timetz: the session's wall clock."""
    return macro("ms_timetz_of", _local(printer, instant), _utc(instant.copy()))


def of_time(printer: DuckPrinter, time: Expr) -> Expr:
    """time_timetz: with the zone that the session has at that time of today."""
    today = exp.Cast(this=_local(printer, function("now")), to=exp.DataType(this=exp.DataType.Type.DATE))
    return of_instant(printer, _local(printer, exp.Paren(this=exp.Add(this=today, expression=time))))


def moved(arguments: list[Expr], node: Call, negative: bool) -> Expr:
    """timetz and an interval, of which the time counts; a date and timetz, which make a moment."""
    left, right = arguments
    if node.type.name == "timestamptz":
        day, time = (left, right) if node.arguments[0].type.name == "date" else (right, left)
        return macro("ms_timetz_moment", day, time)
    time, span = (left, right) if is_zoned(node.arguments[0].type) else (right, left)
    return macro("ms_timetz_moved", time, exp.Neg(this=exp.Paren(this=span)) if negative else span)


def part(value: Expr, field: str) -> Expr:
    """extract() of a field of the zone, or of the epoch in microseconds; of others see ``ms_timetz_time``."""
    if field == "epoch":
        return macro("ms_timetz_utc", value)
    east = exp.Neg(this=macro("ms_timetz_west", value))
    unit = _ZONE_PARTS[field]
    hours = exp.Mod(this=exp.Paren(this=east), expression=exp.Literal.number(3600)) if unit == 60 else east
    return exp.IntDiv(this=exp.Paren(this=hours), expression=exp.Literal.number(unit))


def at_zone(otherwise: Build) -> Build:
    """timezone(): of timetz, the same instant with another zone."""

    def build(printer: Any, arguments: list[Expr], node: Call) -> Expr:
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


def cast(printer: DuckPrinter, argument: Expr, source: SqlType, target: SqlType) -> Expr:
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

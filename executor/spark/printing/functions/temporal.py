"""Dates and timestamps for Spark: arithmetic with days and constant intervals, extract, date_trunc and date_bin.

Owns: these builders of the allow-list. timestamptz is supported only where its time zone does not matter (comparison,
date_bin, intervals without months and days), since the zone is the view's and Spark's session has UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from catalog.values.errors import unsupported
from catalog.values.times.precision import EPOCH, unit_of
from catalog.values.types import SqlType
from executor.printing.nodes import Build, Expr, binary, function, operand
from executor.spark.printing.nodes import cast, once, refuse
from planner.algebra.nodes import Call, Cast, Literal

_TEMPORAL: Final = frozenset(("date", "time", "timestamp", "timestamptz", "interval"))
_DAY: Final = 86_400_000_000
#: Days since 1970, which must be PostgreSQL's: from 4713-11-24 BC to 5874897-12-31.
_DAY_OR_ERROR: Final = (
    "CASE WHEN {0} NOT BETWEEN -2440588L AND 2145042905L"
    " THEN CAST(RAISE_ERROR('22008:date out of range') AS BIGINT) ELSE {0} END"
)
#: Fields of a date or timestamp {0}. There is no year 0; dow counts from Sunday: 0 here, 1 in Spark.
_YEAR: Final = "YEAR({0})"
_FIELDS: Final[Mapping[str, str]] = {
    "millennium": f"IF({_YEAR} > 0, ({_YEAR} + 999) DIV 1000, -((1000 - {_YEAR}) DIV 1000))",
    "century": f"IF({_YEAR} > 0, ({_YEAR} + 99) DIV 100, -((100 - {_YEAR}) DIV 100))",
    "decade": f"FLOOR({_YEAR} / 10D)",
    "year": f"{_YEAR} - IF({_YEAR} < 1, 1, 0)",
    "isoyear": "EXTRACT(YEAROFWEEK FROM {0}) - IF(EXTRACT(YEAROFWEEK FROM {0}) < 1, 1, 0)",
    "quarter": "QUARTER({0})",
    "month": "MONTH({0})",
    "week": "EXTRACT(WEEK FROM {0})",
    "day": "DAY({0})",
    "doy": "EXTRACT(DOY FROM {0})",
    "dow": "DAYOFWEEK({0}) - 1",
    "isodow": "EXTRACT(DAYOFWEEK_ISO FROM {0})",
}
#: Those that a date has not, but for epoch.
_TIMES_OF_DAY: Final[Mapping[str, str]] = {
    "hour": "HOUR({0})",
    "minute": "MINUTE({0})",
    "second": "EXTRACT(SECOND FROM {0})",
    "milliseconds": "EXTRACT(SECOND FROM {0}) * 1000",
    "microseconds": "EXTRACT(SECOND FROM {0}) * 1000000",
    "epoch": "CAST(UNIX_MICROS(CAST({0} AS TIMESTAMP)) AS DECIMAL(19,0)) * CAST('0.000001' AS DECIMAL(6,6))",
}
_EPOCH_OF_DATE: Final = "UNIX_DATE({0}) * 86400L"
#: PostgreSQL's unit of date_trunc -> Spark's.
_TRUNCATED: Final[Mapping[str, str]] = {
    **{unit: unit for unit in ("second", "minute", "hour", "day", "week", "month", "quarter", "year")},
    "milliseconds": "millisecond",
    "microseconds": "microsecond",
}


#: A count {1} of microseconds since 2000 in whole units, halves away from zero, as timestamps are rounded.
_ROUNDED: Final = (
    "TIMESTAMP_MICROS({epoch}L + IF({count} < 0, -(({half}L - {count}) DIV {unit}L * {unit}L),"
    " ({count} + {half}L) DIV {unit}L * {unit}L))"
)


def rounded(dialect: object, value: Expr, node: Cast) -> Expr:
    """A timestamp of a cast's type with its digits."""
    if node.type.name not in ("timestamp", "timestamptz"):
        raise unsupported(f"a cast to {node.type}")
    count, unit = f"(UNIX_MICROS(CAST({{0}} AS TIMESTAMP)) - {EPOCH}L)", unit_of(node.type)
    pattern = _ROUNDED.format(epoch=EPOCH, count=count, half=unit // 2, unit=unit)
    found = once(dialect, [value], Call("", (node.argument,), node.type), pattern)
    return cast(found, "TIMESTAMP_NTZ") if node.type.name == "timestamp" else found


def is_temporal(kind: SqlType) -> bool:
    """Whether arithmetic on the type is this module's."""
    return kind.name in _TEMPORAL


def _interval(node: Call, index: int) -> tuple[int, int, int]:
    """Months, days and microseconds of a constant interval."""
    item = node.arguments[index]
    if isinstance(item, Literal) and item.type.name == "interval" and isinstance(item.value, tuple):
        months, days, microseconds = item.value
        return months, days, microseconds
    raise unsupported("interval that is not constant")


def add_interval(dialect: object, node: Call, arguments: list[Expr]) -> Expr:
    """date + days, date - days, date - date, and timestamps (or dates) moved by a constant interval."""
    left, right = (item.type.name for item in node.arguments)
    if (
        node.function == "add"
        and left in ("int2", "int4", "interval")
        and right in ("date", "timestamp", "timestamptz")
    ):
        swapped = Call("add", (node.arguments[1], node.arguments[0]), node.type)
        return add_interval(dialect, swapped, [arguments[1], arguments[0]])
    if node.function not in ("add", "sub"):
        raise refuse(node)
    match left, right:
        case ("date", "date") if node.function == "sub":
            return function("DATEDIFF", *arguments)
        case ("date", "int2" | "int4"):
            return _days_later(dialect, node, arguments)
        case ("date" | "timestamp" | "timestamptz", "interval"):
            return _moved(node, arguments[0], left)
        case _:
            raise refuse(node)


def _days_later(dialect: object, node: Call, arguments: list[Expr]) -> Expr:
    """A date and days: Spark's own functions go round beyond the last date."""
    day, days = function("UNIX_DATE", arguments[0]), cast(arguments[1], "BIGINT")
    moved = exp.Paren(this=binary(exp.Add if node.function == "add" else exp.Sub, day, days))
    return function("DATE_FROM_UNIX_DATE", cast(once(dialect, [moved], node, _DAY_OR_ERROR), "INT"))


def _moved(node: Call, value: Expr, kind: str) -> Expr:
    """Months first, then days, then the rest, as timestamp_pl_interval does."""
    months, days, microseconds = _interval(node, 1)
    if kind == "timestamptz" and (months or days):
        raise refuse(node)
    if kind == "date":
        value = cast(value, "TIMESTAMP_NTZ")
    sign = 1 if node.function == "add" else -1
    seconds, fraction = divmod(abs(microseconds), 1_000_000)
    minus = "-" if microseconds * sign < 0 else ""
    steps = [(f"INTERVAL '{months * sign}' MONTH", months), (f"INTERVAL '{days * sign}' DAY", days)]
    steps.append((f"INTERVAL '{minus}{seconds}.{fraction:06d}' SECOND", microseconds))
    for text, present in steps:
        if present:
            value = exp.Paren(this=binary(exp.Add, value, exp.Var(this=text)))
    return value


def _extract(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    source = node.arguments[1].type.name
    if source not in ("date", "timestamp"):
        raise refuse(node)
    return _field(dialect, arguments[1], node)


def _extract_in_utc(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    if node.arguments[1].type.name != "timestamptz":
        return _extract(dialect, arguments, node)
    return _field(dialect, cast(arguments[1], "TIMESTAMP_NTZ"), node)


def _field(dialect: object, value: Expr, node: Call) -> Expr:
    """A field of a date or a timestamp without time zone."""
    field, source = node.arguments
    name = str(field.value).lower() if isinstance(field, Literal) else ""
    is_date = source.type.name == "date"
    pattern = _FIELDS.get(name) or (_EPOCH_OF_DATE if is_date and name == "epoch" else _TIMES_OF_DAY.get(name))
    if pattern is None or node.type.name != "numeric" or (is_date and name in _TIMES_OF_DAY and name != "epoch"):
        raise unsupported(f"extract({name} from {source.type})")
    found = once(dialect, [value], Call("extract", (source,), node.type), pattern)
    return cast(found, f"DECIMAL({node.type.precision},{node.type.scale})")


def _date_trunc(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    """Spark's result is a TIMESTAMP; in UTC it is the same wall clock."""
    if node.arguments[1].type.name != "timestamp":
        raise unsupported(f"date_trunc({_unit(node)}, {node.arguments[1].type})")
    return cast(_truncated(arguments, node), "TIMESTAMP_NTZ")


def _date_trunc_in_utc(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    if node.arguments[1].type.name != "timestamptz" or len(arguments) > 2:
        return _date_trunc(dialect, arguments, node)
    return _truncated(arguments, node)


def _unit(node: Call) -> str:
    field = node.arguments[0]
    return str(field.value).lower() if isinstance(field, Literal) else ""


def _truncated(arguments: list[Expr], node: Call) -> Expr:
    if _unit(node) not in _TRUNCATED:
        raise unsupported(f"date_trunc({_unit(node)}, {node.arguments[1].type})")
    return function("DATE_TRUNC", exp.Var(this=f"'{_TRUNCATED[_unit(node)]}'"), arguments[1])


def _is_finite(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    """No date and no timestamp is infinite here."""
    if node.arguments[0].type.name not in ("date", "timestamp", "timestamptz"):
        raise refuse(node)
    return function("IF", exp.Is(this=arguments[0], expression=exp.null()), exp.null(), exp.true())


def _date_bin(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    """timestamp - (timestamp - origin) mod stride, in microseconds."""
    kind, stride = _binned(node)
    return _at(_bin(arguments, stride), kind)


def _hop_start(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    """date_bin, and a number of slides earlier."""
    step, _, time, origin, _ = node.arguments
    kind, slide = _binned(Call("date_bin", (step, time, origin), node.type))
    earlier = binary(exp.Mul, arguments[4], exp.Var(this=f"{slide}L"))
    return _at(binary(exp.Sub, _bin([arguments[0], *arguments[2:4]], slide), earlier), kind)


def _binned(node: Call) -> tuple[str, int]:
    """The type of the times, and the constant stride in microseconds."""
    months, days, microseconds = _interval(node, 0)
    stride = days * _DAY + microseconds
    kinds = {item.type.name for item in node.arguments[1:]}
    if months or stride <= 0 or len(kinds) != 1 or not kinds <= {"timestamp", "timestamptz"}:
        raise refuse(node)
    return kinds.pop(), stride


def _bin(arguments: list[Expr], stride: int) -> Expr:
    value, origin = (function("UNIX_MICROS", cast(item, "TIMESTAMP")) for item in arguments[1:])
    past = function("PMOD", binary(exp.Sub, value.copy(), origin), exp.Var(this=f"{stride}L"))
    return binary(exp.Sub, operand(value), past)


def _at(micros: Expr, kind: str) -> Expr:
    found = function("TIMESTAMP_MICROS", micros)
    return found if kind == "timestamptz" else cast(found, "TIMESTAMP_NTZ")


TEMPORAL: Final[Mapping[str, Build]] = {
    "extract": _extract,
    "date_trunc": _date_trunc,
    "date_bin": _date_bin,
    "hop_start": _hop_start,
    "isfinite": _is_finite,
}
#: What there is besides where the session's time zone is Spark's.
ZONED: Final[Mapping[str, Build]] = {"extract": _extract_in_utc, "date_trunc": _date_trunc_in_utc}

"""Dates and timestamps for Spark: arithmetic with days and constant intervals, extract, date_trunc and date_bin.

Owns: these builders of the allow-list. timestamptz appears only where its time zone does not matter (comparison,
date_bin, intervals without months and days): the zone is the view's, and Spark's session has UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from catalog.errors import unsupported
from catalog.types import SqlType
from executor.nodes import Build, Expr, binary, function, operand
from executor.spark.bound import let
from planner.expression import Call, ColumnRef, Literal

_TEMPORAL: Final = frozenset(("date", "time", "timestamp", "timestamptz", "interval"))
_DAY: Final = 86_400_000_000
#: Days since 1970, which must be PostgreSQL's: from 4713-11-24 BC to 5874897-12-31.
_DAY_OR_ERROR: Final = (
    "CASE WHEN {0} NOT BETWEEN -2440588L AND 2145042905L"
    " THEN CAST(RAISE_ERROR('22008:date out of range') AS BIGINT) ELSE {0} END"
)
#: PostgreSQL's field -> Spark's, and whether a date has it. dow counts from Sunday: 0 here, 1 in Spark.
_FIELDS: Final[Mapping[str, tuple[str, bool]]] = {
    "year": ("YEAR", True),
    "quarter": ("QUARTER", True),
    "month": ("MONTH", True),
    "week": ("WEEK", True),
    "day": ("DAY", True),
    "doy": ("DOY", True),
    "isodow": ("DAYOFWEEK_ISO", True),
    "hour": ("HOUR", False),
    "minute": ("MINUTE", False),
    "second": ("SECOND", False),
}
_TRUNCATED: Final = frozenset(("second", "minute", "hour", "day", "week", "month", "quarter", "year"))


def is_temporal(kind: SqlType) -> bool:
    """Whether arithmetic on the type is this module's."""
    return kind.name in _TEMPORAL


def _refuse(node: Call) -> Exception:
    return unsupported(f"{node.function}({', '.join(str(item.type) for item in node.arguments)})")


def _cast(value: Expr, name: str) -> Expr:
    return exp.Cast(this=value, to=exp.Var(this=name))


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
        raise _refuse(node)
    match left, right:
        case ("date", "date") if node.function == "sub":
            return function("DATEDIFF", *arguments)
        case ("date", "int2" | "int4"):
            return _days_later(dialect, node, arguments)
        case ("date" | "timestamp" | "timestamptz", "interval"):
            return _moved(node, arguments[0], left)
        case _:
            raise _refuse(node)


def _days_later(dialect: object, node: Call, arguments: list[Expr]) -> Expr:
    """A date and days: Spark's own functions go round beyond the last date."""
    day, days = function("UNIX_DATE", arguments[0]), _cast(arguments[1], "BIGINT")
    moved = _text(dialect, binary(exp.Add if node.function == "add" else exp.Sub, day, days))
    if all(isinstance(item, ColumnRef | Literal) for item in node.arguments):
        found = _DAY_OR_ERROR.format(moved)
    else:
        found = let({"d": moved}, _DAY_OR_ERROR.format("v.d"))
    return function("DATE_FROM_UNIX_DATE", _cast(exp.Var(this=found), "INT"))


def _moved(node: Call, value: Expr, kind: str) -> Expr:
    """Months first, then days, then the rest, as timestamp_pl_interval does."""
    months, days, microseconds = _interval(node, 1)
    if kind == "timestamptz" and (months or days):
        raise _refuse(node)
    if kind == "date":
        value = _cast(value, "TIMESTAMP_NTZ")
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
    field, source = node.arguments[0], node.arguments[1].type
    name = str(field.value).lower() if isinstance(field, Literal) else ""
    if source.name not in ("date", "timestamp") or node.type.name != "numeric":
        raise _refuse(node)
    kind = f"DECIMAL({node.type.precision},{node.type.scale})"
    if name == "dow":
        return _cast(exp.Sub(this=function("DAYOFWEEK", arguments[1]), expression=exp.Literal.number(1)), kind)
    if name not in _FIELDS or (source.name == "date" and not _FIELDS[name][1]):
        raise unsupported(f"extract({name} from {source})")
    return _cast(exp.Var(this=f"EXTRACT({_FIELDS[name][0]} FROM {_text(dialect, arguments[1])})"), kind)


def _text(dialect: object, value: Expr) -> str:
    generate = getattr(dialect, "generate")  # noqa: B009  (the builder's protocol leaves the dialect's type open)
    text: str = generate(value)
    return text


def _date_trunc(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    """Spark's result is a TIMESTAMP; in UTC it is the same wall clock."""
    field, source = node.arguments[0], node.arguments[1].type
    name = str(field.value).lower() if isinstance(field, Literal) else ""
    if source.name != "timestamp" or name not in _TRUNCATED:
        raise unsupported(f"date_trunc({name}, {source})")
    return _cast(function("DATE_TRUNC", exp.Var(this=f"'{name}'"), arguments[1]), "TIMESTAMP_NTZ")


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
        raise _refuse(node)
    return kinds.pop(), stride


def _bin(arguments: list[Expr], stride: int) -> Expr:
    value, origin = (function("UNIX_MICROS", _cast(item, "TIMESTAMP")) for item in arguments[1:])
    past = function("PMOD", binary(exp.Sub, value.copy(), origin), exp.Var(this=f"{stride}L"))
    return binary(exp.Sub, operand(value), past)


def _at(micros: Expr, kind: str) -> Expr:
    found = function("TIMESTAMP_MICROS", micros)
    return found if kind == "timestamptz" else _cast(found, "TIMESTAMP_NTZ")


TEMPORAL: Final[Mapping[str, Build]] = {
    "extract": _extract,
    "date_trunc": _date_trunc,
    "date_bin": _date_bin,
    "hop_start": _hop_start,
}

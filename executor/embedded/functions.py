"""The allow-list in DuckDB's SQL: every scalar function of ``planner.functions`` with PostgreSQL's meaning.

Owns: ``FUNCTIONS``, a table from canonical name to a builder of sqlglot nodes, and the exact arithmetic of numerics
(products, quotients, averages, variances) over the macros of ``macros.py``. Integer overflow, division by zero and roots of
negative numbers are errors of DuckDB's own (``engine`` sets error_on_division_by_zero), which ``errors.py`` translates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlglot import exp

from catalog.errors import SqlError, unsupported
from catalog.types import INT4, NUMERIC, QUOTIENT, TEXT, UNCONSTRAINED, SqlType
from executor.embedded.casts import FLOATS, INTEGERS, TEXTS, local, to_text
from executor.embedded.nodes import macro
from executor.printer import Build, Expr, binary, case, chain, function, operand, text
from planner.expression import Call, Literal

#: Decimals of a numeric whose squares still sum exactly within 38 digits; more must be zeros.
SQUARE_SCALE: Final = 6
#: Functions that take bytea.
BYTEA: Final = frozenset(
    ("eq", "ne", "lt", "le", "gt", "ge", "in", "is_null", "is_not_null", "is_distinct", "is_not_distinct", "coalesce", "nullif")
    + ("concat", "octet_length", "md5", "greatest", "least")
)


def _called(name: str, *arguments: Expr) -> Expr:
    """A function of DuckDB's, or one of our macros."""
    return macro(name, *arguments) if name.startswith("ms_") else function(name, *arguments)


def _cast(printer: Any, value: Expr, sql_type: SqlType) -> Expr:
    return exp.Cast(this=value, to=printer.type(sql_type))


def _named(name: str) -> Build:
    """A DuckDB function or macro of the same meaning and type."""
    return lambda printer, arguments, node: _called(name, *arguments)


def _retyped(name: str) -> Build:
    """A DuckDB function whose result is cast to the type that PostgreSQL gives it."""
    return lambda printer, arguments, node: _cast(printer, _called(name, *arguments), node.type)


def _compared(kind: type[Any]) -> Build:
    return lambda printer, arguments, node: binary(kind, arguments[0], arguments[1])


def _chained(kind: type[Any]) -> Build:
    return lambda printer, arguments, node: chain(kind, arguments)


def _types(node: Call) -> tuple[SqlType, SqlType]:
    return node.arguments[0].type, node.arguments[1].type


# -- arithmetic --------------------------------------------------------------------------------------------------------


def units(value: Expr, sql_type: SqlType, scale: int) -> Expr:
    """A number as a hugeint count of 10^-scale, where its own scale is at most that."""
    huge = exp.DataType(this=exp.DataType.Type.INT128)
    own = sql_type.scale if sql_type.name == "numeric" else 0
    result = exp.Cast(this=value, to=huge) if own == 0 else function("ms_units", value)
    return result if own == scale else function("ms_scaled", result, exp.Literal.number(scale - own))


def narrowed(value: Expr, sql_type: SqlType, scale: int) -> Expr:
    """The value with ``scale`` decimals; 22003 where it has more than zeros beyond them."""
    if sql_type.name != "numeric" or sql_type.scale <= scale:
        return value
    return macro(f"ms_narrow{scale}", value)


def _shown_scale(sql_type: SqlType) -> int:
    """PostgreSQL's display scale where the type tells it."""
    return 0 if sql_type.name != "numeric" or sql_type.modifiers in (UNCONSTRAINED, QUOTIENT) else sql_type.scale


def quotient(left: Expr, right: Expr, a: SqlType, b: SqlType, *, short: bool = False) -> Expr:
    """numeric / numeric at PostgreSQL's scale; ``short``: the divisor's units stay below 10^18."""
    scale = max(kind.scale if kind.name == "numeric" else 0 for kind in (a, b))
    shown = max(_shown_scale(a), _shown_scale(b))
    if b.name == "numeric":
        short = short or b.precision + scale - b.scale <= 18
    name = "ms_divide_short" if short else "ms_divide"
    scales = exp.Literal.number(scale), exp.Literal.number(min(shown, 20))
    return macro(name, units(left, a, scale), units(right, b, scale), *scales)


def average(total: Expr, count: Expr, argument: SqlType) -> Expr:
    """avg of integers or numerics from its sum and count; NULL over no rows."""
    summed = SqlType("numeric", (38, argument.scale)) if argument.name == "numeric" else SqlType("numeric", (38, 0))
    short = summed.scale <= 6  # counts below 10^12
    none = function("nullif", count, exp.Literal.number(0))
    return quotient(total, none, summed, SqlType("int8"), short=short)


def variance(name: str, count: Expr, total: Expr, squares: Expr, scale: int) -> Expr:
    """Exact variance or deviation from count and the units of sum (10^-scale) and sum of squares (10^-2 scale)."""
    called = "ms_variance" if name.startswith("var") else "ms_deviation"
    sample = exp.true() if name.endswith("samp") else exp.false()
    return macro(called, count, total, squares, exp.Literal.number(scale), sample)


def _add(kind: type[Any]) -> Build:
    """+ and -: numbers, and date and time arithmetic by the operands' types."""

    def build(printer: Any, arguments: list[Expr], node: Call) -> Expr:
        a, b = _types(node)
        left, right = arguments
        if node.type.name == "numeric" and printer.wide:
            left, right = (_cast(printer, side, SqlType("numeric", (38, node.type.scale))) for side in (left, right))
        if a.name == "timestamptz" and b.name == "interval":
            return _zoned(printer, kind, left, right)
        if b.name == "timestamptz" and a.name == "interval":
            return _zoned(printer, kind, right, left)
        if "time" in (a.name, b.name) and node.type.name == "timestamp":
            sides = ((left, a), (right, b))
            return binary(kind, *(_span(side) if item.name == "time" else _cast(printer, side, node.type) for side, item in sides))
        if a.name == b.name == "time":
            micros = [function("epoch_us", side) for side in (left, right)]
            return function("to_microseconds", binary(kind, *micros))
        result = binary(kind, left, right)
        return _cast(printer, result, node.type) if a.name == "date" and node.type.name in INTEGERS else result

    return build


def _span(time: Expr) -> Expr:
    """A time of day as an interval."""
    return function("to_microseconds", function("epoch_us", time))


def _zoned(printer: Any, kind: type[Any], moment: Expr, interval: Expr) -> Expr:
    """timestamptz +- interval: months and days by the local calendar, then the time as it passes."""
    if printer.timezone == "UTC":
        return local(printer, operand(binary(kind, local(printer, moment), interval)))
    day = local(printer, operand(binary(kind, local(printer, moment), macro("ms_interval_days", interval))))
    return binary(kind, day, macro("ms_interval_time", interval.copy()))


def _multiply(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    a, b = _types(node)
    left, right = arguments
    if node.type.name != "numeric":
        return _finite(binary(exp.Mul, left, right), node)
    scales = [kind.scale if kind.name == "numeric" else 0 for kind in (a, b)]
    if sum(scales) > node.type.scale:
        sides = [units(side, kind, own) for side, kind, own in ((left, a, scales[0]), (right, b, scales[1]))]
        assert node.type.scale == NUMERIC.scale, node.type
        return macro("ms_product18", *sides, *(exp.Literal.number(own) for own in scales))
    if printer.wide:
        left, right = (_cast(printer, side, SqlType("numeric", (38, own))) for side, own in zip((left, right), scales, strict=True))
    return binary(exp.Mul, left, right)


def _finite(value: Expr, node: Call) -> Expr:
    """Floats only overflow at extremes; PostgreSQL raises 22003 there."""
    return value


def _divide(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    a, b = _types(node)
    if node.type.name == "numeric":
        return quotient(arguments[0], arguments[1], a, b)
    return binary(exp.IntDiv if node.type.name in INTEGERS else exp.Div, *arguments)


def _absolute(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    return function("abs", *arguments)


def _rounded(name: str) -> Build:
    """round, trunc, ceil, floor: numeric keeps its declared result; float8's round is half to even."""

    def build(printer: Any, arguments: list[Expr], node: Call) -> Expr:
        if node.type.name in FLOATS:
            return function("round_even", arguments[0], exp.Literal.number(0)) if name == "round" else function(name, *arguments)
        return _cast(printer, function(name, *arguments), node.type)

    return build


def _float_only(name: str) -> Build:
    def build(printer: Any, arguments: list[Expr], node: Call) -> Expr:
        if node.type.name not in FLOATS:
            raise unsupported(f"{node.function}({node.arguments[0].type})", "cast the argument to double precision")
        return _called(name, *arguments)

    return build


# -- logic -------------------------------------------------------------------------------------------------------------


def _is_null(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    return exp.Is(this=operand(arguments[0]), expression=exp.null())


def _is_not_null(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    return exp.Not(this=exp.Paren(this=_is_null(printer, arguments, node)))


def _truth(default: bool, negated: bool) -> Build:
    def build(printer: Any, arguments: list[Expr], node: Call) -> Expr:
        known = function("coalesce", arguments[0], exp.true() if default else exp.false())
        return exp.Not(this=known) if negated else known

    return build


def _in(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    return exp.In(this=operand(arguments[0]), expressions=arguments[1:])


# -- text --------------------------------------------------------------------------------------------------------------


def _texts(printer: Any, arguments: list[Expr], node: Call) -> list[Expr]:
    return [to_text(printer, value, item.type) for value, item in zip(arguments, node.arguments, strict=True)]


def _shown(printer: Any, value: Expr, sql_type: SqlType) -> Expr:
    """A value by its output function, which for boolean is not its cast."""
    return function("left", _cast(printer, value, TEXT), exp.Literal.number(1)) if sql_type.name == "bool" else to_text(printer, value, sql_type)


def _concat(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    if node.type.element is not None:
        a, b = _types(node)
        name = "list_concat" if a.element and b.element else "list_append" if a.element else "list_prepend"
        return function(name, *arguments)
    return chain(exp.DPipe, arguments if node.type.name == "bytea" else _texts(printer, arguments, node))


def _concat_values(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    return function("concat", *(_shown(printer, value, item.type) for value, item in zip(arguments, node.arguments, strict=True)))


def _like(kind: type[Any]) -> Build:
    """LIKE; the escape is the backslash, named only where a pattern may hold one (DuckDB is faster without)."""

    def build(printer: Any, arguments: list[Expr], node: Call) -> Expr:
        pattern = node.arguments[1]
        match = kind(this=operand(arguments[0]), expression=operand(arguments[1]))
        if isinstance(pattern, Literal) and "\\" not in str(pattern.value):
            return match
        return exp.Escape(this=match, expression=text("\\"))

    return build


def _regex(options: str) -> Build:
    return lambda printer, arguments, node: function("regexp_matches", *arguments, text(options))


def _substring(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    if len(arguments) == 2:
        return function("substring", arguments[0], function("greatest", arguments[1], exp.Literal.number(1)))
    start, length = node.arguments[1:]
    if isinstance(start, Literal) and isinstance(length, Literal) and isinstance(start.value, int) and isinstance(length.value, int):
        if length.value < 0:
            raise SqlError("22011", "negative substring length not allowed")
        first = max(start.value, 1)
        count = max(start.value + length.value - first, 0)
        return function("substring", arguments[0], exp.Literal.number(first), exp.Literal.number(count))
    return macro("ms_substring", *arguments)


def _padded(name: str) -> Build:
    return lambda printer, arguments, node: _called(name, *(arguments if len(arguments) == 3 else [*arguments, text(" ")]))


def _trimmed(name: str) -> Build:
    return lambda printer, arguments, node: function(name, *(arguments if len(arguments) == 2 else [*arguments, text(" ")]))


def _octets(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    name = "octet_length" if node.arguments[0].type.name == "bytea" else "strlen"
    return _cast(printer, function(name, *arguments), node.type)


# -- dates and times -----------------------------------------------------------------------------------------------------

_PARTS: Final[Mapping[str, str]] = {
    **{name: name for name in ("year", "month", "day", "hour", "minute", "quarter", "week", "dow", "isodow", "doy")},
    **{name: name for name in ("decade", "century", "millennium", "isoyear")},
}


_LONG: Final = {"century": 100, "millennium": 1000}


def _field(node: Call) -> str:
    field = node.arguments[0]
    if not isinstance(field, Literal):
        raise unsupported(f"{node.function} with a field that is not a literal")
    return str(field.value).lower().rstrip("s") if str(field.value).lower() != "s" else "second"


def _extract(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    field, source, value = _field(node), node.arguments[1].type, arguments[1]
    if source.name == "timestamptz" and field != "epoch":
        value = local(printer, value)
    if source.name == "date" and field in ("epoch", "second", "microsecond", "millisecond", "hour", "minute"):
        value = _cast(printer, value, SqlType("timestamp"))
    if field in _PARTS:
        part = function("datepart", text(_PARTS[field]), value)
    elif field == "epoch":
        part = _shifted(_called("ms_interval_epoch" if source.name == "interval" else "epoch_us", value), 6)
    elif field in ("second", "millisecond"):
        part = _shifted(function("microsecond", value), 6 if field == "second" else 3)
    elif field == "microsecond":
        part = function("microsecond", value)
    else:
        raise unsupported(f"extract({field})")
    return _cast(printer, part, node.type)


def _shifted(micros: Expr, digits: int) -> Expr:
    """micros * 10^-digits as an exact decimal."""
    whole = SqlType("numeric", (19, 0))
    unit = exp.Cast(this=text("0." + "0" * (digits - 1) + "1"), to=_sized(digits, digits))
    return exp.Mul(this=exp.Cast(this=micros, to=_sized(*whole.modifiers)), expression=unit)


def _sized(precision: int, scale: int) -> Expr:
    sizes = [exp.DataTypeParam(this=exp.Literal.number(size)) for size in (precision, scale)]
    return exp.DataType(this=exp.DataType.Type.DECIMAL, expressions=sizes)


def _date_trunc(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    field, source, value = _field(node), node.arguments[1].type, arguments[1]
    if source.name == "timestamptz":
        value = local(printer, value)
    result = function("date_trunc", text(field), value)
    if field in _LONG:  # the first century began with the year 1
        place = exp.Mod(this=exp.Paren(this=exp.Sub(this=function("year", value.copy()), expression=exp.Literal.number(1))), expression=exp.Literal.number(_LONG[field]))
        result = exp.Sub(this=function("date_trunc", text("year"), value), expression=function("to_years", _cast(printer, place, INT4)))
    return local(printer, result) if source.name == "timestamptz" else _cast(printer, result, node.type)


def _date_bin(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    return macro("ms_date_bin", *arguments)


# -- finalisers ----------------------------------------------------------------------------------------------------------


def _average(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    total, count = arguments
    if node.type.name in FLOATS:
        divisor = _cast(printer, function("nullif", count, exp.Literal.number(0)), SqlType("float8"))
        return binary(exp.Div, total, divisor)
    return average(total, count, node.arguments[0].type)


def _variance(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    kind = node.arguments[0]
    assert isinstance(kind, Literal)
    name = str(kind.value)
    _, count, total, squares = arguments
    if node.type.name in FLOATS:
        flags = exp.true() if name.endswith("samp") else exp.false()
        value = macro("ms_float_variance", count, total, squares, flags)
        return value if name.startswith("var") else function("sqrt", value)
    a, b = node.arguments[2].type, node.arguments[3].type
    scale = min(a.scale if a.name == "numeric" else 0, SQUARE_SCALE)
    summed = SqlType("numeric", (38, scale))
    squared = SqlType("numeric", (38, min(b.scale, 2 * scale) if b.name == "numeric" else 0))
    left = units(narrowed(total, a, scale), summed if a.name == "numeric" else a, scale)
    right = units(narrowed(squares, b, 2 * scale), squared if b.name == "numeric" else b, 2 * scale)
    return variance(name, count, left, right, scale)


def _error(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    state, message = node.arguments
    assert isinstance(state, Literal)
    assert isinstance(message, Literal)
    return _cast(printer, function("error", text(f"!{state.value}!{message.value}")), node.type)


FUNCTIONS: Final[Mapping[str, Build]] = {
    "add": _add(exp.Add),
    "sub": _add(exp.Sub),
    "mul": _multiply,
    "div": _divide,
    "mod": _compared(exp.Mod),
    "eq": _compared(exp.EQ),
    "ne": _compared(exp.NEQ),
    "lt": _compared(exp.LT),
    "le": _compared(exp.LTE),
    "gt": _compared(exp.GT),
    "ge": _compared(exp.GTE),
    "and": _chained(exp.And),
    "or": _chained(exp.Or),
    "concat": _concat,
    "like": _like(exp.Like),
    "ilike": _like(exp.ILike),
    "regex_match": _regex("s"),
    "regex_imatch": _regex("is"),
    "is_distinct": _compared(exp.NullSafeNEQ),
    "is_not_distinct": _compared(exp.NullSafeEQ),
    "not": lambda printer, arguments, node: exp.Not(this=operand(arguments[0])),
    "neg": lambda printer, arguments, node: _cast(printer, exp.Neg(this=operand(arguments[0])), node.type),
    "is_null": _is_null,
    "is_not_null": _is_not_null,
    "is_true": _truth(False, False),
    "is_false": _truth(True, True),
    "is_not_true": _truth(False, True),
    "is_not_false": _truth(True, False),
    "in": _in,
    "coalesce": _named("coalesce"),
    "nullif": _named("nullif"),
    "greatest": _named("greatest"),
    "least": _named("least"),
    "abs": _absolute,
    "sign": _retyped("sign"),
    "round": _rounded("round"),
    "trunc": _rounded("trunc"),
    "ceil": _rounded("ceil"),
    "floor": _rounded("floor"),
    "sqrt": _float_only("sqrt"),
    "power": _float_only("ms_power"),
    "exp": _float_only("ms_exp"),
    "ln": _float_only("ln"),
    "log": _float_only("log10"),
    "lower": _named("lower"),
    "upper": _named("ms_upper"),
    "initcap": _named("ms_initcap"),
    "char_length": _retyped("length"),
    "octet_length": _octets,
    "substring": _substring,
    "position": _retyped("strpos"),
    "btrim": _trimmed("trim"),
    "ltrim": _trimmed("ltrim"),
    "rtrim": _trimmed("rtrim"),
    "replace": _named("replace"),
    "left": _named("left"),
    "right": _named("right"),
    "lpad": _padded("ms_lpad"),
    "rpad": _padded("ms_rpad"),
    "repeat": _named("repeat"),
    "reverse": _named("reverse"),
    "split_part": _named("ms_split_part"),
    "starts_with": _named("starts_with"),
    "ascii": _named("ascii"),
    "chr": _named("ms_chr"),
    "md5": _named("md5"),
    "concat_values": _concat_values,
    "extract": _extract,
    "date_trunc": _date_trunc,
    "date_bin": _date_bin,
    "make_date": _named("make_date"),
    "random": _named("random"),
    "gen_random_uuid": _retyped("uuid"),
    "clock_timestamp": _named("now"),
    "avg_final": _average,
    "variance_final": _variance,
    "error": _error,
}

__all__ = ["BYTEA", "FUNCTIONS", "SQUARE_SCALE", "TEXTS", "average", "case", "narrowed", "quotient", "units", "variance"]

"""Numbers with PostgreSQL's results: exact numerics, and the operators that numbers share with dates and times.

Owns: products, quotients, averages and variances of numerics over the macros of ``numeric_macros``; rounding; + - * /.
DuckDB itself raises for integer overflow, division by zero and roots of negative numbers; ``errors.py`` translates
these errors.
"""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from catalog.values.types import LARGE_QUOTIENT, NUMERIC, QUOTIENT, SPREAD, UNCONSTRAINED, SqlType
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import FLOATS, INTEGERS, called, cast_to, local, macro
from executor.embedded.printing.numbers import floats
from executor.embedded.printing.times import timetz
from executor.printing.nodes import Build, Expr, binary, function, number, operand, text
from planner.algebra.nodes import Call, Literal, Scalar

#: The most decimals of a numeric whose squares sum exactly within 38 digits; further decimals must be zeros.
SQUARE_SCALE: Final = 6


def _types(node: Call) -> tuple[SqlType, SqlType]:
    return node.arguments[0].type, node.arguments[1].type


def units(value: Expr, sql_type: SqlType, scale: int) -> Expr:
    """A number as a hugeint count of 10^-scale, for numbers whose own scale is at most that."""
    huge = exp.DataType(this=exp.DataType.Type.INT128)
    own = sql_type.scale if sql_type.name == "numeric" else 0
    result = exp.Cast(this=value, to=huge) if own == 0 else function("ms_units", value)
    return result if own == scale else function("ms_scaled", result, exp.Literal.number(scale - own))


def narrowed(value: Expr, sql_type: SqlType, scale: int) -> Expr:
    """The value with ``scale`` decimals; 22003 if further decimals are not zeros."""
    if sql_type.name != "numeric" or sql_type.scale <= scale:
        return value
    return macro(f"ms_narrow{scale}", value)


def _shown_scale(sql_type: SqlType) -> int:
    """PostgreSQL's display scale, if the type determines it."""
    return 0 if sql_type.name != "numeric" or sql_type.is_loose else sql_type.scale


def quotient(
    left: Expr,
    right: Expr,
    a: SqlType,
    b: SqlType,
    *,
    short: bool = False,
    least: Expr | None = None,
    large: bool = False,
) -> Expr:
    """numeric / numeric at PostgreSQL's scale. ``short``: the divisor's units stay below 10^18. ``least``: the least
    number of decimals of the result, if the types do not determine it. ``large``: the result is a
    ``LARGE_QUOTIENT``."""
    scale = _common_scale(a, b)
    if least is None:
        least = exp.Literal.number(min(max(_shown_scale(a), _shown_scale(b)), QUOTIENT[1]))
    if b.name == "numeric":
        short = short or b.precision + scale - b.scale <= 18
    name = "ms_divide_large" if large else "ms_divide_short" if short else "ms_divide"
    return macro(name, units(left, a, scale), units(right, b, scale), exp.Literal.number(scale), least)


def _common_scale(a: SqlType, b: SqlType) -> int:
    return max(kind.scale if kind.name == "numeric" else 0 for kind in (a, b))


def divide_scaled(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """A quotient of numbers whose display scales differ by row."""
    left, right, least = arguments
    return quotient(left, right, *_types(node), least=function("coalesce", least, number(0)))


def quotient_scale(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """The display scale of a quotient."""
    left, right, least = arguments
    a, b = _types(node)
    scale = _common_scale(a, b)
    scales = exp.Literal.number(scale), function("coalesce", least, number(0))
    return function("quotient_decimals", units(left, a, scale), units(right, b, scale), *scales)


def own_text(digits: Expr, source: SqlType) -> Expr:
    """A numeric, with all stored digits, as its type shows it (``protocol.values.numbers.numeric_text``)."""
    if not source.is_loose:
        return digits
    if source.modifiers == UNCONSTRAINED:
        return macro("ms_trim_zeros", digits)
    if source.modifiers == LARGE_QUOTIENT:
        return macro("ms_quotient_text", digits)
    padded = function("quotient_shown", digits, exp.Cast(this=exp.null(), to=exp.DataType(this=exp.DataType.Type.INT)))
    if source.modifiers != SPREAD:
        return padded
    is_zero = exp.EQ(this=macro("ms_trim_zeros", digits.copy()), expression=text("0"))
    return exp.Case(ifs=[exp.If(this=is_zero, true=text("0"))], default=padded)


def is_large(kind: SqlType) -> bool:
    """Whether a quotient may have more digits before the point than others."""
    return kind.name == "numeric" and kind.modifiers == LARGE_QUOTIENT


def average(total: Expr, count: Expr, argument: SqlType, large: bool = False) -> Expr:
    """avg of integers or numerics from its sum and count; NULL over no rows."""
    summed = SqlType("numeric", (38, argument.scale)) if argument.name == "numeric" else SqlType("numeric", (38, 0))
    short = summed.scale <= 6  # counts stay below 10^12
    none = function("nullif", count, exp.Literal.number(0))
    return quotient(total, none, summed, SqlType("int8"), short=short, large=large)


def variance(name: str, count: Expr, total: Expr, squares: Expr, scale: int) -> Expr:
    """The exact variance or deviation from the count, the sum (in units of 10^-scale) and the sum of squares (10^-2
    scale)."""
    called = "ms_variance" if name.startswith("var") else "ms_deviation"
    sample = exp.true() if name.endswith("samp") else exp.false()
    return macro(called, count, total, squares, exp.Literal.number(scale), sample)


def add(kind: type[Any]) -> Build:
    """+ and - of numbers, and date and time arithmetic, by the operands' types."""

    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        a, b = _types(node)
        left, right = arguments
        if a == b == node.type and a.name in FLOATS:
            return floats.operation(printer, arguments, node)
        if "timetz" in (a.name, b.name):
            return timetz.moved(arguments, node, kind is exp.Sub)
        if node.type.name == "numeric" and printer.wide:
            left, right = (cast_to(printer, side, SqlType("numeric", (38, node.type.scale))) for side in (left, right))
        if a.name == "timestamptz" and b.name == "interval":
            return _zoned(printer, kind, left, right, node.arguments[1])
        if b.name == "timestamptz" and a.name == "interval":
            return _zoned(printer, kind, right, left, node.arguments[0])
        if "time" in (a.name, b.name) and node.type.name == "timestamp":
            sides = ((left, a), (right, b))
            return binary(
                kind,
                *(_span(side) if item.name == "time" else cast_to(printer, side, node.type) for side, item in sides),
            )
        if a.name == b.name == "time":
            micros = [function("epoch_us", side) for side in (left, right)]
            return function("to_microseconds", binary(kind, *micros))
        if a.name == b.name == "date":
            return macro("ms_days", left, right)
        result = binary(kind, left, right)
        if node.type.name == "date":
            return macro("ms_date", result)
        return result

    return build


def _span(time: Expr) -> Expr:
    """A time of day as an interval."""
    return function("to_microseconds", function("epoch_us", time))


def _zoned(printer: EntryPoints, kind: type[Any], moment: Expr, interval: Expr, written: Scalar) -> Expr:
    """timestamptz +- interval: months and days by the local calendar, then the time as elapsed time.

    Without months and days the local calendar is not used, since it would move an instant in a repeated hour to the
    hour's second occurrence.
    """
    if printer.timezone == "UTC":
        return local(printer, operand(binary(kind, local(printer, moment), interval)))
    constant = written.value if isinstance(written, Literal) else None
    if isinstance(constant, tuple) and not any(constant[:2]):
        return binary(kind, moment, interval)
    day = local(printer, operand(binary(kind, local(printer, moment), macro("ms_interval_days", interval))))
    if not isinstance(constant, tuple):
        branch = exp.If(this=macro("ms_interval_is_time", interval.copy()), true=moment.copy())
        day = exp.Paren(this=exp.Case(ifs=[branch], default=day))
    return binary(kind, day, macro("ms_interval_time", interval.copy()))


def multiply(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    a, b = _types(node)
    left, right = arguments
    if a == b == node.type and a.name in FLOATS:
        return floats.operation(printer, arguments, node)
    if node.type.name != "numeric":
        return binary(exp.Mul, left, right)
    scales = [kind.scale if kind.name == "numeric" else 0 for kind in (a, b)]
    if sum(scales) > node.type.scale:
        sides = [units(side, kind, own) for side, kind, own in ((left, a, scales[0]), (right, b, scales[1]))]
        assert node.type.scale == NUMERIC.scale, node.type
        return macro("ms_product18", *sides, *(exp.Literal.number(own) for own in scales))
    if printer.wide:
        left, right = (
            cast_to(printer, side, SqlType("numeric", (38, own)))
            for side, own in zip((left, right), scales, strict=True)
        )
    return binary(exp.Mul, left, right)


def divide(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    a, b = _types(node)
    if node.type.name == "numeric":
        return quotient(arguments[0], arguments[1], a, b, large=is_large(node.type))
    if a == b == node.type and a.name in FLOATS:
        return floats.operation(printer, arguments, node)
    return binary(exp.IntDiv if node.type.name in INTEGERS else exp.Div, *arguments)


def remainder(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """The remainder; for integers 0 for a division by -1, which in DuckDB overflows for the least integer."""
    divisor = node.arguments[1]
    if node.type.name not in INTEGERS or (isinstance(divisor, Literal) and divisor.value != -1):
        return binary(exp.Mod, *arguments)
    return macro("ms_remainder", *arguments)


def rounded(name: str) -> Build:
    """round, trunc, ceil, floor: numeric keeps its declared result type; for float8, halves round to even."""

    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        if node.type.name in FLOATS:
            return (
                function("round_even", arguments[0], exp.Literal.number(0))
                if name == "round"
                else function(name, *arguments)
            )
        return cast_to(printer, function(name, *arguments), node.type)

    return build


def transcendental(name: str) -> Build:
    """exp, ln, log and power: floats by DuckDB's functions, numerics with PostgreSQL's digits."""

    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        if node.type.name in FLOATS:
            return called(name, *arguments)
        shown = max(_shown_scale(item.type) for item in node.arguments)
        suffix = "_base" if node.function == "log" and len(arguments) == 2 else ""
        return function(f"num_{node.function}{suffix}", *arguments, exp.Literal.number(shown))

    return build


def transcendental_named(ending: str) -> Build:
    """The function that the first argument names, with at least the decimals that the others show; or its result's
    display scale."""

    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        _, *values, least = arguments
        name = node.arguments[0]
        assert isinstance(name, Literal)
        suffix = "_base" if name.value == "log" and len(values) == 2 else ""
        return function(f"num_{name.value}{suffix}{ending}", *values, function("coalesce", least, number(0)))

    return build


def of_integers(name: str) -> Build:
    """gcd and lcm; DuckDB has them for integers only."""

    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        return cast_to(printer, function(name if node.type.name in INTEGERS else f"num_{name}", *arguments), node.type)

    return build


def scale(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """A number's display scale; ``min_scale``: without trailing zeros."""
    decimals = function("split_part", printer.to_text(arguments[0], node.arguments[0].type), text("."), number(2))
    if node.function == "min_scale":
        decimals = function("rtrim", decimals, text("0"))
    return cast_to(printer, function("length", decimals), node.type)


def average_final(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    total, count = arguments
    if node.type.name in FLOATS:
        divisor = cast_to(printer, function("nullif", count, exp.Literal.number(0)), SqlType("float8"))
        return binary(exp.Div, total, divisor)
    return average(total, count, node.arguments[0].type, is_large(node.type))


def variance_final(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
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


def spread_final(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """A statistic of a spread; the first argument is its name."""
    kind = node.arguments[0]
    assert isinstance(kind, Literal)
    return macro(f"ms_spread_of_{kind.value}", arguments[1])


def square_root(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """The square root: of a numeric at PostgreSQL's scale, of a float by DuckDB's function."""
    kind = node.arguments[0].type
    if node.type.name in FLOATS:
        return called("sqrt", *arguments)
    scale = exp.Literal.number(kind.scale if kind.name == "numeric" else 0)
    return macro("ms_sqrt", arguments[0], scale, exp.Literal.number(_shown_scale(kind)))


def _alike(arguments: list[Expr], node: Call) -> list[Expr]:
    """Numerics as units of a common scale."""
    scale = max(item.type.scale for item in node.arguments if item.type.name == "numeric")
    return [units(value, item.type, scale) for value, item in zip(arguments, node.arguments, strict=True)]


def whole_quotient(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    return cast_to(printer, macro("ms_whole_quotient", *_alike(arguments, node)), node.type)


def width_bucket(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    if node.arguments[0].type.name in FLOATS:
        return cast_to(printer, macro("ms_bucket_float", *arguments), node.type)
    bounds = Call(node.function, node.arguments[:3], node.type)
    return cast_to(printer, macro("ms_bucket", *_alike(arguments[:3], bounds), arguments[3]), node.type)


_BITS: Final = {"int2": 16, "int4": 32, "int8": 64}


def shifted(name: str) -> Build:
    """<< and >>. Like PostgreSQL's C code, only the lowest five or six bits of the count are used."""

    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        bits = _BITS[node.type.name]
        sizes = [bits] if name.endswith("left") else []
        result = macro(name, *arguments, *map(exp.Literal.number, (*sizes, 63 if bits == 64 else 31)))
        return cast_to(printer, result, node.type)

    return build


def to_hex(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """Lower-case hexadecimal digits of the two's complement in the argument's width."""
    value = cast_to(printer, arguments[0], SqlType("int8"))
    if node.arguments[0].type.name != "int8":
        value = binary(exp.BitwiseAnd, value, exp.Literal.number(0xFFFFFFFF))
    return function("lower", function("to_hex", value))

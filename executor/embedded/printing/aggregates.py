"""Aggregates in DuckDB's SQL.

Owns: ``AGGREGATES``, by canonical name, each with PostgreSQL's result where DuckDB's is another: exact averages and
variances, order, NULLs and empty groups of ordered sets, documents, and statistics of pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp

from catalog.values.errors import unsupported
from catalog.values.types import MULTIRANGES, SqlType
from executor.embedded.printing.composites import multiranges
from executor.embedded.printing.composites.documents import keyed_value, sort_key
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import macro
from executor.embedded.printing.numbers import arithmetic
from executor.printing.nodes import Expr, chain, function, identifier, operand, text
from planner.algebra.nodes import AggregateCall, Cast, ColumnRef, Literal, Parameter, Scalar
from planner.lowering.documents import comes_on_lines, is_row


class Surroundings:
    """The parts of an aggregate call around its arguments: DISTINCT, FILTER, ORDER BY, and OVER for a window call."""

    def __init__(self, distinct: bool, where: Expr | None, order: list[Expr], over: Expr | None = None) -> None:
        self.distinct = distinct
        self.where = where
        self.order = order
        self.over = over

    def as_a_set(self) -> Surroundings:
        """The same parts without DISTINCT and ORDER BY, for an aggregate that ignores order and repetition of its
        values."""
        return Surroundings(False, self.where, [], self.over)

    def call(self, name: str, *arguments: Expr, where: Expr | None = None) -> Expr:
        """name(DISTINCT arguments ORDER BY ...) FILTER (...) OVER (...)."""
        items = list(arguments)
        if self.distinct:
            items = [exp.Distinct(expressions=[items[0]]), *items[1:]]
        if self.order:
            items[-1] = exp.Order(this=items[-1], expressions=self.order)
        conditions = [operand(item.copy()) for item in (self.where, where) if item is not None]
        result = function(name, *items)
        if conditions:
            both = conditions[0] if len(conditions) == 1 else exp.And(this=conditions[0], expression=conditions[1])
            result = exp.Filter(this=result, expression=exp.Where(this=both))
        if self.over is None:
            return result
        over = self.over.copy()
        over.set("this", result)
        return over


Aggregation = Callable[[Any, AggregateCall, Surroundings, list[Expr]], Expr]


def _count(_: Any, __: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    return around.call("count", *(arguments or [exp.Star()]))


def _plain(_: Any, node: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    return around.call(node.function, *arguments)


def _bits(_: Any, node: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    """A bitwise aggregate of integers, or of bit strings, which are texts of digits."""
    if node.type.name != "bit":
        return around.call(node.function, *arguments)
    return macro("ms_bit_text", around.call(node.function, macro("ms_text_bit", arguments[0])))


def _union(_: Any, node: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    """range_agg: the union of ranges."""
    return _united(around, arguments[0], node.arguments[0].type)


def _united(around: Surroundings, argument: Expr, kind: SqlType) -> Expr:
    around = around.as_a_set()
    return multiranges.united_digits(around.call("string_agg", function("hex", argument), text("")), kind)


def _intersection(_: Any, node: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    """The range above all lower cuts and below all upper ones; the cuts of an empty range are below all others."""
    if (kind := node.arguments[0].type).name in MULTIRANGES:
        return multiranges.complement(_united(around, multiranges.complement(arguments[0], kind), kind), kind)
    around = around.as_a_set()
    lower = around.call("max", macro("ms_range_lower_cut", arguments[0]))
    upper = around.call("min", macro("ms_range_upper_cut", arguments[0].copy()))
    none = macro("ms_range_none", around.call("min", arguments[0].copy()))
    return macro("ms_range_between", lower, upper, none)


def _beside(_: Any, node: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    """min_by and max_by: the value beside the extreme one, also if that value is NULL."""
    return around.call({"min_by": "arg_min_null", "max_by": "arg_max_null"}[node.function], *arguments)


def _rows(_: Any, node: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    """The given number of least or greatest rows, in order."""
    return around.call(node.function.removesuffix("_rows"), *arguments)


def _merged_rows(_: Any, node: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    """Merges results of ``_rows``."""
    rows, count = arguments
    order = "list_sort" if node.function == "merged_min_rows" else "list_reverse_sort"
    together = function(order, function("flatten", around.call("list", rows)))
    return function("list_slice", together, exp.Literal.number(1), count)


def _list(_: Any, node: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    """string_agg and array_agg; distinct values are sorted, as in PostgreSQL."""
    if node.type.name == "bytea":
        digits = [function("hex", argument) for argument in arguments]
        return function("unhex", _delimited(node, around, digits))
    if node.function == "string_agg" and not isinstance(node.arguments[1], Literal | Parameter):
        return _delimited(node, around, arguments)
    if around.distinct and not around.order:
        key = sort_key(arguments[0].copy(), node.arguments[0].type)
        around.order = [exp.Ordered(this=key, desc=False, nulls_first=False)]
    return around.call("list" if node.function == "array_agg" else node.function, *arguments)


def _delimited(node: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    """string_agg() with each value's own delimiter before it, except before the first."""
    if around.distinct:
        raise unsupported("string_agg(DISTINCT) with a computed delimiter", "Give the delimiter as a constant.")
    value, delimiter = arguments
    fields = (("v", value), ("d", function("coalesce", delimiter, text(""))))
    pair = exp.Struct(expressions=[exp.PropertyEQ(this=identifier(name), expression=part) for name, part in fields])
    present = exp.Not(this=exp.Paren(this=exp.Is(this=operand(value.copy()), expression=exp.null())))
    return macro("ms_delimited", around.call("list", pair, where=present))


def _documents(_: Any, node: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    """json_agg and json_object_agg over documents; rows and arrays are placed one to a line."""
    item = node.arguments[-1]
    if len(arguments) == 1 and node.type.name == "json" and comes_on_lines(item) and not is_row(item):
        return operand(
            chain(exp.DPipe, [text("["), macro("ms_json_lines", around.call("list", *arguments)), text("]")])
        )
    if len(arguments) == 1:
        (opening, closing), items = "[]", arguments[0]
    else:
        opening, closing = "{ ", " }"
        items = operand(chain(exp.DPipe, [function("doc_key", arguments[0]), text(" : "), operand(arguments[1])]))
    separator = text(", \n " if is_row(item) and len(arguments) == 1 else ", ")
    whole = chain(exp.DPipe, [text(opening), _joined(around, items, separator), text(closing)])
    return function("doc_jsonb", whole) if node.type.name == "jsonb" else operand(whole)


def _joined(around: Surroundings, items: Expr, separator: Expr) -> Expr:
    if around.order or around.over is not None:
        return function("array_to_string", around.call("list", items), separator)
    return around.call("string_agg", items, separator)


def _sum(printer: EntryPoints, node: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    """DuckDB sums integers as hugeints and decimals with 38 digits, both with overflow checks; for intervals, the three
    parts."""
    kind = node.type.name
    if kind == "interval":
        if around.distinct:
            return macro("ms_interval_sum", around.call("list", *arguments))
        parts = [function(f"ms_interval_{part}", arguments[0].copy()) for part in ("months", "day", "micros")]
        return function("ms_interval_total", *(around.call("sum", part) for part in parts))
    result = around.call("sum", *arguments)
    if kind == "float8" or (kind == "numeric" and node.arguments[0].type.name == "numeric" and not printer.wide):
        return result
    return exp.Cast(this=result, to=printer.type(node.type))


def _avg(printer: EntryPoints, node: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    argument = node.arguments[0].type
    if node.type.name == "interval":
        count = exp.Cast(this=around.call("count", arguments[0].copy()), to=exp.DataType(this=exp.DataType.Type.DOUBLE))
        return exp.Div(
            this=_sum(printer, node, around, arguments), expression=function("nullif", count, exp.Literal.number(0))
        )
    if node.type.name != "numeric":
        return around.call("avg", *arguments)
    total = around.call("sum", arguments[0])
    count = around.call("count", arguments[0].copy())
    return arithmetic.average(total, count, argument, arithmetic.is_large(node.type))


def _variance(_: Any, node: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    """Exact over integers and numerics: computed from count, sum and sum of squares in hugeint units."""
    argument = node.arguments[0].type
    if node.type.name != "numeric":
        return _float_variance(node, around, *arguments)
    scale = min(argument.scale if argument.name == "numeric" else 0, arithmetic.SQUARE_SCALE)
    narrow = SqlType("numeric", (38, scale)) if argument.name == "numeric" else argument
    units = arithmetic.units(arithmetic.narrowed(arguments[0], argument, scale), narrow, scale)
    squares = exp.Mul(this=units.copy(), expression=units.copy())
    total = around.call("sum", units)
    if around.distinct:  # x and -x have equal squares
        zero = exp.Literal.number(0)
        low = around.call("sum", squares.copy(), where=exp.LT(this=units.copy(), expression=zero))
        high = around.call("sum", squares, where=exp.GTE(this=units.copy(), expression=zero.copy()))
        squared: Expr = exp.Add(
            this=function("coalesce", low, exp.Literal.number(0)),
            expression=function("coalesce", high, exp.Literal.number(0)),
        )
    else:
        squared = around.call("sum", squares)
    return arithmetic.variance(node.function, around.call("count", arguments[0].copy()), total, squared, scale)


def _float_variance(node: AggregateCall, around: Surroundings, value: Expr) -> Expr:
    """For a single infinite value, DuckDB's variance is zero; PostgreSQL's is NaN (float8_accum)."""
    name = node.function
    if around.distinct or not _is_read(node.arguments[0]):
        result = around.call(name, value)
    else:
        result = macro(f"ms_{name}_of", around.call("count", value.copy()), _squares(node, around, value))
    if name.endswith("samp"):
        return result
    return macro("ms_spread_of_one", around.call("count", value.copy()), around.call("max", value.copy()), result)


def _is_read(scalar: Scalar) -> bool:
    """Whether a value is a column, in whatever type: writing it several times then costs nothing."""
    while isinstance(scalar, Cast):
        scalar = scalar.argument
    return isinstance(scalar, ColumnRef)


def _squares(node: AggregateCall, around: Surroundings, value: Expr) -> Expr:
    """The sum of squared distances from the mean; NULL for no values.

    DuckDB keeps a running mean, which far from zero is rounded to more than one value's contribution. So x = h + r: the
    whole part h is summed in integers without loss. h is 0 if x is near enough to zero, or too large to square:

        sum (x - mean)^2 = sum (h - mean h)^2 + 2 n covar_pop(h, r) + n var_pop(r)

    A computed argument would be evaluated again for each of these terms, so for it the running mean is used.
    """
    if not _is_read(node.arguments[0]):
        return exp.Mul(this=around.call("var_pop", value.copy()), expression=around.call("count", value.copy()))
    whole, rest = macro("ms_whole_part", value.copy()), macro("ms_beside_whole", value.copy())
    square = exp.Mul(this=exp.Cast(this=whole.copy(), to=exp.DataType.build("INT128")), expression=whole.copy())
    return macro(
        "ms_squares",
        around.call("count", value.copy()),
        around.call("sum", whole),
        around.call("sum", square),
        around.call("covar_pop", whole.copy(), rest),
        around.call("var_pop", rest.copy()),
    )


def _regression(_: Any, node: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    """Computed from the sums of squares, as in PostgreSQL's final functions (float.c)."""

    def part(name: str) -> Expr:
        return around.call(name, *(item.copy() for item in arguments))

    name = node.function
    if name in ("regr_avgx", "regr_avgy", "regr_sxx", "regr_sxy", "regr_syy", "covar_pop"):
        return part(name)
    if name == "covar_samp":
        return macro("ms_covar_samp", part("regr_sxy"), part("regr_count"))
    sums = [part("regr_sxx"), part("regr_syy"), part("regr_sxy")]
    if name == "regr_intercept":
        sums += [part("regr_avgx"), part("regr_avgy")]
    return macro(f"ms_{name}", *sums)


def _spread(_: Any, node: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    (value,) = arguments
    count = around.call("count", value)
    return macro("ms_spread", count, around.call("sum", value.copy()), _squares(node, around, value))


def _paired_spread(_: Any, __: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    def part(name: str) -> Expr:
        return around.call(name, *(item.copy() for item in arguments))

    sums = [part(f"regr_{name}") for name in ("avgx", "sxx", "avgy", "syy", "sxy")]
    return macro("ms_paired_spread", part("regr_count"), *sums)


def _merged_spread(_: Any, node: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    """Merges spreads; states without values do not count."""
    (state,) = arguments
    counted = exp.GT(
        this=function("list_extract", state.copy(), exp.Literal.number(1)), expression=exp.Literal.number(0)
    )
    return macro(f"ms_{node.function}", around.call("list", state, where=counted))


def _set_of(around: Surroundings, item: Expr) -> Expr:
    """A list with an item for each of a group's values that is not NULL, in the order of the values."""
    ordered = around.order[0]  # further sort keys are the order of arrival
    values = Surroundings(False, around.where, [ordered.copy()], None)
    present = exp.Not(this=exp.Paren(this=exp.Is(this=operand(ordered.this.copy()), expression=exp.null())))
    return values.call("list", item.copy(), where=present)


def _percentile(printer: EntryPoints, node: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    value = keyed_value(around.order[0].this, node.order_by[0].expression.type)
    return macro(f"ms_{node.function}", _set_of(around, value), arguments[0])


def _mode(printer: EntryPoints, node: AggregateCall, around: Surroundings, arguments: list[Expr]) -> Expr:
    """The most frequent value; of several, the first in sort order. Values are counted by what they are compared by."""
    key, kind = around.order[0].this, node.order_by[0].expression.type
    compared = function("normalized_interval", key) if kind.name == "interval" else key
    return macro("ms_mode", _set_of(around, compared), _set_of(around, keyed_value(key, kind)))


AGGREGATES: Final[dict[str, Aggregation]] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    **dict.fromkeys(("min", "max", "bool_and", "bool_or"), _plain),
    **dict.fromkeys(("min_by", "max_by"), _beside),
    **dict.fromkeys(("min_rows", "max_rows"), _rows),
    **dict.fromkeys(("merged_min_rows", "merged_max_rows"), _merged_rows),
    "spread": _spread,
    "paired_spread": _paired_spread,
    **dict.fromkeys(("merged_spread", "merged_paired_spread"), _merged_spread),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), _bits),
    "range_agg": _union,
    "range_intersect_agg": _intersection,
    **dict.fromkeys(("string_agg", "array_agg"), _list),
    **dict.fromkeys(("json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg"), _documents),
    **dict.fromkeys(("corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_intercept"), _regression),
    **dict.fromkeys(("regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy"), _regression),
    **dict.fromkeys(("percentile_cont", "percentile_disc"), _percentile),
    "mode": _mode,
    **dict.fromkeys(("stddev_samp", "stddev_pop", "var_samp", "var_pop"), _variance),
}

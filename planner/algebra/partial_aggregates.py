"""Aggregates as four functions: initialize, iterate, merge, finalise (Tempura, section 3.2; thesis 4.2.4).

``split`` takes one aggregate call apart: the columns of a group's state, each filled by a plain aggregate over a batch
(initialize and iterate) and merged by a plain aggregate over states, and an expression over merged columns that is the
result. So both engines run the same four, and equal columns of several aggregates exist once:

    avg(x)        sum(x), count(x)                     avg_final(sum, count)
    max_by(y, x)  max(row(x, y))                       its second field
    max_rows(r, 9) max_rows(r, 9)                      itself: the nine greatest of all states'
    var_samp(x)   count(x), sum(x), sum(x * x)         variance_final('var_samp', count, sum, sum of squares)
    var_samp(f)   spread(f)                            spread_final('var_samp', spread)
    corr(g, f)    paired_spread(g, f)                  spread_final('corr', paired spread)

The spread of doubles is PostgreSQL's transition value (float8_accum, float8_regr_accum in float.c): an array of the
count N, the sum Sx, and the sum of squares Sxx of the distances from the mean; of pairs (Y, X) N, Sx, Sxx, Sy, Syy and
Sxy. They merge as float8_combine and float8_regr_combine do. A sum of squares of the values themselves would lose the
spread of values that are far from zero: of 10^9 and more, all digits.

What no fixed number of columns can hold keeps its values in a child state (``Child``): count(DISTINCT x) each distinct
x, array_agg(x), string_agg(x), percentiles and mode() each x in order of arrival, and so do documents. Sums and squares
of integers and numerics are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from msgspec import Struct

from catalog.values.errors import unsupported
from catalog.values.types import BOOL, FLOAT4, FLOAT8, INT4, INT8, TEXT, UNCONSTRAINED, SqlType, array, numeric, record
from planner.algebra.nodes import AggregateCall, Call, Cast, Column, ColumnRef, Literal, Scalar, SortKey
from planner.algebra.nulls import is_never_null
from planner.algebra.signature import key_of
from planner.algebra.walk import used_columns, walk

#: Aggregates for which a value seen twice is a value seen once.
IDEMPOTENT: Final = frozenset(
    ("min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "range_agg", "range_intersect_agg")
)
#: Aggregates that merge by themselves.
_SELF_MERGING: Final = IDEMPOTENT | {"bit_xor"}
#: Aggregates that keep the first rows of each group, which are as many as their second argument says.
_OF_ROWS: Final = {"min_rows": "merged_min_rows", "max_rows": "merged_max_rows"}
#: Aggregates of doubles, and of pairs of them, that make a state of their own.
_OF_SPREADS: Final = {"spread": "merged_spread", "paired_spread": "merged_paired_spread"}
#: By an aggregate that fills a column of a group's state, the one that merges two.
MERGES: Final = {"count": "sum", "sum": "sum", **{name: name for name in _SELF_MERGING}, **_OF_ROWS, **_OF_SPREADS}
#: Functions that make results of merged columns, and which no statement calls.
FINALS: Final = frozenset(("avg_final", "variance_final", "spread_final"))
_VARIANCES: Final = frozenset(("stddev_samp", "stddev_pop", "var_samp", "var_pop"))
_REGRESSIONS: Final = frozenset(
    ("corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_intercept", "regr_r2", "regr_slope")
) | {"regr_sxx", "regr_sxy", "regr_syy"}
_DOCUMENTS: Final = frozenset(("json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg"))
COLLECTING: Final = _DOCUMENTS | {"string_agg", "array_agg"}
_ORDERED_SETS: Final = frozenset(("percentile_cont", "percentile_disc", "mode"))
_INTEGER_DIGITS: Final = {"int2": 5, "int4": 10, "int8": 19}
#: Squares keep this many decimals where 38 digits do not hold all (catalog.values.types.UNCONSTRAINED).
_SQUARE_SCALE: Final = 18


class StateColumn(Struct, frozen=True):
    """A column of a group's state, and what fills it from rows."""

    name: str
    fill: AggregateCall

    def merge(self, column: Column) -> AggregateCall:
        """The aggregate that merges its values of several states, which are a relation's ``column``."""
        return merge_of(self.fill, column)

    @property
    def key(self) -> Hashable:
        """The key of columns with equal values."""
        return key_of(self.fill)


def merge_of(fill: AggregateCall, column: Column) -> AggregateCall:
    """The aggregate that merges values of a ``column`` that another one has filled."""
    constants = fill.arguments[1:] if fill.function in _OF_ROWS else ()
    return AggregateCall(MERGES[fill.function], (ColumnRef(column), *constants), column.type)


class Split(Struct, frozen=True):
    """An aggregate over state columns; ``finalise`` makes the result from them, merged, in the same order."""

    columns: tuple[StateColumn, ...]
    finalise: Callable[[Sequence[Scalar]], Scalar]


class Child(Struct, frozen=True):
    """An aggregate over the values of a child state.

    ``values`` are stored per row of the child (for ``distinct`` once per group), of the rows for which ``only`` holds.
    ``call`` is over ``values`` as they are written here; constants among its arguments are not stored.
    """

    collects: bool  # keeps all values in order of arrival; else distinct ones
    values: tuple[Scalar, ...]
    only: tuple[Scalar, ...]
    call: AggregateCall


def split(call: AggregateCall, never_null: frozenset[Column]) -> Split | Child:
    """The state of one aggregate; ``never_null`` are columns of the grouped relation that are not."""
    if call.function in COLLECTING | _ORDERED_SETS or (call.distinct and call.function not in IDEMPOTENT):
        return _child(call)
    match call.function:
        case "count":
            return Split((_count(call, never_null),), lambda columns: columns[0])
        case "sum":
            return _sum(call)
        case "avg":
            return _average(call, never_null)
        case name if name in _VARIANCES and call.type == FLOAT8:
            return _of_spreads(call, "spread", (_widened(call.arguments[0]),))
        case name if name in _VARIANCES:
            return _variance(call, never_null)
        case name if name in _REGRESSIONS:
            return _of_spreads(call, "paired_spread", call.arguments)
        case "min_by" | "max_by":
            return _beside_extreme(call)
        case "min_rows" | "max_rows" | "spread" | "paired_spread":
            return Split((StateColumn(call.function, call),), lambda columns: columns[0])
        case name if name not in _SELF_MERGING:
            raise unsupported(f"{name}() over the rows of a stream", "Use it in the query that reads the view.")
        case name:
            plain = AggregateCall(name, call.arguments, call.type, filter=call.filter)
            return Split((StateColumn(_named(name, call), plain),), lambda columns: columns[0])


def _named(function: str, call: AggregateCall) -> str:
    columns = [item.column.name for item in walk(call) if isinstance(item, ColumnRef)]
    return f"{function}_{columns[0]}" if columns else function


def _count(call: AggregateCall, never_null: frozenset[Column]) -> StateColumn:
    """count(x) of an x that is never NULL is count(*), and so shared with it."""
    arguments = tuple(item for item in call.arguments if not is_never_null(item, never_null))
    name = _named("count", call) if arguments else "count"
    return StateColumn(name, AggregateCall("count", arguments, INT8, filter=call.filter))


def sum_type(argument: SqlType) -> SqlType:
    """The type in which values of a type are added up without loss (doubles for floats)."""
    match argument.name:
        case "int2" | "int4":
            return INT8
        case "int8":
            return numeric(38, 0)
        case "numeric":
            return numeric(38, argument.scale)
        case "float4" | "float8":
            return FLOAT8
        case _:
            return argument


def _sum_column(call: AggregateCall, argument: Scalar, name: str) -> StateColumn:
    fill = AggregateCall("sum", (argument,), sum_type(argument.type), filter=call.filter)
    return StateColumn(name, fill)


def _widened(argument: Scalar) -> Scalar:
    """A real as double precision, so that adding up many loses no more than adding doubles."""
    return Cast(argument, FLOAT8) if argument.type == FLOAT4 else argument


def _sum(call: AggregateCall) -> Split:
    column = _sum_column(call, _widened(call.arguments[0]), _named("sum", call))
    if column.fill.type == call.type:
        return Split((column,), lambda columns: columns[0])
    return Split((column,), lambda columns: Cast(columns[0], call.type, explicit=True))


def _average(call: AggregateCall, never_null: frozenset[Column]) -> Split:
    total = _sum_column(call, _widened(call.arguments[0]), _named("sum", call))
    if call.type.name == "interval":
        return Split(
            (total, _count(call, never_null)),
            lambda columns: Call("div", (columns[0], Cast(columns[1], FLOAT8)), call.type),
        )
    return Split((total, _count(call, never_null)), lambda columns: Call("avg_final", tuple(columns), call.type))


def _beside_extreme(call: AggregateCall) -> Split:
    """What is beside the least or greatest value, of several equal ones the least or greatest: rows of both."""
    beside, value = call.arguments
    pair = Call("row", (value, beside), record(("f1", value.type), ("f2", beside.type)))
    present = Call("is_not_null", (value,), BOOL)
    only = present if call.filter is None else Call("and", (call.filter, present), BOOL)
    name = call.function.removesuffix("_by")
    column = StateColumn(_named(call.function, call), AggregateCall(name, (pair,), pair.type, filter=only))
    return Split((column,), lambda merged: Call("field", (merged[0], Literal(2, INT4)), call.type))


def _of_spreads(call: AggregateCall, function: str, arguments: tuple[Scalar, ...]) -> Split:
    fill = AggregateCall(function, arguments, array(FLOAT8), filter=call.filter)
    kind = Literal(call.function, TEXT)
    column = StateColumn(_named(function, call), fill)
    return Split((column,), lambda merged: Call("spread_final", (kind, *merged), FLOAT8))


def _variance(call: AggregateCall, never_null: frozenset[Column]) -> Split:
    """Of integers and numerics, exactly."""
    argument = call.arguments[0]
    number = argument
    if argument.type.name in _INTEGER_DIGITS:
        number = Cast(argument, numeric(_INTEGER_DIGITS[argument.type.name], 0))
    square = Call("mul", (number, number), _square_type(number.type))
    columns = (
        _count(call, never_null),
        _sum_column(call, argument, _named("sum", call)),
        _sum_column(call, square, _named("sum_of_squares", call)),
    )
    kind = Literal(call.function, TEXT)
    return Split(columns, lambda merged: Call("variance_final", (kind, *merged), call.type))


def _square_type(argument: SqlType) -> SqlType:
    if argument.name != "numeric":
        return argument
    exact = 2 * argument.scale <= 38 and argument.modifiers != UNCONSTRAINED
    return numeric(2 * argument.precision, 2 * argument.scale if exact else _SQUARE_SCALE)


def _child(call: AggregateCall) -> Child:
    arguments = call.arguments
    if call.distinct and call.function == "count" and isinstance(arguments[0], Call) and arguments[0].function == "row":
        return _distinct_rows(call, arguments[0].arguments)
    if call.distinct and call.function == "string_agg" and not _is_constant(arguments[1]):
        raise unsupported(
            "string_agg(DISTINCT ...) with a delimiter that is not a constant in a continuous view",
            "Write the delimiter as a literal.",
        )
    if call.function in _ORDERED_SETS and _is_constant(call.order_by[0].expression):
        raise unsupported(f"{call.function} of a constant in a continuous view", "Order by a column.")
    sorted_by = tuple(key.expression for key in call.order_by if call.function in _ORDERED_SETS)
    values = tuple(item for item in arguments if not _is_constant(item)) or sorted_by or arguments[:1]
    if call.function in _DOCUMENTS:  # which are made when they are read: an engine that writes none may fill the state
        used = {column for item in values for column in used_columns(item)}
        values = tuple(ColumnRef(column) for column in sorted(used, key=_place)) or arguments[:1]
    order = call.order_by
    if call.distinct and not order:
        order = tuple(SortKey(item) for item in values)  # PostgreSQL finds distinct values by sorting them
    keeps_null = call.function in _DOCUMENTS | {"array_agg"}
    present = () if keeps_null else tuple(Call("is_not_null", (item,), BOOL) for item in values[:1])
    only = (*(() if call.filter is None else (call.filter,)), *present)
    keys = tuple(key.expression for key in order if not _is_constant(key.expression))
    ordered = order if call.function in COLLECTING | _ORDERED_SETS else ()
    plain = AggregateCall(call.function, arguments, call.type, order_by=ordered)
    stored = tuple({key_of(item): item for item in (*values, *keys)}.values())
    return Child(not call.distinct, stored, only, plain)


def _distinct_rows(call: AggregateCall, fields: tuple[Scalar, ...]) -> Child:
    """count(DISTINCT (a, b)): a row counts whatever its fields are."""
    only = () if call.filter is None else (call.filter,)
    return Child(False, fields, only, AggregateCall("count", (), INT8))


def _place(column: Column) -> int:
    return column.id


def _is_constant(scalar: Scalar) -> bool:
    return not used_columns(scalar)

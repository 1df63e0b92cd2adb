"""Scales of groups and windows: what a sum, an average or an extreme value shows, by the values that it is made of.

Owns: the aggregates that compute scales beside those of the values. A sum shows as many decimals as that of its values
with the most, an extreme value its own, an average what a quotient of sum and count does. A variance is a quotient of
which only the result is there; a deviation shows as many decimals as its variance (numeric_stddev_internal).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from msgspec.structs import replace

from catalog.values.types import BOOL, INT4, INT8, SqlType, array
from planner.algebra.construction import has_subquery, volatility
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Case,
    Column,
    ColumnRef,
    Literal,
    Project,
    Relation,
    Scalar,
    SortKey,
    Window,
    WindowCall,
)
from planner.scales.columns import Scales
from planner.scales.expressions import quotient_scale
from planner.scales.nested import has_scales, in_place
from planner.scales.terms import UNKNOWN, constant, differs

#: Window functions that give one of their first argument's values.
_PICKING: Final = frozenset(("first_value", "last_value", "nth_value", "lag", "lead"))
#: Aggregates that give one of the values of their ordered set.
_CHOOSING: Final = frozenset(("percentile_disc", "mode"))
#: By aggregate, the digits before the point beyond which a variance shows fewer decimals; a deviation's own digits are
#: half as many as its variance's.
_SPREADS: Final = {"var_pop": 4, "var_samp": 4, "stddev_pop": 2, "stddev_samp": 2}
#: The most decimals that one shows.
_MOST: Final = 20
#: What gives an extreme value's own scale.
_EXTREME: Final = {"min": "min_by", "max": "max_by"}


def aggregated(scales: Scales, node: Aggregate) -> Relation:
    """A group shows the most decimals of its key's equal values; PostgreSQL those of any."""
    calls = _Calls(scales)
    for column, scalar in node.keys:
        scale = scales.of(scalar)
        if has_scales(column.type) and differs(scale):
            calls.added.append((scales.beside(column), AggregateCall("max", (scale,), scale.type)))
        elif column.type.name in ("numeric", "bpchar"):
            scales.know(column, scale)
    for column, call in node.aggregates:
        if not has_scales(column.type) or not (call.arguments or call.order_by):
            continue
        if call.function in _CHOOSING:
            calls.choose(column, call)
        elif call.function == "array_agg" and call.distinct:
            calls.gather_distinct(column, call)
        else:
            calls.compute(column, call)
    return calls.over(replace(node, aggregates=calls.beside(node.aggregates)), node.columns)


def windowed(scales: Scales, node: Window) -> Relation:
    """A window's calls show what the rows' own values do, or what is computed of them as in a group."""
    calls = _Calls(scales)
    for column, call in node.calls:
        if not has_scales(column.type) or not call.arguments:
            continue
        if call.function in _PICKING:
            calls.pick(column, call)
        else:
            calls.compute(column, call)
    return calls.over(replace(node, calls=calls.beside(node.calls)), node.columns)


class _Calls:
    """The scales of a group's or a window's calls: more calls beside them, and a projection over all."""

    def __init__(self, scales: Scales) -> None:
        self._scales = scales
        #: The calls that compute scales, or what scales are told from.
        self.added: list[tuple[Column, Any]] = []
        #: Scales told from calls' results: those of chosen values, and of averages.
        self._chosen: list[tuple[Column, Scalar]] = []
        self._averaged: list[tuple[Column, Scalar]] = []
        #: Averages that are divided in the projection.
        self._quotients: dict[Column, Scalar] = {}

    def beside(self, calls: tuple[tuple[Column, Any], ...]) -> tuple[tuple[Column, Any], ...]:
        """The calls but for averages that are divided in the projection, and those that compute scales."""
        return (*(item for item in calls if item[0] not in self._quotients), *self.added)

    def over(self, relation: Relation, columns: tuple[Column, ...]) -> Relation:
        """The relation's ``columns`` and added ones, with all averages and scales."""
        told = [*self._chosen, *self._averaged]
        if not told:
            return relation
        whole = (*columns, *(column for column, _ in self.added))
        kept = [(column, self._quotients.get(column) or ColumnRef(column)) for column in whole]
        return Project(relation, (*kept, *((self._scales.beside(column), scale) for column, scale in told)))

    def compute(self, column: Column, call: Any) -> None:
        """The scale of what is computed of a call's values, or is one of them."""
        scale = self._scales.of(call.arguments[0])
        match call.function:
            case "avg":
                if scale != UNKNOWN:
                    self._average(column, call, scale)
            case function if function in _SPREADS:
                self._chosen.append((column, _of_spread(column, _SPREADS[function])))
            case "array_agg":
                if differs(scale):
                    self.added.append((self._scales.beside(column), _gathered(call, scale)))
            case "sum" | "min" | "max" if not differs(scale):
                self._scales.know(column, scale)
            case "sum":
                self.added.append((self._scales.beside(column), _most(call, scale)))
            case "min" | "max":
                self.added.append((self._scales.beside(column), _of_extreme(call, scale)))

    def pick(self, column: Column, call: WindowCall) -> None:
        """The scale of another row's value."""
        first, *rest = call.arguments
        scale = self._scales.of(first)
        if len(rest) == 2:  # the third argument of lag() and lead() is a value, too
            rest[1] = in_place(self._scales.of(rest[1]), column.type)
        elif not differs(scale):
            self._scales.know(column, scale)
            return
        scale = in_place(scale, column.type)
        self.added.append((self._scales.beside(column), replace(call, arguments=(scale, *rest), type=scale.type)))

    def choose(self, column: Column, call: AggregateCall) -> None:
        """The scale of the value that is chosen of an ordered set, of which all scales are gathered."""
        value = call.order_by[0].expression
        scale = self._scales.of(value)
        if not differs(scale):
            return
        scales = self._gather("scales", _in_order(call, scale))
        if call.function == "percentile_disc":
            told = Call("percentile_disc_at", (scales, *call.arguments), scale.type)
        else:
            values = self._gather("values", _in_order(call, value))
            place = Call("array_position", (values, ColumnRef(column)), INT4)
            told = Call("subscript", (scales, place), scale.type)
        self._chosen.append((column, told))

    def gather_distinct(self, column: Column, call: AggregateCall) -> None:
        """The scales of distinct values, by those of all in the order in which distinct ones are found."""
        first = call.arguments[0]
        scale = self._scales.of(first)
        if not differs(scale) or scale.type != INT4:
            return
        plain = replace(call, distinct=False, order_by=call.order_by or (SortKey(first),))
        values = self._scales.extra("values", call.type)
        scales = self._gather("scales", _gathered(plain, scale))
        self.added.append((values, plain))
        self._chosen.append((column, Call("scales_once", (scales, ColumnRef(values)), array(scale.type))))

    def _average(self, column: Column, call: Any, scale: Scalar) -> None:
        """An average's scale, which is told from sum, count and the values' largest scale; where that differs from row
        to row, the average is divided in the projection, with as many decimals as a value shows."""
        argument = call.arguments[0].type
        kind = SqlType("numeric", (38, argument.scale if argument.name == "numeric" else 0))
        total = self._gather("sum", replace(call, function="sum", type=kind))
        count = self._gather("n", replace(call, function="count", type=INT8))
        if differs(scale):
            scale = self._gather("scale", _most(call, scale))
            some = Call("nullif", (count, Literal(0, INT8)), INT8)
            self._quotients[column] = Call("div_scaled", (total, some, scale), call.type)
        self._averaged.append((column, quotient_scale(total, count, scale)))

    def _gather(self, name: str, call: Any) -> ColumnRef:
        """The result of one more call."""
        column = self._scales.extra(name, call.type)
        self.added.append((column, call))
        return ColumnRef(column)


def _gathered(call: Any, scale: Scalar) -> Any:
    """The scales of gathered values, in the values' order."""
    return replace(call, arguments=(scale,), type=array(scale.type))


def _in_order(call: AggregateCall, scale: Scalar) -> AggregateCall:
    """The scales of all values in an ordered set's order, or these values."""
    present = Call("is_not_null", (call.order_by[0].expression,), BOOL)
    only = present if call.filter is None else Call("and", (call.filter, present), BOOL)
    return AggregateCall("array_agg", (scale,), array(scale.type), filter=only, order_by=call.order_by)


def _of_extreme(call: Any, scale: Scalar) -> Any:
    """The scale of a least or greatest value."""
    found = replace(call, function=_EXTREME[call.function], arguments=(scale, call.arguments[0]), type=INT4)
    return replace(found, distinct=False) if isinstance(found, AggregateCall) else found


def _of_spread(column: Column, digits: int) -> Scalar:
    """The scale of a variance or a deviation by its value, as select_div_scale gives it: none for zero, else four fewer
    for each four more digits of the variance."""
    value = ColumnRef(column)
    branches = [(Call("eq", (value, Literal(Decimal(0), column.type)), BOOL), constant(0))]
    for step in range(_MOST // 4 - 1):
        bound = Literal(Decimal(10) ** (digits * step), column.type)
        branches.append((Call("le", (value, bound), BOOL), constant(_MOST - 4 * step)))
    return Case(tuple(branches), constant(4), INT4)


def _most(call: Any, scale: Scalar) -> Any:
    """The largest scale of the values that an aggregate takes, in a group or a window."""
    if isinstance(call, WindowCall):
        return replace(call, function="max", arguments=(scale,), type=INT4, filter=_present(call))
    return AggregateCall("max", (scale,), INT4, filter=_present(call))


def _present(call: AggregateCall | WindowCall) -> Scalar | None:
    """For which rows an aggregate takes a value, which is not NULL."""
    value = call.arguments[0]
    if volatility(value) == "volatile" or has_subquery(value):
        return call.filter
    present = Call("is_not_null", (value,), BOOL)
    return present if call.filter is None else Call("and", (call.filter, present), BOOL)

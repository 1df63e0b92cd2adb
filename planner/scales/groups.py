"""Scales of groups and windows: what a sum, an average or an extreme value shows, by the values that it is made of.

Owns: the aggregates that compute scales beside those of the values. A sum shows as many decimals as that of its values
with the most, an extreme value its own, an average what a quotient of sum and count does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from catalog.values.types import BOOL, INT4, INT8, SqlType, array
from planner.algebra.construction import has_subquery, volatility
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
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
from planner.scales.expressions import UNKNOWN, differs, quotient_scale
from planner.scales.nested import has_scales, in_place

#: Window functions that give one of their first argument's values.
_PICKING: Final = frozenset(("first_value", "last_value", "nth_value", "lag", "lead"))
#: Aggregates that give one of the values of their ordered set.
_ORDERED: Final = ("percentile_disc", "mode")
#: An extreme value's own scale is beside it.
_BESIDE: Final = {"min": "min_by", "max": "max_by"}


def aggregated(carrying: Scales, node: Aggregate) -> Relation:
    """A group shows the most decimals of its key's equal values; PostgreSQL those of any."""
    added: list[tuple[Column, AggregateCall]] = []
    averages = _Averages(carrying)
    divided: list[tuple[Column, Scalar]] = []
    for column, scalar in node.keys:
        scale = carrying.of(scalar)
        if has_scales(column.type) and differs(scale):
            added.append((carrying.beside(column), AggregateCall("max", (scale,), scale.type)))
        elif column.type.name in ("numeric", "bpchar"):
            carrying.know(column, scale)
    for column, call in node.aggregates:
        if not has_scales(column.type) or not (call.arguments or call.order_by):
            continue
        if call.function in _ORDERED:
            scale = carrying.of(call.order_by[0].expression)
            if differs(scale):
                parts, place = _chosen(carrying, column, call, scale)
                added += parts
                divided.append((column, place))
            continue
        scale = carrying.of(call.arguments[0])
        if call.function == "array_agg":
            if differs(scale) and not call.distinct:
                added.append((carrying.beside(column), _gathered(call, scale)))
            elif differs(scale) and scale.type == INT4:
                parts = _sorted(carrying, call, scale)
                added += parts
                once = Call("scales_once", tuple(ColumnRef(part) for part, _ in parts), array(scale.type))
                divided.append((column, once))
            continue
        if call.function in ("sum", *_BESIDE) and not differs(scale):
            carrying.know(column, scale)
        elif call.function == "sum":
            added.append((carrying.beside(column), _most(call, scale)))
        elif call.function in _BESIDE:
            picked = replace(call, function=_BESIDE[call.function], distinct=False)
            arguments = (scale, call.arguments[0])
            added.append((carrying.beside(column), replace(picked, arguments=arguments, type=INT4)))
        elif call.function == "avg" and scale != UNKNOWN:
            added += averages.parts_of(column, call, scale)
    relation = replace(node, aggregates=(*averages.others(node.aggregates), *added))
    return averages.over(relation, (*node.columns, *(item for item, _ in added)), divided)


class _Averages:
    """The averages of a grouping or a window whose decimals are told from sum and count, and the projection over it."""

    def __init__(self, carrying: Scales) -> None:
        self._carrying = carrying
        #: How many decimals each shows.
        self._decimals: list[tuple[Column, Scalar]] = []
        #: Those that are divided above, in the place of the average.
        self._quotients: dict[Column, Scalar] = {}

    def parts_of(self, column: Column, call: Any, scale: Scalar) -> list[tuple[Column, Any]]:
        """The aggregates or window calls that an average needs beside it, or in its place."""
        parts, quotient, decimals = _average(self._carrying, call, scale)
        self._decimals.append((column, decimals))
        if quotient is not None:
            self._quotients[column] = quotient
        return parts

    def others(self, calls: Iterable[tuple[Column, Any]]) -> list[tuple[Column, Any]]:
        """The calls but for those averages that are divided above."""
        return [item for item in calls if item[0] not in self._quotients]

    def over(
        self, relation: Relation, columns: Iterable[Column], more: Iterable[tuple[Column, Scalar]] = ()
    ) -> Relation:
        """The relation's ``columns`` with the averages' values and scales, and ``more`` columns' scales."""
        scales = [*more, *self._decimals]
        if not scales:
            return relation
        kept = [(column, self._quotients.get(column) or ColumnRef(column)) for column in columns]
        return Project(relation, (*kept, *((self._carrying.beside(column), scale) for column, scale in scales)))


def _sorted(carrying: Scales, call: AggregateCall, scale: Scalar) -> list[tuple[Column, AggregateCall]]:
    """The scales of all values in the order in which distinct ones are found, and these values."""
    first = call.arguments[0]
    plain = replace(call, distinct=False, order_by=call.order_by or (SortKey(first),))
    values = carrying.extra("values", call.type)
    return [(carrying.extra("scales", array(scale.type)), _gathered(plain, scale)), (values, plain)]


def _chosen(
    carrying: Scales, column: Column, call: AggregateCall, scale: Scalar
) -> tuple[list[tuple[Column, AggregateCall]], Scalar]:
    """What is gathered of an ordered set, and the scale of the value that is chosen of it."""
    scales = carrying.extra("scales", array(scale.type))
    gathered = [(scales, _in_order(call, scale))]
    if call.function == "percentile_disc":
        return gathered, Call("percentile_disc_at", (ColumnRef(scales), *call.arguments), scale.type)
    value = call.order_by[0].expression
    values = carrying.extra("values", array(value.type))
    place = Call("array_position", (ColumnRef(values), ColumnRef(column)), INT4)
    return [*gathered, (values, _in_order(call, value))], Call("subscript", (ColumnRef(scales), place), scale.type)


def _average(carrying: Scales, call: Any, scale: Scalar) -> tuple[list[tuple[Column, Any]], Scalar | None, Scalar]:
    """Sum, count and largest scale of an aggregate's values, in a group or a window; their average where that has as
    many decimals as a value, and how many decimals it shows."""
    argument = call.arguments[0].type
    kind = SqlType("numeric", (38, argument.scale if argument.name == "numeric" else 0))
    total, count = carrying.extra("sum", kind), carrying.extra("n", INT8)
    parts = [(total, replace(call, function="sum", type=kind)), (count, replace(call, function="count", type=INT8))]
    sides = ColumnRef(total), ColumnRef(count)
    if not differs(scale):
        return parts, None, quotient_scale(*sides, scale)
    most = carrying.extra("scale", INT4)
    parts.append((most, _most(call, scale)))
    some = sides[0], Call("nullif", (sides[1], Literal(0, INT8)), INT8)
    quotient = Call("div_scaled", (*some, ColumnRef(most)), call.type)
    return parts, quotient, quotient_scale(*sides, ColumnRef(most))


def windowed(carrying: Scales, node: Window) -> Relation:
    added: list[tuple[Column, WindowCall]] = []
    averages = _Averages(carrying)
    for column, call in node.calls:
        if not has_scales(column.type) or not call.arguments:
            continue
        first, *rest = call.arguments
        scale = carrying.of(first)
        if call.function == "array_agg":
            if differs(scale):
                added.append((carrying.beside(column), _gathered(call, scale)))
            continue
        if call.function == "sum" and differs(scale):
            added.append((carrying.beside(column), _most(call, scale)))
        elif call.function == "avg" and scale != UNKNOWN:
            added += averages.parts_of(column, call, scale)
        elif call.function in _BESIDE and differs(scale):
            picked = replace(call, function=_BESIDE[call.function], arguments=(scale, first), type=INT4)
            added.append((carrying.beside(column), picked))
        elif call.function in _PICKING and (differs(scale) or len(rest) == 2):
            # The third argument of lag() and lead() is a value, too.
            others = (rest[0], in_place(carrying.of(rest[1]), column.type)) if len(rest) == 2 else tuple(rest)
            scale = in_place(scale, column.type)
            added.append((carrying.beside(column), replace(call, arguments=(scale, *others), type=scale.type)))
        elif call.function in ("sum", *_BESIDE, *_PICKING):
            carrying.know(column, scale)
    relation = replace(node, calls=(*averages.others(node.calls), *added))
    return averages.over(relation, (*node.columns, *(item for item, _ in added)))


def _gathered(call: Any, scale: Scalar) -> Any:
    """The scales of gathered values, in the values' order."""
    return replace(call, arguments=(scale,), type=array(scale.type))


def _in_order(call: AggregateCall, scale: Scalar) -> AggregateCall:
    """The scales of all values in an ordered set's order, or these values."""
    present = Call("is_not_null", (call.order_by[0].expression,), BOOL)
    only = present if call.filter is None else Call("and", (call.filter, present), BOOL)
    return AggregateCall("array_agg", (scale,), array(scale.type), filter=only, order_by=call.order_by)


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

"""Aggregates and windows made of simpler ones, for an engine that lacks them.

Owns: ``lowered``, which takes apart what Spark computes in no way that is exact:

    var_samp(x) and its like of integers and numerics    count, sum and sum of squares, and a scalar above them
    jsonb_agg(x)                                         json_agg(x), made jsonb above it
    ... OVER (... GROUPS n PRECEDING)                    ... OVER (ORDER BY dense_rank() ... RANGE n PRECEDING)

The parts are those in which a continuous view keeps its groups (``planner/incremental/aggregates``). Knows no engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from catalog.types import BOOL, INT8, JSON
from planner.algebra import Aggregate, Project, Relation, SortKey, Window
from planner.expression import AggregateCall, Call, Cast, Column, ColumnRef, Literal, Scalar, WindowCall
from planner.incremental.aggregates import Split, StateColumn, split
from planner.rules.support import Fresh
from planner.walk import transform

_VARIANCES: Final = frozenset(("stddev_samp", "stddev_pop", "var_samp", "var_pop"))


def lowered(relation: Relation) -> Relation:
    """The relation with such calls taken apart."""
    fresh = Fresh(relation)

    def numbered(node: Any) -> Any:
        return _by_number(node, fresh) if isinstance(node, Window) else node

    def split_up(node: Any) -> Any:
        return _split_up(node, fresh) if isinstance(node, Aggregate | Window) else node

    found: Relation = transform(transform(relation, numbered), split_up)
    return found


class _Calls:
    """Calls under construction, equal ones once."""

    def __init__(self, fresh: Fresh) -> None:
        self._fresh = fresh
        self.calls: dict[Any, Column] = {}

    def column(self, name: str, call: Any) -> Column:
        """The column of a call."""
        if call not in self.calls:
            self.calls[call] = self._fresh.column(name, call.type)
        return self.calls[call]

    @property
    def pairs(self) -> tuple[tuple[Column, Any], ...]:
        """The calls with their columns."""
        return tuple((column, call) for call, column in self.calls.items())


# --- aggregates -------------------------------------------------------------------------------------------------------


def _split_up(node: Aggregate | Window, fresh: Fresh) -> Relation:
    """Calls taken apart, and above them what is made of the parts."""
    before = node.aggregates if isinstance(node, Aggregate) else node.calls
    if all(_parts(call) is None for _, call in before):
        return node
    kept: list[tuple[Column, Any]] = []
    made = _Calls(fresh)
    outputs: list[tuple[Column, Scalar]] = []
    for column, call in before:
        parts = _parts(call)
        if parts is None:
            kept.append((column, call))
            outputs.append((column, ColumnRef(column)))
            continue
        value = parts.finalise([ColumnRef(made.column(item.name, _like(call, item.fill))) for item in parts.columns])
        outputs.append((column, value))
    calls = (*kept, *made.pairs)
    passed = node.columns[: len(node.columns) - len(before)]
    below = replace(node, aggregates=calls) if isinstance(node, Aggregate) else replace(node, calls=calls)
    return Project(below, (*((column, ColumnRef(column)) for column in passed), *outputs))


def _like(call: AggregateCall | WindowCall, fill: AggregateCall) -> AggregateCall | WindowCall:
    """A part, over the window of the whole where that is over one."""
    if isinstance(call, AggregateCall):
        return fill
    return replace(call, function=fill.function, arguments=fill.arguments, type=fill.type, filter=fill.filter)


def _parts(call: AggregateCall | WindowCall) -> Split | None:
    """What a call is taken apart into; None where it stays."""
    is_distinct = isinstance(call, AggregateCall) and call.distinct
    if call.function in _VARIANCES and call.type.name == "numeric":
        found = split(AggregateCall(call.function, call.arguments, call.type, filter=call.filter), frozenset())
        assert isinstance(found, Split)
        return _of_distinct(found, call.arguments[0]) if is_distinct else found
    if call.function == "jsonb_agg" and isinstance(call, AggregateCall):
        gathered = replace(call, function="json_agg", type=JSON)
        return Split((StateColumn("json_agg", gathered, ""),), lambda parts: Cast(parts[0], call.type, explicit=True))
    return None


def _of_distinct(found: Split, argument: Scalar) -> Split:
    """The same over distinct values; x and -x have one square, so that squares are added up for each sign."""
    count, total, squares = (replace(item, fill=replace(item.fill, distinct=True)) for item in found.columns)
    kind = squares.fill.type
    low, high = (
        replace(squares, fill=replace(squares.fill, filter=_with_sign(squares.fill.filter, sign, argument)))
        for sign in ("lt", "ge")
    )

    def finalise(parts: Sequence[Scalar]) -> Scalar:
        none = Cast(Literal(0, INT8), kind)
        both = tuple(Call("coalesce", (item, none), kind) for item in parts[2:])
        return found.finalise((*parts[:2], Call("add", both, kind)))

    return Split((count, total, low, high), finalise)


def _with_sign(condition: Scalar | None, sign: str, argument: Scalar) -> Scalar:
    found = Call(sign, (argument, Cast(Literal(0, INT8), argument.type)), BOOL)
    return found if condition is None else Call("and", (condition, found), BOOL)


# --- frames -----------------------------------------------------------------------------------------------------------


def _by_number(node: Window, fresh: Fresh) -> Relation:
    """Frames that count groups of peers as frames over the groups' numbers, which a window below gives."""
    ranks = _Calls(fresh)
    calls = tuple((column, _ranged(call, ranks)) for column, call in node.calls)
    if not ranks.calls:
        return node
    above = Window(Window(node.input, ranks.pairs), calls)
    return Project(above, tuple((column, ColumnRef(column)) for column in node.columns))


def _ranged(call: WindowCall, ranks: _Calls) -> WindowCall:
    if call.mode != "groups" or not call.order_by or not call.offsets:
        return call
    rank = WindowCall("dense_rank", (), INT8, call.partition, call.order_by)
    return replace(call, mode="range", order_by=(SortKey(ColumnRef(ranks.column("dense_rank", rank))),))

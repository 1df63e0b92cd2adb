"""Aggregates made of simpler ones.

    var_samp(x) and its like of integers and numerics    count, sum and sum of squares, and a scalar above them
    avg(interval)                                        sum / count
    json_agg(x), jsonb_agg(x)                            string_agg(x, ', '), made a document above it
    json_object_agg(k, x), jsonb_object_agg(k, x)        string_agg(json_key(k) || ' : ' || x, ', '), likewise

A variance has the same parts as in the groups of a continuous view (``planner/algebra/partial_aggregates``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from catalog.values.types import BOOL, INT8, JSONB, TEXT
from planner.algebra.construction import Fresh
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Cast,
    Column,
    ColumnRef,
    Literal,
    Project,
    Scalar,
    Window,
    WindowCall,
)
from planner.algebra.partial_aggregates import Split, StateColumn, split
from planner.lowering.documents import separator

_VARIANCES: Final = frozenset(("stddev_samp", "stddev_pop", "var_samp", "var_pop"))
#: Aggregates that make JSON documents, and the text around the members.
_DOCUMENTS: Final = {
    **dict.fromkeys(("json_agg", "jsonb_agg"), ("[", "]")),
    **dict.fromkeys(("json_object_agg", "jsonb_object_agg"), ("{ ", " }")),
}


class Calls:
    """Aggregate calls under construction; equal calls are kept once."""

    def __init__(self, fresh: Fresh) -> None:
        self._fresh = fresh
        self.calls: dict[Any, Column] = {}

    def column(self, name: str, call: Any) -> Column:
        """The column of a call, which is added if it is new."""
        if call not in self.calls:
            self.calls[call] = self._fresh.column(name, call.type)
        return self.calls[call]

    @property
    def pairs(self) -> tuple[tuple[Column, Any], ...]:
        """The calls with their columns."""
        return tuple((column, call) for call, column in self.calls.items())


def simple_calls(node: Any, fresh: Fresh) -> Any:
    """A grouping or a window with calls split into simpler calls, and the results computed from them above it."""
    if not isinstance(node, Aggregate | Window):
        return node
    before = node.aggregates if isinstance(node, Aggregate) else node.calls
    if all(_parts(call) is None for _, call in before):
        return node
    kept: list[tuple[Column, Any]] = []
    made = Calls(fresh)
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
    """A simpler call, over the original call's window if it has one."""
    if isinstance(call, AggregateCall):
        return fill
    return replace(call, function=fill.function, arguments=fill.arguments, type=fill.type, filter=fill.filter)


def _parts(call: AggregateCall | WindowCall) -> Split | None:
    """The simpler calls that replace a call, and the result over them; None if the call stays."""
    is_distinct = isinstance(call, AggregateCall) and call.distinct
    if call.function in _VARIANCES and call.type.name == "numeric":
        found = split(AggregateCall(call.function, call.arguments, call.type, filter=call.filter), frozenset())
        assert isinstance(found, Split)
        return _of_distinct(found, call.arguments[0]) if is_distinct else found
    if call.function == "avg" and call.type.name == "interval" and not is_distinct:
        found = split(AggregateCall("avg", call.arguments, call.type, filter=call.filter), frozenset())
        assert isinstance(found, Split)
        return found
    if call.function in _DOCUMENTS and isinstance(call, AggregateCall) and not call.distinct:
        return _joined(call)
    return None


def _joined(call: AggregateCall) -> Split:
    """A document made of documents, joined as texts; documents of rows are placed one to a line."""
    *keys, item = call.arguments
    member: Scalar = Cast(item, TEXT)
    if keys:
        member = _concatenated(Call("json_key", (keys[0],), TEXT), Literal(" : ", TEXT), member)
    arguments = (member, Literal(", " if keys or call.type == JSONB else separator(item), TEXT))
    texts = replace(call, function="string_agg", arguments=arguments, type=TEXT)
    opening, closing = (Literal(text, TEXT) for text in _DOCUMENTS[call.function])

    def finalise(parts: Sequence[Scalar]) -> Scalar:
        return Cast(_concatenated(opening, parts[0], closing), call.type, explicit=True)

    return Split((StateColumn("string_agg", texts),), finalise)


def _concatenated(first: Scalar, second: Scalar, third: Scalar) -> Scalar:
    return Call("concat", (Call("concat", (first, second), TEXT), third), TEXT)


def _of_distinct(found: Split, argument: Scalar) -> Split:
    """The aggregate over distinct values. x and -x have equal squares, so squares are summed separately for each
    sign."""
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

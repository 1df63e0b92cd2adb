"""Intervals compared by their lengths, for an engine that has no equality and no order of them.

A month counts as 30 days and a day as 24 hours, so that '1 mon' and '30 days' are one value. Rows are grouped by the
length, and a group shows one of its values:

    GROUP BY i                    GROUP BY interval_length(i), with min_by(i, interval_length(i)) in the key's place
    min(i), count(DISTINCT i)     min_by(i, interval_length(i)), count(DISTINCT interval_length(i))
    PARTITION BY i                PARTITION BY interval_length(i)
    a IN (SELECT i ...)           interval_length(a) IN (SELECT interval_length(i) ...)
    L UNION R                     groups of L UNION ALL R
    L INTERSECT R, L EXCEPT R     the groups with rows of both sides, of the left side only
    L INTERSECT ALL R             the same, with rows numbered among their equals
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from catalog.values.types import BOOL, INT4, INT8, SqlType, array
from planner.algebra.construction import Fresh, filtered, keep_columns
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Column,
    ColumnRef,
    InSubquery,
    Literal,
    Project,
    Relation,
    Scalar,
    SetOperation,
    Window,
    WindowCall,
)

_LENGTH = SqlType("numeric", (38, 0))
#: The greatest and the least value by the size of another.
_BY_LENGTH = {"min": "min_by", "max": "max_by"}


def length(interval: Scalar) -> Call:
    """The value by which intervals, or arrays of them, are compared: microseconds, or those of the elements."""
    return Call("interval_length", (interval,), _LENGTH if interval.type.element is None else array(_LENGTH))


def is_of_intervals(kind: SqlType) -> bool:
    """Whether a type's values compare by length: intervals and arrays of them."""
    return (kind.element or kind).name == "interval"


def by_length(node: Any, fresh: Fresh) -> Any:
    """One operator that groups or compares intervals, or rows with intervals."""
    match node:
        case Aggregate():
            found = _aggregate(node, fresh)
            return node if found == node else found
        case Window():
            found = _window(node)
            return node if found == node else found
        case SetOperation(kind=kind) if _has_intervals(node.columns) and not (node.all and kind == "union"):
            return _set(node, fresh)
        case InSubquery(argument=argument) if is_of_intervals(argument.type):
            value = length(ColumnRef(node.relation.columns[0]))
            lengths = Project(node.relation, ((fresh.column("length", value.type), value),))
            return replace(node, argument=length(argument), relation=lengths)
        case _:
            return node


def _has_intervals(columns: Sequence[Column]) -> bool:
    return any(is_of_intervals(column.type) for column in columns)


def _compared(value: Scalar) -> Scalar:
    return length(value) if is_of_intervals(value.type) else value


def _aggregate(node: Aggregate, fresh: Fresh) -> Relation:
    keys: list[tuple[Column, Scalar]] = []
    calls: list[tuple[Column, AggregateCall]] = [(column, _of_length(call)) for column, call in node.aggregates]
    for column, key in node.keys:
        if is_of_intervals(key.type):
            calls.append((column, AggregateCall("min_by", (key, length(key)), key.type)))
            column = fresh.column("length", length(key).type)
        keys.append((column, _compared(key)))
    found = Aggregate(node.input, tuple(keys), tuple(calls))
    return keep_columns(found, node.columns) if found.columns != node.columns else found


def _of_length(call: Any) -> Any:
    """An aggregate, or a window call of one, by lengths."""
    if not call.arguments or not is_of_intervals(call.arguments[0].type):
        return call
    (value, *rest) = call.arguments
    if call.function in _BY_LENGTH and value.type.element is None:
        plain = replace(call, distinct=False) if isinstance(call, AggregateCall) else call
        return replace(plain, function=_BY_LENGTH[call.function], arguments=(value, length(value)))
    if call.function == "count" and isinstance(call, AggregateCall) and call.distinct:
        return replace(call, arguments=(length(value), *rest))
    return call


def _window(node: Window) -> Relation:
    def changed(call: WindowCall) -> WindowCall:
        found: WindowCall = _of_length(call)
        return replace(found, partition=tuple(map(_compared, found.partition)))

    return replace(node, calls=tuple((column, changed(call)) for column, call in node.calls))


# -- sets ------------------------------------------------------------------------------------------------------------


def _set(node: SetOperation, fresh: Fresh) -> Relation:
    """The groups of both sides' rows that the set operation keeps."""
    is_left = fresh.column("is_left", BOOL, False)
    left, right = _side(node.left, node.all, True, fresh), _side(node.right, node.all, False, fresh)
    number = (fresh.column("number", INT8, False),) if node.all else ()
    columns = tuple(map(fresh.copy, node.columns))
    both = SetOperation("union", True, left, right, (*columns, *number, is_left))
    outputs = zip(node.columns, map(ColumnRef, columns), strict=True)
    keys = (*outputs, *((fresh.copy(column), ColumnRef(column)) for column in number))
    counts = {value: fresh.column("count", INT8, False) for value in (True, False)}
    calls = tuple((column, _counted(is_left, value)) for value, column in counts.items())
    groups = _aggregate(Aggregate(both, tuple(keys), calls), fresh)
    wanted = {"union": (), "intersect": ("gt", "gt"), "except": ("gt", "eq")}[node.kind]
    zero = Literal(0, INT8)
    tests = (Call(name, (ColumnRef(column), zero), BOOL) for name, column in zip(wanted, counts.values(), strict=False))
    return keep_columns(filtered(groups, tests), node.columns)


def _side(side: Relation, is_numbered: bool, is_left: bool, fresh: Fresh) -> Relation:
    """One side's rows with a mark of their side and, for ALL, their numbers among equal rows."""
    values: tuple[Scalar, ...] = tuple(map(ColumnRef, side.columns))
    if is_numbered:
        number = fresh.column("number", INT8, False)
        call = WindowCall("row_number", (), INT8, tuple(map(_compared, values)))
        side, values = Window(side, ((number, call),)), (*values, ColumnRef(number))
    values = (*values, Literal(is_left, BOOL))
    return Project(side, tuple((fresh.column("side", value.type), value) for value in values))


def _counted(is_left: Column, value: bool) -> AggregateCall:
    condition: Scalar = ColumnRef(is_left) if value else Call("not", (ColumnRef(is_left),), BOOL)
    return AggregateCall("count", (Literal(1, INT4),), INT8, filter=condition)

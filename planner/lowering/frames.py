"""Windows and limits by the numbers of rows and of their groups.

... OVER (ORDER BY x GROUPS n PRECEDING)    ... OVER (ORDER BY dense_rank() OVER (ORDER BY x) RANGE n PRECEDING)
ORDER BY x LIMIT (SELECT ...)               the rows of which row_number() OVER (ORDER BY x) is at most that
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from catalog.types import BOOL, INT8, TEXT
from planner.algebra import Limit, Sort, SortKey, Window
from planner.expression import Call, Case, Cast, ColumnRef, Literal, Scalar, WindowCall
from planner.lowering.aggregates import Calls
from planner.rules.support import Fresh, filtered, keep_columns


def by_number(node: Any, fresh: Fresh) -> Any:
    """Frames that count groups of peers as frames over the groups' numbers, which a window below gives."""
    if not isinstance(node, Window):
        return node
    ranks = Calls(fresh)
    calls = tuple((column, _ranged(call, ranks)) for column, call in node.calls)
    return keep_columns(Window(Window(node.input, ranks.pairs), calls), node.columns) if ranks.calls else node


def _ranged(call: WindowCall, ranks: Calls) -> WindowCall:
    if call.mode != "groups" or not call.order_by or not call.offsets:
        return call
    rank = WindowCall("dense_rank", (), INT8, call.partition, call.order_by)
    return replace(call, mode="range", order_by=(SortKey(ColumnRef(ranks.column("dense_rank", rank))),))


def counted(node: Any, fresh: Fresh) -> Any:
    """A limit that is computed as a filter on the rows' numbers, in their order."""
    if not isinstance(node, Limit) or all(map(_is_constant, (node.count, node.offset))):
        return node
    keys = node.input.keys if isinstance(node.input, Sort) else ()
    number = fresh.column("row_number", INT8, False)
    numbered = Window(node.input, ((number, WindowCall("row_number", (), INT8, order_by=keys)),))
    parts = []
    passed: Scalar = ColumnRef(number)
    if node.offset is not None:
        skipped = Call("coalesce", (_checked(node.offset, "2201X", "OFFSET"), Literal(0, INT8)), INT8)
        passed = Call("sub", (passed, skipped), INT8)
        parts.append(Call("gt", (passed, Literal(0, INT8)), BOOL))
    if node.count is not None:
        within = Call("le", (passed, _checked(node.count, "2201W", "LIMIT")), BOOL)
        parts.append(Call("is_not_false", (within,), BOOL))  # NULL is no limit
    return keep_columns(Sort(filtered(numbered, parts), (SortKey(ColumnRef(number)),)), node.columns)


def _checked(value: Scalar, state: str, clause: str) -> Scalar:
    """The number, or the error of one below zero."""
    error = Call("error", (Literal(state, TEXT), Literal(f"{clause} must not be negative", TEXT)), INT8)
    return Case(((Call("lt", (value, Literal(0, INT8)), BOOL), error),), value, INT8)


def _is_constant(value: Scalar | None) -> bool:
    while isinstance(value, Cast):
        value = value.argument
    return value is None or isinstance(value, Literal)

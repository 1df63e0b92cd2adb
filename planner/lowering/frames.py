"""Windows and limits by the numbers of rows and of their groups.

... OVER (ORDER BY x GROUPS n PRECEDING)    ... OVER (ORDER BY dense_rank() OVER (ORDER BY x) RANGE n PRECEDING)
ORDER BY x LIMIT (SELECT ...)               the rows of which row_number() OVER (ORDER BY x) is at most that
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from catalog.values.types import INT8
from planner.algebra.construction import Fresh, keep_columns
from planner.algebra.nodes import ColumnRef, Limit, SortKey, Window, WindowCall
from planner.lowering.aggregates import Calls
from planner.rules.row_order.number_rows import is_constant, number_rows


def by_number(node: Any, fresh: Fresh) -> Any:
    """Frames that count groups of peers, as frames over the groups' numbers, which a window below computes."""
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
    """A limit with a computed count, as a filter on row numbers in the limit's order."""
    if not isinstance(node, Limit) or (is_constant(node.count) and is_constant(node.offset)):
        return node
    return keep_columns(number_rows(node, (), fresh), node.columns)

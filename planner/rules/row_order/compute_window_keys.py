"""Windows get what orders and parts them as columns where it may raise an error, differs from call to call, or has a
subquery.

    Window(R, f OVER (PARTITION BY p ORDER BY k))
  = Window(Project(R, *, p AS a, k AS b), f OVER (PARTITION BY a ORDER BY b))

An engine compares a key's rows more than once, and refuses one that it may not compute twice: ``date + id``, which may
leave the range of dates, ``random()``. It takes a window within a subquery there for a window within a window.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec.structs import replace

from planner.algebra.construction import Fresh, has_subquery, keep_columns
from planner.algebra.failures import may_raise
from planner.algebra.nodes import Column, ColumnRef, Project, Relation, Scalar, Window, WindowCall
from planner.algebra.walk import kinds_of, transform_relations


def compute_window_keys(relation: Relation) -> Relation:
    """The relation with such keys computed below its windows."""
    return transform_relations(relation, partial(_change, Fresh(relation)), kinds_of(Window))


def _change(fresh: Fresh, node: Any) -> Any:
    if not isinstance(node, Window):
        return node
    computed: dict[Scalar, Column] = {}
    calls = tuple((column, _keyed(fresh, call, computed)) for column, call in node.calls)
    if not computed:
        return node
    outputs = tuple((column, ColumnRef(column)) for column in node.input.columns)
    below = Project(node.input, outputs + tuple((column, key) for key, column in computed.items()))
    return keep_columns(Window(below, calls), node.columns)


def _keyed(fresh: Fresh, call: WindowCall, computed: dict[Scalar, Column]) -> WindowCall:
    """The call over keys that are columns; ``computed`` gets what these are of."""

    def key(scalar: Scalar) -> Scalar:
        if not may_raise(scalar) and not has_subquery(scalar):
            return scalar
        if scalar not in computed:
            computed[scalar] = fresh.column("key", scalar.type)
        return ColumnRef(computed[scalar])

    order = tuple(replace(item, expression=key(item.expression)) for item in call.order_by)
    return replace(call, partition=tuple(map(key, call.partition)), order_by=order)

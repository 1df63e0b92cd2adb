"""Orders that nothing sees: joins and set operations keep none, and ordered windows have their own.

    Sort(R) join S                   =  R join S                 also through projections and filters, on either side
    Sort(R) union Sort(S)            =  R union S                but for UNION ALL, whose sides come one after the other
    Window(Sort(R), f OVER (o))      =  Window(R, f OVER (o))    where each call has an order

For relations of which changes are followed; an engine leaves such sorts out by itself.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from planner.algebra.nodes import Filter, Join, Project, Relation, SetOperation, Sort, Window
from planner.algebra.walk import kinds_of
from planner.rules.node_rule import node_rule


@node_rule(kinds_of(Sort), Join, SetOperation, Window)
def forget_orders(node: Any) -> Any:
    """An operator without the orders of its inputs."""
    if isinstance(node, Window):
        below = _unordered(node.input) if all(call.order_by for _, call in node.calls) else node.input
        return node if below is node.input else replace(node, input=below)
    if isinstance(node, SetOperation) and node.kind == "union" and node.all:
        return node
    left, right = _unordered(node.left), _unordered(node.right)
    return node if left is node.left and right is node.right else replace(node, left=left, right=right)


def _unordered(relation: Relation) -> Relation:
    match relation:
        case Sort():
            return _unordered(relation.input)
        case Project() | Filter():
            below = _unordered(relation.input)
            return relation if below is relation.input else replace(relation, input=below)
        case _:
            return relation

"""What split maintenance can take in below a grouping of a stream.

Owns the rules of the thesis, sections 4.2.2 and 4.2.3, as a guard on decorrelated algebra: below its grouping a stream
meets only tables, as the probe side of a join that keeps the stream's rows, and no other pipeline breaker. Where a
grouping breaks one, the rows of its streams are collected (``methods.collect``).
"""

from __future__ import annotations

from typing import Final

from planner.algebra.construction import SUBQUERIES, volatility
from planner.algebra.nodes import Fixpoint, Join, Limit, Relation, ScalarSubquery, Scan, Window
from planner.algebra.walk import Node, children, free_columns, is_dependent, is_relation, walk
from planner.incremental.properties import Kinds

#: Why the rows of a relation over a stream are collected if nothing else is the reason.
UNGROUPED: Final = "the view has rows of it that no grouping takes in"
#: The reason where the query has no form without subqueries.
CORRELATED: Final = "a subquery is evaluated for each row of another relation"
_DEPENDENT: Final = "LATERAL relates them to other rows by more than equalities"


def obstacle(grouping: Relation, kinds: Kinds) -> str | None:
    """Why a grouping of a stream cannot be maintained as the stream grows, in words; None where it can."""
    found = operator_obstacle(grouping, kinds)
    if found is not None:
        return found
    for node in walk(grouping):
        if isinstance(node, Scan) and not (node.arrives or node.kind == "table"):
            return f'they are joined with "{node.name}" before they are grouped'
        if isinstance(node, SUBQUERIES) and not isinstance(node, ScalarSubquery):
            return "a subquery in an expression reads tables before they are grouped"
    if volatility(grouping) != "immutable":
        return "a function whose value may change is called before they are grouped"
    return None


def operator_obstacle(relation: Relation, kinds: Kinds) -> str | None:
    """Why an operator below the groupings of a relation cannot take in a stream's rows one after the other."""
    if free_columns(relation):
        return _DEPENDENT
    over_stream = (node for node in walk(relation) if node is relation or kinds.of(node) == "stream")
    return next((found for node in over_stream if (found := _of_operator(node, kinds)) is not None), None)


def _of_operator(node: Node, kinds: Kinds) -> str | None:
    match node:
        case Join() if "static" not in (kinds.of(node.left), kinds.of(node.right)):
            return "streams are joined before they are grouped"
        case Join() if is_dependent(node.right, node.left):
            return _DEPENDENT
        case Limit():
            return "LIMIT is applied before they are grouped"
        case Fixpoint():
            return "WITH RECURSIVE reads them before they are grouped"
        case Window():
            return "a window function reads them before they are grouped"
        case _:
            pass
    if any(kinds.of(child) != "static" for child in children(node) if is_relation(node) and not is_relation(child)):
        return "a subquery over a stream is compared with rows that are not grouped yet"
    return None

"""FILTER decides which rows an aggregate's arguments are computed of, where computing them may raise.

    sum(1 / x) FILTER (WHERE x > 0)  =  sum(CASE WHEN x > 0 THEN 1 / x END) FILTER (WHERE x > 0)

An engine computes arguments for all rows and leaves out afterwards; PostgreSQL's aggregates never see the others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.algebra import Relation
from planner.expression import AggregateCall, Case, Literal, Scalar, WindowCall
from planner.rules.raising import may_raise
from planner.walk import transform, walk


def guard_arguments(relation: Relation) -> Relation:
    """The relation with the conditions of FILTER around arguments that may raise."""
    if not any(isinstance(node, AggregateCall | WindowCall) and node.filter is not None for node in walk(relation)):
        return relation
    result: Relation = transform(relation, _change)
    return result


def _change(node: Any) -> Any:
    if not isinstance(node, AggregateCall | WindowCall) or node.filter is None:
        return node
    arguments = tuple(_guarded(item, node.filter) for item in node.arguments)
    if isinstance(node, WindowCall):  # whose order is that of all rows
        return replace(node, arguments=arguments)
    order = tuple(replace(key, expression=_guarded(key.expression, node.filter)) for key in node.order_by)
    return replace(node, arguments=arguments, order_by=order)


def _guarded(scalar: Scalar, condition: Scalar) -> Scalar:
    """A value where the condition holds, else NULL; as it is where it cannot raise, or is so already."""
    is_guarded = isinstance(scalar, Case) and scalar.branches[0][0] == condition
    if is_guarded or not may_raise(scalar):
        return scalar
    return Case(((condition, scalar),), Literal(None, scalar.type), scalar.type)

"""FILTER decides which rows an aggregate's arguments are computed of, where computing them may raise.

    sum(1 / x) FILTER (WHERE x > 0)  =  sum(CASE WHEN x > 0 THEN 1 / x END) FILTER (WHERE x > 0)

An engine computes arguments for all rows and leaves out afterwards; PostgreSQL's aggregates never see the others. Nor
does it compute the second part of an AND where the first is false. A key of json_object_agg() may not be NULL: that of
rows that are left out is the empty text.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from planner.algebra.construction import FALSE, conjunction, conjuncts
from planner.algebra.failures import may_raise
from planner.algebra.nodes import AggregateCall, Case, Literal, Relation, Scalar, WindowCall
from planner.algebra.walk import kinds_of, transform_relations

#: Aggregates whose first argument may not be NULL.
_KEYED: Final = ("json_object_agg", "jsonb_object_agg")


def guard_arguments(relation: Relation) -> Relation:
    """The relation with the conditions of FILTER around arguments that may raise."""
    return transform_relations(relation, _change, kinds_of(AggregateCall, WindowCall))


def _change(node: Any) -> Any:
    if not isinstance(node, AggregateCall | WindowCall) or node.filter is None:
        return node
    condition = _in_order(node.filter)
    arguments = tuple(_guarded(item, condition, Literal(None, item.type)) for item in node.arguments)
    if node.function in _KEYED:
        arguments = (_where(node.arguments[0], condition, Literal("", node.arguments[0].type)), *arguments[1:])
    node = replace(node, arguments=arguments, filter=condition)
    if isinstance(node, WindowCall):  # whose order is that of all rows
        return node
    keys = [_guarded(key.expression, condition, Literal(None, key.expression.type)) for key in node.order_by]
    order = tuple(replace(key, expression=item) for key, item in zip(node.order_by, keys, strict=True))
    return replace(node, order_by=order)


def _in_order(condition: Scalar) -> Scalar:
    """The condition, whose parts that may raise are asked where those before them hold."""
    found: list[Scalar] = []
    for part in conjuncts(condition):
        before = conjunction(found)
        found.append(part if before is None else _guarded(part, before, FALSE))
    return conjunction(found) or condition


def _guarded(scalar: Scalar, condition: Scalar, otherwise: Scalar) -> Scalar:
    """A value where the condition holds; as it is where it cannot raise."""
    return _where(scalar, condition, otherwise) if may_raise(scalar) else scalar


def _where(scalar: Scalar, condition: Scalar, otherwise: Scalar) -> Scalar:
    """A value where the condition holds, unless it is so already."""
    if isinstance(scalar, Case) and (scalar.branches[0][0], scalar.otherwise) == (condition, otherwise):
        return scalar
    return Case(((condition, scalar),), otherwise, scalar.type)

"""ORDER BY with LIMIT below a grouping of what is grouped already, as numbers of rows, which views have there.

    Aggregate(... Limit(Sort(R, o), m) ...)  =  Aggregate(... Filter(Window(R, n := row_number() OVER (ORDER BY o)),
                                                                     n <= m) ...)

A limit without an order would choose other rows at each read, and stays, to be refused.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from planner.algebra.construction import Fresh, keep_columns
from planner.algebra.nodes import Aggregate, Limit, Relation, Sort
from planner.algebra.walk import kinds_of, transform_relations
from planner.incremental.properties import Kinds
from planner.incremental.rewrites.orders import below_projections
from planner.rules.row_order.number_rows import number_rows


def number_inner_limits(relation: Relation) -> Relation:
    """The plan whose limits below groupings are filters."""
    fresh, kinds = Fresh(relation), Kinds()

    def numbered(node: Any) -> Any:
        if isinstance(node, Limit) and kinds.of(node) == "upper" and isinstance(below_projections(node.input), Sort):
            return keep_columns(number_rows(node, (), fresh), node.columns)
        return node

    def change(node: Any) -> Any:
        if not isinstance(node, Aggregate) or kinds.of(node.input) != "upper":
            return node
        below = transform_relations(node.input, numbered, kinds_of(Limit))
        return node if below is node.input else replace(node, input=below)

    return transform_relations(relation, change, kinds_of(Limit))

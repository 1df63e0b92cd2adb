"""Filter(Filter(R, p), q)  =  Filter(R, p AND q);  Filter(R, true)  =  R."""

from __future__ import annotations

from typing import Any

from planner.algebra import Filter, Relation
from planner.rules.support import TRUE, conjuncts, filtered
from planner.walk import kinds_of, transform_relations


def merge_filters(relation: Relation) -> Relation:
    """One filter for a stack of filters, the lower predicate first."""
    return transform_relations(relation, merge_filter, kinds_of(Filter))


def merge_filter(node: Any) -> Any:
    """One filter for two."""
    match node:
        case Filter(input=below, predicate=predicate) if predicate == TRUE:
            return below
        case Filter(input=Filter(input=below, predicate=lower), predicate=upper):
            return filtered(below, (*conjuncts(lower), *conjuncts(upper)))
        case _:
            return node

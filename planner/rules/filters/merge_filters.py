"""Filter(Filter(R, p), q)  =  Filter(R, p AND q);  Filter(Filter(R, p), p)  =  Filter(R, p);  Filter(R, true)  =  R.

Clients that write a condition on a subquery and on what reads it make two equal filters of it. Of volatile conditions
both stay: ``random() < 0.5`` twice lets a quarter of the rows through.
"""

from __future__ import annotations

from typing import Any

from planner.algebra.construction import TRUE, conjuncts, filtered, volatility
from planner.algebra.nodes import Filter
from planner.algebra.walk import kinds_of
from planner.rules.node_rule import node_rule


@node_rule(kinds_of(Filter), Filter)
def merge_filters(node: Any) -> Any:
    """One filter for a stack of filters, the lower predicate first."""
    match node:
        case Filter(input=below, predicate=predicate) if predicate == TRUE:
            return below
        case Filter(input=Filter(input=below, predicate=lower), predicate=upper):
            parts = tuple(conjuncts(lower))
            others = (part for part in conjuncts(upper) if part not in parts or volatility(part) == "volatile")
            return filtered(below, (*parts, *others))
        case _:
            return node

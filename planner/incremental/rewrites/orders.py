"""Orders that a continuous view does not need (thesis 4.2.3).

Sort R  =  R      unless a LIMIT is directly above, or the result of the whole is read in its order
"""

from __future__ import annotations

from typing import Any

from planner.algebra.identity import NodeSet
from planner.algebra.nodes import (
    Limit,
    Project,
    Relation,
    Sort,
)
from planner.algebra.walk import (
    descend,
)


def drop_sorts(relation: Relation, ordered: bool = False) -> Relation:
    """ORDER BY without LIMIT means nothing in a view (thesis 4.2.3); directly below a limit it stays, and where the
    result is ``ordered`` so does that of the whole."""
    stays = NodeSet([below_projections(relation)] if ordered else ())

    def change(node: Any) -> Any:
        while isinstance(node, Sort) and node not in stays:
            node = node.input
        if isinstance(node, Limit):
            stays.add(below_projections(node.input))
        return node

    result: Relation = descend(relation, change)
    return result


def below_projections(relation: Relation) -> Relation:
    """What projections, if any, are over."""
    while isinstance(relation, Project):
        relation = relation.input
    return relation

"""With((n, Q), R) = R with a copy of Q, under columns of its own, for each Snapshot of n.

For what takes plans apart or prints them for an engine that shares nothing.
"""

from __future__ import annotations

from typing import Any

from planner.algebra.construction import Fresh
from planner.algebra.nodes import ColumnRef, Project, Relation, Snapshot, With
from planner.algebra.walk import transform


def inline_shared(relation: Relation) -> Relation:
    """An equal relation that shares nothing."""
    if not isinstance(relation, With):
        return relation
    fresh = Fresh(relation)
    known: dict[str, Relation] = {}

    def change(node: Any) -> Any:
        if not isinstance(node, Snapshot) or node.trace not in known:
            return node
        copy, _ = fresh.rename(known[node.trace])
        given = {f"c{old.id}": new for old, new in zip(known[node.trace].columns, copy.columns, strict=True)}
        outputs = zip(node.columns, node.sources, strict=True)
        return Project(copy, tuple((column, ColumnRef(given[source])) for column, source in outputs))

    for name, definition in relation.definitions:
        known[name] = transform(definition, change)
    result: Relation = transform(relation.body, change)
    return result

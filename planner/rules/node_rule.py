"""Rules that change one node at a time, whatever stands around it.

Owns: ``NodeRule``, which makes a rule of such a change, and tells without rebuilding a relation that there is nothing
to change. Knows no single rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from planner.algebra.nodes import Relation
from planner.algebra.walk import contains, transform_relations

Change = Callable[[Any], Any]
#: Applies a change to the nodes of a relation that contains some kinds, from the leaves or from the root.
Walk = Callable[[Relation, Change, int], Relation]


class NodeRule:
    """``change`` gives what becomes of a node of one of ``classes``, or the same node. A relation without ``kinds``
    (``planner.algebra.walk.contains``) has nothing to change."""

    def __init__(self, change: Change, kinds: int, classes: tuple[type, ...], walk: Walk) -> None:
        self.change = change
        self._kinds = kinds
        self._classes = classes
        self._walk = walk
        self.__name__, self.__doc__ = change.__name__, change.__doc__

    def __call__(self, relation: Relation) -> Relation:
        return self._walk(relation, self._changed, self._kinds)

    def _changed(self, node: Any) -> Any:
        return self.change(node) if type(node) in self._classes else node

    def may_change(self, relation: Relation, nodes: Mapping[type, list[Any]]) -> bool:
        """Whether the rule changes a relation, of which ``nodes`` are all nodes by their classes: where each stays
        what it is, so does the whole."""
        if not contains(relation, self._kinds):
            return False
        change = self.change
        return any(change(node) is not node for kind in self._classes for node in nodes[kind])


def node_rule(kinds: int, *classes: type, walk: Walk = transform_relations) -> Callable[[Change], NodeRule]:
    """Makes a rule of the change of a node that it decorates."""
    return lambda change: NodeRule(change, kinds, classes, walk)

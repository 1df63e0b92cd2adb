"""The method's interface: the first grouping above a stream becomes states, and a relation that reads them.

Owns the guard (thesis 4.2.2): the operator is a grouping, and its input reads a stream that no grouping has taken in.
"""

from __future__ import annotations

from typing import ClassVar

from planner.algebra.construction import Fresh
from planner.algebra.nodes import Aggregate, Relation
from planner.algebra.walk import Node
from planner.incremental.methods.split.groupings import Groupings
from planner.incremental.methods.split.reading import read
from planner.incremental.programs.program import MethodName
from planner.incremental.properties import Kinds, is_grouping


class SplitMaintenance:
    """Maintains groupings of streams."""

    name: ClassVar[MethodName] = "split"

    def __init__(self, groupings: Groupings, kinds: Kinds, fresh: Fresh) -> None:
        self._groupings = groupings
        self._kinds = kinds
        self._fresh = fresh

    def applies(self, node: Node) -> bool:
        """Whether the node is the first grouping above a stream."""
        return is_grouping(node, self._kinds)

    def plan(self, node: Node) -> Relation:
        """The grouping's rows, read from its states."""
        assert isinstance(node, Aggregate)
        return read(self._groupings.plan(node), self._fresh)

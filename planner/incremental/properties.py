"""Properties of the relations of a continuous view: where its streams are.

Owns the classification of the thesis, section 4.2.4: a **static** relation reads no stream, a **stream** relation reads
one that no grouping has taken in yet, an **upper** relation reads streams only through groupings.

    Join                 upper
      Aggregate          upper
        Join             stream
          Scan s         stream
          Scan t         static
      Scan u             static
"""

from __future__ import annotations

from typing import Final, Literal

from planner.algebra.identity import NodeMap
from planner.algebra.nodes import (
    Aggregate,
    Delta,
    Scan,
    Snapshot,
)
from planner.algebra.walk import (
    Node,
    children,
    walk,
)

Kind = Literal["static", "upper", "stream"]
_KINDS: Final[tuple[Kind, ...]] = ("static", "upper", "stream")  # an operator is of its inputs' last


class Kinds:
    """The kind of each relation of a plan, found once per node."""

    def __init__(self) -> None:
        self._known = NodeMap[Kind]()

    def of(self, relation: Node) -> Kind:
        """Static, stream or upper; relations nested in expressions count as inputs."""
        if relation not in self._known:
            for node in reversed(list(walk(relation))):
                if node not in self._known:
                    self._known[node] = self._kind(node)
        return self._known[relation]

    def _kind(self, node: Node) -> Kind:
        below = [self._known[child] for child in children(node)]
        worst = _KINDS[max(map(_KINDS.index, below), default=0)]
        match node:
            case Scan(kind="stream" | "changes") | Delta():
                return "stream"
            case Snapshot():  # a state: a grouping that has been taken apart already
                return "upper"
            case Aggregate() if worst == "stream":
                return "upper"
            case _:
                return worst


def is_grouping(node: Node, kinds: Kinds) -> bool:
    """Whether a node is the first grouping above a stream."""
    return isinstance(node, Aggregate) and kinds.of(node.input) == "stream"

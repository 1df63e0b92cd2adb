"""Changes that nodes of a dataflow have yet to follow, where some nodes go on more rarely than others.

Owns: what has changed of each node's inputs since the node last went on, and which nodes go on with a step. A node goes
on over all that waits for it as over one change (InQP, section 4.3: a blocking operator takes its input in and delays
what it pushes on). Its inputs go on in the same step, so that they are all of one moment: what is known of the tables
at any moment, such as a foreign key that holds, holds for each node's rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from executor.dataflow.rows.weighted_rows import Consolidate, consolidated
from executor.small import AnyTable, SmallTable, together
from executor.traces.budget import size_of
from planner.incremental.dataflow.graph import (
    Constant,
    Dataflow,
    DataflowNode,
    Propagated,
    Ranked,
    Retracted,
    Shared,
    Source,
)

#: More rows than ever come or go.
NEVER: Final = 1 << 62
#: About the bytes of a value of few rows.
_VALUE_BYTES: Final = 64
#: By node, how many rows of sources have to come or go until it goes on.
Steps = Mapping[int, int]


class WaitingChanges:
    """Those of one dataflow."""

    def __init__(self, flow: Dataflow, merge: Callable[[int], Consolidate]) -> None:
        """``merge`` gives for a node what makes one of its equal rows."""
        self._merge = merge
        showing = flow.showing
        operators = [node for node in flow.nodes if not isinstance(node, Source | Constant | Ranked)]
        #: The nodes whose changes a node follows, in order.
        self._read: dict[int, tuple[int, ...]] = {}
        for node in operators:
            read = dict.fromkeys(node.inputs)
            for below in node.inputs:
                while below in showing:  # the rows that it has are those of another node
                    below = showing[below].node
                    read[below] = None
            self._read[node.id] = tuple(read)
        nodes = {node.id: node for node in flow.nodes}
        #: By node, those whose changes are added up as they are: nothing is gained by making them net.
        self._added_up = {
            node.id: frozenset(below for below in self._read[node.id] if below in nodes and _passes_on(nodes[below]))
            for node in operators
            if isinstance(node, Retracted) or _is_sum(node)
        }
        self._naming = {node.id: node.node for node in operators if isinstance(node, Shared)}
        self._parts: dict[int, dict[int, list[AnyTable]]] = {}
        #: Bytes of what waits for each node.
        self._sizes: dict[int, int] = {}
        self._behind = dict.fromkeys(self._read, 0)

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def bytes(self) -> int:
        """About what the changes take in memory; those that several nodes wait for count for each."""
        return sum(self._sizes.values())

    def due(self, steps: Steps, rows: int) -> Collection[int]:
        """The nodes that go on when so many rows of sources have changed, with all below them; nodes that have the rows
        of others go on with these."""
        found = set[int]()
        for node, below in reversed(self._read.items()):
            is_due = node not in self._naming and self._behind[node] + rows >= steps.get(node, 0)
            if is_due or node in found:
                found.add(node)
                found.update(item for item in below if item in self._read)
        found.update(node for node, below in self._naming.items() if below in found or below not in self._read)
        return found

    @property
    def rows(self) -> int:
        """The most rows of sources that have come or gone since a node went on."""
        return max(self._behind.values(), default=0)

    @property
    def never(self) -> Steps:
        """Steps that no node takes."""
        return dict.fromkeys(self._read, NEVER)

    def left(self, steps: Steps) -> int:
        """How many rows of sources have to change until the next node goes on."""
        return min((steps[node] - rows for node, rows in self._behind.items() if node in steps), default=0)

    def put_off(self, node: DataflowNode, changes: Callable[[int], AnyTable | None], rows: int) -> None:
        """A node does not follow the ``changes`` of others yet, of so many rows of sources."""
        self._behind[node.id] += rows
        for below in self._read[node.id]:
            if (delta := changes(below)) is not None:
                self._wait(node.id, below, delta)

    def _wait(self, node: int, below: int, delta: AnyTable) -> None:
        """The next change of a node waits for another one. Parts double in size, so that no row is often moved."""
        parts = self._parts.setdefault(node, {}).setdefault(below, [])
        parts.append(delta)
        more = _bytes_of(delta)
        while len(parts) > 1 and 2 * parts[-1].num_rows >= parts[-2].num_rows:
            joined = self._joined(node, below, parts[-2:])
            more += _bytes_of(joined) - sum(map(_bytes_of, parts[-2:]))
            parts[-2:] = [joined]
        self._sizes[node] = self._sizes.get(node, 0) + more

    def take(self, node: DataflowNode, changes: Callable[[int], AnyTable | None]) -> dict[int, AnyTable] | None:
        """What a node that goes on follows, by the node that has changed; None where nothing has waited."""
        self._behind[node.id] = 0
        self._sizes.pop(node.id, None)
        waiting = self._parts.pop(node.id, None)
        if waiting is None:
            return None
        found = {below: delta for below in self._read[node.id] if (delta := changes(below)) is not None}
        for below, parts in waiting.items():
            more = [found[below]] if below in found else []
            joined = self._joined(node.id, below, [*parts, *more])
            found.pop(below, None)
            if joined.num_rows:
                found[below] = joined
        return found

    def _joined(self, node: int, below: int, parts: Sequence[AnyTable]) -> AnyTable:
        """Changes of a node that follow each other as one, net where that saves the other one work."""
        rows = together(parts)
        return rows if below in self._added_up.get(node, ()) else consolidated(rows, self._merge(below))


def _is_sum(node: DataflowNode) -> bool:
    """Whether a node's change is a sum over the changed rows of the nodes below."""
    return isinstance(node, Propagated) and all(term.own_key is None for term in node.terms)


def _passes_on(node: DataflowNode) -> bool:
    """Whether a node seldom changes a row back that it has changed."""
    return isinstance(node, Source) or _is_sum(node)


def _bytes_of(rows: AnyTable) -> int:
    if isinstance(rows, SmallTable):
        return rows.num_rows * rows.num_columns * _VALUE_BYTES
    return size_of(rows)

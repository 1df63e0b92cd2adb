"""The graph while it is made: nodes by number, what stands for them in relations, and which rows must be found.

Owns: numbers of nodes, fresh columns, ``expanded``, the relation that a part of the plan was before nodes stood in it,
and ``filled``, a node whose rows are made from those of kept nodes.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.types import INT8
from planner.algebra.construction import Fresh
from planner.algebra.nodes import Column, ColumnRef, Project, Relation, Scalar, Scan, Snapshot
from planner.algebra.signature import key_of
from planner.algebra.walk import descend, find, kinds_of
from planner.incremental.dataflow.graph import (
    Constant,
    DataflowNode,
    FirstOfPartitions,
    Operator,
    OrderedWindow,
    Propagated,
    Ranked,
    Recomputed,
    Recursive,
    Retracted,
    Shared,
    Source,
    chooses,
    leaf,
    references,
    rows_trace,
)

_SNAPSHOTS: Final = kinds_of(Snapshot)


class NotMaintained(Exception):
    """No method maintains an operator; ``reason`` says why, for EXPLAIN."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Counted(Struct, frozen=True):
    """The keys of a left join's right side (``counted_partners``): the ``leaf`` of the node that counts them, whose
    columns are the values of the right side's ``columns``, and what is asked of a left row and a key for it to have
    partners."""

    leaf: Snapshot
    columns: tuple[Column, ...]
    predicate: Scalar


class Building:
    """The nodes so far."""

    def __init__(self, fresh: Fresh, scope: str) -> None:
        self.fresh = fresh
        self.scope = scope
        self.nodes: list[DataflowNode] = []
        self._by_trace: dict[str, int] = {}
        self._weights: dict[int, Column] = {}
        self._by_definition: dict[Hashable, DataflowNode] = {}
        #: By the predicates of left joins, the keys of their right sides.
        self.counted: dict[Scalar, Counted] = {}
        #: What makes each node's rows, over the leaves that stand for other nodes.
        self._made: list[Relation] = []

    def next_id(self) -> int:
        """The number of the next node."""
        return len(self.nodes)

    def add(self, node: DataflowNode, made: Relation | None = None) -> Snapshot:
        """Adds a node, whose rows the relation ``made`` over leaves makes; the leaf that stands for it. It shares the
        rows of one with an equal definition."""
        assert node.id == len(self.nodes)
        self._made.append(node.definition if made is None else made)
        first = self._by_definition.setdefault(key_of(node.definition), node)
        if first is not node:
            node = Shared(node.id, node.columns, node.definition, *_shown(first))
        self.nodes.append(node)
        self._by_trace[rows_trace(self.scope, node.id)] = node.id
        return self.leaf(node.id)

    def renamed(self, columns: tuple[Column, ...], definition: Relation, made: Project) -> Snapshot:
        """The leaf for the rows of one node under other columns, which ``made`` projects in order."""
        below = self.nodes[self.node(made.input)]
        return self.add(Shared(self.next_id(), columns, definition, *_shown(below)), made)

    def node_of(self, leaf: Relation) -> int | None:
        """The node for whose rows a leaf stands; None for another relation."""
        return self._by_trace.get(leaf.trace) if isinstance(leaf, Snapshot) else None

    def node(self, leaf: Relation) -> int:
        """The node for whose rows a leaf stands."""
        found = self.node_of(leaf)
        assert found is not None
        return found

    def source(self, leaf: Scan | Snapshot) -> Snapshot:
        """The leaf for a table's or a state's rows."""
        return self.add(Source(self.next_id(), leaf))

    def constant(self, relation: Relation) -> Snapshot:
        """The leaf for rows that never change."""
        return self.add(Constant(self.next_id(), relation))

    def weight(self, node: int) -> Column:
        """The weight of a node's changed rows, for all that read them: an engine keeps the plans over a leaf while its
        columns are called the same."""
        found = self._weights.get(node)
        if found is None:
            found = self._weights[node] = self.fresh.column("weight", INT8, False)
        return found

    def leaves(self, relation: Any) -> list[Snapshot]:
        """The leaves of a tree that stand for nodes."""
        return [item for item in find(relation, _SNAPSHOTS) if item.trace in self._by_trace]

    def expanded(self, relation: Any) -> Any:
        """The tree with what each node is instead of its leaf, as far as that is the same each time it is evaluated:
        ties, and sums of floats, come out otherwise, so that a node that has them stays a leaf."""

        def change(item: Any) -> Any:
            node = self.node_of(item)
            return item if node is None or chooses(self.nodes, node) else self.nodes[node].definition

        return descend(relation, change, _SNAPSHOTS)

    def opened(self, relation: Relation, nodes: Container[int]) -> Relation:
        """The relation with what makes the rows of some nodes instead of their leaves."""

        def change(item: Any) -> Any:
            node = self.node_of(item)
            return self.opened(self._made[node], nodes) if node is not None and node in nodes else item

        found: Relation = descend(relation, change, _SNAPSHOTS)
        return found

    def filled(self, node: DataflowNode, kept: Container[int]) -> DataflowNode:
        """A node whose rows are made from those of the ``kept`` nodes below it, which have been made before. Rows that
        are a table's own are read from it, for whose sake an engine has statistics."""
        if isinstance(node, Recursive):
            node = replace(node, base_fill=self._over(node.base_fill, kept))
        if isinstance(node, Retracted | Recursive | OrderedWindow):
            node = replace(node, fill=self._over(node.fill, kept))
        if node.id in kept and isinstance(node, Propagated | Retracted | Recomputed | FirstOfPartitions):
            node = replace(node, definition=self._over(self._made[node.id], kept))
        return node

    def _over(self, relation: Relation, kept: Container[int]) -> Relation:
        def change(item: Any) -> Any:
            node = self.node_of(item)
            if node is None or chooses(self.nodes, node):
                return item
            found = self.nodes[node]
            is_kept = (found.node if isinstance(found, Shared) else node) in kept
            return item if is_kept and not self.is_plain(item) else self._over(self._made[node], kept)

        made: Relation = descend(relation, change, _SNAPSHOTS)
        return made

    def never_changes(self, node: int) -> bool:
        """Whether a node's rows stay what they are, since it is made of constants alone."""
        found = self.nodes[node]
        if isinstance(found, Shared | Propagated | Retracted | Recomputed):
            return all(map(self.never_changes, found.inputs))
        return isinstance(found, Constant)

    def is_plain(self, relation: Relation) -> bool:
        """Whether a relation is nothing but rows of one table or state, or constant: computing it anew is as cheap as
        keeping it. A view's rows are looked up where they are kept, and its readers' changes are followed."""
        node = self.node_of(relation)
        if node is None:
            return isinstance(relation, Snapshot)
        found = self.nodes[node]
        if isinstance(found, Ranked):
            return False
        if isinstance(found, Operator):
            return len(found.inputs) == 1 and _is_chain(found) and self.is_plain(self.leaf(found.inputs[0]))
        return not (isinstance(found, Source) and found.is_view)

    def leaf(self, node: int) -> Snapshot:
        """The leaf that stands for a node."""
        return leaf(rows_trace(self.scope, node), self.nodes[node].columns)


def _shown(node: DataflowNode) -> tuple[int, tuple[Column, ...]]:
    """The node that has a node's rows, and the columns there."""
    return (node.node, node.shown) if isinstance(node, Shared) else (node.id, node.columns)


def _is_chain(node: Operator) -> bool:
    """Whether a node only filters and projects the rows of another one, or has them."""
    return isinstance(node, Shared) or (isinstance(node, Propagated) and not any(term.fetches for term in node.terms))


def with_columns(relation: Relation, columns: tuple[Column, ...]) -> Relation:
    """A relation of just these columns, in this order."""
    return relation if relation.columns == columns else Project(relation, references(columns))


def with_keys(building: Building, side: Relation, keys: Sequence[Scalar]) -> tuple[Relation, list[Column]]:
    """A relation with some expressions among its columns, and these columns."""
    found, added = list[Column](), list[tuple[Column, Scalar]]()
    for key in keys:
        if isinstance(key, ColumnRef):
            found.append(key.column)
        else:
            added.append((building.fresh.column("key", key.type), key))
            found.append(added[-1][0])
    return (Project(side, (*references(side.columns), *added)) if added else side), found

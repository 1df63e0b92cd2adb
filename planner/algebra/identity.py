"""Maps and sets of nodes by identity: what is known of one place in a tree, and not of all equal nodes.

Equality does not do for this: two calls of ``random()`` are equal nodes and give two values, and literals of 1.0 and
1.00 are equal and show different texts. Maps and sets keep their nodes, so that no other node gets the ``id()`` of one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


class NodeMap(Generic[_Value]):
    """Values by node."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[tuple[object, _Value]] = ()) -> None:
        self._items = {id(node): (node, value) for node, value in items}

    def __setitem__(self, node: object, value: _Value) -> None:
        self._items[id(node)] = node, value

    def __getitem__(self, node: object) -> _Value:
        return self._items[id(node)][1]

    def __contains__(self, node: object) -> bool:
        return id(node) in self._items

    def __len__(self) -> int:
        return len(self._items)

    def of(self, node: object) -> _Value | None:
        """The value of a node; None where it has none."""
        found = self._items.get(id(node))
        return None if found is None else found[1]


class NodeSet:
    """Some nodes."""

    __slots__ = ("_nodes",)

    def __init__(self, nodes: Iterable[object] = ()) -> None:
        self._nodes = {id(node): node for node in nodes}

    def add(self, node: object) -> None:
        """Adds a node."""
        self._nodes[id(node)] = node

    def __contains__(self, node: object) -> bool:
        return id(node) in self._nodes

    def __len__(self) -> int:
        return len(self._nodes)


def replaced(results: NodeMap[_Value], node: _Value) -> _Value:
    """What stands in a node's place; the node where nothing does."""
    found = results.of(node)
    return node if found is None else found

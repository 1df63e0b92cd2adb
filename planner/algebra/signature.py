"""Equal subtrees, whatever their columns are called.

Owns ``signature``: two relations have the same one exactly when a renaming of the columns that they produce makes them
equal. (A CTE that is read twice is bound twice, with columns of its own each time.) It is flat, so that it hashes and
compares without recursion however deep the tree is.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from decimal import Decimal
from typing import Any

from planner.algebra.nodes import Column
from planner.algebra.walk import NODES, RELATIONS, Node, walk


def signature(node: Node) -> tuple[Hashable, tuple[Column, ...]]:
    """What a node is but for the identities of columns produced in it, and those columns in order of appearance."""
    numbers: dict[Column, int] = {}
    for item in walk(node):
        if isinstance(item, RELATIONS):
            for column in item.columns:
                numbers.setdefault(column, len(numbers))
    return entries(node, numbers), tuple(numbers)


def entries(node: Node, numbers: Mapping[Column, Hashable]) -> Hashable:
    """What a node is whose columns have these numbers, or other names."""
    return tuple(_entry(item, numbers) for item in walk(node))


def _entry(node: Node, numbers: Mapping[Column, Hashable]) -> tuple[Hashable, ...]:
    return type(node).__name__, *(_plain(getattr(node, name), numbers) for name in node.__struct_fields__)


def _plain(value: Any, numbers: Mapping[Column, Hashable]) -> Hashable:
    """A field's value with columns as numbers and nodes left out (they follow, parents first)."""
    if isinstance(value, Column):
        return (numbers.get(value, ("free", value.id)), value.type)
    if isinstance(value, NODES):
        return "node"
    if isinstance(value, tuple):
        return tuple(_plain(item, numbers) for item in value)
    is_plain = isinstance(value, Hashable) and not isinstance(value, float | Decimal)  # 0.0 equals -0.0
    return type(value).__name__, value if is_plain else repr(value)


def key_of(node: Node) -> Hashable:
    """A hashable value that equal nodes share."""
    return signature(node)[0]

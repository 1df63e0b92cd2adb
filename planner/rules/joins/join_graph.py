"""A region of inner joins as a graph: leaves are nodes, predicates between two of them are edges.

    Join                            leaves   a, b, c            sets of leaves are numbers, bit i for leaf i
      Filter  a.x < c.x             parts    a.k = b.k {a,b}    b.m = c.m {b,c}    a.x < c.x {a,c}
        Join  a.k = b.k  ...        shape    ((a, b), c)        how the joins are written

A region ends where a join is of another kind, LATERAL or volatile; such a relation is a leaf. A predicate that may
raise stays over all leaves that it was written over, so that it sees no row that it did not see before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from planner.algebra.construction import conjuncts, keeps_columns, volatility
from planner.algebra.failures import may_raise
from planner.algebra.nodes import Filter, Join, Project, Relation, Scalar
from planner.algebra.walk import is_dependent, used_columns

#: Joins as written: a leaf's place, or two shapes.
Shape = int | tuple[Any, Any]


class Part(Struct, frozen=True):
    """A predicate, and the leaves that must be joined where it is tested."""

    predicate: Scalar
    leaves: int


class Region(Struct):
    """The leaves in the order in which they are written, the predicates over them, and the joins' shape."""

    leaves: list[Relation] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    shape: Shape = 0

    @property
    def everything(self) -> int:
        """The set of all leaves."""
        return (1 << len(self.leaves)) - 1

    def neighbours(self) -> list[int]:
        """The leaves that each leaf shares a predicate with."""
        found = [0] * len(self.leaves)
        for part in self.parts:
            if part.leaves.bit_count() == 2:
                one, other = members(part.leaves)
                found[one] |= 1 << other
                found[other] |= 1 << one
        return found


def members(leaves: int) -> list[int]:
    """The places of a set."""
    return [place for place in range(leaves.bit_length()) if leaves >> place & 1]


def is_inside(node: Any) -> bool:
    """Whether a relation is a join, or a filter or choice of columns above one, that may be taken apart."""
    while True:
        match node:
            case Join(kind="inner", left=left, right=right, predicate=predicate):
                stays = predicate is not None and volatility(predicate) == "volatile"
                return not stays and not is_dependent(right, left)
            case Filter(predicate=predicate) if volatility(predicate) != "volatile":
                node = node.input
            case Project() if keeps_columns(node):
                node = node.input
            case _:
                return False


def region_of(root: Relation) -> Region:
    """The region that a relation is the root of (``is_inside``)."""
    region = Region()
    written: list[tuple[Scalar, int]] = []
    shapes: list[tuple[Shape, int]] = []
    for node in _children_first(root):
        match node:
            case Join(predicate=predicate) if is_inside(node):
                (right, right_leaves), (left, left_leaves) = shapes.pop(), shapes.pop()
                leaves = left_leaves | right_leaves
                shapes.append(((left, right), leaves))
                written.extend((part, leaves) for part in conjuncts(predicate))
            case Filter(predicate=predicate) if is_inside(node):
                written.extend((part, shapes[-1][1]) for part in conjuncts(predicate))
            case Project() if is_inside(node):
                pass
            case _:
                shapes.append((len(region.leaves), 1 << len(region.leaves)))
                region.leaves.append(node)
    ((region.shape, _),) = shapes
    region.parts = list(_placed(written, region.leaves))
    return region


def inner_nodes(root: Relation) -> Iterator[Relation]:
    """The operators of a region, without its leaves."""
    return (node for node in _children_first(root) if is_inside(node))


def _children_first(root: Relation) -> Iterator[Relation]:
    stack: list[tuple[Relation, bool]] = [(root, False)]
    while stack:
        node, expanded = stack.pop()
        if expanded or not is_inside(node):
            yield node
            continue
        stack.append((node, True))
        below = (node.right, node.left) if isinstance(node, Join) else (node.input,)  # type: ignore[union-attr]
        stack.extend((item, False) for item in below)


def _placed(written: list[tuple[Scalar, int]], leaves: list[Relation]) -> Iterator[Part]:
    owner = {column: 1 << place for place, leaf in enumerate(leaves) for column in leaf.columns}
    for predicate, over in written:
        used = 0
        for column in used_columns(predicate):
            used |= owner.get(column, 0)
        yield Part(predicate, over if may_raise(predicate) else used)

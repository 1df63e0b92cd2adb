"""A region of joins taken apart, so that some of its relations are joined last.

    A join B on p(A, B) left join C on q(A, C) where r(A)      leaves A, B, C; C is the right side of a left join

Inner joins are joined in any order. Left, semi and anti joins of their rows commute with inner joins, and with filters
that do not use their right side::

    (A op C) join B  =  (A join B) op C                        op: left, semi or anti join

A relation may be joined last unless what is joined before needs it: a predicate of a semi or anti join, or of a left
join that stays below, uses its columns, or two parts of the rest have no equality in common without it. A predicate
that may raise is asked only where all relations are joined over which it was written.

What ends a region is a leaf of it: any other operator, a join whose right side uses the left's columns, and an
expression that has a subquery or depends on more than its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from planner.algebra.construction import conjunction, conjuncts, filtered, has_subquery, volatility
from planner.algebra.failures import may_raise
from planner.algebra.nodes import Call, Column, Filter, Join, Project, Relation, Scalar
from planner.algebra.walk import Node, inputs, is_dependent, replace_columns, used_columns
from planner.rules.joins.join_graph import Part, members


class Beside(Struct, frozen=True):
    """A left, semi or anti join of the region's rows with ``right``, whose predicate needs the leaves ``needs``.
    ``place`` is that of the right side of a left join among the leaves."""

    join: Join
    predicate: Scalar
    needs: int
    place: int | None


class Region(Struct):
    """``leaves``, of which ``inner`` are joined by inner joins, ``parts`` of predicates, joins ``beside``, and what
    projections compute. Sets of leaves are numbers (``planner.rules.joins.join_graph``)."""

    leaves: list[Relation] = field(default_factory=list)
    inner: list[int] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    beside: list[Beside] = field(default_factory=list)
    values: dict[Column, Scalar] = field(default_factory=dict)
    owners: dict[Column, int] = field(default_factory=dict)

    def inlined(self, node: Any) -> Any:
        """An expression over columns of the leaves."""
        return replace_columns(node, self.values)

    def without(self, places: Sequence[int]) -> Split | None:
        """The region with as many as possible of some leaves joined last, earlier ones first; None where none are."""
        below = (1 << len(self.leaves)) - 1
        pending = list(places)
        while free := [place for place in pending if self._may_go(place, below)]:
            below &= ~(1 << free[0])
            pending.remove(free[0])
        return None if len(pending) == len(places) else _split(self, below)

    def _may_go(self, place: int, below: int) -> bool:
        rest = below & ~(1 << place)
        for item in self.beside:
            stays = item.place is None or rest >> item.place & 1
            if stays and item.needs & ~rest:
                return False
        return any(rest >> other & 1 for other in self.inner) and self._islands(rest) <= self._islands(below)

    def _islands(self, leaves: int) -> int:
        """How many parts of some leaves have no equality in common."""
        found = [1 << place for place in members(leaves)]
        for edge in self._edges():
            if edge & leaves == edge:
                met = [part for part in found if part & edge]
                found = [part for part in found if not part & edge]
                found.append(sum(met))
        return len(found)

    def _edges(self) -> Iterator[int]:
        for part in self.parts:
            if any(True for _ in self._sides(part.predicate)):
                yield part.leaves
        yield from (item.needs | 1 << item.place for item in self.beside if item.place is not None)

    def _sides(self, part: Scalar) -> Iterator[tuple[Scalar, int, int]]:
        """Each side of an equality of two leaves, its leaf, and the other's."""
        if isinstance(part, Call) and part.function in ("eq", "is_not_distinct"):
            one, other = (self._used(side) for side in part.arguments)
            if one.bit_count() == other.bit_count() == 1 and one != other:
                left, right = (members(leaves)[0] for leaves in (one, other))
                yield part.arguments[0], left, right
                yield part.arguments[1], right, left

    def equalities(self) -> Iterator[tuple[Scalar, int, int]]:
        """Expressions that equal one of another leaf: each with its leaf, and the other's."""
        predicates = [part.predicate for part in self.parts]
        predicates += [part for item in self.beside for part in conjuncts(item.predicate)]
        for predicate in predicates:
            yield from self._sides(predicate)

    def _used(self, node: Node) -> int:
        found = 0
        for column in used_columns(node):
            found |= self.owners.get(column, 0)
        return found

    def joined(self) -> Relation:
        """The region's rows: each relation is joined once it has an equality with those before it, if one ever has."""
        tree, inner, beside = _Tree(self), list(self.inner), list(self.beside)
        while inner or beside:
            linked = next((place for place in inner if tree.meets(place, self._edges())), None)
            ready = next((item for item in beside if tree.has(item.needs)), None)
            if linked is None and (ready is None or tree.relation is None):
                linked = inner[0]
            if linked is not None:
                tree.join(self.leaves[linked], linked)
                inner.remove(linked)
            elif ready is not None:
                tree.put_beside(ready)
                beside = [item for item in beside if item is not ready]
        assert tree.relation is not None
        return tree.relation

    # -- taking apart --------------------------------------------------------------------------------------------------

    def add(self, leaf: Relation, is_inner: bool = True) -> int:
        """A leaf, as a set."""
        place = len(self.leaves)
        self.leaves.append(leaf)
        if is_inner:
            self.inner.append(place)
        self.owners |= dict.fromkeys(leaf.columns, 1 << place)
        return 1 << place

    def ask(self, predicate: Scalar | None, over: int) -> None:
        """A predicate over the rows of some leaves."""
        for part in conjuncts(self.inlined(predicate)) if predicate is not None else ():
            self.parts.append(Part(part, over if may_raise(part) else self._used(part)))

    def put_beside(self, join: Join, left: int) -> int:
        """A left, semi or anti join of the rows of some leaves; what it gives."""
        found = left | self.add(join.right, is_inner=False) if join.kind == "left" else left
        predicate = self.inlined(join.predicate)
        needs = left if may_raise(predicate) else self._used(predicate) & left
        place = len(self.leaves) - 1 if join.kind == "left" else None
        self.beside.append(Beside(join, predicate, needs, place))
        return found


class Split(Struct, frozen=True):
    """A region whose leaves ``below`` are joined first: ``rest`` has their rows, and ``pipeline`` the operators above,
    from the top down."""

    rest: Relation
    pipeline: tuple[Relation, ...]
    below: tuple[int, ...]

    def met(self, region: Region) -> Iterator[tuple[Scalar, Relation]]:
        """Expressions over the rest that equal one of a leaf above, with that leaf."""
        for value, own, other in region.equalities():
            if own in self.below and other not in self.below:
                yield value, region.leaves[other]


class _Tree:
    """Joined leaves, each predicate as soon as what it needs is there."""

    def __init__(self, region: Region) -> None:
        self._pending = list(region.parts)
        self._have = 0
        self.relation: Relation | None = None
        #: The operators, in the order in which they were put on one another.
        self.operators: list[Relation] = []

    def has(self, leaves: int) -> bool:
        """Whether some leaves are joined."""
        return not leaves & ~self._have

    def meets(self, place: int, edges: Iterable[int]) -> bool:
        """Whether a leaf has an equality with those that are joined, and no others."""
        return any(edge >> place & 1 and self.has(edge & ~(1 << place)) for edge in edges)

    def join(self, leaf: Relation, place: int) -> None:
        """An inner join."""
        self._have |= 1 << place
        ready = self._ready()
        if self.relation is None:
            self._put(filtered(leaf, ready))
        else:
            self._put(Join("inner", self.relation, leaf, conjunction(ready)))

    def put_beside(self, item: Beside) -> None:
        """A left, semi or anti join."""
        assert self.relation is not None
        self._have |= 0 if item.place is None else 1 << item.place
        self._put(replace(item.join, left=self.relation, predicate=item.predicate))
        if ready := self._ready():
            self._put(filtered(self.relation, ready))

    def _put(self, relation: Relation) -> None:
        self.relation = relation
        self.operators.append(relation)

    def _ready(self) -> list[Scalar]:
        found = [part.predicate for part in self._pending if not part.leaves & ~self._have]
        self._pending = [part for part in self._pending if part.leaves & ~self._have]
        return found


def _split(region: Region, below: int) -> Split:
    tree = _Tree(region)
    for place in region.inner:
        if below >> place & 1:
            tree.join(region.leaves[place], place)
    for item in region.beside:
        if item.place is None or below >> item.place & 1:
            tree.put_beside(item)
    rest, number = tree.relation, len(tree.operators)
    for place in region.inner:
        if not below >> place & 1:
            tree.join(region.leaves[place], place)
    for item in region.beside:
        if item.place is not None and not below >> item.place & 1:
            tree.put_beside(item)
    assert rest is not None
    return Split(rest, tuple(reversed(tree.operators[number:])), tuple(members(below)))


# -- from a relation ---------------------------------------------------------------------------------------------------


def region_of(root: Relation) -> Region:
    """The region that a relation is the root of."""
    region = Region()
    done: list[int] = []
    for node in _children_first(root):
        match node:
            case _ if not _is_inside(node):
                done.append(region.add(node))
            case Join(kind="inner"):
                right, left = done.pop(), done.pop()
                done.append(left | right)
                region.ask(node.predicate, left | right)
            case Join():
                done.append(region.put_beside(node, done.pop()))
            case Filter():
                region.ask(node.predicate, done[-1])
            case Project():
                region.values |= {column: region.inlined(value) for column, value in node.outputs}
            case _:
                raise AssertionError(f"{type(node).__name__} in a region of joins")
    return region


def is_root(node: Relation) -> bool:
    """Whether a region of joins begins at a node."""
    return _is_inside(node)


def is_plain(scalar: Node) -> bool:
    """Whether an expression may be moved: it has no subquery, and depends on its arguments alone."""
    return not has_subquery(scalar) and volatility(scalar) == "immutable"


def _is_inside(node: Relation) -> bool:
    """Whether a node is an operator of a region: a join, or a filter or projection of one."""
    while isinstance(node, Filter | Project):
        values = [node.predicate] if isinstance(node, Filter) else [value for _, value in node.outputs]
        if not all(map(is_plain, values)):
            return False
        node = node.input
    match node:
        case Join(kind="inner", predicate=predicate):
            return (predicate is None or is_plain(predicate)) and not is_dependent(node.right, node.left)
        case Join(kind="left" | "semi" | "anti", predicate=predicate):
            return predicate is not None and is_plain(predicate) and not is_dependent(node.right, node.left)
        case _:
            return False


def _children_first(root: Relation) -> Iterator[Relation]:
    stack = [(root, False)]
    while stack:
        node, is_expanded = stack.pop()
        if is_expanded or not _is_inside(node):
            yield node
            continue
        stack.append((node, True))
        below = inputs(node) if not isinstance(node, Join) or node.kind == "inner" else (node.left,)
        stack.extend((item, False) for item in reversed(below))

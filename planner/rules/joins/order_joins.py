"""A join B join C  =  any other order of the same inner joins, by estimated rows.

The order is the cheapest over all linear trees without cross products: by dynamic programming over connected sets of
relations (Selinger et al. 1979, section 5), and where these are too many, greedily, always the cheapest relation next
(Neumann and Radke, SIGMOD 2018, choose by the number of connected sets, too). What no predicate connects is crossed
last, as written. Joins cost the rows that they give (C_out), and more those that are moved for them. For this is for an
engine that runs joins as written (Spark): it knows how large files are and not how large a join of them is, so that it
copies a small table to all its workers, and for anything else sorts and exchanges the rows of both sides.

    lineitem, part, supplier WHERE l_partkey = p_partkey AND l_suppkey = s_suppkey AND p_name = 'x'
    = (lineitem join part) join supplier        -- 30 rows between, not all of lineitem

Joins stay as they are written unless another order is estimated clearly cheaper; so a rule that runs again changes
nothing. Statistics are an input, and joins of what they do not tell of stay as they are, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from math import inf
from typing import Any, Final

from msgspec import Struct

from planner.algebra.construction import conjunction, filtered, has_subquery, keep_columns
from planner.algebra.identity import NodeSet
from planner.algebra.nodes import Filter, Join, Project, Relation, Scan
from planner.algebra.walk import descend
from planner.rules.joins.cardinality import Cardinality
from planner.rules.joins.join_graph import Region, Shape, inner_nodes, is_inside, members, region_of
from planner.statistics import Statistics

#: Joins of a connected set with one more relation that are compared before the search becomes greedy: a chain of n
#: relations has about n^2 of them, a star n 2^(n-2).
_TRIED: Final = 1500
#: Bytes of a table up to which it is copied rather than exchanged (Spark's spark.sql.autoBroadcastJoinThreshold), and
#: of a value whose type does not say how long it is.
_COPIED: Final = 10 << 20
_TEXT: Final = 20
#: What a row costs that is copied, or sorted and exchanged, beside one that a join passes on.
_MOVED: Final = 4.0
#: A new order is taken where it costs less than this share of the written one's, for estimates are no more exact.
_CHEAPER: Final = 0.7


def order_joins(relation: Relation, statistics: Statistics) -> Relation:
    """The relation with its regions of inner joins ordered by what statistics say."""
    if not statistics:
        return relation
    result: Relation = descend(relation, _Regions(Cardinality(relation, statistics)).change)
    return result


class _Regions:
    """The regions of one plan, each ordered once, from its root."""

    def __init__(self, cardinality: Cardinality) -> None:
        self._cardinality = cardinality
        self._settled = NodeSet()

    def change(self, node: Any) -> Any:
        """A region's root with its joins in order; any other node as it is."""
        if not isinstance(node, Join | Filter | Project) or node in self._settled or not is_inside(node):
            return node
        region = region_of(node)
        if len(region.leaves) > 2 and all(map(self._cardinality.knows, region.leaves)):
            node = self._ordered(node, region)
        for item in inner_nodes(node):
            self._settled.add(item)
        return node

    def _ordered(self, node: Relation, region: Region) -> Relation:
        sizes = _Sizes(region, self._cardinality)
        best = _cheapest(region, sizes)
        if best.cost >= sizes.cost(region.shape) * _CHEAPER:
            return node
        return keep_columns(_built(region, best.shape), node.columns)


class _Tree(Struct, frozen=True):
    """Joined leaves: which, how, and what the joins cost."""

    leaves: int
    shape: Shape
    cost: float


class _Sizes:
    """How many rows each set of a region's leaves has once they are joined: the same for every order."""

    def __init__(self, region: Region, cardinality: Cardinality) -> None:
        self._region = region
        self._rows: dict[int, float] = {}
        self._shares: list[tuple[int, float]] = list(_shares(region, cardinality))
        for place, leaf in enumerate(region.leaves):
            own = [share for leaves, share in self._shares if leaves == 1 << place]
            rows = cardinality.rows(leaf)
            for share in own:
                rows *= share
            self._rows[1 << place] = rows
        self._shares = [(leaves, share) for leaves, share in self._shares if leaves.bit_count() > 1]
        self._copied = {1 << place for place, leaf in enumerate(region.leaves) if _size(leaf, cardinality) <= _COPIED}

    def rows(self, leaves: int) -> float:
        """Rows of a set."""
        known = self._rows.get(leaves)
        if known is None:
            known = 1.0
            for place in members(leaves):
                known *= self._rows[1 << place]
            for needed, share in self._shares:
                if needed & leaves == needed:
                    known *= share
            self._rows[leaves] = known
        return known

    def leaf(self, place: int) -> _Tree:
        """One leaf alone."""
        return _Tree(1 << place, place, 0.0)

    def join(self, left: _Tree, right: _Tree) -> _Tree:
        """Two trees joined; of two leaves the larger is on the left, which is the probe side."""
        first, second, leaves = self.rows(left.leaves), self.rows(right.leaves), left.leaves | right.leaves
        copied = [self.rows(side) for side in (left.leaves, right.leaves) if side in self._copied]
        moved = min(copied) if copied else first + second
        swapped = leaves.bit_count() == 2 and second > first
        shape = (right.shape, left.shape) if swapped else (left.shape, right.shape)
        return _Tree(leaves, shape, left.cost + right.cost + _MOVED * moved + self.rows(leaves))

    def cost(self, shape: Shape) -> float:
        """What the joins of a shape cost."""
        done: list[_Tree] = []
        for item in _post_order(shape):
            done.append(self.leaf(item) if isinstance(item, int) else self.join(done.pop(), done.pop()))
        return done[0].cost


def _size(leaf: Relation, cardinality: Cardinality) -> float:
    """Bytes of a table's columns, all rows of it, as an engine knows them; of anything else it knows nothing."""
    while isinstance(leaf, Filter | Project):
        leaf = leaf.input
    if not isinstance(leaf, Scan):
        return inf
    return cardinality.rows(leaf) * sum(max(column.type.length, 0) or _TEXT for column in leaf.columns)


def _first(leaves: int) -> int:
    """The lowest bit of a set: which leaf of it is written first."""
    return leaves & -leaves


def _shares(region: Region, cardinality: Cardinality) -> Iterator[tuple[int, float]]:
    """The selectivity of all predicates over the same leaves, for each set of leaves."""
    grouped: dict[int, list[Any]] = {}
    for part in region.parts:
        grouped.setdefault(part.leaves, []).append(part.predicate)
    for leaves, predicates in grouped.items():
        if leaves.bit_count() == 2:
            one, other = members(leaves)
            yield leaves, cardinality.link(region.leaves[one], region.leaves[other], predicates)
        elif leaves:
            yield leaves, cardinality.selectivity(conjunction(predicates) or predicates[0])


# -- search ------------------------------------------------------------------------------------------------------------


def _cheapest(region: Region, sizes: _Sizes) -> _Tree:
    """A good tree over all leaves."""
    neighbours = region.neighbours()
    trees = [_connected(component, neighbours, sizes) for component in _components(region.everything, neighbours)]
    return reduce(sizes.join, trees)


def _components(everything: int, neighbours: list[int]) -> Iterator[int]:
    """The sets of leaves that predicates connect, in the order in which they are written."""
    left = everything
    while left:
        found, border = 0, _first(left)
        while border:
            found |= border
            border = _around(border, neighbours) & ~found
        yield found
        left &= ~found


def _around(leaves: int, neighbours: list[int]) -> int:
    """The leaves that some leaf of a set is connected with."""
    found = 0
    for place in members(leaves):
        found |= neighbours[place]
    return found


def _connected(component: int, neighbours: list[int], sizes: _Sizes) -> _Tree:
    """The cheapest linear tree of connected leaves that was found."""
    level = {1 << place: sizes.leaf(place) for place in members(component)}
    tried = 0
    while component not in level:
        grown: dict[int, _Tree] = {}
        for tree in level.values():
            further = members(_around(tree.leaves, neighbours) & ~tree.leaves)
            tried += len(further)
            if tried > _TRIED:
                return _greedy(component, neighbours, sizes)
            for place in further:
                found = sizes.join(tree, sizes.leaf(place))
                known = grown.get(found.leaves)
                if known is None or found.cost < known.cost:
                    grown[found.leaves] = found
        level = grown
    return level[component]


def _greedy(component: int, neighbours: list[int], sizes: _Sizes) -> _Tree:
    """The cheapest pair, and then always the cheapest leaf."""
    trees = [sizes.leaf(place) for place in members(component)]
    while True:
        choices = [
            sizes.join(tree, sizes.leaf(place))
            for tree in trees
            for place in members(_around(tree.leaves, neighbours) & ~tree.leaves)
        ]
        if not choices:
            return trees[0]
        trees = [min(choices, key=lambda tree: tree.cost)]


# -- building ----------------------------------------------------------------------------------------------------------


def _built(region: Region, shape: Shape) -> Relation:
    """The joins of a shape, with each predicate as soon as its leaves are there; subqueries stay above."""
    pending = list(region.parts)

    def ready(leaves: int) -> list[Any]:
        now = [part for part in pending if part.leaves and part.leaves & leaves == part.leaves]
        pending[:] = [part for part in pending if part not in now]
        return [part.predicate for part in now]

    done: list[tuple[Relation, int]] = []
    for item in _post_order(shape):
        if isinstance(item, int):
            done.append((filtered(region.leaves[item], ready(1 << item)), 1 << item))
        else:
            (right, beyond), (left, own) = done.pop(), done.pop()
            parts = ready(own | beyond)
            on, above = ([part for part in parts if has_subquery(part) == is_above] for is_above in (False, True))
            done.append((filtered(Join("inner", left, right, conjunction(on)), above), own | beyond))
    return filtered(done[0][0], (part.predicate for part in pending))


def _post_order(shape: Shape) -> Iterator[Shape]:
    stack: list[tuple[Shape, bool]] = [(shape, False)]
    while stack:
        item, expanded = stack.pop()
        if isinstance(item, int) or expanded:
            yield item
        else:
            stack.append((item, True))
            stack.extend((below, False) for below in reversed(item))

"""A join B join C  =  any other order of the same inner joins, by estimated rows.

The order is the cheapest by the sum of the rows of all intermediate results (C_out), over all trees without cross
products: DPccp, which meets each pair of connected sets of relations once (Moerkotte and Neumann, VLDB 2006, figures 4
to 6), and, where these are too many, greedy operator ordering (Fegaras 1998): the two with the smallest result first
(Neumann and Radke, SIGMOD 2018, on adaptive optimization, begin and end with the same two). What no predicate connects
is crossed last, as written. Of each pair the larger goes to the left, which is the probe side.

    lineitem, part, supplier WHERE l_partkey = p_partkey AND l_suppkey = s_suppkey AND p_name = 'x'
    = (lineitem join part) join supplier        -- 30 rows between, not all of lineitem

Joins stay as they are written unless another order is estimated cheaper; so a rule that runs again changes nothing.
Statistics are an input, and without any there is nothing to order by.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from planner.algebra import Filter, Join, Project, Relation
from planner.rules.cardinality import Cardinality
from planner.rules.join_graph import Region, Shape, inner_nodes, is_inside, members, region_of
from planner.rules.support import conjunction, filtered, keep_columns
from planner.statistics import Statistics
from planner.walk import descend

#: Pairs of connected sets that are compared before the search becomes greedy (a chain of n relations has about n^3/6).
_PAIRS: Final = 1500
#: A new order is taken where it costs less than this share of the written one's.
_CHEAPER: Final = 0.999


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
        self._settled: dict[int, Any] = {}

    def change(self, node: Any) -> Any:
        """A region's root with its joins in order; any other node as it is."""
        if not isinstance(node, Join | Filter | Project) or id(node) in self._settled or not is_inside(node):
            return node
        region = region_of(node)
        if len(region.leaves) > 2:
            node = self._ordered(node, region)
        self._settled.update((id(item), item) for item in inner_nodes(node))
        return node

    def _ordered(self, node: Relation, region: Region) -> Relation:
        sizes = _Sizes(region, self._cardinality)
        best = _cheapest(region, sizes)
        if best.cost >= sizes.cost(region.shape) * _CHEAPER:
            return node
        return keep_columns(_built(region, best.shape), node.columns)


@dataclass(frozen=True, slots=True)
class _Tree:
    """Joined leaves: which, how, and the rows of all joins in it."""

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
        """Two trees joined, the larger on the left; of equal ones that which is written first."""
        leaves = left.leaves | right.leaves
        first, second = self.rows(left.leaves), self.rows(right.leaves)
        swapped = second > first or (second == first and _first(right.leaves) < _first(left.leaves))
        shape = (right.shape, left.shape) if swapped else (left.shape, right.shape)
        return _Tree(leaves, shape, left.cost + right.cost + self.rows(leaves))

    def cost(self, shape: Shape) -> float:
        """The rows of all joins of a shape."""
        found = 0.0
        done: list[int] = []
        for item in _post_order(shape):
            done.append(1 << item if isinstance(item, int) else done.pop() | done.pop())
            found += 0.0 if isinstance(item, int) else self.rows(done[-1])
        return found


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
    """The cheapest tree of connected leaves that was found."""
    best = {1 << place: sizes.leaf(place) for place in members(component)}
    for number, (one, other) in enumerate(_pairs(component, neighbours)):
        if number == _PAIRS:
            return _greedy(component, neighbours, sizes)
        tree = sizes.join(best[one], best[other])
        known = best.get(tree.leaves)
        if known is None or tree.cost < known.cost:
            best[tree.leaves] = tree
    return best[component]


def _pairs(component: int, neighbours: list[int]) -> Iterator[tuple[int, int]]:
    """All pairs of disjoint connected sets with an edge between them, smaller ones before those they are in."""
    for place in reversed(members(component)):
        start = 1 << place
        before = (start << 1) - 1
        for one in _connected_sets(start, before, neighbours):
            closed = before | one
            reach = _around(one, neighbours) & ~closed
            for other in reversed(members(reach)):
                lower = reach & (1 << other) - 1
                for found in _connected_sets(1 << other, closed | lower, neighbours):
                    yield one, found


def _connected_sets(start: int, closed: int, neighbours: list[int]) -> Iterator[int]:
    """Connected sets that contain ``start`` and, beyond it, nothing of ``closed``; each after those within it."""
    yield start
    yield from _grown(start, closed | start, neighbours)


def _grown(found: int, closed: int, neighbours: list[int]) -> Iterator[int]:
    """As deep as the search goes, which ends after some pairs (a set may have any number of subsets)."""
    border = _around(found, neighbours) & ~closed
    for part in _subsets(border):
        yield found | part
    for part in _subsets(border):
        yield from _grown(found | part, closed | border, neighbours)


def _subsets(leaves: int) -> Iterator[int]:
    """The subsets of a set that are not empty, each after its own subsets."""
    part = -leaves & leaves
    while part:
        yield part
        part = (part - leaves) & leaves


def _greedy(component: int, neighbours: list[int], sizes: _Sizes) -> _Tree:
    """Always the two connected trees whose join has the fewest rows."""
    trees = {1 << place: sizes.leaf(place) for place in members(component)}
    reach = {leaves: _around(leaves, neighbours) for leaves in trees}
    choices = {
        (one, other): sizes.rows(one | other) for one in trees for other in trees if one < other and reach[one] & other
    }
    while choices:
        one, other = min(choices, key=lambda pair: (choices[pair], _first(pair[0]), _first(pair[1])))
        joined = sizes.join(trees.pop(one), trees.pop(other))
        choices = {pair: rows for pair, rows in choices.items() if not {one, other} & set(pair)}
        reach[joined.leaves] = reach[one] | reach[other]
        choices |= {
            (joined.leaves, item): sizes.rows(joined.leaves | item) for item in trees if reach[item] & joined.leaves
        }
        trees[joined.leaves] = joined
    (tree,) = trees.values()
    return tree


# -- building ----------------------------------------------------------------------------------------------------------


def _built(region: Region, shape: Shape) -> Relation:
    """The joins of a shape, with each predicate as soon as its leaves are there."""
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
            done.append((Join("inner", left, right, conjunction(ready(own | beyond))), own | beyond))
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

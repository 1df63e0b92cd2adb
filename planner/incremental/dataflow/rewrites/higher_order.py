"""Higher-order views: groupings below joins with small relations (DBToaster, section 2.2, auxiliary views; Tempura,
section 4.2, equation 5, dQ = P(M, dS)).

    G(R join S; k; sums)  =  G'(M join S; k; merged)           M = G(R; e; sums and rows)

R are the relations of a region of joins that are large, S those that are small; e are the expressions over R alone that
the joins with S, the keys and the aggregates use (``planner.incremental.rewrites.pushed_groupings``). M is a grouping
as any other: its rows are kept. A changed row of S meets groups of M, and not a share of R::

    for a change of S     dQ = G'(M join dS)                   for a change of R     dQ = G'(dM join S)

What stands above M is split again while that pays, so that views of fewer and fewer relations stand on one another.

Guard of soundness: the aggregates of M are counts and exact sums (``retraction``). So are those above, or they are of
distinct values (``groupings``), of which M then has those of R as keys. No expression has a subquery, or depends on
more than its arguments. ``join_regions`` says which relations may be joined last.

Guard of cost, of what is not forced: M takes a grouping's work at each change of R. A change of S saves what a row of S
meets, about as many rows as the largest relation of R has for each row of S (``rewriting.ViewGuard``). Where statistics
do not tell, R and S stay together.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.errors import SqlError
from catalog.values.types import TEXT
from planner.algebra.construction import Fresh
from planner.algebra.nodes import (
    Aggregate,
    Cast,
    Column,
    Join,
    Project,
    Relation,
    Scalar,
    Scan,
    Snapshot,
    Working,
)
from planner.algebra.nulls import never_null
from planner.algebra.signature import key_of
from planner.algebra.walk import contains, find, free_columns, kinds_of, transform_relations
from planner.incremental.dataflow import groupings, retraction
from planner.incremental.dataflow.graph import DataflowNode, Retracted
from planner.incremental.dataflow.rewrites.join_regions import Region, Split, is_plain, region_of
from planner.incremental.dataflow.rewrites.rewriting import Sized, ViewGuard
from planner.incremental.rewrites.pushed_groupings import PushedGrouping
from planner.rules.joins.cardinality import Cardinality

_JOINS: Final = kinds_of(Join)
_GROUPINGS: Final = kinds_of(Aggregate)
_WORKING: Final = kinds_of(Working)
_LEAVES: Final = kinds_of(Scan, Snapshot)


class WithViews(Struct, frozen=True):
    """A relation with higher-order views in it; ``views`` has a column of each."""

    relation: Relation
    views: frozenset[Column]

    def marked(self, node: DataflowNode) -> DataflowNode:
        """A node, which says so if it is one of the views."""
        if isinstance(node, Retracted) and not self.views.isdisjoint(node.columns):
            return replace(node, is_auxiliary=True)
        return node


def may_have_views(relation: Relation) -> bool:
    """Whether a relation has a grouping over a join."""
    return any(contains(item.input, _JOINS) for item in find(relation, _GROUPINGS))


def with_views(relation: Relation, sized: Sized, constants: frozenset[str]) -> WithViews:
    """The relation with higher-order views where the guards hold; ``constants`` are traces that never change."""
    guard, is_known = sized.rewriting.views, bool(sized.statistics) or sized.rewriting.is_forced
    if guard is None or not is_known or not may_have_views(relation):
        return WithViews(relation, frozenset())
    splitting = _Splitting(relation, sized, guard, constants)
    changed = transform_relations(relation, splitting.change, _GROUPINGS)
    return WithViews(changed, frozenset(splitting.views))


class _Splitting:
    """The groupings of one relation, inner ones first."""

    def __init__(self, relation: Relation, sized: Sized, guard: ViewGuard, constants: frozenset[str]) -> None:
        self._fresh = Fresh(relation)
        self._cardinality = Cardinality(relation, sized.statistics)
        self._is_forced = sized.rewriting.is_forced
        self._guard = guard
        self._constants = constants
        self.views: list[Column] = []

    def change(self, node: Any) -> Any:
        """What stands in the place of a node: another relation for a grouping that is split."""
        if not isinstance(node, Aggregate):
            return node
        found = self._split(node)
        if found is None:
            return node
        if not self._is_forced:  # what is forced would be split without end
            found = replace(found, input=self.change(found.input))
        return found

    def _split(self, node: Aggregate) -> Project | None:
        """The grouping over a view of its large relations; None where a guard does not hold."""
        if not contains(node.input, _JOINS) or not self._is_sound(node):
            return None
        region = region_of(node.input)
        if len(region.leaves) < 2 or contains(node, _WORKING) or free_columns(node):
            return None
        small = self._small(region)
        for count in range(len(small), 0, -1):
            split = region.without(small[:count])
            found = None if split is None or self._is_view(region, split) else self._over(node, region, split)
            if found is not None:
                return found
        return None

    def _is_sound(self, node: Aggregate) -> bool:
        calls = [call for _, call in node.aggregates]
        are_followed = all(retraction.is_retractable(call) or groupings.is_of_values(call) for call in calls)
        return are_followed and all(map(is_plain, (*(value for _, value in node.keys), *calls)))

    def _small(self, region: Region) -> list[int]:
        """The leaves that may go above a view, the smallest first."""
        if not self._is_forced and not all(map(self._cardinality.knows, region.leaves)):
            return []
        rows = [self._cardinality.rows(leaf) for leaf in region.leaves]
        largest = max(region.inner, key=rows.__getitem__)
        small = [place for place, count in enumerate(rows) if self._guard.met * max(count, 1) <= rows[largest]]
        if self._is_forced and not small:
            small = [place for place in range(len(rows)) if place != largest]
        changing = (place for place in small if place != largest and not self._is_constant(region.leaves[place]))
        return sorted(changing, key=rows.__getitem__)

    def _is_constant(self, leaf: Relation) -> bool:
        return all(isinstance(item, Snapshot) and item.trace in self._constants for item in find(leaf, _LEAVES))

    def _is_view(self, region: Region, split: Split) -> bool:
        """Whether the rest of a region is a higher-order view and nothing else: another one would have its rows."""
        place, *others = split.below
        return not others and not set(self.views).isdisjoint(region.leaves[place].columns)

    def _over(self, node: Aggregate, region: Region, split: Split) -> Project | None:
        """The grouping over a view of the rest of a region; None where a guard does not hold."""
        whole = Aggregate(
            split.pipeline[0],
            tuple((column, region.inlined(value)) for column, value in node.keys),
            tuple((column, region.inlined(call)) for column, call in node.aggregates),
        )
        known = never_null(split.rest) | never_null(whole.input)
        pushed = PushedGrouping(split.rest, known, self._fresh, lambda join: join.left, bool(node.keys), True)
        try:
            found = pushed.relation(whole, split.pipeline)
        except SqlError:  # an aggregate that has no state
            return None
        view, above = pushed.inner, found.input
        are_sums = all(retraction.is_retractable(call) for _, call in view.aggregates)
        if not (isinstance(above, Aggregate) and self._is_sound(above) and are_sums):
            return None
        if not self._is_forced and not self._is_small(view, region, split):
            return None
        self.views.append(view.columns[0])
        return found

    def _is_small(self, view: Aggregate, region: Region, split: Split) -> bool:
        """Whether a view has few rows beside the largest relation below it, which a change of one above would meet."""
        largest = max(self._cardinality.rows(region.leaves[place]) for place in split.below)
        met = {key_of(value): self._cardinality.rows(leaf) for value, leaf in split.met(region)}
        groups = [self._cardinality.distinct(value) or met.get(key_of(value)) for value in _keys(view)]
        known = [count for count in groups if count is not None]
        return len(known) == len(groups) and prod(known) <= self._guard.groups * largest


def _keys(view: Aggregate) -> Iterator[Scalar]:
    """The keys, without the texts of others of them."""
    values = [value for _, value in view.keys]
    return (
        value for value in values if not (isinstance(value, Cast) and value.type == TEXT and value.argument in values)
    )

"""Tables joined below a grouping of a stream are read as they are: the grouping goes below their joins.

    Aggregate(P(S, T), k, a)  =  Project(Aggregate(P'(Aggregate(S, e, s), T), k', m), f)

P is a pipeline of filters, projections, unnests and joins with static relations T on the stream's way down, and S the
largest part of it that reads the stream alone. The inner grouping has a row for the rows of S that P, k and a take for
equal: its keys e are the expressions over S alone that these use, and s are state columns of a and a count of rows. All
rows of a group meet the same rows of T, so the group stands for them in P'; m and f make a of what comes out
(``pushed_calls``). The inner grouping is the first above the stream, and T stands above it, where tables are read at
each read of the view.

    SELECT name, sum(x) FROM s JOIN t ON k = id WHERE i + id > 1 GROUP BY name
    SELECT name, sum(g.x) FROM (SELECT k, i, sum(x) AS x FROM s GROUP BY k, i) g JOIN t ON k = id WHERE i + id > 1 ...

Side conditions: T has its rows whatever the stream's row is (``checks``). No aggregate depends on the order in which
rows arrive. A grouping without keys has a row where the stream has none, and is left out then. Of values that are equal
and print differently (0.0 and -0.0) the inner keys keep the text, too. Where an arm of a UNION ALL reads a table, each
arm is grouped by itself first (``grouped_arms``).

An expression that may raise an error is computed above the joins, since rows that meet no table's row have none.
Arithmetic counts as safe: it fails only where a result is out of its type's range.
"""

from __future__ import annotations

from typing import Any

from planner.algebra.construction import Fresh
from planner.algebra.nodes import (
    Aggregate,
    Column,
    ColumnRef,
    Project,
    Relation,
    Scan,
    SetOperation,
)
from planner.algebra.nulls import never_null
from planner.algebra.walk import Node, children, transform, walk
from planner.incremental.properties import Kinds, is_grouping
from planner.incremental.rewrites.grouped_arms import grouped_arms, streamward
from planner.incremental.rewrites.pushed_calls import Obstacle, TablesStayFrozen
from planner.incremental.rewrites.pushed_groupings import PushedGrouping


def live_tables(relation: Relation, fresh: Fresh) -> tuple[Relation, tuple[Obstacle, ...]]:
    """The plan whose groupings of streams stand below their joins with tables, and what keeps others from it."""
    pushing = _Pushing(fresh)
    changed: Relation = transform(relation, pushing.change)
    return changed, tuple(dict.fromkeys(pushing.obstacles))


class _Pushing:
    """The rewriting of one plan, inputs first."""

    def __init__(self, fresh: Fresh) -> None:
        self._fresh = fresh
        self._kinds = Kinds()
        self._seen: set[tuple[Column, ...]] = set()
        self.obstacles: list[Obstacle] = []

    def change(self, node: Any) -> Any:
        """What stands in the place of a node: another relation for a grouping with tables below it."""
        if not is_grouping(node, self._kinds):
            return node
        try:
            found = self._pushed(node)
        except TablesStayFrozen as stays:
            self.obstacles.append(stays.obstacle)
            return node
        return node if found is None else self._named(node, found)

    def _pushed(self, node: Aggregate) -> Project | None:
        """The grouping below its joins; None where it has no table below it. Raises TablesStayFrozen."""
        if not _reads_tables(node):
            return None
        found = self._pipeline(node)
        if found is None:
            return grouped_arms(node, self._kinds, self._fresh, self._arm)
        pipeline, source = found
        known = never_null(source) | never_null(node.input)
        pushed = PushedGrouping(source, known, self._fresh, lambda join: streamward(join, self._kinds), bool(node.keys))
        return pushed.relation(node, pipeline)

    def _arm(self, node: Aggregate) -> Relation:
        """The grouping of one arm of a UNION ALL. One over no stream is computed at each read."""
        return (self._pushed(node) if self._kinds.of(node.input) == "stream" else None) or node

    def _pipeline(self, node: Aggregate) -> tuple[list[Relation], Relation] | None:
        """The operators down to the lowest that reads a table, and what is below it; None where an arm of a UNION ALL
        reads one."""
        pipeline: list[Relation] = []
        below = node.input
        while not isinstance(below, Scan):
            if isinstance(below, SetOperation):
                if _reads_tables(below):
                    return None
                break
            pipeline.append(below)
            below = streamward(below, self._kinds)
        while pipeline and not self._reads_itself(pipeline[-1]):
            below = pipeline.pop()
        return pipeline, below

    def _reads_itself(self, node: Relation) -> bool:
        """Whether an operator reads tables beside the stream's part of its input."""
        stream = streamward(node, self._kinds)
        return any(_reads_tables(child) for child in children(node) if child is not stream)

    def _named(self, node: Aggregate, found: Project) -> Relation:
        """The relation under the grouping's columns. One grouping may stand at several places (``share_groupings``):
        what is above the inner one has columns of its own at each."""
        if node.columns not in self._seen:
            self._seen.add(node.columns)
            return found
        renamed, mapping = self._fresh.rename(found)
        return Project(renamed, tuple((column, ColumnRef(mapping[column])) for column in node.columns))


def _reads_tables(node: Node) -> bool:
    """Whether all that a part of a plan reads beside streams are tables, and there is one. (What else there is is no
    table of a view: ``checks.require_tables``.)"""
    scans = [item for item in walk(node) if isinstance(item, Scan) and not item.arrives]
    return bool(scans) and all(item.kind == "table" for item in scans)

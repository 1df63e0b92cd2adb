"""How many rows of each operator change where so many rows of its inputs do (InQP, section 3.1).

A batch's selectivities say how many rows there are; what is asked here is how many come, go and are replaced. With |R|
for the rows of an input and |Q| for those of the operator::

    filter          each kind of row passes by |Q| / |R|; of the updates that pass, some only come or only go (figure 4)
    grouping        N rows in M groups: a row updates its group, unless it is its only one, in (M / N)^2 of the cases
    join            a changed row of L has |L join R| / |L| partners
    left, anti      a row of R takes the unmatched row of |L| p u rows of L away, and gives it back when it goes, where
                    p is the share of pairs that join, and u = (1 - p)^|R| that of rows of L that meet no row of R;
                    where a row of L meets one row at most, it is unmatched until then: |L| p rows, u = 1 - p |R|
    semi            the same |L| p u rows of L come and go, with a partner instead of without one
    first n rows    a row is one of them in n / |R| of the cases, and then pushes another one out
    window          half of the rows of each touched partition get other values

The paper has two cases of a grouping: saturated, where every row updates a group, and not, where each row is a group.
Between them lies the share of rows that are alone in their groups, if sizes of groups are distributed geometrically.
Groups that several rows of one change touch change once (Cardenas' formula). Two inputs that change at once are taken
to meet each other's rows as they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log1p
from typing import Final

from planner.algebra.identity import NodeMap
from planner.algebra.nodes import (
    Aggregate,
    Column,
    ColumnRef,
    Filter,
    Join,
    Limit,
    Relation,
    Scan,
    SetOperation,
    Snapshot,
    Window,
)
from planner.algebra.walk import RELATIONS, inputs, walk
from planner.incremental.cost.changed_rows import NO_CHANGES, ChangedRows
from planner.rules.joins.cardinality import Cardinality

#: The share of the updates that pass a filter of which the row did not pass before, and of those of which it does not
#: any more.
MOVED: Final = 0.01
#: The share of a partition's rows behind a row that changes.
BEHIND: Final = 0.5


class ChangeCardinality:
    """How the relations within one relation change."""

    def __init__(self, root: Relation, cardinality: Cardinality, changed: Mapping[int | str, ChangedRows]) -> None:
        """``changed`` has what changes of leaves, by the oid of a scan or the trace of a snapshot."""
        self._cardinality = cardinality
        self._changed = changed
        self._found = NodeMap[ChangedRows]()
        for node in reversed(list(walk(root))):
            if isinstance(node, RELATIONS) and node not in self._found:
                self._found[node] = self._change(node)

    def of(self, relation: Relation) -> ChangedRows:
        """What changes of the root, or of a relation within it."""
        return self._found[relation]

    def _change(self, node: Relation) -> ChangedRows:
        below = [self._found.of(item) or NO_CHANGES for item in inputs(node)]
        match node:
            case Scan(oid=name) | Snapshot(trace=name):
                return self._changed.get(name, NO_CHANGES)
            case _ if not any(change.touched for change in below):
                return NO_CHANGES
            case Filter():
                return _passed(below[0], self._share(node, node.input))
            case Aggregate():
                return self._grouped(node, below[0])
            case Join():
                return self._joined(node, *below)
            case Limit():
                first = _passed(below[0], self._share(node, node.input))
                moved = first.inserted + first.deleted
                return ChangedRows(moved, first.updated, moved)
            case Window():
                return self._windowed(node, below[0])
            case SetOperation(kind="union", all=False):
                return self._alone(node, below[0].plus(below[1]), self._rows(node.left) + self._rows(node.right))
            case SetOperation(kind="intersect" | "except" as kind):
                right = below[1] if kind == "intersect" else below[1].reversed()
                return below[0].times(self._share(node, node.left)).plus(right.times(self._share(node, node.right)))
            case _:
                every = NO_CHANGES
                for change in below:
                    every = every.plus(change)
                return every.times(max(1.0, self._rows(node) / max(1.0, sum(map(self._rows, inputs(node))))))

    def _rows(self, relation: Relation) -> float:
        return self._cardinality.rows(relation)

    def _share(self, node: Relation, below: Relation) -> float:
        """Rows of an operator for each row of an input, at most one."""
        return min(1.0, self._rows(node) / max(1.0, self._rows(below)))

    def _grouped(self, node: Aggregate, change: ChangedRows) -> ChangedRows:
        if not node.keys:
            return ChangedRows(updated=touched(1.0, change.touched))
        return self._alone(node, change, self._rows(node.input))

    def _alone(self, node: Relation, change: ChangedRows, rows: float) -> ChangedRows:
        """What changes of groups where so many of ``rows`` do."""
        groups = max(1.0, min(self._rows(node), rows))
        alone = (groups / max(groups, rows)) ** 2
        distinct = touched(groups, change.touched) / change.touched
        updates = change.updated + (1 - alone) * (change.inserted + change.deleted)
        return ChangedRows(alone * change.inserted, distinct * updates, alone * change.deleted)

    def _windowed(self, node: Window, change: ChangedRows) -> ChangedRows:
        (_, first), *_ = node.calls
        rows = self._rows(node.input)
        partitions = self._distinct([value.column for value in first.partition if isinstance(value, ColumnRef)], rows)
        others = BEHIND * touched(partitions, change.touched) * rows / partitions
        return ChangedRows(change.inserted, change.updated + others, change.deleted)

    def _distinct(self, columns: list[Column], rows: float) -> float:
        return max(1.0, min(rows, self._cardinality.combinations(columns) or 1.0)) if columns else 1.0

    # -- joins -----------------------------------------------------------------------------------------------------

    def _joined(self, node: Join, left: ChangedRows, right: ChangedRows) -> ChangedRows:
        sizes = max(1.0, self._rows(node.left)), max(1.0, self._rows(node.right))
        pairs = min(self._cardinality.pairs(node), sizes[0] * sizes[1])
        matched = left.times(pairs / sizes[0]).plus(right.times(pairs / sizes[1]))
        met, (left_meets_one, right_meets_one) = pairs / (sizes[0] * sizes[1]), self._cardinality.meets_one(node)
        alone = _alone(met, sizes[1], left_meets_one)
        flips = sizes[0] * met * (1.0 if left_meets_one else alone)
        match node.kind:
            case "left":
                return matched.plus(_unmatched(left, right, alone, flips))
            case "right" | "full":
                alone_right = _alone(met, sizes[0], right_meets_one)
                flips_right = sizes[1] * met * (1.0 if right_meets_one else alone_right)
                found = matched.plus(_unmatched(right, left, alone_right, flips_right))
                return found if node.kind == "right" else found.plus(_unmatched(left, right, alone, flips))
            case "semi":
                return left.times(1 - alone).plus(ChangedRows(right.inserted, 0.0, right.deleted).times(flips))
            case "anti":
                return _unmatched(left, right, alone, flips)
            case _:
                return matched


def touched(groups: float, rows: float) -> float:
    """How many of some groups so many rows touch, which fall into them evenly."""
    if groups <= 1:
        return min(1.0, rows)
    return min(rows, -groups * (exp(rows * log1p(-1 / groups)) - 1))


def _passed(change: ChangedRows, share: float) -> ChangedRows:
    """What changes of the rows that pass a filter."""
    passed = change.times(share)
    moved = MOVED * passed.updated if share < 1 else 0.0
    return ChangedRows(passed.inserted + moved, passed.updated - moved, passed.deleted + moved)


def _alone(met: float, others: float, meets_one: bool) -> float:
    """The probability that a row meets none of some rows, where so large a share of pairs meet. One that
    ``meets_one`` at most meets none in all other cases."""
    if meets_one:
        return max(0.0, 1 - met * others)
    return 0.0 if met >= 1 else exp(others * log1p(-met))


def _unmatched(own: ChangedRows, other: ChangedRows, alone: float, flips: float) -> ChangedRows:
    """What changes of the rows of a side that meet none of the other one, where so many of these flip with each."""
    return own.times(alone).plus(ChangedRows(other.deleted, 0.0, other.inserted).times(flips))

"""How the pace of a view trades work before a read for the time of the read (InQP, section 2.3 and figure 3).

A view that follows changes ``rows`` at a time does as much in each step, and what is left for a read is one step at
most: its final work. All steps together are the total work. The fewer rows a step has, the shorter reads are, and the
more work is done in all: each step has a fixed cost, and rows that change a group one after the other change it once if
they are followed together.

All of the view is one path here, and goes on at one pace; the paper's algorithm 1 (section 3.2) adds up the work of
paths with paces of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from planner.incremental.cost.changed_rows import NO_CHANGES, ChangedRows
from planner.incremental.cost.dataflow_costs import node_estimates
from planner.incremental.cost.flow_sizes import FlowSizes
from planner.incremental.cost.usual_changes import Mix, weighed
from planner.incremental.cost.work import Work

#: Changed rows of the steps that are simulated.
STEPS: Final = (1, 10, 100, 1_000, 10_000)


class Pace(Struct, frozen=True):
    """Steps of so many changed ``rows``: the milliseconds of one, the ``final`` work of a read at most, and those of a
    thousand rows, the ``total`` work."""

    rows: int
    final: float

    @property
    def total(self) -> float:
        """Milliseconds of a thousand changed rows."""
        return 1_000 * self.final / self.rows


def paces(sizes: FlowSizes, mix: Mix, work: Mapping[int, Work]) -> tuple[Pace, ...]:
    """The curve of a dataflow, by rising steps, for changes that are mixed as they have been."""
    return tuple(Pace(rows, _milliseconds(sizes, mix, work, rows)) for rows in STEPS)


def _milliseconds(sizes: FlowSizes, mix: Mix, work: Mapping[int, Work], rows: int) -> float:
    changed: dict[int, ChangedRows] = {}
    for share, change in weighed(sizes.flow, mix):
        for node, one in change.items():
            changed[node] = changed.get(node, NO_CHANGES).plus(one.times(share))
    touched = sum(item.touched for item in changed.values())
    many = {node: item.times(rows / touched) for node, item in changed.items()} if touched else {}
    return sum(item.milliseconds for item in node_estimates(sizes, many, work).values())

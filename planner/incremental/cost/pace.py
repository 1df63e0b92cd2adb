"""How rarely the nodes of a dataflow may go on, so that reads still find little to follow (InQP, sections 2 to 4).

A node is one of the paper's query paths: it ends at a buffer, its rows or its state, from which the next ones start. A
node of pace k goes on once 1/k of ``horizon`` rows of the sources have come or gone, over all that waits for it; an
updated row counts twice. What all steps take is the total work, what is left for a read is the final work, each node's
last step. More steps make the final work less and the total work more: each step has a fixed cost, and a row that
changes often is changed more often.

What waits is a net change, so what a node takes depends on its own pace alone, and the simulation of the paper's
algorithm 1 is a sum (section 3.2)::

    total(P) = sum of P(i) * work(i, horizon / P(i))        final(P) = sum of work(i, horizon / P(i))

Paces are ``PACES``, where the paper's are all numbers up to 100. No node goes on more often than one that it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from math import ceil, inf
from typing import Final

from msgspec import Struct

from planner.incremental.cost.changed_rows import ChangedRows
from planner.incremental.cost.dataflow_costs import corrections_by, node_estimates
from planner.incremental.cost.flow_sizes import FlowSizes, source_name
from planner.incremental.cost.usual_changes import Mix, Seen
from planner.incremental.cost.work import Work
from planner.incremental.dataflow.graph import Constant, Ranked, Shared, Source

#: Powers of two, and those times one and a half.
PACES: Final = (1, *(part << level for level in range(14) for part in (2, 3)))
#: How many times as much final work as the least that there is comes close to it.
CLOSE: Final = 1.25
#: Parts of the final work for which EXPLAIN shows a pace.
CONSTRAINTS: Final = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02)


class Paces(Struct, frozen=True):
    """A pace for each node, as its place among ``PACES``, and what it costs: milliseconds of the ``final`` work, and of
    the ``total`` work of ``horizon`` rows."""

    horizon: int
    levels: Mapping[int, int]
    final: float
    total: float

    @property
    def steps(self) -> dict[int, int]:
        """Changed rows of the sources at which each node goes on."""
        return {node: step_of(self.horizon, level) for node, level in self.levels.items()}

    @property
    def of_thousand(self) -> float:
        """Milliseconds of the total work of a thousand changed rows."""
        return 1000 * self.total / self.horizon


class PaceCosts:
    """What the nodes of a dataflow take at each pace, for changes that are mixed as they have been."""

    def __init__(
        self, sizes: FlowSizes, mix: Mix, work: Mapping[int, Work], horizon: int, highest: int = len(PACES) - 1
    ) -> None:
        self.horizon, self.flow = horizon, sizes.flow
        #: The highest level: there is no step of less than a row.
        self.highest = min(highest, sum(pace <= horizon for pace in PACES) - 1)
        self._sizes, self._work = sizes, work
        self._one = _one_row(sizes, mix)
        self._corrections = corrections_by(sizes, work)
        nodes = [node for node in sizes.flow.nodes if not isinstance(node, Source | Constant | Ranked)]
        naming = {node.id: node.node for node in nodes if isinstance(node, Shared)}
        nodes = [node for node in nodes if node.id not in naming]
        operators = {node.id for node in nodes}
        #: The operators that a node reads, also under another node's name, which goes on with them.
        self.below = {
            node.id: tuple(operators.intersection(_holder(below, naming) for below in node.inputs)) for node in nodes
        }

    @cached_property
    def _table(self) -> list[dict[int, float]]:
        """By level, what one step of a node takes."""
        return [self._step(step_of(self.horizon, level)) for level in range(self.highest + 1)]

    def of(self, levels: Mapping[int, int]) -> Paces:
        """What paces cost."""
        works = {node: self._table[level].get(node, 0.0) for node, level in levels.items()}
        total = sum(PACES[levels[node]] * found for node, found in works.items())
        return Paces(self.horizon, dict(levels), sum(works.values()), total)

    def saved(self, levels: Mapping[int, int], others: Mapping[int, int]) -> tuple[float, float]:
        """The final work that other levels of some nodes save, and the total work that they cost."""
        saved = more = 0.0
        for node, level in others.items():
            before, after = self._table[levels[node]].get(node, 0.0), self._table[level].get(node, 0.0)
            saved += before - after
            more += PACES[level] * after - PACES[levels[node]] * before
        return saved, more

    @property
    def batch(self) -> Paces:
        """One step for all rows: the least total work, and the most final work."""
        return self.of(dict.fromkeys(self.below, 0))

    @property
    def at_once(self) -> tuple[tuple[int, float], ...]:
        """What one step of all nodes takes: milliseconds by rows, of falling numbers of them."""
        return tuple((step_of(self.horizon, level), sum(step.values())) for level, step in enumerate(self._table))

    def _step(self, rows: int) -> dict[int, float]:
        """Milliseconds of one step of so many rows, by node."""
        many = {node: item.times(rows) for node, item in self._one.items()}
        found = node_estimates(self._sizes, many, self._work, self._corrections)
        return {node: item.milliseconds for node, item in found.items()}


def _holder(node: int, naming: Mapping[int, int]) -> int:
    """The node whose rows a node has."""
    while node in naming:
        node = naming[node]
    return node


def step_of(horizon: int, level: int) -> int:
    """The rows of a step."""
    return ceil(horizon / PACES[level])


def _one_row(sizes: FlowSizes, mix: Mix) -> dict[int, ChangedRows]:
    """One row of the sources that comes or goes, by node, as they are mixed. Before a row is measured, each source
    changes in proportion to the rows that it has."""
    sources = [node for node in sizes.flow.nodes if isinstance(node, Source)]
    rows = {node.id: max(1.0, sizes.rows(node.id)) for node in sources}
    changed = {node.id: ChangedRows(updated=rows[node.id] / sum(rows.values())) for node in sources}
    for node in sources:
        seen = mix.get(source_name(node), Seen())
        changed[node.id] = changed[node.id].plus(seen.rows.times(seen.changes))
    come_and_gone = sum(item.rows for item in changed.values())
    return {node: item.times(1 / come_and_gone) for node, item in changed.items()} if come_and_gone else {}


# --- which paces ------------------------------------------------------------------------------------------------------


def within_final(costs: PaceCosts, most: float) -> Paces:
    """The paces with the least total work whose final work is at most so many milliseconds (InQP, section 4.2,
    algorithm 2); where there are none, those that come close to the least. What the last rise saved too much is given
    back, and one pace for all nodes is taken where it costs less."""
    found: Paces | None = costs.batch
    last = costs.batch
    while found is not None and found.final > most:
        last, found = found, _better(costs, found)
    uniform = uniform_within(costs, most)
    met = [_lowered(costs, item, most) for item in (found, uniform) if item is not None and item.final <= most]
    if not met:
        return within_final(costs, CLOSE * min(last.final, uniform.final))
    return min(met, key=lambda item: item.total)


def within_total(costs: PaceCosts, most: float) -> Paces:
    """The paces with the least final work whose total work is at most so many milliseconds (the dual, section 4.2)."""
    found = costs.batch
    while (better := _better(costs, found, most)) is not None:
        found = better
    return found


def uniform_within(costs: PaceCosts, most: float) -> Paces:
    """One pace for all nodes, the lowest whose final work is at most so many milliseconds: what the paper compares with
    (section 5.2). Where there is none, the one with the least final work."""
    found = [costs.of(dict.fromkeys(costs.below, level)) for level in range(costs.highest + 1)]
    return next((item for item in found if item.final <= most), min(found, key=lambda item: item.final))


def _better(costs: PaceCosts, paces: Paces, most: float = inf) -> Paces | None:
    """The paces with the highest marginal incrementability, and a total work of at most ``most``: those of one node
    raised, and of what it reads where that would go on less often; None where none saves final work. Rises of several
    levels are looked at, too, since what a node takes jumps where an engine computes it."""
    best, gain = None, 0.0
    for raised in _raised(costs, paces.levels):
        saved, more = costs.saved(paces.levels, raised)
        found = incrementability(saved, more)
        if found > gain and paces.total + more <= most:
            best, gain = raised, found
    return None if best is None else costs.of({**paces.levels, **best})


def _raised(costs: PaceCosts, levels: Mapping[int, int]) -> Iterator[dict[int, int]]:
    """The levels of nodes that are others where one is raised."""
    for node, level in levels.items():
        for higher in range(level + 1, costs.highest + 1):
            found, asked = dict[int, int](), [node]
            while asked:
                item = asked.pop()
                if levels[item] < higher:
                    found[item] = higher
                    asked += costs.below[item]
            yield found


def _lowered(costs: PaceCosts, paces: Paces, most: float) -> Paces:
    """Paces with less total work, whose final work is at most ``most`` still: those of one node after the other lower,
    and of what reads it where that would go on more often."""
    while True:
        best, least = None, 0.0
        for lower in _lower(costs, paces.levels):
            saved, more = costs.saved(paces.levels, lower)
            if more < least and paces.final - saved <= most:
                best, least = lower, more
        if best is None:
            return paces
        paces = costs.of({**paces.levels, **best})


def _lower(costs: PaceCosts, levels: Mapping[int, int]) -> Iterator[dict[int, int]]:
    """The levels of nodes that are others where one is lowered."""
    for node, level in levels.items():
        if level:
            found = {node: level - 1}
            for above, below in costs.below.items():  # inputs come first
                least = min((found.get(item, levels[item]) for item in below), default=levels[above])
                if least < found.get(above, levels[above]):
                    found[above] = least
            yield found


def incrementability(saved: float, more: float) -> float:
    """The final work that other paces save for each millisecond of total work that they cost (InQP, section 2.3)."""
    if saved <= 0:
        return 0.0
    return inf if more <= 0 else saved / more


# --- the curve --------------------------------------------------------------------------------------------------------


class CurvePoint(Struct, frozen=True):
    """For a part of the final work that one step of all rows would have: the paces, and what one pace for all nodes
    costs."""

    part: float
    paces: Paces
    uniform: Paces


def curve_of(costs: PaceCosts) -> tuple[CurvePoint, ...]:
    """The trade of final work against total work (figure 3), by falling final work, as far as paces can meet it."""
    most = costs.batch.final
    points = [
        CurvePoint(part, within_final(costs, part * most), uniform_within(costs, part * most)) for part in CONSTRAINTS
    ]
    return tuple(point for point in points if point.paces.final <= point.part * most)

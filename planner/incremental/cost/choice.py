"""Which of its alternatives a dataflow is: the one that is expected to follow changes in the least time.

As in the problem of view maintenance that Tempura states (section 2.2, IVM-PD), the cost is that of one change, and a
change of one relation is looked at at a time; here one dataflow serves them all. Whole dataflows are compared.
Tempura's search by operator and time point (section 6) is not here, and its weights (section 6.2) are of time points.

The time of an alternative is that of a change of each source, weighed by how often the source changes. Work that has
been measured tells how often; before, all sources change alike. What rows take in memory decides between alternatives
that take about as long. An alternative whose rows are not expected to fit into memory comes after those that fit, and
one that computes more anew at each read after those that compute less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from planner.algebra.nodes import Relation
from planner.incremental.cost.dataflow_costs import node_estimates
from planner.incremental.cost.flow_sizes import FlowSizes, fitting
from planner.incremental.cost.usual_changes import Mix, weighed
from planner.incremental.dataflow.planning import Planned, Rewritten, dataflow_of, rewritten
from planner.incremental.dataflow.rewrites.counted_keys import asks_for_partners
from planner.incremental.dataflow.rewrites.higher_order import may_have_views
from planner.incremental.dataflow.rewrites.rewriting import ALTERNATIVES, Rewriting, Sized
from planner.statistics import Statistics

#: Alternatives that take at most so many times as long as the shortest one, or so many milliseconds more, are alike.
ALIKE: Final = 1.1
ALIKE_MS: Final = 0.05


class Alternative(Struct, frozen=True):
    """A dataflow by one rewriting: the ``milliseconds`` that a change is expected to take, the bytes of ``memory`` of
    the rows that are kept, and whether these ``fit``."""

    rewriting: Rewriting
    planned: Planned
    milliseconds: float = 0.0
    memory: float = 0.0
    fits: bool = True


class Followed(Struct, frozen=True):
    """A relation whose changes are followed, with what ``planning.dataflow_of`` is told of it."""

    relation: Relation
    scope: str
    constants: frozenset[str] = frozenset()
    left_out: tuple[str, ...] = ()

    def rewritten(self, statistics: Statistics, rewriting: Rewriting) -> Rewritten:
        """What its dataflow by one rewriting is made of."""
        return rewritten(self.relation, Sized(statistics, rewriting), self.constants)

    def planned(self, statistics: Statistics, rewriting: Rewriting) -> Planned:
        """Its dataflow by one rewriting."""
        sized = Sized(statistics, rewriting)
        return dataflow_of(self.relation, self.scope, self.constants, sized, self.left_out)


def has_alternatives(relation: Relation) -> bool:
    """Whether there is a choice at all."""
    return may_have_views(relation) or asks_for_partners(relation)


def rewritings_of(relation: Relation) -> list[Rewriting]:
    """The alternatives that a relation may have."""
    has_views, has_keys = may_have_views(relation), asks_for_partners(relation)
    return [item for item in ALTERNATIVES if (has_views or item.views is None) and (has_keys or item.partners is None)]


def alternatives_of(
    followed: Followed, rewritings: Sequence[Rewriting], statistics: Statistics, mix: Mix, most: float
) -> tuple[Alternative, ...]:
    """The alternatives of a dataflow that may take at most so many bytes of memory, the chosen one first, the others by
    what they are expected to take. Of equal ones the first stands for all. Nothing is estimated of a single one."""
    different: dict[Rewriting, Rewritten] = {}
    for rewriting in rewritings:
        found = followed.rewritten(statistics, rewriting)
        if found not in different.values():
            different[rewriting] = found
    plans = {rewriting: followed.planned(statistics, rewriting) for rewriting in different}
    if len(plans) == 1:
        return tuple(Alternative(item, planned) for item, planned in plans.items())
    return _ranked([_estimated(item, planned, statistics, mix, most) for item, planned in plans.items()])


def saved_by_choice(alternatives: Sequence[Alternative], standing: Rewriting) -> float:
    """The milliseconds of a change that the chosen alternative is expected to save beside the ``standing`` one; nothing
    where that one computes less anew, or is not among them."""
    others = (item for item in alternatives if item.rewriting == standing)
    return sum(
        item.milliseconds - alternatives[0].milliseconds for item in others if _class(item) >= _class(alternatives[0])
    )


def _estimated(rewriting: Rewriting, planned: Planned, statistics: Statistics, mix: Mix, most: float) -> Alternative:
    if planned.dataflow is None:
        return Alternative(rewriting, planned)
    flow, memory = fitting(planned.dataflow, statistics, most)
    sizes = FlowSizes(flow, statistics, {})
    milliseconds = sum(
        share * sum(item.milliseconds for item in node_estimates(sizes, change, {}).values())
        for share, change in weighed(flow, mix)
    )
    return Alternative(rewriting, replace(planned, dataflow=flow), milliseconds, memory, memory <= most)


def _ranked(found: Sequence[Alternative]) -> tuple[Alternative, ...]:
    by_time = sorted(found, key=lambda item: (*_class(item), item.milliseconds))
    first = by_time[0]
    alike = [
        item
        for item in by_time
        if _class(item) == _class(first)
        and item.milliseconds <= max(ALIKE * first.milliseconds, first.milliseconds + ALIKE_MS)
    ]
    chosen = min(alike, key=lambda item: item.memory)
    return chosen, *(item for item in by_time if item is not chosen)


def _class(item: Alternative) -> tuple[int, bool, bool]:
    """What counts before the time."""
    return len(item.planned.reasons), item.planned.dataflow is None, not item.fits

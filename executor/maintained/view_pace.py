"""The pace at which the nodes of one view's dataflow go on: chosen by cost for the goal that its options, or the
server's ``default_latency_goal``, set, and chosen again as more changes are measured or a read takes longer.

The most rows that a node lets wait are the horizon: of more, computing anew would take less than following them, or the
view's trigger asks for a step. Used with the view's lock held.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import inf
from typing import Final

from msgspec import Struct

from catalog.objects import View
from executor.dataflow.waiting_changes import Steps
from executor.maintained.kept_rows import most_worth
from planner.incremental.cost.flow_sizes import FlowSizes
from planner.incremental.cost.pace import PaceCosts, Paces, within_final, within_total
from planner.incremental.cost.usual_changes import Mix
from planner.incremental.cost.work import Work
from planner.incremental.pace_options import FINAL, LATENCY, NAMES, TOTAL, PaceOptions, pace_options

#: How many times as many changes are followed where paces are chosen again, of how many on.
CHANGES: Final = 2
FIRST_CHANGES: Final = 8
#: The part of a goal at which paces aim: what is estimated takes up to a quarter more.
MARGIN: Final = 0.8
#: How many times as much as one step for all rows the steps of a view may take that has no goal of its own.
UNASKED: Final = 2.0
#: Steps that are taken before a read that misses its goal has paces chosen again.
TRIALS: Final = 16


@lru_cache(4096)
def _read(options: tuple[tuple[str, str], ...]) -> PaceOptions:
    return pace_options(dict(options))


def pace_options_of(view: View) -> PaceOptions:
    """Those of a view."""
    return _read(tuple(item for item in view.options if item[0] in NAMES))


class Goal(Struct, frozen=True):
    """What paces are chosen for, as ``called`` by the options: at most so many milliseconds of final work, or of total
    work for the horizon."""

    called: str
    final: float = inf
    total: float = inf


class ChosenPaces(Struct, frozen=True):
    """Paces for a goal, and whether they are expected to meet it."""

    paces: Paces
    goal: Goal
    #: What it takes to follow all at once: milliseconds by rows that have come or gone, of falling numbers of them.
    at_once: tuple[tuple[int, float], ...] = ()

    def milliseconds_of(self, rows: int) -> float:
        """Those of following so many rows at once, or of the next number that is known of fewer."""
        return next((taken for known, taken in self.at_once if known <= rows), 0.0)

    @property
    def are_met(self) -> bool:
        """Whether reads are expected to find no more to follow than the goal admits."""
        return self.paces.final <= self.goal.final and self.paces.total <= self.goal.total


def pace_costs(options: PaceOptions, sizes: FlowSizes, mix: Mix, work: Mapping[int, Work]) -> PaceCosts:
    """What the nodes of a dataflow take at each pace."""
    trigger, most = options.trigger, most_worth(sizes.kept_rows)
    return PaceCosts(sizes, mix, work, min(trigger.rows, most) if trigger is not None and trigger.rows else most)


def chosen_paces(options: PaceOptions, default: float, costs: PaceCosts, computed: float | None) -> ChosenPaces:
    """The cheapest paces for a view's goal. ``default`` is the latency in seconds that views without options aim at, 0
    for none; ``computed`` the milliseconds of computing the view anew."""
    batch, at_once = costs.batch, costs.at_once
    if options.total is not None:
        goal = Goal(_words(options), total=options.total * batch.total)
        return ChosenPaces(within_total(costs, goal.total), goal, at_once)
    goal = _goal(options, 1000 * default, batch.final if computed is None else min(computed, batch.final))
    paces = within_final(costs, MARGIN * goal.final)
    if options == PaceOptions() and paces.total > UNASKED * batch.total:
        paces = within_total(costs, UNASKED * batch.total)
    return ChosenPaces(paces, goal, at_once)


def _goal(options: PaceOptions, default: float, batch: float) -> Goal:
    if options.latency is not None:
        return Goal(_words(options), options.latency)
    if options.final is not None:
        return Goal(_words(options), options.final * batch)
    if options.trigger is not None or not default:
        return Goal("")
    return Goal(f"default_latency_goal = {default:g} ms", default)


def _words(options: PaceOptions) -> str:
    """The goal that options set; nothing where they set none."""
    goals = ((LATENCY, options.latency, " ms"), (FINAL, options.final, ""), (TOTAL, options.total, ""))
    return next((f"{name} = {value:g}{unit}" for name, value, unit in goals if value is not None), "")


class ViewPace:
    """The paces of one view, once they are asked for."""

    def __init__(self) -> None:
        self.chosen: ChosenPaces | None = None
        self._options: PaceOptions | None = None
        self._asked = 0
        self._is_missed = False

    def forget(self) -> None:
        """The nodes are others."""
        self.chosen = None

    def is_to_be_chosen(self, options: PaceOptions, changes: int) -> bool:
        """Whether paces are not chosen yet, or many more changes have been followed since, or a read has missed the
        goal."""
        is_missed = self._is_missed and changes > self._asked + TRIALS
        is_other = self.chosen is None or options != self._options
        return is_other or is_missed or changes > CHANGES * max(self._asked, FIRST_CHANGES)

    def choose(self, options: PaceOptions, changes: int, chosen: ChosenPaces) -> None:
        """Paces are chosen, after so many changes."""
        self.chosen, self._options, self._asked, self._is_missed = chosen, options, changes, False

    @property
    def steps(self) -> Steps:
        """Changed rows of the sources at which each node goes on; none where paces are not chosen."""
        return {} if self.chosen is None else self.chosen.paces.steps

    def chosen_for(self, options: PaceOptions) -> ChosenPaces | None:
        """The paces that are chosen for a view's options as they are; None where the next step chooses others."""
        return self.chosen if options == self._options else None

    def goal(self, options: PaceOptions) -> tuple[str | None, bool | None]:
        """The goal in words, if there is one, and whether reads meet it, once paces are chosen for it."""
        chosen = self.chosen_for(options)
        if chosen is None:
            return _words(options) or None, None
        called = chosen.goal.called
        return called or None, chosen.are_met and not self._is_missed if called else None

    def read(self, milliseconds: float) -> None:
        """What was left for a read has taken so long."""
        if self.chosen is not None and milliseconds > self.chosen.goal.final:
            self._is_missed = True

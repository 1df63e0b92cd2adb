"""What is known of one view whose rows may be kept: its plan, its costs, its rows, and how these are chosen.

Knows nothing of other views, and of when rows are made and read (``maintained_views``). Used with the view's lock held.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from math import inf
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from catalog.values.times.zones import session_zone
from executor.core.core import Core
from executor.maintained.background_following import Rhythm
from executor.maintained.dataflow_choice import chosen_plan, keeps_rows, method_of
from executor.maintained.decisions import COMPUTED, FOLLOWED, Decision
from executor.maintained.expanded_views import Expanded
from executor.maintained.fills import Fill
from executor.maintained.kept_rows import KeptRows, RowsPlan, most_bytes
from executor.maintained.read_costs import ReadCosts
from executor.maintained.view_pace import ChosenPaces, ViewPace, chosen_paces, pace_costs, pace_options_of
from executor.views.runtime import ViewRuntime
from planner.explain.views import Measured
from planner.incremental.cost.choice import Alternative, saved_by_choice
from planner.incremental.cost.flow_sizes import FlowSizes, fitting
from planner.incremental.cost.usual_changes import Mix, mix_of
from planner.incremental.cost.work import Work
from planner.incremental.dataflow.graph import Dataflow
from planner.incremental.dataflow.planning import Planned
from planner.statistics import Statistics, are_alike

#: How many times as many rows are kept where it is asked again whether other ones would serve better, of how many on.
GROWTH: Final = 4
FIRST_GROWTH: Final = 10_000
#: How many times as many changes are followed where that is asked again, of how many on.
CHANGES: Final = 2
FIRST_CHANGES: Final = 64
#: How many times as long as computing a view anew its readers follow changes at most, by estimate.
DEARER: Final = 1.2
#: How many times as much memory as they may take rows are expected to take that are not made.
DOUBT: Final = 1.5
#: The part of the memory of rows that did not fit which they are expected to take where they are tried again.
SHRUNK: Final = 0.9
_WORTH: Final = "its evaluations have taken as long as making its rows may, or a view above it follows its rows"


class KnownView(Struct):
    """What is known of a view: its plan, its costs, and its rows, if they are kept."""

    runtime: ViewRuntime
    plan: RowsPlan
    costs: ReadCosts = field(default_factory=ReadCosts)
    kept: KeptRows | None = None
    fill: Fill | None = None
    #: How many rows were kept, and how many changes had been followed, when the plan was last chosen.
    asked: int = 0
    asked_changes: int = 0
    #: How many changes the rows have followed.
    changes: int = 0
    #: How many queries of the last fill in the background each engine has computed.
    engines: Mapping[str, int] = field(default_factory=dict)
    #: The bytes that its rows were last estimated to take, those of rows that did not fit, and whether these are too
    #: many.
    estimated: float = 0.0
    refused: float = inf
    is_too_large: bool = False
    #: What the changes have been that its rows followed.
    mix: Mix = field(default_factory=dict)
    #: Whether the last reader has computed the view anew, since its rows had too much to follow.
    is_passed_over: bool = False
    #: The parts that it is to read, which it shares with others.
    shares: tuple[int, ...] = ()
    #: At which paces the nodes of its dataflow go on.
    pace: ViewPace = field(default_factory=ViewPace)

    @property
    def expanded(self) -> Expanded:
        """The view over tables, states and kept rows of views."""
        return self.plan.expanded

    @property
    def reads(self) -> tuple[int, ...]:
        """The views whose kept rows are read now."""
        later = () if self.fill is None else self.fill.plan.expanded.sources
        return (*self.expanded.sources, *later) if self.kept is not None or self.fill is not None else ()

    @property
    def method(self) -> str:
        """The view's option."""
        return method_of(self.runtime.view)

    def may_follow(self, lsn: int) -> bool:
        """Whether the plan's rows are the view's at an LSN: what it relies on may hold of later ones alone."""
        return lsn >= self.expanded.facts.since

    def begin(self, rows: KeptRows) -> None:
        """Rows that are kept from now on have been made."""
        rows.account()
        self.pace.forget()
        self.is_passed_over = False
        self.asked, self.asked_changes, self.changes = rows.rows.count, 0, 0

    def follow(self, seconds: float) -> None:
        """To follow a change has taken so long."""
        self.changes += 1
        self.is_passed_over = False
        self.costs.follow(seconds)

    def step(self, seconds: float) -> None:
        """To bring some nodes forward has taken so long."""
        self.changes += 1
        self.is_passed_over = False
        self.costs.step(seconds)

    def rhythm(self, default: float) -> Rhythm | None:
        """When it follows changes before it is read, where views without options aim at a latency of ``default``
        seconds, if that is not 0."""
        options = pace_options_of(self.runtime.view)
        trigger = options.trigger
        if trigger is not None and trigger.on_read:
            return None
        has_options = options.has_goal or trigger is not None
        seconds = None
        if trigger is not None and trigger.is_timed:
            seconds = trigger.seconds_after(datetime.now(session_zone(self.runtime.time_zone)))
        return Rhythm(not has_options, has_options or default > 0, seconds)

    @property
    def flow(self) -> Dataflow | None:
        """The dataflow of its rows."""
        return self.plan.planned.dataflow

    @property
    def is_too_slow(self) -> bool:
        """Whether evaluations take longer than the view's goal admits."""
        latency, computed = pace_options_of(self.runtime.view).latency, self.costs.milliseconds(is_followed=False)
        return latency is not None and computed is not None and computed > latency

    def is_dearer_to_follow(self, lsn: int) -> bool:
        """Whether following what has changed up to an LSN is expected to take longer than computing the view anew.
        Raises GIVEN_UP."""
        chosen, computed = self.pace.chosen, self.costs.milliseconds(is_followed=False)
        if chosen is None or computed is None or self.kept is None or self.kept.looks_up or self.is_passed_over:
            return False
        return chosen.milliseconds_of(self.kept.waiting(lsn)) > DEARER * computed

    def pass_over(self) -> None:
        """A reader computes the view anew instead of following what waits, which is followed before the next one, or by
        it."""
        assert self.pace.chosen is not None
        assert self.kept is not None
        self.is_passed_over = True
        self.costs.leave(self.pace.chosen.milliseconds_of(self.kept.rows.waiting.rows) / 1000)

    def is_to_be_paced(self) -> bool:
        """Whether paces are to be chosen before the next step."""
        return self.pace.is_to_be_chosen(pace_options_of(self.runtime.view), self.changes)

    def choose_pace(self, core: Core, statistics: Statistics) -> None:
        """Chooses at which paces nodes go on, by what changes have taken so far."""
        assert self.kept is not None and self.flow is not None
        options, kept = pace_options_of(self.runtime.view), self.kept
        sizes = FlowSizes(self.flow, statistics, kept.counts)
        costs = pace_costs(options, sizes, mix_of(self.flow, kept.work), kept.work)
        computed = self.costs.milliseconds(is_followed=False)
        self.pace.choose(
            options, self.changes, chosen_paces(options, core.options.default_latency_goal, costs, computed)
        )

    @property
    def usual(self) -> Mix:
        """The changes that its rows follow, as far as these are known."""
        if self.kept is None or self.flow is None:
            return self.mix
        return mix_of(self.flow, self.kept.work) or self.mix

    def choose(self, core: Core, statistics: Statistics) -> None:
        """Chooses how rows that are not kept are to follow changes: once, and again where the rows that the view reads
        are many more or fewer than they were."""
        if self.kept is not None or self.fill is not None:
            return
        if not self.plan.is_chosen or not are_alike(self.plan.sized.statistics, statistics):
            self.plan = chosen_plan(core, self.expanded, statistics, self.mix)

    def is_to_be_asked(self, count: int) -> bool:
        """Whether many more rows are kept than when the plan was chosen, or many more changes have been followed."""
        is_grown = count > GROWTH * max(self.asked, FIRST_GROWTH)
        is_changed = self.changes > CHANGES * max(self.asked_changes, FIRST_CHANGES)
        return self.fill is None and (is_grown or is_changed)

    def better_plan(self, core: Core, statistics: Statistics, count: int) -> RowsPlan | None:
        """A plan for other rows, where these would have saved the time of making them by now: of ``count`` rows, and of
        changes as they have been."""
        flow, standing = self.plan.planned.dataflow, self.plan.sized.rewriting
        assert self.kept is not None and flow is not None
        self.asked, self.asked_changes, self.mix = count, self.changes, mix_of(flow, self.kept.work)
        plan = chosen_plan(core, self.expanded, statistics, self.mix, standing)
        saved = self.changes * saved_by_choice(plan.alternatives, standing) / 1000
        return plan if saved > self.costs.filled else None

    def fits(self, core: Core, statistics: Statistics) -> bool:
        """Whether the rows may be expected not to take more memory than one view may, if need be without rows that are
        looked up in tables."""
        planned, most = self.plan.planned, most_bytes(core)
        assert planned.dataflow is not None
        flow, self.estimated = fitting(planned.dataflow, statistics, most)
        limit = min(DOUBT * most, SHRUNK * self.refused)
        self.is_too_large = self.method == "auto" and self.estimated > limit
        if not self.is_too_large and flow is not planned.dataflow:
            self.plan = replace(self.plan, planned=replace(planned, dataflow=flow))
        return not self.is_too_large

    def following(self) -> Decision:
        """That the rows are kept, and follow changes by the dataflow that was chosen."""
        asked = "a goal or trigger" if self.method == "auto" else f"method = '{self.method}'"
        reason = f"it has {asked}" if keeps_rows(self.runtime.view) else _WORTH
        chosen, *others = self.plan.alternatives or (None,)
        if chosen is None or not others:
            computed = self.costs.milliseconds(is_followed=False)
            return Decision(self.runtime.view.oid, self._followed, COMPUTED, reason, None, computed)
        rejected = f"{FOLLOWED} ({others[0].rewriting.name})"
        times = chosen.milliseconds, others[0].milliseconds
        return Decision(self.runtime.view.oid, self._followed, rejected, reason, *times)

    def given_up(self, reason: str) -> Decision:
        """That the rows are computed at each read."""
        computed, followed = (self.costs.milliseconds(is_followed=it_is) for it_is in (False, True))
        return Decision(self.runtime.view.oid, COMPUTED, self._followed, reason, computed, followed)

    def too_large(self) -> Decision:
        """That rows are not made that would not fit."""
        return self.given_up(f"its rows are expected to take {round(self.estimated / 1024):,} kB of memory")

    @property
    def _followed(self) -> str:
        return f"{FOLLOWED} ({self.plan.sized.rewriting.name})" if self.plan.alternatives[1:] else FOLLOWED

    def drop(self) -> None:
        """The rows are not kept any more, nor are they made."""
        if self.kept is not None:
            self.kept.close()
            self.kept = None
        if self.fill is not None:
            self.fill.give_up()
            self.fill = None


class KeptFacts(Struct, frozen=True):
    """A view's dataflow, how many rows are kept of its nodes (None where none are) and what changes have taken there,
    what reads have taken, whether rows to keep are being made, how many queries each engine has computed for those
    that were, whether they are estimated to take too much memory, the alternatives of which the dataflow is one,
    the paces that are chosen for the view's options, and the other views that read the part which this one reads."""

    planned: Planned
    counts: dict[int, int] | None
    work: dict[int, Work]
    measured: Measured
    is_filling: bool
    engines: Mapping[str, int]
    is_too_large: bool
    alternatives: tuple[Alternative, ...]
    pace: ChosenPaces | None
    shared_with: tuple[str, ...]

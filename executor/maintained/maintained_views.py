"""Which views' rows are kept up to date, instead of being computed at each read.

Owns: when that pays. By default, a view's rows are kept once its evaluations have taken longer than changes would, and
together as long as filling them may: at once over a few rows, else another thread makes them (``fills``). They are
given up where following changes takes longer than computing them anew, by what both have taken (``read_costs``), where
more has changed than is worth following, where memory is short, and after any error. After each loss it takes twice as
many evaluations until they are kept again, and at least those that take as long as making the rows did.

Views that a view reads come first: where keeping their rows pays, these are kept, and are there once for all views
above them, which follow their changes. They are not given up for their cost while a view above them reads them. A view
that is not worth it, or whose rows are computed of what is kept, is expanded in those that read it.

Used with the view's lock held.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from math import inf
from time import monotonic
from typing import Final, TypeVar

import pyarrow as pa
from msgspec import Struct

from catalog.objects import View
from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.core.spark_queries import Analytics
from executor.dataflow.maintained import Whole
from executor.embedded.detached_statements import thread_seconds
from executor.maintained.background_following import BackgroundFollowing, Followed, Rhythm
from executor.maintained.dataflow_choice import (
    admits,
    by_method,
    chosen_plan,
    guarded_plan,
    keeps_rows,
    planned_rows,
)
from executor.maintained.decisions import COMPUTED, Decisions
from executor.maintained.expanded_views import Expanded, expanded_view, source_statistics
from executor.maintained.fills import Fill, Fills
from executor.maintained.kept_rows import GIVEN_UP, KeptRows, RowsPlan, Unknown
from executor.maintained.known_view import KeptFacts, KnownView
from executor.maintained.read_costs import Total
from executor.maintained.saved_views import SavedView, SavedViews, ToSave, plan_key
from executor.maintained.sharing import Sharing
from executor.maintained.view_pace import ViewPace, pace_options_of
from executor.small import table_of
from executor.traces.budget import Held
from executor.views.runtime import ViewPassed, ViewRuntime
from executor.views.view_lock import ViewLock, locked
from planner.algebra.nodes import Scan
from planner.explain.views import Measured
from planner.incremental.dataflow.graph import Dataflow, Source
from planner.incremental.dataflow.rewrites.rewriting import GUARDED, Rewriting
from planner.statistics import Statistics

_LOGGER: Final = logging.getLogger(__name__)
#: Rows of tables and states up to which a read itself makes the rows that are kept.
AT_ONCE: Final = 100_000
#: Seconds after which a stop of the server saves the rows of no other view.
SAVING: Final = 10.0

_Answer = TypeVar("_Answer")


class Reading(Struct, frozen=True):
    """A read of a view: at an LSN, at the time of its reader's transaction, over what ``whole`` sees."""

    lsn: int
    time: datetime
    whole: Whole
    #: Raises where the reader's moment sees no tables, so that it takes another one.
    require_tables: Callable[[], None]
    #: Whether the reader can take a later moment instead.
    may_be_later: bool = False


class MaintainedViews:
    """The views of a database whose rows are kept."""

    def __init__(self, core: Core, analytics: Analytics) -> None:
        self._core, self._analytics = core, analytics
        self._known: dict[int, KnownView] = {}
        self._fills = Fills()
        self._saved = SavedViews(core)
        self._following = BackgroundFollowing(core, self)
        self.decisions = Decisions(self._measured)
        self._sharing = Sharing(core, self._known, self.decisions)

    def close(self) -> None:
        """Begins no fill any more, ends what runs in the background, and saves the rows that are kept for the next
        start."""
        self._following.close()
        self._fills.close()
        try:
            self._saved.save(self._current())
        except SqlError as error:
            _LOGGER.warning("rows of views are computed anew after the next start: %s", error)

    def _current(self) -> Iterator[ToSave]:
        """The rows that are kept and can be saved, of one LSN, as many as there is time for."""
        lsn, time, started, core = self._core.sequencer.visible, datetime.now(UTC), monotonic(), self._core
        for oid, known in tuple(self._known.items()):
            is_shared = self._sharing.is_part(known) or self._sharing.reads_parts(known)
            if known.kept is None or is_shared or monotonic() - started > SAVING:
                continue
            with _free_below(core, known.runtime) as are_free:
                kept = known.kept
                is_current = core.is_live(known.runtime) and known.expanded.is_current(core)
                if kept is None or not are_free or not is_current:
                    continue
                rows = self._attempt(known, partial(kept.saved, lsn, time))
            if rows is not None:
                yield ToSave(oid, known.plan, lsn, rows, kept.work)

    def redefined(self) -> None:
        """The catalog has changed: forgets views that were dropped, unless a reader has their lock. Under the
        sequencer's lock."""
        for oid, known in tuple(self._known.items()):
            if not self._core.is_live(known.runtime):
                self._give_back(known)
                if known.kept is None and known.fill is None:
                    self._known.pop(oid, None)
                    self.decisions.forget(oid)
                    self._core.parts_read.pop(oid, None)
        self._sharing.release()

    def facts(self, runtime: ViewRuntime, chooses: bool = False) -> KeptFacts:
        """How a view's rows are maintained now. With ``chooses`` the dataflow of rows that are not kept is the one that
        would be chosen, which takes some ten milliseconds to find. With the view's lock."""
        known = self._of(runtime)
        self._take(known)
        if chooses:
            known.choose(self._core, self._statistics(known.expanded))
        counts, work = (None, {}) if known.kept is None else (known.kept.counts, known.kept.work)
        planned = planned_rows(self._core, runtime) if known.expanded.is_too_large else known.plan.planned
        planned = by_method(runtime.view, planned)
        is_filling, is_too_large = known.fill is not None, known.kept is None and known.is_too_large
        measured = Measured(known.costs.milliseconds(is_followed=False), known.costs.milliseconds(is_followed=True))
        alternatives = known.plan.alternatives if planned is known.plan.planned else ()
        pace = known.pace.chosen_for(pace_options_of(runtime.view))
        about = (known.engines, is_too_large, alternatives, pace, self._sharing.others(known))
        return KeptFacts(planned, counts, work, measured, is_filling, *about)

    def statistics(self, flow: Dataflow) -> Statistics:
        """What is known of the rows of a dataflow's sources. Without locks."""
        views: dict[int, int] = {}
        for scan in (node.definition for node in flow.nodes if isinstance(node, Source)):
            known = self._known.get(scan.oid) if isinstance(scan, Scan) else None
            kept = None if known is None else known.kept
            if known is not None and kept is not None:
                with suppress(Unknown):  # a view below it may have lost its rows
                    views[known.runtime.view.oid] = kept.shown_count
        return source_statistics(self._core, flow, views)

    def totals(self) -> list[tuple[View, dict[str, Total], int]]:
        """What has been done for each view since it was first read, and how many rows are kept of it. Without locks."""
        found = []
        for known in tuple(self._known.values()):
            count, kept = 0, known.kept
            with suppress(Unknown):  # a view below it may have lost its rows
                count = 0 if kept is None else kept.rows.count
            found.append((known.runtime.view, {**known.costs.totals}, count))
        return found

    def goal(self, runtime: ViewRuntime) -> tuple[str | None, bool | None]:
        """The goal of a view's reads in words, if it has one, and whether they meet it, once that is known. Without
        locks."""
        known = self._known.get(runtime.view.oid)
        pace = ViewPace() if known is None or known.runtime is not runtime else known.pace
        return pace.goal(pace_options_of(runtime.view))

    def follows(self, runtime: ViewRuntime) -> bool:
        """Whether a view's rows are most likely kept, and need no table to be read. Without locks."""
        known = self._known.get(runtime.view.oid)
        if known is None or known.runtime is not runtime or not known.expanded.is_current(self._core):
            return False
        return known.kept is not None and not known.kept.reads_tables

    def rows(self, runtime: ViewRuntime, at: Reading, compute: Callable[[], pa.Table]) -> pa.Table:
        """The rows of a view's final relation as a reader wants them, at whose LSN its states are; ``compute``
        evaluates it anew. With the locks of the view and of those that it reads. Raises ViewPassed where the reader can
        take a later moment, at which the rows are kept."""
        known = self._of(runtime)
        if known.method == "recompute":
            known.drop()
        if not self._has_rows(known, at) or not self._sharing.has_locks(known) or not known.expanded.advance(at.lsn):
            return self._computed(known, compute)
        has_passed = known.kept is not None and known.kept.has_passed(at.lsn)
        if has_passed or not known.may_follow(at.lsn):
            if at.may_be_later:
                raise ViewPassed
            return compute()
        if known.kept is not None and known.kept.looks_up:
            at.require_tables()
        if (found := self._passed_over(known, at, compute)) is not None:
            return found
        found = self._attempt(known, lambda: self._followed(known, at))
        return self._computed(known, compute) if found is None else found

    def some(
        self, runtime: ViewRuntime, lsn: int, time: datetime, columns: tuple[str, ...], values: pa.Table
    ) -> pa.Table | None:
        """Of the rows of a view those with some values in columns of it, and perhaps others, if its rows are kept. With
        the locks of the view and of those that it reads."""

        def find(known: KnownView, kept: KeptRows) -> pa.Table | None:
            shown = known.expanded.relation.columns
            places = {item.name: column for item, column in zip(runtime.view.stored, shown, strict=True)}
            return kept.lookup(tuple(places[name] for name in columns), values)

        return self._of_kept(runtime, lsn, time, find)

    def changes(self, runtime: ViewRuntime, after: int, lsn: int, time: datetime) -> list[pa.Table] | None:
        """How the rows of a view have changed over (after, lsn], its columns in order and the weights behind them, if
        its rows are kept and that is known. With the locks of the view and of those that it reads."""
        found = self._of_kept(runtime, lsn, time, lambda known, kept: kept.changes(after))
        return None if found is None else [*map(table_of, found)]

    def _of_kept(
        self, runtime: ViewRuntime, lsn: int, time: datetime, answer: Callable[[KnownView, KeptRows], _Answer | None]
    ) -> _Answer | None:
        """What rows that are kept, and are brought to an LSN, answer; None where there are none."""
        known = self._known.get(runtime.view.oid)
        if known is None or known.kept is None or known.runtime is not runtime or not self._sharing.has_locks(known):
            return None
        if known.kept.has_passed(lsn):
            return None
        if not known.expanded.is_current(self._core) or not known.may_follow(lsn) or not known.expanded.advance(lsn):
            return None
        kept = known.kept
        if kept.looks_up:
            return None

        def advanced() -> _Answer | None:
            kept.advance(lsn, time)
            return answer(known, kept)

        found = self._attempt(known, advanced)
        self._following.read(runtime.view.oid, lsn)
        return found

    def rhythm(self, oid: int) -> Rhythm | None:
        """When a view follows changes before it is read; None where only reads do."""
        known = self._known.get(oid)
        return None if known is None or known.kept is None else known.rhythm(self._core.options.default_latency_goal)

    def follow(self, oid: int, is_whole: bool) -> Followed | None:
        """Brings the rows that are kept of a view to the present, unless another thread has a lock that this takes:
        all nodes, or those whose pace says so. None where there are no such rows."""
        known = self._known.get(oid)
        if known is None or known.kept is None or known.kept.looks_up:
            return None
        with _free_below(self._core, known.runtime) as are_free:
            kept = known.kept
            if are_free and kept is not None and self._sharing.has_locks(known):
                with self._core.sequencer.lock:
                    lsn = self._core.sequencer.visible
                return self._followed_by(known, kept, lsn, is_whole)
            return None if kept is None else Followed()

    def _followed_by(self, known: KnownView, kept: KeptRows, lsn: int, is_whole: bool) -> Followed | None:
        """Brings the rows of a view to an LSN, and chooses paces where that is due; None where the rows are of no use
        any more."""
        started = thread_seconds()

        def paced() -> None:
            if known.is_to_be_paced():
                assert known.flow is not None
                known.choose_pace(self._core, self.statistics(known.flow))

        if is_whole:
            if self._brought(known.runtime.view.oid, lsn, kept.time) is None:
                return None
            known.follow(thread_seconds() - started)
            self._attempt(known, paced)
            return Followed(kept.followed)

        def stepped() -> int:
            paced()
            return kept.go_on(lsn, known.pace.steps)

        left = self._attempt(known, stepped) if self._is_current(known, lsn) else None
        known.step(thread_seconds() - started)
        return None if left is None else Followed(kept.followed, left)

    def _attempt(self, known: KnownView, answer: Callable[[], _Answer | None]) -> _Answer | None:
        """An answer from rows that are kept; None where they are of no use any more."""
        try:
            return answer()
        except (*GIVEN_UP, SqlError) as error:
            self._lose(known, repr(error))
            return None
        except BaseException as error:
            self._lose(known, repr(error))
            raise

    def _followed(self, known: KnownView, at: Reading) -> pa.Table:
        """The rows by what has changed since the last time, or kept from now on."""
        if known.kept is None:
            with known.costs.filling():
                known.kept = self._filled(known, at)
                found = known.kept.answer(at.whole)
        else:
            started = thread_seconds()
            has_changed = known.kept.advance(at.lsn, at.time, at.whole)
            found = known.kept.answer(at.whole)
            if has_changed:
                seconds = thread_seconds() - started
                known.follow(seconds)
                known.pace.read(1000 * seconds)
        self._following.read(known.runtime.view.oid, at.lsn)
        self._leave_if_dear(known)
        return found

    def _passed_over(self, known: KnownView, at: Reading, compute: Callable[[], pa.Table]) -> pa.Table | None:
        """The rows of a view computed anew, where that is expected to take less than following what has changed; None
        where it is not, or nothing is kept."""
        if known.kept is None or not self._attempt(known, lambda: known.is_dearer_to_follow(at.lsn)):
            return None
        at.require_tables()
        known.pass_over()
        self._leave_if_dear(known)
        return self._computed(known, compute)

    def _leave_if_dear(self, known: KnownView) -> None:
        """Keeps rows no longer of which changes have taken longer to follow than the view takes to compute."""
        if known.method == "auto" and known.costs.is_dear and not self._is_read(known):
            self._lose(known, "following changes takes longer than computing anew")

    def _of(self, runtime: ViewRuntime) -> KnownView:
        oid = runtime.view.oid
        known = self._known.get(oid)
        is_current = known is not None and known.runtime is runtime and known.expanded.is_current(self._core)
        if known is None or not is_current or not admits(runtime.view, known.plan.sized.rewriting):
            if known is not None:
                known.drop()
            known = self._known[oid] = KnownView(runtime, self._plan(runtime, ()))
        return known

    def _plan(self, runtime: ViewRuntime, kept: Collection[int], rewriting: Rewriting = GUARDED) -> RowsPlan:
        """How the rows of a view might follow changes over the rows of views that are ``kept``."""
        expanded = self._sharing.parts.over(expanded_view(self._core, runtime, kept), kept)
        return guarded_plan(expanded, self._statistics(expanded), rewriting)

    def _statistics(self, expanded: Expanded) -> Statistics:
        kept = {oid: self._known[oid].kept for oid in expanded.sources if oid in self._known}
        return expanded.statistics(self._core, {oid: rows.rows.count for oid, rows in kept.items() if rows is not None})

    def _is_worth(self, known: KnownView, is_needed: bool) -> bool:
        """Whether rows that are not kept are to be from now on, if a dataflow can keep them. They are needed where a
        view above is not followed without them."""
        pays = is_needed or known.costs.is_worth or known.is_too_slow
        is_chosen = keeps_rows(known.runtime.view) or (known.method == "auto" and pays)
        return is_chosen and not known.costs.pause

    def _is_read(self, known: KnownView) -> bool:
        """Whether other views read the rows that are kept of one."""
        oid = known.runtime.view.oid
        return any(oid in other.reads for other in tuple(self._known.values()))

    def _restore(self, known: KnownView, time: datetime) -> None:
        """Keeps the rows of a view that were saved at the last stop, after those of the views that it reads. Makes many
        in the background."""
        oid = known.runtime.view.oid
        entry = self._saved.find(oid)
        if entry is None or known.method == "recompute":
            return
        standing: dict[int, KeptRows] = {}
        for runtime in map(self._core.find_view, entry.sources):
            below = None if runtime is None else self._of(runtime)
            if below is not None and self._take_up(below, time):
                return
            if below is not None and below.kept is not None:
                standing[below.runtime.view.oid] = below.kept
        self._saved.forget(oid)
        plan = self._plan(known.runtime, standing, entry.written)
        if plan_key(plan) != entry.plan or entry.lsn > self._core.opened_lsn:
            return
        held = self._held(known)
        restored = partial(self._restored, plan, entry, time, held, standing)
        fill = Fill(self._core, self._analytics, plan, time, held, self._brought, restored)
        known.fill = fill
        if entry.count <= AT_ONCE:
            fill.run()
            self._take(known)
        else:
            self._fills.begin(fill)

    def _take_up(self, known: KnownView, time: datetime) -> bool:
        """Takes up the saved rows of a view that keeps none; returns whether its rows are still being made."""
        self._take(known)
        if known.kept is None and known.fill is None:
            self._restore(known, time)
        return known.kept is None and known.fill is not None

    def _restored(
        self, plan: RowsPlan, entry: SavedView, time: datetime, held: Held, standing: Mapping[int, KeptRows]
    ) -> KeptRows:
        """The rows that were saved, with what has changed since still to be followed."""
        saved = self._saved.load(entry)
        with locked(_locks_below(self._core, plan.expanded.views[0][0])):
            if not plan.expanded.is_current(self._core):
                raise Unknown
            rows = KeptRows(self._core, plan, entry.lsn, time, held, self._brought, standing)
        try:
            rows.restore(saved, entry.work)
            rows.index()
        except BaseException:
            rows.close()
            raise
        return rows

    def _has_rows(self, known: KnownView, at: Reading, is_needed: bool = False) -> bool:
        """Whether a view's rows are kept, or are to be by this read. Begins a fill where these are many."""
        self._take_up(known, at.time)
        if known.kept is not None:
            self._make_better(known, at)
        if known.kept is not None or known.fill is not None or not self._is_worth(known, is_needed):
            return known.kept is not None
        if not self._planned_over(known, self._sources(known, at)):
            return False
        if known.expanded.is_too_large and not self._planned_over(known, self._sources(known, at, are_needed=True)):
            return False
        known.choose(self._core, self._statistics(known.expanded))
        if self._sharing.begins(known, self._statistics):  # the next reader has the locks
            return False
        if known.plan.planned.dataflow is None or not known.may_follow(at.lsn):
            return False
        if self._size(known) <= AT_ONCE:
            return True
        if known.fits(self._core, self.statistics(known.plan.planned.dataflow)):
            self._begin(known, known.plan, at)
        else:
            known.costs.lose()
            self.decisions.note(known.too_large())
        return False

    def _begin(self, known: KnownView, plan: RowsPlan, at: Reading) -> None:
        """Makes the rows of a view in the background."""
        known.fill = Fill(self._core, self._analytics, plan, at.time, self._held(known), self._brought)
        self._fills.begin(known.fill)

    def _make_better(self, known: KnownView, at: Reading) -> None:
        """Makes other rows of a view that has many more than when it was planned, or whose changes have become others,
        where another alternative would have saved the time of making them by now. Meanwhile the rows that there are
        follow the changes."""
        kept = known.kept
        assert kept is not None
        if known.shares and known.fill is None and not set(known.shares) <= set(known.expanded.sources):
            self._share(known, at)
            return
        count = self._attempt(known, lambda: kept.rows.count)  # a view that it reads may have lost its rows
        if count is None or not known.is_to_be_asked(count) or self._sharing.begins(known, self._statistics):
            return
        plan = known.better_plan(self._core, self._statistics(known.expanded), count)
        if plan is not None:
            self._begin(known, plan, at)

    # Parts that views share ------------------------------------------------------------------------------------------

    def _share(self, known: KnownView, at: Reading) -> None:
        """Makes the rows of a view that keeps its own over those of a part, once these are there."""
        parts = self._kept_parts(known, at)
        if parts is None:
            return
        known.shares = parts
        if parts:
            below = (oid for oid in known.expanded.sources if oid not in self._sharing.parts)
            expanded = self._plan(known.runtime, (*below, *parts)).expanded
            self._begin(known, chosen_plan(self._core, expanded, self._statistics(expanded), known.usual), at)

    def _sources(self, known: KnownView, at: Reading, are_needed: bool = False) -> tuple[int, ...] | None:
        """The views and parts whose kept rows a view is to read; None while such rows are being made."""
        below, parts = self._kept_below(known, at, are_needed), self._kept_parts(known, at)
        return None if below is None or parts is None else (*below, *parts)

    def _kept_parts(self, known: KnownView, at: Reading) -> tuple[int, ...] | None:
        """The parts whose kept rows a view is to read; None while these are being made, or another thread has one."""
        found: list[int] = []
        for runtime in map(self._core.find_view, known.shares):
            if runtime is None:
                continue
            if not runtime.lock.is_held:
                return None
            part = self._of(runtime)
            if part.kept is None and part.fill is None:
                at.require_tables()
            may_read = self._may_read(known, part, at, is_needed=True)
            if may_read is None:
                return None
            if may_read:
                found.append(runtime.view.oid)
        return tuple(found)

    def _planned_over(self, known: KnownView, sources: tuple[int, ...] | None) -> bool:
        """Plans a view over kept rows of others; False where these are still being made."""
        if sources is not None and sources != known.expanded.sources:
            known.plan = self._plan(known.runtime, sources)
        return sources is not None

    def _size(self, known: KnownView) -> int:
        """About how many rows are read to make those of a view."""
        below = (self._known[oid].kept for oid in known.expanded.sources)
        return known.expanded.size(self._core) + sum(kept.rows.count for kept in below if kept is not None)

    def _kept_below(self, known: KnownView, at: Reading, are_needed: bool = False) -> tuple[int, ...] | None:
        """The views below one whose kept rows it is to read; None while such rows are being made."""
        found: set[int] = set()
        for runtime in map(self._core.find_view, self._core.plans.get(known.runtime.final(known.runtime.view)).views):
            if runtime is None or runtime.away is not None:
                continue
            below = self._of(runtime)
            may_read = self._may_read(known, below, at, are_needed)
            if may_read is None:
                return None
            if may_read:
                found.add(runtime.view.oid)
                continue
            others = self._kept_below(below, at, are_needed)
            if others is None:
                return None
            found.update(others)
        return tuple(sorted(found))

    def _may_read(self, known: KnownView, below: KnownView, at: Reading, is_needed: bool) -> bool | None:
        """Whether a view may read the kept rows of a view or part below it, which are kept from now on where that pays;
        None while they are being made."""
        if self._has_rows(below, at, is_needed) and below.kept is None and _is_kept_for(below, known):
            self._keep(below, at)
        if below.fill is not None:
            return None
        return below.kept is not None and below.kept.follows_changes_alone and not below.kept.has_passed(at.lsn)

    def _keep(self, known: KnownView, at: Reading) -> None:
        """Keeps the rows of a view below the one that is read."""

        def filled() -> KeptRows | None:
            if not known.expanded.advance(at.lsn, with_own=True):
                return None
            with known.costs.filling():
                return self._filled(known, at)

        known.kept = self._attempt(known, filled)

    def _brought(self, oid: int, lsn: int, time: datetime) -> KeptRows | None:
        """The kept rows of a view that others read, brought to an LSN; None where they are of no use."""
        known = self._known.get(oid)
        if known is None or known.kept is None or not self._core.is_live(known.runtime):
            return None
        kept = known.kept
        if not self._is_current(known, lsn):
            return None

        def advanced() -> KeptRows:
            kept.advance(lsn, time)
            return kept

        return self._attempt(known, advanced)

    def _is_current(self, known: KnownView, lsn: int) -> bool:
        """Whether the rows of a view can be brought to an LSN, as the states are that they read."""
        is_current = known.expanded.is_current(self._core) and known.may_follow(lsn)
        return is_current and known.expanded.advance(lsn, with_own=True)

    def _take(self, known: KnownView) -> None:
        """Takes the rows of a fill that is over."""
        fill = known.fill
        if fill is None or not fill.is_over:
            return
        rows, known.fill = fill.take(), None
        known.costs.fill(fill.seconds)
        if rows is not None:
            known.drop()
            known.kept, known.plan, known.engines = rows, fill.plan, fill.engines
            self._begun(known, rows)
            return
        known.shares = ()
        if known.kept is None and fill.computes:
            known.refused = known.estimated if fill.is_too_large else inf
            self._lose(known, "they could not be made")

    def _computed(self, known: KnownView, compute: Callable[[], pa.Table]) -> pa.Table:
        with known.costs.computing():
            return compute()

    def _filled(self, known: KnownView, at: Reading) -> KeptRows:
        rows = KeptRows(self._core, known.plan, at.lsn, at.time, self._held(known), self._brought)
        known.engines = {}
        try:
            rows.fill(at.whole)
            rows.advance(at.lsn, at.time, at.whole)
        except BaseException:
            rows.close()
            raise
        self._begun(known, rows)
        return rows

    def _held(self, known: KnownView) -> Held:
        return self._core.trace_budget.register(lambda size: self._give_back(known))

    def _give_back(self, known: KnownView) -> None:
        with known.runtime.lock.if_free() as is_free:
            if is_free:
                known.drop()
                known.shares = ()

    def _lose(self, known: KnownView, reason: str) -> None:
        _LOGGER.debug("rows of view %s are computed anew: %s", known.runtime.view.name, reason)
        self.decisions.note(known.given_up(reason))
        known.drop()
        known.shares = ()
        known.costs.lose()
        self._sharing.release()

    def _begun(self, known: KnownView, rows: KeptRows) -> None:
        known.begin(rows)
        self.decisions.note(known.following())

    def _measured(self, oid: int, chosen: str) -> float | None:
        known = self._known.get(oid)
        return None if known is None else known.costs.milliseconds(is_followed=chosen != COMPUTED)


def _locks_below(core: Core, runtime: ViewRuntime) -> list[ViewLock]:
    """The locks of a view and of those that it reads, in the order in which they are taken."""
    below = map(core.find_view, core.views_locked((runtime.view.oid,)))
    return [item.lock for item in below if item is not None]


@contextmanager
def _free_below(core: Core, runtime: ViewRuntime) -> Iterator[bool]:
    """Takes the locks of a view and of those that it reads, if no other thread has one of them."""
    with ExitStack() as taken:
        yield all(taken.enter_context(lock.if_free()) for lock in _locks_below(core, runtime))


def _is_kept_for(below: KnownView, above: KnownView) -> bool:
    """Whether a view's rows, made by the read of a view above it, may be what that follows: they are the same at any
    time, and in any time zone that the other view has."""
    is_timed = below.runtime.view.timed or below.expanded.expiry is not None
    return not is_timed and below.runtime.time_zone == above.runtime.time_zone

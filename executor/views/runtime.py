"""A continuous view while its server runs: how far its states are, what they contain, and its result.

Owns: the in-memory content of a view's states (a cache of what storage and log say) and the rules by which it moves:
``advance`` runs the view's paths over what its inputs got since (the part of maintenance that a reader waits for), and
``absorb`` takes over what a background job committed. Content that the budget of all traces has no room for is given
back, and read from storage when it is asked for again. Knows nothing of scheduling (``executor.upkeep``) or of files
(``executor.views.storage``). Split maintenance is the thesis' section 4.2.1; the last result is kept while nothing
changed (4.2.5).
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import pyarrow as pa
from msgspec import Struct

from catalog.objects import RowPolicy, Stream, View
from catalog.values.errors import SqlError
from executor.engine import MemoryEngine
from executor.traces.budget import TraceBudget, size_of
from executor.traces.state import StateTrace
from executor.traces.trace import InputTrace
from executor.views.definition import Definition
from executor.views.expiry import Losses, unexpired
from executor.views.failing_rows import last_rejected
from executor.views.failure import ViewError, is_of_the_rows
from executor.views.location import Away, Loans, Location
from executor.views.path_runner import PastRows, PathRunner, named
from executor.views.pins import PinnedLsns
from executor.views.progress import PendingRun, Progress
from executor.views.view_lock import ViewLock
from planner.algebra.nodes import Relation
from planner.incremental.programs.program import Path, Program, State
from planner.incremental.programs.rejected import REJECTED

#: Runs kept apart for the next commit before they are merged into one.
PENDING_RUNS: Final = 32
#: Rows of a reader's run from which on it takes a processor for so long that background work had better wait.
MANY_ROWS: Final = 65536


_Found = TypeVar("_Found")


class ContentMemory(Struct, frozen=True):
    """The budget in which a view's content counts, and where it is read again: the paths' frontiers by id, and the
    states' runs by name, all of one commit."""

    budget: TraceBudget
    stored: Callable[[], tuple[Mapping[int, int], Mapping[str, list[pa.Table]]]]


class ViewPassed(Exception):
    """Another reader already brought the view beyond the LSN that was asked for."""


class Readers:
    """Whether readers process many rows of a view: background work leaves the processor to them."""

    def __init__(self) -> None:
        #: Whether one does so now, and the monotonic second at which one last had.
        self.is_busy, self.last = False, -math.inf

    def begin(self, rows: int) -> bool:
        """A reader processes so many rows; whether they are many, so that ``end`` must follow."""
        self.is_busy = rows >= MANY_ROWS
        return self.is_busy

    def end(self) -> None:
        """It has processed them."""
        self.is_busy, self.last = False, time.monotonic()


class ViewRuntime:
    """One continuous view's states and result. All methods may be called from any thread."""

    def __init__(
        self,
        view: View,
        program: Program,
        engine: MemoryEngine,
        inputs: Mapping[int, InputTrace],
        statics: Mapping[str, pa.Table],
        frontiers: Mapping[int, int],
        load: Callable[[State], list[pa.Table]],
        pinned: PinnedLsns | None = None,
        on_fail: Callable[[ViewError | None], None] = lambda failed: None,
        memory: ContentMemory | None = None,
        streams: Callable[[int], Stream | None] = lambda oid: None,
        past: Callable[[Definition], PastRows] | None = None,
    ) -> None:
        """``frontiers`` are the durable ones by path id; ``load`` reads a state's committed runs from storage;
        ``pinned`` are the LSNs at which open snapshots read. ``on_fail`` keeps an error on storage, or none.
        Without ``memory``, the content stays as it is and counts nowhere.
        ``streams`` knows the streams by oid. ``past`` has the tables that rows meet as of their own LSNs."""
        self.definition = Definition(view, program)
        self._past = past(self.definition) if past is not None and program.arrival_statics else None
        about = (inputs, statics, view.time_zone, streams, self._past)
        self.runner = PathRunner(self.definition.program, engine, *about)
        self.location = Location()
        self.loans = Loans()
        self.readers = Readers()
        self.lock = ViewLock()
        #: Held from a commit on storage until the content has its runs: a job of each engine may commit at once.
        self.committing = threading.Lock()
        self.error: ViewError | None = None
        self._on_fail = on_fail
        self._load = load
        self._version = 0
        self._result: tuple[object, pa.Table] | None = None
        self._pinned = PinnedLsns() if pinned is None else pinned
        #: The pinned LSNs that the view has passed, at which its states are kept.
        self._kept: set[int] = set()
        self._stored = None if memory is None else memory.stored
        #: Whether states are empty since their rows were given back.
        self._is_given_back = False
        self.paths = [Progress(path, frontiers[path.id], frontiers[path.id]) for path in self.program.paths]
        self._expiries = {expiry.state: expiry for expiry in program.expiries}
        self.states = {state.name: self._loaded(state) for state in program.states}
        #: The rows that the view has left out.
        self.rejected = StateTrace(REJECTED, self._stored_rows(REJECTED, load(REJECTED)), engine, last_rejected)
        budget = TraceBudget(sys.maxsize) if memory is None else memory.budget
        self._held = budget.register(self._give_back)
        self._count()

    @property
    def view(self) -> View:
        """The view as it is defined now."""
        return self.definition.view

    @property
    def program(self) -> Program:
        """The view's program as it is now."""
        return self.definition.program

    @property
    def away(self) -> Away | None:
        """What reads are told while the view is on another server."""
        return self.location.away

    @property
    def held(self) -> int | None:
        """Above this LSN another server still reads the streams' rows for the view."""
        return self.location.held

    @property
    def shared(self) -> str:
        """The view's name among servers; '' where it never left one."""
        return self.location.shared

    @property
    def handover(self) -> str:
        """How the view's states came here last; '' where they never did."""
        return self.location.handover

    def final(self, view: View) -> Relation:
        """The relation that makes the view's rows, as its definition calls the columns of what it reads."""
        return self.definition.final(view)

    def alter(self, view: View) -> None:
        """Replaces the definition by one of equal meaning. Takes no lock: the caller has the sequencer's."""
        if self.definition.alter(view):
            for progress, path in zip(self.paths, self.program.paths, strict=True):
                progress.path = path

    def replan(self, view: View, program: Program) -> None:
        """Replaces definition and program by another one over the same traces and paths. Takes no lock: the caller has
        the sequencer's, and no reader is at work, since the definition was locked."""
        self._expiries = {expiry.state: expiry for expiry in program.expiries}
        self.definition.replan(view, program)

    def _loaded(self, state: State) -> StateTrace:
        rows = self._stored_rows(state, self._load(state))
        return StateTrace(state, rows, self.runner.engine, lambda table: self._needed(state, table))

    def _stored_rows(self, state: State, tables: list[pa.Table]) -> pa.Table:
        """A state's committed rows, merged."""
        base = tables[0] if len(tables) == 1 else self.runner.engine.merge(state, tables)
        return named((state,), state.name, base)

    def _needed(self, state: State, table: pa.Table) -> pa.Table:
        """A state's rows without those that the retention is done with: what has been read stays read."""
        expiry = self._expiries.get(state.name)
        if expiry is None:
            return table
        return unexpired(table, expiry, lambda name: self.states[name].tables, self.runner.engine.query_few)

    def losses(self, state: str) -> Losses:
        """What a state loses at the LSN that the content has reached, where its rows' times tell."""
        expiry = self._expiries.get(state)
        is_told = expiry is not None and expiry.is_by_times
        return Losses(expiry if is_told else None, lambda name: self.states[name].tables)

    @property
    def time_zone(self) -> str:
        """The TimeZone setting of the view's creation."""
        return self.view.time_zone

    @property
    def reached(self) -> int:
        """The LSN that the content of all paths has reached; 0 without paths."""
        return max((progress.reached for progress in self.paths), default=0)

    @property
    def version(self) -> int:
        """Grows whenever the content changed, or how it is shown."""
        return self._version + self.definition.relabelled

    def advance(self, lsn: int) -> None:
        """Brings every path's content to an LSN. Raises the view's error."""
        with self.lock:
            self._begin_read()
            self._keep_pinned(lsn)
            self._advance_paths(lsn)
            self._count()
            self.check()

    def _advance_paths(self, lsn: int) -> None:
        for progress in self.paths if self.away is None else ():
            if progress.reached < progress.claimed < lsn:
                self._advance_path(progress, progress.claimed)
            while progress.reached < lsn:
                self._advance_path(progress, self.runner.cut(progress.path, progress.reached, lsn))

    def _keep_pinned(self, upto: int) -> None:
        """Before the content moves up to an LSN: keeps it as of each pinned LSN that it passes. Tables are immutable,
        so that this copies no rows."""
        pinned = self._pinned.lsns
        for lsn in self._kept.difference(pinned):
            self._kept.discard(lsn)
            for state in self.states.values():
                state.drop(lsn)
        for lsn in pinned:
            if lsn >= upto or lsn in self._kept or self.has_passed(lsn) or not self._is_here:
                continue
            if any(self.runner.rows(item.path, max(lsn, item.reached), upto) for item in self.paths):
                self._advance_paths(lsn)
                self._kept.add(lsn)
                for state in self.states.values():
                    state.keep(lsn)

    def has_passed(self, lsn: int) -> bool:
        """Whether the content has rows of a later LSN."""
        return any(progress.reached > lsn and progress.moved > lsn for progress in self.paths)

    def _is_beyond(self, lsn: int) -> bool:
        """Whether the content has rows of a later LSN, or has failed at one."""
        return self.has_passed(lsn) or (self.error is not None and self.error.lsn > lsn)

    @property
    def _is_here(self) -> bool:
        """Whether there is content that follows the inputs."""
        return self.away is None and self.error is None and not self._is_given_back

    @property
    def is_lost(self) -> bool:
        """Whether its files are damaged."""
        return self.error is not None and not self.error.lsn

    def check(self) -> None:
        """Raises the view's error, if it has one, and 55000 where it is on another server."""
        if self.away is not None:
            raise self.away.raised(self.view)
        if self.error is not None:
            raise self.error.raised()

    def check_inputs(self) -> None:
        """Raises why a stream's folder has a file whose rows cannot come. What a read asks first."""
        self.runner.check()

    def _advance_path(self, progress: Progress, lsn: int) -> None:
        after, progress.reached = progress.reached, lsn
        if self.error is not None:  # no rows are kept for it
            return
        rows = self.runner.rows(progress.path, after, lsn)
        if rows == 0:
            return
        is_long, policy = self.readers.begin(rows), self.view.on_error
        try:
            tables = self.runner.run(progress.path, after, lsn, self._tables, policy)
        except SqlError as error:
            if not is_of_the_rows(error):
                progress.reached = after
                raise
            self.fail(ViewError(error, lsn, policy))
            return
        except BaseException:
            progress.reached = after
            raise
        finally:
            if is_long:
                self.readers.end()
        self._add(tables, lsn)
        progress.moved = lsn
        progress.pending.append(PendingRun(after, lsn, tables))
        if len(progress.pending) > PENDING_RUNS:
            claimed = [run for run in progress.pending if run.upto <= progress.claimed]
            free = progress.pending[len(claimed) :]
            progress.pending = [self._merged(runs) for runs in (claimed, free) if runs]

    def run_path(self, path: Path, after: int, upto: int, policy: RowPolicy | None = None) -> dict[str, pa.Table]:
        """Runs of a path's states over (after, upto], computed by the embedded engine; ``after`` is what is durable."""
        return self.runner.run(path, after, upto, self._load, policy or self.view.on_error)

    def _tables(self, state: State) -> list[pa.Table]:
        return self._traces[state.name].tables

    @property
    def _traces(self) -> dict[str, StateTrace]:
        """The states, and the one of the rows that the view has left out."""
        return {**self.states, REJECTED.name: self.rejected}

    def fail(self, error: ViewError, is_kept: bool = False) -> None:
        """Makes an error the view's value; its states are no longer maintained. ``is_kept``: storage says so already,
        or will again at the next start."""
        with self.lock:
            if self.error is None:
                if not is_kept:
                    self._on_fail(error)
                self.error = error
                self._version += 1

    def rejected_rows(self) -> list[tuple[Any, ...]]:
        """The last rows that the view has left out, as far as it is up to date; in the columns of ``REJECTED``."""
        with self.lock:
            self._restore()
            kept = last_rejected(self.rejected.snapshot())
        return list(zip(*(column.to_pylist() for column in kept.columns), strict=True))

    def late_rows(self) -> int | None:
        """How many rows its joins have left out since they were late, as far as it is up to date; None where no row
        is left out for that."""
        found = {item.target for path in self.program.paths for item in path.statements if item.method == "late"}
        if not found:
            return None
        with self.lock:
            self._restore()
            tables = [table for name in found for table in self.states[name].tables]
        return sum(int(value) for table in tables for value in table.column(0).to_pylist())

    @property
    def may_go_on(self) -> bool:
        """Whether the view has an error of rows, and another policy for such rows since: its states on storage are of
        the LSN before them."""
        error = self.error
        return error is not None and error.policy not in (None, self.view.on_error) and self._stored is not None

    def go_on(self) -> None:
        """Takes the error back where the view may go on: from what is on storage, under the policy that it has now.
        Raises 53100, 58030."""
        with self.lock:
            if self.may_go_on:
                self._on_fail(None)
                self.error = None
                self._return_to_durable()
                self._empty()
                self._is_given_back = True

    def _empty(self) -> None:
        """The content is not in memory any more, at no LSN."""
        for state in self._traces.values():
            state.empty()
        self._kept.clear()

    def _merged(self, runs: list[PendingRun]) -> PendingRun:
        """One run of consecutive ones."""
        tables = {
            name: self.runner.engine.merge(trace.state, [run.tables[name] for run in runs if name in run.tables])
            for name, trace in self._traces.items()
            if any(name in run.tables for run in runs)
        }
        return PendingRun(runs[0].after, runs[-1].upto, tables)

    def take_pending(self, progress: Progress) -> PendingRun | None:
        """One run from the durable frontier to what was reached, if the runs in memory are exactly that."""
        with self.lock:
            if self.error is not None or not progress.pending or progress.pending[0].after < progress.durable:
                return None  # what a view that has failed has reached, it has not computed
            starts_late = self.runner.rows(progress.path, progress.durable, progress.pending[0].after) > 0
            if starts_late:
                return None
            progress.pending = [self._merged(progress.pending)]
            return PendingRun(progress.durable, progress.reached, progress.pending[0].tables)

    def claim(self, progress: Progress, upto: int) -> None:
        """A background job computes the path's rows from its durable frontier up to an LSN."""
        with self.lock:
            progress.claimed = upto
            if any(lsn < upto for lsn in self._pinned.lsns):
                self._restore()  # storage will not have it as of these LSNs

    def absorb(self, progress: Progress, upto: int, tables: Mapping[str, pa.Table]) -> None:
        """Takes over a committed run over (durable, upto], by state name, where the content lacks it."""
        with self.lock:
            self._keep_pinned(upto)
            if progress.reached >= upto or progress.reached == progress.durable:
                after, progress.durable = progress.durable, upto
                progress.pending = [run for run in progress.pending if run.after >= upto]
                if progress.reached == after:
                    if not self._is_given_back:
                        self._add(tables, upto)
                        self._count()
                    progress.reached = progress.moved = upto
                return
        self._reload(progress, upto)

    def _reload(self, progress: Progress, upto: int) -> None:
        """The content ends within a committed run: it becomes what storage has, of all paths, since they may share a
        state. It is read before the lock is taken: the caller holds ``committing``."""
        stored = {name: self._stored_rows(trace.state, self._load(trace.state)) for name, trace in self._traces.items()}
        with self.lock:
            self._keep_pinned(upto)
            progress.durable = upto
            self._return_to_durable()
            for name, rows in stored.items():
                self._traces[name].replace(rows, upto)
            self._is_given_back = False
            self._count()

    def _return_to_durable(self) -> None:
        """The content is no more than what is committed."""
        for progress in self.paths:
            progress.reached = progress.moved = progress.durable
            progress.pending = []
        self._version += 1

    # Memory -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """The view is no more; its content counts no longer."""
        self._held.close()
        if self._past is not None:
            self._past.close()

    def _count(self) -> None:
        """Says how many bytes the content takes. Runs that wait for a commit are not counted: most of them are among
        the states' tails."""
        result = 0 if self._result is None else size_of(self._result[1])
        self._held.set(result + sum(state.bytes for state in self._traces.values()))

    def _give_back(self, size: int) -> None:
        """Drops copies of the content, and the content where they are not enough, unless a reader is at work on it or
        a snapshot may need it as it is."""
        least = self._held.bytes - size
        with self.lock.if_free() as is_free:
            if not is_free:
                return
            self._result = None
            for state in self.states.values():
                state.drop_copies()
            self._count()
            if self._held.bytes > least and self._is_here and not self._pinned.lsns and not self._kept:
                self._return_to_durable()
                self._empty()
                self._is_given_back = True
                self._count()

    def _begin_read(self) -> None:
        self._held.read()
        self.go_on()
        self._restore()

    def _restore(self) -> None:
        """Reads content from storage that was given back. A job may have committed more than the view was told of."""
        if not self._is_given_back or self.away is not None or self.error is not None:
            return
        assert self._stored is not None
        frontiers, runs = self._stored()
        for progress in self.paths:
            progress.reached = progress.moved = frontiers[progress.path.id]
        for name, trace in self._traces.items():
            trace.replace(self._stored_rows(trace.state, runs[name]), max(frontiers.values(), default=0))
        self._is_given_back = False

    # Between servers --------------------------------------------------------------------------------------------

    def leave(self, away: Away, held: int) -> None:
        """The view is on another server, which reads the stream's rows above an LSN."""
        with self.lock:
            if self.away is None:
                self._empty()
                self._is_given_back = False
                for progress in self.paths:
                    progress.pending = []
                self._result = None
                self._version += 1
                self._count()
            self.location.leave(away, held)

    def come_back(self, handover: str, frontier: int) -> None:
        """The view is here again, and its stored states are of an LSN. The log is kept until all know of it."""
        with self.committing, self.lock:
            for progress in self.paths:
                self._reload(progress, frontier)
            self.location.arrive(handover)

    def _add(self, tables: Mapping[str, pa.Table], upto: int) -> None:
        for name, table in tables.items():
            self._traces[name].append(table, upto)
        self._version += 1

    def result(
        self, lsn: int, exact: bool, beside: object, query: Callable[[Callable[[], Mapping[str, pa.Table]]], pa.Table]
    ) -> pa.Table:
        """The view's rows at an LSN (or, unless ``exact``, a later one); ``query`` evaluates the final relation over
        what it asks for, the rows of the states.

        ``beside`` says what else the rows depend on: what the caller sees of tables and other views that the final
        relation reads, and the names of the columns.
        Raises ViewPassed when the content is beyond ``lsn`` already, was not kept, and ``exact`` matters.
        """
        self.check_inputs()
        with self.lock:
            self._begin_read()
            if exact and self._is_beyond(lsn):
                if lsn not in self._kept:
                    raise ViewPassed
                return query(partial(self.snapshots, lsn))
            self.advance(lsn)
            key = (self.version, beside)
            if self._result is not None and self._result[0] == key:
                return self._result[1]
            table = query(self.snapshots)
            self._result = (key, table)
            self._count()
            return table

    def some(self, lsn: int, exact: bool, find: Callable[[], _Found | None]) -> _Found | None:
        """What ``find`` knows of the view's rows at an LSN, once the states are there; None where it knows nothing, or
        the states are beyond the LSN."""
        self.check_inputs()
        with self.lock:
            self._begin_read()
            if exact and self._is_beyond(lsn):
                return None
            self.advance(lsn)
            return find()

    def snapshots(self, lsn: int | None = None) -> dict[str, pa.Table]:
        """Engine leaf names of the states and statics with their rows: now, or at an LSN that was kept."""
        found = {f"s_{name}": state.snapshot(lsn) for name, state in self.states.items()}
        return found | self.snapshots_of_statics()

    def snapshots_of_statics(self) -> dict[str, pa.Table]:
        """Snapshots of the static pipelines' results."""
        return {f"s_{name}": table for name, table in self.runner.statics.items()}

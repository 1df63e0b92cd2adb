"""A continuous view while its server runs: how far its states are, what they contain, and its result.

Owns: the in-memory content of a view's states (a cache of what traces and log say) and the rules by which it moves:
``advance`` runs the view's paths over what its streams got since (the part of maintenance that a reader waits for), and
``absorb`` takes over what a background job committed. Knows nothing of scheduling (``maintenance``) or of files
(executor/trace). Split maintenance is the thesis' section 4.2.1; the last result is kept while nothing changed (4.2.5).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path as FilePath

import pyarrow as pa
from msgspec import Struct, field

from catalog.objects import View
from catalog.values.errors import SqlError
from catalog.values.identifiers import quote_name
from executor.embedded.engine import EmbeddedEngine
from executor.engine import Inputs, Job
from executor.traces.layout import LSN, ORDINAL
from executor.traces.state import StateTrace
from executor.traces.trace import InputTrace
from executor.views.expiry import unexpired
from executor.views.pins import PinnedLsns
from planner.algebra.relations import Delta, Relation
from planner.algebra.walk import walk
from planner.incremental.names import stored_name
from planner.incremental.programs.labels import with_labels
from planner.incremental.programs.program import Path, Program, State, Statement, states_read
from planner.incremental.programs.renaming import with_current_names

#: Runs kept apart for the next commit before they are merged into one.
PENDING_RUNS = 32
#: Rows of a reader's run from which on it takes a processor for so long that background work had better wait.
MANY_ROWS = 65536


class PendingRun(Struct):
    """A run in memory that no commit holds yet: ``tables`` by state name over (``after``, ``upto``]."""

    after: int
    upto: int
    tables: dict[str, pa.Table]


class Progress(Struct):
    """How far one path is: ``durable`` is its committed frontier, ``reached`` what the content includes.

    ``moved`` is the LSN up to which a run last changed the content: up to ``reached`` it is the same. ``claimed`` is
    where the interval ends that a background job computes now, or computed last: readers do not wait for it, but end
    their runs there, so that what the job commits takes the place of whole runs and those above it stay of use.
    """

    path: Path
    durable: int
    reached: int
    moved: int = 0
    claimed: int = 0
    pending: list[PendingRun] = field(default_factory=list)


class ViewError(Struct, frozen=True):
    """Why a view has no value any more, and where in the log that happened (architecture, section 1); 0 where that was
    not in the log."""

    error: SqlError
    lsn: int

    def raised(self) -> SqlError:
        """What a read raises: each its own, since an error that is raised again and again keeps the frames of all."""
        detail = self.error.detail
        if self.lsn:  # a row did it
            detail = f"A row that arrived at or before LSN {self.lsn} makes the view's query fail."
        return SqlError(self.error.sqlstate, self.error.message, detail, self.error.hint)


class Away(Struct, frozen=True):
    """Another server maintains a view, or nobody while it is suspended: then ``server`` is ''."""

    server: str
    address: str

    def raised(self, view: View) -> SqlError:
        """What a read here raises."""
        if not self.server:
            return view_suspended(view)
        where = f"Connect to {self.address}" if self.address else "millstream.servers has its address"
        return SqlError(
            "55000", f'view "{view.name}" is on server "{self.server}"', hint=f"{where}, or let it migrate back."
        )


def view_suspended(view: View) -> SqlError:
    """What is said of a view that nobody maintains now."""
    name = ".".join(map(quote_name, (view.schema, view.name))).replace("'", "''")
    hint = f"SELECT millstream.resume('{name}') lets it go on."
    return SqlError("55000", f'view "{view.name}" is suspended', hint=hint)


#: SQLSTATE classes of resources, locks, cancellation, files and snapshots: the rows are not to blame for these.
_CIRCUMSTANCES = ("53", "55", "57", "58", "72")


def is_of_the_rows(error: SqlError) -> bool:
    """Whether an error will come again whenever the same rows are processed, and so is the view's value."""
    return not error.sqlstate.startswith(_CIRCUMSTANCES)


class Lent(Struct, frozen=True):
    """Rows of a table of the view's home, at an LSN of that."""

    at: int
    rows: pa.Table


class ViewPassed(Exception):
    """Another reader already brought the view beyond the LSN that was asked for."""


class ViewRuntime:
    """One continuous view's states and result. All methods may be called from any thread."""

    def __init__(
        self,
        view: View,
        program: Program,
        engine: EmbeddedEngine,
        feeds: Mapping[int, InputTrace],
        statics: Mapping[str, pa.Table],
        frontiers: Mapping[int, int],
        load: Callable[[State], list[pa.Table]],
    ) -> None:
        """``frontiers`` are the durable ones by path id; ``load`` reads a state's committed runs from storage."""
        self.view = view
        self._planned = program  # at the view's creation
        self.program = with_labels(program, view.labels) if view.labels else program
        self._final: tuple[object, Relation] = (((), 0), self.program.final)
        self.engine = engine
        self.feeds = feeds
        self.statics = statics
        self.lock = threading.RLock()
        #: Held from a commit on storage until the content has its runs: a job of each engine may commit at once.
        self.committing = threading.Lock()
        self.error: ViewError | None = None
        #: Keeps an error on storage: the log does not wait for a view that has one.
        self.on_fail: Callable[[ViewError], None] = lambda failed: None
        self.next_job = 0
        #: The view's name among the servers of a storage, and how its states came here last; '' where it never left.
        self.shared = self.handover = ""
        #: Above this LSN another server still reads the stream's rows for the view.
        self.held: int | None = None
        #: What reads are told while the view is on another server.
        self.away: Away | None = None
        #: What the home has lent (``moving/borrowing``), by trace, and held by who asks for it.
        self.lent: Mapping[str, Lent] = {}
        self.asking = threading.Lock()
        #: Whether a reader processes many rows now, and the monotonic second at which one last had.
        self.is_read, self.last_read = False, -math.inf
        self._load = load
        #: Ids of the paths that read a row's place.
        self._placed = {path.id for path in program.paths if reads_places(path.statements)}
        #: By the paths' ids, the states that their statements read as they were before a delta.
        self._standing = {path.id: states_read(path.statements) for path in program.paths}
        self._version = self._relabelled = 0
        self._result: tuple[object, pa.Table] | None = None
        #: LSNs at which open snapshots read, and the contents as of those that the view has passed.
        self.pinned = PinnedLsns()
        self._kept: set[int] = set()
        self.paths = [Progress(path, frontiers[path.id], frontiers[path.id]) for path in self.program.paths]
        self._expiries = {expiry.state: expiry for expiry in program.expiries}
        self.states = {state.name: self._loaded(state) for state in program.states}

    def final(self, view: View) -> Relation:
        """The relation that makes the view's rows, as its definition calls the columns of what it reads."""
        known, relation = self._final
        if known != (key := (view.moved, self._relabelled)):
            relation = with_current_names(self.program.final, view.moved)
            self._final = key, relation
        return relation

    def alter(self, view: View) -> None:
        """The view is defined otherwise, and means the same. Takes no lock: the caller has the sequencer's."""
        labels, self.view = self.view.labels, view
        if view.labels != labels:
            self.program = with_labels(self._planned, view.labels)
            for progress, path in zip(self.paths, self.program.paths, strict=True):
                progress.path = path
            self._relabelled += 1

    def _loaded(self, state: State) -> StateTrace:
        return StateTrace(state, self._stored_rows(state), self.engine, lambda table: self._needed(state, table))

    def _stored_rows(self, state: State) -> pa.Table:
        """A state's committed rows, merged."""
        tables = self._load(state)
        base = tables[0] if len(tables) == 1 else self.engine.merge(state, tables)
        return named((state,), state.name, base)

    def _needed(self, state: State, table: pa.Table) -> pa.Table:
        """A state's rows without those that the retention is done with: what has been read stays read."""
        expiry = self._expiries.get(state.name)
        if expiry is None:
            return table
        return unexpired(table, expiry, self.states[expiry.watermark].tables, self.engine.query_few)

    @property
    def time_zone(self) -> str:
        """The TimeZone setting of the view's creation."""
        return self.view.time_zone

    @property
    def version(self) -> int:
        """Grows whenever the content changed, or how it is shown."""
        return self._version + self._relabelled

    def advance(self, lsn: int) -> None:
        """Brings every path's content to an LSN. Raises the view's error."""
        with self.lock:
            self._keep_pinned(lsn)
            self._advance_paths(lsn)
            self.check()

    def _advance_paths(self, lsn: int) -> None:
        for progress in self.paths if self.away is None else ():
            if progress.reached < progress.claimed < lsn:
                self._advance_path(progress, progress.claimed)
            if progress.reached < lsn:
                self._advance_path(progress, lsn)

    def _keep_pinned(self, upto: int) -> None:
        """Before the content moves up to an LSN: keeps it as of each pinned LSN that it passes. Tables are immutable,
        so that this copies no rows."""
        pinned = self.pinned.lsns
        for lsn in self._kept.difference(pinned):
            self._kept.discard(lsn)
            for state in self.states.values():
                state.drop(lsn)
        for lsn in pinned:
            if lsn >= upto or lsn in self._kept or self._has_passed(lsn) or self.away is not None or self.error:
                continue
            if any(self.rows(item.path, max(lsn, item.reached), upto) for item in self.paths):
                self._advance_paths(lsn)
                self._kept.add(lsn)
                for state in self.states.values():
                    state.keep(lsn)

    def _has_passed(self, lsn: int) -> bool:
        """Whether the content has rows of a later LSN."""
        return any(progress.reached > lsn and progress.moved > lsn for progress in self.paths)

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

    def rows(self, path: Path, after: int, upto: int) -> int:
        """How many rows an interval of a path's inputs holds."""
        return sum(self.feeds[oid].rows(after, upto) for oid in path.inputs)

    def check_feeds(self) -> None:
        """Raises why a stream's folder has a file whose rows cannot come. What a read asks first."""
        for feed in self.feeds.values():
            feed.check()

    def _advance_path(self, progress: Progress, lsn: int) -> None:
        after, progress.reached = progress.reached, lsn
        if self.error is not None:  # nobody keeps rows for it
            return
        rows = self.rows(progress.path, after, lsn)
        if rows == 0:
            return
        self.is_read = rows >= MANY_ROWS
        try:
            tables = self._run_path(progress.path, after, lsn, lambda state: self.states[state.name].tables)
        except SqlError as error:
            if not is_of_the_rows(error):
                progress.reached = after
                raise
            self.fail(ViewError(error, lsn))
            return
        except BaseException:
            progress.reached = after
            raise
        finally:
            if self.is_read:
                self.is_read, self.last_read = False, time.monotonic()
        self._add(tables, lsn)
        progress.moved = lsn
        progress.pending.append(PendingRun(after, lsn, tables))
        if len(progress.pending) > PENDING_RUNS:
            claimed = [run for run in progress.pending if run.upto <= progress.claimed]
            free = progress.pending[len(claimed) :]
            progress.pending = [self._merged(runs) for runs in (claimed, free) if runs]

    def run_path(self, path: Path, after: int, upto: int) -> dict[str, pa.Table]:
        """Runs of a path's states over (after, upto], computed by the embedded engine; ``after`` is what is durable."""
        return self._run_path(path, after, upto, self._load)

    def _run_path(
        self, path: Path, after: int, upto: int, before: Callable[[State], list[pa.Table]]
    ) -> dict[str, pa.Table]:
        """The same; ``before`` has the states' rows at ``after``, for statements that read them."""
        self.next_job += 1
        targets = {statement.target for statement in path.statements}
        states = tuple(state for state in self.program.states if state.name in targets)
        deltas = {oid: self.feeds[oid].delta(after, upto, path.id in self._placed) for oid in path.inputs}
        standing = {
            state.name: named((state,), state.name, self.engine.merge(state, before(state)))
            for state in states
            if state.name in self._standing[path.id]
        }
        inputs = Inputs(deltas, {**self.statics, **standing} if standing else self.statics)
        job = Job(self.next_job, path.statements, states, inputs, after, upto, timezone=self.time_zone)
        return {name: named(states, name, run) for name, run in self.engine.run(job).runs.items()}

    def fail(self, error: ViewError) -> None:
        """Makes an error the view's value; its states are no longer maintained."""
        with self.lock:
            if self.error is None:
                self.on_fail(error)
                self.error = error
                self._version += 1

    def _merged(self, runs: list[PendingRun]) -> PendingRun:
        """One run of consecutive ones."""
        tables = {
            name: self.engine.merge(self.states[name].state, [run.tables[name] for run in runs])
            for name in runs[0].tables
        }
        return PendingRun(runs[0].after, runs[-1].upto, tables)

    def take_pending(self, progress: Progress) -> PendingRun | None:
        """One run from the durable frontier to what was reached, if the runs in memory are exactly that."""
        with self.lock:
            if not progress.pending or progress.pending[0].after < progress.durable:
                return None
            starts_late = self.rows(progress.path, progress.durable, progress.pending[0].after) > 0
            if starts_late:
                return None
            progress.pending = [self._merged(progress.pending)]
            return PendingRun(progress.durable, progress.reached, progress.pending[0].tables)

    def claim(self, progress: Progress, upto: int) -> None:
        """A background job computes the path's rows from its durable frontier up to an LSN."""
        with self.lock:
            progress.claimed = upto

    def absorb(self, progress: Progress, upto: int, tables: Mapping[str, pa.Table]) -> None:
        """Takes over a committed run over (durable, upto], by state name, where the content lacks it."""
        with self.lock:
            self._keep_pinned(upto)
            if progress.reached >= upto or progress.reached == progress.durable:
                after, progress.durable = progress.durable, upto
                progress.pending = [run for run in progress.pending if run.after >= upto]
                if progress.reached == after:
                    self._add(tables, upto)
                    progress.reached = progress.moved = upto
                return
        self._reload(progress, upto)

    def _reload(self, progress: Progress, upto: int) -> None:
        """The content ends within a committed run: it becomes what storage has, of all paths, since they may share a
        state. It is read before the lock is taken: the caller holds ``committing``."""
        stored = {name: self._stored_rows(trace.state) for name, trace in self.states.items()}
        with self.lock:
            self._keep_pinned(upto)
            progress.durable = upto
            for each in self.paths:
                each.reached = each.moved = each.durable
                each.pending = []
            for name, rows in stored.items():
                self.states[name].replace(rows, upto)
            self._version += 1

    # Between servers --------------------------------------------------------------------------------------------

    def leave(self, away: Away, held: int) -> None:
        """The view is on another server, which reads the stream's rows above an LSN."""
        with self.lock:
            if self.away is None:
                for state in self.states.values():
                    state.empty()
                self._kept.clear()
                for progress in self.paths:
                    progress.pending = []
                self._result = None
                self._version += 1
            self.away, self.held = away, held

    def come_back(self, handover: str, frontier: int) -> None:
        """The view is here again, and its stored states are of an LSN. The log is kept until all know of it."""
        with self.committing, self.lock:
            for progress in self.paths:
                self._reload(progress, frontier)
            self.away = None
            self.handover = handover

    def _add(self, tables: Mapping[str, pa.Table], upto: int) -> None:
        for name, table in tables.items():
            self.states[name].append(table, upto)
        self._version += 1

    def result(
        self, lsn: int, exact: bool, beside: object, query: Callable[[Mapping[str, pa.Table]], pa.Table]
    ) -> pa.Table:
        """The view's rows at an LSN (or, unless ``exact``, a later one); ``query`` evaluates the final relation.

        ``beside`` says what else the rows depend on: what the caller sees of tables and other views that the final
        relation reads, and the names of the columns.
        Raises ViewPassed when the content is beyond ``lsn`` already, was not kept, and ``exact`` matters.
        """
        self.check_feeds()
        with self.lock:
            if exact and self._has_passed(lsn):
                if lsn not in self._kept:
                    raise ViewPassed
                return query(self.snapshots(lsn))
            self.advance(lsn)
            key = (self.version, beside)
            if self._result is not None and self._result[0] == key:
                return self._result[1]
            table = query(self.snapshots())
            self._result = (key, table)
            return table

    def snapshots(self, lsn: int | None = None) -> dict[str, pa.Table]:
        """Engine leaf names of the states and statics with their rows: now, or at an LSN that was kept."""
        found = {f"s_{name}": state.snapshot(lsn) for name, state in self.states.items()}
        return found | self.snapshots_of_statics()

    def snapshots_of_statics(self) -> dict[str, pa.Table]:
        """The same for the static pipelines' results."""
        return {f"s_{name}": table for name, table in self.statics.items()}


def reads_places(statements: Iterable[Statement]) -> bool:
    """Whether statements depend on when a row came."""
    return any(
        not {LSN, ORDINAL}.isdisjoint(item.sources)
        for statement in statements
        for item in walk(statement.relation)
        if isinstance(item, Delta)
    )


def named(states: Iterable[State], name: str, run: pa.Table | tuple[FilePath, ...]) -> pa.Table:
    """A run as its trace keeps it: columns under the names that snapshots refer to."""
    assert not isinstance(run, tuple), "the embedded engine gives tables"
    state = next(state for state in states if state.name == name)
    return run.rename_columns([stored_name(column) for column in state.columns])

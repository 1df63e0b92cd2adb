"""The rows of one view that are kept up to date: their dataflow over the changes of tables, states and other views.

Owns: what the inputs of a dataflow are, and how far each has been read. Used with the view's lock held.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final, Protocol

import pyarrow as pa
from msgspec import Struct, field

from catalog.objects import Table
from executor.core.core import Core
from executor.core.plans import PlanCache
from executor.dataflow.maintained import MaintainedRows, Saved, TooLarge, Whole
from executor.dataflow.node_work import MeasuredWork
from executor.dataflow.rows.hashing import NO_HASHES, hashes_of
from executor.dataflow.rows.multiset import Multiset
from executor.dataflow.rows.value_bits import by_bits
from executor.dataflow.rows.weighted_rows import WEIGHT, Inconsistent, consolidated, negated, repeated, weighted
from executor.dataflow.view_rows import ViewRows
from executor.dataflow.waiting_changes import Steps
from executor.embedded.detached_statements import thread_seconds
from executor.identity_cache import Remembered
from executor.maintained.expanded_views import Expanded
from executor.maintained.table_look_ups import TableLookUps
from executor.small import AnyTable, few, few_of, table_of, together
from executor.tables.change_trace import TableChanges
from executor.traces.bookmark import Bookmark
from executor.traces.budget import Held
from executor.traces.kept_runs import KeptRuns, Run
from executor.traces.state import StateTrace
from executor.views.runtime import ViewRuntime
from planner.algebra.nodes import Column, Relation, Scan, Snapshot
from planner.algebra.walk import find, kinds_of
from planner.cancellation import leave
from planner.incremental.cost.choice import Alternative
from planner.incremental.cost.work import Work
from planner.incremental.dataflow.graph import Source, TimeBounded
from planner.incremental.dataflow.planning import Planned
from planner.incremental.dataflow.rewrites.rewriting import Sized
from planner.incremental.names import stored_name
from planner.incremental.programs.state_relations import weighted as weights_of

_SCANS: Final = kinds_of(Scan)
_SNAPSHOTS: Final = kinds_of(Snapshot)
#: What evaluates a node's statement over a few rows.
_OF_FEW: Final = Remembered(few_of, 1 << 16)
#: More changed rows than this, and than the share of what is kept, make it cheaper to compute anew.
FEW: Final = 10_000
SHARE: Final = 0.1
#: Changed rows that are followed without a question what that takes, and the bytes of changes that may be more.
FEW_WAITING: Final = 500
FEW_WAITING_BYTES: Final = 16 << 10
#: No time is before this.
_LEAST: Final = -(2**63)
#: The most changes of its rows that a view remembers, and their bytes.
RECENT: Final = 256
RECENT_BYTES: Final = 4 << 20


class Unknown(Exception):
    """The changes of an input are not known."""


class RowsPlan(Struct, frozen=True):
    """How a view's rows follow changes, planned for rows that are ``sized`` so. It ``is_chosen`` where the costs of
    ``alternatives`` were compared, or there are none; the chosen one is the first. ``plans`` are those of the
    dataflow's relations, which are many: other queries must not displace them."""

    expanded: Expanded
    planned: Planned
    sized: Sized
    is_chosen: bool = False
    alternatives: tuple[Alternative, ...] = ()
    plans: PlanCache = field(default_factory=lambda: PlanCache(sys.maxsize))


#: Why rows are not kept any more.
GIVEN_UP: Final = (Unknown, Inconsistent, TooLarge)


class _TableInput:
    """The changes of a table."""

    def __init__(self, core: Core, source: Source) -> None:
        assert isinstance(source.definition, Scan)
        self._core = core
        self._sources = source.definition.sources
        with core.sequencer.lock:
            table = core.catalog.objects.get(source.definition.oid)
            if not isinstance(table, Table):
                raise Unknown
            self._trace: TableChanges = core.changes_of(table)

    def changes(self, after: int, upto: int) -> pa.Table | None:
        """What has changed over (after, upto]; None for nothing. Raises Unknown."""
        trace = self._trace
        if not trace.is_current or trace.has_left(after):  # more has changed than is worth reading from the log
            raise Unknown
        if after >= self._core.opened_lsn and self._core.version_of((trace.table.oid,)) <= after:
            return None
        found = trace.delta(after, upto)
        if found is None:
            raise Unknown
        return found.select([*self._sources, WEIGHT]) if found.num_rows else None

    def has_many(self, after: int) -> bool:
        """Whether there may be many changes behind an LSN."""
        return self._trace.are_large(after, FEW_WAITING_BYTES)

    def close(self) -> None:
        """The changes are not read any more."""
        self._core.forget_changes(self._trace)


class _StateInput:
    """The changes of a state: the rows of touched keys as they were and as they are, and the rows that it loses."""

    def __init__(self, runtime: ViewRuntime, trace: str, source: Source) -> None:
        assert isinstance(source.definition, Snapshot)
        self._runtime = runtime
        self._sources = source.definition.sources
        self._merger = runtime.runner.engine
        self._trace: StateTrace = runtime.states[trace]
        self._losses = runtime.losses(trace)
        #: Up to which time rows have gone.
        self._bound = self._losses.bound
        state = self._trace.state
        self._key = tuple(map(stored_name, state.key))
        self._rows: Multiset | None = None
        if state.kind != "concatenate" or self._losses.column is not None:
            rows = weighted(self._losses.left(self._trace.snapshot()), 1)
            self._rows = Multiset(rows, (self._key,) if self._key else (), lambda table: self._consolidated(table))
        self._mark: Bookmark = self._trace.bookmark(runtime.reached)

    def _consolidated(self, rows: pa.Table) -> pa.Table:
        state = weights_of((column.name, column.type) for column in self._trace.state.columns)
        return self._merger.merge(state, [rows])

    def changes(self) -> AnyTable | None:
        """What has changed up to the LSN that the view has reached; None for nothing. Raises Unknown."""
        upto = self._runtime.reached
        runs = self._trace.delta(self._mark.after, upto)
        if runs is None:
            raise Unknown
        self._mark.after = max(upto, self._mark.after)
        parts = [*self._lost(), *(self._come(runs) if runs else ())]
        parts = [part for part in parts if part.num_rows]
        return together(parts).select([*self._sources, WEIGHT]) if parts else None

    def _lost(self) -> Iterator[AnyTable]:
        """The rows that go by the watermarks, taken out of what is kept."""
        before, self._bound = self._bound, self._losses.bound
        if self._rows is None or self._losses.column is None or self._bound in (None, before):
            return
        since = _LEAST if before is None else before
        gone = negated(self._rows.between([(self._losses.column, (since, self._bound))]))
        self._rows.change(gone)
        yield gone

    def _come(self, runs: Sequence[pa.Table]) -> Iterator[AnyTable]:
        """What runs change."""
        rows = self._rows
        if rows is None:
            yield weighted(pa.concat_tables(runs), 1)
            return
        merged = self._merger.merge(self._trace.state, runs)
        run = self._losses.left(merged)  # no row comes back that has gone: its time is in its key, if there is one
        if self._trace.state.kind == "concatenate":
            difference = weighted(run, 1)
        else:
            old = table_of(rows.lookup(self._key, hashes_of(run, self._key)))
            new = self._merger.merge(self._trace.state, [old.drop_columns([WEIGHT]), run])
            difference = rows.consolidated(together([negated(old), weighted(new, 1)]))
        rows.change(difference)
        yield difference

    @property
    def reached(self) -> int:
        """The LSN up to which the changes have been read."""
        return self._mark.after

    @property
    def bytes(self) -> int:
        """About what is kept to know them."""
        return 0 if self._rows is None else self._rows.bytes


class Below(Protocol):
    """Brings the rows of a view that others read to an LSN."""

    def __call__(self, oid: int, lsn: int, time: datetime, /) -> KeptRows | None:
        """The rows, if they are kept. With the locks of the view and of those that it reads."""
        ...


class _ViewInput:
    """The changes of a view whose rows are kept."""

    def __init__(
        self, source: Source, below: Below, lsn: int, time: datetime, standing: KeptRows | None = None
    ) -> None:
        """``standing``: the view's rows, if they may have passed the LSN, which the reader's are of."""
        assert isinstance(source.definition, Scan)
        self.node, self.sources = source, source.definition.sources
        self.oid, self._below = source.definition.oid, below
        found = below(self.oid, lsn, time) if standing is None else standing
        shown = None if found is None else found.rows.shown_columns
        if found is None or shown is None or not found.follows_changes_alone:
            raise Unknown
        self.kept = found
        columns = found.columns
        self._places = [columns.index(name) for name in self.sources]
        self.names = {
            stored_name(column): shown[place] for column, place in zip(source.columns, self._places, strict=True)
        }
        if standing is not None and found.changes(lsn) is None:
            raise Unknown
        self._mark = found.bookmark(found.reached if standing is None else lsn)

    def changes(self, lsn: int, time: datetime) -> AnyTable | None:
        """What has changed up to an LSN, to which the view is brought; None for nothing. Raises Unknown."""
        found = self._below(self.oid, lsn, time)
        runs = None if found is None or found is not self.kept else found.changes(self._mark.after)
        if runs is None:
            raise Unknown
        self._mark.after = self.kept.reached
        if not runs:
            return None
        names = [runs[0].column_names[place] for place in self._places]
        return together([run.select([*names, WEIGHT]) for run in runs])

    @property
    def reached(self) -> int:
        """The LSN up to which the changes have been read."""
        return self._mark.after


_NONE: Final[Mapping[int, KeptRows]] = {}


class KeptRows:
    """One view's rows, at an LSN."""

    def __init__(
        self,
        core: Core,
        plan: RowsPlan,
        lsn: int,
        time: datetime,
        held: Held,
        below: Below,
        standing: Mapping[int, KeptRows] = _NONE,
    ) -> None:
        """Notes where the inputs stand, which are at the LSN, but for views that are ``standing`` and may have passed
        it; ``fill`` or ``restore`` comes next. With the locks of the views. ``time`` is that of the reader's
        transaction."""
        assert plan.planned.dataflow is not None
        self._core, self._expanded, self._plans = core, plan.expanded, plan.plans
        self._flow = plan.planned.dataflow
        self.held = held
        self.lsn = lsn
        #: The LSN up to which the inputs have been read: states may be beyond ``lsn``.
        self.reached = lsn
        #: How many changed rows of the inputs have been read.
        self.followed = 0
        #: The LSN up to which the rows of the final relation have followed the inputs.
        self._shown_at = lsn
        self._rows: MaintainedRows | None = None
        self._look_ups = TableLookUps(self._flow) if self._flow.looked_up else None
        self._work = MeasuredWork(thread_seconds)
        self._time = time
        #: When the rows are to be made anew, as states have lost many of them since.
        expiry = plan.expanded.expiry
        self._until = None if expiry is None else time + expiry
        self._tables: dict[int, _TableInput] = {}
        self._states: dict[int, _StateInput] = {}
        self._views: dict[int, _ViewInput] = {}
        #: How the view's rows have changed lately, unless its final relation computes them.
        self._recent = KeptRuns(RECENT, RECENT_BYTES, self._net)
        self._recent.clear(lsn)
        try:
            for node in self._flow.nodes:
                if isinstance(node, Source):
                    self._read(node, below, standing)
            self._shown = {node: self._view_rows(item) for node, item in self._views.items()}
            self._snapshots = plan.expanded.snapshots()
        except BaseException:
            self.close()
            raise

    def fill(self, whole: Whole) -> None:
        """Makes the rows; ``whole`` sees the tables at the LSN. Needs no lock."""
        snapshots, self._snapshots = self._snapshots, {}

        def over_states(relation: Relation, kept: Mapping[str, pa.Table]) -> pa.Table:
            bindings = {**self._inputs(relation, snapshots), **kept}
            rows = _of_few(relation, bindings)
            return whole(relation, bindings) if rows is None else table_of(rows)

        self._rows = self._made(over_states, None)

    def restore(self, saved: Saved, work: Mapping[int, Work]) -> None:
        """Makes the rows of those that were saved at the LSN, and counts on from the work that had been measured until
        then. Needs no lock."""
        self._rows = self._made(_nothing_else, saved)
        self._work.restore(work)

    def _made(self, whole: Whole, saved: Saved | None) -> MaintainedRows:
        most = most_bytes(self._core)
        about = (self._query, self._merge, most, self._times, self._shown, self._work)
        return MaintainedRows(self._flow, whole, *about, saved)

    def saved(self, lsn: int, time: datetime) -> Saved | None:
        """The rows at an LSN, of which others are made again after a restart; None where more is needed than these,
        and what tables and views change later. Raises GIVEN_UP."""
        if self._states or self._until is not None or not self.rows.can_be_saved or self.has_passed(lsn):
            return None
        self.advance(lsn, time)
        return self.rows.saved()

    @property
    def rows(self) -> MaintainedRows:
        """The rows. Raises Unknown once they are not kept any more."""
        if self._rows is None:
            raise Unknown
        return self._rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The view's columns, in the order of those of the final relation."""
        return tuple(item.name for item in self._expanded.views[0][0].view.stored)

    @property
    def follows_changes_alone(self) -> bool:
        """Whether the rows are those of a node, and change as its inputs do, so that other dataflows may read them."""
        stored = self._expanded.views[0][0].view.stored
        are_declared = [item.type.arrow for item in stored] == [item.type.arrow for item in self._flow.final.columns]
        is_timed = self._until is not None or bool(self._flow.bounded)
        return are_declared and not is_timed and not self.looks_up and self.rows.shown_columns is not None

    def has_passed(self, lsn: int) -> bool:
        """Whether the rows, or those of views that they are made of, are beyond an LSN."""
        return lsn < self.lsn or any(item.kept.has_passed(lsn) for item in self._views.values())

    def _inputs(self, relation: Relation, states: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """The rows of those states and views that a relation reads, by the engine names of their leaves."""
        read = {scan.oid for scan in find(relation, _SCANS) if scan.kind == "view"}
        views = {f"v{item.oid}": node for node, item in self._views.items() if item.oid in read}
        found = {name: self._of_view(node) for name, node in views.items()}
        return found | {name: states[name] for name in _leaves(relation) & states.keys()}

    def _of_view(self, node: int) -> pa.Table:
        """The rows of a source that is a view, as the view calls its columns."""
        rows = table_of(repeated(self._shown[node].lookup((), NO_HASHES)))
        return rows.rename_columns([*self._views[node].sources])

    def _view_rows(self, item: _ViewInput) -> ViewRows:
        return ViewRows(lambda: item.kept.rows, item.names, partial(self._merge, item.node.columns))

    def index(self) -> None:
        """Makes the indexes that rows which go are found by, which else the first change does. Needs no lock."""
        if self._tables or self._views:
            self.rows.index()

    def _read(self, node: Source, below: Below, standing: Mapping[int, KeptRows]) -> None:
        if node.is_view:
            assert isinstance(node.definition, Scan)
            now = standing.get(node.definition.oid)
            self._views[node.id] = _ViewInput(node, below, self.lsn, self._time, now)
        elif isinstance(node.definition, Scan):
            self._tables[node.id] = _TableInput(self._core, node)
        else:
            runtime, trace = self._expanded.traces[node.definition.trace]
            self._states[node.id] = _StateInput(runtime, trace, node)

    def _query(self, relation: Relation, bindings: Mapping[str, AnyTable]) -> AnyTable:
        plan = self._plans.get(relation)
        rows = _of_few(plan.relation, bindings)
        if rows is not None:
            return rows
        tables = {name: table_of(rows) for name, rows in bindings.items()}
        return few(self._core.engine.query_few(plan.relation, tables, self._expanded.time_zone))

    def _times(self, node: TimeBounded) -> pa.Table:
        """The bounds of a node at the reader's time."""
        return self._core.engine.query_few(node.times, {}, self._expanded.time_zone, parameters=(self._time,))

    def _merge(self, columns: tuple[Column, ...], rows: pa.Table) -> pa.Table:
        return by_bits(self._merged, columns, rows)

    def _merged(self, columns: Sequence[Column], rows: pa.Table) -> pa.Table:
        return self._core.engine.merge(weights_of((column.name, column.type) for column in columns), [rows])

    @property
    def time(self) -> datetime:
        """The time of the transaction that read them last."""
        return self._time

    @property
    def looks_up(self) -> bool:
        """Whether rows of tables are looked up, so that readers alone can follow changes, who see the tables."""
        return self._look_ups is not None

    def advance(self, lsn: int, time: datetime, whole: Whole | None = None) -> bool:
        """Brings the rows to an LSN, and to a reader's time; returns whether something was followed. ``whole`` sees the
        tables then, and must be there if rows are looked up. Raises GIVEN_UP or an error of the rows; then they are of
        no use."""
        if self._until is not None and time > self._until:
            raise Unknown
        is_timed = bool(self._flow.bounded) and time != self._time
        is_due = is_timed or self.rows.is_waiting
        if lsn == self.lsn and not self._states and not self._views and not is_due:
            return False
        self._time = time
        return self._go_on(lsn, time, whole, None, is_due)

    def go_on(self, lsn: int, steps: Steps) -> int:
        """Reads the changes of the inputs up to an LSN, and brings those nodes forward that have so many before them
        as ``steps`` says; the others are brought forward by ``advance``. Returns how many rows of inputs have to change
        until the next one goes on. Raises what that raises."""
        self._go_on(lsn, self._time, None, steps, is_due=False)
        return self.rows.waiting.left(steps)

    def waiting(self, lsn: int) -> int:
        """Reads the changes of the inputs up to an LSN where there may be many; about how many rows have come or gone
        since, 0 for few. Raises GIVEN_UP."""
        rows = self.rows.waiting
        if rows.rows <= FEW_WAITING and not any(item.has_many(self.lsn) for item in self._tables.values()):
            return 0
        self._go_on(lsn, self._time, None, rows.never, is_due=False)
        return rows.rows

    def _go_on(self, lsn: int, time: datetime, whole: Whole | None, steps: Steps | None, is_due: bool) -> bool:
        deltas = {node: found for node, item in self._tables.items() if (found := item.changes(self.lsn, lsn))}
        deltas |= {node: found for node, item in self._states.items() if (found := item.changes())}
        deltas |= {node: found for node, item in self._views.items() if (found := item.changes(lsn, time))}
        inputs: list[_StateInput | _ViewInput] = [*self._states.values(), *self._views.values()]
        reached = max(lsn, *(item.reached for item in inputs), 0)
        if deltas or is_due:
            self._change(deltas, reached, whole, steps)
        self.held.read()
        self.lsn, self.reached = lsn, reached
        if not self.rows.is_waiting:
            self._shown_at = reached
        return bool(deltas) or is_due

    def _change(self, deltas: Mapping[int, AnyTable], reached: int, whole: Whole | None, steps: Steps | None) -> None:
        changed = sum(delta.num_rows for delta in deltas.values())
        self.followed += changed
        if changed > most_worth(self.rows.count):
            raise Unknown
        if self._look_ups is not None and whole is None:
            raise Unknown
        look_up = None if self._look_ups is None or whole is None else self._look_ups.at(whole)
        shown = self.rows.change(deltas, self._times, look_up, steps)
        if shown is None:
            self._recent.clear(reached)
        elif shown.num_rows:
            self._recent.append(Run(reached, shown, after=self._shown_at))
        self.account()

    @property
    def reads_tables(self) -> bool:
        """Whether tables are read beside what is kept: by the final relation, or where rows are looked up."""
        return self.looks_up or bool(self._plans.get(self._flow.final).tables)

    def answer(self, whole: Whole) -> pa.Table:
        """The rows of the view's final relation."""
        shown = self.rows.all_shown()
        if shown is not None:
            return shown
        outputs = self.rows.outputs()
        final = self._plans.get(self._flow.final)
        found = None if final.small is None or len(outputs) > 1 else final.small.run(outputs)
        if found is not None:
            return found
        states = self._expanded.snapshots() if _leaves(final.relation) - outputs.keys() else {}
        return whole(final.relation, {**self._inputs(final.relation, states), **outputs})

    def _net(self, changes: Sequence[AnyTable]) -> AnyTable:
        return consolidated(together(changes), partial(self._merge, self._flow.final.columns))

    def bookmark(self, lsn: int) -> Bookmark:
        """A reader of the changes behind an LSN, for as long as the bookmark is held."""
        return self._recent.bookmark(lsn)

    def changes(self, after: int) -> list[AnyTable] | None:
        """How the rows of the view's final relation have changed since an LSN, their weights last; None where that is
        not known."""
        found = self._recent.behind(after)
        return None if found is None else [run.rows for run in found]

    def lookup(self, columns: tuple[Column, ...], values: pa.Table) -> pa.Table | None:
        """The rows whose columns have these values, and perhaps others; None where they are not found by them."""
        return self.rows.lookup(columns, values)

    @property
    def counts(self) -> dict[int, int]:
        """How many rows are kept of each node."""
        return self.rows.counts

    @property
    def shown_count(self) -> int:
        """About how many rows the view has."""
        return self.rows.shown_count

    @property
    def work(self) -> dict[int, Work]:
        """What changes have taken at each node of the dataflow that one has reached."""
        return self._work.nodes

    def account(self) -> None:
        """Tells the budget of all traces what is held."""
        self.held.read()
        self.held.set(self.rows.bytes + sum(item.bytes for item in self._states.values()))

    def close(self) -> None:
        """The rows are not kept any more."""
        self.held.close()
        for item in self._tables.values():
            item.close()
        self._tables.clear()
        self._rows = None


def most_worth(count: float) -> int:
    """The most changed rows that are worth following at once, where so many rows are kept."""
    return max(FEW, int(SHARE * count))


def most_bytes(core: Core) -> int:
    """The most memory that the kept rows of one view take, in bytes."""
    return core.trace_budget.limit // 2


def _nothing_else(relation: Relation, bindings: Mapping[str, pa.Table]) -> pa.Table:
    raise AssertionError("rows that were saved are not computed")


def _of_few(relation: Relation, bindings: Mapping[str, AnyTable]) -> AnyTable | None:
    """The rows of a relation over few rows; None if an engine must compute them."""
    evaluation = _OF_FEW(relation)
    return None if evaluation is None else leave(evaluation.run, bindings)


def _leaves(relation: Relation) -> set[str]:
    """The engine names of the traces that a relation reads."""
    return {f"s_{leaf.trace}" for leaf in find(relation, _SNAPSHOTS)}

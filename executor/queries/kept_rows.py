"""The rows of one view that are kept up to date: their dataflow over the changes of tables and states.

Owns: what the inputs of a dataflow are, and how far each has been read. Used with the view's lock held.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import pyarrow as pa

from catalog.objects import Table
from executor.core.core import Core
from executor.core.plans import PlanCache
from executor.dataflow.hashing import hashes_of
from executor.dataflow.maintained import MaintainedRows, TooLarge, Whole
from executor.dataflow.multiset import Multiset
from executor.dataflow.weighted_rows import WEIGHT, Inconsistent, negated, weighted
from executor.identity_cache import Remembered
from executor.queries.expanded_views import Expanded
from executor.small import few_of
from executor.tables.change_trace import TableChanges
from executor.traces.bookmark import Bookmark
from executor.traces.budget import Held
from executor.traces.kept_runs import KeptRuns, Run
from executor.traces.state import StateTrace
from executor.views.runtime import ViewRuntime
from planner.algebra.nodes import Column, Relation, Scan, Snapshot
from planner.algebra.walk import find, kinds_of
from planner.incremental.dataflow.graph import Source, TimeBounded
from planner.incremental.dataflow.planning import Planned
from planner.incremental.names import stored_name
from planner.incremental.programs.state_relations import weighted as weights_of

_SNAPSHOTS: Final = kinds_of(Snapshot)
#: What evaluates a node's statement over a few rows.
_OF_FEW: Final = Remembered(few_of, 1 << 16)
#: More changed rows than this, and than the share of what is kept, make it cheaper to compute anew.
FEW: Final = 10_000
SHARE: Final = 0.1
#: The most changes of its rows that a view remembers, and their bytes.
RECENT: Final = 256
RECENT_BYTES: Final = 4 << 20


class Unknown(Exception):
    """The changes of an input are not known."""


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

    def close(self) -> None:
        """The changes are not read any more."""
        self._core.forget_changes(self._trace)


class _StateInput:
    """The changes of a state: the rows of touched keys as they were and as they are."""

    def __init__(self, runtime: ViewRuntime, trace: str, source: Source) -> None:
        assert isinstance(source.definition, Snapshot)
        self._runtime = runtime
        self._sources = source.definition.sources
        self._merger = runtime.runner.engine
        self._trace: StateTrace = runtime.states[trace]
        state = self._trace.state
        self._key = tuple(map(stored_name, state.key))
        self._rows: Multiset | None = None
        if state.kind != "concatenate":
            rows = weighted(self._trace.snapshot(), 1)
            self._rows = Multiset(rows, (self._key,) if self._key else (), lambda table: self._consolidated(table))
        self._mark: Bookmark = self._trace.bookmark(runtime.reached)

    def _consolidated(self, rows: pa.Table) -> pa.Table:
        state = weights_of((column.name, column.type) for column in self._trace.state.columns)
        return self._merger.merge(state, [rows])

    def changes(self) -> pa.Table | None:
        """What has changed up to the LSN that the view has reached; None for nothing. Raises Unknown."""
        upto = self._runtime.reached
        runs = self._trace.delta(self._mark.after, upto)
        if runs is None:
            raise Unknown
        self._mark.after = max(upto, self._mark.after)
        if not runs:
            return None
        rows = self._rows
        if rows is None:
            return weighted(pa.concat_tables(runs), 1).select([*self._sources, WEIGHT])
        run = self._merger.merge(self._trace.state, runs)
        old = rows.lookup(self._key, hashes_of(run, self._key))
        new = self._merger.merge(self._trace.state, [old.drop_columns([WEIGHT]), run])
        difference = rows.consolidated(pa.concat_tables([negated(old), weighted(new, 1)]))
        rows.change(difference)
        return difference.select([*self._sources, WEIGHT])

    @property
    def reached(self) -> int:
        """The LSN up to which the changes have been read."""
        return self._mark.after

    @property
    def bytes(self) -> int:
        """About what is kept to know them."""
        return 0 if self._rows is None else self._rows.bytes


class KeptRows:
    """One view's rows, at an LSN."""

    def __init__(
        self, core: Core, expanded: Expanded, planned: Planned, plans: PlanCache, lsn: int, time: datetime, held: Held
    ) -> None:
        """Notes where the inputs stand, which are at the LSN; ``fill`` comes next. With the locks of the views.
        ``plans`` are those of the dataflow's relations, ``time`` is that of the reader's transaction."""
        assert planned.dataflow is not None
        self._core, self._expanded, self._plans = core, expanded, plans
        self._flow = planned.dataflow
        self.held = held
        self.lsn = lsn
        self._time = time
        #: When the rows are to be made anew, as states have lost many of them since.
        self._until = None if expanded.expiry is None else time + expanded.expiry
        self._tables: dict[int, _TableInput] = {}
        self._states: dict[int, _StateInput] = {}
        #: How the view's rows have changed lately, unless its final relation computes them.
        self._recent = KeptRuns(RECENT, RECENT_BYTES)
        self._recent.clear(lsn)
        try:
            for node in self._flow.nodes:
                if isinstance(node, Source):
                    self._read(node)
            self._snapshots = expanded.snapshots()
        except BaseException:
            self.close()
            raise

    def fill(self, whole: Whole) -> None:
        """Makes the rows; ``whole`` sees the tables at the LSN. Needs no lock."""
        snapshots, self._snapshots = self._snapshots, {}

        def over_states(relation: Relation, kept: Mapping[str, pa.Table]) -> pa.Table:
            return whole(relation, {**_read_by(relation, snapshots), **kept})

        most = self._core.trace_budget.limit // 2
        self._rows = MaintainedRows(self._flow, over_states, self._query, self._merge, most, self._times)

    def index(self) -> None:
        """Makes the indexes that rows which go are found by, which else the first change does. Needs no lock."""
        if self._tables:
            self._rows.index()

    def _read(self, node: Source) -> None:
        if isinstance(node.definition, Scan):
            self._tables[node.id] = _TableInput(self._core, node)
        else:
            runtime, trace = self._expanded.traces[node.definition.trace]
            self._states[node.id] = _StateInput(runtime, trace, node)

    def _query(self, relation: Relation, bindings: Mapping[str, pa.Table]) -> pa.Table:
        plan = self._plans.get(relation)
        few = _OF_FEW(plan.relation)
        found = None if few is None else few.run(bindings)
        if found is not None:
            return found
        return self._core.engine.query_few(plan.relation, bindings, self._expanded.time_zone)

    def _times(self, node: TimeBounded) -> pa.Table:
        """The bounds of a node at the reader's time."""
        return self._core.engine.query_few(node.times, {}, self._expanded.time_zone, parameters=(self._time,))

    def _merge(self, columns: tuple[Column, ...], rows: pa.Table) -> pa.Table:
        return self._core.engine.merge(weights_of((column.name, column.type) for column in columns), [rows])

    def advance(self, lsn: int, time: datetime) -> None:
        """Brings the rows to an LSN, and to a reader's time. Raises GIVEN_UP or an error of the rows; then they are of
        no use."""
        if self._until is not None and time > self._until:
            raise Unknown
        is_timed = bool(self._flow.bounded) and time != self._time
        if lsn == self.lsn and not self._states and not is_timed:
            return
        self._time = time
        deltas = {node: found for node, item in self._tables.items() if (found := item.changes(self.lsn, lsn))}
        deltas |= {node: found for node, item in self._states.items() if (found := item.changes())}
        changed = sum(delta.num_rows for delta in deltas.values())
        if changed > max(FEW, SHARE * self._rows.count):
            raise Unknown
        shown = self._rows.change(deltas, self._times)
        reached = max(lsn, *(item.reached for item in self._states.values()), 0)
        if shown is None:
            self._recent.clear(reached)
        elif shown.num_rows:
            self._recent.append(Run(reached, shown, after=self.lsn))
        self.lsn = lsn
        self.account()

    @property
    def reads_tables(self) -> bool:
        """Whether the final relation reads tables beside what is kept."""
        return bool(self._plans.get(self._flow.final).tables)

    def answer(self, whole: Whole) -> pa.Table:
        """The rows of the view's final relation."""
        outputs = self._rows.outputs()
        final = self._plans.get(self._flow.final)
        found = None if final.small is None or len(outputs) > 1 else final.small.run(outputs)
        if found is not None:
            return found
        states = {f"s_{leaf.trace}" for leaf in find(final.relation, _SNAPSHOTS)} - outputs.keys()
        read = _read_by(final.relation, self._expanded.snapshots()) if states else {}
        return whole(final.relation, {**read, **outputs})

    def changes(self, after: int) -> list[pa.Table] | None:
        """How the rows of the view's final relation have changed since an LSN, their weights last; None where that is
        not known."""
        found = self._recent.behind(after)
        return None if found is None else [run.rows for run in found]

    def lookup(self, columns: tuple[Column, ...], values: pa.Table) -> pa.Table | None:
        """The rows whose columns have these values, and perhaps others; None where they are not found by them."""
        return self._rows.lookup(columns, values)

    @property
    def counts(self) -> dict[int, int]:
        """How many rows are kept of each node."""
        return self._rows.counts

    def account(self) -> None:
        """Tells the budget of all traces what is held."""
        self.held.read()
        self.held.set(self._rows.bytes + sum(item.bytes for item in self._states.values()))

    def close(self) -> None:
        """The rows are not kept any more."""
        self.held.close()
        for item in self._tables.values():
            item.close()
        self._tables.clear()


def _read_by(relation: Relation, states: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """The rows of those states that a relation reads."""
    return {name: states[name] for leaf in find(relation, _SNAPSHOTS) if (name := f"s_{leaf.trace}") in states}

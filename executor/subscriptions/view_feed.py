"""A continuous view's result as a trace: its rows, and the differences between them from one look to the next.

Owns: how a difference is found; it is a run of the feed's, and ``executor.traces.kept_runs`` keeps the last ones.
Readers look when they are woken; all readers share what one has found. A state is a relation with weights, and so is a
difference (the generalised multisets of DBToaster, section 3.1)::

    difference = sum of weights by row(after with +1, before with -1), where it is not 0

so that all differences since a look add up to what the view has become since. Where the view's rows are those of
single groups (a program's point key), only the groups that runs have touched are compared, before and after. Where its
rows are kept up to date, what has changed of them is the difference (``executor.maintained.kept_rows``). Else all rows
are compared.
Knows nothing of how long readers wait (``executor.subscriptions.change_scan``).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute
from msgspec import Struct

from catalog.values.errors import SqlError, undefined_table
from executor.core.core import Core
from executor.key_access.view_indexes import ViewIndexes
from executor.subscriptions.feed import FeedReader
from executor.traces.bookmark import Bookmark
from executor.traces.kept_runs import KeptRuns, Run
from executor.views.runtime import ViewRuntime
from planner.incremental.names import stored_name
from planner.incremental.programs.program import Program
from planner.incremental.programs.state_relations import STANDING, TOUCHED, weighted, with_keys

#: Bytes of differences, and looks, that a feed remembers.
HISTORY: Final = 64 << 20
LOOKS: Final = 4096
#: Changed groups of more than this share of the state: all rows are compared.
SHARE: Final = 0.25

_compute: Any = pyarrow.compute  # made at its import, where no type checker sees its functions


class Look(Struct, frozen=True):
    """The view was the same from LSN ``first`` to ``last``."""

    first: int
    last: int


class Standing(Struct, frozen=True):
    """What a feed compares: all rows of the view and ``differences`` since, or, unless they are ``shown``, those of its
    only state."""

    tables: tuple[pa.Table, ...] = ()
    shown: bool = False
    differences: tuple[pa.Table, ...] = ()

    @property
    def has_many(self) -> bool:
        """Whether the differences have more rows than the view."""
        changed, rows = (sum(item.num_rows for item in items) for items in (self.differences, self.tables))
        return bool(changed > rows)


class ViewFeed:
    """One view's. A run has the view's columns by their places, behind them how many such rows more there are. Safe for
    many threads."""

    def __init__(self, core: Core, indexes: ViewIndexes, runtime: ViewRuntime) -> None:
        self._core, self._indexes = core, indexes
        self._runtime = runtime
        self._oid = runtime.view.oid
        self._weights = weighted((item.name, item.type) for item in runtime.view.stored)
        self._names = [stored_name(column) for column in self._weights.columns]
        self._lock = threading.Lock()
        self._looks: deque[Look] = deque()
        self._runs = KeptRuns(LOOKS, HISTORY)
        self._held = core.trace_budget.register(self._give_back)
        #: The rows at the last look; of a view of groups that is here the state's.
        self._standing = Standing()
        self._is_by_groups = _by_groups(runtime.program)
        #: Up to where the state's runs have been seen; None where all rows must be compared.
        self._seen: Bookmark | None = None

    @property
    def reads(self) -> tuple[int, ...]:
        """The relations whose changes may change the view's rows, and the view."""
        return self._core.reads_of(self._oid)

    @property
    def is_current(self) -> bool:
        """Whether the view is there, and is the one that it was."""
        return self._core.is_live(self._runtime)

    # -- reading -----------------------------------------------------------------------------------------------

    @property
    def is_elsewhere(self) -> bool:
        """Whether another server is asked for the view's rows."""
        return any(self._core.view(oid).away is not None for oid in self._core.views_below((self._oid,)))

    @property
    def lsn(self) -> int:
        """That of the last look; 0 before the first one."""
        return self._looks[-1].last if self._looks else 0

    def snapshot(self, reader: FeedReader) -> Run:
        """All rows of the view now, as a difference from nothing; its LSN is where the changes go on."""
        with self._lock:
            self._look(reader)
            return Run(self.lsn, self._merged([(self._shown(self._standing, reader), 1)]))

    def start(self, reader: FeedReader, since: int | None) -> int:
        """The LSN behind which the changes since another one lie (None: now). Raises 72000 where they are no longer
        known, and 22023 for an LSN that is still to come."""
        with self._lock:
            self._look(reader)
            if since is None:
                return self.lsn
            for look in reversed(self._looks):
                if look.first <= since <= look.last:
                    return look.last
            name = self._runtime.view.name
            if since > self.lsn:
                raise SqlError("22023", f"LSN {since} has not been reached yet")
            hint = "Leave since out: the changes then begin with all rows of the view."
            raise SqlError("72000", f'changes of view "{name}" since LSN {since} are no longer available', hint=hint)

    def advance(self, reader: FeedReader) -> int:
        """Brings the feed to the present, and says its LSN."""
        with self._lock:
            self._look(reader)
            return self.lsn

    def delta(self, after: int, upto: int) -> list[Run]:
        """The differences over (after, upto]. Raises 72000 where some have been forgotten."""
        with self._lock:
            self._held.read()
            found = self._runs.delta(after, upto)
        if found is None:
            name = self._runtime.view.name
            raise SqlError("72000", f'changes of view "{name}" were discarded before they were read')
        return found

    def bookmark(self, lsn: int) -> Bookmark:
        """A reader of the changes behind an LSN, for as long as the bookmark is held."""
        with self._lock:
            return self._runs.bookmark(lsn)

    @property
    def is_read(self) -> bool:
        """Whether it has readers."""
        return self._runs.is_read

    def close(self) -> None:
        """Nobody will read the view's changes from here any more."""
        self._held.close()

    def require(self) -> None:
        """Raises 42P01 where the view was dropped."""
        if not self.is_current:
            raise undefined_table(self._runtime.view.name)

    # -- looking -----------------------------------------------------------------------------------------------

    def _look(self, reader: FeedReader) -> None:
        """Brings the feed to the present."""
        self.require()
        if self._looks and self._is_quiet():
            return
        if self._look_at_changes(reader):
            return
        before = self._standing
        lsn, changed, after, runs = self._present(reader)
        if not self._looks:
            known = max(changed, self._core.opened_lsn, self._runtime.view.created_lsn)
            self._keep(Look(known, lsn))
        else:
            try:
                rows = self._difference(before, after, runs, reader)
            except BaseException:  # a reader's end, above all: the next look is from before these runs
                self._seen = None
                raise
            if rows.num_rows:
                self._runs.append(Run(lsn, rows))
            self._keep(Look(changed, lsn))
        self._standing = after

    def _look_at_changes(self, reader: FeedReader) -> bool:
        """Brings the feed to the present by changes of rows that are kept up to date; False where they are not."""
        before = self._standing
        if not before.shown or before.has_many or not self._looks:
            return False
        found = reader.changes_of_view(self._oid, self.lsn)
        if found is None:
            return False
        lsn, changed, changes = found
        rows = self._summed([item.rename_columns(self._names) for item in changes])
        if rows.num_rows:
            self._runs.append(Run(lsn, rows))
            self._standing = Standing(before.tables, True, (*before.differences, rows))
        self._keep(Look(changed, lsn))
        return True

    def _is_quiet(self) -> bool:
        """Whether nothing that the view is made of has changed since the last look."""
        last = self._looks[-1]
        with self._core.sequencer.lock:
            visible, changed = self._core.sequencer.visible, self._core.version_of((self._oid,))
        if changed > last.last:
            return False
        self._looks[-1] = Look(last.first, visible)
        return True

    def _present(self, reader: FeedReader) -> tuple[int, int, Standing, list[pa.Table] | None]:
        """The view now: LSN, that of the last change below it, what it stands on, and the runs since the last look."""
        runtime, core = self._runtime, self._core
        if self._is_by_groups:
            with runtime.lock:
                if runtime.away is None:
                    runtime.check_inputs()
                    with core.sequencer.lock:
                        lsn, changed = core.sequencer.visible, core.version_of((self._oid,))
                    runtime.advance(lsn)
                    (state,) = runtime.states.values()
                    runs = None if self._seen is None else state.delta(self._seen.after, lsn)
                    self._seen = state.bookmark(lsn)
                    return lsn, changed, Standing(tuple(state.tables)), runs
        lsn, changed, table = reader.of_view(self._oid)
        return lsn, changed, Standing((table,), True), None

    def _keep(self, look: Look) -> None:
        """Takes a look in, and forgets those from which changes can no longer be told."""
        self._looks.append(look)
        self._forget_looks()
        self._held.set(self._runs.bytes)

    def _forget_looks(self) -> None:
        while len(self._looks) > 1 and (len(self._looks) > LOOKS or self._looks[0].last < self._runs.first):
            self._looks.popleft()

    def _give_back(self, size: int) -> None:
        """Forgets what is kept for readers that may come back."""
        if self._lock.acquire(blocking=False):
            try:
                self._runs.release(min(self._runs.marks(), default=self.lsn))
                self._forget_looks()
                self._held.set(self._runs.bytes)
            finally:
                self._lock.release()

    # -- differences -------------------------------------------------------------------------------------------

    def _difference(
        self,
        before: Standing,
        after: Standing,
        runs: list[pa.Table] | None,
        reader: FeedReader,
    ) -> pa.Table:
        if before.shown and after.shown and not before.differences and before.tables[0].equals(after.tables[0]):
            return self._merged([])
        if runs is not None and not before.shown:
            touched = self._touched(before.tables, runs, reader)
            if touched is not None:
                before, after = map(Standing, touched)
        gone = [_negated(rows.rename_columns(self._names)) for rows in before.differences]
        return self._merged([(self._shown(before, reader), -1), (self._shown(after, reader), 1)], gone)

    def _touched(
        self, before: tuple[pa.Table, ...], runs: list[pa.Table], reader: FeedReader
    ) -> tuple[tuple[pa.Table, ...], tuple[pa.Table, ...]] | None:
        """The groups that runs have changed, as they were and as they are; None where they are many."""
        engine, state = self._runtime.runner.engine, self._runtime.program.states[0]
        run = engine.merge(state, runs)
        if run.num_rows > SHARE * sum(table.num_rows for table in before):
            return None
        standing = pa.concat_tables(before, promote_options="permissive")
        keys = run.select([stored_name(column) for column in state.key])
        old = engine.query_few(with_keys(state), {f"s_{STANDING}": standing, f"s_{TOUCHED}": keys}, owner=reader.owner)
        old = old.rename_columns(run.column_names)
        return (old,), (old, run)

    def _shown(self, standing: Standing, reader: FeedReader) -> pa.Table:
        """The view's rows over what it stands on."""
        if standing.shown:
            return standing.tables[0]
        runtime = self._runtime
        state = runtime.program.states[0]
        rows = runtime.runner.engine.merge(state, standing.tables)
        states = {**runtime.snapshots_of_statics(), f"s_{state.name}": rows}
        return self._indexes.final(runtime, states)

    def _merged(self, parts: Sequence[tuple[pa.Table, int]], differences: Sequence[pa.Table] = ()) -> pa.Table:
        """The sum of relations with a weight each, and of differences."""
        tables = [
            pa.Table.from_arrays([*table.columns, _weight(table.num_rows, weight)], self._names)
            for table, weight in parts
        ]
        return self._summed([*tables, *differences])

    def _summed(self, tables: list[pa.Table]) -> pa.Table:
        """The sum of relations with weights, those with fewer rows first, as a run has it."""
        rows = self._runtime.runner.engine.merge(self._weights, tables)
        weights = rows.columns[-1]
        fewer, more = rows.filter(_compute.less(weights, 0)), rows.filter(_compute.greater(weights, 0))
        places = [str(index) for index in range(len(self._names) - 1)]
        return pa.concat_tables([fewer, more]).rename_columns([*places, ""])


def _by_groups(program: Program) -> bool:
    """Whether groups can be compared by themselves: not where merging a group again may give other digits."""
    if not program.point_key or len(program.states) != 1:
        return False
    (state,) = program.states
    merged = {column.type.name for column in state.columns} if state.kind != "concatenate" else {"float8"}
    return merged.isdisjoint(("float4", "float8"))


def _negated(rows: pa.Table) -> pa.Table:
    """A relation whose last column are weights, with the opposite ones."""
    last = rows.num_columns - 1
    return rows.set_column(last, rows.column_names[last], _compute.negate(rows.columns[last]))


def _weight(count: int, weight: int) -> pa.Array:
    return pa.array(np.full(count, weight, np.int64))

"""A state's rows in memory, at the LSN that its view has reached.

Rows are ``base`` + ``tails``: those that arrived are merged in when all of it is read, and a few more are no reason to
copy a large one. Expired rows are removed when they are merged.

Owns: the answers of a trace that a state gives (``executor.traces.trace``). Used with the view's lock held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import pyarrow as pa

from executor.traces.bookmark import Bookmark
from executor.traces.budget import size_of
from executor.traces.kept_runs import KeptRuns, Run
from executor.traces.keyed_rows import Key, KeyedRows, keys_in
from planner.incremental.names import stored_name
from planner.incremental.programs.program import State

#: The tails are folded into the base when they have more rows than this, and more than this share of the base.
TAIL_ROWS: Final = 4096
TAIL_SHARE: Final = 0.125
#: Tails kept apart before they are merged into one.
TAILS: Final = 16
#: Runs that are kept for readers of changes; a reader that is further behind looks at all rows.
KEPT_RUNS: Final = 1024
#: More changed keys than this, and more than the share, make a new index by key.
PATCH_ROWS: Final = 1024
PATCH_SHARE: Final = 0.1


class Merger(Protocol):
    """What merges a state's rows by its key."""

    def merge(self, state: State, tables: Sequence[pa.Table]) -> pa.Table:
        """The tables' rows, merged in their order."""
        ...


class StateTrace:
    """One state's rows at the LSN that its view has reached."""

    def __init__(
        self,
        state: State,
        base: pa.Table,
        merger: Merger,
        needed: Callable[[pa.Table], pa.Table] = lambda table: table,
    ) -> None:
        """``needed`` drops the rows that the view's retention has done with."""
        self.state = state
        self._merger = merger
        self._needed = needed
        self._base = base
        self._tails: list[pa.Table] = []
        self._merged: pa.Table | None = None
        self._runs = KeptRuns(KEPT_RUNS)
        #: The rows at older LSNs that open snapshots read.
        self._kept: dict[int, StateTrace] = {}
        self._key = tuple(map(stored_name, state.key))
        self._keyed: KeyedRows | None = None
        self._keyed_at = Bookmark(0)
        self._bytes = 0
        self._measure()

    # Rows -------------------------------------------------------------------------------------------------------

    @property
    def tables(self) -> list[pa.Table]:
        """The rows, not merged."""
        return [self._base, *self._tails]

    def snapshot(self, lsn: int | None = None) -> pa.Table:
        """All rows, merged by key: now, or at an LSN that was kept. Raises KeyError for another one."""
        if lsn is not None:
            return self._kept[lsn].snapshot()
        if self._tails and self._base.num_rows <= TAIL_ROWS:
            self.compact()
        if not self._tails:
            return self._base
        if self._merged is None:
            self._merged = self._merger.merge(self.state, self.tables)
            self._measure()
        return self._merged

    @property
    def bytes(self) -> int:
        """About how many bytes the rows take in memory, with the runs and the index that are kept of them."""
        return self._bytes + self._runs.bytes

    def _measure(self) -> None:
        held = [*self.tables, self._merged, None if self._keyed is None else self._keyed.rows]
        size = sum({id(table): size_of(table) for table in held if table is not None}.values())
        index = 0 if self._keyed is None else self._keyed.bytes - size_of(self._keyed.rows)
        self._bytes = size + index

    def drop_copies(self) -> None:
        """Drops what can be made again of base and tails."""
        self._merged = self._keyed = None
        self._measure()

    def keep(self, lsn: int) -> None:
        """Keeps the rows as they are at an LSN, whatever is added later. Tables are immutable, so no row is copied."""
        kept = StateTrace(self.state, self._base, self._merger)
        kept._tails, kept._merged = list(self._tails), self._merged
        self._kept[lsn] = kept

    @property
    def kept(self) -> frozenset[int]:
        """The older LSNs at which rows are kept."""
        return frozenset(self._kept)

    def drop(self, lsn: int) -> None:
        """The rows at an older LSN are not read any more."""
        self._kept.pop(lsn, None)

    # Changes ----------------------------------------------------------------------------------------------------

    def append(self, run: pa.Table, upto: int) -> None:
        """Takes in a run that goes up to an LSN."""
        if run.num_rows == 0:
            return
        self._tails.append(run)
        self._merged = None
        self._bytes += size_of(run)
        marks = self._runs.marks()
        if marks:
            self._runs.append(Run(upto, run))
            self._runs.release(min(marks))
        else:
            self._runs.clear(upto)
        if len(self._tails) > TAILS:
            self._tails = [self._merger.merge(self.state, self._tails)]
            self._measure()
        rows = sum(tail.num_rows for tail in self._tails)
        if rows > TAIL_ROWS and rows > TAIL_SHARE * self._base.num_rows:
            self.compact()

    def bookmark(self, lsn: int) -> Bookmark:
        """A reader of the changes behind an LSN, for as long as the bookmark is held."""
        return self._runs.bookmark(lsn)

    def delta(self, after: int, upto: int) -> list[pa.Table] | None:
        """The runs over (after, upto], not merged; None where they are not all kept."""
        runs = self._runs.delta(after, upto)
        return None if runs is None else [run.rows for run in runs]

    def replace(self, base: pa.Table, lsn: int) -> None:
        """The rows are others at an LSN; what has changed since is not known."""
        self._base, self._tails, self._merged, self._keyed = base, [], None, None
        self._runs.clear(1 + max([lsn, *self._runs.marks()]))
        self._measure()

    def empty(self) -> None:
        """There are no rows any more, at any LSN."""
        self.replace(self._base.schema.empty_table(), 0)
        self._kept.clear()

    def compact(self) -> None:
        """Makes base and tails the new base."""
        merged = self._merged if self._merged is not None else self._merger.merge(self.state, self.tables)
        self._base, self._tails, self._merged = self._needed(merged), [], None
        self._measure()

    # By key -----------------------------------------------------------------------------------------------------

    def lookup(self, keys: Sequence[Key], lsn: int) -> pa.Table:
        """The rows with these keys at the LSN that the view has reached, merged, in any order."""
        return self._indexed(lsn).lookup(self._key, keys)

    def _indexed(self, lsn: int) -> KeyedRows:
        """The rows by key, with what has changed since the last look; indexed anew where that is much."""
        keyed, runs = self._keyed, self.delta(self._keyed_at.after, lsn)
        few = keyed is not None and runs is not None and is_few(keyed, runs)
        if keyed is None or runs is None or not few:
            self._keyed = keyed = KeyedRows(self.snapshot(), [self._key])
            self._keyed_at = self.bookmark(lsn)
            self._measure()
        elif runs:
            run = runs[0] if len(runs) == 1 else self._merger.merge(self.state, runs)
            keys = keys_in(run, self._key)
            keyed.replace(self._key, keys, self._merger.merge(self.state, [keyed.lookup(self._key, keys), run]))
            self._keyed_at.after = lsn
        return keyed


def is_few(rows: KeyedRows, runs: Sequence[pa.Table]) -> bool:
    """Whether the keys of some runs are better changed in an index than all rows indexed anew."""
    changed = rows.patched + sum(run.num_rows for run in runs)
    return bool(changed <= max(PATCH_ROWS, PATCH_SHARE * rows.rows.num_rows))

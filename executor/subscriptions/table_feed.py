"""The feed of a table: the changes of each log record, which is a transaction or several single statements, at its LSN.

Owns: the net of what a transaction changed (a row that is written as it was is no change)::

    run = sum of weights by LSN and row(came with +1, went with -1), where it is not 0

The rows come from the table's trace (``executor.tables.change_trace``), which goes back as far as the log does.
"""

from __future__ import annotations

import weakref
from typing import Any

import pyarrow as pa
import pyarrow.compute

from catalog.objects import Table
from catalog.values.errors import SqlError, undefined_table
from catalog.values.types import INT8
from executor.core.core import Core
from executor.subscriptions.feed import FeedReader
from executor.tables.change_trace import weighted_rows
from executor.traces.bookmark import Bookmark
from executor.traces.kept_runs import Run
from planner.incremental.names import stored_name
from planner.incremental.programs.state_relations import weighted

_compute: Any = pyarrow.compute  # made at its import, where no type checker sees its functions


class TableFeed:
    """The changes of one table. Safe for many threads."""

    def __init__(self, core: Core, table: Table) -> None:
        """Of a table as it is defined now. Under the sequencer's lock."""
        self._core = core
        self._table = table
        self._weights = weighted([("lsn", INT8), *((item.name, item.type) for item in table.stored)])
        self._bookmarks: weakref.WeakSet[Bookmark] = weakref.WeakSet()
        self._trace = core.changes_of(table)

    @property
    def reads(self) -> tuple[int, ...]:
        """The table."""
        return (self._table.oid,)

    @property
    def is_current(self) -> bool:
        """Whether the table exists, and has the columns that it had."""
        return self._trace.is_current

    @property
    def is_elsewhere(self) -> bool:
        """False: a table is read where it is."""
        return False

    @property
    def is_read(self) -> bool:
        """Whether the feed has readers."""
        return len(self._bookmarks) > 0

    @property
    def lsn(self) -> int:
        """The LSN up to which changes are visible and durable: a later one may be another transaction's after a
        crash."""
        sequencer = self._core.sequencer
        return min(sequencer.visible, sequencer.durable)

    def require(self) -> None:
        """Raises 42P01 where the table was dropped, and 72000 where its columns are others."""
        if self._trace.is_current:
            return
        if self._table.oid not in self._core.catalog.objects:
            raise undefined_table(self._table.name)
        raise _forgotten(self._table, "of before its definition changed")

    def snapshot(self, reader: FeedReader) -> Run:
        """All rows of the table now, as a difference from nothing; the changes go on at its LSN."""
        self.require()
        lsn, rows = reader.of_table(self._table)
        self._settle(lsn)
        self.require()  # the rows may be of other columns
        return self._run(lsn, weighted_rows(rows, 1, lsn))

    def start(self, reader: FeedReader, since: int | None) -> int:
        """The LSN behind which the changes since another one lie (None: now). Raises 72000 where they are no longer
        known, and 22023 for an LSN that is still to come."""
        visible = self.advance(reader)
        if since is None:
            return visible
        if since > visible:
            raise SqlError("22023", f"LSN {since} has not been reached yet")
        if since < (self._core.forgotten.log or 0) or not self._trace.reach(since):
            raise _forgotten(self._table, f"since LSN {since}")
        return since

    def advance(self, reader: FeedReader) -> int:
        """The LSN of now, up to which changes are durable. Raises what ``require`` raises."""
        self._settle(self._core.sequencer.visible)
        lsn = self.lsn
        self.require()  # last: a definition counts as changed before its LSN is visible
        return lsn

    def delta(self, after: int, upto: int) -> list[Run]:
        """The changes over (after, upto] as one run. Raises 72000 where some have been forgotten."""
        if after >= self._core.opened_lsn and self._core.version_of((self._table.oid,)) <= after:
            return []
        rows = self._trace.delta(after, upto)
        if rows is None:
            raise _forgotten(self._table, f"since LSN {after}")
        found = self._run(upto, rows)
        return [found] if found.rows.num_rows else []

    def bookmark(self, lsn: int) -> Bookmark:
        """A reader of the changes behind an LSN, for as long as the bookmark is held."""
        found = Bookmark(lsn)
        self._bookmarks.add(found)
        return found

    def close(self) -> None:
        """Ends the feed, which has no readers any more."""
        self._core.forget_changes(self._trace)

    def _settle(self, lsn: int) -> None:
        """Returns when what is committed up to an LSN is durable."""
        if self._core.sequencer.durable < lsn:
            self._core.sequencer.flush().wait()

    def _run(self, upto: int, rows: pa.Table) -> Run:
        """The net of weighted rows of each LSN, the rows that went first."""
        names = [stored_name(column) for column in self._weights.columns]
        lsn, *columns, weight = names
        net = self._core.engine.merge(self._weights, [rows.rename_columns(names)])
        net = net.filter(_compute.not_equal(net.column(weight), 0))
        net = net.sort_by([(lsn, "ascending"), (weight, "ascending")])
        places = [str(place) for place in range(len(columns))]
        return Run(upto, net.select([*columns, weight]).rename_columns([*places, ""]), net.column(lsn))


def _forgotten(table: Table, which: str) -> SqlError:
    hint = "Leave since out: the changes then begin with all rows of the table."
    return SqlError("72000", f'changes of table "{table.name}" {which} are no longer available', hint=hint)

"""Table rows by key: read from the store once reads by key have paid for it, and updated by every commit.

Owns: which tables have ``TableRows``, which count in the budget of all traces (``executor.traces.budget``), and that a
reader sees what is committed and visible, never less and never more:

- they are built from a snapshot of the store; what is published meanwhile is applied to them before they are shown;
- a commit changes them under the sequencer's lock, before it is visible, and each carries the LSN of its last change:
  a reader that finds an LSN above the visible one has read too early and asks again under the lock (``read``);
- what changes a table otherwise than row by row (its definition, very many rows) drops them, and so does a budget that
  has no room for them.

Only committed rows of a table, by one of its unique keys, are answered here.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
from msgspec import Struct

from catalog.objects import Table, is_temporary
from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.embedded.connection import Parameters
from executor.rows.table_rows import WORN_ROWS, TableRows
from executor.tables.journal import Entry, RowsChanged
from executor.traces.budget import Held
from executor.traces.index import Row
from executor.traces.keyed_rows import Columns, Key
from planner.algebra.nodes import Relation

#: A table whose rows would take more of the budget of all traces is left to an engine.
SHARE: Final = 1 / 3
#: Rows that are read in the time of one read by key that an engine answers.
_ROWS_PER_READ: Final = 4096
#: Reads by key that an engine answers in the time of one change of a row by key, which has its own transaction.
_READS_PER_CHANGE: Final = 16


class _Interest(Struct):
    """Reads by key of a table without an index: how many there were, and how many justify building one (None: no number
    does)."""

    reads: int = 0
    enough: int | None = 1


class _Kept(Struct, frozen=True):
    """A table's rows, and what they hold in memory."""

    rows: TableRows
    held: Held


class TableKeys:
    """The keyed rows of a database's tables."""

    def __init__(self, core: Core) -> None:
        self._core = core
        #: Bytes of one table's rows at most.
        self._limit = int(core.trace_budget.limit * SHARE)
        self._kept: dict[int, _Kept] = {}
        self._interests: dict[int, _Interest] = {}
        #: Changes, since their snapshot, of tables that are being read; None if the rows being read are of no use any
        #: more.
        self._building: dict[int, list[tuple[int, RowsChanged]] | None] = {}
        self._lock = threading.Lock()

    # Reading ----------------------------------------------------------------------------------------------------

    def peek(self, table: Table, columns: Columns, key: Key) -> Row | None:
        """A committed row; None where that cannot be told at once. Never blocks."""
        kept = self._kept.get(table.oid)
        if kept is None or kept.rows.definition is not table:
            return None
        rows = kept.rows
        if rows.is_worn and table.oid not in self._building:
            return None
        if table.oid in self._core.tables.locks.barriers:  # a reader waits
            return None
        kept.held.read()
        row = rows.get(columns, key)  # before the LSN of what it may be of
        return row if rows.lsn <= self._core.sequencer.visible else None

    def read(self, table: Table, columns: Columns, key: Key) -> Row | None:
        """The row with a key, after building the table's rows if due; None if an engine must read the table."""
        if table.oid in self._core.tables.locks.barriers or self.prepare(table) is None:
            return None
        with self._core.sequencer.lock:
            rows = self._rows_of(table.oid)
            return None if rows is None or rows.definition is not table else rows.get(columns, key)

    def prepare(self, table: Table, weight: int = 1) -> TableRows | None:
        """A table's keyed rows, read now if that is due; ``weight``: how many reads an engine could answer instead."""
        rows = self._rows_of(table.oid)
        if rows is None and not self._is_due(table.oid, weight):
            return None
        if rows is None or rows.is_worn:
            rows = self._build(table) or rows
        return rows

    def find(self, table: Table) -> TableRows | None:
        """A table's rows for a writer that has locked them: all that is committed, also if not visible yet."""
        rows = self.prepare(table, _READS_PER_CHANGE)
        return rows if rows is not None and rows.is_of(table) else None

    def at_hand(self, table: Table) -> TableRows | None:
        """The rows by key, if they are available at once."""
        rows = self._rows_of(table.oid)
        return rows if rows is not None and not rows.is_worn and rows.is_of(table) else None

    def _rows_of(self, oid: int) -> TableRows | None:
        kept = self._kept.get(oid)
        if kept is None:
            return None
        kept.held.read()
        return kept.rows

    def compute(
        self, relation: Relation, bindings: Mapping[str, pa.Table], parameters: Parameters, time_zone: str
    ) -> pa.Table:
        """A relation's rows over bound leaves."""
        return self._core.engine.query_few(relation, bindings, time_zone, None, parameters)

    def _is_due(self, oid: int, weight: int) -> bool:
        """Whether reads by key have cost about as much as reading the whole table does."""
        with self._lock:
            interest = self._interests.get(oid)
        if interest is None:
            statistics = self._core.tables.statistics(oid, ())
            enough = 1 if statistics is None else 1 + int(statistics.rows) // _ROWS_PER_READ
            interest = _Interest(enough=enough)
        with self._lock:
            interest = self._interests.setdefault(oid, interest)
            interest.reads += weight
            return interest.enough is not None and interest.reads >= interest.enough

    # Building ---------------------------------------------------------------------------------------------------

    def _build(self, table: Table) -> TableRows | None:
        """Reads a table; None if another thread is reading it, or it is too large."""
        core, oid = self._core, table.oid
        with core.sequencer.lock:
            known = core.catalog.objects.get(oid)
            if oid in self._building or not isinstance(known, Table) or known != table:
                return None
            if core.tables.definitions.get(oid) != table:
                return None
            self._building[oid] = []
            lsn, snapshot = core.sequencer.visible, core.tables.snapshot()
        try:
            rows = snapshot.rows(table, self._limit)
            built = None if rows is None else TableRows(known, rows, lsn)
        except (SqlError, pa.ArrowException, OverflowError, ValueError):  # a value that Python cannot hold
            built = None
        except BaseException:
            self._building.pop(oid, None)
            raise
        finally:
            snapshot.close()
        shown = self._show(oid, built)
        self._core.trace_budget.keep()
        return shown

    def _show(self, oid: int, built: TableRows | None) -> TableRows | None:
        with self._core.sequencer.lock:
            missed = self._building.pop(oid)
            if built is None or not built.keys or built.bytes > self._limit:
                self._drop(oid)
                with self._lock:
                    self._interests[oid] = _Interest(enough=None)
                return None
            if missed is None:
                return None
            for lsn, entry in missed:
                built.patch(lsn, entry)
            self._keep(oid, built)
        return built

    def _keep(self, oid: int, rows: TableRows) -> None:
        before = self._kept.get(oid)
        held = self._core.trace_budget.register(lambda size: self._forget(oid))
        held.add(rows.bytes)
        self._kept[oid] = _Kept(rows, held)
        if before is not None:
            before.held.close()

    def _drop(self, oid: int) -> None:
        """Forgets a table, also what is being read of it."""
        self._forget(oid)
        if oid in self._building:
            self._building[oid] = None

    def _forget(self, oid: int) -> None:
        """Forgets the rows of a table; reads by key must pay for them again."""
        kept = self._kept.pop(oid, None)
        if kept is not None:
            kept.held.close()
        with self._lock:
            self._interests.pop(oid, None)

    # Changes ----------------------------------------------------------------------------------------------------

    def publish(self, lsn: int, journal: Sequence[Entry]) -> None:
        """Applies a transaction's changes before they become visible. Called under the sequencer's lock."""
        for entry in journal:
            table = getattr(entry, "table", None)
            if table is None or is_temporary(table):
                continue
            if isinstance(entry, RowsChanged):
                self._change(lsn, entry)
            else:
                self._drop(table.oid)

    def _change(self, lsn: int, entry: RowsChanged) -> None:
        oid, count = entry.table.oid, sum(entry.counts)
        missed, kept = self._building.get(oid), self._kept.get(oid)
        if missed is not None and count > WORN_ROWS:
            self._building[oid] = None
        elif missed is not None:
            missed.append((lsn, entry))
        if kept is not None and kept.rows.takes(count):
            kept.rows.patch(lsn, entry)
        elif kept is not None or count > WORN_ROWS:
            self._forget(oid)

"""Tables as they stood when the rows of streams were committed, for a view WITH (tables = 'arrival').

    table at an LSN  =  table at another one, and what the log says has changed in between

Owns: the rows of the view's static relations at an LSN, the LSNs at which these rows change, and what of both is kept
for the next call. While no table changes, that is the last evaluation. Guard: the log has the changes behind the LSNs
that are asked for. These are the LSNs of stream rows that the view does not have yet, for which ``upkeep.frontiers``
holds the log.

The lock of this object is taken before the sequencer's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from catalog.objects import Table
from catalog.values.errors import SqlError, undefined_table
from catalog.values.times.infinite_dates import require_finite
from executor.core.core import Core
from executor.dataflow.rows.hashing import NO_HASHES
from executor.dataflow.rows.multiset import Multiset
from executor.dataflow.rows.weighted_rows import Inconsistent, consolidated, negated, repeated, weighted
from executor.small import table_of
from executor.tables.change_trace import TableChanges
from executor.tables.store import ReadSnapshot
from executor.traces.budget import size_of
from executor.traces.layout import LSN
from planner.algebra.nodes import Column, ColumnRef, Project, Relation, Scan, Snapshot
from planner.algebra.walk import transform, walk
from planner.incremental.names import stored_name
from planner.incremental.programs.program import Static
from planner.incremental.programs.state_relations import weighted as weights_of

_TRACE: Final = "past_{}"


class _Evaluated(Struct):
    """A static relation's rows, which are the same from the first LSN to the last."""

    rows: pa.Table
    first: int
    last: int


class _PastTable:
    """One table that static relations read: its columns that they use."""

    def __init__(self, core: Core, scans: Sequence[Scan]) -> None:
        self._core = core
        self._scans = scans
        self.oid, self.name = scans[0].oid, scans[0].name
        self._trace: TableChanges | None = None
        self._is_closed = False
        #: The rows at an LSN, once they were asked for at another one than the present.
        self._rows: Multiset | None = None
        self._at = 0

    @cached_property
    def _scan(self) -> Scan:
        """The columns that are used."""
        pairs = (zip(scan.sources, scan.columns, strict=True) for scan in self._scans)
        used = dict(chain.from_iterable(pairs)) or _any_column(self._core, self.oid)
        columns = tuple(replace(column, id=place) for place, column in enumerate(used.values(), 1))
        return Scan(self.oid, self.name, "table", columns, tuple(used))

    def changes(self, after: int, upto: int) -> pa.Table | None:
        """What each transaction of (after, upto] has changed, with its LSN; None for nothing. Raises XX001."""
        core = self._core
        if after >= upto or (after >= core.opened_lsn and core.versions.last(self.oid) <= after):
            return None
        trace = self._current()
        trace.reach(after)
        found = trace.picked(self._scan.sources, after, upto)
        if found is None:
            message = f'the log no longer has what changed in table "{self.name}" after LSN {after}'
            raise SqlError("XX001", message)
        found = consolidated(found, self._consolidated_by_lsn)
        return found if found.num_rows else None

    def _current(self) -> TableChanges:
        """The trace of the table as it is defined now."""
        core = self._core
        with core.sequencer.lock:
            if self._trace is None or not self._trace.is_current:
                table = core.catalog.objects.get(self.oid)
                if self._is_closed or not isinstance(table, Table):
                    raise undefined_table(self.name)
                before, self._trace = self._trace, core.changes_of(table)
                if before is not None:
                    core.forget_changes(before)
            return self._trace

    @property
    def is_held(self) -> bool:
        """Whether its rows at some LSN are in memory."""
        return self._rows is not None

    def hold(self, snapshot: ReadSnapshot, lsn: int) -> None:
        """Keeps the rows in memory; ``snapshot`` has those of an LSN."""
        if self._rows is None:
            found = snapshot.query(self._scan, {}, (), "UTC").rename_columns(list(self._scan.sources))
            self._rows, self._at = Multiset(weighted(found, 1), (), self._consolidated), lsn

    def rows(self, lsn: int) -> pa.Table:
        """The rows at an LSN, of a table that is held."""
        assert self._rows is not None
        try:
            delta = self.changes(min(self._at, lsn), max(self._at, lsn))
            if delta is not None:
                delta = delta.drop_columns([LSN])
                self._rows.change(self._rows.consolidated(delta if lsn > self._at else negated(delta)))
            self._at = lsn
            return table_of(repeated(self._rows.lookup((), NO_HASHES)))
        except BaseException as error:
            self._rows = None
            if isinstance(error, Inconsistent):
                raise SqlError("XX001", f'the log and table "{self.name}" do not agree') from error
            raise

    def _consolidated(self, rows: pa.Table) -> pa.Table:
        state = weights_of((column.name, column.type) for column in self._scan.columns)
        return self._core.engine.merge(state, [rows])

    def _consolidated_by_lsn(self, rows: pa.Table) -> pa.Table:
        if not rows.num_rows:
            return rows
        parts = [rows.filter(_are(rows, lsn)).drop_columns([LSN]) for lsn in lsns_of(rows)]
        found = [self._consolidated(part) for part in parts]
        column = [np.full(part.num_rows, lsn, np.int64) for part, lsn in zip(found, lsns_of(rows), strict=True)]
        return pa.concat_tables(found).add_column(0, LSN, pa.array(np.concatenate(column)))

    @property
    def bytes(self) -> int:
        """About what is kept in memory."""
        return 0 if self._rows is None else self._rows.bytes

    def give_back(self) -> None:
        """Keeps no rows."""
        self._rows = None

    def close(self) -> None:
        """The changes are not read any more. The caller has the sequencer's lock."""
        self._is_closed = True
        if self._trace is not None:
            self._core.forget_changes(self._trace)
            self._trace = None


class PastTables:
    """Those that one view reads. Safe for many threads."""

    def __init__(self, core: Core, statics: Callable[[], tuple[Static, ...]], time_zone: str, since: int) -> None:
        """``statics`` are the relations as they are called now; rows of streams at and before ``since``, the LSN of the
        view's creation, meet the tables as of then."""
        self._core, self._statics, self._time_zone, self._since = core, statics, time_zone, since
        self._lock = threading.Lock()
        scans: dict[int, list[Scan]] = {}
        for scan in (scan for static in statics() for scan in _scans(static.relation)):
            scans.setdefault(scan.oid, []).append(scan)
        self._tables = {oid: _PastTable(core, own) for oid, own in scans.items()}
        self._evaluated: dict[str, _Evaluated] = {}
        #: Relations over past tables, by those over present ones.
        self._over_past: dict[str, tuple[Relation, Relation]] = {}
        self._held = core.trace_budget.register(self._give_back)

    @property
    def lost(self) -> tuple[int, int]:
        """The LSNs (after, upto] at which tables are not known any more, since the log has forgotten their changes."""
        return self._since, self._core.log.first_lsn

    def changes(self, names: Collection[str], after: int, upto: int) -> list[int]:
        """The LSNs of (after, upto] at which something has changed that statics of these names read."""
        after = max(after, *self.lost)
        found = set[int]()
        with self._lock:
            for table in self._read_by(self._named(names)):
                changed = table.changes(after, upto)
                if changed is not None:
                    found.update(lsns_of(changed))
        return sorted(found)

    def rows(self, names: Collection[str], lsn: int) -> dict[str, pa.Table]:
        """The rows of the statics of these names at an LSN, which is visible."""
        lsn = max(lsn, self._since)
        with self._lock:
            found = {static.name: self._rows(static, lsn) for static in self._named(names)}
            size = sum(size_of(item.rows) for item in self._evaluated.values())
            self._held.set(size + sum(table.bytes for table in self._tables.values()))
        self._held.read()
        self._core.trace_budget.keep()
        return found

    def _named(self, names: Collection[str]) -> list[Static]:
        return [static for static in self._statics() if static.name in names]

    def _read_by(self, statics: Sequence[Static]) -> list[_PastTable]:
        oids = dict.fromkeys(scan.oid for static in statics for scan in _scans(static.relation))
        return [self._tables[oid] for oid in oids]

    def _rows(self, static: Static, lsn: int) -> pa.Table:
        tables = self._read_by([static])
        known = self._evaluated.get(static.name)
        if known is not None:
            near = min(max(lsn, known.first), known.last)
            if not any(table.changes(min(near, lsn), max(near, lsn)) for table in tables):
                known.first, known.last = min(known.first, lsn), max(known.last, lsn)
                return known.rows
        rows, last = self._computed(static, tables, lsn)
        rows = rows.rename_columns([stored_name(column) for column in static.columns])
        require_finite(rows.to_batches(), "a continuous view")
        self._evaluated[static.name] = _Evaluated(rows, lsn, last)
        return rows

    def _computed(self, static: Static, tables: Sequence[_PastTable], lsn: int) -> tuple[pa.Table, int]:
        """A static's rows at an LSN, and up to which LSN they are the same as far as is known."""
        core = self._core
        if not all(table.is_held for table in tables):
            core.tables.backlog.apply()  # so that little is left while others wait for the lock
            with core.sequencer.lock:
                present, snapshot = core.sequencer.visible, core.tables.snapshot()
            with closing(snapshot):
                if not any(table.changes(lsn, present) for table in tables):
                    return snapshot.query(static.relation, {}, (), self._time_zone), present
                for table in tables:
                    table.hold(snapshot, present)
        picked = _picked(static.relation)
        if picked is not None:
            return tables[0].rows(lsn).select(picked), lsn
        past = {f"s_{_TRACE.format(table.oid)}": table.rows(lsn) for table in tables}
        return core.engine.query(self._past_relation(static), past, (), self._time_zone), lsn

    def _past_relation(self, static: Static) -> Relation:
        """The static over past tables."""
        known = self._over_past.get(static.name)
        if known is None or known[0] is not static.relation:
            known = self._over_past[static.name] = static.relation, transform(static.relation, _past)
        return known[1]

    def _give_back(self, size: int) -> None:
        if self._lock.acquire(blocking=False):
            try:
                self._evaluated.clear()
                for table in self._tables.values():
                    table.give_back()
                self._held.set(0)
            finally:
                self._lock.release()

    def close(self) -> None:
        """The view is no more. The caller has the sequencer's lock."""
        self._held.close()
        for table in self._tables.values():
            table.close()


def lsns_of(changes: pa.Table) -> list[int]:
    """The LSNs of changes, each once, in their order."""
    found: list[int] = np.unique(changes.column(LSN).to_numpy()).tolist()
    return found


def _are(rows: pa.Table, lsn: int) -> pa.Array:
    return pa.array(rows.column(LSN).to_numpy() == lsn)


def _past(node: Any) -> Any:
    if isinstance(node, Scan):
        return Snapshot(_TRACE.format(node.oid), node.columns, node.sources)
    return node


def _picked(relation: Relation) -> list[str] | None:
    """The columns of a table that a relation has, where it is these columns and no more."""
    match relation:
        case Scan() if relation.sources:
            return list(relation.sources)
        case Project(input=Scan() as scan) if all(isinstance(value, ColumnRef) for _, value in relation.outputs):
            sources = dict(zip(scan.columns, scan.sources, strict=True))
            return [sources[value.column] for _, value in relation.outputs if isinstance(value, ColumnRef)] or None
        case _:
            return None


def _scans(relation: Relation) -> Iterator[Scan]:
    return (node for node in walk(relation) if isinstance(node, Scan))


def _any_column(core: Core, oid: int) -> Mapping[str, Column]:
    """A column of a table of which only the number of its rows is read."""
    table = core.catalog.objects[oid]
    assert isinstance(table, Table)
    return {column.name: Column(1, column.name, column.type) for column in table.stored[:1]}

"""The trace of a table: its net changes by the LSNs of the transactions that made them.

    delta(after, upto)    rows that came with weight 1, rows that went with weight -1, each with its LSN

Owns: which changes are in memory, and the way back to the log for older ones. The record of a transaction has its net
change of a table, whole old rows and whole new ones (``executor.commit.records``), so that nothing is compared or
computed when it commits: ``publish`` keeps the part as it is. Changes are those of one definition of the columns: a
transaction that gives the table other columns, or all of its rows anew, is where its changes begin.

Knows how many read it, and not how far they are: neither memory nor the log keeps anything for them.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct

from catalog.objects import Table
from executor.commit.encoding.frames import decode_all
from executor.commit.encoding.payloads import decode_record
from executor.commit.log import Log
from executor.commit.records import CatalogChange, TableChange, TableValues, TransactionRecord
from executor.rows.row_shapes import schema_of
from executor.traces.budget import TraceBudget
from executor.traces.layout import LSN

#: Bytes of the changes of a table that are kept in memory, within the budget of all traces.
BUDGET: Final = 64 << 20
#: By how many a row's number of times grows.
WEIGHT: Final = "__weight"

TablePart = TableChange | TableValues
Numbers = npt.NDArray[np.int64]


class _Unknown(Exception):
    """The log does not have all changes, or has those of other columns."""


class _Change(Struct, frozen=True):
    """What one transaction changed."""

    lsn: int
    part: TablePart
    size: int


class TableChanges:
    """The changes of one table. ``publish`` is called under the sequencer's lock, all else from any thread."""

    def __init__(self, log: Log, budget: TraceBudget, table: Table, after: int) -> None:
        """``after``: the LSN up to which the changes are in the log alone."""
        self.table = table
        #: What a row holds.
        self.columns = schema = schema_of(table)
        self._schema = pa.schema([pa.field(LSN, pa.int64()), *schema, pa.field(WEIGHT, pa.int64())])
        #: Whether the table is still the one that it was.
        self.is_current = True
        #: How many read it. Changed under the sequencer's lock.
        self.readers = 0
        self._log = log
        self._lock = threading.Lock()
        self._changes: deque[_Change] = deque()
        #: All changes with a higher LSN are in memory.
        self._after = self._begun = after
        self._budget = budget
        self._held = budget.register(self._give_back)

    def publish(self, lsn: int, part: TablePart) -> None:
        """Adds what a transaction changed, in LSN order."""
        if not self.is_current:
            return
        with self._lock:
            self._changes.append(_Change(lsn, part, _size(part)))
            self._take_in(self._changes[-1].size)

    def end(self) -> None:
        """The table was dropped, has other columns, or all of its rows anew; or the trace has no readers any more."""
        self.is_current = False

    def close(self) -> None:
        """The trace has no readers any more."""
        self.end()
        self._held.close()

    def reach(self, after: int) -> bool:
        """Whether all changes behind an LSN are known. Those that the log has are in memory then, as far as there is
        room."""
        with self._lock:
            start = self._after
        kept, size, first = deque[_Change](), 0, after
        try:
            for change in self._logged(after, start):
                kept.append(change)
                size += change.size
                while size > BUDGET:
                    size -= kept[0].size
                    first = kept.popleft().lsn
        except _Unknown:
            return False
        with self._lock:
            if after < start == self._after:
                self._changes.extendleft(reversed(kept))
                self._after = first
                self._take_in(size)
        self._budget.keep()
        return True

    def has_left(self, after: int) -> bool:
        """Whether memory had changes behind an LSN that only the log has now."""
        return self._begun < self._after > after

    def are_large(self, after: int, size: int) -> bool:
        """Whether the changes behind an LSN that are in memory take more than so many bytes."""
        with self._lock:
            for change in reversed(self._changes):
                if change.lsn <= after or size < 0:
                    break
                size -= change.size
        return size < 0

    def delta(self, after: int, upto: int) -> pa.Table | None:
        """The changes of (after, upto], in the order of their LSNs: ``LSN``, the columns that a row holds, and
        ``WEIGHT``. None where the log has forgotten some, or the table was another one."""
        self._held.read()
        with self._lock:
            start = self._after
            known = [item for item in self._changes if after < item.lsn <= upto]
        changes = chain(self._logged(after, min(start, upto)), known)
        try:
            found = [_marked(*sides, self._schema) for sides in _together(changes)]
        except _Unknown:
            return None
        self._budget.keep()
        return pa.concat_tables(found) if found else self._schema.empty_table()

    def picked(self, names: Sequence[str], after: int, upto: int) -> pa.Table | None:
        """The changes of some columns, as ``delta`` has those of all. Transactions that add or drop other columns do
        not matter, since they leave these as they are."""
        self._held.read()
        with self._lock:
            start = self._after
            known = [item for item in self._changes if after < item.lsn <= upto]
        schema = pa.schema([self._schema.field(name) for name in (LSN, *names, WEIGHT)])
        try:
            changes = chain(self._logged(after, min(start, upto), is_redefined=_rebuilds), known)
            # Each by itself: they may have other columns beside.
            sides = (side for item in changes for side in _together((item,)))
            found = [_marked(rows.select(names), lsns, weights, schema) for rows, lsns, weights in sides]
        except _Unknown:
            return None
        self._budget.keep()
        return pa.concat_tables(found) if found else schema.empty_table()

    def _take_in(self, size: int) -> None:
        self._held.add(size)
        self._drop(self._held.bytes - BUDGET)

    def _give_back(self, size: int) -> None:
        with self._lock:
            self._drop(size)

    def _drop(self, size: int) -> None:
        """Leaves the oldest changes to the log, of at least so many bytes."""
        while size > 0 and self._changes:
            gone = self._changes.popleft()
            self._after = gone.lsn
            self._held.add(-gone.size)
            size -= gone.size

    def _logged(
        self, after: int, upto: int, is_redefined: Callable[[TransactionRecord, int], bool] | None = None
    ) -> Iterator[_Change]:
        """The changes of (after, upto] as the log has them. Raises _Unknown where these are not all those of the
        table, or ``is_redefined`` says so of a transaction."""
        if after >= upto:
            return
        if after < self._log.first_lsn:
            raise _Unknown
        oid = self.table.oid
        for lsn, payload in self._log.records(after, upto):
            record = decode_record(payload, (oid,))
            if (is_redefined or _redefines)(record, oid):
                raise _Unknown
            for part in record:
                if isinstance(part, TableChange) and part.table == oid:
                    yield _Change(lsn, part, _size(part))


def _marked(rows: pa.Table, lsns: Numbers, weights: Numbers, schema: pa.Schema) -> pa.Table:
    """Changed rows with their LSNs and weights."""
    return pa.Table.from_arrays([pa.array(lsns), *rows.columns, pa.array(weights)], schema=schema)


def _together(changes: Iterable[_Change]) -> Iterator[tuple[pa.Table, Numbers, Numbers]]:
    """The rows of changes with their LSNs and weights: first those that went, with weight -1, then those that came,
    with weight 1. Changes of a few rows, of which there may be many, are decoded together."""
    frames: list[tuple[bytes, int, int]] = []
    for change in changes:
        part = change.part
        for side, weight in ((part.deleted, -1), (part.inserted, 1)):
            if isinstance(side, bytes):
                frames += [(side, change.lsn, weight)] if side else []
            elif side is not None:
                yield from _decoded(frames)
                frames = []
                yield side, np.full(side.num_rows, change.lsn, np.int64), np.full(side.num_rows, weight, np.int64)
    yield from _decoded(frames)


def _decoded(frames: Sequence[tuple[bytes, int, int]]) -> Iterator[tuple[pa.Table, Numbers, Numbers]]:
    if frames:
        rows, counts = decode_all([frame for frame, _, _ in frames])
        lsns, weights = (np.repeat(np.array([item[at] for item in frames], np.int64), counts) for at in (1, 2))
        yield rows, lsns, weights


def weighted_rows(rows: pa.Table, weight: int, lsn: int) -> pa.Table:
    """Rows that came (1) or went (-1) at an LSN, as ``TableChanges.delta`` gives them."""
    own = _repeated(lsn, rows.num_rows), _repeated(weight, rows.num_rows)
    return pa.Table.from_arrays([own[0], *rows.columns, own[1]], [LSN, *rows.column_names, WEIGHT])


def _redefines(record: TransactionRecord, oid: int) -> bool:
    """Whether a transaction gave a table other columns, or all of its rows anew."""
    changes = _definitions(record)
    return any(
        change.get("rebuild") == oid or ("storage" in change and change["change"].get("oid") == oid)
        for change in changes
    )


def _rebuilds(record: TransactionRecord, oid: int) -> bool:
    """Whether a transaction gave a table all of its rows anew."""
    return any(change.get("rebuild") == oid for change in _definitions(record))


def _definitions(record: TransactionRecord) -> Iterator[Any]:
    return (json.loads(part.document) for part in record if isinstance(part, CatalogChange))


def _size(part: TablePart) -> int:
    """Bytes in memory."""
    if isinstance(part, TableValues):
        return len(part.inserted) + len(part.deleted)
    return sum(table.nbytes for table in (part.inserted, part.deleted) if table is not None)


def _repeated(value: int, count: int) -> pa.Array:
    return pa.array(np.full(count, value, np.int64))

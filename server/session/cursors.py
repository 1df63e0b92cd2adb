"""Cursors of SQL: the rows of a DECLARE, and where in them the client is.

Owns: FETCH and MOVE in every direction (pquery.c, DoPortalRunFetch), and how long a cursor lives. The rows are computed
at DECLARE, so that a cursor shows its transaction's data of then; those of a stream's query come as they are fetched,
and forward only. Knows nothing of messages.
https://www.postgresql.org/docs/15/sql-declare.html
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator

import pyarrow as pa
from msgspec import Struct, field

from catalog.values.errors import SqlError, unsupported
from catalog.values.types import SqlType
from executor.tables.savepoints import Savepoints
from executor.transactions.result import Result
from planner.algebra.nodes import Value
from planner.statements.statement import DeclareCursor, Fetch, Output
from server.plans.rows import sent_value
from server.session.forward_rows import PORTION_ROWS, Forward


class SqlCursor(Struct, eq=False):
    """One cursor. ``position`` is that of the row it is on, from 1; 0 is before the first, and one more than there are
    behind the last. ``live``: the rest of the rows, where they come as time goes on."""

    name: str
    text: str
    outputs: tuple[Output, ...]
    scrolls: bool
    hold: bool
    binary: bool
    created: datetime.datetime
    rows: pa.Table | None
    live: Forward | None = None
    position: int = 0
    passed: int = 0  # rows that were sent before there was this cursor
    kept: bool = False  # beyond the transaction that made it
    table: int = 0  # the oid of the table whose row each row shows, by its key in ``keys``
    keys: pa.Table | None = None
    key_types: tuple[SqlType, ...] = ()
    locks: bool = False

    @classmethod
    def of(cls, statement: DeclareCursor, result: Result, now: datetime.datetime, most: int) -> SqlCursor:
        """The cursor that a DECLARE makes of its query's result. Raises 53200 beyond ``most`` bytes (0: no limit)."""
        live = Forward(result.batches or ()) if result.live else None
        batches = [] if live is not None else _held(result.batches or (), most)
        rows = pa.Table.from_batches(batches) if batches else None
        width = len(statement.query.outputs) - statement.key
        return cls(
            statement.name,
            statement.text,
            statement.query.outputs[:width],
            statement.scroll is not False and live is None and statement.query.locking is None,
            statement.hold,
            statement.binary,
            now,
            None if rows is None else rows.select(range(width)),
            live,
            table=statement.table,
            keys=None if rows is None else rows.select(range(width, rows.num_columns)),
            key_types=tuple(item.type for item in statement.query.outputs[width:]),
            locks=statement.query.locking is not None,
        )

    @classmethod
    def over(
        cls,
        name: str,
        text: str,
        outputs: tuple[Output, ...],
        now: datetime.datetime,
        rest: Forward,
        passed: int,
        live: bool,
        most: int,
    ) -> SqlCursor:
        """The cursor that a portal of the protocol is, which only goes forward. Raises 53200 as ``of`` does."""
        batches = [] if live else _held(iter(rest.next, None), most)
        rows = pa.Table.from_batches(batches) if batches else None
        return cls(name, text, outputs, False, False, False, now, rows, rest if live else None, passed, passed)

    def next(self, limit: int = 0) -> pa.RecordBatch | None:
        """The next rows, as an Execute takes them."""
        if self.live is not None:
            return next(self._next(self.live, limit or None), None)
        first, last = self._step(min(limit or PORTION_ROWS, PORTION_ROWS))
        return self._between(first, last).combine_chunks().to_batches()[0] if last else None

    def fetch(self, statement: Fetch) -> Result:
        """FETCH or MOVE. Raises 55000 for a step backward of a cursor that only goes forward."""
        if self.live is not None:
            return self._fetch_live(self.live, statement)
        first, last = self._go(statement)
        count = abs(last - first) + 1 if last else 0
        if statement.moves:
            return Result(f"MOVE {count}")
        return Result("FETCH", self.outputs, self._between(first, last).to_batches() if count and self.rows else ())

    def key_here(self, table: int, name: str) -> list[Value]:
        """The key of the row of a table on which it is. Raises 24000, and 0A000 where it may be one of several."""
        if self.table != table:
            if self.locks:
                raise unsupported("WHERE CURRENT OF a cursor over more than the table", "Name the row by its key.")
            message = f'cursor "{self.name}" is not a simply updatable scan of table "{name}"'
            raise SqlError("24000", message)
        if self.kept:
            raise SqlError("24000", f'cursor "{self.name}" is held from a previous transaction')
        if self.keys is None or not 1 <= self.position <= self._size:
            raise SqlError("24000", f'cursor "{self.name}" is not positioned on a row')
        kinds = zip(self.keys.columns, self.key_types, strict=True)
        return [sent_value(column[self.position - 1], kind) for column, kind in kinds]

    def _between(self, first: int, last: int) -> pa.Table:
        """The rows from one place to another, in the order in which they are passed."""
        assert self.rows is not None
        low, high = min(first, last), max(first, last)
        found = self.rows.slice(low - 1 - self.passed, high - low + 1)
        return found if first <= last else found.take(pa.array(range(high - low, -1, -1), pa.int64()))

    @property
    def _size(self) -> int:
        """The place of the last row."""
        return self.passed + (0 if self.rows is None else self.rows.num_rows)

    # -- steps -------------------------------------------------------------------------------------------------

    def _go(self, statement: Fetch) -> tuple[int, int]:
        """Moves; the first and last row that are passed, (0, 0) for none."""
        match statement.direction:
            case "forward":
                return self._step(statement.count)
            case "backward":
                return self._step(None if statement.count is None else -statement.count, backward=True)
            case "relative" if statement.count:
                return self._to(self.position + statement.count)
            case "relative":
                return self._step(0)
            case _:
                count = statement.count or 0
                return self._to(count if count >= 0 else max(self._size + 1 + count, 0), from_end=count < 0)

    def _step(self, count: int | None, backward: bool = False) -> tuple[int, int]:
        """``count`` rows on, or back where it is negative; None is all that there are."""
        size, position = self._size, self.position
        if count == 0:
            if not 1 <= position <= size:
                return 0, 0
            self._require_scroll()
            return position, position
        if backward if count is None else count < 0:
            self._require_scroll()
            self.position = 0 if count is None else max(position + count, 0)
            last = max(self.position, 1)
            return (position - 1, last) if position > last else (0, 0)
        self.position = size + 1 if count is None else min(position + (count or 0), size + 1)
        last = min(self.position, size)
        return (position + 1, last) if position < last else (0, 0)

    def _to(self, place: int, from_end: bool = False) -> tuple[int, int]:
        """The row at a place, and that alone."""
        size = self._size
        if from_end or place <= self.position != 0:
            self._require_scroll()
        self.position = min(max(place, 0), size + 1)
        return (self.position, self.position) if 1 <= place <= size else (0, 0)

    def _require_scroll(self) -> None:
        if not self.scrolls:
            hint = None if self.live is not None else "Declare it with SCROLL option to enable backward scan."
            raise SqlError("55000", "cursor can only scan forward", hint=hint)

    # -- rows that come as time goes on ------------------------------------------------------------------------

    def _fetch_live(self, live: Forward, statement: Fetch) -> Result:
        """The next rows, each batch as it comes, until there are ``count``."""
        count = statement.count
        if statement.direction not in ("forward", "relative") or (count is not None and count <= 0):
            self._require_scroll()
        if statement.direction == "relative":
            for _ in self._next(live, (count or 1) - 1):
                pass
            count = 1
        if statement.moves:
            return Result(f"MOVE {sum(batch.num_rows for batch in self._next(live, count))}")
        return Result("FETCH", self.outputs, self._next(live, count), live=True)

    def _next(self, live: Forward, count: int | None) -> Iterator[pa.RecordBatch]:
        while (count is None or count > 0) and (batch := live.next(count or 0)) is not None:
            self.position += batch.num_rows
            count = None if count is None else count - batch.num_rows
            yield batch


def _held(batches: Iterable[pa.RecordBatch], most: int) -> list[pa.RecordBatch]:
    """All batches. Raises 53200 once they have more than ``most`` bytes, if that is not 0."""
    held, size = [], 0
    for batch in batches:
        size += batch.nbytes
        if most and size > most:
            detail = f"The rows of a cursor take more than {most >> 20} MB, half of memory_limit."
            raise SqlError("53200", "out of memory", detail, "Select fewer rows, or set a larger memory_limit.")
        held.append(batch)
    return held


class Cursors(Struct):
    """The cursors of a session, by name; a member of its transactions."""

    by_name: dict[str, SqlCursor] = field(default_factory=dict)
    _savepoints: Savepoints[tuple[SqlCursor, ...]] = field(default_factory=lambda: Savepoints())

    def check(self, statement: DeclareCursor, in_block: bool) -> None:
        """Whether a DECLARE may be. Raises 25P01 and 42P03."""
        if not in_block and not statement.hold:
            raise SqlError("25P01", "DECLARE CURSOR can only be used in transaction blocks")
        if statement.name in self.by_name:
            raise SqlError("42P03", f'cursor "{statement.name}" already exists')

    def add(self, cursor: SqlCursor) -> None:
        """A cursor was declared."""
        self.by_name[cursor.name] = cursor

    def discard(self, name: str) -> None:
        """Closes a cursor, if it is there."""
        self.by_name.pop(name, None)

    def find(self, name: str) -> SqlCursor:
        """A cursor. Raises 34000."""
        found = self.by_name.get(name)
        if found is None:
            raise SqlError("34000", f'cursor "{name}" does not exist')
        return found

    def close(self, name: str | None) -> None:
        """CLOSE; None is all. Raises 34000."""
        if name is None:
            self.by_name.clear()
            return
        self.find(name)
        del self.by_name[name]

    @property
    def size(self) -> int:
        """Bytes of their rows in memory."""
        tables = [table for item in self.by_name.values() for table in (item.rows, item.keys) if table is not None]
        return sum(table.nbytes for table in tables)

    # -- as a member -------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Cursors begin by themselves."""

    def commit(self) -> None:
        """Those WITH HOLD stay."""
        self._savepoints.clear()
        if self.by_name:
            self.by_name = {name: item for name, item in self.by_name.items() if item.hold}
            for item in self.by_name.values():
                item.kept = True

    def rollback(self) -> None:
        """Those of earlier transactions stay."""
        self._savepoints.clear()
        if self.by_name:
            self.by_name = {name: item for name, item in self.by_name.items() if item.kept}

    def savepoint(self, name: str) -> None:
        """What there is survives a return to it."""
        self._savepoints.add(name, tuple(self.by_name.values()))

    def release(self, name: str) -> None:
        """Forgets a savepoint and those after it."""
        self._savepoints.release(name)

    def rollback_to(self, name: str) -> None:
        """What was declared after it is gone; what was closed stays closed."""
        before = self._savepoints.return_to(name)
        self.by_name = {key: item for key, item in self.by_name.items() if item in before}

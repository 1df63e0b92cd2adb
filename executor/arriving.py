"""A query of a stream itself, run: the rows that arrive from its beginning on, until none has come for a while.

Owns: ``StreamScan``, which waits for rows and hands them out by LSN interval (thesis, algorithm 3.2, with intervals for
morsels), and what the planner's three ways do with an interval (``planner.arriving``). The end is a session window's:
no row for ``stream_timeout``. What is computed is the query over exactly the rows of (begin, end]. Nobody waits for a
scan: rows that memory had no room for until it came are gone, and end it with 72000.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from catalog.errors import SqlError, undefined_table, unsupported
from executor.content import Content
from executor.engine import Inputs, Job
from executor.streams import StreamRuntime
from executor.trace.layout import LSN, ORDINAL
from executor.trace.ring import Ring
from executor.transaction import Transaction
from executor.views import named, reads_places
from planner.arriving import Arriving, plan_arriving
from planner.expression import Literal, Parameter, Value
from planner.incremental.names import stored_name
from planner.program import Path, Statement
from planner.statement_nodes import rewrite
from planner.statements import Query

if TYPE_CHECKING:
    from executor.database import Database
    from executor.queries import Reader

#: Seconds from one look at the stream to the next: single rows are taken together, as much as nobody notices.
PAUSE: Final = 0.02

Notify = Callable[[SqlError], None]


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds without a row after which a scan ends (0: it does not), and from one progress notice to the next (0:
    there are none); by a clock like the one of the rows' arrival."""

    timeout: float = 5.0
    progress: float = 5.0
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class Interval:
    """Rows that came in (after, upto]."""

    after: int
    upto: int
    rows: pa.Table


class StreamScan:
    """One query's reading of one stream. ``cancel`` may be called from any thread, all else from the query's."""

    def __init__(self, database: Database, oid: int, patience: Patience, notify: Notify) -> None:
        runtime = database.streams.get(oid)
        if runtime is None:
            raise unsupported("a query of a stream in the transaction that creates it", "Commit it first.")
        self._database = database
        self._runtime: StreamRuntime = runtime
        self._schema = runtime.schema
        self._patience = patience
        self._notify = notify
        self._wake = threading.Event()
        self._cancelled = threading.Event()
        self._running: Job | None = None
        self._mark = runtime.feed.mark() if isinstance(runtime.feed, Ring) else None
        with database.sequencer.lock:
            self._upto = database.sequencer.visible
        self._total = 0
        self._begun = patience.clock()

    def begin(self, lsn: int) -> None:
        """The query's other relations are as of an LSN: the rows after it count. A transaction's old snapshot does not
        bring rows back that had arrived before the query."""
        self._move(max(lsn, self._upto))

    def _move(self, lsn: int) -> None:
        self._upto = lsn
        if self._mark is not None:
            self._mark.after = lsn

    def cancel(self) -> None:
        """Ends what runs or waits with 57014."""
        self._cancelled.set()
        self._wake.set()
        self._database.engine.interrupt(self)
        if self._running is not None:
            self._database.engine.interrupt(self._running)

    @contextlib.contextmanager
    def job(self, job: Job) -> Iterator[Job]:
        """Makes a job of an engine one that ``cancel`` interrupts."""
        self._running = job
        try:
            yield job
        finally:
            self._running = None

    def intervals(self, places: bool) -> Iterator[Interval]:
        """The rows that come, until none has come for the timeout. Raises 72000, 57014, and 42P01 for a dropped
        stream."""
        runtime, lock = self._runtime, self._database.sequencer.lock
        with lock:
            runtime.waiting += (self._wake,)
        try:
            told = self._patience.clock()
            while True:
                self._wake.clear()
                interval = self._take(places)
                told = self._tell(told)
                if interval is not None:
                    yield interval
                    self._check(self._cancelled.wait(PAUSE))
                elif not self._wait(told):
                    return
        finally:
            with lock:
                runtime.waiting = tuple(event for event in runtime.waiting if event is not self._wake)

    def _take(self, places: bool) -> Interval | None:
        """What has come since the last time, if anything."""
        with self._database.sequencer.lock:
            after, upto, newest = self._upto, self._database.sequencer.visible, self._runtime.last_lsn
        if newest <= after:
            self._move(upto)
            return None
        rows = self._as_begun(self._runtime.feed.delta(after, upto, places))
        self._move(upto)
        self._total += rows.num_rows
        return Interval(after, upto, rows)

    def _as_begun(self, rows: pa.Table) -> pa.Table:
        """The columns that there were when the query began. Raises 42703 where one is no more."""
        if self._runtime.schema is self._schema:
            return rows
        for item in self._schema:
            if item.name not in rows.column_names or rows.schema.field(item.name).type != item.type:
                message = f'column "{item.name}" of stream "{self._runtime.stream.name}" was dropped'
                raise SqlError("42703", message)
        return rows.select([*self._schema.names, LSN, ORDINAL])

    def _wait(self, told: float) -> bool:
        """Waits until there may be something to do; False when the stream has been silent for long enough."""
        self._check(self._cancelled.is_set())
        now, timeout, progress = self._patience.clock(), self._patience.timeout, self._patience.progress
        until = []
        if timeout:
            until.append(max(self._begun, self._runtime.last_arrival) + timeout - now)
            if until[0] <= 0:
                return False
        if progress:
            until.append(max(told + progress - now, 0.0))
        self._wake.wait(min(until, default=None))
        self._check(self._cancelled.is_set())
        return True

    def _check(self, cancelled: bool) -> None:
        if cancelled:
            raise SqlError("57014", "canceling statement due to user request")
        if self._runtime.is_dropped:
            raise undefined_table(self._runtime.stream.name)

    def _tell(self, told: float) -> float:
        """Says how far the scan is, if it is time; when that was last done."""
        now = self._patience.clock()
        if not self._patience.progress or now - told < self._patience.progress:
            return told
        self._notify(SqlError("00000", f'stream "{self._runtime.stream.name}": {self._total} rows so far'))
        return now


class ArrivingQuery:
    """One query of a stream, from its beginning on. To iterate is to wait for rows."""

    def __init__(self, reader: Reader, query: Query, parameters: tuple[Value, ...], transaction: Transaction) -> None:
        self._reader = reader
        self._engine = reader.database.engine
        self._time_zone = reader.time_zone
        self._planned: Arriving = plan_arriving(with_values(query, parameters))
        self._scan = StreamScan(reader.database, self._planned.stream, reader.patience, reader.notify)
        relations = [static.relation for static in self._planned.statics]
        lsn, tables = reader.tables(relations, transaction)
        self._scan.begin(lsn)
        self._statics: Mapping[str, pa.Table] = {
            static.name: table.rename_columns([stored_name(column) for column in static.columns])
            for static, table in zip(self._planned.statics, tables, strict=True)
        }
        statements = self._planned.statements
        if self._planned.rows is not None:
            statements = (Statement("", self._planned.rows),)
        self._places = reads_places(Path(self._planned.stream, statements))

    @property
    def is_live(self) -> bool:
        """Whether rows go out before the end."""
        return self._planned.rows is not None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        rows = self._sliced() if self.is_live else self._finished()
        while True:
            self._reader.scan = self._scan  # whom a cancel of the session means, while this runs
            try:
                batch = next(rows, None)
            finally:
                self._reader.scan = None
            if batch is None:
                return
            yield batch

    def _sliced(self) -> Iterator[pa.RecordBatch]:
        """The result's rows as they arrive, within LIMIT and OFFSET."""
        skip, left = self._planned.slice.offset, self._planned.slice.count
        if left == 0:
            return
        for interval in self._scan.intervals(self._places):
            rows = self._rows(interval)
            skipped = min(skip, rows.num_rows)
            rows, skip = rows.slice(skipped, left), skip - skipped
            yield from rows.to_batches()
            if left is not None:
                left -= rows.num_rows
                if left == 0:
                    return

    def _rows(self, interval: Interval) -> pa.Table:
        assert self._planned.rows is not None
        leaves = {f"s_{name}": table for name, table in self._statics.items()}
        leaves[f"d{self._planned.stream}"] = interval.rows
        return self._engine.query_few(self._planned.rows, leaves, self._time_zone, self._scan)

    def _finished(self) -> Iterator[pa.RecordBatch]:
        """The result when the stream has ended."""
        assert self._planned.final is not None
        contents = {
            state.name: Content(state, named((state,), state.name, self._engine.merge(state, ())))
            for state in self._planned.states
        }
        for interval in self._scan.intervals(self._places) if self._planned.statements else ():
            for name, run in self._runs(interval).items():
                contents[name].add(run, self._engine)
        leaves = {f"s_{name}": content.snapshot(self._engine) for name, content in contents.items()}
        leaves |= {f"s_{name}": table for name, table in self._statics.items()}
        table = self._engine.query(self._planned.final, leaves, (), self._time_zone, self._scan)
        yield from table.to_batches()

    def _runs(self, interval: Interval) -> dict[str, pa.Table]:
        """What an interval adds to the states."""
        planned = self._planned
        inputs = Inputs(interval.rows, self._statics)
        job = Job(0, planned.statements, planned.states, inputs, interval.after, interval.upto, None, self._time_zone)
        with self._scan.job(job):
            runs = self._engine.run(job).runs
        return {name: named(planned.states, name, run) for name, run in runs.items()}


def with_values(query: Query, parameters: Sequence[Value]) -> Query:
    """The query with its parameters' values in place of them: it is planned for this once."""
    if not parameters:
        return query

    def change(node: object) -> object:
        return Literal(parameters[node.index], node.type) if isinstance(node, Parameter) else node

    changed: Query = rewrite(query, change)
    return changed

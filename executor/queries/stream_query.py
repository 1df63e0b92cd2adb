"""A query of a stream itself, run: the rows that arrive from its beginning on, until none has come for a while.

Owns: what the planner's three ways do with an interval of rows (``planner.stream_queries``), for which
``executor.subscriptions.arrival_scan`` waits. What is computed is the query over exactly the rows of (begin, end]; the
changes of a continuous view are rows like a stream's (``executor.subscriptions.view_feed``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import pyarrow as pa

from catalog.values.errors import unsupported
from executor.core.core import Core
from executor.engine import Inputs, Job
from executor.subscriptions.arrival_scan import ArrivalScan, Interval, Notify, Patience, StreamScan
from executor.subscriptions.change_scan import ChangeScan
from executor.subscriptions.feed import FeedReader
from executor.subscriptions.feeds import ChangeFeeds
from executor.traces.state import StateTrace
from executor.transactions.transaction import Transaction
from executor.views.path_runner import named, reads_places
from planner.algebra.nodes import Literal, Parameter, Relation, Value
from planner.incremental.names import stored_name
from planner.incremental.programs.program import Statement
from planner.statements.statement import Query
from planner.statements.walk import rewrite
from planner.stream_queries import Arriving, plan_arriving


class StreamServices(Protocol):
    """What a query of a stream needs of the services of a database."""

    @property
    def changes(self) -> ChangeFeeds:
        """The changes of continuous views."""
        ...


class StreamReader(Protocol):
    """What a query of a stream needs of its session's reader."""

    time_zone: str
    patience: Patience
    notify: Notify

    @property
    def core(self) -> Core:
        """What exists."""
        ...

    @property
    def present(self) -> FeedReader:
        """The rows that relations have now."""
        ...

    @property
    def services(self) -> StreamServices:
        """What else the reader reads from."""
        ...

    def tables(self, relations: Sequence[Relation], transaction: Transaction) -> tuple[int, list[pa.Table]]:
        """The rows of several relations at one moment, and its LSN."""
        ...

    def scanning(self, scan: ArrivalScan) -> AbstractContextManager[None]:
        """Within, the session's cancel ends a scan."""
        ...


class ArrivingQuery:
    """One query of a stream, from its beginning on. To iterate is to wait for rows."""

    def __init__(
        self, reader: StreamReader, query: Query, parameters: tuple[Value, ...], transaction: Transaction
    ) -> None:
        self._reader = reader
        self._engine = reader.core.engine
        self._time_zone = reader.time_zone
        self._planned: Arriving = plan_arriving(with_values(query, parameters))
        if self._planned.changes is not None:
            _require_committed(self._planned.stream, transaction, reader.core)
        self._scan = self._scanned(reader)
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
        self._places = reads_places(statements)
        if not transaction.explicit:  # the query may wait for ever, and ends where what it reads is dropped
            transaction.locks.release_reads()

    def _scanned(self, reader: StreamReader) -> ArrivalScan:
        """What is read as it arrives."""
        oid, changes = self._planned.stream, self._planned.changes
        if changes is not None:
            return ChangeScan(
                reader.core, reader.services.changes, reader.present, oid, changes, reader.patience, reader.notify
            )
        return StreamScan(reader.core, oid, reader.patience, reader.notify)

    @property
    def is_live(self) -> bool:
        """Whether rows go out before the end."""
        return self._planned.rows is not None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        rows = self._sliced() if self.is_live else self._finished()
        while True:
            with self._reader.scanning(self._scan):
                batch = next(rows, None)
            if batch is None:
                return
            yield batch

    def _sliced(self) -> Iterator[pa.RecordBatch]:
        """The result's rows as they arrive, within LIMIT and OFFSET."""
        skip, left = self._planned.limit.offset, self._planned.limit.count
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
        states = {
            state.name: StateTrace(state, named((state,), state.name, self._engine.merge(state, ())), self._engine)
            for state in self._planned.states
        }
        for interval in self._scan.intervals(self._places) if self._planned.statements else ():
            for name, run in self._runs(interval).items():
                states[name].append(run, interval.upto)
        leaves = {f"s_{name}": state.snapshot() for name, state in states.items()}
        leaves |= {f"s_{name}": table for name, table in self._statics.items()}
        table = self._engine.query(self._planned.final, leaves, (), self._time_zone, self._scan)
        yield from table.to_batches()

    def _runs(self, interval: Interval) -> dict[str, pa.Table]:
        """What an interval adds to the states."""
        planned = self._planned
        inputs = Inputs({planned.stream: interval.rows}, self._statics)
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


def _require_committed(oid: int, transaction: Transaction, core: Core) -> None:
    """Raises 0A000 for the changes of a relation that the transaction itself has defined."""
    own = None if transaction.catalog is None else transaction.catalog.objects.get(oid)
    if own is not None and own is not core.catalog.objects.get(oid):
        construct = f'millstream.changes() of "{own.name}", which this transaction has defined'
        raise unsupported(construct, "Commit the definition first.")

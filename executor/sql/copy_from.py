"""COPY FROM: where parsed batches go.

Owns: completing rows with defaults, WHERE, NOT NULL of streams, and the two targets: a stream (written ahead to the log
while more is parsed, so that a large COPY needs little memory and one commit record) and a table (one change set).
Knows nothing of text formats (protocol/copy) or of files: the server feeds a sink with those of COPY FROM 'file' too.
"""

from __future__ import annotations

import threading
from typing import Final

import pyarrow as pa
from msgspec import Struct

from catalog.objects import Stream, Table
from catalog.values.scales import scale_name
from catalog.values.types import BOOL
from executor.commit.encoding.payloads import Encoded, encode_data
from executor.commit.records import Spooled, SpoolReference, StreamRows
from executor.identity_cache import Remembered
from executor.sql import ddl
from executor.sql.environment import Environment
from executor.streams.runtime import fed_otherwise
from executor.tables.statements.effects import numbered
from executor.traces.layout import schema_of, stored_rows
from executor.transactions.transaction import Transaction
from planner.algebra.bound_rows import bound
from planner.algebra.nodes import Column, ColumnRef, Project, Relation, Values
from planner.statements.statement import CopyIn

#: A COPY of no more rows than this goes into the commit record itself.
SPOOL_ROWS = 20_000


class Prepared(Struct, frozen=True):
    """Complete rows, encoded for the log if it is certain that they will be written ahead."""

    batch: pa.RecordBatch
    encoded: Encoded | None


class CopySink:
    """One COPY's rows. ``prepare`` may run on many threads at once; ``write`` is called in order, on one at a time."""

    def __init__(self, session: Environment, statement: CopyIn, transaction: Transaction) -> None:
        self._session = session
        self.statement = statement
        self._transaction = transaction
        self._stored = statement.target.stored
        self._schema, self._places, self._is_whole = _shape(statement)
        self._completion = self._find_completion()
        self._defaults = self._evaluate_defaults()
        self._rows = 0
        self._held: list[pa.RecordBatch] = []
        self._references: list[SpoolReference] = []
        self._cancelled = threading.Event()
        if isinstance(statement.target, Stream):
            if not statement.target.has_writers:
                raise fed_otherwise(statement.target, "COPY")
            session.core.copies_running(+1)
        else:
            transaction.writer()

    @property
    def keeps_rows(self) -> bool:
        """Whether the rows that are written are those that were read, so that an error's row is a line's."""
        return self.statement.where is None

    def _evaluate_defaults(self) -> dict[int, pa.Scalar]:
        defaults = self.statement.defaults
        if not defaults or self._completion is not None:
            return {}
        outputs = tuple((Column(-1 - index, "", value.type), value) for index, value in defaults)
        query, zone = self._session.core.engine.query, self._session.time_zone
        row = query(Project(Values((), ((),)), outputs), {}, (), zone)
        return {index: row.column(at)[0] for at, (index, _) in enumerate(defaults)}

    def _find_completion(self) -> Relation | None:
        """The complete rows over all that were copied, where a default takes values of a sequence."""
        statement = self.statement
        defaults = dict(statement.defaults)
        if not any(self._stored[index].sequences for index in defaults):
            return None
        outputs = tuple(
            (Column(-1 - index, column.name, column.type), defaults.get(index, ColumnRef(column)))
            for index, column in enumerate(statement.row)
        )
        return Project(bound(statement.row), outputs)

    def _complete(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._is_whole:
            return pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)
        given = dict(zip(self._places, batch.columns, strict=True))
        arrays = [
            given[index] if index in given else self._constant(index, item.type, batch.num_rows)
            for index, item in enumerate(self._schema)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _constant(self, index: int, kind: pa.DataType, count: int) -> pa.Array:
        value = self._defaults.get(index)
        return pa.nulls(count, kind) if value is None else pa.repeat(value.cast(kind), count)

    def prepare(self, batch: pa.RecordBatch) -> Prepared:
        """Completes one parsed batch with the statement's columns in the statement's order, and behind them the scales
        of those that keep theirs. Raises 23502.
        """
        complete, target = self._complete(batch), self.statement.target
        if self.statement.where is not None and self._completion is None and complete.num_rows:
            complete = complete.filter(self._mask(pa.Table.from_batches([complete])).combine_chunks())
        if not isinstance(target, Stream):
            return Prepared(complete, None)
        ddl.check_not_null(target, complete)
        (complete,) = stored_rows(target, (complete,))
        # Rows only become more, so what is to be written ahead now will be when its turn comes.
        ahead = complete.num_rows > 0 and self._rows + complete.num_rows > SPOOL_ROWS
        return Prepared(complete, encode_data(complete) if ahead else None)

    def _mask(self, rows: pa.Table) -> pa.ChunkedArray:
        """Which rows meet WHERE."""
        where, row = self.statement.where, self.statement.row
        assert where is not None
        condition = Project(bound(row), ((Column(-1, "kept", BOOL), where),))
        bindings = {f"s_{bound(row).trace}": numbered(rows)}
        return self._session.core.engine.query(condition, bindings, (), self._session.time_zone).column(0)

    def write(self, prepared: Prepared) -> None:
        """Takes the next batch. Waits while the views of a stream lag too far behind; raises 57014 after ``cancel``."""
        rows = prepared.batch.num_rows
        if rows == 0:
            return
        self._rows += rows
        if isinstance(self.statement.target, Stream):
            self._session.admit(self.statement.target, self._cancelled.is_set)
            if self._rows > SPOOL_ROWS:
                self._spool(prepared)
                return
        self._held.append(prepared.batch)

    @property
    def is_cancelled(self) -> bool:
        """Whether ``cancel`` was called."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Ends a ``write`` that waits; may be called from any thread."""
        self._cancelled.set()

    def _spool(self, prepared: Prepared) -> None:
        sequencer, target = self._session.core.sequencer, self.statement.target
        held, self._held = self._held, []
        for batch in held:
            self._references.append(sequencer.spool(target.oid, batch))
        self._references.append(sequencer.spool(target.oid, prepared.batch, prepared.encoded))

    def finish(self) -> int:
        """Ends the statement; commits it when it is its own transaction. Number of rows."""
        try:
            self._finish()
        except BaseException:
            self.abort()
            raise
        self._ended()
        self._session.end_copy(error=False)
        return self._rows

    def _finish(self) -> None:
        target = self.statement.target
        if isinstance(target, Table):
            rows = pa.Table.from_batches(self._held, schema=self._schema)
            copied = self.statement
            if self._completion is not None:
                bindings = {f"s_{bound(copied.row).trace}": numbered(rows)}
                rows = self._session.evaluated(self._completion, self._transaction, self._schema, bindings)
                rows = rows.filter(self._mask(rows)) if copied.where is not None and rows.num_rows else rows
                self._rows = rows.num_rows
            writer, zone = self._transaction.writer(), self._session.time_zone
            writer.append(target, rows, zone, copied.checks, copied.row, copied.generated)
        elif self._references:
            self._transaction.parts.append(Spooled(target.oid, tuple(self._references)))
        elif self._held:
            self._transaction.parts.append(StreamRows(target.oid, tuple(self._held)))
        self._references, self._held = [], []

    def abort(self) -> None:
        """Ends the statement with nothing of it visible."""
        self._session.core.sequencer.discard(self._references)
        self._references, self._held = [], []
        self._ended()
        self._session.end_copy(error=True)

    def _ended(self) -> None:
        if isinstance(self.statement.target, Stream):
            self._session.core.copies_running(-1)


def _find_shape(statement: CopyIn) -> tuple[pa.Schema, tuple[int, ...], bool]:
    """A row; where in it each column of a parsed batch belongs; and whether that is where it is."""
    target = statement.target
    fields = ((item.name, item.type.arrow) for item in target.stored)
    schema = schema_of(target) if isinstance(target, Stream) else pa.schema(fields)
    places = {item.name: place for place, item in enumerate(target.stored)}
    given = [target.columns[index] for index in statement.columns]
    found = (*statement.columns, *(places[scale_name(item.name)] for item in given if item.keeps_scale))
    return schema, found, found == tuple(range(len(target.stored)))


_shape: Final = Remembered(_find_shape)

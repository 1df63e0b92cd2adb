"""Results of DuckDB as Arrow, in exactly the requested types, whole or read while they are computed.

Owns: ``arrow_table`` and ``arrow_reader``, which run a text; ``OpenRows``, a result that is computed while it is read;
and ``conform``. Knows nothing of statements, which belong to the connection.

DuckDB's documented ways to Arrow do some work twice: a cursor's rows are read through a second statement, which costs a
small result half as much again, and ``sql()`` binds a text before it runs it, which costs a small query two thirds of
its time. Both call ``submit``, which is called directly here.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

import duckdb
import pyarrow as pa
from duckdb import _seam

from catalog.values.errors import SqlError
from executor.embedded.errors import translate

#: An error after the first batch comes from pyarrow, which raises an OSError.
STREAMED: Final = (duckdb.Error, pa.ArrowException, OSError)
#: Rows per batch for a client that may read slowly.
PORTION: Final = 16_384


class Reading(Protocol):
    """The connection that computes a result."""

    is_lost: bool

    def next_batch(self, reader: Any, is_apart: bool) -> pa.RecordBatch:
        """The next batch of a reader. Raises StopIteration at the end."""
        ...

    def interrupt(self) -> None:
        """Makes the running call raise 57014."""
        ...


def arrow_table(cursor: Any, sql: str) -> pa.Table:
    """All rows of a query, in DuckDB's types. Raises DuckDB's errors."""
    return _seam.submit(cursor, sql, None, "arrow").arrow_table()


def arrow_reader(cursor: Any, sql: str, rows: int) -> Any:
    """Batches of at most this many rows, computed while they are read; the rows of an EXECUTE are computed first.
    Raises DuckDB's errors."""
    return _seam.submit(cursor, sql, None, "stream", rows).arrow_reader()


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with exactly the schema's types; DuckDB's decimals may be narrower or wider. Raises 22003."""
    if table.num_columns > len(schema):  # the constant column of a relation without columns
        return pa.Table.from_arrays(table.columns[: len(schema)], schema=schema) if len(schema) else table
    if table.schema.equals(schema):
        return table
    try:
        return table.cast(schema)
    except pa.ArrowInvalid as error:
        raise SqlError("22003", "numeric field overflow", str(error)) from error


def _nothing() -> None:
    """The callback of an open result that no other object observes."""


class OpenRows:
    """The rows of a result that is computed while it is read. Until its end it needs its connection alone: another
    statement there first reads the remaining rows into memory. Used by one thread at a time, except that any thread may
    call ``interrupt``."""

    def __init__(
        self,
        connection: Reading,
        reader: Any,
        schema: pa.Schema,
        closed: Callable[[], None],
        is_apart: bool,
    ) -> None:
        """``reader`` gives DuckDB's batches. ``closed`` is called at the end, before the reader is closed.
        ``is_apart``: a batch may not react to an interrupt for long."""
        self._connection = connection
        self._is_apart = is_apart
        self._reader = reader
        self._schema = schema
        self._closed = closed
        self._taken: deque[pa.RecordBatch] = deque()
        self._error: SqlError | None = None
        self._ended: list[Callable[[], None]] = []
        self._failed: Callable[[], None] = _nothing

    def __iter__(self) -> OpenRows:
        return self

    def begin(self) -> pa.Table | None:
        """All rows if they fit in one batch; else None, with the first rows kept for reading. Raises DuckDB's
        errors."""
        try:
            while sum(batch.num_rows for batch in self._taken) < PORTION:
                self._taken.append(self._next())
        except StopIteration:
            # A relation without columns has a constant column, which counts its rows.
            schema = self._taken[0].schema if self._taken else self._schema
            table = pa.Table.from_batches(self._taken, schema)
            self.close()
            return table
        except BaseException:
            self.close()
            raise
        return None

    def __next__(self) -> pa.RecordBatch:
        if self._taken:
            return self._taken.popleft()
        if self._reader is None:
            error, self._error = self._error, None
            if error is not None:
                raise error
            raise StopIteration
        batch = self._read()
        if batch is None:
            raise StopIteration
        return batch

    def _read(self) -> pa.RecordBatch | None:
        """The next batch from the engine; None at the end."""
        try:
            return self._next()
        except StopIteration:
            self.close()
            return None
        except STREAMED as error:
            self._fail()
            raise translate(error) from error
        except BaseException:
            self._fail()
            raise

    def _fail(self) -> None:
        self._failed()
        self.close()

    def _next(self) -> pa.RecordBatch:
        return self._conformed(self._connection.next_batch(self._reader, self._is_apart))

    def _conformed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.schema.equals(self._schema):
            return batch
        batches = conform(pa.Table.from_batches([batch]), self._schema).combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], self._schema)

    def at_end(self, call: Callable[[], None]) -> None:
        """Calls ``call`` when the connection is free again; at once if it is free."""
        if self._reader is None:
            call()
        else:
            self._ended.append(call)

    def at_failure(self, call: Callable[[], None]) -> None:
        """Calls ``call`` if a later row raises an error."""
        self._failed = call

    def settle(self) -> None:
        """Reads the remaining rows into memory; an error is kept and raised after them."""
        try:
            while (batch := self._read()) is not None:
                self._taken.append(batch)
        except SqlError as error:
            self._error = error

    def interrupt(self) -> None:
        """Makes a running read raise 57014."""
        if self._reader is not None:
            self._connection.interrupt()

    def close(self) -> None:
        """Stops computing rows; the connection is free. Closing twice is harmless."""
        reader, self._reader = self._reader, None
        if reader is None:
            return
        self._closed()
        if not self._connection.is_lost:
            with contextlib.suppress(*STREAMED):
                reader.close()
        del reader
        calls, self._ended = self._ended, []
        for call in calls:
            call()

    def __del__(self) -> None:
        self.close()

"""Single rows into streams: many sessions' rows become one log record and one fsync.

The appender gathers the rows that arrive in one turn of the event loop, or while the disk is busy with one record, into
the next one (group commit), and encodes them. ``executor/rows/literal_rows`` makes a row's values.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from msgspec import Struct, field

from catalog.objects import Stream
from catalog.values.errors import SqlError
from executor.commit.encoding.frames import ValuesEncoder
from executor.commit.records import RowValues, StreamRows
from executor.identity_cache import Remembered
from executor.rows.literal_rows import Maker, row_makers
from executor.traces.layout import schema_of, stored_rows
from planner.algebra.nodes import Value
from planner.statements.statement import Insert

if TYPE_CHECKING:
    from executor.commit.sequencer import Sequencer

Done = Callable[[SqlError | None], None]

_MAKERS = 1024
#: Rows of a stream in one record that are kept as values; of more, an Arrow batch is cheaper.
_FEW: Final = 1024

_LOGGER: Final = logging.getLogger(__name__)


class _Waiting(Struct):
    """A stream's rows that no record has yet."""

    stream: Stream
    rows: list[tuple[Value, ...]] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    sync: bool = False


#: Calls back: soon on the calling thread, or on another one.
Caller = Callable[[Callable[[], None]], object]


class Appender:
    """Gathers rows of all streams for one log record, which the log's writer thread fetches when the disk is ready
    for it. ``append`` is called on one thread, an event loop's once ``serve`` was called."""

    def __init__(self, sequencer: Sequencer) -> None:
        self._sequencer = sequencer
        self._waiting: dict[int, _Waiting] = {}
        self._called = False
        self._lock = threading.Lock()
        self._soon: Caller = _at_once
        self._later: Caller = _at_once
        self._makers: Remembered[Insert, tuple[Maker, ...] | None] = Remembered(row_makers, _MAKERS)
        self._encoders: dict[int, tuple[Stream, pa.Schema, ValuesEncoder]] = {}

    def serve(self, soon: Caller, later: Caller) -> None:
        """From now on ``soon`` calls back on the calling thread once the messages that are there are handled, so that
        the writer thread does not compete with them for the interpreter; ``later`` carries each call of ``done`` to
        that thread."""
        self._soon, self._later = soon, later

    def check(self, insert: Insert, parameters: tuple[Value, ...]) -> None:
        """Raises what ``append`` would raise for the values of one execution."""
        for make in self._makers(insert) or ():
            make(parameters)

    def append(self, insert: Insert, rows: list[tuple[Value, ...]], sync: bool, done: Done) -> bool:
        """Queues one statement's rows; see AtOnce.append."""
        makers = self._makers(insert)
        if makers is None:
            return False
        values = [make(parameters) for parameters in rows for make in makers]
        stream = insert.target
        assert isinstance(stream, Stream)
        with self._lock:
            waiting = self._waiting.get(stream.oid)
            if waiting is None:
                waiting = self._waiting[stream.oid] = _Waiting(stream)
            waiting.rows += values
            waiting.done.append(done)
            waiting.sync |= sync
            if self._called:
                return True
            self._called = True
        self._soon(self._wake)
        return True

    def _wake(self) -> None:
        """Has the writer thread fetch what has gathered."""
        self._sequencer.call(self._flush)

    def _flush(self) -> None:
        """On the writer thread: submits what has gathered."""
        gathered = self._take()
        parts = self._parts(gathered)
        if parts:
            self._submit(parts, gathered)

    def _take(self) -> list[_Waiting]:
        with self._lock:
            gathered, self._waiting = self._waiting, {}
            self._called = False
        return list(gathered.values())

    def _parts(self, gathered: list[_Waiting]) -> list[StreamRows | RowValues]:
        """A part for each stream; those whose rows cannot be encoded fail, and leave ``gathered``."""
        parts: list[StreamRows | RowValues] = []
        for waiting in tuple(gathered):
            try:
                parts.append(self._part(waiting.stream, waiting.rows))
            except Exception as error:
                gathered.remove(waiting)
                self._later(partial(_finish, [waiting], error))
        return parts

    def _part(self, stream: Stream, rows: list[tuple[Value, ...]]) -> StreamRows | RowValues:
        known = self._encoders.get(stream.oid)
        if known is None or known[0] is not stream:
            schema = schema_of(stream)
            known = self._encoders[stream.oid] = (stream, schema, ValuesEncoder(schema))
        _, schema, encoder = known
        is_few = len(rows) <= _FEW and not stream.layout
        frame = encoder.encode(rows) if encoder.is_possible and is_few else None
        if frame is not None:
            return RowValues(stream.oid, rows, frame)
        columns = zip(*rows, strict=True)
        arrays = [pa.array(values, item.type) for values, item in zip(columns, schema, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        return StreamRows(stream.oid, stored_rows(stream, (batch,)))

    def _submit(self, parts: list[StreamRows | RowValues], gathered: list[_Waiting]) -> None:
        try:
            ticket = self._sequencer.submit(parts, sync=any(each.sync for each in gathered))
        except Exception as error:
            self._later(partial(_finish, gathered, error))
            return

        def finished(error: Exception | None) -> None:
            self._later(partial(_finish, gathered, error))

        ticket.on_done(finished)

    def close(self) -> None:
        """Submits what is queued; the sequencer's own end makes it durable."""
        self._flush()


def _finish(gathered: list[_Waiting], error: BaseException | None) -> None:
    """Answers all clients whose rows are durable, or have failed."""
    known = error if error is None or isinstance(error, SqlError) else SqlError("XX000", str(error))
    for waiting in gathered:
        for done in waiting.done:
            try:
                done(known)
            except Exception:  # an error of its owner alone
                _LOGGER.exception("an answer to rows failed")


def _at_once(call: Callable[[], None]) -> None:
    call()

"""Single rows into streams: many sessions' rows become one log record and one fsync.

Owns the gathering of rows (group commit: what comes while one record is being made durable, and for as long after it as
``executor/commit/delay`` allows, forms the next) and their encoding. What a row's values are: ``row_values``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from msgspec import Struct, field

from catalog.objects import Stream
from catalog.values.errors import SqlError
from executor.commit.delay import CommitDelay
from executor.commit.files import Watch
from executor.commit.frames import ValuesEncoder
from executor.commit.records import RowValues, StreamRows
from executor.rows.literal_rows import Maker, row_makers
from executor.traces.layout import schema_of, stored_rows
from planner.algebra.scalars import Value
from planner.statements.statement import Insert

if TYPE_CHECKING:
    from executor.commit.log import Log
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


#: Calls back: soon, or on another thread.
Caller = Callable[[Callable[[], None]], object]


class Appender:
    """Gathers rows of all streams for one log record.

    ``append`` is called on one thread, an event loop's, once ``serve`` has said how that thread is called back. Then
    the rows of one turn of the loop, and those that come while the disk is busy with the record before or soon after,
    become one record, which the loop's thread commits without waiting for the disk. Where that cannot be, or somebody
    else commits, the log's writer thread fetches the rows when it is ready for the next record.
    """

    def __init__(self, log: Log, sequencer: Sequencer) -> None:
        self._log, self._sequencer = log, sequencer
        self._waiting: dict[int, _Waiting] = {}
        self._called = False
        self._lock = threading.Lock()
        self._soon: Caller | None = None
        self._later: Caller = _at_once
        #: Whether a record that the loop's thread has begun is on its way to the disk, or the next one gathers; only
        #: it looks.
        self._commits = False
        self._delay = CommitDelay()
        self._makers: dict[int, tuple[Insert, tuple[Maker, ...] | None]] = {}
        self._encoders: dict[int, tuple[Stream, pa.Schema, ValuesEncoder]] = {}

    def serve(self, soon: Caller, later: Caller, watch: Watch) -> bool:
        """``soon`` calls back on the calling thread, the only one that appends, when it has nothing else to do;
        ``later`` has that thread called from any other, and ``watch`` when a descriptor can be read. Each ``done`` is
        called on that thread then. False where its files cannot be watched."""
        self._later = later
        if self._log.watch(watch):
            self._soon = soon
        return self._soon is not None

    def _makers_of(self, insert: Insert) -> tuple[Maker, ...] | None:
        known = self._makers.get(id(insert))
        if known is None or known[0] is not insert:
            if len(self._makers) >= _MAKERS:
                self._makers.clear()
            known = self._makers[id(insert)] = (insert, row_makers(insert))
        return known[1]

    def check(self, insert: Insert, parameters: tuple[Value, ...]) -> None:
        """Raises what ``append`` would raise for the values of one execution."""
        for make in self._makers_of(insert) or ():
            make(parameters)

    def append(self, insert: Insert, rows: list[tuple[Value, ...]], sync: bool, done: Done) -> bool:
        """Queues one statement's rows; see AtOnce.append."""
        makers = self._makers_of(insert)
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
        if self._soon is not None:
            self._soon(self._flush_soon)
        else:
            self._sequencer.call(self._flush)
        return True

    def append_durably(self, insert: Insert, parameters: tuple[Value, ...], durable: Callable[[], None]) -> bool:
        """Commits one statement's rows while the caller, that thread, waits for the disk; see ``commit_durably``.
        False: there is more to gather, or something is in the way, and nothing happened. Raises SqlError for a bad
        value."""
        if self._soon is None or self._commits or self._waiting or not self._log.is_direct:
            return False
        makers = self._makers_of(insert)
        if makers is None:
            return False
        stream = insert.target
        assert isinstance(stream, Stream)
        part = self._part(stream, [make(parameters) for make in makers])
        return isinstance(part, RowValues) and self._sequencer.commit_durably(part, durable)

    def _flush_soon(self) -> None:
        """On the loop's thread: commits what has gathered, or leaves it to the writer thread.

        A writer thread that is busy calls back when it no longer is: handed more each time, it would never be idle,
        and the way without it not be found again.
        """
        if self._commits:  # what has gathered goes next
            return
        if not self._are_few():
            self._sequencer.call(self._flush)
        elif self._sequencer.is_busy:
            self._sequencer.call(self._hand_back)
        else:
            self._commit()

    def _hand_back(self) -> None:
        """On the writer thread."""
        self._later(self._flush_again)

    def _flush_again(self) -> None:
        """On the loop's thread: a writer thread that others keep busy takes the rows along."""
        if self._are_few() and not self._sequencer.is_busy:
            self._commit()
        else:
            self._sequencer.call(self._flush)

    def _are_few(self) -> bool:
        return all(len(each.rows) <= _FEW for each in self._waiting.values())

    def _commit(self) -> None:
        """On the loop's thread."""
        gathered = self._take()
        parts = self._parts(gathered)
        if not parts:
            return
        if all(isinstance(part, RowValues) for part in parts):
            sync = any(each.sync for each in gathered)
            self._commits = True
            if self._sequencer.commit_soon(parts, sync, partial(self._committed, gathered)):
                return
            self._commits = False
        self._submit(parts, gathered)

    def _committed(self, gathered: list[_Waiting], error: Exception | None) -> None:
        """On the loop's thread: the disk is given its next record before it is said who is on it, unless those who
        are told so should join that record."""
        here = _statements(self._waiting.values())
        self._delay.expect(_statements(gathered) + here)
        if self._delay.goes_on(here):
            _finish(gathered, error)
            self._gather()
        else:
            self._go_on()
            _finish(gathered, error)

    def _gather(self) -> None:
        """On the loop's thread, again and again until it is enough."""
        if self._delay.goes_on(_statements(self._waiting.values())):
            assert self._soon is not None
            self._soon(self._gather)
        else:
            self._go_on()

    def _go_on(self) -> None:
        self._commits = False
        if self._waiting:
            self._flush_soon()

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


def _statements(gathered: Iterable[_Waiting]) -> int:
    return sum(len(each.done) for each in gathered)


def _finish(gathered: list[_Waiting], error: BaseException | None) -> None:
    """Tells everybody whose rows are durable, or why they are not."""
    known = error if error is None or isinstance(error, SqlError) else SqlError("XX000", str(error))
    for waiting in gathered:
        for done in waiting.done:
            try:
                done(known)
            except Exception:  # its owner's fault, and nobody else's
                _LOGGER.exception("an answer to rows failed")


def _at_once(call: Callable[[], None]) -> None:
    call()

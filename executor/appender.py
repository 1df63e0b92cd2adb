"""Single rows into streams: many sessions' rows become one log record and one fsync.

Owns: turning the literal rows of an INSERT into column values, and gathering them while the log is busy (group commit:
what comes while one record is being made durable forms the next). A row costs a microsecond or two of Python; all else
is per record.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from catalog.errors import SqlError, out_of_range
from catalog.objects import Stream
from catalog.types import SqlType
from executor import ddl
from executor.commit.files import Watch
from executor.commit.frames import ValuesEncoder
from executor.commit.records import RowValues, StreamRows
from planner.expression import Cast, Literal, Parameter, Scalar, Value
from planner.statements import Insert

if TYPE_CHECKING:
    from executor.database import Database

Done = Callable[[SqlError | None], None]


def row_values(
    rows: tuple[tuple[Scalar, ...], ...], parameters: tuple[Value, ...], target: Stream
) -> list[tuple[Value, ...]] | None:
    """The values of literal rows; None when an expression needs an engine. Raises 23502, 22001 and 22003."""
    found = []
    for row in rows:
        values = []
        for item in row:
            known, value = _value(item, parameters)
            if not known:
                return None
            values.append(value)
        found.append(tuple(values))
    _check_not_null(target, found)
    return found


def _check_not_null(target: Stream, rows: list[tuple[Value, ...]]) -> None:
    for index, column in enumerate(target.columns):
        if column.not_null and any(row[index] is None for row in rows):
            message = f'null value in column "{column.name}" of relation "{target.name}" violates not-null constraint'
            raise SqlError("23502", message)


def _value(item: Scalar, parameters: tuple[Value, ...]) -> tuple[bool, Value]:
    match item:
        case Literal(value=value):
            return True, fit(value, item.type)
        case Parameter(index=index):
            return True, fit(parameters[index], item.type)
        case Cast(argument=Literal() | Parameter() as argument, explicit=False) if _same_form(argument.type, item.type):
            known, value = _value(argument, parameters)
            return known, fit(value, item.type)
        case _:
            return False, None


def _same_form(source: SqlType, target: SqlType) -> bool:
    """Whether a value of one type is one of the other after ``fit``."""
    integers, strings = ("int2", "int4", "int8"), ("text", "varchar")
    if source.name in integers:
        return target.name in (*integers, "numeric")
    if source.name in strings:
        return target.name in strings
    return source.name == target.name and source.name in ("numeric", "bpchar")


_INTEGER_BITS = {"int2": 15, "int4": 31, "int8": 63}
_INTEGER_NAMES = {"int2": "smallint", "int4": "integer", "int8": "bigint"}


def fit(value: Value, kind: SqlType) -> Value:
    """A value as its column's Arrow type takes it: numerics rounded to their scale, lengths and ranges checked."""
    if value is None:
        return None
    if kind.name in _INTEGER_BITS:
        assert isinstance(value, int)
        if not -(1 << _INTEGER_BITS[kind.name]) <= value < 1 << _INTEGER_BITS[kind.name]:
            raise out_of_range(f"{_INTEGER_NAMES[kind.name]} out of range")
        return value
    if kind.name == "numeric":
        return _fit_numeric(value, kind)
    if kind.name in ("varchar", "bpchar") and kind.modifiers:
        assert isinstance(value, str)
        if len(value) > kind.modifiers[0]:
            if value[kind.modifiers[0] :].strip(" "):
                raise SqlError("22001", f"value too long for type {kind}")
            value = value[: kind.modifiers[0]]
        return value.rstrip(" ") if kind.name == "bpchar" else value
    return _fit_interval(value) if kind.name == "interval" else value


def _fit_interval(value: Value) -> pa.MonthDayNano:
    assert isinstance(value, tuple)
    months, days, microseconds = value
    nanoseconds = microseconds * 1000
    if not -(1 << 63) <= nanoseconds < 1 << 63:
        raise SqlError("22008", "interval out of range")
    return pa.MonthDayNano([months, days, nanoseconds])


def _fit_numeric(value: Value, kind: SqlType) -> Decimal:
    exact = value if isinstance(value, Decimal) else Decimal(str(value))
    if not exact.is_finite():
        raise out_of_range(f"numeric field overflow: {exact} has no representation in {kind}")
    rounded = exact.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, _CONTEXT) if exact else Decimal(0)
    if rounded and rounded.adjusted() >= kind.precision - kind.scale:
        raise SqlError(
            "22003",
            "numeric field overflow",
            f"A field with precision {kind.precision}, scale {kind.scale} must round to an absolute value less than "
            f"10^{kind.precision - kind.scale}.",
        )
    return rounded


_CONTEXT = Context(prec=200)


#: Makes a row's values of a statement's parameters.
Maker = Callable[[tuple[Value, ...]], tuple[Value, ...]]


def row_makers(insert: Insert) -> tuple[Maker, ...] | None:
    """One maker for each literal row of an INSERT into a stream; None when an expression needs an engine."""
    target, literals = insert.target, insert.literals
    if not isinstance(target, Stream) or literals is None or target.option("source"):
        return None
    makers = []
    for row in literals:
        if not all(_is_plain(item) for item in row):
            return None
        makers.append(_maker(row, target))
    return tuple(makers)


def _is_plain(item: Scalar) -> bool:
    match item:
        case Literal() | Parameter():
            return True
        case Cast(argument=Literal() | Parameter() as argument, explicit=False):
            return _same_form(argument.type, item.type)
        case _:
            return False


def _maker(row: tuple[Scalar, ...], target: Stream) -> Maker:
    """Constants are made once; parameters whose type needs no fitting are taken as they are."""
    template = [_constant(item) for item in row]
    plain = [(place, item.index) for place, item in enumerate(row) if isinstance(item, Parameter) and _fits(item)]
    others = [(place, item) for place, item in enumerate(row) if _parameter(item) is not None and not _fits(item)]
    checked = any(column.not_null for column in target.columns)

    def make(parameters: tuple[Value, ...]) -> tuple[Value, ...]:
        made = template.copy()
        for place, index in plain:
            made[place] = parameters[index]
        for place, item in others:
            made[place] = _value(item, parameters)[1]
        values = tuple(made)
        if checked:
            _check_not_null(target, [values])
        return values

    return make


def _parameter(item: Scalar) -> Parameter | None:
    argument = item.argument if isinstance(item, Cast) else item
    return argument if isinstance(argument, Parameter) else None


def _constant(item: Scalar) -> Value:
    """The value of an expression without parameters; None for others."""
    return None if _parameter(item) is not None else _value(item, ())[1]


def _fits(item: Scalar) -> bool:
    """Whether a parameter's value is the column's as it comes."""
    return isinstance(item, Parameter) and item.type.name not in _FITTED


#: Parameters arrive in their type's range, but a numeric has a scale, a varchar a length, an interval its Arrow form.
_FITTED = ("numeric", "varchar", "bpchar", "interval")
_MAKERS = 1024
#: Rows of a stream in one record that are kept as values; of more, an Arrow batch is cheaper.
_FEW: Final = 1024

_LOGGER: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class _Waiting:
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
    the rows of one turn of the loop, and those that come while the disk is busy with the record before, become one
    record, which the loop's thread commits without waiting for the disk. Where that cannot be, or somebody else
    commits, the log's writer thread fetches the rows when it is ready for the next record.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[int, _Waiting] = {}
        self._called = False
        self._lock = threading.Lock()
        self._soon: Caller | None = None
        self._later: Caller = _at_once
        #: Whether a record that the loop's thread has begun is on its way to the disk; only it looks.
        self._commits = False
        self._makers: dict[int, tuple[Insert, tuple[Maker, ...] | None]] = {}
        self._encoders: dict[int, tuple[Stream, pa.Schema, ValuesEncoder]] = {}

    def serve(self, soon: Caller, later: Caller, watch: Watch) -> None:
        """``soon`` calls back on the calling thread, the only one that appends, when it has nothing else to do;
        ``later`` has that thread called from any other, and ``watch`` when a descriptor can be read. Each ``done`` is
        called on that thread then."""
        self._later = later
        if self._database.log.watch(watch):
            self._soon = soon

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
        """Queues one statement's rows; see DatabaseSession.append_rows."""
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
            self._database.sequencer.call(self._flush)
        return True

    def _flush_soon(self) -> None:
        """On the loop's thread: commits what has gathered, or leaves it to the writer thread.

        A writer thread that is busy calls back when it no longer is: handed more each time, it would never be idle,
        and the way without it not be found again.
        """
        if self._commits:  # what has gathered goes next
            return
        if not self._are_few():
            self._database.sequencer.call(self._flush)
        elif self._database.sequencer.is_busy:
            self._database.sequencer.call(self._hand_back)
        else:
            self._commit()

    def _hand_back(self) -> None:
        """On the writer thread."""
        self._later(self._flush_again)

    def _flush_again(self) -> None:
        """On the loop's thread: a writer thread that others keep busy takes the rows along."""
        if self._are_few() and not self._database.sequencer.is_busy:
            self._commit()
        else:
            self._database.sequencer.call(self._flush)

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
            if self._database.sequencer.commit_soon(parts, sync, partial(self._committed, gathered)):
                return
            self._commits = False
        self._submit(parts, gathered)

    def _committed(self, gathered: list[_Waiting], error: Exception | None) -> None:
        """On the loop's thread: the disk is given its next record before it is said who is on it."""
        self._commits = False
        if self._waiting:
            self._flush_soon()
        _finish(gathered, error)

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
                parts.append(self._part(waiting))
            except Exception as error:
                gathered.remove(waiting)
                self._later(partial(_finish, [waiting], error))
        return parts

    def _part(self, waiting: _Waiting) -> StreamRows | RowValues:
        stream, rows = waiting.stream, waiting.rows
        known = self._encoders.get(stream.oid)
        if known is None or known[0] is not stream:
            schema = ddl.schema_of(stream)
            known = self._encoders[stream.oid] = (stream, schema, ValuesEncoder(schema))
        _, schema, encoder = known
        frame = encoder.encode(rows) if encoder.is_possible and len(rows) <= _FEW else None
        if frame is not None:
            return RowValues(stream.oid, rows, frame)
        columns = zip(*rows, strict=True)
        arrays = [pa.array(values, item.type) for values, item in zip(columns, schema, strict=True)]
        return StreamRows(stream.oid, (pa.RecordBatch.from_arrays(arrays, schema=schema),))

    def _submit(self, parts: list[StreamRows | RowValues], gathered: list[_Waiting]) -> None:
        try:
            ticket = self._database.sequencer.submit(parts, sync=any(each.sync for each in gathered))
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

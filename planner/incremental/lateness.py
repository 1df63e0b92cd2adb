"""Rows of a stream that come too late for a grouping: left out as they arrive.

    in_time(delta)     delta join (by LSN) Project(each LSN of the delta, the latest time before it)
                       on time + age > the latest time before

The latest time before a transaction is that of the state as it was before the delta, and of the delta's transactions
before it. So a row is in time or not whatever deltas the log is cut into, and rows of one transaction never make each
other late.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from catalog.values.types import BOOL
from planner.algebra.construction import Fresh, conjunction, equality, keep_columns
from planner.algebra.event_time import Watermark, later
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Column,
    ColumnRef,
    Delta,
    Join,
    Literal,
    Project,
    Relation,
    Scalar,
    Scan,
    Snapshot,
    SortKey,
    Window,
    WindowCall,
)
from planner.incremental.names import LSN, stored_name

_TRUE: Final = Literal(True, BOOL)


class Horizon(Struct, frozen=True):
    """A row counts whose ``column`` lies less than ``age`` microseconds before ``latest``, the latest event time of the
    transactions before its own."""

    column: str
    age: int
    latest: Aggregate


def latest_time(stream: Scan, watermark: Watermark, fresh: Fresh) -> Aggregate:
    """The latest event time of all rows, whatever the view's own pipeline leaves of them."""
    column = next(
        item for item, source in zip(stream.columns, stream.sources, strict=True) if source == watermark.column
    )
    time = fresh.copy(column)
    scan = Scan(stream.oid, stream.name, "stream", (time,), (watermark.column,))
    latest = fresh.column(f"latest_{watermark.column}", time.type)
    return Aggregate(scan, (), ((latest, AggregateCall("max", (ColumnRef(time),), time.type)),))


def in_time(
    delta: Delta, horizon: Horizon, trace: str, latest: Column, fresh: Fresh, timeless: bool = False
) -> Relation:
    """The delta's rows that count; ``latest`` is the column of state ``trace`` with the latest time. Rows without a
    time count if ``timeless`` says so."""
    columns = dict(zip(delta.sources, delta.columns, strict=True))
    time, lsn = columns[horizon.column], columns[LSN]
    before = _before(delta, time, lsn, horizon, fresh)
    mark = fresh.copy(latest)
    known = fresh.copy(latest)
    state = Aggregate(
        Snapshot(trace, (mark,), (stored_name(latest),)), (), ((known, _latest(ColumnRef(mark), latest)),)
    )
    number, seen = before.columns
    top = fresh.column("latest_before", time.type)
    both = Call("greatest", (ColumnRef(seen), ColumnRef(known)), time.type)
    own = fresh.copy(number)
    marks = Project(Join("inner", before, state, None), ((own, ColumnRef(number)), (top, both)))
    later_than = Call("gt", (later(ColumnRef(time), horizon.age), ColumnRef(top)), BOOL)
    counts: tuple[Scalar, ...] = (
        equality(ColumnRef(lsn), ColumnRef(own)),
        *(() if timeless else (Call("is_not_null", (ColumnRef(time),), BOOL),)),
        Call("coalesce", (later_than, _TRUE), BOOL),
    )
    return keep_columns(Join("inner", delta, marks, conjunction(counts)), delta.columns)


def late(delta: Delta, kept: Relation, time: Column, number: Column, fresh: Fresh) -> Relation:
    """How many of the delta's rows with a time are not ``kept``, which are those in time: one row, one column."""
    every, some = fresh.copy(number), fresh.copy(number)
    counted = Aggregate(delta, (), ((every, AggregateCall("count", (ColumnRef(time),), number.type)),))
    others = Aggregate(kept, (), ((some, AggregateCall("count", (), number.type)),))
    left = Call("sub", (ColumnRef(every), ColumnRef(some)), number.type)
    return Project(Join("inner", counted, others, None), ((number, left),))


def _before(delta: Delta, time: Column, lsn: Column, horizon: Horizon, fresh: Fresh) -> Relation:
    """The delta's LSNs with the latest time of its rows before each."""
    times, numbers, number = fresh.copy(time), fresh.copy(lsn), fresh.copy(lsn)
    again = Delta(delta.oid, delta.name, (times, numbers), (horizon.column, LSN))
    top, running, seen = (fresh.column(name, time.type) for name in ("top", "running", "seen"))
    each = Aggregate(again, ((number, ColumnRef(numbers)),), ((top, _latest(ColumnRef(times), time)),))
    order = (SortKey(ColumnRef(number)),)
    upto = Window(each, ((running, WindowCall("max", (ColumnRef(top),), time.type, (), order)),))
    previous = Window(upto, ((seen, WindowCall("lag", (ColumnRef(running),), time.type, (), order)),))
    return keep_columns(previous, (number, seen))


def _latest(time: ColumnRef, column: Column) -> AggregateCall:
    return AggregateCall("max", (time,), column.type)

"""Taking rows out of a state that no result needs any more: groups older than a view's retention.

Owns the one step from what a program says (``planner.incremental.programs.program.Expiry``) to rows that stay. A row
may go as soon as a watermark that will not be taken back has passed it, and need not go at once: the view's query hides
it anyway. Where sessions are made of a state's rows, a row goes with its session, once all of the state's rows are
there::

    last       of each row that no other of its keys follows within the gap, its time; of others NULL
    ends       the first last from each row's time on
    stays      ends + age > latest
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute

from catalog.values.types import BOOL, INT8
from planner.algebra.event_time import later
from planner.algebra.nodes import (
    Call,
    Case,
    Column,
    ColumnRef,
    Filter,
    Literal,
    Project,
    Relation,
    Snapshot,
    SortKey,
    Window,
    WindowCall,
)
from planner.incremental.names import stored_name
from planner.incremental.programs.program import Expiry

_EPOCHS: Final = {"timestamp": datetime(1970, 1, 1), "timestamptz": datetime(1970, 1, 1, tzinfo=UTC)}
_compute: Any = pyarrow.compute  # made at its import, where no type checker sees its functions


Query = Callable[[Relation, Mapping[str, pa.Table]], pa.Table]
_ROWS: Final = "__rows"


def unexpired(table: pa.Table, expiry: Expiry, marks: Iterable[pa.Table], query: Query) -> pa.Table:
    """The rows of a state that a result may need; ``marks`` are the watermark's state, in any number of runs."""
    columns = [mark.column(stored_name(expiry.latest)).cast(pa.int64()) for mark in marks]
    latest = max((time for column in columns for time in column.to_pylist() if time is not None), default=None)
    if latest is None or not table.num_rows:
        return table
    starts = table.column(stored_name(expiry.column)).cast(pa.int64())
    stays = _compute.fill_null(_compute.greater(starts, latest - expiry.age), False)
    if _compute.all(stays).as_py():
        return table
    if expiry.gap is None:
        return table.filter(stays).combine_chunks()
    numbered = table.append_column("place", pa.array(np.arange(table.num_rows)))
    left = query(_in_sessions(expiry, latest), {f"s_{_ROWS}": numbered.select([*_names(expiry), "place"])})
    return table if left.num_rows == table.num_rows else table.take(left.column(0).sort()).combine_chunks()


def _names(expiry: Expiry) -> list[str]:
    return [stored_name(column) for column in (expiry.column, *expiry.others)]


def _in_sessions(expiry: Expiry, latest: int) -> Relation:
    """The places of rows whose sessions stay."""
    assert expiry.gap is not None
    free = -1 - max(0, *(abs(column.id) for column in (expiry.column, *expiry.others)))
    place, after, last, ends = (Column(free - n, f"e{n}", INT8 if n == 0 else expiry.column.type) for n in range(4))
    time = ColumnRef(expiry.column)
    columns = (expiry.column, *expiry.others, place)
    rows = Snapshot(_ROWS, columns, (*_names(expiry), "place"))
    others = tuple(map(ColumnRef, expiry.others))
    following = WindowCall("lead", (time,), time.type, others, (SortKey(time),))
    goes_on = Call("le", (ColumnRef(after), later(time, expiry.gap)), BOOL)
    none = Literal(None, time.type)
    ended = Project(
        Window(rows, ((after, following),)),
        (*((column, ColumnRef(column)) for column in columns), (last, Case(((goes_on, none),), time, time.type))),
    )
    backwards = (SortKey(time, descending=True),)
    first = WindowCall("min", (ColumnRef(last),), time.type, others, backwards)
    mark = Literal(_EPOCHS[time.type.name] + timedelta(microseconds=latest), time.type)
    stays = Call("gt", (later(ColumnRef(ends), expiry.age), mark), BOOL)
    return Project(Filter(Window(ended, ((ends, first),)), stays), ((place, ColumnRef(place)),))

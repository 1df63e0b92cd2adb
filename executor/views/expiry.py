"""Taking rows out of a state that no result needs any more: those older than a view's retention, or than it compares
with the time of its reads.

Owns the one step from what a program says (``planner.incremental.programs.program.Expiry``) to rows that stay. A row
may go as soon as a watermark that will not be taken back, or the clock, has passed it, and need not go at once: the
view's query hides it anyway. Where sessions are made of a state's rows, a row goes with its session, once all of the
state's rows are there::

    last       of each row that no other of its keys follows within the gap, its time; of others NULL
    ends       the first last from each row's time on
    stays      ends + age > latest
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from planner.algebra.nodes import (
    Relation,
)
from planner.incremental.names import stored_name
from planner.incremental.programs.program import Expiry, Mark
from planner.incremental.programs.state_relations import PLACE, RUNS, expiry_columns, unexpired_sessions

_compute: Any = pyarrow.compute  # made at its import, where no type checker sees its functions


Query = Callable[[Relation, Mapping[str, pa.Table]], pa.Table]
Rows = Callable[[str], Iterable[pa.Table]]


def unexpired(table: pa.Table, expiry: Expiry, rows: Rows, query: Query) -> pa.Table:
    """The rows of a state that a result may need; ``rows`` has those of the watermarks' states, in any number of
    runs."""
    bound = _bound(expiry, rows) if table.num_rows else None
    if bound is None:
        return table
    left = _later(table, expiry, bound)
    if left is table or expiry.gap is None:
        return left
    numbered = table.append_column(PLACE, pa.array(np.arange(table.num_rows)))
    left = query(
        unexpired_sessions(expiry, bound + expiry.age),
        {f"s_{RUNS}": numbered.select([*expiry_columns(expiry), PLACE])},
    )
    return table if left.num_rows == table.num_rows else table.take(left.column(0).sort()).combine_chunks()


class Losses:
    """What a state loses as the watermarks pass, to the row: a row goes at the LSN at which it is done with, however
    long it stays in the state's runs. Nothing without an ``expiry``; one without sessions, and not by the clock."""

    def __init__(self, expiry: Expiry | None, rows: Rows) -> None:
        """``rows`` has those of the watermarks' states at the LSN that they have reached."""
        self._expiry = expiry
        self._rows = rows

    @property
    def column(self) -> str | None:
        """The column with the time of a row, as the state calls it; None where nothing goes."""
        return None if self._expiry is None else stored_name(self._expiry.column)

    @property
    def bound(self) -> int | None:
        """Rows go whose time is at or before this, in microseconds since 1970; None for none."""
        return None if self._expiry is None else _bound(self._expiry, self._rows)

    def left(self, table: pa.Table) -> pa.Table:
        """The rows that have not gone. Those without a time never are there."""
        return table if self._expiry is None else _later(table, self._expiry, self.bound)


def _later(table: pa.Table, expiry: Expiry, bound: int | None) -> pa.Table:
    """The rows with a time, behind a bound if there is one."""
    starts = table.column(stored_name(expiry.column))
    if bound is None:
        stays = starts.is_valid()
    else:
        stays = _compute.fill_null(_compute.greater(starts.cast(pa.int64()), bound), False)
    return table if _compute.all(stays, min_count=0).as_py() else table.filter(stays).combine_chunks()


def _bound(expiry: Expiry, rows: Rows) -> int | None:
    """Up to which time rows go; None before there is a watermark that says so."""
    if expiry.by_clock:
        return time.time_ns() // 1000 - expiry.age
    marks = [_marked(mark, rows(mark.watermark)) for mark in expiry.marks]
    known = [mark for mark in marks if mark is not None]
    return min(known) if len(known) == len(marks) else None


def _marked(mark: Mark, tables: Iterable[pa.Table]) -> int | None:
    """Where a mark is, in microseconds since 1970; None before there is a watermark."""
    columns = [table.column(stored_name(mark.latest)).cast(pa.int64()) for table in tables]
    latest = max((each for column in columns for each in column.to_pylist() if each is not None), default=None)
    return None if latest is None else latest - mark.age

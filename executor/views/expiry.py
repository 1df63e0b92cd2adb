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
    if not table.num_rows:
        return table
    bounds = [_bound(mark, rows(mark.watermark)) for mark in expiry.marks]
    if expiry.by_clock:
        bounds = [time.time_ns() // 1000 - expiry.age]
    known = [bound for bound in bounds if bound is not None]
    if len(known) < len(bounds):
        return table
    starts = table.column(stored_name(expiry.column)).cast(pa.int64())
    stays = _compute.fill_null(_compute.greater(starts, min(known)), False)
    if _compute.all(stays).as_py():
        return table
    if expiry.gap is None:
        return table.filter(stays).combine_chunks()
    numbered = table.append_column(PLACE, pa.array(np.arange(table.num_rows)))
    left = query(
        unexpired_sessions(expiry, min(known) + expiry.age),
        {f"s_{RUNS}": numbered.select([*expiry_columns(expiry), PLACE])},
    )
    return table if left.num_rows == table.num_rows else table.take(left.column(0).sort()).combine_chunks()


def _bound(mark: Mark, tables: Iterable[pa.Table]) -> int | None:
    """Where a mark is, in microseconds since 1970; None before there is a watermark."""
    columns = [table.column(stored_name(mark.latest)).cast(pa.int64()) for table in tables]
    latest = max((each for column in columns for each in column.to_pylist() if each is not None), default=None)
    return None if latest is None else latest - mark.age

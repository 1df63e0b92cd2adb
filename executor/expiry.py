"""Taking rows out of a state that no result needs any more: groups older than a view's retention.

Owns the one step from what a program says (``planner.program.Expiry``) to rows that stay. A row may go as soon as a
watermark that will not be taken back has passed it, and need not go at once: the view's query hides it anyway.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute

from planner.incremental.names import stored_name
from planner.program import Expiry

_compute: Any = pyarrow.compute  # made at its import, where no type checker sees its functions


def unexpired(table: pa.Table, expiry: Expiry, marks: Iterable[pa.Table]) -> pa.Table:
    """The rows of a state that a result may need; ``marks`` are the watermark's state, in any number of runs."""
    columns = [mark.column(stored_name(expiry.latest)).cast(pa.int64()) for mark in marks]
    latest = max((time for column in columns for time in column.to_pylist() if time is not None), default=None)
    if latest is None or not table.num_rows:
        return table
    starts = table.column(stored_name(expiry.column)).cast(pa.int64())
    stays = _compute.fill_null(_compute.greater(starts, latest - expiry.age), False)
    return table if _compute.all(stays).as_py() else table.filter(stays).combine_chunks()

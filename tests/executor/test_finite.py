"""Infinite dates and timestamps are found at every place in a row, unless they are the content under a NULL."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from catalog.values.errors import SqlError
from catalog.values.times.infinite_dates import require_finite
from catalog.values.times.timestamps import INFINITE_DAYS, INFINITE_MICROSECONDS

_DATES = pa.array([1, -INFINITE_DAYS], pa.int32()).view(pa.date32())
_MOMENTS = pa.array([INFINITE_MICROSECONDS, None], pa.int64()).view(pa.timestamp("us"))


@pytest.mark.parametrize(
    "column",
    (
        _DATES,
        _MOMENTS,
        pa.ListArray.from_arrays(pa.array([0, 0, 2], pa.int32()), _DATES),
        pa.StructArray.from_arrays([_MOMENTS], ["at"]),
    ),
)
def test_infinities_are_refused(column: pa.Array) -> None:
    """In columns, arrays and rows, with either sign."""
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2]), column], names=["a", "b"])
    with pytest.raises(SqlError, match="an infinite date or timestamp in a stream") as raised:
        require_finite([batch], "a stream")
    assert raised.value.sqlstate == "0A000"


def test_what_stands_under_null_does_not_count() -> None:
    """The content under a NULL is arbitrary, and rows outside of a slice do not count."""
    values = pa.py_buffer(np.array([INFINITE_DAYS, 7, -INFINITE_DAYS], np.int32))
    hidden = pa.Array.from_buffers(pa.date32(), 2, [pa.py_buffer(b"\2"), values])
    beside = pa.Array.from_buffers(pa.date32(), 3, [None, values]).slice(1, 1)
    empty = pa.array([], pa.date32())
    require_finite([pa.RecordBatch.from_arrays([item], names=["a"]) for item in (hidden, beside, empty)], "a stream")

"""Dates and times as integers in their order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def in_order(column: pa.ChunkedArray | pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """A number for each value, greater for a later one, and whether it is there; a NULL's number means nothing."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    whole = array.cast(pa.int32()) if pa.types.is_date32(array.type) else array
    numbers = whole.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    are_there = array.is_valid().to_numpy(zero_copy_only=False)
    return numbers, are_there

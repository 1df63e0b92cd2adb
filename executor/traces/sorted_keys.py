"""Many keys of integers and strings in order, found by bisection.

Owns: the keys' order, and how a value is compared with what Arrow's buffers hold: integers as they are, strings by
their bytes, which is the order that Arrow sorts by. A million keys take 12 bytes each beside the strings, and a look-up
some microseconds, where a dictionary would need an object for each.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

At = Callable[[int], Any]


def is_sortable(kind: pa.DataType) -> bool:
    """Whether a key's column may be of this type."""
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind))


class SortedKeys:
    """Row numbers by key; of equal keys the last row's."""

    __slots__ = ("_columns", "_key", "_rows")

    def __init__(self, keys: pa.Table) -> None:
        """``keys`` are a table's key columns, without NULLs and of sortable types."""
        names = [str(place) for place in range(keys.num_columns)]
        named = keys.rename_columns(names)
        options = pc.SortOptions([(name, "ascending") for name in names])
        order = pc.call_function("sort_indices", [named], options)
        self._rows: memoryview = order.to_numpy().astype(np.int64).data
        self._columns = tuple(_accessor(column.take(order)) for column in named.columns)
        first = self._columns[0]
        self._key: At = first if len(names) == 1 else lambda place: tuple([at(place) for at in self._columns])

    def get(self, key: tuple[object, ...]) -> int | None:
        """The row number of a key, or None."""
        values = tuple([value.encode() if isinstance(value, str) else value for value in key])
        wanted: Any = values[0] if len(values) == 1 else values
        count, at = len(self._rows), self._key
        place = bisect_left(range(count), wanted, key=at)
        if place == count or at(place) != wanted:
            return None
        if place + 1 < count and at(place + 1) == wanted:
            place = bisect_right(range(count), wanted, lo=place, key=at) - 1
        row: int = self._rows[place]
        return row


def _accessor(column: pa.ChunkedArray) -> At:
    """A column's values by place, without an object for each."""
    if pa.types.is_integer(column.type):
        values: memoryview = column.to_numpy().astype(np.int64).data
        return values.__getitem__
    array = pa.chunked_array(column.chunks, column.type).cast(pa.large_binary()).combine_chunks()
    assert isinstance(array, pa.Array)
    _, offsets, data = array.buffers()
    starts = memoryview(offsets).cast("q")[array.offset :]
    content = memoryview(data if data is not None else b"")
    return lambda place: bytes(content[starts[place] : starts[place + 1]])

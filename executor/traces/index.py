"""Point look-ups from a key to a row of a merged Arrow table.

Owns the way from key values, as Python sees them, to row numbers: an array where the key is one column of integers that
lie close together, as identifiers do; for few rows a dictionary; for many rows with keys of integers and strings those
keys in order (``executor.traces.sorted_keys``). It belongs to one table and is dropped with it; which rows a run that
came later changes is the caller's to know. A NULL in a key is a value like any other, as it is in GROUP BY, and so a
caller that compares with ``=`` does not look for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from executor.traces.sorted_keys import SortedKeys, is_sortable

#: Integers lie close together when their range has at most so many values for each of them, ...
_SPARSE: Final = 16
#: ... or this many in all.
_SMALL: Final = 1 << 12
#: Keys beyond this are not made objects of.
MANY: Final = 1 << 16


class Row:
    """A row by its place: ``place`` None when there is none. The same ``table`` object comes again and again."""

    __slots__ = ("_table", "place")
    #: Whether it is a row by its values, whose table is made when it is asked for.
    is_by_value = False

    def __init__(self, table: pa.Table, place: int | None) -> None:
        self._table: pa.Table | None = table
        self.place = place

    @property
    def table(self) -> pa.Table:
        """The rows that it is one of."""
        return self._table

    def is_in(self, table: pa.Table) -> bool:
        """Whether it is a row of this table object."""
        return self._table is table


NO_ROW: Final = Row(pa.table({}), None)


class KeyIndex:
    """Row numbers by key. For 250,000 keys building takes some 30 ms, and 1 ms for integers that lie close together."""

    __slots__ = ("_count", "_kept", "_low", "_null", "_places", "_rows", "_single", "_sorted")

    def __init__(self, table: pa.Table, key: Sequence[str], nulls: bool = True) -> None:
        """``key`` are column names whose values together are unique; of equal ones the last row wins. Without
        ``nulls``, keys that contain NULL are never looked up, and many rows may share one."""
        assert key
        self._count: int = table.num_rows
        self._single = len(key) == 1
        self._rows: dict[object, int] = {}
        #: By integer less ``_low``: the row's number plus 1, or 0.
        self._places: memoryview | None = None
        self._low = 0
        self._null: int | None = None
        self._sorted: SortedKeys | None = None
        #: The numbers of the rows without NULL, where others are left out.
        self._kept: memoryview | None = None
        keys = table.select(list(key))
        if not nulls and any(column.null_count for column in keys.columns):
            keys = self._without_nulls(keys)
        if self._single and self._place(keys.column(0)):
            return
        has_nulls = any(column.null_count for column in keys.columns)
        if keys.num_rows > MANY and not has_nulls and all(is_sortable(column.type) for column in keys.columns):
            self._sorted = SortedKeys(keys)
            return
        columns = [column.to_pylist() for column in keys.columns]
        values = columns[0] if self._single else zip(*columns, strict=True)
        self._rows = dict(zip(values, range(keys.num_rows), strict=True))

    def _without_nulls(self, keys: pa.Table) -> pa.Table:
        known = np.logical_and.reduce([column.is_valid().to_numpy() for column in keys.columns])
        self._kept = np.flatnonzero(known).data
        return keys.filter(pa.array(known))

    def _place(self, column: pa.ChunkedArray) -> bool:
        """Whether the key's values were integers that lie close together."""
        if not pa.types.is_integer(column.type) or len(column) == column.null_count:
            return False
        rows = np.arange(len(column), dtype=np.int32)
        if column.null_count:
            valid = column.is_valid().to_numpy()
            self._null = int(rows[~valid][-1])
            rows, column = rows[valid], column.drop_null()
        values = column.to_numpy().astype(np.int64)
        low, high = int(values.min()), int(values.max())
        if high - low >= max(_SMALL, _SPARSE * len(values)):
            return False
        places = np.zeros(high - low + 1, np.int32)
        places[values - low] = rows + 1
        self._low, self._places = low, places.data
        return True

    def __len__(self) -> int:
        return self._count

    def get(self, key: tuple[object, ...]) -> int | None:
        """The row number of a key, or None. Values are what ``pyarrow.Scalar.as_py`` gives for the column's type."""
        row = self._find(key)
        return row if row is None or self._kept is None else self._kept[row]

    def _find(self, key: tuple[object, ...]) -> int | None:
        if self._places is None:
            if self._sorted is not None:
                return None if None in key else self._sorted.get(key)
            return self._rows.get(key[0] if self._single else key)
        value = key[0]
        if value is None:
            return self._null
        assert isinstance(value, int)
        place = value - self._low
        if 0 <= place < len(self._places):
            row: int = self._places[place] - 1
            return row if row >= 0 else None
        return None


def is_cheap(schema: pa.Schema, rows: int) -> bool:
    """Whether an index of so many keys is made without an object for each of them."""
    return rows <= MANY or all(is_sortable(kind) for kind in schema.types)

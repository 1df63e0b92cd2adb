"""A table of a few rows as Python's values.

A change of a few rows passes through a dataflow as such tables: to make one of Arrow's takes as long as to compute ten
rows in Python. Two values are equal in Python exactly if all their bits are: a table that has others, such as zeros of
both signs, is none of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from math import copysign, isfinite
from typing import Any, Final, TypeAlias

import pyarrow as pa

from executor.small.values import FAILURES, Cells, as_cells

#: The most rows that count as few.
FEW: Final = 64
#: Arrow's types of which Python has the values, with equality by bits but for what ``is_exact`` refuses.
_EXACT: Final = frozenset(
    kind.id
    for kind in (
        pa.bool_(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(1),
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.large_binary(),
        pa.date32(),
        pa.timestamp("us"),
    )
)
_VALUE_BYTES: Final = 64
_FLOATING: Final = frozenset((pa.float32().id, pa.float64().id))


class SmallTable:
    """Columns with names, types and values. Its parts do not change; tables share columns."""

    __slots__ = ("_table", "cells", "column_names", "num_rows", "types")

    def __init__(
        self, column_names: tuple[str, ...], types: tuple[pa.DataType, ...], cells: Sequence[Cells], num_rows: int
    ) -> None:
        """The ``cells`` fit the types, and are exact (``are_exact``, ``is_exact``)."""
        self.column_names, self.types, self.cells, self.num_rows = column_names, types, cells, num_rows
        self._table: pa.Table | None = None

    def __len__(self) -> int:
        return self.num_rows

    @property
    def num_columns(self) -> int:
        """The number of columns."""
        return len(self.cells)

    def get_total_buffer_size(self) -> int:
        """About the bytes that the values take in memory."""
        return _VALUE_BYTES * self.num_rows * self.num_columns

    @property
    def table(self) -> pa.Table:
        """The rows as Arrow's table."""
        if self._table is None:
            arrays = [pa.array(cells, kind) for cells, kind in zip(self.cells, self.types, strict=True)]
            self._table = pa.Table.from_arrays(arrays, names=list(self.column_names))
        return self._table

    def column(self, name: str) -> Cells:
        """The values of a column."""
        return self.cells[self.column_names.index(name)]

    def rows(self) -> Iterable[tuple[Any, ...]]:
        """The rows' values."""
        return zip(*self.cells, strict=True) if self.cells else iter([()] * self.num_rows)

    def select(self, names: Sequence[str]) -> SmallTable:
        """Some of the columns, in this order."""
        places = [self.column_names.index(name) for name in names]
        types, cells = tuple([self.types[place] for place in places]), [self.cells[place] for place in places]
        return SmallTable(tuple(names), types, cells, self.num_rows)

    def drop_columns(self, names: Sequence[str]) -> SmallTable:
        """The other columns."""
        return self.select([name for name in self.column_names if name not in names])

    def rename_columns(self, names: Sequence[str]) -> SmallTable:
        """The same columns by other names."""
        return SmallTable(tuple(names), self.types, self.cells, self.num_rows)

    def append_column(self, name: str, kind: pa.DataType, cells: Cells) -> SmallTable:
        """The columns, and one more at the end."""
        return SmallTable((*self.column_names, name), (*self.types, kind), [*self.cells, cells], self.num_rows)

    def take(self, places: Sequence[int]) -> SmallTable:
        """The rows at some places."""
        cells = [[column[place] for place in places] for column in self.cells]
        return SmallTable(self.column_names, self.types, cells, len(places))

    def filter(self, are_chosen: Iterable[bool]) -> SmallTable:
        """The rows for which there is a true value."""
        return self.take([place for place, is_chosen in enumerate(are_chosen) if is_chosen])


#: A table, of which Python has the values where the rows are few.
AnyTable: TypeAlias = "pa.Table | SmallTable"


def table_of(rows: AnyTable) -> pa.Table:
    """Rows as Arrow's table."""
    return rows.table if isinstance(rows, SmallTable) else rows


def few(rows: AnyTable) -> AnyTable:
    """Rows as Python's values, where they are few and exact."""
    if isinstance(rows, SmallTable) or rows.num_rows > FEW:
        return rows
    types = tuple(rows.schema.types)
    if not are_exact(types):
        return rows
    try:
        cells = [as_cells(column).to_pylist() for column in rows.columns]
    except FAILURES:
        return rows
    if not all(map(is_exact, types, cells)):
        return rows
    return SmallTable(tuple(rows.schema.names), types, cells, rows.num_rows)


def together(parts: Sequence[AnyTable]) -> AnyTable:
    """The rows of all parts, which have the same columns; at least one part."""
    small = [part for part in parts if isinstance(part, SmallTable)]
    count = sum(part.num_rows for part in small)
    if len(small) < len(parts) or count > FEW:
        return pa.concat_tables([table_of(part) for part in parts])
    first = small[0]
    if len(small) == 1:
        return first
    cells = [list(chain.from_iterable(columns)) for columns in zip(*(part.cells for part in small), strict=True)]
    return SmallTable(first.column_names, first.types, cells, count)


def are_exact(types: Iterable[pa.DataType]) -> bool:
    """Whether Python has the values of some types."""
    return all(kind.id in _EXACT for kind in types)


def is_exact(kind: pa.DataType, cells: Cells) -> bool:
    """Whether two of a column's values are equal exactly if their bits are."""
    return kind.id not in _FLOATING or all(value is None or _has_bits(value) for value in cells)


def _has_bits(value: float) -> bool:
    return isfinite(value) and (value != 0 or copysign(1.0, value) > 0)

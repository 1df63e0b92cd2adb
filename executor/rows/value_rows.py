"""A table's row as Python values: what a change of one row by key finds, computes, and leaves.

Arrow arrays of a row or two cost more than everything else about it, so they are made of many rows at a time, by who
needs them. Owns the row; what its table is like is ``shapes``'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from executor.rows.row_shapes import Shape, is_plain
from executor.small.values import array_of
from executor.traces.index import Row
from executor.traces.keyed_rows import Columns, Key

#: Makes of a value that is not NULL the one that a column has.
Fit = Callable[[Any], Any]

#: Types whose values are those of a Python type, integers within their range.
_EXACT: Final[dict[pa.DataType, type[Any]]] = {
    **dict.fromkeys((pa.int16(), pa.int32(), pa.int64()), int),
    pa.bool_(): bool,
    pa.string(): str,
    pa.binary(): bytes,
}
#: About what a row of values weighs beside what varies.
_WEIGHT: Final = 64


class ValueRow(Row):
    """A row by its values, in the order of what its table stores."""

    __slots__ = ("shape", "values")
    is_by_value = True

    def __init__(self, shape: Shape, values: tuple[Any, ...]) -> None:
        self.shape = shape
        self.values = values
        self._table: pa.Table | None = None
        self.place = 0

    @property
    def table(self) -> pa.Table:
        """A table of this row alone, the same each time."""
        if self._table is None:
            self._table = self.shape.table_of([self.values])
        return self._table

    def select(self, names: Sequence[str]) -> pa.Table:
        """Some of its columns, each once, as a table of this row alone."""
        schema, arrays = self.shape.schema, dict[str, pa.Array]()
        for name in names:
            place = schema.get_field_index(name)
            arrays[name] = pa.array([self.values[place]], schema.types[place])
        return pa.table(arrays)

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return _WEIGHT + sum([len(value) for value in self.values if isinstance(value, str | bytes)])

    def key(self, columns: Columns) -> Key:
        """Its values in the columns of a key."""
        return self.shape.key(self.values, columns)


def value_row(shape: Shape, row: Row) -> ValueRow:
    """A row that is there by its values. Raises what Python raises for one that it does not have."""
    if isinstance(row, ValueRow):
        return row
    assert row.place is not None
    return ValueRow(shape, shape.values(row.table, row.place))


def fit_of(kind: pa.DataType) -> Fit:
    """What makes of a value the one that a column of a type has, and raises where there is none."""
    exact = _EXACT.get(kind)
    bits = kind.bit_width - 1 if pa.types.is_integer(kind) else 0

    def fit(value: Any) -> Any:
        if exact is type(value) and (not bits or -1 << bits <= value < 1 << bits):
            return value
        (cell,) = array_of([value], kind)
        return cell.as_py() if is_plain(kind) else cell

    return fit


def together(shape: Shape, rows: Sequence[Row]) -> pa.Table:
    """Rows as one table, in any order."""
    if len(rows) == 1 and rows[0].table.num_rows == 1:
        return rows[0].table
    values = [row.values for row in rows if isinstance(row, ValueRow)]
    tables = [row.table.slice(row.place, 1) for row in rows if not isinstance(row, ValueRow)]
    if values:
        tables.append(shape.table_of(values))
    return pa.concat_tables(tables).combine_chunks() if tables else shape.schema.empty_table()

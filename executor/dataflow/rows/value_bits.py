"""Values as others of the same bits, where an engine makes one of equal rows.

DuckDB takes 0.0 and -0.0 for one value, and 1 day and 24 hours. They show differently, and are two values here
(``weighted_rows``). Knows nothing of weights, nor of which engine merges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from catalog.values.types import BYTEA, INT4, INT8, SqlType
from planner.algebra.nodes import Column

#: By type, one whose values are equal where the bits are, and how Arrow has the bits.
_BITS: Final = {
    "float8": (INT8, pa.int64()),
    "float4": (INT4, pa.int32()),
    "interval": (BYTEA, pa.binary(16)),
}


def by_bits(
    merge: Callable[[Sequence[Column], pa.Table], pa.Table], columns: Sequence[Column], rows: pa.Table
) -> pa.Table:
    """What ``merge`` makes of rows of some columns, with others behind them; values are equal where their bits are."""
    compared = [replace(column, type=_bits(column.type)[0]) for column in columns]
    if all(one.type == other.type for one, other in zip(compared, columns, strict=True)):
        return merge(columns, rows)
    own, layouts = rows.schema.types, [_bits(column.type)[1] for column in columns]
    shown = [column.type.arrow for column in compared]
    changed = [_view(rows.column(place), layout).cast(kind) for place, (layout, kind) in _numbered(layouts, shown)]
    found = merge(compared, pa.table([*changed, *rows.columns[len(changed) :]], rows.column_names))
    back = [_view(found.column(place).cast(layout), kind) for place, (layout, kind) in _numbered(layouts, own)]
    return pa.table([*back, *found.columns[len(back) :]], rows.column_names)


def _bits(kind: SqlType) -> tuple[SqlType, pa.DataType]:
    if kind.name == "array" and kind.element is not None:
        element, layout = _bits(kind.element)
        return replace(kind, element=element), pa.list_(layout)
    return _BITS.get(kind.name, (kind, kind.arrow))


def _numbered(
    layouts: Sequence[pa.DataType], kinds: Sequence[pa.DataType]
) -> enumerate[tuple[pa.DataType, pa.DataType]]:
    return enumerate(zip(layouts, kinds[: len(layouts)], strict=True))


def _view(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column with the same bits as values of another type."""
    return column if column.type == kind else pa.chunked_array([chunk.view(kind) for chunk in column.chunks], kind)

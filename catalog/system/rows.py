"""Rows of a system catalog, as Arrow.

Owns: ``table_of``, which fills in missing fields with PostgreSQL's defaults: zero, false or empty for fields that
cannot be NULL. Knows no catalog in particular.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa

from catalog.objects import ColumnDefinition
from catalog.values.types import SqlType

Row = Mapping[str, object]
#: Relations whose rows only one session or server knows, by name.
Own = Mapping[str, Callable[[], Iterable[Row]]]


def table_of(columns: Sequence[ColumnDefinition], rows: Iterable[Row]) -> pa.Table:
    """A table of rows by column name, in the columns' order."""
    gathered = list(rows)
    arrays = []
    for item in columns:
        default = _empty(item.type) if item.not_null else None
        arrays.append(pa.array([row.get(item.name, default) for row in gathered], item.type.arrow))
    return pa.Table.from_arrays(arrays, names=[item.name for item in columns])


def _empty(kind: SqlType) -> object:
    if kind.element is not None:
        return []
    if kind.name == "bool":
        return False
    return "" if pa.types.is_string(kind.arrow) else 0

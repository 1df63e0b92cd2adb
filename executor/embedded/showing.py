"""Values and rows as the DETAIL of an error shows them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from catalog.objects import Table
from catalog.types import SqlType


def shown(value: Any, kind: SqlType) -> str:
    """A value."""
    if value is None:
        return "null"
    if kind.enum is not None:
        return kind.enum.labels[kind.enum.places.index(value)]
    match value:
        case bool():
            return "t" if value else "f"
        case bytes():
            return "\\x" + value.hex()
        case _:
            return str(value)


def failing_row(table: Table, rows: pa.Table, place: int) -> str:
    """A row that breaks a constraint."""
    pairs = zip(rows.columns, table.columns, strict=True)
    values = (shown(column[place].as_py(), definition.type) for column, definition in pairs)
    return f"Failing row contains ({', '.join(values)})."


def pair(table: Table, columns: tuple[str, ...], values: tuple[Any, ...]) -> str:
    """A key's columns and values."""
    kinds = {column.name: column.type for column in table.columns}
    written = (shown(value, kinds[name]) for name, value in zip(columns, values, strict=True))
    return f"({', '.join(columns)})=({', '.join(written)})"

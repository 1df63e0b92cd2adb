"""Values and rows as the DETAIL of an error shows them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def shown(value: Any) -> str:
    """A value."""
    match value:
        case None:
            return "null"
        case bool():
            return "t" if value else "f"
        case bytes():
            return "\\x" + value.hex()
        case _:
            return str(value)


def failing_row(rows: pa.Table, place: int) -> str:
    """A row that breaks a constraint."""
    values = (column[place].as_py() for column in rows.columns)
    return f"Failing row contains ({', '.join(map(shown, values))})."


def pair(columns: tuple[str, ...], values: tuple[Any, ...]) -> str:
    """A key's columns and values."""
    return f"({', '.join(columns)})=({', '.join(map(shown, values))})"

"""Values and rows in the form of an error's DETAIL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa

from catalog.objects import ColumnDefinition, Stream, Table
from catalog.values import array_shapes as shapes
from catalog.values import multiranges, ranges
from catalog.values.money import money_text
from catalog.values.nested_types import delimiter_of
from catalog.values.scales import scale_name
from catalog.values.times.timetz import written
from catalog.values.types import ARRAYS, MULTIRANGES, RANGES, SqlType
from executor.printing.literals import infinite

_EXACT: Final = Context(prec=40)
#: Array elements that are written in double quotes.
_MARKED: Final = re.compile(r'^$|[{}"\\,\s]|^null$', re.IGNORECASE)


def shown(value: Any, kind: SqlType) -> str:
    """The text of a value."""
    if value is None:
        return "null"
    if kind.enum is not None:
        return kind.enum.labels[kind.enum.places.index(value)]
    if kind.name == "timetz":
        return written(value)
    if kind.name == "money":
        return money_text(value)
    if kind.name in RANGES:
        return ranges.written(kind, value, lambda bound: shown(bound, ranges.subtype_of(kind)))
    if kind.name in MULTIRANGES:
        bounds = ranges.subtype_of(multiranges.range_of(kind))
        return multiranges.written(kind, value, lambda bound: shown(bound, bounds))
    if kind.row is not None:
        pairs = zip(value.values(), kind.row.fields, strict=True)
        return f"({','.join('' if item is None else shown(item, each) for item, (_, each) in pairs)})"
    if kind.element is not None and kind.name in ARRAYS:
        return _array(value, kind, kind.element)
    match value:
        case float() if kind.category == "D":  # an infinite date or timestamp
            return "infinity" if value > 0 else "-infinity"
        case datetime() if value.tzinfo is not None:
            return f"{value.astimezone(UTC).replace(tzinfo=None)}+00"
        case bool():
            return "t" if value else "f"
        case bytes():
            return "\\x" + value.hex()
        case _:
            return str(value)


def _array(value: Any, kind: SqlType, element: SqlType) -> str:
    items, shape = (value["items"], value["shape"]) if kind.name == "shaped" else (value, shapes.listed(len(value)))
    texts = ["NULL" if item is None else _quoted(shown(item, element)) for item in items]
    return shapes.written(texts, shape, delimiter_of(element))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if _MARKED.search(text) else text


def _in_row(row: Mapping[str, Any], column: ColumnDefinition) -> str:
    """The text of a column's value in a stored row; a numeric with its own display scale."""
    value, scale = row[column.name], row[scale_name(column.name)] if column.keeps_scale else None
    return shown(_scaled(value, scale), column.type)


def _scaled(value: Any, scale: Any) -> Any:
    """A numeric with its own display scale, or a text with its blanks, also within arrays and rows."""
    if value is None or scale is None:
        return value
    match value:
        case str():
            return value.ljust(scale)
        case Decimal():
            return value.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
        case list() if len(value) == len(scale):
            return [_scaled(*pair) for pair in zip(value, scale, strict=True)]
        case dict():
            return {name: _scaled(item, each) for (name, item), each in zip(value.items(), scale.values(), strict=True)}
        case _:
            return value


def _python(scalar: pa.Scalar) -> object:
    found = infinite(scalar)
    return scalar.as_py() if found is None else found


def failing_row(table: Table, rows: pa.Table, place: int) -> str:
    """The DETAIL for a row that violates a constraint."""
    texts = row_texts(table, rows, place).values()
    return f"Failing row contains ({', '.join('null' if text is None else text for text in texts)})."


def row_texts(item: Table | Stream, rows: pa.Table, place: int) -> dict[str, str | None]:
    """The texts of a row's values by column; ``rows`` begin with the columns that the relation stores."""
    row = {column.name: _python(values[place]) for column, values in zip(item.stored, rows.columns, strict=False)}
    return {column.name: None if row[column.name] is None else _in_row(row, column) for column in item.columns}


def pair(table: Table, columns: tuple[str, ...], values: tuple[Any, ...]) -> str:
    """The columns and values of a key, for a DETAIL."""
    kinds = {column.name: column.type for column in table.columns}
    written = (shown(value, kinds[name]) for name, value in zip(columns, values, strict=True))
    return f"({', '.join(columns)})=({', '.join(written)})"

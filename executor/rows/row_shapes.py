"""What the rows of a table are like: found once for each definition, since every row that is changed by key asks.

Owns: a table's rows as Arrow, the keys by which its rows can be found, and which of its values Python has.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from catalog.objects import Table
from catalog.values.types import SPANS
from executor.commit.encoding.frames import ValuesEncoder
from executor.identity_cache import Remembered
from executor.traces.keyed_rows import Columns, Key

#: Types whose values are equal in Python exactly where they are in SQL, and which Python always holds.
_KEYS: Final = frozenset(
    (*("int2", "int4", "int8", "text", "varchar", "uuid", "bool", "numeric", "enum", "timetz", "bytea"), *SPANS)
)
#: Definitions that are known at a time.
_MOST: Final = 1024


class Shape(Struct, frozen=True, eq=False):
    """A table's rows."""

    table: Table
    schema: pa.Schema
    #: The unique keys by which rows can be found, each with its columns' places.
    keys: dict[Columns, tuple[int, ...]]
    #: The key that every row has.
    identity: Columns | None
    #: For each column, whether Python has its values, every one and each as it is; another's are Arrow scalars.
    plain: tuple[bool, ...]
    #: Makes frames of rows of values.
    encoder: ValuesEncoder

    def key(self, values: tuple[Any, ...], columns: Columns) -> Key:
        """A row's values in the columns of one of ``keys``."""
        return tuple([values[place] for place in self.keys[columns]])

    def values(self, rows: pa.Table, place: int) -> tuple[Any, ...]:
        """A row's values. Raises what Python raises for one that it does not have."""
        found = []
        for column, plain in zip(rows.columns, self.plain, strict=True):
            cell = column[place]
            found.append(cell.as_py() if plain or not cell.is_valid else cell)
        return tuple(found)

    def table_of(self, rows: list[tuple[Any, ...]]) -> pa.Table:
        """Rows of values as Arrow."""
        if not rows:
            return self.schema.empty_table()
        cells = zip(*rows, strict=True)
        arrays = [pa.array(column, kind) for column, kind in zip(cells, self.schema.types, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self.schema)


def schema_of(table: Table) -> pa.Schema:
    """A table's rows as Arrow."""
    return shape_of(table).schema


def keys_of(table: Table) -> tuple[Columns, ...]:
    """The unique keys of a table by which rows can be found."""
    return tuple(shape_of(table).keys)


def identity_of(table: Table) -> Columns | None:
    """A key that every row of a table has."""
    return shape_of(table).identity


def is_plain(kind: pa.DataType) -> bool:
    """Whether Python has all values of a type, or says that it has not: a time of 24:00 would become midnight."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal128(kind)
        or pa.types.is_timestamp(kind)
        or kind in (pa.bool_(), pa.string(), pa.binary(), pa.date32(), pa.month_day_nano_interval())
    )


def _shape(table: Table) -> Shape:
    stored = table.stored
    schema = pa.schema([pa.field(column.name, column.type.arrow) for column in stored])
    places = {column.name: place for place, column in enumerate(stored)}
    types = {column.name: column.type.name for column in table.columns}
    keys = {
        key.columns: tuple(places[name] for name in key.columns)
        for key in table.keys
        if all(types[name] in _KEYS for name in key.columns)
    }
    plain = tuple(is_plain(kind) for kind in schema.types)
    return Shape(table, schema, keys, _identity(table, keys), plain, ValuesEncoder(schema))


def _identity(table: Table, keys: dict[Columns, tuple[int, ...]]) -> Columns | None:
    required = {column.name for column in table.columns if column.not_null}
    found = [key for key in table.keys if (key.primary or required.issuperset(key.columns)) and not key.deferrable]
    return next((key.columns for key in sorted(found, key=lambda key: not key.primary) if key.columns in keys), None)


#: What is known of a definition, found once.
shape_of: Final[Remembered[Table, Shape]] = Remembered(_shape, _MOST)

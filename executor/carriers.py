"""Arrow types in the place of those that a file format or an engine lacks, and the values that they carry.

Owns: the struct in which Parquet holds an interval, and ``packed`` and ``unpacked``, by which rows reach files and
Spark and come back: Spark has no interval of months, days and microseconds together, and no time of day that ends at
24:00:00.

    interval    struct<months int, days int, microseconds bigint>        time    bigint: microseconds

Arrays are carried as arrays of what carries their elements, rows and arrays of several dimensions as structs of what
carries their fields. Everything is done by columns.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

INTERVAL: Final = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("microseconds", pa.int64())])
_LAYOUT: Final = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])


def carrier(kind: pa.DataType, with_times: bool = True) -> pa.DataType:
    """The type whose values Spark holds for those of a type, or Parquet, which has times of its own."""
    if pa.types.is_list(kind):
        return pa.list_(carrier(kind.value_type, with_times))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(carrier(field.type, with_times)) for field in kind])
    if pa.types.is_interval(kind):
        return INTERVAL
    return pa.int64() if with_times and pa.types.is_time(kind) else kind


def packed(column: pa.Array, with_times: bool = True) -> pa.Array:
    """A column's values in its type's carrier."""
    kind = column.type
    target = carrier(kind, with_times)
    if target == kind:
        return column
    if pa.types.is_list(kind):
        return with_values(column, packed(column.flatten(), with_times))
    if pa.types.is_struct(kind):
        return of_fields(column, [packed(field, with_times) for field in column.flatten()], target)
    return split(column) if pa.types.is_interval(kind) else column.cast(pa.int64())


def unpacked(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values of a type that a column carries."""
    if column.type == kind:
        return column
    if carrier(kind) == kind:
        return column.cast(kind)
    if pa.types.is_list(kind):
        return with_values(column, unpacked(column.flatten(), kind.value_type))
    if pa.types.is_struct(kind):
        pairs = zip(column.flatten(), kind, strict=True)
        return of_fields(column, [unpacked(item, field.type) for item, field in pairs], kind)
    return joined(column) if pa.types.is_interval(kind) else column.cast(kind)


def packed_table(table: pa.Table, with_times: bool = True) -> pa.Table:
    """A table with its columns' values in carriers."""
    columns = [
        pa.chunked_array([packed(chunk, with_times) for chunk in column.chunks], kind)
        if (kind := carrier(column.type, with_times)) != column.type
        else column
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, names=table.column_names)


def unpacked_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table of a schema whose columns' values a table carries."""
    columns = [
        pa.chunked_array([unpacked(chunk, field.type) for chunk in column.chunks], field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def packed_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of ``packed_table``."""
    return pa.schema([field.with_type(carrier(field.type)) for field in schema])


def split(intervals: pa.Array) -> pa.Array:
    """Intervals as structs."""
    values = np.frombuffer(intervals.buffers()[1], _LAYOUT, len(intervals) + intervals.offset)[intervals.offset :]
    parts = (values["months"], values["days"], values["nanoseconds"] // 1000)
    arrays = [pa.array(np.ascontiguousarray(part)) for part in parts]
    return pa.StructArray.from_arrays(arrays, fields=list(INTERVAL), mask=intervals.is_null())


def joined(structs: pa.StructArray) -> pa.Array:
    """Structs as intervals."""
    values = np.zeros(len(structs), _LAYOUT)
    months, days, microseconds = (part.fill_null(0).to_numpy(zero_copy_only=False) for part in structs.flatten())
    values["months"], values["days"], values["nanoseconds"] = months, days, microseconds * 1000
    kind = pa.month_day_nano_interval()
    validity = None
    if structs.null_count:
        validity = pa.py_buffer(np.packbits(structs.is_valid().to_numpy(zero_copy_only=False), bitorder="little"))
    return pa.Array.from_buffers(kind, len(structs), [validity, pa.py_buffer(values)])


def of_fields(structs: pa.StructArray, fields: list[pa.Array], kind: pa.StructType) -> pa.StructArray:
    """The structs with others for their fields."""
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=structs.is_null() if structs.null_count else None)


def with_values(lists: pa.ListArray, values: pa.Array) -> pa.ListArray:
    """The lists with others for their elements, which are those of all lists that are not NULL, one after another."""
    lengths = pc.call_function("list_value_length", [lists]).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=lists.is_null() if lists.null_count else None)

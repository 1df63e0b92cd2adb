"""A result's rows as DataRow messages, column by column.

Owns: the assembly of complete messages out of encoded columns; no Python runs per row or value. A row is::

    'D'  int32 length  int16 fields  (int32 length, bytes) ...

so the rows are one element-wise join of a head, and for each column its length prefixes and its fields. Rows whose
fields all have fixed widths and no nulls are one numpy record array instead, and a handful of rows is joined by Python,
which is done before Arrow's functions have been called once for each column.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from catalog.errors import SqlError
from catalog.types import SqlType
from protocol.compute import constant, pc
from protocol.values.codec import Vector, offsets
from protocol.values.framing import field_lengths, fixed_binaries, without_nulls
from protocol.values.registry import PRINTED, encode_column, encode_few

#: Rows that are joined at once: it bounds intermediate memory and keeps the work in the cache.
_SLICE: Final = 16_384
#: Bytes that one Arrow array can hold.
_LIMIT: Final = 2**31
#: Rows, and bytes of them, up to which Python joins them.
_FEW: Final = 16
_FEW_BYTES: Final = 64 << 10
_LENGTH: Final = struct.Struct(">i").pack
_HEAD_OF_ROW: Final = struct.Struct(">cih").pack
_NULL: Final = _LENGTH(-1)
_HEAD: Final = np.dtype([("kind", "S1"), ("length", ">i4"), ("fields", ">i2")])


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Consecutive DataRow messages: row ``i`` is ``data[offsets[i] : offsets[i + 1]]``."""

    data: bytes
    offsets: Vector

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def rows(self, start: int, stop: int) -> memoryview:
        """The messages of some rows, without copying."""
        return memoryview(self.data)[self.offsets[start] : self.offsets[stop]]


def column_formats(formats: Sequence[int], count: int) -> tuple[int, ...]:
    """One format for each column of Bind's result formats: none is text, one is for all. Raises 08P01."""
    if len(formats) == 0:
        return (0,) * count
    if len(formats) == 1:
        return (formats[0],) * count
    if len(formats) != count:
        raise SqlError("08P01", f"bind message has {len(formats)} result formats but query has {count} columns")
    return tuple(formats)


def encode_rows(
    table: pa.Table | pa.RecordBatch, types: Sequence[SqlType], formats: Sequence[int] = (), timezone: str = "UTC"
) -> EncodedRows:
    """All rows as DataRow messages. ``formats`` are Bind's."""
    wanted = column_formats(formats, len(types))
    pieces: list[bytes | memoryview] = []
    lengths: list[Vector] = []
    batches = table.to_batches(_SLICE) if isinstance(table, pa.Table) else _slices(table)
    for batch in batches:
        if batch.num_rows:
            data, sizes = _encode_batch(batch, types, wanted, timezone)
            pieces.append(data)
            lengths.append(sizes)
    bounds = np.zeros(sum(map(len, lengths)) + 1, np.int64)
    if lengths:
        np.cumsum(np.concatenate(lengths), out=bounds[1:])
    return EncodedRows(b"".join(pieces), bounds)


def _slices(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    return [batch.slice(start, _SLICE) for start in range(0, batch.num_rows, _SLICE)]


def _encode_batch(
    batch: pa.RecordBatch, types: Sequence[SqlType], formats: Sequence[int], timezone: str
) -> tuple[memoryview, Vector]:
    """The messages of one batch, and the length of each. A query of no columns has one that only counts its rows."""
    if types and batch.num_rows <= _FEW and _weight(batch, types) <= _FEW_BYTES:
        few = zip(batch.columns, types, formats, strict=True)
        return _few_rows([encode_few(column, type_, format_, timezone) for column, type_, format_ in few])
    columns = [
        encode_column(column, type_, format_, timezone)
        for column, type_, format_ in zip(batch.columns if types else (), types, formats, strict=True)
    ]
    if all(pa.types.is_fixed_size_binary(column.type) and not column.null_count for column in columns):
        return _fixed_rows(columns, batch.num_rows)
    return _variable_rows(columns, batch.num_rows)


def _weight(batch: pa.RecordBatch, types: Sequence[SqlType]) -> int:
    """Bytes of what may be large: numbers are not, whatever table they are a slice of."""
    columns = zip(batch.columns, types, strict=True)
    return sum(column.get_total_buffer_size() for column, type_ in columns if type_.name not in PRINTED)


def _few_rows(columns: Sequence[list[bytes | None]]) -> tuple[memoryview, Vector]:
    rows: list[bytes] = []
    for fields in zip(*columns, strict=True):
        pieces: list[bytes] = []
        for field in fields:
            if field is None:
                pieces.append(_NULL)
            else:
                pieces += (_LENGTH(len(field)), field)
        body = b"".join(pieces)
        rows.append(_HEAD_OF_ROW(b"D", 6 + len(body), len(columns)) + body)
    return memoryview(b"".join(rows)), np.array([len(row) for row in rows], np.int64)


def _fixed_rows(columns: Sequence[pa.Array], count: int) -> tuple[memoryview, Vector]:
    layout = [(name, _HEAD[name]) for name in _HEAD.names or ()]
    for index, column in enumerate(columns):
        layout += [(f"length{index}", np.dtype(">i4")), (f"field{index}", np.dtype(f"V{column.type.byte_width}"))]
    rows = np.empty(count, layout)
    rows["kind"], rows["length"], rows["fields"] = b"D", rows.itemsize - 1, len(columns)
    for index, column in enumerate(columns):
        width = column.type.byte_width
        start = column.offset * width
        rows[f"length{index}"] = width
        rows[f"field{index}"] = np.frombuffer(column.buffers()[1], f"V{width}", count, start)
    return rows.view(np.uint8).data, np.full(count, rows.itemsize, np.int64)


def _variable_rows(columns: Sequence[pa.Array], count: int) -> tuple[memoryview, Vector]:
    heads = np.empty(count, _HEAD)
    heads["kind"], heads["fields"] = b"D", len(columns)
    lengths = np.full(count, 6 + 4 * len(columns), np.int64)
    parts: list[pa.Array] = []
    for column in columns:
        sizes = field_lengths(column)
        lengths += np.maximum(sizes, 0)
        parts.append(fixed_binaries(sizes.astype(">i4")))
        parts.append(without_nulls(column))
    heads["length"] = lengths
    if int(lengths.sum()) + count >= _LIMIT:
        return _halves(columns, count)
    rows = pc.binary_join_element_wise(fixed_binaries(heads), *parts, constant(b""))
    bounds = offsets(rows)
    return memoryview(rows.buffers()[2])[int(bounds[0]) : int(bounds[-1])], lengths + 1


def _halves(columns: Sequence[pa.Array], count: int) -> tuple[memoryview, Vector]:
    """Rows that do not fit in one Arrow array, in two. A row of 2 GB cannot be sent: 54000."""
    if count == 1:
        raise SqlError("54000", "row is too large for a DataRow message")
    middle = count // 2
    first, first_lengths = _variable_rows([column.slice(0, middle) for column in columns], middle)
    second, second_lengths = _variable_rows([column.slice(middle) for column in columns], count - middle)
    return memoryview(b"".join((first, second))), np.concatenate([first_lengths, second_lengths])

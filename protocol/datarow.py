"""A result's rows as DataRow messages.

Owns: the formats of a result's columns, and the slices of rows that are encoded together. Many rows are assembled
column by column (``rowmessages``); few rows are joined in Python, which takes less time than one Arrow call per column.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from catalog.values.errors import SqlError
from catalog.values.types import SqlType
from protocol.rowmessages import row_messages, slice_rows
from protocol.values.codec import Vector
from protocol.values.registry import PRINTED, encode_column, encode_few

#: The most rows, and bytes of them, that Python joins.
_FEW: Final = 16
_FEW_BYTES: Final = 64 << 10
_LENGTH: Final = struct.Struct(">i").pack
_HEAD_OF_ROW: Final = struct.Struct(">cih").pack
_NULL: Final = _LENGTH(-1)


class EncodedRows(Struct, frozen=True):
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
    most = slice_rows(len(types))
    batches = table.to_batches(most) if isinstance(table, pa.Table) else _slices(table, most)
    for batch in batches:
        if batch.num_rows:
            data, sizes = _encode_batch(batch, types, wanted, timezone)
            pieces.append(data)
            lengths.append(sizes)
    bounds = np.zeros(sum(map(len, lengths)) + 1, np.int64)
    if lengths:
        np.cumsum(np.concatenate(lengths), out=bounds[1:])
    return EncodedRows(b"".join(pieces), bounds)


def _slices(batch: pa.RecordBatch, most: int) -> list[pa.RecordBatch]:
    return [batch.slice(start, most) for start in range(0, batch.num_rows, most)]


def _encode_batch(
    batch: pa.RecordBatch, types: Sequence[SqlType], formats: Sequence[int], timezone: str
) -> tuple[memoryview, Vector]:
    """The messages of one batch, and the length of each. Rows without columns get messages with a field count of 0."""
    if types and batch.num_rows <= _FEW and _weight(batch, types) <= _FEW_BYTES:
        few = zip(batch.columns, types, formats, strict=True)
        return _few_rows([encode_few(column, type_, format_, timezone) for column, type_, format_ in few])
    columns = [
        encode_column(column, type_, format_, timezone)
        for column, type_, format_ in zip(batch.columns if types else (), types, formats, strict=True)
    ]
    return row_messages(b"D", columns, batch.num_rows)


def _weight(batch: pa.RecordBatch, types: Sequence[SqlType]) -> int:
    """Bytes of columns whose values may be large. Numbers do not count, however large the table of which they are a
    slice."""
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

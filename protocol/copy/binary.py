"""COPY FROM in binary format: a header, rows of length-prefixed fields, a trailer.

Owns: the blocks and their line numbers, the errors in a row's frame, and the gathering of fields into columns, which
the value codecs decode. ``chain`` finds all rows of a block at once.
https://www.postgresql.org/docs/15/sql-copy.html#id-1.9.3.55.9.4
"""

from __future__ import annotations

import struct
from struct import unpack_from
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from catalog.values.errors import SqlError
from protocol.copy.chain import find_rows, no_rows
from protocol.copy.format import CopyTarget
from protocol.copy.split import LONGEST, too_long
from protocol.values.codec import ColumnError, Vector
from protocol.values.registry import decode_binary_column
from protocol.values.scales import scales_of_binaries

SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0"
TRAILER: Final = b"\xff\xff"
_HEADER_LENGTH: Final = len(SIGNATURE) + 8
_int16 = struct.Struct(">h").unpack_from
_int32 = struct.Struct(">i").unpack_from


class BinaryBlock(Struct, frozen=True):
    """Whole rows: where each field begins and its length in bytes (-1: NULL), as matrices with a row for each column.

    ``line`` is the number of the first row, counted from 1. ``failure`` is the error in the data after these rows; an
    error in one of the rows is raised before it.
    """

    data: bytes
    line: int
    starts: Vector
    lengths: Vector
    failure: SqlError | None = None


class BinarySplitter:
    """Collects binary COPY data and cuts it into blocks of whole rows."""

    __slots__ = (
        "_block_size",
        "_column",
        "_enough",
        "_failed",
        "_header_seen",
        "_line",
        "_size",
        "_target",
        "_trailed",
        "_waiting",
    )

    def __init__(self, target: CopyTarget, block_size: int) -> None:
        self._target = target
        self._block_size = block_size
        self._enough = block_size  # bytes to collect before looking for rows
        self._waiting: list[bytes] = []
        self._size = 0
        self._line = 1
        self._column = 0  # the column in which the incomplete row ends
        self._header_seen = False
        self._trailed = False
        self._failed = False

    def split(self, data: bytes) -> list[BinaryBlock]:
        """The blocks that these bytes complete."""
        if self._failed or not data:
            return []
        self._waiting.append(data)
        self._size += len(data)
        return self._walk() if self._size >= self._enough or self._trailed else []

    def is_due(self, size: int) -> bool:
        """Whether the next ``size`` bytes make ``split`` look for rows instead of only collecting the bytes."""
        return not self._failed and (self._size + size >= self._enough or self._trailed)

    def finish(self) -> list[BinaryBlock]:
        """The last block. Raises 22P04 where there is no header."""
        if self._failed:
            return []
        blocks = self._walk()
        if not self._header_seen:
            raise SqlError("22P04", "COPY file signature not recognized")
        if self._size < 2:  # fewer bytes than a field count: a regular end
            return blocks
        failure = self._error("unexpected EOF in COPY data", self._column)
        return [*blocks, BinaryBlock(b"", self._line, *no_rows(len(self._target.types)), failure)]

    def _walk(self) -> list[BinaryBlock]:
        """A block of the whole rows collected so far, or of the error after them; the remaining bytes wait."""
        data = b"".join(self._waiting)
        position = 0 if self._header_seen else self._read_header(data)
        starts, lengths = no_rows(len(self._target.types))
        if self._header_seen and not self._trailed:
            starts, lengths, position = find_rows(data, position, len(self._target.types))
        line, rows = self._line, starts.shape[1]
        self._line += rows
        failure = self._look_behind(data, position) if self._header_seen else None
        self._failed = failure is not None
        rest = b"" if self._failed or self._trailed else data[position:]
        self._waiting, self._size = [rest], len(rest)
        if len(rest) >= LONGEST:
            raise too_long(len(rest))
        self._enough = max(
            self._block_size, min(2 * len(rest), LONGEST)
        )  # so that a row longer than a block is not joined at each call
        return [BinaryBlock(data, line, starts, lengths, failure)] if rows or self._failed else []

    def _read_header(self, data: bytes) -> int:
        if not SIGNATURE.startswith(data[: len(SIGNATURE)]):
            raise SqlError("22P04", "COPY file signature not recognized")
        if len(data) < _HEADER_LENGTH:
            return 0
        flags, extension = unpack_from(">Ii", data, len(SIGNATURE))
        if flags & 1 << 16:
            raise SqlError("22P04", "invalid COPY file header (WITH OIDS)")
        if flags >> 16 or extension < 0:
            raise SqlError("22P04", "unrecognized critical flags in COPY file header")
        if len(data) < _HEADER_LENGTH + extension:
            return 0
        self._header_seen = True
        return _HEADER_LENGTH + int(extension)

    def _look_behind(self, data: bytes, position: int) -> SqlError | None:
        """The error in the data after the last whole row; None if a trailer or an incomplete row follows."""
        if not self._trailed:
            if len(data) - position < 2:
                return None
            count = _int16(data, position)[0]
            position += 2
            if count != -1:
                return self._look_at_row(data, position, count)
            self._trailed = True
        return self._error("received copy data after EOF marker") if len(data) > position else None

    def _look_at_row(self, data: bytes, position: int, count: int) -> SqlError | None:
        """The error in an incomplete row; None if only the row's end is missing."""
        if count != len(self._target.types):
            return self._error(f"row field count is {count}, expected {len(self._target.types)}")
        for column in range(count):
            self._column = column
            if len(data) - position < 4:
                return None
            length = _int32(data, position)[0]
            if length < -1:
                return self._error("invalid field size", column)
            position += 4 + max(length, 0)
            if position > len(data):
                return None
        return None

    def _error(self, message: str, column: int | None = None) -> SqlError:
        error = SqlError("22P04", message)
        if column is None:
            return self._target.line_error(error.sqlstate, message, self._line)
        return self._target.value_error(error, self._line, column, None)


def parse_binary(block: BinaryBlock, target: CopyTarget) -> list[pa.Array]:
    """The columns of a block. Raises PostgreSQL's error with its row and column."""
    columns: list[pa.Array] = []
    scales: list[pa.Array] = []
    first: tuple[int, int, SqlError] | None = None
    for column, type_ in enumerate(target.types):
        fields = _gather(block.data, block.starts[column], block.lengths[column])
        try:
            columns.append(decode_binary_column(fields, type_))
            scales += [scales_of_binaries(fields, type_)] if column in target.scaled else []
        except ColumnError as error:
            if first is None or error.index < first[0]:
                first = (error.index, column, error.error)
    if first is not None:
        row, column, cause = first
        raise target.value_error(cause, block.line + row, column, None)
    if block.failure is not None:
        raise block.failure
    return columns + scales


def _gather(data: bytes, starts: Vector, lengths: Vector) -> pa.Array:
    """The fields as one binary array: every other value of an array that also has the gaps. ``starts`` must rise."""
    count = len(starts)
    bounds = np.empty((count, 2), np.int32)
    bounds[:, 0], bounds[:, 1] = starts, starts + np.maximum(lengths, 0)
    whole = pa.Array.from_buffers(pa.binary(), max(2 * count - 1, 0), [None, pa.py_buffer(bounds), pa.py_buffer(data)])
    fields = whole.take(pa.array(np.arange(0, 2 * count, 2)))
    nulls = lengths < 0
    if not nulls.any():
        return fields
    valid = pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), count, [valid, *fields.buffers()[1:]])

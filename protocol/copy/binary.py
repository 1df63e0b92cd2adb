"""COPY's binary format in: a header, rows of length-prefixed fields, a trailer.

Owns: the sequential walk that finds where fields are, and their gathering into columns, which the value codecs decode.
Rows laid out like the row before them (fixed-width types, no nulls) are found many at a time.
https://www.postgresql.org/docs/15/sql-copy.html#id-1.9.3.55.9.4
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, unpack_from
from typing import Final

import numpy as np
import pyarrow as pa

from catalog.errors import SqlError
from protocol.copy.format import CopyTarget
from protocol.values.codec import ColumnError, Vector
from protocol.values.registry import decode_binary_column

SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0"
TRAILER: Final = b"\xff\xff"
_HEADER_LENGTH: Final = len(SIGNATURE) + 8
_int16 = Struct(">h").unpack_from
_int32 = Struct(">i").unpack_from
#: After a row that had no twins next to it, so many rows are walked singly before twins are looked for again.
_PATIENCE: Final = 256


@dataclass(frozen=True, slots=True)
class BinaryBlock:
    """Whole rows: where each field begins and how long it is (-1: null), row by row. ``line`` counts rows from 1."""

    data: bytes
    line: int
    starts: Vector
    lengths: Vector


class BinarySplitter:
    """Collects binary COPY data and cuts it into blocks of whole rows."""

    __slots__ = ("_block_size", "_ended", "_header_seen", "_line", "_size", "_target", "_waiting")

    def __init__(self, target: CopyTarget, block_size: int) -> None:
        self._target = target
        self._block_size = block_size
        self._waiting: list[bytes] = []
        self._size = 0
        self._line = 1
        self._header_seen = False
        self._ended = False

    def split(self, data: bytes) -> list[BinaryBlock]:
        """The blocks that are complete with these bytes."""
        if self._ended:
            if data:
                raise SqlError("22P04", "received copy data after EOF marker")
            return []
        self._waiting.append(data)
        self._size += len(data)
        return self._walk() if self._size >= self._block_size else []

    def finish(self) -> list[BinaryBlock]:
        """The last block. Raises 22P04 where data is incomplete."""
        blocks = self._walk()
        if not self._header_seen:
            raise SqlError("22P04", "COPY file signature not recognized")
        if self._size:
            raise self._target.line_error("22P04", "unexpected EOF in COPY data", self._line)
        return blocks

    def _walk(self) -> list[BinaryBlock]:
        data = b"".join(self._waiting)
        position = 0 if self._header_seen else self._read_header(data)
        rows = _Rows(len(self._target.types))
        if self._header_seen:
            position = self._read_rows(data, position, rows)
        rest = data[position:]
        self._waiting, self._size = [rest] if rest else [], len(rest)
        if not rows.count:
            return []
        block = BinaryBlock(data, self._line, *rows.finish())
        self._line += rows.count
        return [block]

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

    def _read_rows(self, data: bytes, position: int, rows: _Rows) -> int:
        """Walks all whole rows; returns the position after them."""
        patience = 0
        while len(data) - position >= 2:
            count = _int16(data, position)[0]
            if count == -1:
                self._ended = True
                position += 2
                if len(data) > position:
                    raise SqlError("22P04", "received copy data after EOF marker")
                break
            if count != rows.width:
                message = f"row field count is {count}, expected {rows.width}"
                raise self._target.line_error("22P04", message, self._line + rows.count)
            row = self._read_row(data, position + 2, rows)
            if row is None:
                break
            twins = _twins(data, position, row) if patience == 0 else 1
            patience = 0 if twins > 1 else (patience - 1) % _PATIENCE
            rows.add(row, twins, row.end - position)
            position += twins * (row.end - position)
        return position

    def _read_row(self, data: bytes, position: int, rows: _Rows) -> _Row | None:
        """One row's fields; None where it is incomplete."""
        starts, lengths, size = [], [], len(data)
        for _ in range(rows.width):
            if size - position < 4:
                return None
            length = _int32(data, position)[0]
            position += 4
            starts.append(position)
            lengths.append(length)
            if length > 0:
                position += length
            elif length < -1:
                raise self._target.line_error("22P04", "invalid field size", self._line + rows.count)
        return _Row(starts, lengths, position) if position <= size else None


@dataclass(slots=True)
class _Row:
    """Where one row's fields begin, how long they are, and where the row ends."""

    starts: list[int]
    lengths: list[int]
    end: int


class _Rows:
    """The fields of many rows."""

    __slots__ = ("_lengths", "_single_lengths", "_single_starts", "_starts", "count", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.count = 0
        self._starts: list[Vector] = []
        self._lengths: list[Vector] = []
        self._single_starts: list[int] = []
        self._single_lengths: list[int] = []

    def add(self, row: _Row, twins: int, size: int) -> None:
        """A row and those after it that are laid out alike, each of ``size`` bytes."""
        self.count += twins
        if twins == 1:
            self._single_starts += row.starts
            self._single_lengths += row.lengths
            return
        self._flush()
        steps = np.arange(twins, dtype=np.int64)[:, None] * size
        self._starts.append(np.array(row.starts, np.int64) + steps)
        self._lengths.append(np.tile(np.array(row.lengths, np.int32), (twins, 1)))

    def _flush(self) -> None:
        self._starts.append(np.array(self._single_starts, np.int64).reshape(-1, self.width))
        self._lengths.append(np.array(self._single_lengths, np.int32).reshape(-1, self.width))
        self._single_starts, self._single_lengths = [], []

    def finish(self) -> tuple[Vector, Vector]:
        """Starts and lengths, a row of each for each row."""
        self._flush()
        return np.concatenate(self._starts), np.concatenate(self._lengths)


def _twins(data: bytes, start: int, row: _Row) -> int:
    """How many rows from ``start`` on have the first one's size and field lengths."""
    size = row.end - start
    count = (len(data) - start) // size
    structure = np.zeros(size, bool)  # which of a row's bytes are its field count and its lengths
    structure[:2] = True
    for begin in row.starts:
        structure[begin - start - 4 : begin - start] = True
    rows = np.frombuffer(data, np.uint8, count * size, start).reshape(count, size)[:, structure]
    alike = (rows == rows[0]).all(axis=1)
    return count if alike.all() else int(alike.argmin())


def parse_binary(block: BinaryBlock, target: CopyTarget) -> list[pa.Array]:
    """The columns of a block. Raises PostgreSQL's error with its row and column."""
    data = np.frombuffer(block.data, np.uint8)
    columns: list[pa.Array] = []
    first: tuple[int, int, SqlError] | None = None
    for column, type_ in enumerate(target.types):
        fields = _gather(data, block.starts[:, column], block.lengths[:, column])
        try:
            columns.append(decode_binary_column(fields, type_))
        except ColumnError as error:
            if first is None or error.index < first[0]:
                first = (error.index, column, error.error)
    if first is None:
        return columns
    row, column, cause = first
    raise target.value_error(cause, block.line + row, column, None)


def _gather(data: Vector, starts: Vector, lengths: Vector) -> pa.Array:
    """The fields at some places as one binary array."""
    sizes = np.maximum(lengths, 0)
    bounds = np.zeros(len(starts) + 1, np.int32)
    np.cumsum(sizes, out=bounds[1:])
    places = np.repeat(starts - bounds[:-1], sizes) + np.arange(bounds[-1])
    values = pa.py_buffer(np.ascontiguousarray(data[places]))
    nulls = lengths < 0
    bitmap = pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls.any() else None
    return pa.Array.from_buffers(pa.binary(), len(starts), [bitmap, pa.py_buffer(bounds), values])

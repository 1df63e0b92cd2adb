"""Transaction records as bytes, and back.

Owns the layout of a record's payload; its header with LSN and CRC is the log's. A payload is a list of parts:

    length u64 | oid u64 | kind u8 | 7 bytes of padding | body, padded to a multiple of 8 bytes

Rows are blocks (length u64 | how u8 | padding | bytes, padded): small batches are frames, large ones are packed, all
others one Arrow IPC stream with LZ4. Everything else is JSON. Large buffers are never copied: a payload stays in pieces
until it is written. Encoding runs on the caller's thread, outside any lock.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Container, Iterator, Sequence
from enum import IntEnum
from typing import Final

import pyarrow as pa
from msgspec import Struct

from executor.commit.encoding import frames
from executor.commit.encoding import packed_columns as packed
from executor.commit.records import (
    CatalogChange,
    FilesArrived,
    Followed,
    Part,
    RowValues,
    Spooled,
    SpoolReference,
    StreamRows,
    TableChange,
    TableValues,
    TransactionRecord,
    spool_references,
)

Piece = bytes | memoryview


class Kind(IntEnum):
    """What a log record is: data written ahead, a commit, or a commit that refers to data written ahead."""

    DATA = 1
    COMMIT = 2
    COMMIT_OF_DATA = 3


class Encoded(Struct, frozen=True):
    """A record's payload, ready to be written."""

    kind: Kind
    pieces: tuple[Piece, ...]
    length: int
    crc: int
    references: tuple[SpoolReference, ...] = ()


class _PartKind(IntEnum):
    ROWS = 1
    SPOOLED = 2
    TABLE = 3
    FILES = 4
    CATALOG = 6
    FOLLOWED = 7


_FRAME: Final = 1
_STREAM: Final = 2
_PACKED: Final = 3
_PART: Final = struct.Struct("<QQB7x")
_BLOCK: Final = struct.Struct("<QB7x")
_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_THREADED: Final = pa.ipc.IpcWriteOptions(compression="lz4")
#: Bytes of rows from which Arrow's threads are worth waking. Smaller batches, like a COPY's blocks, come from several
#: threads at once anyway.
_THREADED_FROM: Final = 16 << 20
_PADDING: Final = tuple(bytes(n) for n in range(8))


def encode_record(record: TransactionRecord) -> Encoded:
    """A transaction's record."""
    pieces: list[Piece] = []
    for part in record:
        kind, oid, body = _encode_part(part)
        length = sum(len(piece) for piece in body)
        pieces += [_PART.pack(length, oid, kind), *body, _PADDING[-length % 8]]
    references = spool_references(record)
    return _encoded(Kind.COMMIT_OF_DATA if references else Kind.COMMIT, pieces, references)


def encode_data(batch: pa.RecordBatch) -> Encoded:
    """A batch that is written ahead of its commit."""
    return _encoded(Kind.DATA, encode_batches((batch,)), ())


def decode_record(payload: pa.Buffer, relations: Container[int] | None = None) -> TransactionRecord:
    """The parts of a payload, sharing its memory. With ``relations``, the rows of other streams and tables are left
    out, each by an empty part, so that a part keeps its index."""
    return tuple(_decode_part(kind, oid, body, relations) for kind, oid, body in _parts(payload))


def decode_references(payload: pa.Buffer) -> tuple[SpoolReference, ...]:
    """Only the references to data written ahead."""
    found = (_references(body) for kind, _, body in _parts(payload) if kind is _PartKind.SPOOLED)
    return tuple(reference for references in found for reference in references)


def encode_batches(batches: Sequence[pa.RecordBatch]) -> list[Piece]:
    """Blocks of batches of one schema; a multiple of 8 bytes together."""
    filled = [batch for batch in batches if batch.num_rows]
    if not filled:
        return []
    if sum(batch.num_rows for batch in filled) <= frames.MOST_ROWS:
        frame = frames.encode(filled[0] if len(filled) == 1 else pa.concat_batches(filled))
        if frame is not None:
            return _frame_block(frame)
    pieces = _packed_blocks(filled)
    return _stream_block(filled) if pieces is None else pieces


def _frame_block(frame: bytes) -> list[Piece]:
    return [_BLOCK.pack(len(frame), _FRAME), frame, _PADDING[-len(frame) % 8]]


def _packed_blocks(batches: Sequence[pa.RecordBatch]) -> list[Piece] | None:
    """A block for each batch; None if one of them cannot be packed."""
    blocks: list[Piece] = []
    for batch in batches:
        pieces = packed.encode(batch)
        if pieces is None:
            return None
        length = sum(len(piece) for piece in pieces)
        blocks += (_BLOCK.pack(length, _PACKED), *pieces)
    return blocks


def _stream_block(batches: Sequence[pa.RecordBatch]) -> list[Piece]:
    sink = pa.BufferOutputStream()
    options = _OPTIONS if sum(batch.get_total_buffer_size() for batch in batches) < _THREADED_FROM else _THREADED
    with pa.ipc.new_stream(sink, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    stream = memoryview(sink.getvalue())
    return [_BLOCK.pack(len(stream), _STREAM), stream, _PADDING[-len(stream) % 8]]


def decode_batches(body: pa.Buffer) -> list[pa.RecordBatch]:
    """The batches of a sequence of blocks, sharing its memory where they are not compressed."""
    view = memoryview(body)
    batches: list[pa.RecordBatch] = []
    position = 0
    while position < len(view):
        length, how = _BLOCK.unpack_from(view, position)
        block = body.slice(position + _BLOCK.size, length)
        if how == _FRAME:
            batches.append(frames.decode(block))
        elif how == _PACKED:
            batches.append(packed.decode(block))
        else:
            with pa.ipc.open_stream(block) as reader:
                batches.extend(reader)
        position += _BLOCK.size + length + -length % 8
    return batches


def _encoded(kind: Kind, pieces: list[Piece], references: tuple[SpoolReference, ...]) -> Encoded:
    crc = length = 0
    for piece in pieces:
        crc = zlib.crc32(piece, crc)
        length += len(piece)
    return Encoded(kind, tuple(pieces), length, crc, references)


def _encode_part(part: Part) -> tuple[_PartKind, int, list[Piece]]:
    match part:
        case StreamRows(stream, batches):
            return _PartKind.ROWS, stream, encode_batches(batches)
        case RowValues(stream, _, frame):
            return _PartKind.ROWS, stream, _frame_block(frame)
        case Spooled(stream, references):
            document = [(each.segment, each.offset, each.rows, each.size) for each in references]
            return _PartKind.SPOOLED, stream, [_json(document)]
        case TableChange(table, inserted, deleted):
            return _PartKind.TABLE, table, [*_table(inserted), *_table(deleted)]
        case TableValues(table, came, went):
            return _PartKind.TABLE, table, [*_framed(came), *_framed(went)]
        case FilesArrived(stream, files, format, rows, place):
            found = {"files": files, "format": format, "rows": rows, "place": place}
            return _PartKind.FILES, stream, [_json(found)]
        case Followed(stream, upto):
            return _PartKind.FOLLOWED, stream, [_json(upto)]
        case CatalogChange(document):
            return _PartKind.CATALOG, 0, [document.encode()]


def _decode_part(kind: _PartKind, oid: int, body: pa.Buffer, relations: Container[int] | None) -> Part:
    wanted = relations is None or oid in relations
    match kind:
        case _PartKind.ROWS:
            return StreamRows(oid, tuple(decode_batches(body)) if wanted else ())
        case _PartKind.SPOOLED:
            return Spooled(oid, _references(body) if wanted else ())
        case _PartKind.TABLE:
            return _decode_change(oid, body) if wanted else TableChange(oid)
        case _PartKind.FILES:
            found = json.loads(body.to_pybytes())
            files = tuple((path, size, mtime) for path, size, mtime in found["files"])
            # Earlier versions have logged neither rows nor places.
            return FilesArrived(oid, files, found["format"], tuple(found.get("rows", ())), found.get("place", 0))
        case _PartKind.FOLLOWED:
            return Followed(oid, json.loads(body.to_pybytes()))
        case _PartKind.CATALOG:
            return CatalogChange(body.to_pybytes().decode())


def _parts(payload: pa.Buffer) -> Iterator[tuple[_PartKind, int, pa.Buffer]]:
    view = memoryview(payload)
    position = 0
    while position < len(view):
        length, oid, kind = _PART.unpack_from(view, position)
        position += _PART.size
        yield _PartKind(kind), oid, payload.slice(position, length)
        position += length + -length % 8


def _references(body: pa.Buffer) -> tuple[SpoolReference, ...]:
    return tuple(SpoolReference(*each) for each in json.loads(body.to_pybytes()))


def _table(table: pa.Table | None) -> list[Piece]:
    """A table's blocks behind their length; the length of a missing table is 0, of an empty one that of its schema."""
    if table is None:
        return [bytes(8)]
    pieces: list[Piece] = encode_batches(table.to_batches()) if table.num_rows else [_empty(table.schema)]
    return [struct.pack("<Q", sum(len(piece) for piece in pieces)), *pieces]


def _framed(frame: bytes) -> list[Piece]:
    """A frame as a table's blocks; without rows the table is missing."""
    if not frame:
        return [bytes(8)]
    pieces = _frame_block(frame)
    return [struct.pack("<Q", sum(map(len, pieces))), *pieces]


def _empty(schema: pa.Schema) -> bytes:
    sink = pa.BufferOutputStream()
    pa.ipc.new_stream(sink, schema).close()
    stream = bytes(sink.getvalue())
    return _BLOCK.pack(len(stream), _STREAM) + stream + _PADDING[-len(stream) % 8]


def _decode_change(oid: int, body: pa.Buffer) -> TableChange:
    tables: list[pa.Table | None] = []
    position = 0
    for _ in range(2):
        (length,) = struct.unpack_from("<Q", memoryview(body), position)
        blocks = body.slice(position + 8, length)
        tables.append(_decode_table(blocks) if length else None)
        position += 8 + length
    return TableChange(oid, *tables)


def _decode_table(blocks: pa.Buffer) -> pa.Table:
    batches = decode_batches(blocks)
    if batches:
        return pa.Table.from_batches(batches)
    length, _ = _BLOCK.unpack_from(memoryview(blocks))
    return pa.ipc.open_stream(blocks.slice(_BLOCK.size, length)).read_all()


def _json(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()

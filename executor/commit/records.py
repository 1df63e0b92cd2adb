"""What one transaction changes, as data: the parts of a transaction record (architecture section 4).

Owns the parts' definitions. Does not know their bytes (``encoding``) nor where these lie (``log``). A record is the
tuple of its parts in the order of the transaction's statements; its LSN is given by the sequencer, not by the record.
"""

from __future__ import annotations

import pyarrow as pa
from msgspec import Struct


class SpoolReference(Struct, frozen=True):
    """Where in the log one batch lies that was written ahead of its transaction's commit.

    ``batch`` is the batch itself while the sequencer's memory for spooled batches allows, and never in a record that
    was read back.
    """

    segment: int
    offset: int
    rows: int
    size: int  # bytes in the log
    batch: pa.RecordBatch | None = None


class StreamRows(Struct, frozen=True):
    """Rows that arrived in a stream, in arrival order; the batches have the stream's own columns and no others."""

    stream: int  # oid
    batches: tuple[pa.RecordBatch, ...]


class RowValues(Struct, frozen=True):
    """A few rows that arrived in a stream one by one, as values of its columns, and their frame (``frames``).

    Arrow arrays of a row or two cost more than everything else about it, so they are made of many commits at a time, by
    readers. In the log it is a StreamRows of the frame, and is read back as one.
    """

    stream: int  # oid
    rows: list[tuple[object, ...]]
    frame: bytes


class Spooled(Struct, frozen=True):
    """Rows that arrived in a stream and were written ahead (a large COPY), in arrival order."""

    stream: int  # oid
    references: tuple[SpoolReference, ...]


class TableChange(Struct, frozen=True):
    """The net change of a table: whole old rows that vanish, whole new rows that appear; an update is one of each."""

    table: int  # oid
    inserted: pa.Table | None = None
    deleted: pa.Table | None = None


class TableValues(Struct, frozen=True):
    """Changes of a table by a few rows as values, with their frames (``frames``); without rows these are empty.

    In the log it is a TableChange of the frames, and is read back as one.
    """

    table: int  # oid
    inserted: bytes
    deleted: bytes


class FilesArrived(Struct, frozen=True):
    """Files found in a stream's folder: ``files`` are (path, size in bytes, mtime in ns), and ``rows`` how many each
    has, None where that is not known. Their rows have the LSN ``place``: that of another server's record where the
    folder is followed there, and 0 stands for this record's own."""

    stream: int  # oid
    files: tuple[tuple[str, int, int], ...]
    format: str
    rows: tuple[int | None, ...] = ()
    place: int = 0


class Followed(Struct, frozen=True):
    """A stream that another server's writers fill has here, with this record's rows of it, all that the other server's
    log has up to its LSN ``upto``."""

    stream: int  # oid
    upto: int


class CatalogChange(Struct, frozen=True):
    """A change of the catalog, as a JSON document that the catalog's owner understands."""

    document: str


Part = StreamRows | RowValues | Spooled | TableChange | TableValues | FilesArrived | Followed | CatalogChange
TransactionRecord = tuple[Part, ...]


def spool_references(record: TransactionRecord) -> tuple[SpoolReference, ...]:
    """All batches written ahead that a record makes part of itself."""
    return tuple(reference for part in record if isinstance(part, Spooled) for reference in part.references)

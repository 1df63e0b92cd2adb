"""Reading another server's log while it is written: some streams' rows, or the names of the files that have them, and
which tables change, from a position on.

Owns: the way over segments that somebody else appends to, rolls and recycles. What was acknowledged is in the files, so
nobody has to be asked, and it makes no difference whether the other server lives. What is read is brought to the disk
first, so that nobody goes on from records that its writer may lose. As in recovery, the log ends where the next header
is not one, and a segment ends where its successor says. Knows neither who the other server is nor what becomes of the
rows.

That the other server keeps the segments above ``position`` is the caller's matter (``executor/moving``).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
from msgspec import Struct

from catalog.values.errors import SqlError
from executor.commit import segment
from executor.commit.encoding.payloads import Kind, decode_batches, decode_record
from executor.commit.files import disk_error
from executor.commit.records import FilesArrived, Spooled, SpoolReference, StreamRows, TableChange
from executor.commit.segment import HEADER, RECORD, Found, Segment, corrupted

#: Bytes of records after which a reading ends, if there are more.
BUDGET: Final = 16 << 20
#: Above all LSNs.
EVERY: Final = 1 << 63
#: RWF_NOWAIT is Linux' own.
_AT_ONCE: Final = getattr(os, "RWF_NOWAIT", 0)


class Arrived(Struct, frozen=True):
    """A stream's batches of one commit, in arrival order, or the files that arrived in its folder."""

    lsn: int
    stream: int  # oid there
    batches: tuple[pa.RecordBatch, ...]
    files: FilesArrived | None = None


class LogFollower:
    """Some streams' rows in a log that another server writes. For one thread, but for ``is_behind``."""

    def __init__(self, folder: Path, streams: frozenset[int], after: int) -> None:
        """``folder`` has the segments; ``streams`` are the oids there. Opens nothing yet."""
        self._folder = folder
        self.streams = streams
        #: The LSN of the last commit that was read, of whichever stream.
        self.position = after
        #: The tables that what was read last has changed, with the LSNs of their last changes in it.
        self.changed: dict[int, int] = {}
        self._segment: Segment | None = None
        self._offset = HEADER

    def close(self) -> None:
        """Closes the file."""
        if self._segment is not None:
            self._segment.close()
        self._segment = None

    def rewind(self, position: int) -> None:
        """What comes behind an LSN is read again."""
        self.close()
        self.position = position

    @property
    def place(self) -> tuple[int, int]:
        """Up to where it has been read, also of what was no news: segment and offset."""
        return (0 if self._segment is None else self._segment.number), self._offset

    def is_behind(self, waits: bool = True) -> bool:
        """Whether there may be more to read. Takes microseconds; any thread may ask. One that ``waits`` for nothing,
        also where the file system does not answer, hears that there may be where the system's memory does not tell."""
        current, offset = self._segment, self._offset
        if current is None:
            return True
        try:
            data = os.pread(current.descriptor, RECORD, offset) if waits else _known(current.descriptor, offset)
            if _header_of(data, current, offset) is not None or self._path(current.number + 1).exists():
                return True
            return not current.path.exists()
        except OSError:  # closed meanwhile, or gone: who reads will hear
            return True

    def read(self, budget: int = BUDGET, upto: int = EVERY) -> list[Arrived]:
        """The rows of the next commits, in order, up to an LSN or the log's end or, where that is far, about a
        ``budget`` of bytes; ``position`` moves on. Raises 72000 where they were recycled, XX001 and 58030."""
        try:
            return self._read(budget, upto)
        except OSError as error:
            self.rewind(self.position)
            raise disk_error(error, f'read the log in "{self._folder}"') from error
        except BaseException:
            self.rewind(self.position)
            raise

    def _read(self, budget: int, upto: int) -> list[Arrived]:
        found: list[Arrived] = []
        self.changed = {}
        position = self.position
        current = self._segment or self._open()
        while budget > 0:
            records = list(self._records(current, budget, upto))
            if not records:
                if _is_behind(_header(current, self._offset), upto):
                    break
                following = self._successor(current)
                if following is None:
                    break
                current = following
                continue
            os.fdatasync(current.descriptor)
            for header, payload in records:
                budget -= header.end - header.offset
                self._offset = header.end
                if payload:
                    position = header.lsn
                    found += self._arrived(header.lsn, payload)
        self.position = position
        return found

    def _records(self, current: Segment, budget: int, upto: int = EVERY) -> Iterator[tuple[Found, bytes]]:
        """What is there whole, with the payloads of new commits. A record whose payload is not may be on its way."""
        offset = self._offset
        while budget > 0 and (header := _header(current, offset)) is not None and not _is_behind(header, upto):
            try:
                payload = current.payload(header)
            except SqlError:
                return
            is_new = header.kind != Kind.DATA and header.lsn > self.position
            yield header, payload if is_new else b""
            offset, budget = header.end, budget - (header.end - offset)

    def _arrived(self, lsn: int, payload: bytes) -> list[Arrived]:
        files: list[Arrived] = []
        found: dict[int, list[pa.RecordBatch]] = {}
        for part in decode_record(pa.py_buffer(payload), self.streams):
            if isinstance(part, TableChange):
                self.changed[part.table] = lsn
            if isinstance(part, FilesArrived) and part.stream in self.streams:
                files.append(Arrived(lsn, part.stream, (), part))
            if isinstance(part, StreamRows | Spooled) and part.stream in self.streams:
                batches = found.setdefault(part.stream, [])
                if isinstance(part, StreamRows):
                    batches += part.batches
                else:
                    batches += (batch for reference in part.references for batch in self._spooled(reference))
        return files + [Arrived(lsn, stream, tuple(batches)) for stream, batches in found.items() if batches]

    def _spooled(self, reference: SpoolReference) -> list[pa.RecordBatch]:
        """A batch that was written ahead, maybe in an earlier segment, which is on the disk since its commit is."""
        holder = self._open_number(reference.segment)
        try:
            header = _header(holder, reference.offset)
            if header is None:
                raise corrupted(f"no data at offset {reference.offset} of {holder.path.name}")
            return decode_batches(pa.py_buffer(holder.payload(header)))
        finally:
            holder.close()

    # Segments ---------------------------------------------------------------------------------------------------

    def _path(self, number: int) -> Path:
        return self._folder / segment.segment_name(number)

    def _open_number(self, number: int) -> Segment:
        return segment.open_segment(self._path(number), os.O_RDONLY)

    def _open(self) -> Segment:
        """The segment in which the position is. Those before it may be recycled while this looks for it."""
        for path in sorted(self._folder.glob("*.log"), reverse=True):
            try:
                found = segment.open_segment(path, os.O_RDONLY)
            except FileNotFoundError:
                continue
            if found.base_lsn <= self.position:
                self._segment, self._offset = found, HEADER
                return found
            found.close()
        raise self._missed()

    def _missed(self) -> SqlError:
        return SqlError("72000", f"rows after LSN {self.position} are no longer in the log of the other server")

    def _successor(self, current: Segment) -> Segment | None:
        """The next segment, where this one has been read to its end."""
        try:
            following = self._open_number(current.number + 1)
        except FileNotFoundError:
            if not current.path.exists():
                raise self._missed() from None
            return None
        if following.predecessor_end != self._offset:
            following.close()
            if any(True for _ in self._records(current, 1)):  # it came before its successor did
                return current
            raise corrupted(f"{current.path.name} ends at {following.predecessor_end}, and was read to {self._offset}")
        current.close()
        self._segment, self._offset = following, HEADER
        return following


def _header(current: Segment, offset: int) -> Found | None:
    return _header_of(os.pread(current.descriptor, RECORD, offset), current, offset)


def _header_of(data: bytes, current: Segment, offset: int) -> Found | None:
    return segment.read_header(data, 0, offset, current.number)


def _known(descriptor: int, offset: int) -> bytes:
    """What is there, from the system's memory. Raises OSError where it is not there, and of network file systems."""
    data = bytearray(RECORD)
    found = os.preadv(descriptor, (data,), offset, _AT_ONCE) if _AT_ONCE else 0
    if found < RECORD:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return bytes(data)


def _is_behind(header: Found | None, upto: int) -> bool:
    """Whether a record is a commit behind an LSN."""
    return header is not None and header.kind != Kind.DATA and header.lsn > upto

"""One file of the log: its header, its records' headers, and what is worth remembering of it in memory.

A segment begins with a header (magic, number, last LSN before it, where its predecessor ends, CRC). A record is

    CRC of the rest of the header u32 | CRC of the payload u32 | length of payload u64 | LSN u64 | kind u8 | payload

and the header's CRC starts from the segment's number, so that records which a recycled file still holds from its
former life are never taken for records of this one. Knows nothing of payloads.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from catalog.values.errors import SqlError

HEADER: Final = 64
#: A disk's block.
BLOCK: Final = 4096
#: Bytes of a record's header.
RECORD: Final = 25

_MAGIC: Final = b"MILLLOG1"
_HEAD: Final = struct.Struct("<8sQQQI")
_CHECKED: Final = struct.Struct("<IQQB")
_CRC: Final = struct.Struct("<I")
#: One entry of the LSN index for so many bytes of log.
_INDEX_EVERY: Final = 64 * 1024
#: A small record, which is one up to this size, is written with so many zeros behind it where the file was never
#: written to. The sync of new blocks is a transaction of the file system, which waits for everybody else's; that of old
#: ones is a write and nothing else.
_FILL: Final = memoryview(bytes(256 * 1024))


class Found(Struct, frozen=True):
    """A record's header as found at ``offset``; its payload begins ``RECORD`` bytes behind."""

    offset: int
    lsn: int
    kind: int
    length: int
    crc: int

    @property
    def end(self) -> int:
        """Where the next record begins."""
        return self.offset + RECORD + self.length


class Segment(Struct):
    """An open segment. Changed only under the log's lock."""

    number: int
    path: Path
    descriptor: int
    size: int
    base_lsn: int  # of the last commit before it
    last_lsn: int  # of the last commit in it, or before it when it has none
    predecessor_end: int
    end: int = HEADER
    #: Up to here the file has been written to, at least: not only given space.
    filled: int = HEADER
    #: Up to here the disk is known to have it.
    durable: int = HEADER
    readers: int = 0
    #: Offsets of batches written ahead whose transaction is still open.
    pinned: set[int] = field(default_factory=set)
    #: The highest LSN of a commit that refers to data in here.
    needed_by: int = 0
    index_lsns: list[int] = field(default_factory=list)
    index_offsets: list[int] = field(default_factory=list)

    def note(self, lsn: int, offset: int, end: int) -> None:
        """A record was appended or found; ``lsn`` is 0 for data written ahead."""
        self.end = end
        if lsn:
            self.last_lsn = lsn
            if not self.index_offsets or offset - self.index_offsets[-1] >= _INDEX_EVERY:
                self.index_lsns.append(lsn)
                self.index_offsets.append(offset)

    def close(self) -> None:
        """Closes the file."""
        os.close(self.descriptor)

    def start_for(self, after: int) -> int:
        """An offset at or before the first commit with an LSN above ``after``."""
        at = bisect_right(self.index_lsns, after) - 1
        return self.index_offsets[at] if at >= 0 else HEADER

    def records(self, offset: int, end: int) -> Iterator[Found]:
        """The headers of the records in a range that is known to be valid."""
        while offset < end:
            found = read_header(os.pread(self.descriptor, RECORD, offset), 0, offset, self.number)
            if found is None:
                raise corrupted(f"invalid record at offset {offset} of {self.path.name}")
            yield found
            offset = found.end

    def payload(self, found: Found) -> bytes:
        """A record's payload. Raises XX001 when it is damaged."""
        payload = os.pread(self.descriptor, found.length, found.offset + RECORD)
        while len(payload) < found.length:  # one call reads at most 2 GiB
            more = os.pread(self.descriptor, found.length - len(payload), found.offset + RECORD + len(payload))
            if not more:
                break
            payload += more
        if zlib.crc32(payload) != found.crc:
            raise corrupted(f"checksum of record at offset {found.offset} of {self.path.name} does not match")
        return payload

    def scan(self, limit: int | None) -> Iterator[tuple[Found, memoryview]]:
        """The valid records from the start, up to the first that is torn, stale or at ``limit``."""
        if self.size <= HEADER:
            return
        with mmap.mmap(self.descriptor, self.size, prot=mmap.PROT_READ) as mapped, memoryview(mapped) as view:
            offset, lsn = HEADER, self.base_lsn
            end = self.size if limit is None else min(limit, self.size)
            while offset + RECORD <= end:
                found = read_header(view, offset, offset, self.number)
                if found is None or found.end > end or 0 < found.lsn <= lsn:
                    return
                with view[offset + RECORD : found.end] as payload:
                    if zlib.crc32(payload) != found.crc:
                        return
                    yield found, payload
                lsn = max(lsn, found.lsn)
                offset = found.end


def pack_header(number: int, last_lsn: int, predecessor_end: int) -> bytes:
    """The header of a segment file, ``HEADER`` bytes."""
    head = _HEAD.pack(_MAGIC, number, last_lsn, predecessor_end, 0)[:-4]
    return (head + _CRC.pack(zlib.crc32(head))).ljust(HEADER, b"\0")


def open_segment(path: Path, access: int = os.O_RDWR) -> Segment:
    """Opens a segment file, not yet scanned. Raises XX001 when its header is not one: no crash leaves that behind."""
    descriptor = os.open(path, access | os.O_CLOEXEC)
    head = os.pread(descriptor, HEADER, 0)
    if len(head) == HEADER:
        magic, number, last_lsn, predecessor_end, crc = _HEAD.unpack_from(head)
        if magic == _MAGIC and crc == zlib.crc32(head[: _HEAD.size - 4]) and path.name == segment_name(number):
            size = os.fstat(descriptor).st_size
            return Segment(number, path, descriptor, size, last_lsn, last_lsn, predecessor_end)
    os.close(descriptor)
    raise corrupted(f"{path.name} does not begin with a valid header")


def segment_name(number: int) -> str:
    """The file name of a live segment."""
    return f"{number:016x}.log"


def pack_record(number: int, lsn: int, kind: int, length: int, crc: int) -> bytes:
    """A record's header in the segment of that number."""
    checked = _CHECKED.pack(crc, length, lsn, kind)
    return _CRC.pack(zlib.crc32(checked, number & 0xFFFFFFFF)) + checked


def fill(length: int, end: int, size: int) -> memoryview:
    """The zeros behind so many bytes that end at ``end`` of a file: up to a whole block."""
    return _FILL[: min((end + len(_FILL)) // BLOCK * BLOCK, size) - end if length <= len(_FILL) else 0]


def read_header(source: bytes | memoryview, at: int, offset: int, number: int) -> Found | None:
    """The record header at position ``at`` of ``source``, or None when there is none of this segment."""
    if len(source) < at + RECORD:
        return None
    (own,) = _CRC.unpack_from(source, at)
    if own != zlib.crc32(source[at + 4 : at + RECORD], number & 0xFFFFFFFF):
        return None
    crc, length, lsn, kind = _CHECKED.unpack_from(source, at + 4)
    return Found(offset, lsn, kind, length, crc)


def corrupted(what: str) -> SqlError:
    """XX001."""
    hint = "Restore the file, or restore the whole data folder from a backup."
    return SqlError("XX001", f"the log is corrupted: {what}", hint=hint)

"""The control file: how far the log and the sequences' values have reached at least, said by another file than theirs.

A file that lost its end looks like one whose writer crashed. What tells the two apart is this file, which the server
holds in shared memory: a mark is stored there once the disk has what it speaks of, which costs no call of the system.
A process that is killed leaves the marks as they were at that moment. After a power cut an older version of them may be
back, which promises less, and nothing wrong. ``sync`` is for the moments that last: a clean end, a recycled segment.

    magic 8 bytes | zeros up to 64 | two copies of each mark, 64 bytes each, all in the disk's first sector:
    serial u64 | file u64 | end u64 | check u64 | CRC u32

The newer valid copy of a mark counts, so that one that was being stored when the process died is no loss. Owns the
form; knows neither logs nor sequences.
"""

from __future__ import annotations

import logging
import mmap
import os
import struct
import zlib
from enum import IntEnum
from pathlib import Path
from typing import Final

from msgspec import Struct

_LOGGER: Final = logging.getLogger(__name__)

_SIZE: Final = mmap.PAGESIZE
_MAGIC: Final = b"MILLCTL1"
_MARK: Final = struct.Struct("<QQQQ")
_CRC: Final = struct.Struct("<I")
_SLOT: Final = 64


class Place(IntEnum):
    """What is marked."""

    LOG = 0
    SEQUENCES = 1


class Mark(Struct, frozen=True, order=True):
    """A file, by its number, is ``end`` bytes long at least. ``check`` is a checksum of these, where one is known."""

    file: int = 0
    end: int = 0
    check: int = 0


class Control:
    """An open control file. Any thread may store marks; those of one place come from one at a time."""

    def __init__(self, path: Path) -> None:
        """Opens or makes it. Raises OSError."""
        self._path = path
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            found = os.pread(descriptor, _SIZE, 0)
            if len(found) < _SIZE or not found.startswith(_MAGIC):
                os.ftruncate(descriptor, 0)
                os.posix_fallocate(descriptor, 0, _SIZE)
                os.pwrite(descriptor, _MAGIC, 0)
            self._memory = mmap.mmap(descriptor, _SIZE)
        finally:
            os.close(descriptor)
        self._serials = [0, 0]
        #: The marks that the file had; None where it was new, or not what was written.
        self.found: dict[Place, Mark] | None = None
        marks = {place: self._read(place) for place in Place} if found.startswith(_MAGIC) else {}
        if marks and None not in marks.values():
            self.found = {place: mark for place, mark in marks.items() if mark is not None}
        elif found:
            _LOGGER.warning('"%s" is not what was written: it is made anew, and confirms nothing of before', path.name)

    def mark(self, place: Place, mark: Mark) -> None:
        """The disk has a file up to there."""
        serial = self._serials[place] = self._serials[place] + 1
        data = _MARK.pack(serial, mark.file, mark.end, mark.check)
        at = _SLOT * (1 + 2 * place + serial % 2)
        self._memory[at : at + _MARK.size + 4] = data + _CRC.pack(zlib.crc32(data))

    def sync(self) -> None:
        """Returns when the disk has the marks. Raises OSError."""
        self._memory.flush()

    def close(self) -> None:
        """Syncs and closes it."""
        self.sync()
        self._memory.close()

    def _read(self, place: Place) -> Mark | None:
        """The newer valid copy; none where both are damaged; an empty one where none was stored yet."""
        newest: tuple[int, Mark] | None = None
        empty = 0
        for copy in range(2):
            at = _SLOT * (1 + 2 * place + copy)
            data = self._memory[at : at + _MARK.size]
            (crc,) = _CRC.unpack_from(self._memory, at + _MARK.size)
            serial, *values = _MARK.unpack(data)
            if not any(data) and not crc:
                empty += 1
            elif crc == zlib.crc32(data) and (newest is None or serial > newest[0]):
                newest = serial, Mark(*values)
        if newest is None:
            return Mark() if empty == 2 else None
        self._serials[place] = newest[0]
        return newest[1]

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
from pathlib import Path
from typing import Final

from msgspec import Struct

_LOGGER: Final = logging.getLogger(__name__)

_SIZE: Final = mmap.PAGESIZE
_MAGIC: Final = b"MILLCTL1"
_MARK: Final = struct.Struct("<QQQQ")
_CRC: Final = struct.Struct("<I")
_SLOT: Final = 64
_LENGTH: Final = _MARK.size + _CRC.size


class Mark(Struct, frozen=True):
    """A file, by its number (0: there was none yet), is ``end`` bytes long at least. ``check`` is a checksum of these,
    where one is known."""

    file: int = 0
    end: int = 0
    check: int = 0


class Marker:
    """One mark's place in the control file. ``put`` is for one thread at a time."""

    def __init__(self, memory: mmap.mmap, place: int) -> None:
        self._memory = memory
        self._slots = tuple(_SLOT * (1 + 2 * place + copy) for copy in range(2))
        self._serial = 0
        #: What the file had when it was opened; None where it was new, or not what was written.
        self.found: Mark | None = None

    def read(self) -> bool:
        """Finds the newer valid copy; False where there is none, though something was stored."""
        copies = [self._memory[at : at + _LENGTH] for at in self._slots]
        valid = [copy for copy in copies if _CRC.unpack_from(copy, _MARK.size)[0] == zlib.crc32(copy[: _MARK.size])]
        if not valid:
            self.found = None if any(map(any, copies)) else Mark()
            return self.found is not None
        self._serial, *values = max(_MARK.unpack_from(copy) for copy in valid)
        self.found = Mark(*values)
        return True

    def put(self, file: int, end: int, check: int = 0) -> None:
        """The disk has a file up to there."""
        self._serial = serial = self._serial + 1
        data = _MARK.pack(serial, file, end, check)
        at = self._slots[serial & 1]
        self._memory[at : at + _LENGTH] = data + _CRC.pack(zlib.crc32(data))


class Control:
    """An open control file."""

    def __init__(self, path: Path) -> None:
        """Opens or makes it. Raises OSError."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            found = os.pread(descriptor, _SIZE, 0)
            is_known = len(found) == _SIZE and found.startswith(_MAGIC)
            if not is_known:
                os.ftruncate(descriptor, 0)
                os.posix_fallocate(descriptor, 0, _SIZE)  # what is stored in memory must not meet a full disk
                os.pwrite(descriptor, _MAGIC, 0)
            self._memory = mmap.mmap(descriptor, _SIZE)
        finally:
            os.close(descriptor)
        #: The last segment of the log, by its number.
        self.log = Marker(self._memory, 0)
        #: The sequences' file, by how often it was written anew.
        self.sequences = Marker(self._memory, 1)
        if is_known:
            is_known = all([self.log.read(), self.sequences.read()])
        if found and not is_known:
            _LOGGER.warning('"%s" is damaged: it is created again, and confirms no earlier records', path.name)

    def sync(self) -> None:
        """Returns when the disk has the marks. Raises OSError."""
        self._memory.flush()

    def close(self) -> None:
        """Syncs and closes it."""
        self.sync()
        self._memory.close()

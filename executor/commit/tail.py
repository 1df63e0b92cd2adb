"""The last blocks of the log in memory as a disk takes them: whole, and at addresses that are multiples of a block.

A record that is written past the operating system's memory is written with what its first block already has, and with
zeros behind it, so the block that is not full yet is kept here. A write that tears leaves each sector as it was or as
it should be, and of the records before it both have the same bytes. Owns that memory; knows neither files nor records.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Final

from executor.commit.aio import address_of

BLOCK: Final = 4096
#: What one record may take: larger ones gain nothing.
LARGEST: Final = 64 * 1024
_SIZE: Final = LARGEST + 2 * BLOCK

#: Reads so many bytes at an offset.
Read = Callable[[int, int], bytes]


class Tail:
    """The memory. What ``place`` put there must not change before the disk has it: it is called when that is so."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SIZE)
        #: Where the memory lies, and its bytes.
        self.address = address_of(self._memory)
        self.bytes = memoryview(self._memory)
        self._number = 0  # of the segment whose bytes these are,
        self._start = self._end = 0  # and their offsets in it

    def place(self, number: int, end: int, data: bytes, read: Read) -> tuple[int, int]:
        """Puts data behind the ``end`` of a segment; offset and length of the blocks that have it.

        ``read`` reads what the segment has before ``end``, where something else was appended meanwhile.
        """
        memory, start = self._memory, end // BLOCK * BLOCK
        known = end - start
        if (self._number, self._end) != (number, end):
            memory[:known] = read(known, start)
        elif start != self._start:
            memory.move(0, start - self._start, known)
        behind = known + len(data)
        length = whole_blocks(behind)
        memory[known:behind] = data
        memory[behind:length] = bytes(length - behind)
        self._number, self._start, self._end = number, start, end + len(data)
        return start, length

    def forget(self) -> None:
        """What ``place`` put there does not go to the disk."""
        self._number = 0


def whole_blocks(size: int) -> int:
    """A number of bytes, up to a whole block."""
    return -(-size // BLOCK) * BLOCK

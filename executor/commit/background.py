"""Writes and syncs that the kernel executes while the thread that began them continues (``aio``).

An event loop that syncs on its own thread keeps its clients waiting; a thread that is woken for every sync costs more
than the sync, since both then want Python's lock. The kernel needs neither: it signals a descriptor, which the loop
watches beside its sockets. For a sync it must wake a thread of its own all the same, which first finds what is to be
written; a write of blocks past its memory (O_DIRECT) that is to be durable (O_DSYNC) is with the disk at once. Owns the
kernel's context. Knows nothing of logs or loops.
"""

from __future__ import annotations

import errno
import mmap
import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from executor.commit import aio
from executor.commit.files import Files, Synced, Watch
from executor.commit.tail import BLOCK

#: Operations under way: the log has one at a time.
_MOST: Final = 4
#: O_DIRECT is Linux' own.
_DIRECT: Final = os.O_WRONLY | os.O_DSYNC | os.O_CLOEXEC | getattr(os, "O_DIRECT", 0)


class BackgroundFiles(Files):
    """Files whose ``begin_sync`` and ``begin_write`` return at once. They and ``watch``'s callback run on one thread,
    the watcher's."""

    def __init__(self) -> None:
        """Raises OSError where the kernel has no more contexts."""
        self._context = aio.Context(_MOST)

    def watch(self, watch: Watch) -> bool:
        """From now on operations are told of by the descriptor that ``watch`` is given."""
        watch(self._context.descriptor, self._context.reap)
        return True

    def begin_sync(self, descriptor: int, synced: Synced) -> None:
        """Begins a sync. One that the kernel does not take, for lack of room above all, happens here and now."""
        try:
            self._context.sync_data(descriptor, partial(_ended, synced, 0))
        except OSError:
            super().begin_sync(descriptor, synced)

    def open_direct(self, path: Path) -> int | None:
        """Writes the first block again to see whether the file system takes that: not all do that can open the file."""
        try:
            descriptor = os.open(path, _DIRECT)
        except OSError:
            return None
        try:
            block = mmap.mmap(-1, BLOCK)
            with open(path, "rb") as file:
                known = file.readinto(block)
            if known == BLOCK and os.pwrite(descriptor, block, 0) == BLOCK:
                return descriptor
        except OSError:
            pass
        os.close(descriptor)
        return None

    def begin_write(self, descriptor: int, address: int, length: int, offset: int, synced: Synced) -> None:
        """Begins a write."""
        self._context.write(descriptor, address, length, offset, partial(_ended, synced, length))


def background_files() -> Files:
    """Files with syncs in the background, where the system has them."""
    if aio.is_possible():
        with suppress(OSError):
            return BackgroundFiles()
    return Files()


def _ended(synced: Synced, expected: int, result: int) -> None:
    """``result`` is what was expected, an error's number below 0, or too few bytes."""
    if result == expected:
        synced(None)
    else:
        number = -result if result < 0 else errno.EIO
        synced(OSError(number, os.strerror(number)))

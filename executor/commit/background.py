"""Syncs that the kernel carries out while the thread that began them goes on (Linux' native AIO, by ``caio``).

An event loop that syncs on its own thread keeps its clients waiting; a thread that is woken for every sync costs more
than the sync, since both then want Python's lock. The kernel needs neither: it signals a descriptor, which the loop
watches beside its sockets. Owns the kernel's context. Knows nothing of logs or loops.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import Final

from caio import linux_aio

from executor.commit.files import Files, Synced, Watch

#: Syncs under way: the log has one at a time.
_MOST: Final = 4


class BackgroundFiles(Files):
    """Files whose ``begin_sync`` returns at once. That and ``watch``'s callback run on one thread, the watcher's."""

    def __init__(self) -> None:
        """Raises OSError or SystemError where the kernel has no more contexts."""
        self._context = linux_aio.Context(max_requests=_MOST)

    def watch(self, watch: Watch) -> bool:
        """From now on syncs are told of by the descriptor that ``watch`` is given."""
        watch(self._context.fileno, self._ready)
        return True

    def begin_sync(self, descriptor: int, synced: Synced) -> None:
        """Begins a sync. One that the kernel does not take, for lack of room above all, happens here and now."""
        operation = linux_aio.Operation.fdsync(descriptor)
        operation.set_callback(partial(_ended, synced))
        try:
            self._context.submit(operation)
        except (OverflowError, ValueError, SystemError):
            super().begin_sync(descriptor, synced)

    def _ready(self) -> None:
        with suppress(BlockingIOError):  # the signal counts, but not exactly those that are found below
            self._context.poll()
        while self._context.process_events(max_requests=_MOST) == _MOST:
            pass


def background_files() -> Files:
    """Files with syncs in the background, where the system has them."""
    if linux_aio is not None:  # it is elsewhere
        with suppress(OSError, SystemError):
            return BackgroundFiles()
    return Files()


def _ended(synced: Synced, result: int) -> None:
    """``result`` is 0, or an error's number below 0, as 64 bits."""
    synced(OSError(number := (1 << 64) - result, os.strerror(number)) if result else None)

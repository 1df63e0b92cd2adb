"""LSNs at which open transactions read: each REPEATABLE READ snapshot pins the LSN that it is of.

A view that moves past a pinned LSN keeps its content as of it (``executor.views.runtime``). Knows nothing of views or
transactions.
"""

from __future__ import annotations

import threading
from collections import Counter


class PinnedLsns:
    """A bag of LSNs. Pinned under the sequencer's lock, so that no reader with a later LSN overtakes; read by any
    thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = Counter[int]()
        #: In ascending order; replaced as a whole.
        self.lsns: tuple[int, ...] = ()

    def pin(self, lsn: int) -> None:
        """A snapshot of an LSN begins."""
        with self._lock:
            self._counts[lsn] += 1
            self.lsns = tuple(sorted(self._counts))

    def unpin(self, lsn: int) -> None:
        """A snapshot of an LSN ends."""
        with self._lock:
            self._counts[lsn] -= 1
            if not self._counts[lsn]:
                del self._counts[lsn]
            self.lsns = tuple(sorted(self._counts))

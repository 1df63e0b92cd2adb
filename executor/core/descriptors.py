"""The process's file descriptors: how many it may have, and how many are left.

Owns: the limit, and the refusal of what would take the last ones. DuckDB ends the process where it gets no descriptor
in the middle of some operations, and the log, a table's file and the storage must never lack one, so clients and files
that queries read have only what lies above ``RESERVED``.
"""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import Final

from catalog.values.errors import SqlError

#: Descriptors that neither clients nor files of queries take: for the log, tables, spilled data, states of views.
RESERVED: Final = 24
#: Descriptors that one query of files may have open at once: some for each thread of the engine.
OF_FILES: Final = 8
#: Descriptors without which no server starts: the reserved ones, its own, and some clients.
LEAST: Final = 56
_UNLIMITED: Final = 1 << 30
_OPEN: Final = Path("/proc/self/fd")


def raise_limit() -> int:
    """Lets the process have as many descriptors as its hard limit says; how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return _UNLIMITED if hard == resource.RLIM_INFINITY else hard


class _Descriptors:
    """Counts the open descriptors. While ``PLENTY`` are left, a count holds for ``HOLDS`` seconds, in which the process
    cannot open as many."""

    PLENTY: Final = 4096
    HOLDS: Final = 0.25

    def __init__(self) -> None:
        self._open = 0
        self._until = 0.0

    def left(self) -> int:
        """How many more the process may open."""
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if limit == resource.RLIM_INFINITY:
            return _UNLIMITED
        if limit - self._open < self.PLENTY or time.monotonic() >= self._until:
            self._open = self._count()
            self._until = time.monotonic() + self.HOLDS
        return limit - self._open

    @staticmethod
    def _count() -> int:
        try:
            return len(os.listdir(_OPEN))
        except FileNotFoundError:  # a system without /proc
            return -_UNLIMITED
        except OSError:  # there is none to read the folder with
            return _UNLIMITED


_descriptors: Final = _Descriptors()


def left() -> int:
    """How many descriptors the process may still open."""
    return _descriptors.left()


def require_left(count: int, doing: str) -> None:
    """Raises 53000 where ``count`` descriptors would take some of the reserved ones."""
    if left() < RESERVED + count:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        hint = f"Close connections, or start the server with more than {limit} open files (ulimit -n)."
        raise SqlError("53000", f"could not {doing}: too many open files", hint=hint)

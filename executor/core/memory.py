"""The process's memory: how much there is, how it is divided, and how what was freed goes back to the system.

Owns: the shares of ``memory_limit``. An instance of the embedded engine counts what its operators and buffers hold and
writes to the spill folder, or raises 53200, beyond its share. Traces have one budget together, which is no larger than
their share (``executor.traces.budget``). What has no counter (single values, results on their way, Python) shows in the
process's resident size alone (``server.operations.memory_guard``).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
from pathlib import Path
from typing import Final

#: The default of ``memory_limit``, as a share of what the machine or the control group has.
_DEFAULT_PERCENT: Final = 75
#: An instance of the engine gets no less: below it, it cannot even sort.
_LEAST_OF_ENGINE: Final = 128 << 20
_GROUPS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_STATUS: Final = "/proc/self/statm"
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def default_limit() -> int:
    """Bytes that the server may take where the configuration says nothing."""
    return available() * _DEFAULT_PERCENT // 100


def available() -> int:
    """Bytes that the machine has, or the control group where that has less."""
    found = [_PAGE * os.sysconf("SC_PHYS_PAGES")]
    for path in _GROUPS:
        with contextlib.suppress(OSError, ValueError):  # "max" is no number
            found.append(int(path.read_text()))
    return min(found)


def engine_share(limit: int) -> int:
    """Bytes of one instance of the embedded engine."""
    return max(limit // 2, _LEAST_OF_ENGINE)


def trace_share(limit: int) -> int:
    """Bytes of the rows that traces hold."""
    return limit * 3 // 8


def result_cache_share(limit: int) -> int:
    """Bytes of encoded answers."""
    return limit // 16


def held_share(limit: int) -> int:
    """Bytes of the rows that one cursor holds."""
    return limit // 2


def resident() -> int:
    """Bytes of memory that the process has now; 0 where the system does not say."""
    return _status(1)


def bound_growth(size: int) -> None:
    """Makes the system refuse mappings of so many more bytes; their callers get an error."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    mapped = _status(0)
    if mapped:
        resource.setrlimit(resource.RLIMIT_AS, (_least(mapped + size, hard), hard))


def unbound_growth() -> None:
    """Takes that back."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _least(size: int, hard: int) -> int:
    return size if hard == resource.RLIM_INFINITY else min(size, hard)


def _status(place: int) -> int:
    try:
        with open(_STATUS, "rb") as file:
            return int(file.read().split()[place]) * _PAGE
    except OSError:
        return 0


def give_back() -> None:
    """Returns to the system what the allocators keep for the next use."""
    import pyarrow as pa  # not before the server listens

    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)

"""How the process gets memory from the system.

Owns: the settings of the C library's allocator, and that Arrow uses it. A large COPY takes and frees some megabytes for
each block, on several threads. Arrow's own allocator and the C library's defaults give them back to the system each
time, which then has to clear the pages for the next block: as much time again as parsing takes. Kept, they are used
again at once. Each heap of the C library keeps some, even when asked to give it back (``malloc_trim`` passes over the
end of all but the first), so there are no more heaps than processors; by default there are eight times as many.

Owns also what the collector of cycles need not look at (what was loaded before the first client came stays to the
end), and what is not loaded at all.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from typing import Any, Final

#: mallopt(3): free memory at the end of a heap that is kept, allocations that are mapped each for itself, and heaps.
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
_KEPT: Final = 64 << 20
_MAPPED: Final = 32 << 20  # the most that there may be
_FEWEST_ARENAS: Final = 2


def keep_freed_memory() -> None:
    """Must come before Arrow is loaded. Where the C library has no such settings, its defaults stay."""
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _MAPPED)
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_ARENA_MAX, max(os.cpu_count() or 1, _FEWEST_ARENAS))


def collect_later() -> None:
    """Has the collector wait for ``keep_what_is_loaded``: while modules are loaded it would find next to nothing."""
    gc.disable()


def keep_what_is_loaded() -> None:
    """Has the collector pass over everything that is there now: modules, types, the catalog. To look through it, which
    it does again and again while a server fills its caches, stops every thread for some 50 ms each time."""
    gc.freeze()
    gc.enable()


def leave_out_pandas() -> None:
    """Must come before anything makes an Arrow array, and before other threads do. pyarrow looks for pandas once, at
    the first one, and loads it if it is there: 40 MB and a fifth of a second of each start, for which the server has no
    use (Spark's driver, a process of its own, has)."""
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import numpy.ma  # noqa: F401 -- numpy loads it at its first use, by pyarrow, and no two threads may do that at once
        import pyarrow as pa

        pa.array([])
    finally:
        sys.meta_path.remove(finder)


class _NoPandas:
    """Finds that there is no pandas."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name, name=name)

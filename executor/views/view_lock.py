"""The lock of a continuous view's content.

Owns: that a thread which gives memory back finds out whether the content is in use, by another thread or by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager


class ViewLock:
    """A lock that a thread may take again while it has it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._owner = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1
        self._owner = threading.get_ident()

    def __exit__(self, *raised: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = 0
        self._lock.release()

    @property
    def is_held(self) -> bool:
        """Whether this thread has it."""
        return self._owner == threading.get_ident()

    @contextmanager
    def if_free(self) -> Iterator[bool]:
        """A context that has the lock, and whether it does: not where some thread had it, this one included."""
        is_free = self._lock.acquire(blocking=False)
        if is_free and self._depth:
            self._lock.release()
            is_free = False
        if not is_free:
            yield False
            return
        with self:
            self._lock.release()
            yield True


@contextmanager
def locked(locks: Iterable[ViewLock]) -> Iterator[None]:
    """Holds several locks, which all callers give in the order of their views' oids."""
    with ExitStack() as stack:
        for lock in locks:
            stack.enter_context(lock)
        yield

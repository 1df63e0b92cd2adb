"""When what a relation shows changed last: what tells whether a cached answer still holds.

Owns: the LSN of the last change of each table and stream, and which of them, and which views, each continuous view
reads. Knows nothing of how a change comes about.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Mapping
from types import MappingProxyType


class Versions:
    """The last changes of all relations. Written under the sequencer's lock, read by any thread without it."""

    def __init__(self) -> None:
        self._changed: dict[int, int] = {}
        #: Waiters that are woken when rows of a relation change, or it is dropped.
        self._waiting: dict[int, tuple[threading.Event, ...]] = {}
        #: The continuous views without a maintaining server now: no earlier answer about them is repeated.
        self.suspended: frozenset[int] = frozenset()
        self._private = itertools.count(-1, -1)
        #: For each continuous view everything whose change may change its result, itself included.
        self.reads: Mapping[int, tuple[int, ...]] = {}

    def set_reads(self, reads: dict[int, tuple[int, ...]]) -> None:
        """Views came, went or were altered: what each reads now, itself included."""
        self.reads = MappingProxyType(reads)

    def change(self, oid: int, lsn: int) -> None:
        """Rows of a table or stream changed, or of a table of another server that a view reads."""
        self._changed[oid] = lsn
        for event in self._waiting.get(oid, ()):
            event.set()

    def private(self) -> int:
        """A version of content that one reader alone sees: below 0, and no other reader's."""
        return next(self._private)

    def last(self, oid: int) -> int:
        """The LSN of the last change of one relation itself, if there was any."""
        return self._changed.get(oid, 0)

    def forget(self, oid: int) -> None:
        """A relation was dropped."""
        self._changed.pop(oid, None)
        for event in self._waiting.get(oid, ()):
            event.set()

    def suspend(self, oid: int, is_suspended: bool) -> None:
        """A continuous view is suspended, or is not."""
        if (oid in self.suspended) != is_suspended:
            self.suspended ^= {oid}

    def are_suspended(self, oids: Iterable[int]) -> bool:
        """Whether one of these relations reads a view that has no maintaining server now."""
        found = self.suspended
        return bool(found) and any(not found.isdisjoint(self.reads.get(oid, (oid,))) for oid in oids)

    def stir(self, oid: int) -> None:
        """A view may show something else now, though nothing below it has changed: it is on another server."""
        for event in self._waiting.get(oid, ()):
            event.set()

    def wake(self, oids: Iterable[int], event: threading.Event) -> None:
        """``event`` is set from now on when one of these changes. Under the sequencer's lock, as ``leave``."""
        for oid in oids:
            self._waiting[oid] = (*self._waiting.get(oid, ()), event)

    @property
    def waits(self) -> bool:
        """Whether anybody is to be woken."""
        return bool(self._waiting)

    def leave(self, oids: Iterable[int], event: threading.Event) -> None:
        """Takes ``wake`` back."""
        for oid in oids:
            rest = tuple(each for each in self._waiting.get(oid, ()) if each is not event)
            if rest:
                self._waiting[oid] = rest
            else:
                self._waiting.pop(oid, None)

    def newest(self, oids: tuple[int, ...]) -> int:
        """The LSN of the last change of what these relations, and those below them, show."""
        changed = self._changed
        newest = 0
        for oid in oids:
            for below in self.reads.get(oid, (oid,)):
                newest = max(newest, changed.get(below, 0))
        return newest

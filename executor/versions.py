"""When what a relation shows changed last: what tells whether a cached answer still holds.

Owns: the LSN of the last change of each table and stream, and which of them, and which views, each continuous view
reads. Knows nothing of how a change comes about.
"""

from __future__ import annotations

from collections.abc import Mapping


class Versions:
    """The last changes of all relations. Written under the sequencer's lock, read by any thread without it."""

    def __init__(self) -> None:
        self._changed: dict[int, int] = {}
        #: For each continuous view everything whose change may change its result, itself included.
        self.reads: Mapping[int, tuple[int, ...]] = {}

    def change(self, oid: int, lsn: int) -> None:
        """Rows of a table or stream changed."""
        self._changed[oid] = lsn

    def forget(self, oid: int) -> None:
        """A relation was dropped."""
        self._changed.pop(oid, None)

    def newest(self, oids: tuple[int, ...]) -> int:
        """The LSN of the last change of what these relations, and those below them, show."""
        changed = self._changed
        newest = 0
        for oid in oids:
            for below in self.reads.get(oid, (oid,)):
                newest = max(newest, changed.get(below, 0))
        return newest

"""Encoded answers of repeated queries, kept as long as nothing that they read has changed.

Owns: the result cache and its memory bound (thesis 4.2.5 keeps a view's last result; this keeps its bytes). An entry
knows the catalog and the version of its inputs from *before* it was computed: a change in between makes it stale at
once, never wrong. Used on the event loop's thread only.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from catalog.catalog import Catalog
    from executor.database.database import Database
    from server.plans.planning import Plan

#: An entry's own weight beside its bytes.
_OVERHEAD: Final = 512


class Stamp(Struct):
    """What a result was computed from: valid while the database's versions are equal.

    ``checked`` is an LSN at which they were: as long as nothing at all is published after it, it need not be checked
    again.
    """

    catalog: Catalog
    reads: tuple[int, ...]
    version: int
    checked: int = -1

    def holds(self, database: Database) -> bool:
        """Whether a query would give the same result now, and need not wait for a lock."""
        barriers = database.core.tables.locks.barriers
        if barriers and not barriers.keys().isdisjoint(self.reads):
            return False
        if database.replicas.are_behind(self.reads) or database.core.versions.are_suspended(self.reads):
            return False
        visible = database.core.sequencer.visible  # before the rest: what is published meanwhile is asked for next time
        if visible == self.checked:
            return True
        if database.core.catalog is not self.catalog or database.core.version_of(self.reads) != self.version:
            return False
        self.checked = visible
        return True


class Answered(Struct, frozen=True):
    """What the ordinary path has answered without a thread.

    ``data`` is its rows and CommandComplete, for a Query (``plan`` None) with RowDescription. A cached answer has a
    ``stamp``; a point read and an INSERT have none.
    """

    plan: Plan | None
    data: bytes
    stamp: Stamp | None


class Answer(Struct, frozen=True):
    """A query's whole response, but for ReadyForQuery."""

    data: bytes
    stamp: Stamp


class ResultCache:
    """Answers by whatever makes two requests equal; the oldest go when ``limit`` bytes are full."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._largest = limit // 8
        self._size = 0
        self._answers: dict[Hashable, Answer] = {}

    def get(self, key: Hashable, database: Database) -> Answer | None:
        """The answer to a request seen before, if it still holds."""
        answer = self._answers.get(key)
        if answer is None:
            return None
        if answer.stamp.holds(database):
            return answer
        self._forget(key)
        return None

    def takes(self, size: int) -> bool:
        """Whether an answer of so many bytes is worth keeping."""
        return size <= self._largest

    def put(self, key: Hashable, data: bytes, stamp: Stamp) -> None:
        """Keeps an answer."""
        if not self.takes(len(data)):
            return
        self._forget(key)
        self._answers[key] = Answer(data, stamp)
        self._size += len(data) + _OVERHEAD
        while self._size > self._limit:
            self._forget(next(iter(self._answers)))

    def _forget(self, key: Hashable) -> None:
        answer = self._answers.pop(key, None)
        if answer is not None:
            self._size -= len(answer.data) + _OVERHEAD

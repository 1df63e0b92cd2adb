"""The interface of a feed: the changes of one relation as runs, by LSN.

The feed of a continuous view is in ``view_feed``, that of a table in ``table_feed``. A run has the relation's columns
by their places, and behind them by how many the number of such rows grows.
"""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from catalog.objects import Table
from executor.traces.bookmark import Bookmark
from executor.traces.kept_runs import Run


class FeedReader(Protocol):
    """Reads the rows that relations have now."""

    @property
    def owner(self) -> object:
        """On whose behalf the engine runs queries, which can be interrupted by it."""
        ...

    def of_view(self, oid: int) -> tuple[int, int, pa.Table]:
        """A continuous view's rows now: their LSN, that of the last change of what they are made of, and the rows."""
        ...

    def changes_of_view(self, oid: int, after: int) -> tuple[int, int, list[pa.Table]] | None:
        """How a continuous view's rows have changed since an LSN, if they are kept up to date: their LSN now, that of
        the last change of what they are made of, and the changes, with weights behind the view's columns."""
        ...

    def of_table(self, table: Table) -> tuple[int, pa.Table]:
        """The LSN of now, and a table's rows at it, with all stored columns."""
        ...


class Feed(Protocol):
    """The changes of one relation. Safe for many threads."""

    @property
    def reads(self) -> tuple[int, ...]:
        """The relations whose changes may change the rows."""
        ...

    @property
    def is_current(self) -> bool:
        """Whether the relation exists and is the one that it was."""
        ...

    @property
    def is_elsewhere(self) -> bool:
        """Whether another server is asked for the rows."""
        ...

    @property
    def is_read(self) -> bool:
        """Whether the feed has readers."""
        ...

    @property
    def lsn(self) -> int:
        """The LSN of the last look; 0 before the first one."""
        ...

    def require(self) -> None:
        """Raises the error that tells readers why the relation is not current, if it is not."""
        ...

    def snapshot(self, reader: FeedReader) -> Run:
        """All rows now, as a difference from nothing; the changes go on at its LSN."""
        ...

    def start(self, reader: FeedReader, since: int | None) -> int:
        """The LSN behind which the changes since another one lie (None: now). Raises 72000 where they are no longer
        known, and 22023 for an LSN that is still to come."""
        ...

    def advance(self, reader: FeedReader) -> int:
        """Brings the feed to the present, and returns its LSN."""
        ...

    def delta(self, after: int, upto: int) -> list[Run]:
        """The changes over (after, upto]. Raises 72000 where some have been forgotten."""
        ...

    def bookmark(self, lsn: int) -> Bookmark:
        """A reader of the changes behind an LSN, for as long as the bookmark is held."""
        ...

    def close(self) -> None:
        """Ends the feed, which has no readers any more."""
        ...

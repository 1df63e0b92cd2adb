"""The feeds of a database: one for each relation whose changes are read, for all of its readers."""

from __future__ import annotations

import threading
from typing import Final

from catalog.objects import Table
from executor.core.core import Core
from executor.key_access.view_indexes import ViewIndexes
from executor.subscriptions.feed import Feed
from executor.subscriptions.table_feed import TableFeed
from executor.subscriptions.view_feed import ViewFeed

#: Feeds that are kept without readers, in case a reader comes back.
IDLE: Final = 4


class ChangeFeeds:
    """The feeds of continuous views and tables. Safe for many threads."""

    def __init__(self, core: Core, indexes: ViewIndexes) -> None:
        self._core, self._indexes = core, indexes
        self._lock = threading.Lock()
        self._feeds: dict[int, Feed] = {}

    def feed(self, oid: int) -> Feed:
        """A relation's feed, which stays for those who hold a bookmark of it. Raises 42P01."""
        with self._lock:
            found = self._feeds.pop(oid, None)
            if found is None or not found.is_current:
                if found is not None:
                    found.close()
                found = self._made(oid)
            self._feeds[oid] = found  # the last in order
            idle = [each for each, feed in tuple(self._feeds.items()) if each != oid and not feed.is_read]
            for each in idle[: max(0, len(idle) - IDLE)]:
                self.forget(each)
            return found

    def forget(self, oid: int) -> None:
        """A relation was dropped, or nobody reads its changes. Takes no lock: the caller may have the sequencer's."""
        feed = self._feeds.pop(oid, None)
        if feed is not None:
            feed.close()

    def _made(self, oid: int) -> Feed:
        with self._core.sequencer.lock:  # the table as it is defined when its trace begins
            table = self._core.catalog.objects.get(oid)
            if isinstance(table, Table):
                return TableFeed(self._core, table)
        return ViewFeed(self._core, self._indexes, self._core.view(oid))

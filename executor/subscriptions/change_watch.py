"""Continuous views and tables whose changes are reported: one thread that looks when what they read has changed, and
again if it failed.

Owns: which names are watched, for how many, and when to look: never more than a share of the time, so that bursts
become one notice and writers notice nothing. What is told is an LSN and how many rows have changed
(``executor.subscriptions.feed``); to whom is the caller's matter. Names are looked up again whenever the catalog
is another one.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeGuard

import pyarrow.compute
from msgspec import Struct, field

from catalog.catalog import Catalog
from catalog.objects import CatalogObject, Table, View, is_temporary
from catalog.privileges import OF_TABLE
from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.subscriptions.arrival_scan import PAUSE
from executor.subscriptions.feed import Feed, FeedReader
from executor.subscriptions.feeds import ChangeFeeds
from executor.traces.bookmark import Bookmark
from executor.traces.kept_runs import Run
from planner.bind.state.context import restricted

#: Of a watcher's time, how much is spent on looking at most.
SHARE: Final = 0.2
#: Seconds to wait for another server's answer, during which no other notice is sent.
PATIENCE: Final = 2.0
#: Seconds after which a look that failed is tried again, whether anything has changed since or not.
AGAIN: Final = 1.0

_LOGGER: Final = logging.getLogger(__name__)
_compute: Any = pyarrow.compute  # made at its import, where no type checker sees its functions


class Name(Struct, frozen=True):
    """A relation's name, the schemas in which it is looked up, and the role that must be allowed to read it."""

    name: str
    search_path: tuple[str, ...]
    role: str


#: Told that a relation's rows have changed: its name, the LSN, and how many rows came and went.
Tell = Callable[[Name, int, int], None]


class _Watched(Struct, eq=False):
    """A name with watchers: the feed of the relation of this name now, if any, and up to where it has been told."""

    count: int = 0
    feed: Feed | None = None
    mark: Bookmark = field(default_factory=lambda: Bookmark(0))
    #: What prevented the last look.
    told: str = ""


class ChangeWatch:
    """Watches the relations of one database. Its methods may be called from any thread."""

    def __init__(self, core: Core, changes: ChangeFeeds, reader: Callable[[Callable[[], bool]], FeedReader]) -> None:
        """``reader`` makes a reader that is asked whether it is cancelled."""
        self._core, self._changes = core, changes
        self._lock = threading.Lock()
        self._names: dict[Name, _Watched] = {}
        self._woken_by: frozenset[int] = frozenset()
        self._catalog: Catalog | None = None  # for which names have been looked up
        self._event = threading.Event()
        self._ended = threading.Event()
        #: Until when a look may take.
        self._until = math.inf
        self._reader = reader(self._is_over)
        self._thread: threading.Thread | None = None
        self.tell: Tell = lambda name, lsn, rows: None

    def watch(self, name: Name) -> None:
        """Adds a watcher of a name."""
        with self._lock:
            watched = self._names.setdefault(name, _Watched())
            watched.count += 1
            if watched.count == 1:
                self._find(name, watched)
                self._rewire()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="change watch", daemon=True)
                self._thread.start()

    def unwatch(self, name: Name) -> None:
        """One fewer does."""
        with self._lock:
            watched = self._names[name]
            watched.count -= 1
            if not watched.count:
                del self._names[name]
                self._rewire()

    def redefined(self) -> None:
        """The catalog is another one."""
        if self._names:
            self._event.set()

    def close(self) -> None:
        """Ends the thread."""
        self._ended.set()
        self._event.set()
        if self._thread is not None:
            self._core.engine.interrupt(self._reader.owner)
            self._thread.join()

    # -- names -------------------------------------------------------------------------------------------------

    def _find(self, name: Name, watched: _Watched, *, anew: bool = False) -> None:
        """Looks a name up, and begins to follow its relation; another one than before is told with all its rows where
        the name is looked up ``anew``."""
        catalog = self._core.catalog
        found = catalog.find(name.name, catalog.usable(name.search_path, restricted(catalog, name.role)))
        if not _has_changes(found) or not _may_read(catalog, found, name.role):
            watched.feed = None
            return
        try:
            feed = self._changes.feed(found.oid)
            if feed is not watched.feed:
                watched.feed, watched.mark = feed, feed.bookmark(0)
                watched.mark.after = self._start(name, feed, anew)
        except SqlError as error:
            _LOGGER.debug("%s is not watched: %s", name.name, error)
            watched.feed = None

    def _start(self, name: Name, feed: Feed, anew: bool) -> int:
        """The LSN behind which a relation's changes are told."""
        self._until = time.monotonic() + PATIENCE
        try:
            if not anew:
                return feed.start(self._reader, None)
            whole = feed.snapshot(self._reader)
            if whole.rows.num_rows:
                self._report(name, [whole])
            return whole.upto
        except SqlError:
            if not feed.is_elsewhere:
                raise
            return feed.lsn  # its new server answers later
        finally:
            self._until = math.inf

    def _is_over(self) -> bool:
        return self._ended.is_set() or time.monotonic() > self._until

    def _rewire(self) -> None:
        """Has the thread woken by what the relations are made of that are watched now."""
        wanted = frozenset(
            oid for watched in self._names.values() if watched.feed is not None for oid in watched.feed.reads
        )
        with self._core.sequencer.lock:
            self._core.versions.leave(self._woken_by, self._event)
            self._core.versions.wake(wanted, self._event)
        self._woken_by = wanted

    # -- looking -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        has_failed = False
        while not self._ended.is_set():
            self._event.wait(AGAIN if has_failed else None)
            self._event.clear()
            started = time.monotonic()
            has_failed = False
            for name, watched, feed in self._current():
                if not self._ended.is_set():
                    self._look(name, watched, feed)
                    has_failed |= bool(watched.told)
            took = time.monotonic() - started
            self._ended.wait(max(PAUSE, took * (1 / SHARE - 1)))

    def _current(self) -> list[tuple[Name, _Watched, Feed]]:
        """What is watched now, under the names of now."""
        with self._lock:
            catalog = self._core.catalog
            if catalog is not self._catalog:
                self._catalog = catalog
                for name, watched in self._names.items():
                    self._find(name, watched, anew=True)
                self._rewire()
            return [(name, item, item.feed) for name, item in self._names.items() if item.feed is not None]

    def _look(self, name: Name, watched: _Watched, feed: Feed) -> None:
        self._until = time.monotonic() + PATIENCE if feed.is_elsewhere else math.inf
        try:
            upto = feed.advance(self._reader)
            found = self._delta(name, feed, watched.mark.after, upto)
        except Exception as error:  # of the view, or of a lack of memory: the next look may be better
            if not self._ended.is_set() and str(error) != watched.told:
                _LOGGER.warning("could not look at %s: %s", name.name, error)
            watched.told = str(error)
            return
        finally:
            self._until = math.inf
        watched.told = ""
        watched.mark.after = upto
        if found:
            self._report(name, found)

    def _delta(self, name: Name, feed: Feed, after: int, upto: int) -> Sequence[Run]:
        """The changes over (after, upto]. Where they are no longer known, tells that there were some, and goes on."""
        try:
            return feed.delta(after, upto)
        except SqlError as error:
            if error.sqlstate != "72000" or not feed.is_current:
                raise
            self.tell(name, upto, 0)
            return ()

    def _report(self, name: Name, found: Sequence[Run]) -> None:
        rows = sum(_compute.sum(_compute.abs(item.rows.columns[-1])).as_py() for item in found)
        self.tell(name, found[-1].upto, rows)


def _has_changes(found: CatalogObject | None) -> TypeGuard[View | Table]:
    """Whether a relation's changes are reported."""
    if isinstance(found, Table):
        return not is_temporary(found)
    return isinstance(found, View) and found.continuous


def _may_read(catalog: Catalog, relation: View | Table, role: str) -> bool:
    """Whether a role may know of a relation's rows."""
    reader = restricted(catalog, role)
    return reader is None or catalog.rights_of(relation.oid).allows(catalog.roles, reader, "r", OF_TABLE)

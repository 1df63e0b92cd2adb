"""Reading the changes of a continuous view as they come: millstream.changes().

Owns: what a query waits for, and the rows that it gets: those of a difference (``executor.subscriptions.view_feed``),
with their LSN.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from executor.core.core import Core
from executor.subscriptions.arrival_scan import PAUSE, ArrivalScan, Interval, Notify, Patience
from executor.subscriptions.feed import FeedReader
from executor.subscriptions.feeds import ChangeFeeds
from executor.traces.kept_runs import Run
from executor.traces.layout import LSN, ORDINAL
from planner.algebra.nodes import CHANGE_SOURCES
from planner.stream_queries import Changes


class ChangeScan(ArrivalScan):
    """The changes of one relation, from the query's beginning on, or from an earlier LSN."""

    def __init__(
        self,
        core: Core,
        feeds: ChangeFeeds,
        reader: FeedReader,
        oid: int,
        changes: Changes,
        patience: Patience,
        notify: Notify,
    ) -> None:
        name = core.catalog.objects[oid].name
        super().__init__(core, f'changes of "{name}"', patience, notify)
        self._reader = reader
        self._feed = feeds.feed(oid)
        self._reads = self._feed.reads
        self._changes = changes
        self._first: Run | None = None
        self._mark = self._feed.bookmark(0)
        self._last_arrival = 0.0
        self._took = 0.0

    def begin(self, lsn: int) -> None:
        """The changes count from here on, whatever snapshot the transaction has."""
        if self._changes.whole:
            self._first = self._feed.snapshot(self._reader)
            self._mark.after = self._first.upto
        else:
            self._mark.after = self._feed.start(self._reader, self._changes.since)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Whatever the view is made of wakes the scan."""
        lock, versions = self.core.sequencer.lock, self.core.versions
        with lock:
            versions.wake(self._reads, self.wake)
        try:
            yield
        finally:
            with lock:
                versions.leave(self._reads, self.wake)

    def take(self, places: bool) -> Interval | None:
        """All rows of the view at first, where they are wanted; then the differences since the last time."""
        after = self._mark.after
        if self._first is not None:
            found, self._first = [self._first], None
        else:
            started = self.patience.clock()
            upto = self._feed.advance(self._reader)
            found, self._mark.after = self._feed.delta(after, upto), upto
            self._took = self.patience.clock() - started
        if not found:
            return None
        self._last_arrival = self.patience.clock()
        return Interval(after, self._mark.after, _rows(found))

    def last_arrival(self) -> float:
        """When the last change was found."""
        return self._last_arrival

    def check_source(self) -> None:
        """Raises 42P01 for a dropped relation, and 72000 for a table with other columns than before."""
        self._feed.require()

    def pause(self) -> float:
        """As long as looking took, too: half of the time is others'."""
        return max(PAUSE, self._took)

    def cancel(self) -> None:
        """Ends what runs or waits with 57014."""
        super().cancel()
        self.core.engine.interrupt(self._reader.owner)


def _rows(found: Sequence[Run]) -> pa.Table:
    """Differences as a query reads them, in the order in which they came."""
    lsns = np.concatenate([_lsns(item) for item in found])
    rows = pa.concat_tables([item.rows for item in found])
    at, diff = CHANGE_SOURCES
    own = rows.column_names[:-1]
    columns = [pa.array(lsns), rows.columns[-1], *rows.columns[:-1], pa.array(lsns), pa.array(np.arange(len(lsns)))]
    return pa.Table.from_arrays(columns, [at, diff, *own, LSN, ORDINAL])


def _lsns(run: Run) -> npt.NDArray[np.int64]:
    """The LSN of each row."""
    if run.lsns is None:
        return np.full(run.rows.num_rows, run.upto, np.int64)
    return np.asarray(run.lsns.to_numpy(), np.int64)

"""The last runs of a trace, which are kept for the readers of its changes.

Owns: how far back the changes are known, how far each reader is (its bookmark), and that older runs between which no
reader stands may become one. Knows nothing of what a run's rows mean.
"""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from collections.abc import Callable, Sequence

import pyarrow as pa
from msgspec import Struct

from executor.traces.bookmark import Bookmark
from executor.traces.budget import size_of


class Run(Struct, frozen=True):
    """A net change up to an LSN, from the run before it on, or from the LSN ``after``; ``lsns``: the LSN of each row,
    where there are several."""

    upto: int
    rows: pa.Table
    lsns: pa.ChunkedArray | None = None
    after: int | None = None

    def spans(self, lsn: int) -> bool:
        """Whether it has changes on both sides of an LSN, as far as it knows."""
        return self.after is not None and self.after < lsn < self.upto


#: Makes the net change of changes that follow each other.
Join = Callable[[Sequence[pa.Table]], pa.Table]


class KeptRuns:
    """Runs in the order of their LSNs. Where they are too many, the older ones are joined, or the oldest go."""

    def __init__(self, most: int, most_bytes: int | None = None, join: Join | None = None) -> None:
        """Keeps at most ``most`` runs, and no more than ``most_bytes`` where there are several."""
        self._most, self._most_bytes, self._join = most, most_bytes, join
        self._runs: deque[Run] = deque()
        self._bookmarks: weakref.WeakSet[Bookmark] = weakref.WeakSet()
        #: Runs above this LSN are all kept.
        self.first = 0
        #: Bytes of the runs.
        self.bytes = 0

    def bookmark(self, lsn: int) -> Bookmark:
        """A reader of the changes behind an LSN, for as long as the bookmark is held."""
        found = Bookmark(lsn)
        self._bookmarks.add(found)
        return found

    @property
    def is_read(self) -> bool:
        """Whether there are readers."""
        return len(self._bookmarks) > 0

    def marks(self) -> list[int]:
        """The LSNs up to which readers are."""
        return [mark.after for mark in self._bookmarks]

    def append(self, run: Run) -> None:
        """Takes in the next run."""
        self._runs.append(run)
        self.bytes += size_of(run.rows)
        if self._are_too_many and self._join is not None:
            self._join_older(self._join)
        while self._are_too_many and len(self._runs) > 1:
            self._forget_first()

    @property
    def _are_too_many(self) -> bool:
        is_large = self._most_bytes is not None and self.bytes > self._most_bytes
        return is_large or len(self._runs) > self._most

    def _join_older(self, join: Join) -> None:
        """Makes one of each series of the older half of the runs that is before or behind every reader."""
        marks = self.marks()
        series: list[list[Run]] = []
        for run in [self._runs.popleft() for _ in range(len(self._runs) // 2)]:
            is_between = series and any(series[-1][-1].upto <= mark < run.upto for mark in marks)
            if not series or is_between:
                series.append([])
            series[-1].append(run)
        joined = [Run(runs[-1].upto, join([run.rows for run in runs]), after=runs[0].after) for runs in series]
        self._runs.extendleft(reversed(joined))
        self.bytes = sum(size_of(run.rows) for run in self._runs)

    def delta(self, after: int, upto: int) -> list[Run] | None:
        """The runs over (after, upto]; None where they are not all kept, or one spans ``after``."""
        found = self.behind(after)
        return None if found is None else [run for run in found if run.upto <= upto]

    def behind(self, after: int) -> list[Run] | None:
        """All runs behind an LSN; None where they are not all kept, or one spans it."""
        if after < self.first:
            return None
        found = list(itertools.takewhile(lambda run: after < run.upto, reversed(self._runs)))
        return None if any(run.spans(after) for run in found[-1:]) else found[::-1]

    def release(self, upto: int) -> None:
        """Forgets the runs up to an LSN."""
        while self._runs and self._runs[0].upto <= upto:
            self._forget_first()

    def clear(self, first: int) -> None:
        """Forgets all runs: what has changed up to an LSN is not known."""
        self._runs.clear()
        self.first, self.bytes = max(self.first, first), 0

    def _forget_first(self) -> None:
        run = self._runs.popleft()
        self.first = max(self.first, run.upto)
        self.bytes -= size_of(run.rows)

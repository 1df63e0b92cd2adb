"""The spans of an order that a change reaches (``planner.incremental.dataflow.ordered_windows``).

A span is a range of keys of one partition (``executor.dataflow.rows.order_keys``) whose rows are computed anew. The
spans of running functions do not overlap. The values of the row in front of a span have not changed, and the span is
computed from that row on. A span is closed where as many rows come as go, so that the rows behind it keep their places;
it is open up to its partition's end otherwise. Whether the rows behind a closed span keep their values is found by
computing it.

Owns: where spans begin and end, and which of them a row is in.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from executor.dataflow.rows.hashing import hashes_of
from executor.dataflow.rows.multiset import Multiset
from executor.dataflow.rows.order_keys import Keys, Ordering
from executor.dataflow.rows.segments import KeyRanges
from executor.dataflow.rows.weighted_rows import Integers

Flags = npt.NDArray[np.bool_]


class Spans(Struct, frozen=True):
    """Ranges of keys in order: of the rows that are ``touched``, of those that are ``read``, and which ``are_closed``.
    Those of running functions are disjoint."""

    touched: KeyRanges
    read: KeyRanges
    are_closed: Flags

    def of(self, ordering: Ordering, rows: pa.Table) -> Integers:
        """The number of the span in which each row is."""
        first = self.read[0]
        if first.size < 2:
            return np.zeros(rows.num_rows, np.int64)
        partitions = ordering.partitions(first)
        if np.all(partitions[1:] != partitions[:-1]):  # hashes are made faster than keys
            found = np.searchsorted(partitions, hashes_of(rows, ordering.partition), "right")
        else:
            found = np.searchsorted(first, ordering.keys(rows), "right")
        return np.maximum(found - 1, 0)

    def opened(self, ordering: Ordering, which: Flags) -> tuple[Spans, Integers]:
        """The spans where some closed ones are open, and the number of the first one that each consists of."""
        (least, greatest), (before, behind) = self.touched, self.read
        end = ordering.ends(greatest)[1]
        touched, read = (np.where(which, end, item) for item in (greatest, behind))
        return _disjoint(
            replace(self, touched=(least, touched), read=(before, read), are_closed=self.are_closed & ~which)
        )


class Reach(Struct, frozen=True):
    """How far a change reaches: so many rows ``preceding`` and ``following`` a value's own, all rows in front where a
    function ``is_running``, and all that tie with one where values have ``peers``; with a ``distance``, rows so far
    before the change in the values of the order, and so far behind it."""

    preceding: int
    following: int
    is_running: bool
    has_peers: bool
    distance: tuple[int, int] | None


def spans_around(kept: Multiset, ordering: Ordering, reach: Reach, changed: Keys, net: Integers) -> Spans:
    """The spans around places in order, at each of which so many rows come in ``net``."""
    if reach.distance is not None:
        back, ahead = reach.distance
        touched = ordering.moved(changed, -back), ordering.moved(changed, ahead)
        read = ordering.moved(touched[0], -ahead), ordering.moved(touched[1], back)
        return Spans(touched, read, np.zeros(changed.size, np.bool_))
    if not reach.is_running:
        least, before = _reached(kept, ordering, changed, (reach.following, reach.preceding), behind=False)
        greatest, behind = _reached(kept, ordering, changed, (reach.preceding, reach.following), behind=True)
        return Spans((least, greatest), (before, behind), np.zeros(changed.size, np.bool_))
    first, last, are_closed = _runs(ordering, reach, changed, net)
    least, before = _reached(kept, ordering, first, (reach.following, reach.preceding), behind=False)
    greatest, behind = _reached(kept, ordering, last, (reach.preceding, reach.following), behind=True)
    if reach.has_peers:
        before, behind = ordering.peers(before, behind=False), ordering.peers(behind, behind=True)
    end = ordering.ends(last)[1]
    greatest, behind = (np.where(are_closed, item, end) for item in (greatest, behind))
    return _disjoint(Spans((least, greatest), (before, behind), are_closed))[0]


def whole_partitions(ordering: Ordering, changed: Keys) -> Spans:
    """Spans that are all of each touched partition."""
    _, first = np.unique(ordering.partitions(changed), return_index=True)
    ends = ordering.ends(changed[first])
    return Spans(ends, ends, np.zeros(first.size, np.bool_))


def _runs(ordering: Ordering, reach: Reach, changed: Keys, net: Integers) -> tuple[Keys, Keys, Flags]:
    """The least ranges of places in each of which as many rows come as go, up to the last one of a partition, and
    whether they do. Rows that tie are in one, where they have one value."""
    places = ordering.peers(changed, behind=False) if reach.has_peers else changed
    partitions = ordering.partitions(changed)
    is_last = np.append(partitions[1:] != partitions[:-1], True)
    total = np.cumsum(net)
    parts = np.append(0, np.cumsum(is_last)[:-1])
    balance = total - np.append(0, total[is_last])[parts]
    ends = np.flatnonzero(is_last | ((balance == 0) & np.append(places[1:] != places[:-1], True)))
    first, last = changed[np.append(0, ends[:-1] + 1)], changed[ends]
    if reach.has_peers:
        first, last = ordering.peers(first, behind=False), ordering.peers(last, behind=True)
    return first, last, balance[ends] == 0


def _disjoint(spans: Spans) -> tuple[Spans, Integers]:
    """Spans as one where they overlap, closed if all of them are; and the number of the first one that each consists
    of."""
    (least, greatest), (before, behind) = spans.touched, spans.read
    keys, ranks = np.unique(np.concatenate([before, greatest, behind]), return_inverse=True)
    begins, touched, ends = ranks.reshape(3, before.size)
    starts = np.flatnonzero(np.append(True, begins[1:] > np.maximum.accumulate(ends)[:-1]))
    touched, ends = (np.maximum.reduceat(item, starts) for item in (touched, ends))
    are_closed = np.logical_and.reduceat(spans.are_closed, starts)
    return Spans((least[starts], keys[touched]), (before[starts], keys[ends]), are_closed), starts


def _reached(
    kept: Multiset, ordering: Ordering, keys: Keys, numbers: tuple[int, int], *, behind: bool
) -> tuple[Keys, Keys]:
    """The keys of the rows so many places behind each key, or before it, and so many further. Rows with a key are all
    within reach, or none is."""
    number, more = numbers
    if not number + more:
        return keys, keys
    near = kept.near(ordering, keys, number + max(more, 1), behind=behind)
    reached = near[:, number - 1] if number else keys
    if not more:
        return reached, reached
    end = ordering.ends(keys)[behind]
    if number and np.any((near[:, number] == reached) & (reached != end)):
        return reached, kept.near(ordering, reached, more, behind=behind)[:, -1]
    return reached, near[:, -1]

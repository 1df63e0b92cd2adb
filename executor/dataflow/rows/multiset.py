"""The rows of a dataflow's node: a multiset, of which the rows with some keys are found without looking at the others.

Rows lie in segments, the larger ones first. A change takes the rows that are equal to changed ones out of their
segments, adds the weights, and writes what is left into a new segment; segments of like sizes become one (a logarithmic
method: Bentley and Saxe, 1980). So a change costs its own size times the logarithm of the rows. Few rows that come are
kept as Python's values first (``recent_rows``), and become a segment when they are many, or all rows are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from executor.dataflow.rows.hashing import NO_HASHES, Hashes, hashes_of
from executor.dataflow.rows.order_keys import Keys, Ordering
from executor.dataflow.rows.recent_rows import RecentRows, Row
from executor.dataflow.rows.segments import KeyRanges, Places, Range, Segment
from executor.dataflow.rows.weighted_rows import (
    WEIGHT,
    Consolidate,
    Inconsistent,
    Integers,
    by_sign,
    consolidated,
    is_grouped,
    same_bits,
    some_of,
    weights_of,
)
from executor.small import AnyTable, SmallTable, together
from executor.small.small_table import FEW, are_exact, is_exact
from executor.small.values import FAILURES

#: Rows from which on the recent ones become a segment.
_RECENT: Final = 1024


class _Few(Struct, frozen=True):
    """A few rows of a multiset with their weights, and where they are: among the recent ones, and in segments."""

    rows: SmallTable
    recent: list[Row]
    segments: list[tuple[Segment, list[int]]]


class Multiset:
    """The rows of one node. Used by one thread at a time."""

    def __init__(self, rows: pa.Table, keys: Iterable[tuple[str, ...]], merge: Consolidate) -> None:
        """``rows`` with a weight each; ``keys`` are those by which they will be found. ``merge`` consolidates rows of
        types that Arrow does not group."""
        self._schema = rows.schema.remove(rows.schema.get_field_index(WEIGHT))
        self._names = tuple(self._schema.names)
        self._none = rows.schema.empty_table()
        self._types = tuple(self._schema.types)
        self._is_grouped = all(map(is_grouped, self._types))
        self._is_exact = are_exact(self._types)
        self._merge = merge
        self._segments: list[Segment] = []
        self._recent = RecentRows(self._names, self._types)
        self.add(rows)
        for key in keys:
            self.lookup(key, NO_HASHES)

    def index(self) -> None:
        """Makes the index by which rows that go are found."""
        self.lookup(self._names, NO_HASHES)

    def index_by(self, key: tuple[str, ...]) -> None:
        """Makes the index by which rows with a key are found. Safe while another thread changes the rows."""
        for item in tuple(self._segments):
            item.index(key)

    @property
    def bytes(self) -> int:
        """About what the rows and their indexes take in memory."""
        return sum(item.bytes for item in self._segments) + self._recent.bytes

    @property
    def count(self) -> int:
        """Rows, where equal ones may count as one."""
        return sum(item.live for item in self._segments) + self._recent.count

    def lookup(self, key: tuple[str, ...], hashes: Hashes) -> AnyTable:
        """Rows with their weights: those whose keys have these hashes, and perhaps others; all for an empty key."""
        wanted = np.unique(hashes)
        few = self._few(key, wanted)
        if few is not None:
            return few.rows
        self._settle()
        parts = [item.all() if not key else item.take(item.places(key, wanted)) for item in self._segments]
        return self._weighted(parts)

    def between(self, ranges: Sequence[tuple[str, Range]]) -> pa.Table:
        """Rows with their weights that have a time, by its column, in one of some ranges."""
        self._settle()
        return self._weighted([item.take(item.between(ranges)) for item in self._segments])

    def within(self, ordering: Ordering, ranges: KeyRanges) -> pa.Table:
        """Rows with a key in one of some ranges, and their weights."""
        self._settle()
        return self._weighted([item.take(item.within(ordering, ranges)) for item in self._segments])

    def are_few_within(self, ordering: Ordering, ranges: KeyRanges, most: int) -> bool:
        """Whether ``within`` finds at most so many rows in each segment, as far as that is quickly told."""
        self._settle()
        return all(item.are_few_within(ordering, ranges, most) for item in self._segments)

    def take_within(self, ordering: Ordering, ranges: KeyRanges) -> pa.Table:
        """Takes out what ``within`` finds."""
        self._settle()
        return self._taken_out([(item, item.within(ordering, ranges)) for item in self._segments])

    def near(self, ordering: Ordering, keys: Keys, number: int, *, behind: bool) -> Keys:
        """The keys of so many rows that come next behind each key, or before it, in its partition; an end of the
        partition where there are fewer. Rows with the key itself are not among them."""
        self._settle()
        least, greatest = (ends[:, None] for ends in ordering.ends(keys))
        parts = [item.near(ordering, keys, number, behind=behind) for item in self._segments]
        if not parts:
            return np.repeat(greatest if behind else least, number, axis=1)
        near = np.sort(np.concatenate(parts, axis=1), axis=1) if len(parts) > 1 else parts[0]
        if behind:
            near = near[:, :number]
            return np.where(near > greatest, greatest, near)
        near = near[:, : -number - 1 : -1] if len(parts) > 1 else near
        return np.where(near < least, least, near)

    def index_in_order(self, ordering: Ordering) -> None:
        """Makes the index by which rows are found in an order."""
        self._settle()
        for item in self._segments:
            item.ordered(ordering)

    def take(self, key: tuple[str, ...], hashes: Hashes) -> AnyTable:
        """Takes out what ``lookup`` finds."""
        wanted = np.unique(hashes)
        few = self._few(key, wanted)
        if few is not None:
            for item, places in few.segments:
                for place in places:
                    item.lose(place, item.weights[place])
            for row in few.recent:
                self._recent.remove(row, self._recent.weight(row))
            return few.rows
        self._settle()
        return self._taken_out(
            [(item, item.places(key, wanted) if key else np.flatnonzero(item.weights)) for item in self._segments]
        )

    def _taken_out(self, found: Sequence[tuple[Segment, Places]]) -> pa.Table:
        rows = self._weighted([item.take(places) for item, places in found if places.size])
        self._clear(found)
        return rows

    def _few(self, key: tuple[str, ...], wanted: Hashes) -> _Few | None:
        """What ``lookup`` finds, and where; None where it is not few, or Python has not its values."""
        if not self._is_exact or wanted.size > FEW:
            return None
        recent = self._recent.found(key, wanted.tolist())
        segments, count = [], len(recent)
        for item in self._segments:
            places = item.few_places(key, wanted)
            count += FEW + 1 if places is None else len(places)
            if places is None or count > FEW:
                return None
            segments.append((item, places))
        cells = [*map(list, zip(*self._recent.weighted(recent), strict=True))] or [[] for _ in (*self._names, WEIGHT)]
        try:
            for item, places in segments:
                if places:
                    cells = [[*one, *other] for one, other in zip(cells, item.few_rows(places), strict=True)]
        except FAILURES:
            return None
        if not all(map(is_exact, self._types, cells)):
            return None
        rows = SmallTable((*self._names, WEIGHT), (*self._types, pa.int64()), cells, count)
        return _Few(rows, recent, segments)

    def change(self, delta: AnyTable) -> None:
        """Adds rows with their weights. Raises Inconsistent where a row would be there less than not at all."""
        if delta.num_rows == 0:
            return
        if isinstance(delta, SmallTable):
            self._change_few(delta)
            return
        self._settle()
        gone, come = by_sign(delta)
        if self._taken_away(gone):
            self.add(come)
            return
        old = self.take(self._names, hashes_of(delta, self._names))
        merged = self.consolidated(together([old, delta]) if old.num_rows else delta)
        weights = weights_of(merged)
        if weights.size and weights.min() < 0:
            raise Inconsistent
        self.add(merged)

    def _change_few(self, delta: SmallTable) -> None:
        """``change`` by a few rows. Those that come may be equal to some that are there, which stay where they are."""
        gone, come = by_sign(delta)
        self.add(come)
        if not gone.num_rows:
            return
        hashes: Hashes | None = None
        for number, (*values, weight) in enumerate(gone.select((*self._names, WEIGHT)).rows()):
            row = tuple(values)
            count = min(-weight, self._recent.weight(row))
            if count:
                self._recent.remove(row, count)
            if count < -weight:
                hashes = hashes_of(gone, self._names) if hashes is None else hashes
                self._remove(row, hashes[number : number + 1], -weight - count)

    def _remove(self, row: Row, hashes: Hashes, count: int) -> None:
        """Takes a row away so many times where it is. Raises Inconsistent."""
        for item in self._segments:
            for place in item.places(self._names, hashes).tolist():
                if count and item.has(place, row):
                    times = min(count, int(item.weights[place]))
                    item.lose(place, times)
                    count -= times
        if count:
            raise Inconsistent

    def consolidated(self, rows: AnyTable) -> AnyTable:
        """Equal rows as one with the sum of their weights, without those where it is 0."""
        return consolidated(rows, self._merge)

    def _taken_away(self, gone: pa.Table) -> bool:
        """Takes rows away where they are, if each is found in one place; else nothing."""
        if not gone.num_rows:
            return True
        if not self._is_grouped:
            return False
        hashes, weights = hashes_of(gone, self._names), weights_of(gone)
        times = np.zeros(weights.size, np.int64)
        found = list[tuple[Segment, Places, Integers]]()
        for item in self._segments:
            rows, places = item.first_places(self._names, hashes)
            times[rows] += 1
            if np.any(item.weights[places] + weights[rows] < 0) or not _are_same(item, places, gone, rows, self._names):
                return False
            found.append((item, places, rows))
        if np.any(times != 1):
            return False
        for item, places, rows in found:
            item.weights[places] += weights[rows]
            item.live -= int(np.count_nonzero(item.weights[places] == 0))
        return True

    def _clear(self, found: Iterable[tuple[Segment, Places]]) -> None:
        for item, places in found:
            item.weights[places] = 0
            item.live -= places.size

    def _settle(self) -> None:
        """The recent rows become a segment."""
        found = self._recent.taken()
        if found is not None:
            self._add(found.table)

    def add(self, rows: AnyTable) -> None:
        """Adds rows with their weights, which are positive."""
        if not isinstance(rows, SmallTable):
            self._add(rows)
            return
        self._recent.add(rows)
        if self._recent.count > _RECENT:
            self._settle()

    def _add(self, rows: pa.Table) -> None:
        if rows.num_rows:
            weights = weights_of(rows).astype(np.int64)  # a copy, which is written to
            self._segments.append(Segment(rows.select(self._names), weights))
        self._segments = [item for item in self._segments if item.live]
        while len(self._segments) > 1 and self._segments[-2].live <= 2 * self._segments[-1].live:
            last = [self._segments.pop() for _ in range(2)][::-1]
            parts = [item.all() for item in last]
            rows = pa.concat_tables([table for table, _ in parts])
            self._segments.append(Segment(rows, np.concatenate([weights for _, weights in parts])))

    def _weighted(self, parts: Sequence[tuple[pa.Table, Integers]]) -> pa.Table:
        found = [table.append_column(WEIGHT, pa.array(weights)) for table, weights in parts if len(weights)]
        if not found:
            return self._none
        return found[0] if len(found) == 1 else pa.concat_tables(found)


def _are_same(item: Segment, places: Places, rows: pa.Table, at: Integers, names: Sequence[str]) -> bool:
    """Whether a segment's rows at some places are, one by one, the same as other rows."""
    if not at.size:
        return True
    mine, others = item.rows.take(pa.array(places)), some_of(rows, at)
    return all(bool(same_bits(mine.column(name), others.column(name).combine_chunks()).all()) for name in names)

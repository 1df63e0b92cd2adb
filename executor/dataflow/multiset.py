"""The rows of a dataflow's node: a multiset, of which the rows with some keys are found without looking at the others.

Rows lie in segments, the larger ones first. A change takes the rows that are equal to changed ones out of their
segments, adds the weights, and writes what is left into a new segment; segments of like sizes become one (a logarithmic
method: Bentley and Saxe, 1980). So a change costs its own size times the logarithm of the rows.

A segment has, for each key, the hashes of its rows in order, and the keys of an ordering where places in it are looked
up (``order_keys``). A row that is taken out keeps its place, with weight 0, until its segment becomes part of another
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from executor.dataflow.hashing import NO_HASHES, Hashes, hashes_of
from executor.dataflow.order_keys import Keys, Ordering
from executor.dataflow.ordered_values import in_order
from executor.dataflow.weighted_rows import (
    WEIGHT,
    Consolidate,
    Inconsistent,
    Integers,
    batch_of,
    by_sign,
    consolidated,
    is_grouped,
    same_bits,
    some_of,
    weights_of,
)
from executor.traces.budget import size_of

Places = npt.NDArray[np.int32] | npt.NDArray[np.int64]
#: Least and greatest keys of an order.
KeyRanges = tuple[Keys, Keys]
#: The least and the greatest value.
Range = tuple[int, int]
_INDEX_BYTES: Final = 12
#: Hashes that are worth sorting before they are looked up.
_MANY: Final = 1024
#: By how much a search for rows grows where too many have gone.
_WIDENING: Final = 4
#: How large it may become.
_MOST_CELLS: Final = 1 << 18


class _Segment:
    """Rows that came together."""

    __slots__ = ("_indexes", "_orders", "_size", "_sorted", "live", "rows", "weights")

    def __init__(self, rows: pa.Table, weights: Integers) -> None:
        #: One batch: Arrow takes rows of it in a fifth of the time that a table's take.
        self.rows = batch_of(rows)
        self.weights = weights
        self._size = size_of(self.rows) + weights.nbytes
        self.live = len(weights)
        self._indexes: dict[tuple[str, ...], tuple[Hashes, npt.NDArray[np.int32]]] = {}
        #: Of columns of times the values in order, without NULLs, and the rows' places.
        self._orders: dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]] = {}
        #: The keys of an ordering in order, and the rows' places.
        self._sorted: tuple[Ordering, Keys, npt.NDArray[np.int32]] | None = None

    def index(self, key: tuple[str, ...]) -> tuple[Hashes, npt.NDArray[np.int32]]:
        """The hashes of the rows' keys in order, and the rows' places."""
        found = self._indexes.get(key)
        if found is None:
            hashes = hashes_of(pa.Table.from_batches([self.rows]), key)
            order = np.argsort(hashes, kind="stable").astype(np.int32)
            found = self._indexes[key] = (hashes[order], order)
        return found

    def order(self, column: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """The values of a column of times in order, and the rows' places."""
        found = self._orders.get(column)
        if found is None:
            values, are_there = in_order(self.rows.column(column))
            there = np.flatnonzero(are_there)
            places = there[np.argsort(values[there], kind="stable")].astype(np.int32)
            found = self._orders[column] = (values[places], places)
        return found

    def between(self, ranges: Iterable[tuple[str, Range]]) -> Places:
        """Where rows are that have a time, by its column, in one of some ranges."""
        found = []
        for column, (least, greatest) in ranges:
            values, places = self.order(column)
            found.append(places[np.searchsorted(values, least, "left") : np.searchsorted(values, greatest, "right")])
        places = np.unique(np.concatenate(found))
        return places.compress(self.weights[places] > 0)

    def ordered(self, ordering: Ordering) -> tuple[Keys, npt.NDArray[np.int32]]:
        """The keys of the rows in order, and the rows' places."""
        found = self._sorted
        if found is None or found[0] != ordering:
            keys = ordering.keys(pa.Table.from_batches([self.rows]))
            order = np.argsort(keys, kind="stable").astype(np.int32)
            found = self._sorted = (ordering, keys[order], order)
        return found[1:]

    def _forget_gone(self, ordering: Ordering) -> None:
        """Takes rows that have gone out of the index."""
        keys, places = self.ordered(ordering)
        there = self.weights[places] > 0
        self._sorted = (ordering, keys[there], places[there])

    def within(self, ordering: Ordering, ranges: KeyRanges) -> Places:
        """The places of rows with a key in one of some ranges."""
        keys, places = self.ordered(ordering)
        first, last = np.searchsorted(keys, ranges[0], "left"), np.searchsorted(keys, ranges[1], "right")
        order = np.argsort(first, kind="stable")
        first, last = first[order], np.maximum.accumulate(last[order])
        first[1:] = np.maximum(first[1:], last[:-1])
        found = places[_steps(first, np.maximum(last - first, 0))]
        return found.compress(self.weights[found] > 0)

    def near(self, ordering: Ordering, keys: Keys, number: int, *, behind: bool) -> npt.NDArray[np.bytes_]:
        """The keys of so many rows that come next behind each key, or before it; where there are fewer, keys behind or
        before all others."""
        width = number
        found = np.full((keys.size, number), ordering.beyond(keys.itemsize, behind=behind), keys.dtype)
        while True:
            own, places = self.ordered(ordering)
            if not own.size:
                return found
            start = np.searchsorted(own, keys, "right" if behind else "left")
            at = start[:, None] + (np.arange(width) if behind else -1 - np.arange(width))
            inside = (at >= 0) & (at < own.size)
            at = np.minimum(np.maximum(at, 0), own.size - 1)
            live = inside & (self.weights[places[at]] > 0)
            counts = np.cumsum(live, axis=1)
            if np.all((counts[:, -1] >= number) | ~inside[:, -1]):
                break
            width *= _WIDENING
            if width * keys.size > _MOST_CELLS:
                width = number
                self._forget_gone(ordering)
        rows, columns = np.nonzero(live & (counts <= number))
        found[rows, counts[rows, columns] - 1] = own[at[rows, columns]]
        return found

    @property
    def bytes(self) -> int:
        """About what it takes in memory."""
        indexes = len(self._indexes) + len(self._orders)
        keys = 0 if self._sorted is None else self._sorted[1].nbytes + self._sorted[2].nbytes
        return self._size + _INDEX_BYTES * len(self.weights) * indexes + keys

    def places(self, key: tuple[str, ...], wanted: Hashes) -> npt.NDArray[np.int32]:
        """Where rows with these hashes are, each hash given once."""
        hashes, order = self.index(key)
        first, last = np.searchsorted(hashes, wanted, "left"), np.searchsorted(hashes, wanted, "right")
        places: npt.NDArray[np.int32] = order[_steps(first, last - first)]
        return places.compress(self.weights[places] > 0)

    def first_places(self, key: tuple[str, ...], wanted: Hashes) -> tuple[Integers, Places]:
        """For each of some hashes that rows have, its number, and where the first row is, if that is there."""
        hashes, order = self.index(key)
        first = _places_of(hashes, wanted)
        rows = np.flatnonzero(hashes.take(first, mode="clip") == wanted) if hashes.size else first[:0]
        places = order[first[rows]]
        there = self.weights[places] > 0
        return rows[there], places[there]

    def take(self, places: Places) -> tuple[pa.Table, Integers]:
        """Some rows with their weights."""
        if not places.size:
            return pa.Table.from_batches([], self.rows.schema), self.weights[:0]
        return pa.Table.from_batches([self.rows.take(pa.array(places))]), self.weights[places]

    def all(self) -> tuple[pa.Table, Integers]:
        """All rows that are there, with their weights."""
        if self.live == len(self.weights):
            return pa.Table.from_batches([self.rows]), self.weights
        there = self.weights > 0
        return pa.Table.from_batches([self.rows.filter(pa.array(there))]), self.weights[there]


class Multiset:
    """The rows of one node. Used by one thread at a time."""

    def __init__(self, rows: pa.Table, keys: Iterable[tuple[str, ...]], merge: Consolidate) -> None:
        """``rows`` with a weight each; ``keys`` are those by which they will be found. ``merge`` consolidates rows of
        types that Arrow does not group."""
        self._schema = rows.schema.remove(rows.schema.get_field_index(WEIGHT))
        self._names = tuple(self._schema.names)
        self._none = rows.schema.empty_table()
        self._is_grouped = all(is_grouped(field.type) for field in self._schema)
        self._merge = merge
        self._segments: list[_Segment] = []
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
        return sum(item.bytes for item in self._segments)

    @property
    def count(self) -> int:
        """Rows, where equal ones may count as one."""
        return sum(item.live for item in self._segments)

    def lookup(self, key: tuple[str, ...], hashes: Hashes) -> pa.Table:
        """Rows with their weights: those whose keys have these hashes, and perhaps others; all for an empty key."""
        wanted = np.unique(hashes)
        parts = [item.all() if not key else item.take(item.places(key, wanted)) for item in self._segments]
        return self._weighted(parts)

    def between(self, ranges: Sequence[tuple[str, Range]]) -> pa.Table:
        """Rows with their weights that have a time, by its column, in one of some ranges."""
        return self._weighted([item.take(item.between(ranges)) for item in self._segments])

    def within(self, ordering: Ordering, ranges: KeyRanges) -> pa.Table:
        """Rows with a key in one of some ranges, and their weights."""
        return self._weighted([item.take(item.within(ordering, ranges)) for item in self._segments])

    def take_within(self, ordering: Ordering, ranges: KeyRanges) -> pa.Table:
        """Takes out what ``within`` finds."""
        return self._taken_out([(item, item.within(ordering, ranges)) for item in self._segments])

    def near(self, ordering: Ordering, keys: Keys, number: int, *, behind: bool) -> Keys:
        """The keys of so many rows that come next behind each key, or before it, in its partition; an end of the
        partition where there are fewer. Rows with the key itself are not among them."""
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
        for item in self._segments:
            item.ordered(ordering)

    def take(self, key: tuple[str, ...], hashes: Hashes) -> pa.Table:
        """Takes out what ``lookup`` finds."""
        wanted = np.unique(hashes)
        return self._taken_out(
            [(item, item.places(key, wanted) if key else np.flatnonzero(item.weights)) for item in self._segments]
        )

    def _taken_out(self, found: Sequence[tuple[_Segment, Places]]) -> pa.Table:
        rows = self._weighted([item.take(places) for item, places in found if places.size])
        self._clear(found)
        return rows

    def change(self, delta: pa.Table) -> None:
        """Adds rows with their weights. Raises Inconsistent where a row would be there less than not at all."""
        if delta.num_rows == 0:
            return
        gone, come = by_sign(delta)
        if self._taken_away(gone):
            self.add(come)
            return
        old = self.take(self._names, hashes_of(delta, self._names))
        merged = self.consolidated(pa.concat_tables([old, delta]) if old.num_rows else delta)
        weights = weights_of(merged)
        if weights.size and weights.min() < 0:
            raise Inconsistent
        self.add(merged)

    def consolidated(self, rows: pa.Table) -> pa.Table:
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
        found = list[tuple[_Segment, Places, Integers]]()
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

    def _clear(self, found: Iterable[tuple[_Segment, Places]]) -> None:
        for item, places in found:
            item.weights[places] = 0
            item.live -= places.size

    def add(self, rows: pa.Table) -> None:
        """Adds rows with their weights, which are positive."""
        if rows.num_rows:
            weights = weights_of(rows).astype(np.int64)  # a copy, which is written to
            self._segments.append(_Segment(rows.select(self._names), weights))
        self._segments = [item for item in self._segments if item.live]
        while len(self._segments) > 1 and self._segments[-2].live <= 2 * self._segments[-1].live:
            last = [self._segments.pop() for _ in range(2)][::-1]
            parts = [item.all() for item in last]
            rows = pa.concat_tables([table for table, _ in parts])
            self._segments.append(_Segment(rows, np.concatenate([weights for _, weights in parts])))

    def _weighted(self, parts: Sequence[tuple[pa.Table, Integers]]) -> pa.Table:
        found = [table.append_column(WEIGHT, pa.array(weights)) for table, weights in parts if len(weights)]
        if not found:
            return self._none
        return found[0] if len(found) == 1 else pa.concat_tables(found)


def _places_of(hashes: Hashes, wanted: Hashes) -> Integers:
    """Where each of some hashes is among others in order: neighbours one after the other, where they are many."""
    if wanted.size < _MANY:
        return np.searchsorted(hashes, wanted, "left")
    order = np.argsort(wanted)
    found = np.empty(wanted.size, np.int64)
    found[order] = np.searchsorted(hashes, wanted[order], "left")
    return found


def _steps(first: Integers, counts: Integers) -> Integers:
    """The numbers from each first one on, so many."""
    total = int(counts.sum())
    steps = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    found: Integers = np.repeat(first, counts) + steps
    return found


def _are_same(item: _Segment, places: Places, rows: pa.Table, at: Integers, names: Sequence[str]) -> bool:
    """Whether a segment's rows at some places are, one by one, the same as other rows."""
    if not at.size:
        return True
    mine, others = item.rows.take(pa.array(places)), some_of(rows, at)
    return all(bool(same_bits(mine.column(name), others.column(name).combine_chunks()).all()) for name in names)

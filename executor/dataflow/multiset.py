"""The rows of a dataflow's node: a multiset, of which the rows with some keys are found without looking at the others.

Rows lie in segments, the larger ones first. A change takes the rows that are equal to changed ones out of their
segments, adds the weights, and writes what is left into a new segment; segments of like sizes become one (a logarithmic
method: Bentley and Saxe, 1980). So a change costs its own size times the logarithm of the rows. Few rows that come are
kept as Python's values first (``recent_rows``), and become a segment when they are many, or all rows are read.

A segment has, for each key, the hashes of its rows in order, and the keys of an ordering where places in it are looked
up (``order_keys``). A row that is taken out keeps its place, with weight 0, until its segment becomes part of another
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct

from executor.dataflow.hashing import NO_HASHES, Hashes, hashes_of
from executor.dataflow.order_keys import Keys, Ordering
from executor.dataflow.ordered_values import in_order
from executor.dataflow.recent_rows import RecentRows, Row
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
from executor.small import AnyTable, SmallTable, together
from executor.small.small_table import FEW, are_exact, is_exact
from executor.small.values import FAILURES, as_cells
from executor.traces.budget import size_of

Places = npt.NDArray[np.int32] | npt.NDArray[np.int64]
#: Least and greatest keys of an order.
KeyRanges = tuple[Keys, Keys]
#: The least and the greatest value.
Range = tuple[int, int]
_INDEX_BYTES: Final = 12
#: Rows from which on the recent ones become a segment.
_RECENT: Final = 1024
#: Hashes that are worth sorting before they are looked up.
_MANY: Final = 1024
#: By how much a search for rows grows where too many have gone.
_WIDENING: Final = 4
#: How large it may become.
_MOST_CELLS: Final = 1 << 18


class _Segment:
    """Rows that came together."""

    __slots__ = ("_columns", "_indexes", "_orders", "_size", "_sorted", "live", "rows", "weights")

    def __init__(self, rows: pa.Table, weights: Integers) -> None:
        #: One batch: Arrow takes rows of it in a fifth of the time that a table's take.
        self.rows = batch_of(rows)
        self._columns: list[pa.Array] = [*map(as_cells, self.rows.columns)]
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

    def few_places(self, key: tuple[str, ...], wanted: Hashes) -> list[int] | None:
        """``places``, of all rows for an empty key; None where they are not few."""
        if not key:
            return np.flatnonzero(self.weights > 0).tolist() if self.live <= FEW else None
        hashes, order = self.index(key)
        first, last = hashes.searchsorted(wanted, "left"), hashes.searchsorted(wanted, "right")
        if int((last - first).sum()) > FEW:
            return None
        ranges = [order[start:end] for start, end in zip(first.tolist(), last.tolist(), strict=True) if start < end]
        return [place for item in ranges for place in item.tolist() if self.weights[place] > 0]

    def few_rows(self, places: Sequence[int]) -> list[list[Any]]:
        """The values of each column at some places, and the weights. Raises one of ``FAILURES``."""
        cells = [[column[place].as_py() for place in places] for column in self._columns]
        return [*cells, [int(self.weights[place]) for place in places]]

    def has(self, place: int, row: Row) -> bool:
        """Whether a row is at a place."""
        try:
            cells = [column[place].as_py() for column in self._columns]
        except FAILURES:  # a value that Python has not is none of the row's
            return False
        return tuple(cells) == row and all(map(is_exact, self.rows.schema.types, ([cell] for cell in cells)))

    def lose(self, place: int, count: int) -> None:
        """The row at a place goes so many times."""
        self.weights[place] -= count
        self.live -= not self.weights[place]

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


class _Few(Struct, frozen=True):
    """A few rows of a multiset with their weights, and where they are: among the recent ones, and in segments."""

    rows: SmallTable
    recent: list[Row]
    segments: list[tuple[_Segment, list[int]]]


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
        self._segments: list[_Segment] = []
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

    def _taken_out(self, found: Sequence[tuple[_Segment, Places]]) -> pa.Table:
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

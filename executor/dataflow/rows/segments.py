"""A segment of a multiset: rows that came together, in Arrow's form.

Owns: where rows are in it. It has, for each key, the hashes of its rows in order, and the keys of an ordering where
places in it are looked up (``order_keys``). A row that is taken out keeps its place, with weight 0, until its segment
becomes part of another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from executor.dataflow.rows.hashing import Hashes, hashes_of
from executor.dataflow.rows.order_keys import Keys, Ordering
from executor.dataflow.rows.ordered_values import in_order
from executor.dataflow.rows.recent_rows import Row
from executor.dataflow.rows.weighted_rows import Integers, batch_of
from executor.small.small_table import FEW, is_exact
from executor.small.values import FAILURES, as_cells
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


class Segment:
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

    def are_few_within(self, ordering: Ordering, ranges: KeyRanges, most: int) -> bool:
        """Whether at most so many rows have a key in one of some ranges, and not many that have gone."""
        keys, _ = self.ordered(ordering)
        first, last = np.searchsorted(keys, ranges[0], "left"), np.searchsorted(keys, ranges[1], "right")
        return (last - first).sum() <= _WIDENING * _WIDENING * most and self.within(ordering, ranges).size <= most

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

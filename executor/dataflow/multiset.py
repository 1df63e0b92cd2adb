"""The rows of a dataflow's node: a multiset, of which the rows with some keys are found without looking at the others.

Rows lie in segments, the larger ones first. A change takes the rows that are equal to changed ones out of their
segments, adds the weights, and writes what is left into a new segment; segments of like sizes become one (a logarithmic
method: Bentley and Saxe, 1980). So a change costs its own size times the logarithm of the rows.

A segment has, for each key, the hashes of its rows in order. A row that is taken out keeps its place, with weight 0,
until its segment becomes part of another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from executor.dataflow.hashing import Hashes, hashes_of
from executor.traces.budget import size_of

#: The column of a change's rows that says by how many such rows there are more.
WEIGHT: Final = "__weight"

Integers = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32] | npt.NDArray[np.int64]
#: Makes one of equal rows, with the sum of their weights.
Consolidate = Callable[[pa.Table], pa.Table]

_compute: Any = pyarrow.compute  # made at its import, where no type checker sees its functions
_INDEX_BYTES: Final = 12
#: Rows of a change that are few.
_FEW: Final = 32


class Inconsistent(Exception):
    """A change takes away rows that are not there."""


class _Segment:
    """Rows that came together."""

    __slots__ = ("_indexes", "live", "rows", "weights")

    def __init__(self, rows: pa.Table, weights: Integers) -> None:
        #: One batch: Arrow takes rows of it in a fifth of the time that a table's take.
        self.rows = _batch(rows)
        self.weights = weights
        self.live = len(weights)
        self._indexes: dict[tuple[str, ...], tuple[Hashes, npt.NDArray[np.int32]]] = {}

    def index(self, key: tuple[str, ...]) -> tuple[Hashes, npt.NDArray[np.int32]]:
        """The hashes of the rows' keys in order, and the rows' places."""
        found = self._indexes.get(key)
        if found is None:
            hashes = hashes_of(pa.Table.from_batches([self.rows]), key)
            order = np.argsort(hashes, kind="stable").astype(np.int32)
            found = self._indexes[key] = (hashes[order], order)
        return found

    @property
    def bytes(self) -> int:
        """About what it takes in memory."""
        return size_of(self.rows) + self.weights.nbytes + _INDEX_BYTES * len(self.weights) * len(self._indexes)

    def places(self, key: tuple[str, ...], wanted: Hashes) -> npt.NDArray[np.int32]:
        """Where rows with these hashes are, each hash given once."""
        hashes, order = self.index(key)
        first, last = np.searchsorted(hashes, wanted, "left"), np.searchsorted(hashes, wanted, "right")
        counts = last - first
        total = int(counts.sum())
        if not total:
            return order[:0]
        steps = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        places: npt.NDArray[np.int32] = order[np.repeat(first, counts) + steps]
        return places.compress(self.weights[places] > 0)

    def first_places(self, key: tuple[str, ...], wanted: Hashes) -> tuple[Integers, Places]:
        """For each of some hashes that rows have, its number, and where the first row is, if that is there."""
        hashes, order = self.index(key)
        first = np.searchsorted(hashes, wanted, "left")
        rows = np.flatnonzero(hashes.take(first, mode="clip") == wanted) if hashes.size else first[:0]
        places = order[first[rows]]
        there = self.weights[places] > 0
        return rows[there], places[there]

    def take(self, places: Places) -> tuple[pa.Table, Integers]:
        """Some rows with their weights."""
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
        self._merge = merge
        self._segments: list[_Segment] = []
        self._add(rows)
        for key in keys:
            self.lookup(key, np.empty(0, np.uint64))

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

    def take(self, key: tuple[str, ...], hashes: Hashes) -> pa.Table:
        """Takes out what ``lookup`` finds."""
        wanted = np.unique(hashes)
        found = [(item, item.places(key, wanted) if key else np.flatnonzero(item.weights)) for item in self._segments]
        rows = self._weighted([item.take(places) for item, places in found if places.size])
        self._clear(found)
        return rows

    def add(self, rows: pa.Table) -> None:
        """Adds rows with their weights, which are positive."""
        self._add(rows)

    def change(self, delta: pa.Table) -> None:
        """Adds rows with their weights. Raises Inconsistent where a row would be there less than not at all."""
        if delta.num_rows == 0:
            return
        gone = delta.filter(_compute.less(delta.column(WEIGHT), 0))
        if self._taken_away(gone):
            self._add(delta.filter(_compute.greater(delta.column(WEIGHT), 0)))
            return
        old = self.take(self._names, hashes_of(delta, self._names))
        merged = self.consolidated(pa.concat_tables([old, delta]) if old.num_rows else delta)
        weights = merged.column(WEIGHT).to_numpy()
        if weights.size and weights.min() < 0:
            raise Inconsistent
        self._add(merged)

    def consolidated(self, rows: pa.Table) -> pa.Table:
        """Equal rows as one with the sum of their weights, without those where it is 0."""
        return consolidated(rows, self._merge)

    def _taken_away(self, gone: pa.Table) -> bool:
        """Takes rows away where they are, if each is found in one place; else nothing."""
        if not all(_is_grouped(field.type) for field in self._schema):
            return False
        hashes, weights = hashes_of(gone, self._names), gone.column(WEIGHT).to_numpy()
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

    def _add(self, rows: pa.Table) -> None:
        if rows.num_rows:
            weights = rows.column(WEIGHT).to_numpy().astype(np.int64)  # a copy, which is written to
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
            return self._schema.append(pa.field(WEIGHT, pa.int64())).empty_table()
        return pa.concat_tables(found)


def consolidated(rows: pa.Table, merge: Consolidate) -> pa.Table:
    """Equal rows as one with the sum of their weights, without those where it is 0; equal in all bits."""
    names = [name for name in rows.column_names if name != WEIGHT]
    kinds = [rows.schema.field(name).type for name in names]
    if rows.num_rows <= _FEW and not any(map(_is_inexact, kinds)):
        return _few_consolidated(rows, names)
    if all(map(_is_grouped, kinds)):
        rows = _without_pairs(rows, names)
        if rows.num_rows == 0:
            return rows
        # Zeros of both signs, which Arrow's grouping takes apart, are different rows here.
        grouped = rows.group_by(names, use_threads=False).aggregate([(WEIGHT, "sum")])
        found = grouped.select([*names, f"{WEIGHT}_sum"]).rename_columns([*names, WEIGHT])
    else:
        found = merge(rows)
    return found.filter(_compute.not_equal(found.column(WEIGHT), 0))


def _without_pairs(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows without those that went and came again, as the n-th of those that went and the n-th of those that came:
    an UPDATE gives such pairs, and grouping takes ten times as long as comparing them."""
    weights = rows.column(WEIGHT).to_numpy()
    gone, come = np.flatnonzero(weights == -1), np.flatnonzero(weights == 1)
    if gone.size != come.size or 2 * gone.size != weights.size:
        return rows
    before, after = _some(rows, gone), _some(rows, come)
    alike = np.ones(gone.size, np.bool_)
    for name in names:
        alike &= _same_bits(before.column(name), after.column(name))
        if not alike.any():
            return rows
    if alike.all():
        return rows.slice(0, 0)
    return _some(rows, np.sort(np.concatenate([gone[~alike], come[~alike]])))


def _are_same(item: _Segment, places: Places, rows: pa.Table, at: Integers, names: Sequence[str]) -> bool:
    """Whether a segment's rows at some places are, one by one, the same as other rows."""
    if not at.size:
        return True
    mine, others = item.rows.take(pa.array(places)), _some(rows, at)
    return all(bool(_same_bits(mine.column(name), others.column(name).combine_chunks()).all()) for name in names)


def _some(rows: pa.Table, places: Integers) -> pa.Table:
    """Rows at some places, in order."""
    if places.size and places[-1] - places[0] + 1 == places.size:
        return rows.slice(places[0], places.size)
    return rows.take(pa.array(places))


def _same_bits(one: pa.ChunkedArray | pa.Array, other: pa.ChunkedArray | pa.Array) -> npt.NDArray[np.bool_]:
    """Where two columns have the same value, NULL included."""
    if pa.types.is_floating(one.type):
        whole = pa.int32() if one.type.bit_width == 32 else pa.int64()
        one, other = (item.combine_chunks() if isinstance(item, pa.ChunkedArray) else item for item in (one, other))
        one, other = one.view(whole), other.view(whole)
    same = _compute.equal(one, other)
    if same.null_count:
        both = _compute.and_(_compute.is_null(one), _compute.is_null(other))
        same = _compute.or_(_compute.fill_null(same, fill_value=False), both)
    found: npt.NDArray[np.bool_] = (
        same.to_numpy(zero_copy_only=False) if isinstance(same, pa.Array) else same.to_numpy()
    )
    return found


def _few_consolidated(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """``consolidated`` of a few rows, as Python values: a call of Arrow's grouping takes ten times as long."""
    weights = rows.column(WEIGHT).to_pylist()
    columns = [rows.column(name).to_pylist() for name in names]
    totals: dict[tuple[object, ...], int] = {}
    first: dict[tuple[object, ...], int] = {}
    for place, weight in enumerate(weights):
        key = tuple([column[place] for column in columns])
        totals[key] = totals.get(key, 0) + weight
        first.setdefault(key, place)
    kept = [(place, totals[key]) for key, place in first.items() if totals[key]]
    if len(kept) == len(weights):
        return rows
    found = pa.Table.from_batches([_batch(rows.select(names)).take(pa.array([place for place, _ in kept], pa.int32()))])
    return found.append_column(WEIGHT, pa.array([total for _, total in kept], pa.int64()))


def _batch(rows: pa.Table) -> pa.RecordBatch:
    """A table's rows as one batch. Raises Inconsistent for more text than a batch holds."""
    if rows.num_rows == 0:
        return pa.RecordBatch.from_pylist([], schema=rows.schema)
    batches = rows.combine_chunks().to_batches()
    if len(batches) > 1:
        raise Inconsistent
    return batches[0]


def _is_inexact(kind: pa.DataType) -> bool:
    """Whether Python's values of a type are not equal where their bits are, or cannot be keys."""
    return bool(pa.types.is_floating(kind)) or not _is_grouped(kind)


def _is_grouped(kind: pa.DataType) -> bool:
    """Whether Arrow groups by values of a type."""
    return not (pa.types.is_nested(kind) or pa.types.is_interval(kind) or pa.types.is_null(kind))


def repeated(rows: pa.Table) -> pa.Table:
    """Rows with weights as rows, each as often as its weight says."""
    weights = rows.column(WEIGHT).to_numpy()
    plain = rows.drop_columns([WEIGHT])
    if not weights.size or weights.max() <= 1:
        return plain
    return pa.Table.from_batches([_batch(plain).take(pa.array(np.repeat(np.arange(len(weights)), weights)))])


def weighted(rows: pa.Table, weight: int) -> pa.Table:
    """Rows with a weight each."""
    return rows.append_column(WEIGHT, pa.array(np.full(rows.num_rows, weight, np.int64)))


def negated(rows: pa.Table) -> pa.Table:
    """Rows with their weights' signs changed."""
    place = rows.schema.get_field_index(WEIGHT)
    return rows.set_column(place, WEIGHT, _compute.negate(rows.column(WEIGHT)))

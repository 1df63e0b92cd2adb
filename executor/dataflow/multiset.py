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

    def take(self, places: npt.NDArray[np.int32]) -> tuple[pa.Table, Integers]:
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

    def change(self, delta: pa.Table) -> None:
        """Adds rows with their weights. Raises Inconsistent where a row would be there less than not at all."""
        if delta.num_rows == 0:
            return
        wanted = np.unique(hashes_of(delta, self._names))
        touched = [(item, item.places(self._names, wanted)) for item in self._segments]
        old = self._weighted([item.take(places) for item, places in touched if places.size])
        merged = self.consolidated(pa.concat_tables([old, delta]) if old.num_rows else delta)
        weights = merged.column(WEIGHT).to_numpy()
        if weights.size and weights.min() < 0:
            raise Inconsistent
        for item, places in touched:
            item.weights[places] = 0
            item.live -= places.size
        self._add(merged)

    def consolidated(self, rows: pa.Table) -> pa.Table:
        """Equal rows as one with the sum of their weights, without those where it is 0."""
        return consolidated(rows, self._merge)

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
        # Zeros of both signs, which Arrow's grouping takes apart, are different rows here.
        grouped = rows.group_by(names, use_threads=False).aggregate([(WEIGHT, "sum")])
        found = grouped.select([*names, f"{WEIGHT}_sum"]).rename_columns([*names, WEIGHT])
    else:
        found = merge(rows)
    return found.filter(_compute.not_equal(found.column(WEIGHT), 0))


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

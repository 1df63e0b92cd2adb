"""The rows that a change of a window's input reaches (``planner.incremental.dataflow.ordered_windows``).

Owns: which kept rows are touched, which others their values depend on, and what running functions have in front of
them. The engine computes the values. Used by one thread at a time.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct

from executor.dataflow.rows.hashing import Hashes, hashes_of
from executor.dataflow.rows.multiset import Multiset
from executor.dataflow.rows.order_keys import Keys, Ordering
from executor.dataflow.rows.segments import KeyRanges
from executor.dataflow.rows.weighted_rows import (
    WEIGHT,
    Consolidate,
    Inconsistent,
    consolidated,
    repeated,
    same_bits,
    weights_of,
)
from planner.incremental.dataflow.graph import Key, OrderedWindow, names_of

#: The part of the rows of a node in reach of a change from which on the touched partitions are computed anew.
_SHARE: Final = 0.25


class Reached(Struct, frozen=True):
    """What a change reaches: the rows that were ``old``, with weights, and the ``candidates`` for those instead."""

    old: pa.Table
    candidates: pa.Table


class _Ranges(Struct, frozen=True):
    """Ranges of keys: of the rows that are ``touched``, and of those that are ``read``."""

    touched: KeyRanges
    read: KeyRanges


class OrderedRows:
    """The order of one node's rows."""

    def __init__(self, node: OrderedWindow, merge: Consolidate) -> None:
        """``merge`` consolidates rows of the node below of types that Arrow does not group."""
        self._node = node
        self._merge = merge
        self._given = names_of(node.given)
        ties = self._given if node.has_ties else ()
        self._ordering = Ordering(node.partition, node.order, ties, tuple(0 for _ in node.order))

    def all(self, rows: pa.Table) -> pa.Table:
        """The candidates for all of the node's rows, made of those of the node below."""
        self._ordering = self._ordering.fitting(rows)
        return self._candidates(rows, rows.num_rows, None, None)

    def index(self, kept: Multiset) -> None:
        """Makes the index by which the node's rows are found."""
        kept.index_in_order(self._ordering)

    def change(self, kept: Multiset, delta: pa.Table) -> Reached:
        """What a change of the node below reaches of the ``kept`` rows; touched ones are taken out. Raises Inconsistent
        where rows go that are not there."""
        self._ordering = self._ordering.fitting(delta)
        changed = np.unique(self._ordering.keys(delta))
        old = kept.take_within(self._ordering, (changed, changed))
        come = self._changed(old, delta)
        ranges = self._ranges(kept, changed)
        touched = kept.take_within(self._ordering, ranges.touched)
        others = kept.within(self._ordering, ranges.read)
        old = pa.concat_tables([old, touched])
        rows = pa.concat_tables([come, self._own(touched)])
        front = self._front(kept, ranges.read[0])
        around = pa.concat_tables([self._own(others), front.select(self._given)])
        both = pa.concat_tables([rows, around])
        ties = hashes_of(both, self._given) if self._node.has_ties else None
        if self._are_ambiguous(both, ties):
            more = kept.take_within(self._ordering, self._ordering.ends(changed))
            rows = pa.concat_tables([rows, self._own(more)])
            return Reached(pa.concat_tables([old, more]), self._candidates(rows, rows.num_rows, None, None))
        count = both.num_rows - front.num_rows
        return Reached(old, self._candidates(both.slice(0, count), rows.num_rows, front, ties))

    def _changed(self, old: pa.Table, delta: pa.Table) -> pa.Table:
        """The rows at the places of changed ones as they are now."""
        both = pa.concat_tables([old.select([*self._given, WEIGHT]), delta])
        left = consolidated(both, self._merge)
        weights = weights_of(left)
        if weights.size and weights.min() < 0:
            raise Inconsistent
        return repeated(left)

    def _own(self, rows: pa.Table) -> pa.Table:
        """Rows of the node, with weights, as those of the node below."""
        return repeated(rows).select(self._given)

    # -- ranges ----------------------------------------------------------------------------------------------------

    def _ranges(self, kept: Multiset, changed: Keys) -> _Ranges:
        node, ordering = self._node, self._ordering
        is_running = node.position is not None
        if changed.size * (node.preceding + node.following) > _SHARE * kept.count:
            ends = ordering.ends(changed)
            return _Ranges(ends, ends)
        first = ordering.peers(changed) if node.has_peers else changed
        least, before = self._reach(kept, first, (node.following, node.preceding), behind=False)
        if is_running:
            before = ordering.peers(before) if node.has_peers else before
            end = ordering.ends(changed)[1]
            return _Ranges((least, end), (before, end))
        greatest, behind = self._reach(kept, changed, (node.preceding, node.following), behind=True)
        return _Ranges((least, greatest), (before, behind))

    def _reach(self, kept: Multiset, keys: Keys, numbers: tuple[int, int], *, behind: bool) -> tuple[Keys, Keys]:
        """The keys of the rows so many places behind each key, or before it, and so many further. Rows with a key are
        all within reach, or none is."""
        number, more = numbers
        if not number + more:
            return keys, keys
        near = kept.near(self._ordering, keys, number + max(more, 1), behind=behind)
        reached = near[:, number - 1] if number else keys
        if not more:
            return reached, reached
        end = self._ordering.ends(keys)[behind]
        if number and np.any((near[:, number] == reached) & (reached != end)):
            return reached, kept.near(self._ordering, reached, more, behind=behind)[:, -1]
        return reached, near[:, -1]

    def _front(self, kept: Multiset, least: Keys) -> pa.Table:
        """The rows in front of those that are read of each partition, in the order of the partitions' hashes; none
        where no function is a running one."""
        node, ordering = self._node, self._ordering
        if node.position is None:
            return kept.within(ordering, (least[:0], least[:0]))
        least = np.sort(least)
        _, first = np.unique(ordering.partitions(least), return_index=True)
        least = least[first]
        front = kept.near(ordering, least, 1, behind=False)[:, 0]
        front = front[front < least]
        found = kept.within(ordering, (front, front))
        if found.num_rows <= 1:
            return found
        hashes = hashes_of(found, node.partition)
        order = np.lexsort((found.column(node.position).to_numpy(), hashes))
        hashes = hashes[order]
        return found.take(pa.array(order[np.append(hashes[1:] != hashes[:-1], True)]))

    # -- candidates ------------------------------------------------------------------------------------------------

    def _candidates(self, rows: pa.Table, touched: int, front: pa.Table | None, ties: Hashes | None) -> pa.Table:
        """Rows of which the first ones are ``touched``, with what is in ``front`` of those of each partition, and the
        hashes of ``ties`` of at least these rows where they are known."""
        node = self._node
        count = rows.num_rows
        if ties is None:
            ties = hashes_of(rows, self._given) if node.has_ties else np.zeros(count, np.uint64)
        tie = ties[:count].view(np.int64)
        places, has_front = self._in_front(rows, front)
        before = pa.array(places, mask=~has_front)
        carried = [
            pa.nulls(count, column.type.arrow)
            if front is None or not has_front.any()
            else front.column(name).take(before)
            for name, column in node.carried
        ]
        marks = [pa.array(item) for item in (tie, np.arange(count) < touched, has_front)]
        names = names_of([node.tie, node.touched, node.front, *(column for _, column in node.carried)])
        return pa.table([*rows.columns, *marks, *carried], [*rows.column_names, *names])

    def _in_front(self, rows: pa.Table, front: pa.Table | None) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The place of the row in front of those of each row's partition, and whether there is one."""
        if front is None or not front.num_rows:
            return np.zeros(rows.num_rows, np.int64), np.zeros(rows.num_rows, np.bool_)
        hashes, own = hashes_of(front, self._node.partition), hashes_of(rows, self._node.partition)
        places = np.minimum(np.searchsorted(hashes, own), hashes.size - 1)
        return places, hashes[places] == own

    def _are_ambiguous(self, rows: pa.Table, ties: Hashes | None) -> bool:
        """Whether two rows have equal keys by chance: in other partitions, or in no order."""
        if ties is not None and not _are_told_apart(rows, self._given, ties):
            return True
        partition = self._node.partition
        return bool(partition) and not _are_told_apart(rows, partition, hashes_of(rows, partition))


def _are_told_apart(rows: pa.Table, key: Key, hashes: Hashes) -> bool:
    """Whether rows with equal hashes have equal values."""
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    same = np.flatnonzero(hashes[1:] == hashes[:-1])
    return not same.size or _are_alike(rows, order[same], order[same + 1], key)


def _are_alike(
    rows: pa.Table, places: npt.NDArray[np.int64], others: npt.NDArray[np.int64], names: tuple[str, ...]
) -> bool:
    """Whether rows at some places have the values of others, one by one; not where values have no hash."""
    for name in names:
        column = rows.column(name)
        if pa.types.is_nested(column.type) or pa.types.is_interval(column.type):
            return False
        if not same_bits(column.take(pa.array(places)), column.take(pa.array(others))).all():
            return False
    return True

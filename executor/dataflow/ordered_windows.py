"""The rows that a change of a window's input reaches (``planner.incremental.dataflow.ordered_windows``).

Owns: which kept rows are touched, which others their values depend on, what running functions have in front of them,
and whether rows behind them change. The engine computes the values. Used by one thread at a time.
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
from executor.dataflow.rows.weighted_rows import (
    WEIGHT,
    Consolidate,
    Inconsistent,
    Integers,
    consolidated,
    repeated,
    same_bits,
    weighted,
    weights_of,
)
from executor.dataflow.window_spans import Flags, Reach, Spans, spans_around, whole_partitions
from planner.incremental.dataflow.graph import Key, OrderedWindow, names_of

#: The part of the rows of a node in reach of a change from which on the touched partitions are computed anew.
_SHARE: Final = 0.25
#: Rows behind closed spans that are computed at once, which costs less than to look whether they change.
_FEW: Final = 16
_NOWHERE: Final = -1


class _Front(Struct, frozen=True):
    """Rows in front of spans: by the number of a span, the place of its row in ``rows``, ``_NOWHERE`` for none."""

    rows: pa.Table
    places: Integers


class _Within(Struct, frozen=True):
    """What is computed: the ``touched`` rows of some ``spans``, of the node below, with the rows in ``front``."""

    spans: Spans
    touched: pa.Table
    front: _Front


class Reached(Struct, frozen=True):
    """What a change reaches: the rows that were ``old``, with weights, and the ``candidates`` for those instead;
    ``within`` is None where these are whole partitions."""

    old: pa.Table
    candidates: pa.Table
    changed: Keys
    within: _Within | None


class OrderedRows:
    """The order of one node's rows."""

    def __init__(self, node: OrderedWindow, merge: Consolidate) -> None:
        """``merge`` consolidates rows of the node below of types that Arrow does not group."""
        self._node = node
        self._merge = merge
        self._given = names_of(node.given)
        is_running = node.position is not None
        self._reach = Reach(node.preceding, node.following, is_running, node.has_peers, node.distance)
        widths = tuple(0 for _ in node.order)
        self._ordering = Ordering(node.partition, node.order, node.ties, widths, node.is_reverse)

    def all(self, rows: pa.Table) -> pa.Table:
        """The candidates for all of the node's rows, made of those of the node below."""
        self._ordering = self._ordering.fitting(rows)
        return self._candidates(rows, rows.num_rows)

    def index(self, kept: Multiset) -> None:
        """Makes the index by which the node's rows are found."""
        kept.index_in_order(self._ordering)

    def change(self, kept: Multiset, delta: pa.Table) -> Reached:
        """What a change of the node below reaches of the ``kept`` rows; touched ones are taken out. Raises Inconsistent
        where rows go that are not there."""
        self._ordering = ordering = self._ordering.fitting(delta)
        changed, places = np.unique(ordering.keys(delta), return_inverse=True)
        net = np.bincount(places, weights_of(delta), changed.size).astype(np.int64)
        is_large = changed.size * (self._node.preceding + self._node.following) > _SHARE * kept.count
        spans = (
            whole_partitions(ordering, changed) if is_large else spans_around(kept, ordering, self._reach, changed, net)
        )
        if spans.are_closed.any():
            opened, _ = spans.opened(ordering, spans.are_closed)
            spans = opened if kept.are_few_within(ordering, opened.touched, _FEW) else spans
        front = self._front(kept, spans)
        old = kept.take_within(ordering, (changed, changed))
        come = self._changed(old, delta)
        touched = kept.take_within(ordering, spans.touched)
        rows = pa.concat_tables([come, self._own(touched)])
        return self._computed_from(kept, pa.concat_tables([old, touched]), changed, _Within(spans, rows, front))

    def wider(self, kept: Multiset, reached: Reached, new: pa.Table) -> Reached | None:
        """What a change reaches where rows behind closed spans have other values, as the ``new`` rows of these spans
        say; None where none has."""
        within = reached.within
        if within is None or not within.spans.are_closed.any():
            return None
        changing = self._are_changing(within.spans, reached.old, new)
        if not changing.any():
            return None
        spans, first = within.spans.opened(self._ordering, changing)
        more = kept.take_within(self._ordering, spans.touched)
        rows = pa.concat_tables([within.touched, self._own(more)])
        front = _Front(within.front.rows, within.front.places[first])
        return self._computed_from(
            kept, pa.concat_tables([reached.old, more]), reached.changed, _Within(spans, rows, front)
        )

    def _computed_from(self, kept: Multiset, old: pa.Table, changed: Keys, within: _Within) -> Reached:
        """The candidates of spans, or of their partitions where keys say too little."""
        ordering, spans, touched, front = self._ordering, within.spans, within.touched, within.front
        others = self._own(kept.within(ordering, spans.read))
        both = pa.concat_tables([touched, others, front.rows.select(self._given)])
        ties = hashes_of(both, self._node.ties) if self._node.ties else None
        if self._are_ambiguous(both, ties, old):
            more = kept.take_within(ordering, ordering.ends(changed))
            rows = pa.concat_tables([touched, self._own(more)])
            return Reached(pa.concat_tables([old, more]), self._candidates(rows, rows.num_rows), changed, None)
        rows = both.slice(0, both.num_rows - front.rows.num_rows)
        return Reached(old, self._candidates(rows, touched.num_rows, within, ties), changed, within)

    def _are_changing(self, spans: Spans, old: pa.Table, new: pa.Table) -> Flags:
        """Which closed spans end with other values than before on which rows behind them depend."""
        numbers, found = self._last(spans, old)
        others, instead = self._last(spans, new)
        if not np.array_equal(numbers, others):
            return spans.are_closed
        same = np.ones(numbers.size, np.bool_)
        for name in self._node.state:
            same &= same_bits(found.column(name), instead.column(name))
        changing = np.zeros(spans.are_closed.size, np.bool_)
        changing[numbers[~same]] = True
        if self._node.added_up:
            changing |= self._added_up(spans, old) != self._added_up(spans, weighted(new, 1))
        return changing & spans.are_closed

    def _added_up(self, spans: Spans, rows: pa.Table) -> Hashes:
        """A hash of the values of each span that are added up."""
        found = np.zeros(spans.are_closed.size, np.uint64)
        hashes = hashes_of(rows, self._node.added_up) * weights_of(rows).astype(np.uint64)
        np.add.at(found, spans.of(self._ordering, rows), hashes)
        return found

    def _last(self, spans: Spans, rows: pa.Table) -> tuple[Integers, pa.Table]:
        """The last one of the rows in each closed span, and its number."""
        assert self._node.position is not None
        numbers = spans.of(self._ordering, rows)
        order = np.lexsort((rows.column(self._node.position).to_numpy(), numbers))
        numbers = numbers[order]
        last = np.append(numbers[1:] != numbers[:-1], True)[: numbers.size] & spans.are_closed[numbers]
        return numbers[last], rows.take(pa.array(order[last]))

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

    def _front(self, kept: Multiset, spans: Spans) -> _Front:
        """The rows in front of spans; none where no function is a running one."""
        node, ordering, least = self._node, self._ordering, spans.read[0]
        places = np.full(least.size, _NOWHERE)
        if node.position is None:
            return _Front(kept.within(ordering, (least[:0], least[:0])), places)
        front = kept.near(ordering, least, 1, behind=False)[:, 0]
        there = np.flatnonzero(front < least)
        found = kept.within(ordering, (front[there], front[there]))
        if found.num_rows:
            keys = ordering.keys(found)
            order = np.lexsort((found.column(node.position).to_numpy(), keys))
            last = np.searchsorted(keys[order], front[there], "right") - 1
            at = np.maximum(last, 0)
            places[there] = np.where((last >= 0) & (keys[order[at]] == front[there]), order[at], _NOWHERE)
        return _Front(found, places)

    # -- candidates ------------------------------------------------------------------------------------------------

    def _candidates(
        self, rows: pa.Table, touched: int, within: _Within | None = None, ties: Hashes | None = None
    ) -> pa.Table:
        """Rows of which the first ones are ``touched``, with their span, what is in front of that, and the hashes of
        ``ties`` of at least these rows where they are known."""
        node = self._node
        count = rows.num_rows
        if ties is None:
            ties = hashes_of(rows, node.ties) if node.ties else np.zeros(count, np.uint64)
        places = (~ties if node.is_reverse else ties)[:count].view(np.int64)
        spans = np.zeros(count, np.int64)
        carried = [pa.nulls(count, column.type.arrow) for _, column in node.carried]
        has_front = np.zeros(count, np.bool_)
        if within is not None and node.position is not None:
            spans = within.spans.of(self._ordering, rows)
            front = within.front.places[spans]
            has_front = front != _NOWHERE
            if has_front.any():
                before = pa.array(front, mask=~has_front)
                carried = [within.front.rows.column(name).take(before) for name, _ in node.carried]
        marks = [pa.array(item) for item in (places, np.arange(count) < touched, spans, has_front)]
        names = names_of([node.tie, node.touched, node.span, node.front, *(column for _, column in node.carried)])
        return pa.table([*rows.columns, *marks, *carried], [*rows.column_names, *names])

    def _are_ambiguous(self, rows: pa.Table, ties: Hashes | None, old: pa.Table) -> bool:
        """Whether two rows have equal keys by chance: in no order, or in other partitions, in one of which rows that
        are ``old`` may have been."""
        if ties is not None and not _are_told_apart(rows, self._node.ties, ties):
            return True
        partition = self._node.partition
        if not partition:
            return False
        both = pa.concat_tables([item.select(partition) for item in (rows, old)])
        return not _are_told_apart(both, partition, hashes_of(both, partition))


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

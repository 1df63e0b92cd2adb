"""Aggregates over whole partitions, as a grouping that its rows are joined with (DBToaster, section 3.2.2, nested
aggregates).

    W(R; sum(x) over (partition by p))  =  R join G(R; p; sum(x)) on the same p

A change of R changes one row of G at most for each partition that it touches, and all rows of the partition only where
the aggregate has another value: an UPDATE beside x, or of an x that is not the least one, changes its row alone.

Guard: the frame is the partition, without EXCLUDE; there is a PARTITION BY by all of which rows are found
(``keyable``): a total of all rows changes each row, and is added up as quickly at each read. The aggregates do not
depend on an order, and are counts, sums, averages, the least and the greatest value, and others of the grouping's
methods (``groupings``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from catalog.values.types import BOOL
from planner.algebra.construction import conjunction
from planner.algebra.functions import WINDOW_FUNCTIONS
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Column,
    ColumnRef,
    Join,
    Relation,
    Scalar,
    Snapshot,
    WindowCall,
)
from planner.algebra.signature import key_of
from planner.algebra.walk import used_columns
from planner.incremental.dataflow.building import Building, with_columns, with_keys
from planner.incremental.dataflow.groupings import is_of_values
from planner.incremental.dataflow.keyable import are_comparable
from planner.incremental.dataflow.propagation import folded
from planner.incremental.dataflow.retraction import is_retractable

Calls = tuple[tuple[Column, WindowCall], ...]


def is_total(call: WindowCall) -> bool:
    """The guard."""
    if call.function in WINDOW_FUNCTIONS or call.exclude != "no_others" or not _is_whole(call):
        return False
    partition = _partition(call)
    if not partition or not all(are_comparable(item.type, item.type) for item in partition):
        return False
    found = _aggregate(call)
    doubles = call.function in ("sum", "avg") and call.type.name == "float8"
    return is_retractable(found) or is_of_values(found) or doubles


def with_totals(
    building: Building,
    base: Relation,
    rows: Relation,
    calls: Calls,
    grouped: Callable[[Aggregate], Relation],
    closed: Callable[[Relation], Snapshot],
) -> Relation:
    """Rows, which have the columns of a ``base``, with aggregates over partitions of the base."""
    columns = (*rows.columns, *(column for column, _ in calls))
    for alike in _by_partition(calls):
        partition = _partition(alike[0][1])
        below, keys = with_keys(building, base, partition)
        groups = tuple((building.fresh.copy(key), ColumnRef(key)) for key in keys)
        aggregates = tuple((column, _aggregate(call)) for column, call in alike)
        totals = closed(grouped(Aggregate(closed(below), groups, aggregates)))
        left, own = with_keys(building, rows, partition)
        same = (
            Call("is_not_distinct", (ColumnRef(key), ColumnRef(group)), BOOL)
            for key, (group, _) in zip(own, groups, strict=True)
        )
        rows = folded(building, Join("inner", left, totals, conjunction(same)))
    return with_columns(rows, columns)


def _is_whole(call: WindowCall) -> bool:
    """Whether a frame is the partition."""
    if call.start != "unbounded_preceding":
        return False
    ordered = any(used_columns(key.expression) for key in call.order_by)
    peers = call.mode == "range" and call.end == "current_row" and not ordered
    return peers or call.end == "unbounded_following"


def _partition(call: WindowCall) -> list[Scalar]:
    return [item for item in dict.fromkeys(call.partition) if used_columns(item)]


def _aggregate(call: WindowCall) -> AggregateCall:
    return AggregateCall(call.function, call.arguments, call.type, filter=call.filter)


def _by_partition(calls: Calls) -> list[Calls]:
    """Calls of equal partitions together."""
    found: dict[Hashable, Calls] = {}
    for item in calls:
        key = tuple(map(key_of, item[1].partition))
        found[key] = (*found.get(key, ()), item)
    return list(found.values())

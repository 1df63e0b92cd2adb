"""Which methods maintain a grouping: by parts, where its aggregates differ.

    G(R; k; sums, extremes)  =  G(R; k; sums)  join  G(D(R; k, x); k; extremes)           on the same k

with D(R; k, x) the distinct pairs of k and an aggregate's arguments x, which are counted and so can be taken back. What
means the same of a value seen twice (min, max, count(DISTINCT x)) is then computed anew of the distinct values of the
touched groups, not of their rows; the least and the greatest value of all rows is the first one in an order
(``first_rows``). D is Exists of counts in DBToaster, section 3.2.2 (example 3.2).

Sums of doubles are sums of integers, but for few doubles (``float_sums``). A grouping with any other aggregate, such as
a list, is computed anew of the rows of touched groups.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Final

from msgspec.structs import replace

from catalog.values.types import BOOL, INT8
from planner.algebra.construction import TRUE, conjunction, same_group
from planner.algebra.identity import NodeMap
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Column,
    ColumnRef,
    Filter,
    Join,
    Limit,
    Literal,
    Project,
    Relation,
    Scalar,
    Snapshot,
    Sort,
    SortKey,
)
from planner.algebra.signature import key_of
from planner.algebra.walk import replace_columns, used_columns
from planner.incremental.dataflow import first_rows, recomputation, retraction
from planner.incremental.dataflow.building import Building, NotMaintained
from planner.incremental.dataflow.float_sums import FloatSums, may_be_exact
from planner.incremental.dataflow.graph import references

#: Aggregates that are one of the values.
_EXTREMES: Final = ("min", "max")
#: Aggregates for which a value seen twice is a value seen once.
_IDEMPOTENT: Final = frozenset(("min", "max", "bool_and", "bool_or", "every", "bit_and", "bit_or"))

Calls = tuple[tuple[Column, AggregateCall], ...]
Closed = Callable[[Relation], Snapshot]


def grouped(building: Building, node: Aggregate, closed: Closed) -> Relation:
    """What stands for a grouping of an open region. Raises NotMaintained."""
    if not node.columns:
        raise NotMaintained("a grouping has no columns")
    below = _with_columns_alone(building, node, closed)
    sums = tuple(item for item in below.aggregates if retraction.is_retractable(item[1]))
    floats = FloatSums(building.fresh, below.aggregates if may_be_exact(below) else ())
    others = tuple(item for item in below.aggregates if item not in sums and item[0] not in floats.results)
    if not others and not floats.results:
        return retraction.retracted(building, below)
    if not all(is_of_values(call) for _, call in others):
        return recomputation.grouping(building, below)
    parts = [_of_values(building, below, calls, closed) for calls in _by_arguments(others, not below.keys)]
    exact = (*sums, *floats.retractable)
    if exact:
        parts.insert(0, retraction.retracted(building, replace(below, aggregates=exact)))
    rest = _outside(building, below, floats, closed) if floats.results else None
    return _joined(building, below, parts, rest, floats.results)


def _with_columns_alone(building: Building, node: Aggregate, closed: Closed) -> Aggregate:
    """The grouping over a node's leaf of the columns that it uses, its keys among them."""
    used = {column for _, value in (*node.keys, *node.aggregates) for column in used_columns(value)}
    computed = [
        (building.fresh.column("key", value.type), value) for _, value in node.keys if not isinstance(value, ColumnRef)
    ]
    kept = tuple(column for column in node.input.columns if column in used)
    by_value = NodeMap((value, column) for column, value in computed)
    known = ((column, value, by_value.of(value)) for column, value in node.keys)
    keys = tuple((column, value if below is None else ColumnRef(below)) for column, value, below in known)
    below: Relation = node.input
    if computed or kept != node.input.columns:
        below = Project(node.input, (*references(kept), *computed))
    return replace(node, input=below if isinstance(below, Snapshot) else closed(below), keys=keys)


def is_of_values(call: AggregateCall) -> bool:
    """Whether an aggregate is computed of the distinct values of each group."""
    return (call.distinct or call.function in _IDEMPOTENT) and not call.order_by


def _by_arguments(calls: Calls, is_one_group: bool) -> list[Calls]:
    """Calls over the same values together, but for the least and the greatest one of all rows."""
    found: dict[Hashable, Calls] = {}
    for column, call in calls:
        values = tuple(map(key_of, (*call.arguments, *(() if call.filter is None else (call.filter,)))))
        key = (call.function if is_one_group and call.function in _EXTREMES else "", *values)
        found[key] = (*found.get(key, ()), (column, call))
    return list(found.values())


def _of_values(building: Building, node: Aggregate, calls: Calls, closed: Closed) -> Snapshot:
    """Calls over the same arguments, computed of the distinct values of each group."""
    used = sorted({column for _, call in calls for column in used_columns(call)}, key=lambda column: column.id)
    keys = tuple((building.fresh.copy(column), value) for column, value in node.keys)
    values = tuple((building.fresh.copy(column), ColumnRef(column)) for column in used)
    present = () if keys or values else ((building.fresh.column("present", BOOL, False), TRUE),)
    distinct = retraction.retracted(building, Aggregate(node.input, (*keys, *values, *present), ()))
    below: dict[Column, Scalar] = {value.column: ColumnRef(column) for column, value in values}
    outer = tuple((building.fresh.copy(column), ColumnRef(column)) for column, _ in keys)
    moved = tuple((column, replace_columns(call, below)) for column, call in calls)
    if not keys and moved[0][1].function in _EXTREMES:
        distinct = first_rows.first_rows(building, _extreme(distinct, moved[0][1]), closed)
    return recomputation.grouping(building, Aggregate(distinct, outer, moved), is_small=True)


def _outside(building: Building, node: Aggregate, floats: FloatSums, closed: Closed) -> Snapshot:
    """The sums of the doubles that are in no tier, of the groups that have such."""
    keys = tuple((building.fresh.copy(column), value) for column, value in node.keys)
    below = closed(Filter(node.input, floats.outside))
    return recomputation.grouping(building, Aggregate(below, keys, floats.others), is_small=True)


def _extreme(values: Relation, call: AggregateCall) -> Limit:
    """The row with the least or the greatest value."""
    (value,) = call.arguments
    counted: Relation = Filter(values, Call("is_not_null", (value,), BOOL))
    if call.filter is not None:
        counted = Filter(counted, call.filter)
    return Limit(Sort(counted, (SortKey(value, descending=call.function == "max"),)), Literal(1, INT8), None)


def _joined(
    building: Building, node: Aggregate, parts: list[Snapshot], rest: Snapshot | None, results: Mapping[Column, Scalar]
) -> Relation:
    """The parts side by side: each has a row for each group, ``rest`` one for some. ``results``: aggregates over
    columns of the parts."""
    first = parts[0]
    keys = first.columns[: len(node.keys)]
    found: Relation = first
    for part in parts[1:]:
        found = Join("inner", found, part, _are_same(keys, part))
    if rest is not None:
        found = Join("left" if keys else "inner", found, rest, _are_same(keys, rest))
    outputs: list[tuple[Column, Scalar]] = [
        (column, ColumnRef(own)) for (column, _), own in zip(node.keys, keys, strict=True)
    ]
    outputs += [(column, results.get(column) or ColumnRef(column)) for column, _ in node.aggregates]
    return Project(found, tuple(outputs))


def _are_same(keys: tuple[Column, ...], part: Snapshot) -> Scalar | None:
    pairs = zip(keys, part.columns, strict=False)
    return conjunction(same_group(ColumnRef(one), ColumnRef(other)) for one, other in pairs)

"""Conditions that compare a time of a row with ``now()``: rows come and go as time passes, whatever happens to inputs.

Such a filter is a time-varying relation also over rows that stay (Tempura, section 3.1), and its change between two
reads is the difference of two snapshots, by multiplicities (section 3.2, definition 4). With R the rows, and B(R) those
on the right side of all bounds, which depend on the time of the read alone::

    Q      =  B(R)
    d(Q)   =  B(dR) + B'(X) - B(X)            X: the rows of R' with a time from a bound to the new one

A bound may also move back: a transaction may have begun before the one that has read last.

Guard: each call of ``now()`` is in a condition of a filter that compares, by <, <=, > or >=, a date or timestamp of the
row with an expression of no column; nothing else of the query depends on when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from planner.algebra.construction import conjuncts, filtered, has_subquery, volatility
from planner.algebra.nodes import Call, Column, ColumnRef, Filter, Project, Relation, Scalar, Snapshot, Values
from planner.algebra.reading_time import NOW, with_time_as_parameter
from planner.algebra.walk import find, kinds_of, transform, used_columns
from planner.incremental.dataflow.building import Building
from planner.incremental.dataflow.graph import TimeBound, TimeBounded, references
from planner.incremental.names import stored_name
from planner.rules import optimise

_CALLS: Final = kinds_of(Call)
_FILTERS: Final = kinds_of(Filter)
_TIMES: Final = frozenset(("date", "timestamp", "timestamptz"))
_MIRRORED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_ONE_ROW: Final = Values((), ((),))

#: Makes a node of a region.
Closed = Callable[[Relation], Snapshot]


def are_followed(relation: Relation) -> bool:
    """The guard."""
    if volatility(with_time_as_parameter(relation)) != "immutable":
        return False
    compared = [part for node in _filters(relation) for part in conjuncts(node.predicate) if _reads_time(part)]
    calls = sum(map(_calls, compared))
    return calls == _calls(relation) and all(_compared(part) is not None for part in compared)


def is_bounded(node: Relation) -> bool:
    """Whether a node is a filter that compares a time with ``now()``."""
    return isinstance(node, Filter) and _reads_time(node.predicate)


def bounded(building: Building, node: Filter, closed: Closed) -> Relation:
    """What stands for the rows on the right side of bounds. Raises NotMaintained."""
    parts = list(conjuncts(node.predicate))
    found = [compared for part in parts if _reads_time(part) and (compared := _compared(part)) is not None]
    below = filtered(node.input, [part for part in parts if not _reads_time(part)])
    computed: dict[Scalar, Column] = {}
    for time, _, _ in found:
        if not isinstance(time, ColumnRef) and time not in computed:
            computed[time] = building.fresh.column("time", time.type)
    if computed:
        added = tuple((column, value) for value, column in computed.items())
        below = Project(below, (*references(node.columns), *added))
    rows = closed(below)
    bounds = tuple(
        TimeBound(stored_name(time.column if isinstance(time, ColumnRef) else computed[time]), function)
        for time, function, _ in found
    )
    outputs = tuple((building.fresh.column("bound", bound.type), bound) for _, _, bound in found)
    times = optimise(with_time_as_parameter(Project(_ONE_ROW, outputs)))
    definition = building.expanded(Filter(rows, _over(node.predicate, computed)))
    leaf = building.add(TimeBounded(building.next_id(), rows.columns, definition, building.node(rows), bounds, times))
    return leaf if leaf.columns == node.columns else Project(leaf, references(node.columns))


def _over(predicate: Scalar, computed: Mapping[Scalar, Column]) -> Scalar:
    """A condition over columns of rows that have what it computes."""
    if not computed:
        return predicate
    found: Scalar = transform(predicate, lambda node: ColumnRef(computed[node]) if node in computed else node)
    return found


def _filters(relation: Relation) -> list[Filter]:
    return [node for node in find(relation, _FILTERS) if isinstance(node, Filter)]


def _reads_time(node: Any) -> bool:
    return _calls(node) > 0


def _calls(node: Any) -> int:
    return sum(isinstance(item, Call) and item.function == NOW for item in find(node, _CALLS))


def _compared(part: Scalar) -> tuple[Scalar, str, Scalar] | None:
    """A row's time, how it compares with a bound, and the bound; None for another condition."""
    if not isinstance(part, Call) or part.function not in _MIRRORED or has_subquery(part):
        return None
    one, other = part.arguments
    function = part.function
    if _reads_time(one):
        one, other, function = other, one, _MIRRORED[function]
    if _reads_time(one) or used_columns(other) or one.type != other.type or one.type.name not in _TIMES:
        return None
    return one, function, other

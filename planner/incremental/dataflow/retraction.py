"""Groupings whose aggregates can be taken back: counts and exact sums (DBToaster, section 3.1, sums over generalised
multisets; Tempura, sections 3.2 and 4.1, an aggregate's merge and the inverse of it).

With w the weight of a changed row, which is 1 or -1, and S the state of a group::

    S' = S + (sum of w, sum of w * x, sum of w where x is not null, ..)   a group is there while its sum of w is not 0
    d(G) = final(S') - final(S)                                           for the groups that changed

Guard: each aggregate splits into counts and sums of integers and numerics (``planner.algebra.partial_aggregates``).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError
from catalog.values.types import BOOL, INT8, SqlType
from planner.algebra.construction import conjunction
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    ColumnRef,
    Filter,
    Literal,
    Project,
    Relation,
    Scalar,
    Snapshot,
)
from planner.algebra.partial_aggregates import Split, StateColumn, split
from planner.incremental.dataflow.building import Building
from planner.incremental.dataflow.float_sums import UNITS
from planner.incremental.dataflow.graph import (
    Retracted,
    change_trace,
    groups_trace,
    leaf,
    names_of,
    references,
    states_trace,
)
from planner.incremental.dataflow.keyable import is_keyable

_EXACT: Final = frozenset(("int2", "int4", "int8", "numeric"))
_ZERO: Final = Literal(0, INT8)
_ONE: Final = Literal(1, INT8)


class _Summed(Struct, frozen=True):
    """A sum of a state: its column, what it adds up of a row (None: nothing but the row), and of which rows."""

    column: Column
    value: Scalar | None
    only: Scalar | None


def is_retractable(call: AggregateCall) -> bool:
    """The guard, of one aggregate."""
    return split_exactly(call) is not None


def retracted(building: Building, node: Aggregate) -> Snapshot:
    """The leaf that stands for a grouping's rows; its input is a node's leaf, its keys are columns."""
    assert isinstance(node.input, Snapshot)
    state = _State(building, node)
    below = building.node(node.input)
    definition = building.expanded(node)
    weight = building.weight(below)
    changed = leaf(change_trace(building.scope, below), (*node.input.columns, weight))
    rows = Project(node.input, (*references(node.input.columns), (weight, _ONE)))
    return building.add(
        Retracted(
            building.next_id(),
            definition.columns,
            definition,
            below,
            state.columns,
            names_of(state.key),
            names_of(column for column in state.key if is_keyable(column.type)),
            state.partial(rows, weight),
            state.partial(changed, weight),
            state.merge(),
            state.final(weight),
            weight,
        ),
        node,
    )


class _State:
    """The state of one grouping's groups, and the relations over it."""

    def __init__(self, building: Building, node: Aggregate) -> None:
        self._building = building
        self._node = node
        self._id = building.next_id()
        self.key = tuple(building.fresh.copy(column) for column, _ in node.keys)
        self._rows = building.fresh.column("rows", INT8, False)
        self._sums: dict[Hashable, _Summed] = {}
        self._results = tuple((column, self._result(call)) for column, call in node.aggregates)
        self.columns = (*self.key, self._rows, *(item.column for item in self._sums.values()))

    def _result(self, call: AggregateCall) -> Scalar:
        """An aggregate's result of a state's columns."""
        found = split_exactly(call)
        assert found is not None
        return found.finalise([self._part(item) for item in found.columns])

    def _part(self, part: StateColumn) -> Scalar:
        fill = part.fill
        if fill.function == "count" and not fill.arguments and fill.filter is None:
            return ColumnRef(self._rows)
        counted = self._summed(fill, None)
        if fill.function == "count":
            return counted
        none = Call("eq", (counted, _ZERO), BOOL)
        return Case(((none, Literal(None, fill.type)),), self._summed(fill, fill.arguments[0]), fill.type)

    def _summed(self, fill: AggregateCall, value: Scalar | None) -> ColumnRef:
        """The column that adds up a value, or counts rows, of those where the aggregate's arguments are not NULL."""
        present = [Call("is_not_null", (_given(item),), BOOL) for item in fill.arguments]
        only = conjunction((*(() if fill.filter is None else (fill.filter,)), *present))
        kind = INT8 if value is None else fill.type
        key = (value is None, kind, value, only)
        if key not in self._sums:
            column = self._building.fresh.column("count" if value is None else "sum", kind, False)
            self._sums[key] = _Summed(column, None if value is None else Cast(value, kind), only)
        return ColumnRef(self._sums[key].column)

    def partial(self, rows: Relation, weight: Column) -> Relation:
        """The states of weighted rows."""
        keys = tuple((column, value) for column, (_, value) in zip(self.key, self._node.keys, strict=True))
        sums = [(self._rows, _total(ColumnRef(weight), INT8))]
        sums += [(item.column, _total(_signed(item, weight), item.column.type)) for item in self._sums.values()]
        return self._sound(Aggregate(rows, keys, tuple(sums)))

    def merge(self) -> Relation:
        """The sums of states, of the groups that have rows; of the only group also where it has none."""
        states = leaf(states_trace(self._building.scope, self._id), self.columns)
        own = tuple((self._building.fresh.copy(column), ColumnRef(column)) for column in self.key)
        sums = tuple(
            (self._building.fresh.copy(column), _total(ColumnRef(column), column.type))
            for column in self.columns[len(self.key) :]
        )
        found: Relation = Aggregate(states, own, sums)
        if self.key:
            found = Filter(found, Call("ne", (ColumnRef(sums[0][0]), _ZERO), BOOL))
        outputs = zip(self.columns, found.columns, strict=True)
        return Project(found, tuple((column, ColumnRef(below)) for column, below in outputs))

    def final(self, weight: Column) -> Relation:
        """The groups of states that have a weight."""
        states = leaf(groups_trace(self._building.scope, self._id), (*self.columns, weight))
        keys = ((column, ColumnRef(own)) for (column, _), own in zip(self._node.keys, self.key, strict=True))
        return Project(states, (*keys, *self._results, (weight, ColumnRef(weight))))

    def _sound(self, grouped: Aggregate) -> Relation:
        """Sums over no row are 0 here, not NULL."""
        if self.key:
            return grouped
        fresh = self._building.fresh
        below = {column: fresh.copy(column) for column in grouped.columns}
        renamed = Aggregate(grouped.input, (), tuple((below[column], call) for column, call in grouped.aggregates))
        zero = {column: Cast(_ZERO, column.type) for column in grouped.columns}
        outputs = (
            (column, Call("coalesce", (ColumnRef(below[column]), zero[column]), column.type))
            for column in grouped.columns
        )
        return Project(renamed, tuple(outputs))


def split_exactly(call: AggregateCall) -> Split | None:
    """The counts and exact sums that an aggregate is made of; None where it is made of others."""
    if call.distinct or call.order_by:
        return None
    try:
        found = split(call, frozenset())
    except SqlError:
        return None
    if not isinstance(found, Split):
        return None
    fills = [item.fill for item in found.columns]
    exact = all(fill.function in ("count", "sum") and fill.type.name in _EXACT for fill in fills)
    plain = all(item.type.row is None for fill in fills for item in fill.arguments)  # whose fields may be NULL
    return found if exact and plain else None


def _given(value: Scalar) -> Scalar:
    """What is NULL where a value is."""
    return value.arguments[0] if isinstance(value, Call) and value.function == UNITS else value


def _total(value: Scalar, kind: SqlType) -> AggregateCall:
    return AggregateCall("sum", (value,), kind)


def _signed(item: _Summed, weight: Column) -> Scalar:
    """What a row adds to a sum: its value, taken away where its weight is negative."""
    kind = item.column.type
    if item.value is None:
        value: Scalar = ColumnRef(weight)
    else:
        goes = Call("lt", (ColumnRef(weight), _ZERO), BOOL)
        value = Case(((goes, Call("neg", (item.value,), kind)),), item.value, kind)
    if item.only is None:
        return value
    return Case(((item.only, value),), Cast(_ZERO, kind), kind)

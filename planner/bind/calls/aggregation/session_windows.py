"""Session windows: groups of rows of which each follows the one before within a gap.

    rows        Aggregate(in_sessions(R), keys and start, aggregates)

In a stream, a late row may join two sessions, and the states of both do not tell the result of the joined one. So a
view keeps a group for each instant, whose aggregates' states merge::

    a stream    finalise(Aggregate(in_sessions(Aggregate(R, keys and time, fills)), keys and start, merges))

If one of the aggregates needs all values (array_agg, percentile_cont), each instant keeps the values of all aggregates,
and these are computed as over a table::

    Aggregate(Unnest(in_sessions(Aggregate(R, keys and time, array_agg of each value))), keys and start, aggregates)
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from msgspec.structs import replace

from catalog.values.errors import SqlError, unsupported
from catalog.values.types import BOOL, INT4, INT8, array
from planner.algebra.construction import keep_columns
from planner.algebra.event_time import SHOWN_SESSION, later, microseconds
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Case,
    Column,
    ColumnRef,
    Filter,
    Literal,
    Project,
    Relation,
    Scalar,
    SortKey,
    Unnest,
    Window,
    WindowCall,
)
from planner.algebra.partial_aggregates import Split, StateColumn, split
from planner.algebra.signature import key_of
from planner.algebra.walk import SCALARS, Node, transform, used_columns
from planner.bind.state.environment import Binding

Keys = Sequence[tuple[Column, Scalar]]
Aggregates = Sequence[tuple[Column, AggregateCall]]


def in_sessions(
    binding: Binding, source: Relation, session: Call, others: tuple[Scalar, ...]
) -> tuple[Relation, Scalar]:
    """The rows with what tells when their session began. A row without a time is in the session NULL.

    Two passes: does a row begin a session, and when did the last one begin that began by then.
    """
    time, gap = session.arguments
    order = (SortKey(time),)
    before = binding.column("before", session.type)
    previous = Window(source, ((before, WindowCall("lag", (time,), session.type, others, order)),))
    goes_on = Call("le", (time, later(ColumnRef(before), microseconds(gap))), BOOL)
    none = Literal(None, session.type)
    began = Case(((goes_on, none),), time, session.type)
    start = binding.column("session", session.type)
    started = Window(previous, ((start, WindowCall("max", (began,), session.type, others, order)),))
    return started, Case(((Call("is_null", (time,), BOOL), none),), ColumnRef(start), session.type)


def sessions_of_stream(
    binding: Binding, source: Relation, keys: Keys, session: Call, aggregates: Aggregates
) -> Relation:
    """The sessions of a stream's rows. Raises 0A000 for arrays that an aggregate would keep."""
    stream = _Stream(binding, keys, session)
    parts = {column: _split(call) for column, call in aggregates}
    splits = {column: part for column, part in parts.items() if part is not None}
    if len(splits) < len(parts):
        return _of_values(stream, source, aggregates)
    return _of_parts(stream, source, splits)


def _split(call: AggregateCall) -> Split | None:
    """The state of an aggregate that no values need be kept for."""
    try:
        part = split(call, frozenset())
    except SqlError:  # that over a stream it is not known how to merge, which no session needs
        return None
    return part if isinstance(part, Split) else None


class _Stream:
    """What both forms share: the grouping by instants, and that of instants by sessions."""

    def __init__(self, binding: Binding, keys: Keys, session: Call) -> None:
        self.binding = binding
        self.keys = keys
        self.place = next(place for place, (_, key) in enumerate(keys) if key == session)
        self.session = session

    def instants(self, source: Relation, aggregates: Aggregates) -> tuple[Relation, list[Scalar], Scalar]:
        """A row for each instant at which rows came: with what its sessions are grouped by, and its time."""
        time, gap = self.session.arguments
        own = tuple((self.like(column), time if key == self.session else key) for column, key in self.keys)
        inner = Aggregate(source, own, tuple(aggregates))
        references: list[Scalar] = [ColumnRef(column) for column, _ in own]
        instant = references.pop(self.place)
        call = Call(self.session.function, (instant, gap), self.session.type)
        rows, start = in_sessions(self.binding, inner, call, tuple(references))
        references.insert(self.place, start)
        return rows, references, instant

    def groups(self, rows: Relation, keys: Keys, aggregates: Aggregates, instant: Scalar) -> Relation:
        """The sessions that the view shows."""
        if not self.binding.keeps_windows:
            return Aggregate(rows, tuple(keys), tuple(aggregates))
        time, gap = self.session.arguments
        last = self.binding.column("last", time.type)
        outer = Aggregate(rows, tuple(keys), (*aggregates, (last, AggregateCall("max", (instant,), time.type))))
        return Filter(outer, Call(SHOWN_SESSION, (ColumnRef(last), gap), BOOL))

    def like(self, column: Column) -> Column:
        """A column like another."""
        return self.binding.column(column.name, column.type, column.nullable)


def _of_parts(stream: _Stream, source: Relation, splits: dict[Column, Split]) -> Relation:
    """The instants' states merged, and finalised."""
    parts = {item.key: item for part in splits.values() for item in part.columns}
    fills = {key: (stream.binding.column(item.name, item.fill.type), item.fill) for key, item in parts.items()}
    rows, references, instant = stream.instants(source, tuple(fills.values()))
    groups = [(stream.like(column), value) for (column, _), value in zip(stream.keys, references, strict=True)]
    merges = {key: _merge(stream.binding, parts[key], column) for key, (column, _) in fills.items()}
    outer = stream.groups(rows, groups, tuple(merges.values()), instant)
    outputs = [(column, ColumnRef(group)) for (column, _), (group, _) in zip(stream.keys, groups, strict=True)]
    results = [(column, _result(part, merges)) for column, part in splits.items()]
    return Project(outer, (*outputs, *results))


def _merge(binding: Binding, item: StateColumn, column: Column) -> tuple[Column, AggregateCall]:
    return binding.column(column.name, column.type), item.merge(column)


def _result(part: Split, merges: dict[Hashable, tuple[Column, AggregateCall]]) -> Scalar:
    return part.finalise([ColumnRef(merges[item.key][0]) for item in part.columns])


def _of_values(stream: _Stream, source: Relation, aggregates: Aggregates) -> Relation:
    """The aggregates over each session's values, in order of time and then of arrival."""
    binding = stream.binding
    found = [value for _, call in aggregates for value in _values(call)] or [Literal(1, INT4)]
    values = {key_of(value): value for value in found}
    for value in values.values():
        if value.type.element is not None:
            position = binding.origin(stream.session)[0]
            raise unsupported("arrays kept over a stream's sessions", "Keep their elements.", position)
    kept = [
        (binding.column("values", array(value.type)), AggregateCall("array_agg", (value,), array(value.type)))
        for value in values.values()
    ]
    rows, references, instant = stream.instants(source, kept)
    items = {key: binding.column("value", value.type) for key, value in values.items()}
    place = binding.column("place", INT8, False)
    pairs = zip(items.values(), kept, strict=True)
    unnested = Unnest(rows, tuple((item, ColumnRef(column)) for item, (column, _) in pairs), place)
    arrival = (SortKey(instant), SortKey(ColumnRef(place)))
    calls = [(column, _over(call, items, arrival)) for column, call in aggregates]
    keys = [(column, value) for (column, _), value in zip(stream.keys, references, strict=True)]
    groups = stream.groups(unnested, keys, calls, instant)
    return keep_columns(groups, tuple(column for column, _ in (*keys, *calls)))


def _values(call: AggregateCall) -> list[Scalar]:
    """What an aggregate reads of a row."""
    filters = () if call.filter is None else (call.filter,)
    items = (*call.arguments, *(key.expression for key in call.order_by), *filters)
    return [item for item in items if used_columns(item)]


def _over(call: AggregateCall, items: dict[Hashable, Column], arrival: tuple[SortKey, ...]) -> AggregateCall:
    """The aggregate over values that were kept."""

    def change(node: Node) -> Node:
        item = items.get(key_of(node)) if isinstance(node, SCALARS) else None
        return node if item is None else ColumnRef(item)

    found: AggregateCall = transform(call, change)
    if not call.function.endswith("_agg"):
        return found
    if not call.distinct:
        return replace(found, order_by=(*found.order_by, *arrival))
    # PostgreSQL finds distinct values by sorting them.
    return found if found.order_by else replace(found, order_by=(SortKey(found.arguments[0]),))

"""Sessions: groups of rows of which each follows the one before within a gap.

    rows        Aggregate(in_sessions(R), keys and start, aggregates)

Over a stream a late row may make one session of two, and then no number of columns per session tells what both are
together with it. What can be maintained is a group for each instant, whose aggregates' states merge::

    a stream    finalise(Aggregate(in_sessions(Aggregate(R, keys and time, fills)), keys and start, merges))
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from catalog.errors import unsupported
from catalog.types import BOOL
from planner.algebra import Aggregate, Project, Relation, SortKey, Window
from planner.bind.context import Binding
from planner.eventtime import later, microseconds
from planner.expression import AggregateCall, Call, Case, Column, ColumnRef, Literal, Scalar, WindowCall
from planner.incremental.aggregates import Split, StateColumn, split

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
    """The sessions of a stream's rows. Raises 0A000 for an aggregate that keeps values."""
    splits = {column: _split(binding, column, call, session) for column, call in aggregates}
    parts = {item.key: item for part in splits.values() for item in part.columns}
    time, gap = session.arguments
    instants = tuple((_like(binding, column), time if key == session else key) for column, key in keys)
    fills = {key: (binding.column(item.name, item.fill.type), item.fill) for key, item in parts.items()}
    inner = Aggregate(source, instants, tuple(fills.values()))
    place = next(place for place, (_, key) in enumerate(keys) if key == session)
    references: list[Scalar] = [ColumnRef(column) for column, _ in instants]
    instant = Call(session.function, (references.pop(place), gap), session.type)
    rows, start = in_sessions(binding, inner, instant, tuple(references))
    references.insert(place, start)
    groups = tuple((_like(binding, column), value) for (column, _), value in zip(keys, references, strict=True))
    merges = {key: _merge(binding, parts[key], column) for key, (column, _) in fills.items()}
    outer = Aggregate(rows, groups, tuple(merges.values()))
    outputs = [(column, ColumnRef(group)) for (column, _), (group, _) in zip(keys, groups, strict=True)]
    results = [(column, _result(part, merges)) for column, part in splits.items()]
    return Project(outer, (*outputs, *results))


def _split(binding: Binding, column: Column, call: AggregateCall, session: Call) -> Split:
    found = split(call, frozenset())
    if isinstance(found, Split):
        return found
    raise unsupported(
        f"{column.name}() of a stream's sessions",
        "Use count, sum, avg, min, max, bool_and, bool_or, stddev or variance there, or group the stream by its time "
        "in a subquery and that into sessions.",
        binding.origin(session)[0],
    )


def _like(binding: Binding, column: Column) -> Column:
    return binding.column(column.name, column.type, column.nullable)


def _merge(binding: Binding, item: StateColumn, column: Column) -> tuple[Column, AggregateCall]:
    call = AggregateCall(item.merge, (ColumnRef(column),), column.type)
    return binding.column(column.name, column.type), call


def _result(part: Split, merges: dict[Hashable, tuple[Column, AggregateCall]]) -> Scalar:
    return part.finalise([ColumnRef(merges[item.key][0]) for item in part.columns])

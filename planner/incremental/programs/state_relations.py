"""Relations over a program's states that maintenance evaluates beside the program's own statements.

Owns: their algebra, so that no engine and no service builds relations. The rows are bound to the leaves' names:

    merged(state)                   Aggregate(RUNS, key, merges)
    with_keys(state)                STANDING semi join TOUCHED on equal keys
    unexpired_sessions(expiry)      RUNS without the rows of sessions that ended long before the watermark
    weighted(columns)               a state of rows with a weight, which alike rows add up
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from catalog.values.types import BOOL, INT8, SqlType
from planner.algebra.event_time import later
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Case,
    Column,
    ColumnRef,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    Snapshot,
    SortKey,
    Window,
    WindowCall,
)
from planner.incremental.names import stored_name
from planner.incremental.programs.program import Expiry, State

#: The traces to which the rows are bound.
RUNS: Final = "__runs"
STANDING: Final = "__standing"
TOUCHED: Final = "__touched"
#: The column that numbers the rows of ``unexpired_sessions``.
PLACE: Final = "place"
_EPOCHS: Final = {"timestamp": datetime(1970, 1, 1), "timestamptz": datetime(1970, 1, 1, tzinfo=UTC)}


def merged(state: State) -> Relation:
    """The rows of ``RUNS`` merged by the state's key; its columns are the state's, in order."""
    runs = Snapshot(RUNS, state.columns, tuple(map(stored_name, state.columns)))
    if state.kind == "distinct":
        return Aggregate(runs, tuple((column, ColumnRef(column)) for column in state.columns), ())
    keys = tuple((column, ColumnRef(column)) for column in state.key)
    grouped = Aggregate(runs, keys, state.merge)
    return Project(grouped, tuple((column, ColumnRef(column)) for column in state.columns))


def with_keys(state: State) -> Join:
    """A state's rows, bound to ``STANDING``, of the groups whose keys are bound to ``TOUCHED``."""
    standing = Snapshot(STANDING, state.columns, tuple(map(stored_name, state.columns)))
    first = 1 + max(column.id for column in state.columns)
    listed = tuple(Column(first + place, column.name, column.type) for place, column in enumerate(state.key))
    touched = Snapshot(TOUCHED, listed, tuple(map(stored_name, state.key)))
    same = [
        Call("is_not_distinct", (ColumnRef(left), ColumnRef(right)), BOOL)
        for left, right in zip(state.key, listed, strict=True)
    ]
    return Join("semi", standing, touched, same[0] if len(same) == 1 else Call("and", tuple(same), BOOL))


def weighted(columns: Iterable[tuple[str, SqlType]]) -> State:
    """A relation with weights, as a state: rows that are alike become one, whose weight is their sum."""
    own = tuple(Column(place, name, kind) for place, (name, kind) in enumerate(columns, 1))
    weight = Column(len(own) + 1, "weight", INT8, False)
    total = AggregateCall("sum", (ColumnRef(weight),), INT8)
    return State("weights", "aggregate", (*own, weight), own, ((weight, total),))


def unexpired_sessions(expiry: Expiry, latest: int) -> Relation:
    """The places of the rows of ``RUNS`` whose sessions stay; ``latest``: the watermark's microseconds since 1970."""
    assert expiry.gap is not None
    free = -1 - max(0, *(abs(column.id) for column in (expiry.column, *expiry.others)))
    place, after, last, ends = (Column(free - n, f"e{n}", INT8 if n == 0 else expiry.column.type) for n in range(4))
    time = ColumnRef(expiry.column)
    columns = (expiry.column, *expiry.others, place)
    rows = Snapshot(RUNS, columns, (*expiry_columns(expiry), PLACE))
    others = tuple(map(ColumnRef, expiry.others))
    following = WindowCall("lead", (time,), time.type, others, (SortKey(time),))
    goes_on = Call("le", (ColumnRef(after), later(time, expiry.gap)), BOOL)
    none = Literal(None, time.type)
    ended = Project(
        Window(rows, ((after, following),)),
        (*((column, ColumnRef(column)) for column in columns), (last, Case(((goes_on, none),), time, time.type))),
    )
    backwards = (SortKey(time, descending=True),)
    first = WindowCall("min", (ColumnRef(last),), time.type, others, backwards)
    mark = Literal(_EPOCHS[time.type.name] + timedelta(microseconds=latest), time.type)
    stays = Call("gt", (later(ColumnRef(ends), expiry.age), mark), BOOL)
    return Project(Filter(Window(ended, ((ends, first),)), stays), ((place, ColumnRef(place)),))


def expiry_columns(expiry: Expiry) -> list[str]:
    """The stored names of the columns that decide when a state's rows expire."""
    return [stored_name(column) for column in (expiry.column, *expiry.others)]

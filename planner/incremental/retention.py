"""Groups that a view shows only for a time: retention and emit = 'final' as algebra.

Above each grouping of a stream stands a filter on the end of the group's window, beside the latest event time, which is
a grouping of the same stream without keys and so a state like any other::

    A             ->      Filter(A x latest, start + size + delay + retention > latest    (retention)
                                             start + size + delay             <= latest)  (final)

    latest        =       Aggregate(stream, (), max(time)),   the watermark = latest - delay

    rows          ->      Filter(rows x latest, time + delay + retention > latest)             rows that are collected

The view is this query, so all that holds of continuous views holds of it. The latest time only grows: a group that the
first condition has hidden stays hidden, and its rows in the states are ``Expiry``'s to take away.

A session ends a gap after its last row, and so do the instants of which the binder makes it; the condition stands where
it has put a call of SHOWN_SESSION, above the grouping by sessions. A late row may join a session to one that is gone.
So that none does, the instants are of rows in time (``lateness``): with a retention a row counts that lies above

    latest of the transactions before - delay - retention

and no session that is gone reaches up to there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field

from catalog.values.errors import SqlError, unsupported
from catalog.values.types import BOOL
from planner.algebra.construction import Fresh, conjuncts, filtered, keep_columns
from planner.algebra.event_time import SHOWN_SESSION, Keeping, Watermark, later, microseconds
from planner.algebra.nodes import (
    Aggregate,
    Call,
    Column,
    ColumnRef,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    Scalar,
    Scan,
    Snapshot,
)
from planner.algebra.walk import transform, walk
from planner.incremental.lateness import Horizon, latest_time
from planner.incremental.methods.split.groupings import Grouping, Groupings
from planner.incremental.programs.program import Expiry
from planner.incremental.properties import Kinds, is_grouping

#: Units of date_trunc that are always as long, in microseconds.
_UNITS: Final = {"second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6, "day": 86400 * 10**6}
_UNITS["week"] = 7 * _UNITS["day"]


class Windows(Struct):
    """The windows found: by the group key that says when one starts, the stream, and how long its groups are kept."""

    latest: dict[int, Aggregate] = field(default_factory=dict)  # by the stream's oid
    kept: dict[Column, tuple[int, int]] = field(default_factory=dict)
    instants: dict[Column, int] = field(default_factory=dict)  # of sessions: the longest gap
    streams: dict[Column, int] = field(default_factory=dict)  # theirs
    horizons: dict[Column, Horizon] = field(default_factory=dict)
    rows: dict[str, tuple[int, Column, int]] = field(default_factory=dict)  # of collected rows: stream, time, age

    def expiries(self, groupings: Groupings) -> tuple[Expiry, ...]:
        """What of the planned groupings' states, and of collected rows, no result needs any more."""
        found: list[Expiry] = []
        for state, (stream, time, age) in self.rows.items():
            (mark,) = groupings.plan(self.latest[stream]).sources
            found.append(Expiry(state, time, mark.trace, mark.columns[0], age))
        for grouping in groupings.planned:
            for place, (column, _) in enumerate(grouping.aggregate.keys):
                if column in self.kept:
                    found += self._expiries(groupings, grouping, place, column)
        return tuple(found)

    def _expiries(self, groupings: Groupings, grouping: Grouping, place: int, column: Column) -> Iterator[Expiry]:
        """Those of one grouping, whose window begins at a column, the key at a place."""
        stream, age = self.kept[column]
        (mark,) = groupings.plan(self.latest[stream]).sources
        gap = self.instants.get(column)
        for item in (*grouping.sources, *(source for child in grouping.children for source in child.sources)):
            if item.computed is None:
                keys = item.columns[: len(grouping.aggregate.keys)]
                others = () if gap is None else (*keys[:place], *keys[place + 1 :])
                yield Expiry(item.trace, keys[place], mark.trace, mark.columns[0], age, gap, others)


def keep_windows(
    relation: Relation, keeping: Keeping | None, fresh: Fresh, timed: Mapping[str, tuple[Scan, Column]]
) -> tuple[Relation, Windows]:
    """The plan whose groupings of streams show what the view keeps; ``timed`` are the states of collected rows, with
    their streams and columns of time. Raises 0A000 where a group has no window."""
    if keeping is None:
        return relation, Windows()
    kinds = Kinds()
    keeper = _Keeper(relation, keeping, fresh)

    def change(node: Any) -> Any:
        if isinstance(node, Snapshot):
            return keeper.rows(node, *timed[node.trace])
        if isinstance(node, Filter):
            return keeper.sessions(node)
        return keeper.kept(node) if is_grouping(node, kinds) else node

    kept: Relation = transform(relation, change)
    return kept, keeper.windows


def require_windows(relation: Relation, keeping: Keeping | None) -> None:
    """Raises 0A000 where a group of a stream has no window, or rows that are collected are to be final. To be asked
    before equal groupings are made one."""
    if keeping is not None:
        if any(isinstance(node, Snapshot) for node in walk(relation)) and (keeping.final or _instants(relation)):
            construct = "emit = 'final', or sessions with retention, over rows that are not grouped first"
            raise unsupported(construct, "Group each stream by a window before it meets anything else.")
        kinds = Kinds()
        instants = _instants(relation)
        for node in walk(relation):
            if is_grouping(node, kinds):
                assert isinstance(node, Aggregate)
                stream = _stream(node)
                _window(node, stream, keeping.watermarks[stream.oid], instants)


class _Keeper:
    """Puts the conditions into one plan, inputs first."""

    def __init__(self, relation: Relation, keeping: Keeping, fresh: Fresh) -> None:
        self.windows = Windows(instants=_instants(relation))
        self._keeping = keeping
        self._fresh = fresh
        self._computed = _computed(relation)

    def kept(self, node: Aggregate) -> Relation:
        """A grouping of a stream, of which the groups are left that are shown, or rows in time for sessions."""
        stream = _stream(node)
        watermark = self._keeping.watermarks[stream.oid]
        start, size = _window(node, stream, watermark, self.windows.instants)
        latest = self.windows.latest.setdefault(stream.oid, latest_time(stream, watermark, self._fresh))
        if self._keeping.retention is not None:
            age = watermark.delay + self._keeping.retention
            self.windows.kept[start] = stream.oid, size + age
            if start in self.windows.instants:
                self.windows.horizons[start] = Horizon(watermark.column, age, latest)
        if start in self.windows.instants:
            self.windows.streams[start] = stream.oid
            return node
        return self._shown(node, [(start, size)], stream.oid)

    def rows(self, node: Snapshot, stream: Scan, time: Column) -> Relation:
        """Collected rows that are not too old; ``time`` is the state's column, which is the last that is read."""
        assert self._keeping.retention is not None
        watermark = self._keeping.watermarks[stream.oid]
        self.windows.latest.setdefault(stream.oid, latest_time(stream, watermark, self._fresh))
        self.windows.rows[node.trace] = stream.oid, time, watermark.delay + self._keeping.retention
        return self._shown(node, [(node.columns[-1], 0)], stream.oid)

    def sessions(self, node: Filter) -> Relation:
        """A filter that says which sessions are shown, if it is one."""
        parts = list(conjuncts(node.predicate))
        found = [part for part in parts if _is_of_sessions(part)]
        if not found:
            return node
        ends = [(last, microseconds(gap)) for last, gap in map(_session, found)]
        stream = self.windows.streams[_instant(ends[0][0], self._computed)]
        below = filtered(node.input, (part for part in parts if part not in found))
        return self._shown(below, ends, stream)

    def _shown(self, below: Relation, ends: list[tuple[Column, int]], stream: int) -> Relation:
        """The rows of which what ends so long after a column is shown."""
        latest = self.windows.latest[stream]
        delay = self._keeping.watermarks[stream].delay
        mark = self._fresh.copy(latest.columns[0])
        beside = Join("inner", below, Project(latest, ((mark, ColumnRef(latest.columns[0])),)), None)
        parts = []
        for column, size in ends:
            if self._keeping.retention is not None:
                parts.append(_compared("gt", column, size + delay + self._keeping.retention, mark))
            if self._keeping.final:
                parts.append(_compared("le", column, size + delay, mark))
        return keep_columns(filtered(beside, parts), below.columns)


def _stream(node: Aggregate) -> Scan:
    streams = [item for item in walk(node.input) if isinstance(item, Scan) and item.kind == "stream"]
    if len(streams) != 1:
        raise unsupported(
            "retention or emit = 'final' of a UNION ALL below a grouping",
            "Create a view for each stream, and a query that reads both.",
        )
    return streams[0]


def _compared(function: str, start: Column, age: int, mark: Column) -> Scalar:
    return Call(function, (later(ColumnRef(start), age), ColumnRef(mark)), BOOL)


# -- sessions ----------------------------------------------------------------------------------------------------------


def _is_of_sessions(scalar: Scalar) -> bool:
    return isinstance(scalar, Call) and scalar.function == SHOWN_SESSION


def _session(scalar: Scalar) -> tuple[Column, Scalar]:
    """The column with the time of a session's last row, and the gap."""
    assert isinstance(scalar, Call)
    last, gap = scalar.arguments
    assert isinstance(last, ColumnRef)
    return last.column, gap


def _instants(relation: Relation) -> dict[Column, int]:
    """The columns with the times of which sessions are made, with the longest gap."""
    computed = _computed(relation)
    found: dict[Column, int] = {}
    for item in walk(relation):
        if isinstance(item, Call) and _is_of_sessions(item):
            last, gap = _session(item)
            column = _instant(last, computed)
            found[column] = max(found.get(column, 0), microseconds(gap))
    return found


def _computed(relation: Relation) -> dict[Column, Scalar]:
    """What columns stand for, those of groups' latest times included."""
    found: dict[Column, Scalar] = {}
    for item in walk(relation):
        if isinstance(item, Project):
            found.update(item.outputs)
        if isinstance(item, Aggregate):
            found.update((column, call.arguments[0]) for column, call in item.aggregates if call.function == "max")
    return found


def _instant(last: Column, computed: dict[Column, Scalar]) -> Column:
    """The time of rows of which a column is the latest in each session."""
    found = _resolved(ColumnRef(last), computed)
    assert isinstance(found, ColumnRef)
    return found.column


# -- which key is the window's start -----------------------------------------------------------------------------------


def _window(node: Aggregate, stream: Scan, watermark: Watermark, instants: Mapping[Column, int]) -> tuple[Column, int]:
    """The group key that is a window's start, and the window's size; of several the shortest, which ends first.

    Where sessions are made of the groups, it is their time, and the size is the gap."""
    times = [item for item, source in zip(stream.columns, stream.sources, strict=True) if source == watermark.column]
    computed = {
        column: value for item in walk(node.input) if isinstance(item, Project) for column, value in item.outputs
    }
    for column, value in node.keys:
        time = _resolved(value, computed)
        if column in instants and isinstance(time, ColumnRef) and time.column in times:
            return column, instants[column]
    found = [
        (size, column)
        for column, value in node.keys
        if (size := _size(_resolved(value, computed), times, computed)) is not None
    ]
    if not found:
        raise _without_window(stream, watermark)
    size, column = min(found, key=lambda item: item[0])
    return column, size


def _resolved(scalar: Scalar, computed: dict[Column, Scalar]) -> Scalar:
    while isinstance(scalar, ColumnRef) and scalar.column in computed:
        scalar = computed[scalar.column]
    return scalar


def _size(key: Scalar, times: list[Column], computed: dict[Column, Scalar]) -> int | None:
    """The size of the windows of event time whose start an expression is; None where it is something else."""
    match key:
        case Call(function="date_bin", arguments=(Literal(value=(0, _, _)) as length, time, _)):
            size = microseconds(length)
        case Call(function="hop_start", arguments=(_, length, time, _, _)):
            size = microseconds(length)
        case Call(function="date_trunc", arguments=(Literal(value=str(unit)), time)) if (
            time.type.name == "timestamp" and unit.lower() in _UNITS
        ):
            size = _UNITS[unit.lower()]
        case _:
            return None
    found = _resolved(time, computed)
    return size if isinstance(found, ColumnRef) and found.column in times else None


def _without_window(stream: Scan, watermark: Watermark) -> SqlError:
    return unsupported(
        f'retention or emit = \'final\' of groups without a window over "{watermark.column}" of "{stream.name}"',
        f"Group by tumble({watermark.column}, size), hop({watermark.column}, slide, size) or "
        f"session({watermark.column}, gap), or by date_bin of it, or date_trunc of one without time zone.",
    )

"""Groups that a view shows only for a time: retention and emit = 'final' as algebra.

Above each grouping of a stream stands a filter on the end of the group's window, beside the latest event time, which is
a grouping of the same stream without keys and so a state like any other::

    A             ->      Filter(A x latest, start + size + delay + retention > latest    (retention)
                                             start + size + delay             <= latest)  (final)

    latest        =       Aggregate(stream, (), max(time)),   the watermark = latest - delay

The view is this query, so all that holds of continuous views holds of it. The latest time only grows: a group that the
first condition has hidden stays hidden, and its rows in the states are ``Expiry``'s to take away.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from catalog.errors import SqlError, unsupported
from catalog.types import BOOL
from planner.algebra import Aggregate, Join, Project, Relation, Scan
from planner.eventtime import Keeping, Watermark, later, microseconds
from planner.expression import AggregateCall, Call, Column, ColumnRef, Literal, Scalar
from planner.incremental.groupings import Groupings
from planner.pipelines import Kinds, is_grouping
from planner.program import Expiry
from planner.rules.support import Fresh, filtered, keep_columns
from planner.walk import transform, walk

#: Units of date_trunc that are always as long, in microseconds.
_UNITS: Final = {"second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6, "day": 86400 * 10**6}
_UNITS["week"] = 7 * _UNITS["day"]


@dataclass(slots=True)
class Windows:
    """The windows found: by the group key that says when one starts, the stream, and how long its groups are kept."""

    latest: dict[int, Aggregate] = field(default_factory=dict)  # by the stream's oid
    kept: dict[Column, tuple[int, int]] = field(default_factory=dict)

    def expiries(self, groupings: Groupings) -> tuple[Expiry, ...]:
        """What of the planned groupings' states no result needs any more."""
        found: list[Expiry] = []
        for grouping in groupings.planned:
            for place, (column, _) in enumerate(grouping.aggregate.keys):
                if column in self.kept:
                    stream, age = self.kept[column]
                    (mark,) = groupings.plan(self.latest[stream]).sources
                    sources = [*grouping.sources, *(source for child in grouping.children for source in child.sources)]
                    found += [
                        Expiry(item.trace, item.columns[place], mark.trace, mark.columns[0], age)
                        for item in sources
                        if item.computed is None
                    ]
        return tuple(found)


def keep_windows(relation: Relation, keeping: Keeping | None, fresh: Fresh) -> tuple[Relation, Windows]:
    """The plan whose groupings of streams show what the view keeps. Raises 0A000 where a group has no window."""
    windows = Windows()
    if keeping is None:
        return relation, windows
    kinds = Kinds()

    def change(node: Any) -> Any:
        return _kept(node, keeping, windows, fresh) if is_grouping(node, kinds) else node

    kept: Relation = transform(relation, change)
    return kept, windows


def _kept(node: Aggregate, keeping: Keeping, windows: Windows, fresh: Fresh) -> Relation:
    streams = [item for item in walk(node.input) if isinstance(item, Scan) and item.kind == "stream"]
    if len(streams) != 1:
        raise unsupported(
            "retention or emit = 'final' of a UNION ALL below a grouping",
            "Make a view of each stream, and a query that reads them.",
        )
    (stream,) = streams
    watermark = keeping.watermarks[stream.oid]
    start, size = _window(node, stream, watermark)
    if stream.oid not in windows.latest:
        windows.latest[stream.oid] = _latest(stream, watermark, fresh)
    latest = windows.latest[stream.oid]
    mark = fresh.copy(latest.columns[0])
    beside = Join("inner", node, Project(latest, ((mark, ColumnRef(latest.columns[0])),)), None)
    closed = size + watermark.delay
    parts = []
    if keeping.retention is not None:
        windows.kept[start] = stream.oid, closed + keeping.retention
        parts.append(_compared("gt", start, closed + keeping.retention, mark))
    if keeping.final:
        parts.append(_compared("le", start, closed, mark))
    return keep_columns(filtered(beside, parts), node.columns)


def _compared(function: str, start: Column, age: int, mark: Column) -> Scalar:
    return Call(function, (later(ColumnRef(start), age), ColumnRef(mark)), BOOL)


def _latest(stream: Scan, watermark: Watermark, fresh: Fresh) -> Aggregate:
    """The latest event time of all rows, whatever the view's own pipeline leaves of them."""
    column = next(
        item for item, source in zip(stream.columns, stream.sources, strict=True) if source == watermark.column
    )
    time = fresh.copy(column)
    scan = Scan(stream.oid, stream.name, "stream", (time,), (watermark.column,))
    latest = fresh.column(f"latest_{watermark.column}", time.type)
    return Aggregate(scan, (), ((latest, AggregateCall("max", (ColumnRef(time),), time.type)),))


# -- which key is the window's start -----------------------------------------------------------------------------------


def _window(node: Aggregate, stream: Scan, watermark: Watermark) -> tuple[Column, int]:
    """The group key that is a window's start, and the window's size; of several the shortest, which ends first."""
    times = [item for item, source in zip(stream.columns, stream.sources, strict=True) if source == watermark.column]
    computed = {
        column: value for item in walk(node.input) if isinstance(item, Project) for column, value in item.outputs
    }
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
        f"Group by tumble({watermark.column}, size) or hop({watermark.column}, slide, size), "
        f"or by date_bin or date_trunc of {watermark.column}.",
    )

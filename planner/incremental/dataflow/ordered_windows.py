"""Window functions over an order, whose values follow a change as far as it reaches.

With R the rows, W(R) the same rows beside the values of the functions, and d the changed rows, whose places in the
order of their partitions are known::

    d(W) = W(R') where touched  -  W(R) where touched

    touched   rows at the places of d, up to f places before one of them, and up to p places behind
              (lag by p, lead by f, ROWS BETWEEN p PRECEDING AND f FOLLOWING)
              with a running function all rows behind, and those that tie with one of d, as far as its span
              with RANGE BETWEEN p PRECEDING AND f FOLLOWING those at most f before one of d, and p behind
    W(R')     computed over the touched rows and the p before and f behind these, with what a running function has at
              the row in front of them, v0:

    row_number, count, dense_rank   v0 + v                  sum                     v0 + v, where either is not NULL
    rank                            rows in front + v       min, max, bool_and, ..  the same of v0 and v
    first_value                     v0                      last_value              v

A span of a running function is the rows from a changed place on to the next one up to which as many rows came as went,
or to the end of the partition. Where W(R') has at its last row what W(R) has there, nothing behind it changes, since
the values behind are functions of these and of rows that are as they were. Else the span goes on to the partition's
end. So an UPDATE beside the order changes a row alone, and one that moves a row changes those between its places.

Averages and variances are made of sums and counts (``planner.algebra.partial_aggregates``). A running sum is never
taken back, so that one of doubles has no other error than its additions. A function up to the last row is a running one
in the reverse order, in which rows that tie are in the reverse order, too. The equations are Millstream's own; that of
the first line is domain extraction (DBToaster, section 3.2.2) with places for keys. The executor finds places by the
values of the order, so that a change at the end costs as much as the change, and one at the front what it changes. Rows
that tie where their order counts are in the order of a hash of their values. A distance of RANGE is added to values in
the order; that of an interval is at least as long as the interval may be, since more rows than the frame has are found.

Guard: constant distances of at most ``MOST`` rows; a running function begins at the first row of its partition, or ends
at the last one, and its sums are exact, or of doubles. Constant distances of RANGE, in an order of integers, dates or
timestamps, for aggregates that do not depend on the order of their rows. Rows are found by all of PARTITION BY
(``keyable``), and ORDER BY has values of types that the executor compares (``_ORDERED``). Frames of GROUPS, of RANGE up
to a distance from an end of the partition or with EXCLUDE, ntile and shares of rows are not covered. Aggregates of
whole partitions are ``partition_totals``. All
functions of a SELECT are covered, or none is; those of several orders become windows over windows. Functions in an
order and in the reverse of it are not covered where both number rows: equal rows, which no hash tells apart, are to
have one order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.types import BOOL, INT8
from planner.algebra.construction import has_subquery
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
    Snapshot,
    SortKey,
    Window,
    WindowCall,
)
from planner.algebra.partial_aggregates import Child, Split, split
from planner.algebra.signature import key_of
from planner.algebra.walk import used_columns
from planner.incremental.dataflow.building import Building, with_columns, with_keys
from planner.incremental.dataflow.graph import OrderedWindow, OrderKey, candidates_trace, leaf, names_of, references
from planner.incremental.dataflow.keyable import is_keyable
from planner.incremental.dataflow.partition_totals import is_total, with_totals
from planner.incremental.dataflow.retraction import split_exactly
from planner.incremental.names import stored_name

#: The most places that a change reaches in either direction.
MOST: Final = 10_000
#: The most orders of one SELECT: each has a window, and its rows, of its own, and so has its reverse.
_MOST_ORDERS: Final = 4
_ORDERED: Final = frozenset(
    ("int2", "int4", "int8", "oid", "bool", "date", "timestamp", "timestamptz", "time", "numeric", "float4", "float8")
) | {"text", "varchar", "bpchar"}
_FLOATS: Final = ("float4", "float8")
_RANKS: Final = ("row_number", "rank", "dense_rank")
#: Running functions that are merged by another one of two values.
_MERGED: Final = {"min": "least", "max": "greatest", "bool_and": "and", "bool_or": "or"}
_OF_ONE_ROW: Final = ("first_value", "last_value", "nth_value")
_OFFSETS: Final = ("preceding", "following")
_BOUNDED: Final = ("preceding", "current_row", "following")
#: Microseconds of a day, and the most days of a month.
_DAY: Final = 86_400_000_000
_MONTH: Final = 31
#: By type of the order, how many units of its distances a microsecond of an interval is.
_UNITS: Final = {"date": _DAY, "timestamp": 1, "timestamptz": 1}
_INTEGERS: Final = ("int2", "int4", "int8")
_LAST: Final = "unbounded_following"
_ZERO: Final = Literal(0, INT8)

#: Makes a node of a region.
Closed = Callable[[Relation], Snapshot]
#: Makes a region of a grouping of one.
Grouped = Callable[[Aggregate], Relation]
Calls = tuple[tuple[Column, WindowCall], ...]


class _Reach(Struct, frozen=True):
    """How many rows in front of its own a value depends on, None for all, and how many behind it."""

    preceding: int | None
    following: int


# -- the guard ---------------------------------------------------------------------------------------------------------


def is_covered(node: Window) -> bool:
    """The guard."""
    ways = _ways(_ordered_calls(node))
    is_of_few = len(set(map(_signature, ways))) <= _MOST_ORDERS
    return is_of_few and all(_is_covered(way.calls) for way in ways) and not _are_numbered_twice(ways)


def _ordered_calls(node: Window) -> Calls:
    return tuple(item for item in node.calls if not is_total(item[1]))


class _Way(Struct, frozen=True):
    """Calls over one order, which ``is_reverse`` to the one that was asked for. Those of RANGE with a distance have a
    way of their own."""

    calls: Calls
    is_reverse: bool


def _ways(calls: Calls) -> list[_Way]:
    """Calls of equal partitions and orders together."""
    found: dict[Hashable, _Way] = {}
    for column, asked in calls:
        call, is_reverse = _running(asked)
        order = tuple(map(key_of, call.partition)), tuple(map(key_of, call.order_by))
        key = (*order, is_reverse, _distance(call) is not None)
        others = found[key].calls if key in found else ()
        found[key] = _Way((*others, (column, call)), is_reverse)
    return list(found.values())


def _running(call: WindowCall) -> tuple[WindowCall, bool]:
    """A call whose frame goes to the last row as a running one, and whether that is in the reverse order."""
    if call.exclude != "no_others":
        return call, False
    frame = call.start, call.end
    match call.function:
        case "first_value" if call.start == "unbounded_preceding" and call.end in ("current_row", _LAST):
            return replace(call, mode="rows", end="current_row"), False
        case "last_value" if call.start in ("unbounded_preceding", "current_row") and call.end == _LAST:
            return replace(_reversed(call), function="first_value", mode="rows"), True
        case "first_value" | "last_value" | "nth_value" | "lag" | "lead":
            return call, False
        case _ if frame == ("current_row", _LAST) and call.mode in ("rows", "range"):
            return _reversed(call), True
        case _:
            return call, False


def _reversed(call: WindowCall) -> WindowCall:
    order = (replace(key, descending=not key.descending, nulls_first=not key.nulls_first) for key in call.order_by)
    return replace(call, order_by=tuple(order), start="unbounded_preceding", end="current_row")


def _are_numbered_twice(ways: list[_Way]) -> bool:
    """Whether functions number rows that tie in an order and in the reverse of it, in which equal rows may be in the
    same order."""
    numbered = [way for way in ways if any(map(_is_pairing, way.calls))]
    orders = [{_signature(way) for way in numbered if way.is_reverse == is_reverse} for is_reverse in (False, True)]
    return not orders[0].isdisjoint(orders[1])


def _is_pairing(item: tuple[Column, WindowCall]) -> bool:
    """Whether a value differs between equal rows."""
    return _numbers(item[1]) and item[1].function not in ("first_value", "last_value")


def _signature(way: _Way) -> Hashable:
    """What calls partition by, and the order that was asked for."""
    _, call = way.calls[0]
    asked = _reversed(call) if way.is_reverse else call
    return tuple(map(key_of, asked.partition)), tuple(map(key_of, asked.order_by))


def _is_covered(calls: Calls) -> bool:
    _, first = calls[0]
    parted = all(is_keyable(item.type) for item in _partition(first))
    ordered = all(key.expression.type.name in _ORDERED and is_keyable(key.expression.type) for key in _order(first))
    plain = not any(has_subquery(call) for _, call in calls)
    return parted and ordered and plain and all(_reach(call) is not None for _, call in calls)


def _partition(call: WindowCall) -> list[Scalar]:
    return [item for item in call.partition if used_columns(item)]


def _order(call: WindowCall) -> list[SortKey]:
    return [key for key in call.order_by if used_columns(key.expression)]


def _reach(call: WindowCall) -> _Reach | None:
    """None for a call that is not covered."""
    match call.function:
        case "row_number":
            return _Reach(None, 0)
        case "rank" | "dense_rank":
            return _Reach(None, 0) if _order(call) else None
        case "lag" | "lead":
            return _moved(call)
        case "ntile" | "percent_rank" | "cume_dist":
            return None
        case _ if call.exclude != "no_others":
            return None
        case _ if call.mode == "rows" and call.start != "unbounded_preceding":
            return _framed(call)
        case _ if _distance(call) is not None:
            return _Reach(0, 0)
        case _:
            return _Reach(None, 0) if _is_running(call) else None


def _moved(call: WindowCall) -> _Reach | None:
    number = _number(call.arguments[1]) if len(call.arguments) > 1 else 1
    if number is None or abs(number) > MOST:
        return None
    number = number if call.function == "lag" else -number
    return _Reach(max(number, 0), max(-number, 0))


def _framed(call: WindowCall) -> _Reach | None:
    """Of ROWS BETWEEN constants."""
    numbers = iter(call.offsets)
    places = [_place(bound, numbers) for bound in (call.start, call.end)]
    if any(place is None or abs(place) > MOST for place in places):
        return None
    first, last = (place for place in places if place is not None)
    return _Reach(max(-first, 0), max(last, 0))


class _Distance(Struct, frozen=True):
    """How far behind a value of the order the rows are whose frames have it, and how far before it."""

    behind: int
    before: int


def _distance(call: WindowCall) -> _Distance | None:
    """That of RANGE BETWEEN constants; None for another call, and for one that is not covered."""
    bounds = call.start, call.end
    if call.mode != "range" or call.exclude != "no_others" or not set(bounds) <= set(_BOUNDED):
        return None
    if len(call.order_by) != 1 or call.order_by != tuple(_order(call)):
        return None
    if call.function not in _MERGED and _split(call) is None:
        return None
    kind, offsets = call.order_by[0].expression.type.name, iter(call.offsets)
    found = [_units(kind, next(offsets)) if bound in _OFFSETS else 0 for bound in bounds]
    first, last = (
        None if units is None else -units if bound == "preceding" else units
        for bound, units in zip(bounds, found, strict=True)
    )
    return None if first is None or last is None else _Distance(max(-first, 0), max(last, 0))


def _units(kind: str, offset: Scalar) -> int | None:
    """A distance in units of an order, or a longer one: days of dates, microseconds of times."""
    match offset:
        case Literal(value=int(number)) if kind in _INTEGERS:
            return number
        case Literal(value=(int(months), int(days), int(microseconds))) if kind in _UNITS:
            whole = abs(months) * _MONTH + abs(days)
            spare = 1 if whole else 0  # a day may be longer where clocks change
            return ((whole + spare) * _DAY + abs(microseconds)) // _UNITS[kind] + (kind == "date")
        case _:
            return None


def _place(bound: str, numbers: Iterator[Scalar]) -> int | None:
    """Where a frame ends, from its row on."""
    if bound == "current_row":
        return 0
    if bound not in _OFFSETS:
        return None
    number = _number(next(numbers))
    return None if number is None else -number if bound == "preceding" else number


def _number(value: Scalar) -> int | None:
    """A constant's value."""
    return value.value if isinstance(value, Literal) and type(value.value) is int else None


def _is_running(call: WindowCall) -> bool:
    """Whether a function's frame is all rows up to its own, and its value follows from the one in front."""
    begins = call.mode in ("rows", "range") and (call.start, call.end) == ("unbounded_preceding", "current_row")
    if not begins or (call.mode == "range" and not _order(call)):
        return False
    if call.function in ("first_value", "last_value"):
        return True
    if call.function in _MERGED:
        return is_keyable(call.type) and call.type.name not in _FLOATS
    return call.function not in _OF_ONE_ROW and _split(call) is not None


def _is_sum(call: WindowCall) -> bool:
    """Whether a value is made of running counts and sums."""
    if call.function in (*_RANKS, *_MERGED, *_OF_ONE_ROW, "lag", "lead"):
        return False
    return call.start == "unbounded_preceding"


def _has_peers(call: WindowCall) -> bool:
    """Whether rows that tie have one value, of all of them."""
    if call.function in _RANKS:
        return call.function != "row_number"
    return call.mode == "range" and call.start == "unbounded_preceding" and not _numbers(call)


def _split(call: WindowCall) -> Split | None:
    """The counts and sums that a running function is made of."""
    doubles = call.function in ("sum", "avg") and call.arguments[0].type.name == "float8"
    found = split(_aggregate(call), frozenset()) if doubles else split_exactly(_aggregate(call))
    assert not isinstance(found, Child)
    return found


def _aggregate(call: WindowCall) -> AggregateCall:
    return AggregateCall(call.function, call.arguments, call.type, filter=call.filter)


def _numbers(call: WindowCall) -> bool:
    """Whether a value depends on the order of rows that tie."""
    if call.function in ("rank", "dense_rank"):
        return False
    return call.mode == "rows" or call.function in ("row_number", "lag", "lead", "first_value")


# -- the nodes ---------------------------------------------------------------------------------------------------------


def windowed(building: Building, node: Window, grouped: Grouped, closed: Closed) -> Relation:
    """What stands for window functions that are covered."""
    totals = tuple(item for item in node.calls if is_total(item[1]))
    base = found = closed(node.input) if totals else node.input
    for way in _ways(_ordered_calls(node)):
        found = _of_one_order(building, Window(found, way.calls), closed, base.columns, way.is_reverse)
    if totals:
        found = with_totals(building, base, found, totals, grouped, closed)
    return with_columns(found, node.columns)


def _of_one_order(
    building: Building, node: Window, closed: Closed, base: tuple[Column, ...], is_reverse: bool
) -> Relation:
    """Functions over one order, in which rows that tie are ordered by the columns of the ``base`` alone."""
    _, first = node.calls[0]
    parts, order = _partition(first), _order(first)
    added = _added_up(node.calls)
    below, keys = with_keys(building, node.input, [*parts, *(key.expression for key in order), *added])
    rows = closed(below)
    own = _Own(building, node.calls)
    window = Window(rows, own.calls)
    values = _Values(building, rows, own)
    reaches = [reach for _, call in own.calls if (reach := _reach(call)) is not None]
    distances = [distance for _, call in own.calls if (distance := _distance(call)) is not None]
    made = OrderedWindow(
        id=building.next_id(),
        columns=window.columns,
        definition=building.expanded(window),
        node=building.node(rows),
        fill=rows,
        given=rows.columns,
        partition=names_of(dict.fromkeys(keys[: len(parts)])),
        order=tuple(
            OrderKey(stored_name(column), key.descending, key.nulls_first)
            for column, key in zip(keys[len(parts) :], order, strict=False)
        ),
        preceding=max(reach.preceding or 0 for reach in reaches),
        following=max(reach.following for reach in reaches),
        distance=_farthest(distances),
        position=None if own.position is None else stored_name(own.position),
        has_peers=any(_has_peers(call) for _, call in own.calls),
        ties=(names_of(base) or names_of(rows.columns)) if own.has_ties else (),
        is_reverse=is_reverse,
        tie=values.tie,
        touched=values.touched,
        span=values.span,
        front=values.front,
        state=names_of(column for column, call in own.calls if column in values.carried and _is_state(call)),
        added_up=names_of(dict.fromkeys(keys[len(parts) + len(order) :])),
        carried=tuple(zip(names_of(values.carried), values.carried.values(), strict=True)),
        computed=values.computed,
    )
    outputs = [(column, own.results.get(column, ColumnRef(column))) for column in node.columns]
    return Project(building.add(made, window), tuple(outputs))


def _farthest(distances: Sequence[_Distance]) -> tuple[int, int] | None:
    """How far before a changed value rows are touched, and how far behind it; None without distances."""
    return (max(item.before for item in distances), max(item.behind for item in distances)) if distances else None


class _Own:
    """The calls whose values a node has: those of a window, and of what their values are made."""

    def __init__(self, building: Building, calls: Calls) -> None:
        self._fresh = building.fresh
        self._calls: dict[Hashable, tuple[Column, WindowCall]] = {}
        #: What values of the window are made of, where that is another call's.
        self.results = {column: self._result(column, call) for column, call in calls}
        self.has_ties = any(_numbers(call) for _, call in calls)
        #: The number of rows up to a row, with those that tie unless they have an order.
        self.position = self._position(calls[0][1]) if any(map(_is_unbounded, self.calls)) else None

    @property
    def calls(self) -> Calls:
        """The calls by their columns."""
        return tuple(self._calls.values())

    def _result(self, column: Column, call: WindowCall) -> Scalar:
        if not _is_sum(call):
            return self._own(call, column)
        found = _split(call)
        assert found is not None
        fills = [item.fill for item in found.columns]
        parts = (replace(call, function=fill.function, arguments=fill.arguments, type=fill.type) for fill in fills)
        names = (item.name for item in found.columns)
        return found.finalise(
            [self._own(part, self._fresh.column(name, part.type)) for part, name in zip(parts, names, strict=True)]
        )

    def _own(self, call: WindowCall, column: Column) -> ColumnRef:
        return ColumnRef(self._calls.setdefault(key_of(call), (column, call))[0])

    def _position(self, first: WindowCall) -> Column:
        number = WindowCall("row_number" if self.has_ties else "count", (), INT8, first.partition, first.order_by)
        return self._own(number, self._fresh.column("position", INT8, False)).column


class _Values:
    """What computes the values of touched rows, of candidates: these, others in reach, and what is in front of them."""

    def __init__(self, building: Building, rows: Snapshot, own: _Own) -> None:
        fresh = building.fresh
        self.tie, self.touched, self.span, self.front = (
            fresh.column(name, kind, False)
            for name, kind in (("tie", INT8), ("touched", BOOL), ("span", INT8), ("front", BOOL))
        )
        running = [item for item in own.calls if _is_unbounded(item)]
        self.carried = {column: fresh.copy(column) for column, _ in running}
        self._position = own.position
        columns = (*rows.columns, self.tie, self.touched, self.span, self.front, *self.carried.values())
        candidates = leaf(candidates_trace(building.scope, building.next_id()), columns)
        here = {column: fresh.copy(column) for column, _ in own.calls}
        calls = tuple((here[column], self._placed(call)) for column, call in own.calls)
        outputs = [(column, self._value(column, call, ColumnRef(here[column]))) for column, call in own.calls]
        found = Filter(Window(candidates, calls), ColumnRef(self.touched))
        self.computed = Project(found, (*references(rows.columns), *outputs))

    def _placed(self, call: WindowCall) -> WindowCall:
        """A call over an order in which no rows tie, where that counts. A running one goes through a span."""
        if self._position is not None:
            call = replace(call, partition=(*call.partition, ColumnRef(self.span)))
        if not _numbers(call):
            return call
        return replace(call, order_by=(*call.order_by, SortKey(ColumnRef(self.tie))))

    def _value(self, column: Column, call: WindowCall, here: Scalar) -> Scalar:
        """A value, of that among the candidates and that in front of them."""
        if column not in self.carried or call.function == "last_value":
            return here
        before = ColumnRef(self.carried[column])
        match call.function:
            case "first_value":
                return Case(((ColumnRef(self.front), before),), here, call.type)
            case "rank":
                assert self._position is not None
                return _sum(ColumnRef(self.carried[self._position]), here)
            case "row_number" | "dense_rank" | "count":
                return _sum(before, here)
            case name:
                merged = Call(_MERGED.get(name, "add"), (before, here), call.type)
                return Call("coalesce", (merged, before, here), call.type)


def _is_state(call: WindowCall) -> bool:
    """Whether a running function's value depends on the one in front, and is the same each time it is computed."""
    return call.function not in ("rank", "last_value") and not _is_double_sum(call)


def _is_double_sum(call: WindowCall) -> bool:
    """Whether a value is of doubles that are added up, in whichever way."""
    return call.function in ("sum", "avg") and call.type.name == "float8"


def _added_up(calls: Calls) -> list[Scalar]:
    """What running sums of doubles add up, and of which rows."""
    sums = [call for column, call in calls if _is_unbounded((column, call)) and _is_double_sum(call)]
    return [value for call in sums for value in (*call.arguments, call.filter) if value is not None]


def _sum(before: Scalar, here: Scalar) -> Scalar:
    return Call("add", (Call("coalesce", (before, _ZERO), INT8), here), INT8)


def _is_unbounded(item: tuple[Column, WindowCall]) -> bool:
    reach = _reach(item[1])
    return reach is not None and reach.preceding is None

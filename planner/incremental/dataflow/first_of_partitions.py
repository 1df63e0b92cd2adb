"""Windows of which a filter takes the first rows of each partition: these are kept with a few more, so that a change
needs no other rows of its partition.

With n the place of a row in its partition, W(R) the rows of R beside their places, and F the rows that are kept, the
first ones of each partition in an order: they come before the partition's other rows, or tie with them::

    Filter(W(R), n <= m and c)  =  Filter(F, n <= m and c)

    F' = (F - gone) + the rows that came before the last one of F - gone, or tie with it in rank() and dense_rank()
    F' = Filter(W(R' where key in K), n <= s)        K: the partitions that have no place m in F'

The last equation is domain extraction (DBToaster, section 3.2.2), as in ``recomputation``; the one before, and the
rows to spare, are Millstream's own. Rows that are kept come before new ones that tie with them. The rows of a partition
are read when fewer than m kept ones are left, so at each change of one that has fewer rows.

Guard: the filter is false for all places beyond a constant m, which is at most ``MOST``: ``n <= 3``, ``n = 1``,
``n IN (1, 2)``. All functions of the window are row_number(), rank() or dense_rank() over the same partitions and
order, so that they depend on earlier rows and those that tie alone. Rows are found by a part of PARTITION BY, or there
is one partition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from catalog.values.types import BOOL, INT8
from planner.algebra.construction import conjunction, has_subquery
from planner.algebra.nodes import (
    Call,
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
from planner.algebra.walk import children, walk
from planner.incremental.dataflow.building import Building, NotMaintained, with_columns
from planner.incremental.dataflow.graph import FirstOfPartitions, candidates_trace, leaf, names_of, references
from planner.incremental.dataflow.recomputation import partitioned

#: The last place up to which rows are kept.
MOST: Final = 1000
#: How many more are kept, beside as many as are asked for.
_SPARE: Final = 6
_PLACES: Final = ("row_number", "rank", "dense_rank")
_MIRRORED: Final = {"ge": "le", "gt": "lt", "eq": "eq"}
_ZERO: Final = Literal(0, INT8)

#: Makes a node of a region.
Closed = Callable[[Relation], Snapshot]
#: By a window's column, the last place that is asked for.
Places = Mapping[Column, int]


# -- the places that are asked for ------------------------------------------------------------------------------------


def places(relation: Relation) -> Places:
    """The last places that filters ask for right above the windows that make them."""
    found: dict[Column, list[int | None]] = {}
    for node in walk(relation):
        for window in children(node):
            for column, _ in window.calls if isinstance(window, Window) else ():
                last = _last(node.predicate, column) if isinstance(node, Filter) else None
                found.setdefault(column, []).append(last)
    known = {column: [last for last in each if last is not None] for column, each in found.items()}
    return {column: max(each) for column, each in known.items() if each and len(each) == len(found[column])}


def _last(condition: Scalar, column: Column) -> int | None:
    """A place beyond which a condition is false, and not NULL; None where there is no such."""
    match condition:
        case Call(function="and", arguments=parts):
            return min((last for part in parts if (last := _last(part, column)) is not None), default=None)
        case Call(function="or", arguments=parts):
            each = [last for part in parts if (last := _last(part, column)) is not None]
            return max(each) if len(each) == len(parts) else None
        case Call(function="is_not_false" | "is_true", arguments=(part,)):
            return _last(part, column)
        case Call(function="in", arguments=(ColumnRef(column=one), *values)) if one == column:
            numbers = [number for value in values if (number := _number(value)) is not None]
            return max(numbers) if len(numbers) == len(values) else None
        case Call(function="eq" | "le" | "lt", arguments=(place, bound)) if _number(bound) is not None:
            return _compared(place, condition.function, bound, column)
        case Call(function="eq" | "ge" | "gt", arguments=(bound, place)):
            return _compared(place, _MIRRORED[condition.function], bound, column)
        case _:
            return None


def _compared(place: Scalar, function: str, bound: Scalar, column: Column) -> int | None:
    passed, last = 0, _number(bound)
    match place:
        case Call(function="sub", arguments=(below, offset)) if (number := _number(offset)) is not None:
            place, passed = below, number
        case _:
            pass
    if last is None or place != ColumnRef(column):
        return None
    return last + passed - (function == "lt")


def _number(value: Scalar) -> int | None:
    """A constant's value."""
    match value:
        case Literal(value=number) if type(number) is int:
            return number
        case Call(function="coalesce", arguments=(first, *_)):
            return _number(first)
        case _:
            return None


# -- the node ---------------------------------------------------------------------------------------------------------


def wanted(node: Window, asked: Places) -> tuple[Column, int] | None:
    """The guard: the place that a filter asks for, and the last one; None where all rows are needed."""
    _, first = node.calls[0]
    for _, call in node.calls:
        is_alike = (call.partition, call.order_by) == (first.partition, first.order_by)
        if call.function not in _PLACES or not is_alike or has_subquery(call):
            return None
    found = [(column, asked[column]) for column, _ in node.calls if column in asked]
    return next((item for item in found if 0 < item[1] <= MOST), None)


def first_of_partitions(building: Building, node: Window, wanted: tuple[Column, int], closed: Closed) -> Relation:
    """What stands for the window's rows, of which it has the wanted ones. Raises NotMaintained."""
    below, key = partitioned(building, node)
    if not key and node.calls[0][1].partition:
        raise NotMaintained("a window function has no partition by which rows are found")
    rows = replace(node, input=closed(below))
    place, last = wanted
    spare = 2 * last + _SPARE
    filled = Filter(rows, _up_to(place, spare))
    parts = _Candidates(building, rows, place)
    made = FirstOfPartitions(
        building.next_id(),
        rows.columns,
        building.expanded(Filter(rows, _up_to(place, last))),
        building.node(rows.input),
        names_of(key),
        last,
        parts.numbering,
        parts.was,
        parts.gone,
        parts.chosen(last, spare),
        filled,
    )
    return with_columns(building.add(made, filled), node.columns)


def _up_to(place: Column, last: int) -> Scalar:
    return Call("le", (ColumnRef(place), Literal(last, INT8)), BOOL)


class _Candidates:
    """The rows of which those are chosen that are kept on."""

    def __init__(self, building: Building, window: Window, place: Column) -> None:
        fresh = building.fresh
        self._window = window
        self._place = place
        self.was, self.gone = fresh.column("was", INT8), fresh.column("gone", BOOL, False)
        columns = (*window.input.columns, self.was, self.gone)
        self._rows = leaf(candidates_trace(building.scope, building.next_id()), columns)
        numbers = [column for column, call in window.calls if call.function == "row_number"]
        #: The column that tells kept rows apart that tie.
        self.numbering = numbers[0] if numbers else place
        self._number, self._last, self._reached = (
            fresh.column(name, INT8, False) for name in ("number", "last", "reached")
        )
        self._lacks = fresh.column("lacks", BOOL, False)

    def chosen(self, last: int, spare: int) -> Relation:
        """The rows that are kept on, and all rows of partitions that have too few of them, which a last column
        marks. Rows that are gone are there to mark partitions."""
        function = {column: call.function for column, call in self._window.calls}[self._place]
        calls, counted = self._window.calls, self._place
        if function == "rank":
            calls, counted = (*calls, self._numbered()), self._number
        placed = Window(self._rows, tuple(map(self._placed, calls)))
        reached = ((self._last, self._of_kept(self._place)), (self._reached, self._of_kept(counted)))
        lacks = Call("lt", (Call("coalesce", (ColumnRef(self._reached), _ZERO), INT8), Literal(last, INT8)), BOOL)
        stays = conjunction(
            (
                Call("not", (ColumnRef(self.gone),), BOOL),
                Call("le", (ColumnRef(self._place), ColumnRef(self._last)), BOOL),
                _up_to(self._place, spare),
            )
        )
        assert stays is not None
        found = Filter(Window(placed, reached), Call("or", (lacks, stays), BOOL))
        return Project(found, (*references(self._window.columns), (self._lacks, lacks)))

    def _numbered(self) -> tuple[Column, WindowCall]:
        _, call = self._window.calls[0]
        return self._number, replace(call, function="row_number")

    def _placed(self, item: tuple[Column, WindowCall]) -> tuple[Column, WindowCall]:
        """A call over the rows that are there."""
        column, call = item
        ties = (SortKey(ColumnRef(self.was)),) if call.function == "row_number" else ()
        partition = (*call.partition, ColumnRef(self.gone))
        return column, replace(call, partition=partition, order_by=(*call.order_by, *ties))

    def _of_kept(self, column: Column) -> WindowCall:
        """The greatest value of a partition's rows that were kept."""
        is_kept = Call("is_not_null", (ColumnRef(self.was),), BOOL)
        _, call = self._window.calls[0]
        return WindowCall("max", (ColumnRef(column),), INT8, call.partition, filter=is_kept)

"""Pipelines that read their input in slices, so that a query can stop inside one. The thesis' states are those of
finished pipelines (section 6.1.2); here a slice is a pipeline, and what it has kept so far is its result.

Owns: an aggregation in two phases (``in_two_phases``), by the states that continuous views keep of the same aggregates;
the rows that a query only orders, as a pipeline of their own (``gathered``); which leaf of a pipeline may be read in
slices (``driver``), and what is left of a plan between two of them (``rest``).

    Aggregate k: avg(x)      Project k, avg_final(s, n)               between two slices
      Scan t                   Aggregate k: sum(s), sum(n)              Aggregate k: sum(s), sum(n)
                                 Aggregate k: sum(x) s, count(x) n        UNION ALL
                                   Scan t  <- in slices                     Snapshot p1          (so far)
                                                                            Aggregate k: ...
                                                                              Scan t, rows from 480,000 on

Each row of the leaf must come to the end of the pipeline by itself alone: on its way are filters, projections, and
joins on whose other side the same rows are looked up each time. Of ORDER BY and LIMIT each slice keeps the rows that it
could give, and the first of these are the query's. An aggregate whose result would depend on how rows are taken apart
(a list) runs whole. Rows have numbers of their own (``ROW_ID``), or those of the parts in which
an engine has them (``PART``). Knows no engine, and not what a slice costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.errors import SqlError
from catalog.values.types import BOOL, INT8, UNCONSTRAINED
from planner.algebra.construction import Fresh, filtered, volatility
from planner.algebra.identity import NodeSet
from planner.algebra.nodes import (
    PART,
    ROW_ID,
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
    Scan,
    SetOperation,
    Snapshot,
    Sort,
    Unnest,
    With,
)
from planner.algebra.nulls import never_null
from planner.algebra.partial_aggregates import MERGES, Split, merge_of, split
from planner.algebra.walk import descend, free_columns, walk
from planner.incremental.methods.split.groupings import distinct_columns
from planner.separation.cuts import is_closed

#: Aggregates over squares, which lose digits where these are not exact; those of doubles keep spreads instead.
_SQUARES: Final = frozenset(("stddev_samp", "stddev_pop", "var_samp", "var_pop"))
_INTEGERS: Final = frozenset(("int2", "int4", "int8"))
_FLOATS: Final = frozenset(("float4", "float8"))

Leaf = Scan | Snapshot


class Driver(Struct, frozen=True):
    """A leaf whose rows go through a pipeline one by one, and the other sides of the joins that they pass."""

    leaf: Leaf
    beside: tuple[Relation, ...]


class Slice(Struct, frozen=True):
    """Those parts of a leaf that are numbered from ``low`` to below ``high``, or to the last."""

    leaf: Leaf
    low: int
    high: int | None


# -- two phases --------------------------------------------------------------------------------------------------------


def in_two_phases(whole: Relation, wanted: Callable[[Aggregate], bool]) -> Relation:
    """A plan whose ``wanted`` aggregations are taken apart, where that changes no result."""
    fresh = Fresh(whole)
    done = partials(whole)

    def change(node: Any) -> Any:
        if not isinstance(node, Aggregate) or node in done or not _is_divisible(node) or not wanted(node):
            return node
        apart = _two_phases(node, fresh)
        if apart is None:
            return node
        again = apart.input
        assert isinstance(again, Aggregate)
        done.add(again)
        done.add(again.input)
        return apart

    changed: Relation = descend(whole, change)
    return changed


def _is_divisible(node: Aggregate) -> bool:
    return not free_columns(node) and volatility(node) != "volatile" and driver(node, lambda leaf: 1.0) is not None


def _two_phases(node: Aggregate, fresh: Fresh) -> Project | None:
    """An equal relation that merges partial groups; None where an aggregate has no such parts."""
    splits = _splits(node)
    if splits is None:
        return None
    keys = tuple((fresh.copy(column), value) for column, value in node.keys)
    parts = [
        (fresh.column(item.name, item.fill.type, item.fill.function != "count"), item)
        for item in distinct_columns(splits)
    ]
    if not keys and not parts:
        return None
    partial = Aggregate(node.input, keys, tuple((column, item.fill) for column, item in parts))
    groups = tuple((fresh.copy(column), ColumnRef(column)) for column, _ in keys)
    merged = tuple((fresh.copy(column), item.merge(column)) for column, item in parts)
    again = Aggregate(partial, groups, merged)
    by_key = {item.key: ColumnRef(column) for (column, _), (_, item) in zip(merged, parts, strict=True)}
    results = [
        (column, found.finalise([by_key[item.key] for item in found.columns])) for column, found in splits.items()
    ]
    names = [(column, ColumnRef(group)) for (column, _), (group, _) in zip(node.keys, groups, strict=True)]
    return Project(again, (*names, *results))


def _splits(node: Aggregate) -> dict[Column, Split] | None:
    known = never_null(node.input)
    found: dict[Column, Split] = {}
    for column, call in node.aggregates:
        if not _is_exact(call):
            return None
        try:
            part = split(call, known)
        except SqlError:
            return None
        if not isinstance(part, Split):
            return None
        found[column] = part
    return found


def _is_exact(call: AggregateCall) -> bool:
    """Whether an aggregate gives the same by its parts (sums of doubles: as exact as in any other order)."""
    kinds = [item.type for item in call.arguments]
    if call.function in _SQUARES:
        kind = kinds[0]
        return kind.name in (*_INTEGERS, *_FLOATS) or (kind.name == "numeric" and kind.modifiers != UNCONSTRAINED)
    if call.function in ("sum", "avg"):
        return kinds[0].name != "float4" and (call.function, kinds[0].name) != ("avg", "interval")
    return True


# -- partial groups ----------------------------------------------------------------------------------------------------


def partials(whole: Relation) -> NodeSet:
    """The aggregations that may give a group several times, since another one merges what they give."""
    return NodeSet(
        part
        for node in walk(whole)
        if isinstance(node, Aggregate)
        for part in _united(node.input)
        if isinstance(part, Aggregate) and _merges(node, part) and driver(part, lambda leaf: 1.0) is not None
    )


def _united(relation: Relation) -> Iterator[Relation]:
    """The arms of UNION ALL."""
    pending = [relation]
    while pending:
        node = pending.pop()
        if isinstance(node, SetOperation) and node.kind == "union" and node.all:
            pending += [node.left, node.right]
        else:
            yield node


def _merges(node: Aggregate, part: Aggregate) -> bool:
    """Whether an aggregation makes the same of a group and of its parts."""
    places = {column: place for place, column in enumerate(node.input.columns)}
    count = len(part.keys)
    for _, value in node.keys:
        if not isinstance(value, ColumnRef) or places.get(value.column, count) >= count:
            return False
    return all(_merges_one(call, part, places, count) for _, call in node.aggregates)


def _merges_one(call: AggregateCall, part: Aggregate, places: dict[Column, int], count: int) -> bool:
    (*_, value) = call.arguments or (None,)
    if not isinstance(value, ColumnRef) or len(call.arguments) != 1 or call.distinct or call.filter is not None:
        return False
    place = places.get(value.column, -1) - count
    if place < 0:
        return False
    filled = part.aggregates[place][1]
    return not filled.distinct and MERGES.get(filled.function) == call.function


# -- rows that are only ordered ----------------------------------------------------------------------------------------


def gathered(whole: Relation, rows: Callable[[Leaf], float], least: int = 0) -> tuple[Relation, Relation] | None:
    """An equal plan, and the part of it of which the rest only orders the rows, or puts others beside them; None where
    no leaf of it may be read in slices. Of ORDER BY and LIMIT the part has the first rows, ``least`` or more."""
    match whole:
        case With(body=body):
            inner = gathered(body, rows, least)
            return None if inner is None else (replace(whole, body=inner[0]), inner[1])
        case Limit(input=Sort() as order) if whole.count is not None:
            first = _first(whole, least)
            return None if first is None else _as_part(first, replace(whole, input=replace(order, input=first)), rows)
        case Sort(input=below) | Limit(input=Sort() as below) | Project(input=below) if _is_ordered(whole):
            inner = gathered(below, rows, least)
            return None if inner is None else (replace(whole, input=inner[0]), inner[1])
        case Limit():
            return None
        case _:
            arms = [arm for arm in _united(whole) if not isinstance(arm, Aggregate)]
            found = [(rows(item.leaf), arm) for arm in arms if (item := driver(arm, rows)) is not None]
            return _as_part(max(found, key=lambda item: item[0])[1], whole, rows) if found else None


def _as_part(part: Relation, whole: Relation, rows: Callable[[Leaf], float]) -> tuple[Relation, Relation] | None:
    return (whole, part) if driver(part, rows) is not None and is_closed(part) else None


def _is_ordered(relation: Relation) -> bool:
    """Whether only projections stand above an order or a limit."""
    while isinstance(relation, Project):
        relation = relation.input
    return isinstance(relation, Sort | Limit)


def _first(limit: Limit, least: int) -> Limit | None:
    """The number of first rows that a limit behind an offset needs; None if it is unknown."""
    match limit.count, limit.offset or Literal(0, INT8):
        case Literal(value=int(count)), Literal(value=int(offset)):
            return replace(limit, count=Literal(max(count + offset, least), INT8), offset=None)
        case _:
            return None


# -- leaves ------------------------------------------------------------------------------------------------------------


def driver(part: Relation, rows: Callable[[Leaf], float]) -> Driver | None:
    """The largest leaf below an aggregation, or below what orders or only filters rows, that may be read in slices, by
    the leaves' ``rows``."""
    found = [item for item in _drivers(_fed(part)) if sum(node is item.leaf for node in walk(part)) == 1]
    return max(found, key=lambda item: rows(item.leaf), default=None)


def _fed(part: Relation) -> Relation:
    """What comes into a part row by row."""
    match part:
        case Aggregate(input=below) | Limit(input=Sort(input=below)):
            return below
        case _:
            return part


def _drivers(relation: Relation) -> Iterator[Driver]:
    pending: list[tuple[Relation, tuple[Relation, ...]]] = [(relation, ())]
    while pending:
        node, beside = pending.pop()
        match node:
            case Filter(input=below) | Project(input=below) | Unnest(input=below):
                pending.append((below, beside))
            case Join(kind="inner", left=left, right=right) if not free_columns(right):
                pending += [(left, (*beside, right)), (right, (*beside, left))]
            case Join(kind="inner" | "left" | "semi" | "anti", left=left, right=right):
                pending.append((left, (*beside, right)))
            case Join(kind="right", left=left, right=right):
                pending.append((right, (*beside, left)))
            case Scan(kind="table" | "files") | Snapshot():
                yield Driver(node, beside)
            case _:
                pass


def in_slice(relation: Relation, leaf: Leaf, low: int, high: int, number: str = ROW_ID) -> Relation:
    """A relation that reads those rows of a leaf alone whose ``number``, in its engine, is from ``low`` to below
    ``high``."""
    return _with(relation, leaf, _slice(leaf, low, high, Fresh(relation), number))


def _slice(leaf: Leaf, low: int, high: int | None, fresh: Fresh, number: str) -> Relation:
    place = fresh.column(number, INT8, False)
    numbered = replace(leaf, columns=(*leaf.columns, place), sources=(*leaf.sources, number))
    bounds = [Call("ge", (ColumnRef(place), Literal(low, INT8)), BOOL)]
    if high is not None:
        bounds.append(Call("lt", (ColumnRef(place), Literal(high, INT8)), BOOL))
    return Project(filtered(numbered, bounds), tuple((column, ColumnRef(column)) for column in leaf.columns))


def slice_of(relation: Relation) -> Slice | None:
    """Which parts of which leaf a relation is; None of what ``in_slice`` and ``rest`` have not made by ``PART``."""
    match relation:
        case Project(input=Filter(input=Scan() | Snapshot() as numbered, predicate=bounds)) if PART in numbered.sources:
            leaf = replace(numbered, columns=numbered.columns[:-1], sources=numbered.sources[:-1])
            numbers = [node.value for node in walk(bounds) if isinstance(node, Literal)]
            low, *high = (value for value in numbers if isinstance(value, int))
            return Slice(leaf, low, high[0] if high else None)
        case _:
            return None


def _with(relation: Relation, old: Relation, new: Relation) -> Relation:
    """A relation with another one in the place of a part of it."""
    found: Relation = descend(relation, lambda node: new if node is old else node)
    return found


# -- between two slices ------------------------------------------------------------------------------------------------


def rest(
    whole: Relation, part: Relation, unread: tuple[Relation, Leaf, int], so_far: Snapshot, number: str = ROW_ID
) -> Relation:
    """A plan in which what ``part`` has given so far stands beside what it gives of the rows that are ``unread``: of
    the relation that a leaf stands for, from a ``number`` on."""
    fresh = Fresh(whole)
    place, leaf, low = unread
    again, _ = fresh.rename(_with(part, place, _slice(leaf, low, None, fresh, number)))
    known = replace(so_far, columns=tuple(map(fresh.copy, so_far.columns)))
    return _with(whole, part, SetOperation("union", True, known, again, part.columns))


def merged(part: Relation, so_far: Snapshot) -> Relation:
    """What ``part`` has given so far as columns of ``so_far``: each group once, and no more rows than it chooses."""
    match part:
        case Aggregate():
            return _merged(part, so_far)
        case Limit(input=Sort() as order):
            return replace(part, input=replace(order, input=so_far))
        case _:
            return so_far


def _merged(part: Aggregate, so_far: Snapshot) -> Relation:
    fresh, count = Fresh(so_far), len(part.keys)
    keys = tuple((fresh.copy(column), ColumnRef(column)) for column in so_far.columns[:count])
    merges = tuple(
        (fresh.copy(column), merge_of(call, column))
        for column, (_, call) in zip(so_far.columns[count:], part.aggregates, strict=True)
    )
    again = Aggregate(so_far, keys, merges)
    return Project(again, tuple(zip(so_far.columns, map(ColumnRef, again.columns), strict=True)))

"""Joins of two streams whose times are bounded by each other: the joined rows are a stream of their own.

    A join B on p and a.ts - c1 <= b.ts <= a.ts + c2        =        Scan J, a stream whose rows arrive with the later
                                                                     of their two rows

Rows of J only come, as those of any stream. So it stands below groupings and tables as a stream does, and whatever
maintains these need not know. ``states`` makes its changes of those of A and B, and says when rows of A
and B can be joined no more, which is why a join becomes J where one of these holds:

    b.ts <= a.ts + c     and b.ts is the column of B's watermark: a row of A is done with once that has passed a.ts + c
    a.ts <= b.ts + c     and a.ts is the column of A's: likewise a row of B

Outer joins have the rows without partners beside J (``unmatched``).

Side conditions: each side is a part that reads one stream by itself, whenever it is evaluated. Tables may be joined to
them; they meet the rows of J. The rows of a side that an outer join keeps are done with at some time. J goes into a
grouping that takes streams in, or it is all that the view reads of streams outside of such groupings, below filters,
projections and joins with tables. Else the rows of A and B are kept anyway (``methods.collect``), and the plan stays as
it is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import reduce
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from planner.algebra.construction import (
    Fresh,
    conjunction,
    conjuncts,
    filtered,
    has_subquery,
    keep_columns,
    volatility,
)
from planner.algebra.event_time import Watermark
from planner.algebra.nodes import (
    Aggregate,
    Column,
    ColumnRef,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Literal,
    Project,
    Relation,
    Scalar,
    Scan,
    SetOperation,
    Snapshot,
)
from planner.algebra.signature import key_of
from planner.algebra.walk import Node, children, descend, free_columns, inputs, is_relation, used_columns, walk
from planner.incremental.checks import obstacle
from planner.incremental.lateness import latest_time
from planner.incremental.methods.interval.unmatched import Alone, Passing, Rows, unmatched_so_far
from planner.incremental.methods.split.components import flatten
from planner.incremental.methods.stream_parts import scan_of, with_column
from planner.incremental.names import Names, stored_name
from planner.incremental.properties import Kinds, is_grouping
from planner.incremental.time_differences import Difference, differences
from planner.rules import REWRITES, rewrite

Watermarks = Mapping[int, Watermark]
NO_WATERMARKS: Final[Watermarks] = {}

#: The places of the sides whose rows without partners a join has.
_ALONE: Final[Mapping[JoinKind, tuple[int, ...]]] = {"left": (0,), "right": (1,), "full": (0, 1), "anti": (0,)}

_Sides = tuple[Relation, Relation]


class Bound(Struct, frozen=True):
    """A row can be joined no more once the other side's watermark is ``age`` microseconds after the row's
    ``column``, which its stream calls so."""

    column: str
    age: int


class Side(Struct, frozen=True):
    """One side of a join: the part of the plan, with its column of ``time`` if its rows can be joined ``until`` some
    time; the state that keeps them, and a column of it for each of the part's; and what an outer join needs."""

    part: Relation
    until: Bound | None
    time: Column | None
    state: str
    columns: tuple[Column, ...]
    alone: Alone | None = None


class IntervalJoin(Struct, frozen=True):
    """A join whose rows are stream ``oid``: its column ``c<n>`` is the n-th of both sides' columns."""

    oid: int
    left: Side
    right: Side
    predicate: Scalar

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both."""
        return self.left, self.right

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of both sides."""
        return (*self.left.part.columns, *self.right.part.columns)

    @property
    def sources(self) -> tuple[str, ...]:
        """What its scans call the columns."""
        return tuple(f"c{place}" for place, _ in enumerate(self.columns))

    @property
    def oids(self) -> frozenset[int]:
        """Those of its streams: the joined rows, and rows without partners."""
        return frozenset((self.oid, *(side.alone.oid for side in self.sides if side.alone is not None)))

    @property
    def name(self) -> str:
        """The streams' names, for those who read plans."""
        return " join ".join(scan_of(side.part).name for side in self.sides)


class Found(Struct, frozen=True):
    """The interval joins of a plan, and by their oids the groupings of streams that have their latest times."""

    joins: tuple[IntervalJoin, ...] = ()
    latest: Mapping[int, Aggregate] = {}


def interval_joins(relation: Relation, watermarks: Watermarks, fresh: Fresh) -> tuple[Relation, Found]:
    """The plan over streams of joined rows, and what these are; the plan itself where there are none. ``watermarks`` by
    the streams' oids."""
    finding = _Finding(relation, watermarks, fresh)
    found: Relation = descend(relation, finding.change)
    if not finding.joins or not _are_taken_in(found, finding.joins.values()):
        return relation, Found()
    return rewrite(found, REWRITES), Found(tuple(finding.joins.values()), finding.latest)


class _Finding:
    """Puts scans in the place of the joins of one plan, from the top."""

    def __init__(self, relation: Relation, watermarks: Watermarks, fresh: Fresh) -> None:
        self._relation = relation
        self._watermarks = watermarks
        self._fresh = fresh
        self._kinds = Kinds()
        self._oids = 0
        #: By what they join: a query may read one several times.
        self.joins: dict[Hashable, IntervalJoin] = {}
        self.latest: dict[int, Aggregate] = {}

    def change(self, node: Any) -> Any:
        """A region of inner joins with two streams that bound each other over their joined rows, and an outer join of
        two over these and the rows without partners; any other node."""
        match node:
            case Join(kind="inner") | Filter(input=Join(kind="inner")):
                return self._region(node) or node
            case Join(kind="left" | "right" | "full" | "anti"):
                return self._outer(node) or node
            case _:
                return node

    def _region(self, node: Relation) -> Relation | None:
        leaves, parts = flatten(node)
        streams = [leaf for leaf in leaves if self._kinds.of(leaf) == "stream"]
        others = [leaf for leaf in leaves if self._kinds.of(leaf) == "static"]
        if len(streams) != 2 or len(streams) + len(others) < len(leaves) or not all(map(_is_by_itself, streams)):
            return None
        if any(free_columns(leaf) for leaf in others):
            return None
        left, right = streams
        given = {*left.columns, *right.columns}
        own = [part for part in parts if used_columns(part) <= given and _is_steady(part)]
        bounds = self._bounds(left, right, own)
        if bounds == (None, None):
            return None
        found: Relation = self._joined(self._timed(left, right, bounds), bounds, own)
        for leaf in others:
            found = Join("inner", found, leaf, None)
        return keep_columns(filtered(found, (part for part in parts if part not in own)), node.columns)

    def _outer(self, node: Join) -> Relation | None:
        """J union all the rows without partners, which have NULL in the columns of the other side."""
        streams, parts = (node.left, node.right), list(conjuncts(node.predicate))
        if not all(self._kinds.of(side) == "stream" and _is_by_itself(side) for side in streams):
            return None
        given = {*node.left.columns, *node.right.columns}
        if not all(used_columns(part) <= given and _is_steady(part) for part in parts):
            return None
        bounds, places = self._bounds(*streams, parts), _ALONE[node.kind]
        if any(bounds[place] is None for place in places):
            return None
        sides, used = self._timed(*streams, bounds), _used(self._relation, node)
        rows = self._joined(sides, bounds, parts)
        joined, mapping = self._fresh.rename(rows)
        arms = [] if node.kind == "anti" else [self._arm(joined, mapping, used)]
        for place in places:
            for relation in self._unmatched(sides, parts, place):
                columns = dict(zip(sides[place].columns, relation.columns, strict=True))
                arms.append(self._arm(relation, columns, used))
        united = reduce(self._united, arms)
        return Project(united, tuple(zip(used, map(ColumnRef, united.columns), strict=True)))

    def _arm(self, rows: Relation, values: Mapping[Column, Column], columns: Iterable[Column]) -> Relation:
        """Rows with a value for each of some columns, NULL where they have none."""
        outputs: list[tuple[Column, Scalar]] = [
            (
                self._fresh.column(column.name, column.type),
                ColumnRef(values[column]) if column in values else Literal(None, column.type),
            )
            for column in columns
        ]
        return Project(rows, tuple(outputs))

    def _united(self, one: Relation, other: Relation) -> Relation:
        return SetOperation("union", True, one, other, tuple(map(self._fresh.copy, one.columns)))

    def _bounds(self, left: Relation, right: Relation, parts: Iterable[Scalar]) -> tuple[Bound | None, Bound | None]:
        """Until when rows of either side can be joined."""
        computed = dict(
            output
            for side in (left, right)
            for item in walk(side)
            if isinstance(item, Project)
            for output in item.outputs
        )
        found = list(differences(parts, computed))
        return self._bound(left, right, found), self._bound(right, left, found)

    def _bound(self, own: Relation, other: Relation, found: Iterable[Difference]) -> Bound | None:
        """Until when rows of one side can be joined with rows of the other one that are to come."""
        mine, theirs = scan_of(own), scan_of(other)
        watermark = self._watermarks.get(theirs.oid)
        if watermark is None:
            return None
        names = dict(zip(mine.columns, mine.sources, strict=True))
        marks = dict(zip(theirs.columns, theirs.sources, strict=True))
        bounds = (
            Bound(names[item.earlier], item.most)
            for item in found
            if item.earlier in names and marks.get(item.later) == watermark.column
        )
        return min(bounds, key=lambda item: item.age, default=None)

    def _timed(self, left: Relation, right: Relation, bounds: tuple[Bound | None, Bound | None]) -> _Sides:
        """Both sides with the columns of time by which their rows leave."""
        one, other = (
            side
            if bound is None or _time(side, bound) in side.columns
            else with_column(side, bound.column, self._fresh)
            for side, bound in zip((left, right), bounds, strict=True)
        )
        return one, other

    def _joined(self, sides: _Sides, bounds: tuple[Bound | None, Bound | None], parts: Iterable[Scalar]) -> Scan:
        """The joined rows as a stream, under the columns of both sides."""
        key = _key(sides, parts)
        if key not in self.joins:
            oid, predicate = self._oid(), conjunction(parts)
            assert predicate is not None
            left, right = (
                self._side(side, bound, f"interval{oid}_{name}")
                for side, bound, name in zip(sides, bounds, ("left", "right"), strict=True)
            )
            self.joins[key] = IntervalJoin(oid, left, right, predicate)
        known = self.joins[key]
        return Scan(known.oid, known.name, "stream", (*sides[0].columns, *sides[1].columns), known.sources)

    def _oid(self) -> int:
        """That of a stream which the program alone has."""
        self._oids -= 1
        return self._oids

    def _side(self, part: Relation, bound: Bound | None, state: str) -> Side:
        names = Names()
        columns = tuple(
            self._fresh.column(names.unique(column.name), column.type, column.nullable) for column in part.columns
        )
        time = None
        if bound is not None:
            found = _time(part, bound)
            time = found if found in part.columns else part.columns[-1]
        return Side(part, bound, time, state, columns)

    def _unmatched(self, sides: _Sides, parts: Iterable[Scalar], place: int) -> tuple[Relation, Relation]:
        """The rows of one side without partners: those that will have none as a stream, and those that may yet have
        one, as they are read from states. The columns are those of the side's part."""
        key = _key(sides, parts)
        join = self.joins[key]
        side, other = join.sides[place], scan_of(join.sides[1 - place].part)
        if side.alone is None:
            side = replace(side, alone=self._alone(side, used_columns(join.predicate)))
            self.joins[key] = replace(join, **{("left", "right")[place]: side})
        assert side.alone is not None
        assert side.until is not None
        assert side.time is not None
        watermark = self._watermarks[other.oid]
        if other.oid not in self.latest:
            self.latest[other.oid] = latest_time(other, watermark, self._fresh)
        passing = Passing(side.time, side.until.age + watermark.delay)
        copies = tuple(map(self._fresh.copy, side.columns))
        kept = Snapshot(side.state, copies, tuple(map(stored_name, side.columns)))
        rows = Rows(kept, dict(zip(side.part.columns, copies, strict=True)))
        so_far = unmatched_so_far(rows, side.alone, self.latest[other.oid], passing, self._fresh)
        columns = tuple(map(self._fresh.copy, side.columns))
        sources = tuple(f"c{place}" for place, _ in enumerate(columns))
        return Scan(side.alone.oid, join.name, "stream", columns, sources), so_far

    def _alone(self, side: Side, compared: Iterable[Column]) -> Alone:
        """What is known of rows of a side that have partners: the columns that tell, and when they leave."""
        wanted = {*compared, side.time}
        pairs = zip(side.part.columns, side.columns, strict=True)
        columns = {part: self._fresh.copy(own) for part, own in pairs if part in wanted}
        return Alone(self._oid(), f"{side.state}_matched", columns)


def _time(part: Relation, bound: Bound) -> Column:
    """The column of a part's stream by which its rows leave."""
    scan = scan_of(part)
    return scan.columns[scan.sources.index(bound.column)]


def _key(sides: _Sides, parts: Iterable[Scalar]) -> Hashable:
    return key_of(Join("inner", *sides, conjunction(parts)))


def _used(relation: Relation, join: Join) -> tuple[Column, ...]:
    """The columns of a join that the rest of a plan uses, beside the join's own condition; one at least. No rule takes
    others out of a UNION ALL."""
    found = set(relation.columns)
    stack: list[Node] = [relation]
    while stack:
        node = stack.pop()
        if isinstance(node, ColumnRef):
            found.add(node.column)
        if isinstance(node, SetOperation | Fixpoint):
            found.update(column for below in inputs(node) for column in below.columns)
        stack.extend((node.left, node.right) if node is join else children(node))
    return tuple(column for column in join.columns if column in found) or join.columns[:1]


def _is_by_itself(relation: Relation) -> bool:
    """Whether a relation is a stream's rows, filtered and projected by themselves, whenever this is done."""
    node = relation
    while not isinstance(node, Scan):
        if isinstance(node, Filter):
            own = [node.predicate]
        elif isinstance(node, Project):
            own = [value for _, value in node.outputs]
        else:
            return False
        if not all(map(_is_steady, own)):
            return False
        node = node.input
    return node.kind == "stream" and not free_columns(relation)


def _is_steady(scalar: Scalar) -> bool:
    return volatility(scalar) == "immutable" and not has_subquery(scalar)


def _are_taken_in(relation: Relation, joins: Iterable[IntervalJoin]) -> bool:
    """Whether the streams of joined rows go into groupings, or those of one join are all that is read of streams
    outside of these."""
    kinds = Kinds()
    outside: list[Scan] = []
    is_plain = True
    pending: list[Node] = [relation]
    while pending:
        node = pending.pop()
        if is_relation(node) and is_grouping(node, kinds) and obstacle(node, kinds) is None:
            continue
        if isinstance(node, Scan) and node.arrives:
            outside.append(node)
        elif is_relation(node) and kinds.of(node) == "stream":
            is_plain = is_plain and _is_plain(node)
        pending.extend(children(node))
    if not any(scan.oid < 0 for scan in outside):
        return True
    read = {scan.oid for scan in outside}
    return is_plain and any(read <= join.oids for join in joins)


def _is_plain(node: Relation) -> bool:
    """Whether an operator leaves the rows of a stream as they are, one by one."""
    return isinstance(node, Filter | Project | Join) or (
        isinstance(node, SetOperation) and node.kind == "union" and node.all
    )

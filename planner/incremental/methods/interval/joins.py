"""Inner joins of two streams whose times are bounded by each other: the joined rows are a stream of their own.

    A join B on p and a.ts - c1 <= b.ts <= a.ts + c2        =        Scan J, a stream whose rows arrive with the later
                                                                     of their two rows

Rows of J only come, as those of any stream. So it stands below groupings and tables as a stream does, and whatever
maintains these need not know. ``states`` makes its changes of those of A and B, and says when rows of A
and B can be joined no more, which is why a join becomes J where one of these holds:

    b.ts <= a.ts + c     and b.ts is the column of B's watermark: a row of A is done with once that has passed a.ts + c
    a.ts <= b.ts + c     and a.ts is the column of A's: likewise a row of B

Side conditions: each side is a part that reads one stream by itself, whenever it is evaluated. Tables may be joined to
them; they meet the rows of J. J goes into a grouping that takes streams in, or it is all that the view reads of streams
outside of such groupings, below filters, projections and joins with tables. Else the rows of A and B are kept anyway
(``methods.collect``), and the plan stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from planner.algebra.construction import Fresh, conjunction, filtered, has_subquery, keep_columns, volatility
from planner.algebra.event_time import Watermark
from planner.algebra.nodes import Column, Filter, Join, Project, Relation, Scalar, Scan
from planner.algebra.signature import key_of
from planner.algebra.walk import Node, children, descend, free_columns, is_relation, used_columns, walk
from planner.incremental.checks import obstacle
from planner.incremental.methods.split.components import flatten
from planner.incremental.methods.stream_parts import scan_of
from planner.incremental.properties import Kinds, is_grouping
from planner.incremental.time_differences import Difference, differences
from planner.rules import REWRITES, rewrite

Watermarks = Mapping[int, Watermark]
NO_WATERMARKS: Final[Watermarks] = {}


class Bound(Struct, frozen=True):
    """A row can be joined no more once the other side's watermark is ``age`` microseconds after the row's
    ``column``, which its stream calls so."""

    column: str
    age: int


class Side(Struct, frozen=True):
    """One side of a join: the part of the plan, and until when its rows can be joined, if that ends."""

    part: Relation
    until: Bound | None


class IntervalJoin(Struct, frozen=True):
    """A join whose rows are stream ``oid``: its column ``c<n>`` is the n-th of both sides' columns."""

    oid: int
    left: Side
    right: Side
    predicate: Scalar

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of both sides."""
        return (*self.left.part.columns, *self.right.part.columns)

    @property
    def sources(self) -> tuple[str, ...]:
        """What its scans call the columns."""
        return tuple(f"c{place}" for place, _ in enumerate(self.columns))

    @property
    def name(self) -> str:
        """The streams' names, for those who read plans."""
        return " join ".join(scan_of(side.part).name for side in (self.left, self.right))


def interval_joins(
    relation: Relation, watermarks: Watermarks, fresh: Fresh
) -> tuple[Relation, tuple[IntervalJoin, ...]]:
    """The plan over streams of joined rows, and what these are; the plan itself where there are none. ``watermarks`` by
    the streams' oids."""
    finding = _Finding(watermarks, fresh)
    found: Relation = descend(relation, finding.change)
    if not finding.joins or not _are_taken_in(found):
        return relation, ()
    return rewrite(found, REWRITES), tuple(finding.joins.values())


class _Finding:
    """Puts scans in the place of the joins of one plan, from the top."""

    def __init__(self, watermarks: Watermarks, fresh: Fresh) -> None:
        self._watermarks = watermarks
        self._fresh = fresh
        self._kinds = Kinds()
        #: By what they join: a query may read one several times.
        self.joins: dict[object, IntervalJoin] = {}

    def change(self, node: Any) -> Any:
        """A region of inner joins with two streams that bound each other over their joined rows; any other node."""
        match node:
            case Join(kind="inner") | Filter(input=Join(kind="inner")):
                return self._region(node) or node
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
        joined = Join("inner", left, right, conjunction(own))
        found = self._scan(joined, bounds)
        for leaf in others:
            found = Join("inner", found, leaf, None)
        return keep_columns(filtered(found, (part for part in parts if part not in own)), node.columns)

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

    def _scan(self, joined: Join, bounds: tuple[Bound | None, Bound | None]) -> Relation:
        """The joined rows as a stream, under the join's columns."""
        key = key_of(joined)
        known = self.joins.get(key)
        if known is None:
            assert joined.predicate is not None
            left, right = (Side(*pair) for pair in zip((joined.left, joined.right), bounds, strict=True))
            known = self.joins[key] = IntervalJoin(-1 - len(self.joins), left, right, joined.predicate)
        return Scan(known.oid, known.name, "stream", joined.columns, known.sources)


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


def _are_taken_in(relation: Relation) -> bool:
    """Whether the streams of joined rows go into groupings, or are all that is read of streams outside of these."""
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
            is_plain = is_plain and isinstance(node, Filter | Project | Join)
        pending.extend(children(node))
    joined = [scan for scan in outside if scan.oid < 0]
    return not joined or (is_plain and len(outside) == 1)

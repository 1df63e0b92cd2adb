"""Joins of streams whose times are bounded by each other: the joined rows are a stream of their own.

    A join B on p and a.ts - c1 <= b.ts <= a.ts + c2        =        Scan J, a stream whose rows arrive with the latest
                                                                     of the rows that are joined

Rows of J only come, as those of any stream. So it stands below groupings and tables as a stream does, and whatever
maintains these need not know. ``states`` makes its changes of those of A and B, and says when rows of A
and B can be joined no more, which is why a join of several streams becomes J where one of them has rows that are
done with at some time (``sides``):

    b.ts <= a.ts + c     and b.ts is the column of B's watermark: a row of A is done with once that has passed a.ts + c
    a.ts <= b.ts + c     and a.ts is the column of A's: likewise a row of B

Outer joins of two have the rows without partners beside J, semi joins have rows as soon as they have a partner
(``unmatched``).

Side conditions: each side is a part that reads one stream by itself, whenever it is evaluated. Tables may be joined to
them; they meet the rows of J (``tables``). The rows of a side that an outer join keeps are done with at some time, and
so are those that a semi join chooses. J goes into a grouping that takes streams in, or it is all that the view reads of
streams outside of such groupings, below filters, projections and joins with tables. Else the rows of A and B are kept
anyway (``methods.collect``), and the plan stays as it is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, Final

from msgspec.structs import replace

from planner.algebra.construction import Fresh, conjunction, conjuncts, filtered, keep_columns
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
from planner.algebra.walk import Node, children, descend, free_columns, inputs, is_relation, used_columns
from planner.incremental.checks import obstacle
from planner.incremental.lateness import latest_time
from planner.incremental.methods.interval.fallible import computed_by_sides
from planner.incremental.methods.interval.sides import (
    Found,
    IntervalJoin,
    Side,
    Until,
    Watermarks,
    all_combinations,
    is_by_itself,
    is_steady,
    time_of,
    untils,
)
from planner.incremental.methods.interval.tables import Bare, with_tables_above, without_tables
from planner.incremental.methods.interval.unmatched import Alone, Passing, Rows, tell_equals_apart, unmatched_so_far
from planner.incremental.methods.split.components import flatten
from planner.incremental.methods.stream_parts import scan_of, with_column
from planner.incremental.names import Names, stored_name
from planner.incremental.properties import Kinds, is_grouping
from planner.rules import REWRITES, rewrite

#: How many streams a join may have.
_MOST: Final = 5
#: The places of the sides whose rows without partners a join has.
_ALONE: Final[Mapping[JoinKind, tuple[int, ...]]] = {"left": (0,), "right": (1,), "full": (0, 1), "anti": (0,)}
#: And of those whose rows with partners it has, each once.
_CHOSEN: Final[Mapping[JoinKind, tuple[int, ...]]] = {"semi": (0,)}

_Sides = Sequence[Relation]
_Untils = tuple[Until | None, ...]


def interval_joins(
    relation: Relation, watermarks: Watermarks, fresh: Fresh, forgiving: bool = False
) -> tuple[Relation, Found]:
    """The plan over streams of joined rows, and what these are; the plan itself where there are none. ``watermarks`` by
    the streams' oids. ``forgiving``: rows that fail do not make the view fail."""
    finding = _Finding(relation, watermarks, fresh, forgiving)
    found: Relation = descend(relation, finding.change)
    if not finding.joins or not _are_taken_in(found, finding.joins.values()):
        return relation, Found()
    return rewrite(found, REWRITES), Found(tuple(finding.joins.values()), finding.latest)


class _Finding:
    """Puts scans in the place of the joins of one plan, from the top."""

    def __init__(self, relation: Relation, watermarks: Watermarks, fresh: Fresh, forgiving: bool) -> None:
        self._relation = relation
        self._forgiving = forgiving
        self._watermarks = watermarks
        self._fresh = fresh
        self._kinds = Kinds()
        self._oids = 0
        #: By what they join: a query may read one several times.
        self.joins: dict[Hashable, IntervalJoin] = {}
        self.latest: dict[int, Aggregate] = {}

    def change(self, node: Any) -> Any:
        """A region of inner joins with streams that bound each other over their joined rows, and an outer or semi join
        of two over these, the rows without partners and those with partners; any other node."""
        match node:
            case Join(kind="inner") | Filter(input=Join(kind="inner")):
                return self._region(node) or node
            case Join(kind="left" | "right" | "full" | "anti" | "semi"):
                used = partial(_used, self._relation)
                return with_tables_above(node, used, self._is_stream, self._is_table) or self._outer(node) or node
            case _:
                return node

    def _region(self, node: Relation) -> Relation | None:
        leaves, parts = flatten(node)
        streams = [leaf for leaf in leaves if self._kinds.of(leaf) == "stream"]
        others = [leaf for leaf in leaves if self._kinds.of(leaf) == "static"]
        if not 2 <= len(streams) <= _MOST or len(streams) + len(others) < len(leaves):
            return None
        sides = without_tables(streams, self._is_stream, self._is_table)
        if sides is None or any(free_columns(leaf) for leaf in others):
            return None
        streams = [side.core for side in sides]
        given = {column for stream in streams for column in stream.columns}
        over_cores = {part: _inlined(part, sides) for part in parts}
        own = [part for part in over_cores.values() if part is not None and used_columns(part) <= given]
        own = [part for part in own if is_steady(part)]
        above = [part for part, found in over_cores.items() if found not in own]
        if self._forgiving:
            computed = computed_by_sides(streams, own, self._fresh)
            if computed is None:
                return None
            streams, own = computed
        found = untils(streams, own, self._watermarks)
        if not any(found):
            return None
        joined: Relation = self._joined(self._timed(streams, found), found, own)
        for side in sides:
            joined = side.over(joined)
        for leaf in others:
            joined = Join("inner", joined, leaf, None)
        return keep_columns(filtered(joined, above), node.columns)

    def _is_stream(self, node: Relation) -> bool:
        return self._kinds.of(node) == "stream" and is_by_itself(node)

    def _is_table(self, node: Relation) -> bool:
        return self._kinds.of(node) == "static"

    def _outer(self, node: Join) -> Relation | None:
        """J union all the rows without partners, which have NULL in the columns of the other side; the rows with
        partners of a semi join."""
        streams: _Sides = (node.left, node.right)
        parts = list(conjuncts(node.predicate))
        if not all(map(self._is_stream, streams)):
            return None
        given = {*node.left.columns, *node.right.columns}
        if not all(used_columns(part) <= given and is_steady(part) for part in parts):
            return None
        if self._forgiving:
            computed = computed_by_sides(streams, parts, self._fresh)
            if computed is None:
                return None
            streams, parts = computed
        found = untils(streams, parts, self._watermarks)
        places, chosen = _ALONE.get(node.kind, ()), _CHOSEN.get(node.kind, ())
        if any(found[place] is None for place in (*places, *chosen)) or tell_equals_apart(parts):
            return None
        sides, used = self._timed(streams, found), _used(self._relation, node)
        rows = self._joined(sides, found, parts)
        joined, mapping = self._fresh.rename(rows)
        arms = [] if node.kind in ("anti", "semi") else [self._arm(joined, mapping, used)]
        found_of = [(place, self._unmatched(sides, parts, place)) for place in places]
        found_of += [(place, [self._matched(sides, parts, place)]) for place in chosen]
        for place, relations in found_of:
            for relation in relations:
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

    def _timed(self, streams: _Sides, found: _Untils) -> list[Relation]:
        """The sides with the columns of time by which their rows leave."""
        return [
            side
            if until is None or time_of(side, until) in side.columns
            else with_column(side, until.column, self._fresh)
            for side, until in zip(streams, found, strict=True)
        ]

    def _joined(self, sides: _Sides, found: _Untils, parts: Iterable[Scalar]) -> Scan:
        """The joined rows as a stream, under the columns of all sides."""
        key = _key(sides, parts)
        if key not in self.joins:
            oid, predicate = self._oid(), conjunction(parts)
            assert predicate is not None
            made = (
                self._side(side, until, f"interval{oid}_{place}")
                for place, (side, until) in enumerate(zip(sides, found, strict=True))
            )
            self.joins[key] = IntervalJoin(oid, tuple(made), predicate)
        known = self.joins[key]
        columns = (column for side in sides for column in side.columns)
        return Scan(known.oid, known.name, "stream", tuple(columns), known.sources)

    def _oid(self) -> int:
        """That of a stream which the program alone has."""
        self._oids -= 1
        return self._oids

    def _side(self, part: Relation, until: Until | None, state: str) -> Side:
        names = Names()
        columns = tuple(
            self._fresh.column(names.unique(column.name), column.type, column.nullable) for column in part.columns
        )
        time = None
        if until is not None:
            found = time_of(part, until)
            time = found if found in part.columns else part.columns[-1]
        return Side(part, until, time, state, columns)

    def _unmatched(self, sides: _Sides, parts: Iterable[Scalar], place: int) -> Sequence[Relation]:
        """The rows of one side without partners: those that will have none as a stream, and those that may yet have
        one, as they are read from states. The columns are those of the side's part."""
        side, other = self._partnered(sides, parts, place)
        assert side.alone is not None
        assert side.until is not None
        assert side.time is not None
        watermark = self._watermarks[other.oid]
        if other.oid not in self.latest:
            self.latest[other.oid] = latest_time(other, watermark, self._fresh)
        ((_, age),) = side.until.ages
        passing = Passing(side.time, age + watermark.delay)
        copies = tuple(map(self._fresh.copy, side.columns))
        kept = Snapshot(side.state, copies, tuple(map(stored_name, side.columns)))
        rows = Rows(kept, dict(zip(side.part.columns, copies, strict=True)))
        so_far = unmatched_so_far(rows, side.alone, self.latest[other.oid], passing, self._fresh)
        return self._stream_of(side, side.alone.oid), so_far

    def _matched(self, sides: _Sides, parts: Iterable[Scalar], place: int) -> Relation:
        """The rows of one side with partners as a stream, under the columns of the side's part."""
        side, _ = self._partnered(sides, parts, place)
        assert side.alone is not None
        return self._stream_of(side, side.alone.met)

    def _stream_of(self, side: Side, oid: int) -> Scan:
        columns = tuple(map(self._fresh.copy, side.columns))
        sources = tuple(f"c{place}" for place, _ in enumerate(columns))
        name = next(join.name for join in self.joins.values() if side in join.sides)
        return Scan(oid, name, "stream", columns, sources)

    def _partnered(self, sides: _Sides, parts: Iterable[Scalar], place: int) -> tuple[Side, Scan]:
        """A side of which it is known which rows have partners, and the other side's stream."""
        key = _key(sides, parts)
        join = self.joins[key]
        side, other = join.sides[place], scan_of(join.sides[1 - place].part)
        if side.alone is None:
            side = replace(side, alone=self._alone(side, used_columns(join.predicate)))
            sides_now = (side if number == place else item for number, item in enumerate(join.sides))
            self.joins[key] = replace(join, sides=tuple(sides_now))
        return side, other

    def _alone(self, side: Side, compared: Iterable[Column]) -> Alone:
        """What is known of rows of a side that have partners: the columns that tell, and when they leave."""
        wanted = {*compared, side.time}
        pairs = zip(side.part.columns, side.columns, strict=True)
        columns = {part: self._fresh.copy(own) for part, own in pairs if part in wanted}
        return Alone(self._oid(), self._oid(), f"{side.state}_matched", columns)


def _inlined(part: Scalar, sides: Iterable[Bare]) -> Scalar | None:
    """A condition over the sides of a join over these without their tables; None where it is about a table."""
    found: Scalar | None = part
    for side in sides:
        found = None if found is None else side.inlined(found)
    return found


def _key(sides: _Sides, parts: Iterable[Scalar]) -> Hashable:
    return key_of(filtered(all_combinations(sides), parts))


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
        stack.extend((join.left, join.right) if node is join else children(node))
    return tuple(column for column in join.columns if column in found) or join.columns[:1]


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

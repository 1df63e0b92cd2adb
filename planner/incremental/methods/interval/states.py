"""Joins of two streams bounded by their times: the states of both sides, and the joined rows that a delta adds.

    dJ       =  (dA join B)  +  (A join dB)  +  (dA join dB)      A, B: the kept rows of before the delta
    A       +=  dA                                                dA: the delta's rows in time, filtered and projected
    latest  +=  max(time of the delta)

The first equation is the delta of a join (DBToaster, section 3.1, delta queries). That rows leave by watermarks is
Millstream's own rule, as interval joins of stream processors have it: the papers know no event time.

What reads dJ becomes a statement for each part, which adds nothing where one of its streams got no rows. The
statements of both streams are one path, so that all of them see one LSN and commit together: a pair of rows counts
once, whichever process dies.

A row of A leaves its state once B's watermark has passed the time up to which it can be joined (``Expiry``): whenever
that is done, no row of B that still comes can meet it. This is so since late rows are left out (``lateness``): where
rows of A leave by B's watermark, a row of B counts only if its time lies above the watermark of the transactions before
its own. So the view equals its query over the rows in time, however they are batched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.types import INT8
from planner.algebra.construction import Fresh, rename_columns
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Column,
    ColumnRef,
    Delta,
    Join,
    Literal,
    Project,
    Relation,
    Scalar,
    Scan,
    Snapshot,
)
from planner.algebra.walk import transform, used_columns, walk
from planner.incremental.checks import UNGROUPED
from planner.incremental.lateness import Horizon, in_time, late, latest_time
from planner.incremental.methods.collect import Collected
from planner.incremental.methods.interval.joins import IntervalJoin, Side, Watermarks
from planner.incremental.methods.method import Gathered
from planner.incremental.methods.split.groupings import Groupings
from planner.incremental.methods.stream_parts import over, scan_of, with_column
from planner.incremental.names import LSN, Names, stored_name
from planner.incremental.programs.program import Expiry, MethodName, State, Statement
from planner.rules import optimise

#: A statement with the oids of the streams whose changes it reads.
Placed = tuple[tuple[int, ...], Statement]


class JoinedRows(Struct, frozen=True):
    """A stream whose rows a view keeps to join them with those of ``other``: until the latest ``mark`` of that one is
    ``age`` microseconds after the row's ``column``. Without an age, for ever."""

    stream: str
    other: str
    column: str = ""
    mark: str = ""
    age: int | None = None


class _Kept(Struct, frozen=True):
    """One side of a join: its rows as a state, ``columns`` by the part's; ``horizon`` says which rows of the delta
    count, and ``until`` when rows leave the state."""

    state: State
    part: Relation
    columns: Mapping[Column, Column]
    horizon: Horizon | None
    until: Expiry | None


class IntervalJoins:
    """Plans the joins of one program."""

    name: ClassVar[MethodName] = "interval"

    def __init__(
        self, joins: Iterable[IntervalJoin], watermarks: Watermarks, groupings: Groupings, fresh: Fresh
    ) -> None:
        self._joins = {join.oid: join for join in joins}
        self._watermarks = watermarks
        self._groupings = groupings
        self._fresh = fresh
        self._latest: dict[int, Aggregate] = {}
        #: Streams of which late rows are left out, by oid.
        self._late: dict[int, tuple[Scan, Horizon]] = {}

    def expanded(self, gathered: Gathered) -> tuple[list[Placed], tuple[Expiry, ...]]:
        """The statements over streams alone, with those that fill the states of the joins, which are added, and when
        rows leave these."""
        kept = {oid: self._kept(join, _used(gathered, join)) for oid, join in self._joins.items()}
        placed = [
            (self._inputs(oid), replace(statement, relation=relation))
            for oid, statement in gathered.statements
            for relation in self._over_streams(statement.relation, kept)
        ]
        for oid, sides in kept.items():
            for side in sides:
                gathered.states.append(side.state)
                placed.append((self._inputs(oid), self._filling(side)))
        for oid, (scan, horizon) in self._late.items():
            state, statement = self._counting(scan, horizon)
            gathered.states.append(state)
            placed.append(((oid,), statement))
        expiries = (side.until for sides in kept.values() for side in sides)
        return placed, tuple(item for item in expiries if item is not None)

    @property
    def told(self) -> tuple[JoinedRows, ...]:
        """What is to be said of the streams."""
        sides = ((join.left, join.right) for join in self._joins.values())
        pairs = (pair for left, right in sides for pair in ((left, right), (right, left)))
        return tuple(dict.fromkeys(self._told(side, other) for side, other in pairs))

    def _told(self, side: Side, other: Side) -> JoinedRows:
        mine, theirs = scan_of(side.part), scan_of(other.part)
        if side.until is None:
            return JoinedRows(mine.name, theirs.name)
        watermark = self._watermarks[theirs.oid]
        age = side.until.age + watermark.delay
        return JoinedRows(mine.name, theirs.name, side.until.column, watermark.column, age)

    def collected(self, item: Collected) -> Collected:
        """What is to be said of rows that are kept, where they are those of a join."""
        join = next((join for join in self._joins.values() if join.name == item.stream), None)
        if join is None:
            return item
        left, right = (scan_of(side.part).name for side in (join.left, join.right))
        reason = "no grouping takes them in" if item.reason == UNGROUPED else item.reason
        return replace(item, stream=left, other=right, reason=reason)

    def _inputs(self, oid: int) -> tuple[int, ...]:
        join = self._joins.get(oid)
        if join is None:
            return (oid,)
        return tuple(dict.fromkeys(scan_of(side.part).oid for side in (join.left, join.right)))

    # The states -------------------------------------------------------------------------------------------------

    def _kept(self, join: IntervalJoin, used: frozenset[Column]) -> tuple[_Kept, _Kept]:
        """Both sides of a join of which some columns are used."""
        sides, names = (join.left, join.right), ("left", "right")
        left, right = (
            self._side(side, other, used, f"interval{join.oid}_{name}")
            for side, other, name in zip(sides, reversed(sides), names, strict=True)
        )
        return left, right

    def _side(self, side: Side, other: Side, used: frozenset[Column], name: str) -> _Kept:
        """One side, beside the other one: its rows leave by the other's watermark, and the other's by its own."""
        part, time = side.part, None
        if side.until is not None:
            part, time = _with_time(part, side.until.column, self._fresh)
        names = Names()
        columns = {
            column: self._fresh.column(names.unique(column.name), column.type, column.nullable)
            for column in part.columns
            if column in used or column == time
        }
        state = State(name, "concatenate", tuple(columns.values()), ())
        horizon = None if other.until is None else self._horizon(scan_of(part))
        until = None
        if side.until is not None and time is not None:
            theirs = scan_of(other.part)
            (mark,) = self._groupings.plan(self._latest_of(theirs)).sources
            age = side.until.age + self._watermarks[theirs.oid].delay
            until = Expiry(name, columns[time], mark.trace, mark.columns[0], age)
        return _Kept(state, part, columns, horizon, until)

    def _horizon(self, stream: Scan) -> Horizon:
        """Which rows of a stream are late; they are counted."""
        watermark = self._watermarks[stream.oid]
        found = Horizon(watermark.column, watermark.delay, self._latest_of(stream))
        self._late.setdefault(stream.oid, (stream, found))
        return found

    def _latest_of(self, stream: Scan) -> Aggregate:
        """The grouping of a stream that has its latest time, one for all joins."""
        if stream.oid not in self._latest:
            self._latest[stream.oid] = latest_time(stream, self._watermarks[stream.oid], self._fresh)
        return self._latest[stream.oid]

    def _filling(self, side: _Kept) -> Statement:
        outputs = tuple((column, ColumnRef(below)) for below, column in side.columns.items())
        return Statement(side.state.name, optimise(Project(self._arrived(side), outputs)), self.name)

    # The joined rows --------------------------------------------------------------------------------------------

    def _over_streams(self, relation: Relation, kept: Mapping[int, tuple[_Kept, _Kept]]) -> list[Relation]:
        """A relation over changes of a stream; one over those of joined rows as parts, which are over changes of
        streams, too."""
        delta = next((node for node in walk(relation) if isinstance(node, Delta) and node.oid in kept), None)
        if delta is None:
            return [relation]
        left, right = kept[delta.oid]
        old, new = self._standing, self._coming
        pairs = ((new(left), old(right)), (old(left), new(right)), (new(left), new(right)))
        return [optimise(_instead(relation, delta, self._joined(delta, *pair))) for pair in pairs]

    def _joined(self, delta: Delta, left: _Rows, right: _Rows) -> Relation:
        """Some rows of both sides joined, under the columns of ``delta``; a place in the log is 0."""
        join, columns = self._joins[delta.oid], {**left.columns, **right.columns}
        joined = Join("inner", left.relation, right.relation, rename_columns(join.predicate, columns))
        own = dict(zip(join.sources, join.columns, strict=True))
        values: list[tuple[Column, Scalar]] = [
            (column, ColumnRef(columns[own[source]]) if source in own else Literal(0, INT8))
            for column, source in zip(delta.columns, delta.sources, strict=True)
        ]
        return Project(joined, tuple(values))

    def _standing(self, side: _Kept) -> _Rows:
        """The rows of a side that were there before the delta."""
        columns = {part: self._fresh.copy(column) for part, column in side.columns.items()}
        sources = tuple(map(stored_name, side.columns.values()))
        return _Rows(Snapshot(side.state.name, tuple(columns.values()), sources), columns)

    def _coming(self, side: _Kept) -> _Rows:
        """The rows of a side that the delta adds."""
        relation, columns = self._fresh.rename(self._arrived(side))
        return _Rows(relation, {part: columns[part] for part in side.columns})

    def _arrived(self, side: _Kept) -> Relation:
        """The delta's part, of the rows in time."""
        scan = scan_of(side.part)
        if side.horizon is None:
            return over(side.part, Delta(scan.oid, scan.name, scan.columns, scan.sources))
        return over(side.part, self._in_time(self._delta(scan), side.horizon))

    def _delta(self, scan: Scan) -> Delta:
        """The changes of a stream, with their LSNs."""
        place = self._fresh.column(LSN, INT8, False)
        return Delta(scan.oid, scan.name, (*scan.columns, place), (*scan.sources, LSN))

    def _in_time(self, delta: Delta, horizon: Horizon) -> Relation:
        (mark,) = self._groupings.plan(horizon.latest).sources
        return in_time(delta, horizon, mark.trace, mark.columns[0], self._fresh)

    def _counting(self, scan: Scan, horizon: Horizon) -> tuple[State, Statement]:
        """How many rows of a stream are left out since they are late."""
        time, _ = self._fresh.rename(self._delta(scan))
        assert isinstance(time, Delta)
        kept, _ = self._fresh.rename(self._in_time(self._delta(scan), horizon))
        number = self._fresh.column("late", INT8, False)
        column = time.columns[time.sources.index(horizon.column)]
        relation = optimise(late(time, kept, column, number, self._fresh))
        merge = ((number, AggregateCall("sum", (ColumnRef(number),), INT8)),)
        state = State(f"late_{scan.oid}", "aggregate", (number,), (), merge)
        return state, Statement(state.name, relation, "late")


class _Rows(Struct, frozen=True):
    """A relation with rows of one side; ``columns`` by those of the side's part."""

    relation: Relation
    columns: dict[Column, Column]


def _with_time(part: Relation, source: str, fresh: Fresh) -> tuple[Relation, Column]:
    """A part that has a column of its stream, and that column."""
    scan = scan_of(part)
    column = scan.columns[scan.sources.index(source)]
    if column in part.columns:
        return part, column
    found = with_column(part, source, fresh)
    return found, found.columns[-1]


def _instead(relation: Relation, delta: Delta, part: Relation) -> Relation:
    """A relation that reads something else in the place of a delta."""
    found: Relation = transform(relation, lambda node: part if node == delta else node)
    return found


def _used(gathered: Gathered, join: IntervalJoin) -> frozenset[Column]:
    """The columns of a join that its condition and what reads its rows use."""
    columns = dict(zip(join.sources, join.columns, strict=True))
    deltas = (node for _, statement in gathered.statements for node in walk(statement.relation))
    sources = {name for node in deltas if isinstance(node, Delta) and node.oid == join.oid for name in node.sources}
    return used_columns(join.predicate) | {columns[name] for name in sources if name in columns}

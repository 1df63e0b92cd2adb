"""Joins of streams bounded by their times: the states of the sides, and the joined rows that a delta adds.

    dJ       =  (dA join B)  +  (A join dB)  +  (dA join dB)      A, B: the kept rows of before the delta
    A       +=  dA                                                dA: the delta's rows in time, filtered and projected
    latest  +=  max(time of the delta)

The first equation is the delta of a join (DBToaster, section 3.1, delta queries); that of n streams has a part for each
of the 2^n - 1 ways to take at least one delta. That rows leave by watermarks is Millstream's own rule, as interval
joins of stream processors have it: the papers know no event time.

What reads dJ becomes a statement for each part, which adds nothing where one of its streams got no rows. The
statements of all streams are one path, so that all of them see one LSN and commit together: joined rows
count once, whichever process dies.

A row of A leaves its state once the watermark of each other stream has passed the time up to which it can be joined
(``Expiry``): whenever that is done, no row that still comes can meet it. This is so since late rows are left out
(``lateness``): where rows leave by B's watermark, a row of B counts only if its time lies above the watermark of the
transactions before its own. So the view equals its query over the rows in time, however they are batched.

Of a side whose rows an outer join keeps, or a semi join chooses, ``unmatched`` says what becomes of those without
partners and with some.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.types import INT8
from planner.algebra.construction import Fresh, rename_columns
from planner.algebra.failures import may_raise
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Column,
    ColumnRef,
    Delta,
    Filter,
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
from planner.incremental.methods.interval.sides import Found, IntervalJoin, Side, Watermarks, all_combinations
from planner.incremental.methods.interval.unmatched import (
    Alone,
    Passing,
    Rows,
    among_partners,
    passed_already,
    passing_now,
    with_partner,
    without_known,
    without_partner,
)
from planner.incremental.methods.method import Gathered
from planner.incremental.methods.split.groupings import Groupings
from planner.incremental.methods.stream_parts import over, scan_of
from planner.incremental.names import LSN, stored_name
from planner.incremental.programs.program import Expiry, Mark, MethodName, State, Statement
from planner.rules import optimise

#: A statement with the oids of the streams whose changes it reads.
Placed = tuple[tuple[int, ...], Statement]


class MarkedStream(Struct, frozen=True):
    """A stream whose latest ``column`` is ``age`` microseconds after something."""

    stream: str
    column: str
    age: int


class JoinedRows(Struct, frozen=True):
    """A stream whose rows a view keeps to join them with those of ``others``: until all ``marks`` are after the row's
    ``column``. Without marks, for ever."""

    stream: str
    others: tuple[str, ...]
    column: str = ""
    marks: tuple[MarkedStream, ...] = ()


class _Kept(Struct, frozen=True):
    """One side of a join: its rows as a state, ``columns`` by the part's; ``horizon`` says which rows of the delta
    count, ``until`` when rows leave the state, and ``alone`` what an outer join needs."""

    state: State
    part: Relation
    columns: Mapping[Column, Column]
    horizon: Horizon | None
    until: Expiry | None
    time: Column | None
    alone: Alone | None

    @property
    def passing(self) -> Passing:
        """When rows can be joined no more, where that ends."""
        assert self.time is not None
        assert self.until is not None
        return Passing(self.time, self.until.age)


_Sides = tuple[_Kept, ...]


class IntervalJoins:
    """Plans the joins of one program."""

    name: ClassVar[MethodName] = "interval"

    def __init__(self, found: Found, watermarks: Watermarks, groupings: Groupings, fresh: Fresh) -> None:
        self._joins = {join.oid: join for join in found.joins}
        self._watermarks = watermarks
        self._groupings = groupings
        self._fresh = fresh
        self._latest: dict[int, Aggregate] = dict(found.latest)
        #: Streams of which late rows are left out, by oid.
        self._late: dict[int, tuple[Scan, Horizon]] = {}
        #: The joins by the oids of their streams, and the places of the sides of which these are the unmatched rows.
        self._origins: dict[int, tuple[IntervalJoin, int | None]] = {}
        for join in found.joins:
            self._origins[join.oid] = join, None
            for place, side in enumerate(join.sides):
                if side.alone is not None:
                    self._origins[side.alone.oid] = self._origins[side.alone.met] = join, place

    def may_raise(self, gathered: Gathered) -> bool:
        """Whether an expression over rows that have been joined may raise, so that no row of a stream is to blame."""
        over_joined = (
            statement.relation
            for _, statement in gathered.statements
            if any(isinstance(node, Delta) and node.oid in self._origins for node in walk(statement.relation))
        )
        return any(map(may_raise, (*over_joined, *(join.predicate for join in self._joins.values()))))

    def expanded(self, gathered: Gathered, final: Relation) -> tuple[list[Placed], tuple[Expiry, ...]]:
        """The statements over streams alone, with those that fill the states of the joins, which are added, and when
        rows leave these. ``final`` may read the states, too."""
        statements = [statement.relation for _, statement in gathered.statements]
        kept = {oid: self._kept(join, self._used([final, *statements], join)) for oid, join in self._joins.items()}
        placed = [
            (self._inputs(oid), replace(statement, relation=relation))
            for oid, statement in gathered.statements
            for relation in self._over_streams(statement.relation, kept)
        ]
        for oid, sides in kept.items():
            for side in sides:
                gathered.states.append(side.state)
                placed.append((self._inputs(oid), self._filling(side)))
            for place, side in enumerate(sides):
                if side.alone is not None:
                    gathered.states.append(_matched(side.alone))
                    placed += ((self._inputs(oid), item) for item in self._matching(oid, sides, place))
        for oid, (scan, horizon) in self._late.items():
            state, statement = self._counting(scan, horizon)
            gathered.states.append(state)
            placed.append(((oid,), statement))
        expiries = (item for sides in kept.values() for side in sides for item in _expiries(side))
        return placed, tuple(expiries)

    @property
    def told(self) -> tuple[JoinedRows, ...]:
        """What is to be said of the streams."""
        pairs = (pair for join in self._joins.values() for pair in _each_beside(join.sides))
        return tuple(dict.fromkeys(self._told(side, others) for side, others in pairs))

    def _told(self, side: Side, others: Iterable[Side]) -> JoinedRows:
        scans = {scan.oid: scan for scan in (scan_of(other.part) for other in others)}
        stream, names = scan_of(side.part).name, tuple(scan.name for scan in scans.values())
        if side.until is None:
            return JoinedRows(stream, names)
        marks = (
            MarkedStream(scans[oid].name, self._watermarks[oid].column, age + self._watermarks[oid].delay)
            for oid, age in side.until.ages
        )
        return JoinedRows(stream, names, side.until.column, tuple(marks))

    def collected(self, item: Collected) -> Collected:
        """What is to be said of rows that are kept, where they are those of a join."""
        join = next((join for join in self._joins.values() if join.name == item.stream), None)
        if join is None:
            return item
        first, *others = (scan_of(side.part).name for side in join.sides)
        reason = "no grouping takes them in" if item.reason == UNGROUPED else item.reason
        return replace(item, stream=first, others=tuple(others), reason=reason)

    def _inputs(self, oid: int) -> tuple[int, ...]:
        return self._origins[oid][0].inputs if oid in self._origins else (oid,)

    # The states -------------------------------------------------------------------------------------------------

    def _kept(self, join: IntervalJoin, used: frozenset[Column]) -> _Sides:
        """The sides of a join of which some columns are used."""
        return tuple(self._side(side, others, used) for side, others in _each_beside(join.sides))

    def _side(self, side: Side, others: Sequence[Side], used: frozenset[Column]) -> _Kept:
        """One side, beside others: its rows leave by the watermarks of these, and theirs by its own."""
        pairs = zip(side.part.columns, side.columns, strict=True)
        columns = {part: column for part, column in pairs if part in used or part == side.time}
        state = State(side.state, "concatenate", tuple(columns.values()), ())
        horizon = None if all(other.until is None for other in others) else self._horizon(scan_of(side.part))
        until = None
        if side.until is not None and side.time is not None:
            streams = {scan.oid: scan for scan in (scan_of(other.part) for other in others)}
            first, *also = (self._mark(streams[oid], age) for oid, age in side.until.ages)
            until = Expiry(side.state, columns[side.time], first.watermark, first.latest, first.age, also=tuple(also))
        return _Kept(state, side.part, columns, horizon, until, side.time, side.alone)

    def _mark(self, stream: Scan, age: int) -> Mark:
        """A stream's watermark less an age."""
        (mark,) = self._groupings.plan(self._latest_of(stream)).sources
        return Mark(mark.trace, mark.columns[0], age + self._watermarks[stream.oid].delay)

    def _used(self, relations: Iterable[Relation], join: IntervalJoin) -> frozenset[Column]:
        """The columns of a join that its condition and what reads its rows use."""
        columns = dict(zip(join.sources, join.columns, strict=True))
        found = set(used_columns(join.predicate))
        for node in (item for relation in relations for item in walk(relation)):
            if isinstance(node, Delta) and node.oid in self._origins:
                origin, place = self._origins[node.oid]
                if origin is join:
                    own = columns if place is None else _by_place(join.sides[place])
                    found.update(own[name] for name in node.sources if name in own)
            elif isinstance(node, Snapshot):
                side = next((item for item in join.sides if item.state == node.trace), None)
                if side is not None:
                    pairs = zip(side.part.columns, side.columns, strict=True)
                    found.update(part for part, column in pairs if stored_name(column) in node.sources)
        return frozenset(found)

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

    # The joined rows, and those without partners ----------------------------------------------------------------

    def _over_streams(self, relation: Relation, kept: Mapping[int, _Sides]) -> list[Relation]:
        """A relation over changes of a stream; one over those of joined rows, or of rows without partners or with some,
        as parts, which are over changes of streams, too."""
        delta = next((node for node in walk(relation) if isinstance(node, Delta) and node.oid in self._origins), None)
        if delta is None:
            return [relation]
        join, place = self._origins[delta.oid]
        sides = kept[join.oid]
        if place is None:
            parts = [self._joined(delta, rows) for rows in self._combinations(sides)]
        else:
            own, alone = _by_place(join.sides[place]), join.sides[place].alone
            assert alone is not None
            is_met = delta.oid == alone.met
            found = self._met(join, sides, place) if is_met else self._passed(join, sides, place)
            parts = [_read(delta, rows, own) for rows in found]
        return [optimise(_instead(relation, delta, part)) for part in parts]

    def _combinations(self, sides: _Sides) -> Iterator[tuple[Rows, ...]]:
        """Of the sides the rows that may be partners since a delta has come: of one side at least those of the
        delta, of the others these or those of before."""
        for are_new in sorted(product((True, False), repeat=len(sides)), key=sum):
            if any(are_new):
                pairs = zip(sides, are_new, strict=True)
                yield tuple(self._coming(side) if is_new else self._standing(side) for side, is_new in pairs)

    def _joined(self, delta: Delta, sides: Sequence[Rows]) -> Relation:
        """Some rows of the sides joined, under the columns of ``delta``."""
        join = self._joins[delta.oid]
        columns = {part: column for rows in sides for part, column in rows.columns.items()}
        joined = Filter(all_combinations([rows.relation for rows in sides]), rename_columns(join.predicate, columns))
        return _read(delta, Rows(joined, columns), dict(zip(join.sources, join.columns, strict=True)))

    def _matching(self, oid: int, sides: _Sides, place: int) -> Iterator[Statement]:
        """What tells of rows of a side that they have partners."""
        alone, predicate = sides[place].alone, self._joins[oid].predicate
        assert alone is not None
        for rows in self._combinations(sides):
            own, other = rows[place], rows[1 - place]
            yield Statement(alone.matched, optimise(with_partner(own, other, predicate, alone)), self.name)

    def _passed(self, join: IntervalJoin, sides: _Sides, place: int) -> tuple[Rows, Rows]:
        """The rows of a side that will have no partner and were there before the delta, and those of the delta."""
        own, other, predicate = sides[place], sides[1 - place], join.predicate
        assert own.alone is not None
        stream = scan_of(other.part)
        before = self._latest_before(stream)
        old = passing_now(self._standing(own), own.passing, before, self._latest_in(stream))
        old = Rows(without_known(old, own.alone, self._fresh), old.columns)
        before, coming = self._latest_before(stream), self._coming(own, timeless=True)
        new = passed_already(coming, own.passing, before, self._latest_in(stream))
        new = without_partner(new, self._standing(other), predicate)
        return (
            without_partner(old, self._coming(other), predicate),
            without_partner(new, self._coming(other), predicate),
        )

    def _met(self, join: IntervalJoin, sides: _Sides, place: int) -> tuple[Rows, ...]:
        """The rows of a side that have their first partner since the delta: those that were there before, and those of
        the delta, beside partners of before and of the delta."""
        own, other, predicate = sides[place], sides[1 - place], join.predicate
        assert own.alone is not None
        old = self._standing(own)
        old = Rows(without_known(old, own.alone, self._fresh), old.columns)
        later = without_partner(self._coming(own), self._standing(other), predicate)
        return (
            among_partners(old, self._coming(other), predicate),
            among_partners(self._coming(own), self._standing(other), predicate),
            among_partners(later, self._coming(other), predicate),
        )

    def _latest_before(self, stream: Scan) -> Aggregate:
        """The latest time of a stream before the delta: one row."""
        (mark,) = self._groupings.plan(self._latest_of(stream)).sources
        (latest,) = mark.columns
        own, top = self._fresh.copy(latest), self._fresh.copy(latest)
        snapshot = Snapshot(mark.trace, (own,), (stored_name(latest),))
        return Aggregate(snapshot, (), ((top, AggregateCall("max", (ColumnRef(own),), latest.type)),))

    def _latest_in(self, stream: Scan) -> Aggregate:
        """The latest time of a stream in the delta: one row."""
        source = self._watermarks[stream.oid].column
        column = stream.columns[stream.sources.index(source)]
        own, top = self._fresh.copy(column), self._fresh.copy(column)
        delta = Delta(stream.oid, stream.name, (own,), (source,))
        return Aggregate(delta, (), ((top, AggregateCall("max", (ColumnRef(own),), column.type)),))

    def _standing(self, side: _Kept) -> Rows:
        """The rows of a side that were there before the delta."""
        columns = {part: self._fresh.copy(column) for part, column in side.columns.items()}
        sources = tuple(map(stored_name, side.columns.values()))
        return Rows(Snapshot(side.state.name, tuple(columns.values()), sources), columns)

    def _coming(self, side: _Kept, timeless: bool = False) -> Rows:
        """The rows of a side that the delta adds; also those without a time, if these count."""
        relation, columns = self._fresh.rename(self._arrived(side, timeless))
        return Rows(relation, {part: columns[part] for part in side.columns})

    def _arrived(self, side: _Kept, timeless: bool = False) -> Relation:
        """The delta's part, of the rows in time."""
        scan = scan_of(side.part)
        if side.horizon is None:
            return over(side.part, Delta(scan.oid, scan.name, scan.columns, scan.sources))
        return over(side.part, self._in_time(self._delta(scan), side.horizon, timeless))

    def _delta(self, scan: Scan) -> Delta:
        """The changes of a stream, with their LSNs."""
        place = self._fresh.column(LSN, INT8, False)
        return Delta(scan.oid, scan.name, (*scan.columns, place), (*scan.sources, LSN))

    def _in_time(self, delta: Delta, horizon: Horizon, timeless: bool = False) -> Relation:
        (mark,) = self._groupings.plan(horizon.latest).sources
        return in_time(delta, horizon, mark.trace, mark.columns[0], self._fresh, timeless)

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


def _each_beside(sides: tuple[Side, ...]) -> Iterator[tuple[Side, tuple[Side, ...]]]:
    """Each side with the others."""
    for place, side in enumerate(sides):
        yield side, (*sides[:place], *sides[place + 1 :])


def _by_place(side: Side) -> dict[str, Column]:
    """The columns of a side's part, as the stream of its unmatched rows calls them."""
    return {f"c{place}": column for place, column in enumerate(side.part.columns)}


def _read(delta: Delta, rows: Rows, own: Mapping[str, Column]) -> Relation:
    """Rows under the columns of ``delta``, whose sources are ``own`` columns of parts; a place in the log is 0."""
    values: list[tuple[Column, Scalar]] = [
        (column, ColumnRef(rows.columns[own[source]]) if source in own else Literal(0, INT8))
        for column, source in zip(delta.columns, delta.sources, strict=True)
    ]
    return Project(rows.relation, tuple(values))


def _matched(alone: Alone) -> State:
    """The state that tells which rows have partners."""
    columns = tuple(alone.columns.values())
    return State(alone.matched, "distinct", columns, columns)


def _expiries(side: _Kept) -> Iterator[Expiry]:
    """When rows leave the states of a side."""
    if side.until is not None:
        yield side.until
        if side.alone is not None and side.time is not None:
            yield replace(side.until, state=side.alone.matched, column=side.alone.columns[side.time])


def _instead(relation: Relation, delta: Delta, part: Relation) -> Relation:
    """A relation that reads something else in the place of a delta."""
    found: Relation = transform(relation, lambda node: part if node == delta else node)
    return found

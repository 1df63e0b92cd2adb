"""One grouping of a stream as states, and the statements that fill them.

    state main     one row per group      Aggregate(pipeline, keys, the aggregates' state columns)
    child state    distinct values        Aggregate(pipeline, keys and values, nothing)
    child state    collected values       Project(pipeline, keys, values and arrival order)

Each arm of a UNION ALL below the grouping has states of its own; an arm without a stream is a static with the same
columns, and one over the states of other groupings is computed at each read. How the groups are read back is
``planner.incremental.methods.split.reading``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.types import INT8
from planner.algebra.construction import Fresh, filtered
from planner.algebra.nodes import Aggregate, AggregateCall, Column, ColumnRef, Literal, Project, Relation, Scalar
from planner.algebra.nulls import never_null
from planner.algebra.partial_aggregates import Child, Split, StateColumn, split
from planner.algebra.signature import key_of
from planner.incremental.lateness import Horizon, in_time
from planner.incremental.methods.method import Gathered
from planner.incremental.methods.split.regions import Branches, OfDelta, Regions
from planner.incremental.methods.split.statics import Statics
from planner.incremental.names import Names
from planner.incremental.programs.program import State, StateKind, Statement
from planner.rules import optimise


class Source(Struct, frozen=True):
    """A trace that holds rows of a state: the state itself, or a static for an arm without a stream.

    Without a trace they are those of ``computed``, which reads the states of other groupings."""

    trace: str
    columns: tuple[Column, ...]
    computed: Relation | None = None


class Values(Struct, frozen=True):
    """A child state: what it keeps, where, and the aggregates over it."""

    child: Child
    sources: tuple[Source, ...]
    calls: tuple[tuple[Column, AggregateCall], ...]


class Grouping(Struct, frozen=True):
    """A grouping taken apart."""

    aggregate: Aggregate
    splits: dict[Column, Split]
    main: tuple[StateColumn, ...]
    sources: tuple[Source, ...]  # of main; none where one group has only child states
    children: tuple[Values, ...]


class Groupings:
    """Plans groupings, each once, into states and statements of one program."""

    def __init__(
        self,
        statics: Statics,
        regions: Regions,
        fresh: Fresh,
        gathered: Gathered,
        horizons: Mapping[Column, Horizon] | None = None,
    ) -> None:
        """``gathered`` gets the states and statements; ``horizons``, by a group key, tell of groupings that leave out
        rows which come too late."""
        self._gathered = gathered
        self._horizons = horizons or {}
        self._statics = statics
        self._regions = regions
        self._fresh = fresh
        self._found: dict[tuple[Column, ...], Grouping] = {}

    @property
    def planned(self) -> tuple[Grouping, ...]:
        """The groupings so far."""
        return tuple(self._found.values())

    def plan(self, aggregate: Aggregate) -> Grouping:
        """The grouping's states; one that was planned before shares them (``share.share_groupings``). Where both are
        above another grouping, their inputs read that one's states under columns of their own."""
        if aggregate.columns not in self._found:
            keep = self._in_time(aggregate)  # first: it may plan another
            name = f"state_{len(self._found) + 1}"
            self._found[aggregate.columns] = self._plan(aggregate, name, keep)
        found = self._found[aggregate.columns]
        assert found.aggregate == aggregate or key_of(found.aggregate) == key_of(aggregate)
        return found

    def _in_time(self, aggregate: Aggregate) -> OfDelta | None:
        """What leaves out rows that come too late for the grouping."""
        horizon = next((self._horizons[column] for column, _ in aggregate.keys if column in self._horizons), None)
        if horizon is None:
            return None
        (known,) = self.plan(horizon.latest).sources
        return lambda delta: in_time(delta, horizon, known.trace, known.columns[0], self._fresh)

    def _plan(self, aggregate: Aggregate, name: str, keep: OfDelta | None) -> Grouping:
        known = never_null(aggregate.input)
        parts = {column: split(call, known) for column, call in aggregate.aggregates}
        splits = {column: part for column, part in parts.items() if isinstance(part, Split)}
        main = distinct_columns(splits)
        arms = _Arms(self._regions.branches(aggregate.input, keep))
        needs_main = bool(main) or bool(aggregate.keys)
        sources = tuple(self._main_sources(aggregate, main, arms, name)) if needs_main else ()
        children: list[Values] = []
        for number, (child, calls) in enumerate(_children(parts), 1):
            child_name = f"{name}_{'values' if child.collects else 'distinct'}_{number}"
            children.append(Values(child, tuple(self._child_sources(aggregate, child, arms, child_name)), calls))
        return Grouping(aggregate, splits, main, sources, tuple(children))

    def _main_sources(
        self, aggregate: Aggregate, main: tuple[StateColumn, ...], arms: _Arms, name: str
    ) -> Iterator[Source]:
        for arm, arm_name in arms.named(name):
            keys, names = self._key_columns(aggregate)
            columns = [
                (self._fresh.column(names.unique(item.name), item.fill.type, item.fill.function != "count"), item)
                for item in main
            ]
            fills = tuple((column, item.fill) for column, item in columns)
            relation = Aggregate(arm.relation, keys, fills)
            merge = tuple((column, item.merge(column)) for column, item in columns)
            key = tuple(column for column, _ in keys)
            yield self._source(arm, State(arm_name, "aggregate", relation.columns, key, merge), relation)

    def _child_sources(self, aggregate: Aggregate, child: Child, arms: _Arms, name: str) -> Iterator[Source]:
        for arm, arm_name in arms.named(name):
            keys, names = self._key_columns(aggregate)
            values = tuple((self._fresh.column(names.unique(_name(item)), item.type), item) for item in child.values)
            below = filtered(arm.relation, child.only)
            relation: Relation
            kind: StateKind
            if child.collects:
                arrival = tuple((self._fresh.copy(column), value) for column, value in arm.arrival)
                relation, kind = Project(below, (*keys, *values, *arrival)), "concatenate"
                key = tuple(column for column, _ in keys)
            else:
                relation, kind = Aggregate(below, (*keys, *values), ()), "distinct"
                key = relation.columns
            yield self._source(arm, State(arm_name, kind, relation.columns, key), relation)

    def _key_columns(self, aggregate: Aggregate) -> tuple[tuple[tuple[Column, Scalar], ...], Names]:
        """The group key as columns of a new state, uniquely named."""
        names = Names()
        keys = tuple(
            (replace(self._fresh.copy(column), name=names.unique(column.name)), value)
            for column, value in aggregate.keys
        )
        return keys, names

    def _source(self, arm: _Arm, state: State, relation: Relation) -> Source:
        """The state with its statement, or the static in its place."""
        if arm.is_upper:
            return Source("", relation.columns, relation)
        if arm.stream is None:
            return Source(*self._statics.source(relation))
        self._gathered.states.append(state)
        self._gathered.statements.append((arm.stream, Statement(state.name, optimise(relation))))
        return Source(state.name, state.columns)


class _Arm(Struct, frozen=True):
    """One arm of a grouping's input: its pipeline, its stream if any, and its rows' order of arrival."""

    relation: Relation
    stream: int | None
    arrival: tuple[tuple[Column, Scalar], ...]
    is_upper: bool = False


class _Arms:
    """The arms of a grouping's input; nearly always one."""

    def __init__(self, branches: Branches) -> None:
        self._arms = [
            _Arm(item.relation, item.stream, tuple((column, ColumnRef(column)) for column in item.arrival))
            for item in branches.streams
        ]
        zero = Literal(0, INT8)
        first = tuple((column, zero) for column in branches.streams[0].arrival)
        self._arms += [_Arm(relation, None, first) for relation in branches.static]
        self._arms += [_Arm(relation, None, first, True) for relation in branches.upper]

    def named(self, name: str) -> Iterator[tuple[_Arm, str]]:
        """The arms with a state's name for each."""
        for number, arm in enumerate(self._arms, 1):
            yield arm, name if number == 1 else f"{name}_arm_{number}"


def distinct_columns(splits: dict[Column, Split]) -> tuple[StateColumn, ...]:
    """The state columns of all aggregates, equal fills once."""
    found: dict[Hashable, StateColumn] = {}
    for part in splits.values():
        for item in part.columns:
            found.setdefault(item.key, item)
    return tuple(found.values())


def _children(
    parts: dict[Column, Split | Child],
) -> Iterator[tuple[Child, tuple[tuple[Column, AggregateCall], ...]]]:
    """The child states with the aggregates over each; equal values are kept once, and all of the same rows in one."""
    found: dict[Hashable, list[tuple[Column, Child]]] = {}
    for column, part in parts.items():
        if isinstance(part, Child):
            values = () if part.collects else tuple(map(key_of, part.values))
            found.setdefault((part.collects, values, tuple(map(key_of, part.only))), []).append((column, part))
    for members in found.values():
        stored = {key_of(value): value for _, part in members for value in part.values}
        child = replace(members[0][1], values=tuple(stored.values()))
        yield child, tuple((column, part.call) for column, part in members)


def _name(scalar: Scalar) -> str:
    return scalar.column.name if isinstance(scalar, ColumnRef) else "value"

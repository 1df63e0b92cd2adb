"""The rows of streams that no grouping takes in are collected.

    state rows    Project(Filter(Delta stream))        its rows one after the other; they never merge

So a stream meets tables, other streams and itself anywhere, and stands below windows, LIMIT and recursion: the final
relation reads the state where the query reads the stream. Groupings that split maintenance takes in stay, since their
states are smaller. What filters and projects a stream's rows by themselves is done before they are kept; a stream that
a query reads in several ways is kept once, with the columns that these use.

WITH (tables = 'arrival') a stream's rows are joined with tables before they are kept, and each such part of a query is
kept by itself:

    state rows    Project(Join(Delta stream, Snapshot static))

There a table that meets rows that are kept already has no moment at which it is read, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.errors import unsupported
from catalog.values.types import BOOL
from planner.algebra.construction import (
    SUBQUERIES,
    Fresh,
    conjunction,
    conjuncts,
    filtered,
    has_subquery,
    keep_columns,
    volatility,
)
from planner.algebra.nodes import (
    Column,
    ColumnRef,
    Delta,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    Scalar,
    ScalarSubquery,
    Scan,
    Snapshot,
)
from planner.algebra.signature import key_of
from planner.algebra.walk import RELATIONS, descend, free_columns, kinds_of, transform, used_columns, walk
from planner.incremental.checks import CORRELATED, UNGROUPED, obstacle
from planner.incremental.methods.method import Gathered
from planner.incremental.methods.split.regions import Regions
from planner.incremental.methods.stream_parts import over, scan_of, with_column
from planner.incremental.names import Names, stored_name
from planner.incremental.programs.program import Expiry, MethodName, State, Statement
from planner.incremental.properties import Kinds, is_grouping
from planner.rules import optimise

_LEAVES: Final = kinds_of(Snapshot)
_NO_TIMES: Final[Mapping[int, str]] = {}


class Collected(Struct, frozen=True):
    """A stream whose rows a view keeps, why, in words, and whether it keeps them for ever. With others, it is
    their joined rows that it keeps."""

    stream: str
    reason: str
    grows: bool = True
    others: tuple[str, ...] = ()


class CollectedRows:
    """Collects the rows of the streams of one plan."""

    name: ClassVar[MethodName] = "collect"

    def __init__(self, fresh: Fresh, times: Mapping[int, str] = _NO_TIMES, joined: bool = False) -> None:
        """``times``: the columns, by the streams' oids, by which rows are kept for a while. ``joined``: rows are joined
        with tables before they are kept."""
        self._fresh = fresh
        self._times = times
        self._joined = joined
        #: The parts of the plan that are kept, with a column of the state for each of theirs.
        self._kept: dict[str, tuple[Relation, tuple[Column, ...]]] = {}
        #: The streams of states that rows leave, and the states' columns of time.
        self.timed: dict[str, tuple[Scan, Column]] = {}

    def below_groupings(self, relation: Relation) -> tuple[Relation, tuple[Collected, ...]]:
        """The relation over collected rows, but for the groupings that split maintenance takes in."""
        aside = _Aside(grouped=True, joined=self._joined)
        return self._collected(relation, aside, obstacle(relation, Kinds()) or UNGROUPED)

    def everywhere(self, relation: Relation) -> tuple[Relation, tuple[Collected, ...]]:
        """The relation over collected rows alone."""
        return self._collected(relation, _Aside(grouped=False, joined=self._joined), CORRELATED)

    def _collected(self, relation: Relation, aside: _Aside, reason: str) -> tuple[Relation, tuple[Collected, ...]]:
        """``reason``: why other streams than those below groupings are collected."""
        outside = descend(relation, aside.change)
        if self._joined and aside.rows:
            _refuse_tables(outside)
        stands = dict(aside.groupings)
        by_stream: dict[int, dict[str, Relation]] = {}
        for name, part in aside.rows.items():
            by_stream.setdefault(scan_of(part).oid, {})[name] = part
        for parts in by_stream.values():
            stands.update(self._read(parts))
        found: Relation = transform(
            outside, lambda node: stands.get(node.trace, node) if isinstance(node, Snapshot) else node, _LEAVES
        )
        streams = dict.fromkeys(scan_of(part).name for part in aside.rows.values())
        return found, tuple(Collected(name, aside.reasons.get(name, reason)) for name in streams)

    def _read(self, parts: dict[str, Relation]) -> Iterator[tuple[str, Relation]]:
        """What reads the parts of one stream: equal parts are a state themselves, others are computed from one."""
        first, *others = parts.values()
        if all(key_of(part) == key_of(first) for part in others):
            state = self._state(first)
            for name, part in parts.items():
                yield name, self._read_by(state, part.columns, range(len(part.columns)))
            return
        if any(map(_is_joined, parts.values())):
            for name, part in parts.items():
                yield name, self._read_by(self._state(part), part.columns, range(len(part.columns)))
            return
        scans = [scan_of(part) for part in parts.values()]
        columns = {source: column for scan in scans for source, column in zip(scan.sources, scan.columns, strict=True)}
        copies = tuple(map(self._fresh.copy, columns.values()))
        state = self._state(Scan(scans[0].oid, scans[0].name, scans[0].kind, copies, tuple(columns), scans[0].since))
        places = {source: place for place, source in enumerate(columns)}
        for (name, part), scan in zip(parts.items(), scans, strict=True):
            leaf = self._read_by(state, scan.columns, [places[source] for source in scan.sources])
            yield name, over(part, leaf)

    def _state(self, part: Relation) -> _Rows:
        stream, names = scan_of(part), Names()
        source = self._times.get(stream.oid)
        if source is not None:
            part = with_column(part, source, self._fresh)
        columns = tuple(self._fresh.column(names.unique(item.name), item.type, item.nullable) for item in part.columns)
        found = _Rows(f"rows_{len(self._kept) + 1}", columns)
        self._kept[found.trace] = part, columns
        if source is not None:
            self.timed[found.trace] = stream, columns[-1]
        return found

    def _read_by(self, state: _Rows, columns: tuple[Column, ...], places: Iterable[int]) -> Relation:
        """The state's rows, each column that at a place of the state; a state that rows leave is read with its time."""
        if state.trace not in self.timed:
            return state.read(columns, places)
        time = self._fresh.copy(state.columns[-1])
        return keep_columns(state.read((*columns, time), (*places, len(state.columns) - 1)), columns)

    def gather(self, gathered: Gathered, relations: Iterable[Relation], regions: Regions | None = None) -> None:
        """Adds the states with the columns that relations read, and the statements that fill them; ``regions`` join
        rows with tables."""
        used: dict[str, set[str]] = {}
        for item in (node for relation in relations for node in walk(relation) if isinstance(node, Snapshot)):
            used.setdefault(item.trace, set()).update(item.sources)
        for name in (item for item in self._kept if item in used):
            stream, relation = self._filled(name, used[name], regions)
            gathered.states.append(State(name, "concatenate", relation.columns, ()))
            gathered.statements.append((stream, Statement(name, relation, self.name)))

    def lasting(self, states: Iterable[State]) -> list[State]:
        """Of some states those with collected rows that no retention bounds."""
        return [state for state in states if state.name in self._kept and state.name not in self.timed]

    def told(self, collected: Iterable[Collected], expiries: Iterable[Expiry]) -> tuple[Collected, ...]:
        """The streams, with those whose rows leave all states marked."""
        bounded = {expiry.state for expiry in expiries}
        growing = {scan_of(part).name for name, (part, _) in self._kept.items() if name not in bounded}
        return tuple(replace(item, grows=item.stream in growing) for item in collected)

    def _filled(self, name: str, used: set[str], regions: Regions | None) -> tuple[int, Relation]:
        """The stream of a state, and what fills its columns that are used; one at least, since rows are counted."""
        part, columns = self._kept[name]
        stream = scan_of(part)
        pairs = zip(columns, map(ColumnRef, part.columns), strict=True)
        outputs: list[tuple[Column, Scalar]] = [
            (column, below) for column, below in pairs if stored_name(column) in used
        ]
        if not outputs:
            outputs = [(self._fresh.column("row", BOOL, False), Literal(True, BOOL))]
        delta = Delta(stream.oid, stream.name, stream.columns, stream.sources)
        rows = over(part, delta) if regions is None or not _is_joined(part) else regions.branch(part).relation
        return stream.oid, optimise(Project(rows, tuple(outputs)))


class _Rows(Struct, frozen=True):
    """A state of rows, by its name and columns."""

    trace: str
    columns: tuple[Column, ...]

    def read(self, columns: tuple[Column, ...], places: Iterable[int]) -> Snapshot:
        """The rows, each column that at a place of the state."""
        return Snapshot(self.trace, columns, tuple(stored_name(self.columns[place]) for place in places))


class _Aside:
    """Takes out of a plan, from the top, the groupings that stay and the parts that read one stream by itself; a leaf
    stands for each. With ``joined`` these parts may join the stream with tables."""

    def __init__(self, grouped: bool, joined: bool = False) -> None:
        self._grouped = grouped
        self._joined = joined
        self._kinds = Kinds()
        self.groupings: dict[str, Relation] = {}
        self.rows: dict[str, Relation] = {}
        #: Why a grouping of a stream, by the stream's name, does not stay.
        self.reasons: dict[str, str] = {}

    def change(self, node: Any) -> Any:
        """The leaf that stands for a node, or the node, whose inputs follow."""
        if not isinstance(node, RELATIONS):
            return node
        if self._grouped and is_grouping(node, self._kinds):
            reason = obstacle(node, self._kinds)
            if reason is None:
                return self._leaf(node, self.groupings)
            for item in walk(node):
                if isinstance(item, Scan) and item.arrives:
                    self.reasons.setdefault(item.name, reason)
        if self._is_by_itself(node):
            return self._leaf(node, self.rows)
        return _split(node) if isinstance(node, Filter) and self._is_by_itself(node.input) else node

    def _is_by_itself(self, relation: Relation) -> bool:
        """Whether a relation is a stream's rows, filtered and projected by themselves, whenever this is done; where
        tables may be joined, each row with these as they stand when it comes."""
        node = relation
        while not isinstance(node, Scan):
            own: list[Scalar]
            match node:
                case Filter():
                    own, below = [node.predicate], node.input
                case Project():
                    own, below = [value for _, value in node.outputs], node.input
                case Join(kind="inner" | "left" | "semi" | "anti") if self._joined and _is_of_tables(node.right):
                    own, below = [] if node.predicate is None else [node.predicate], node.left
                case _:
                    return False
            if not all(_is_steady(scalar, self._joined) for scalar in own):
                return False
            node = below
        return node.arrives and not free_columns(relation)

    def _leaf(self, node: Relation, taken: dict[str, Relation]) -> Snapshot:
        name = f"aside_{len(self.groupings) + len(self.rows)}"
        taken[name] = node
        return Snapshot(name, node.columns, tuple(map(stored_name, node.columns)))


def _split(node: Filter) -> Filter:
    """A filter above one with those of its conditions that see a row alone, whenever they are evaluated."""
    given = set(node.input.columns)
    own = [part for part in conjuncts(node.predicate) if _is_steady(part) and used_columns(part) <= given]
    others = conjunction(part for part in conjuncts(node.predicate) if part not in own)
    return node if others is None or not own else Filter(filtered(node.input, own), others)


def _is_steady(scalar: Scalar, joined: bool = False) -> bool:
    """Whether an expression reads no other relation, or tables alone where these may be joined, and has the same value
    whenever it is evaluated."""
    if volatility(scalar) != "immutable":
        return False
    nested = (item for item in walk(scalar) if isinstance(item, SUBQUERIES))
    if joined:
        return all(isinstance(item, ScalarSubquery) and _is_of_tables(item.relation) for item in nested)
    return not has_subquery(scalar)


def _is_of_tables(relation: Relation) -> bool:
    """Whether a relation has equal rows whenever its tables have."""
    if free_columns(relation) or volatility(relation) != "immutable":
        return False
    return all(node.kind == "table" for node in walk(relation) if isinstance(node, Scan))


def _is_joined(part: Relation) -> bool:
    """Whether a part reads more than its stream."""
    return any(isinstance(node, Join | ScalarSubquery) for node in walk(part))


def _refuse_tables(outside: Relation) -> None:
    """Raises 0A000 for a table, or a view, that meets rows which are kept already."""
    scan = next((node for node in walk(outside) if isinstance(node, Scan) and not node.arrives), None)
    if scan is not None:
        what = (
            f"{scan.kind if scan.kind == 'view' else 'table'} \"{scan.name}\" in this query WITH (tables = 'arrival')"
        )
        rule = "Each row of a stream meets tables when it is committed; here rows meet it that are in the view already."
        instead = "Join one stream with the table in a view of its own, and read that view."
        raise unsupported(what, instead, rule=rule)

"""Programs: how one continuous view is maintained, as data.

A program is what the planner hands to the engines (architecture, section 3): traces that it owns (states), statements
that add runs to them, and the relation that makes the view's rows from the states. Plain algebra throughout, so both
engines run it; it serialises to JSON and back (``planner.algebra.serialize``), which is what manifests store.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from planner.algebra.nodes import AggregateCall, Column, Delta, Join, Relation, Snapshot
from planner.algebra.walk import Node, children, walk

#: How two rows of equal key become one. 'concatenate' keeps both (value states in arrival order).
StateKind = Literal["aggregate", "distinct", "concatenate"]


class State(Struct, frozen=True):
    """A trace that the program owns.

    ``aggregate``: one row per ``key``; the other columns merge by ``merge[i]``, each an AggregateCall over a reference
    to that very column (sum, min, max, bool_and, bool_or). ``distinct``: ``key`` is all columns, duplicates vanish.
    ``concatenate``: all rows stay. Without GROUP BY there is one group.
    """

    name: str
    kind: StateKind
    columns: tuple[Column, ...]
    key: tuple[Column, ...]
    merge: tuple[tuple[Column, AggregateCall], ...] = ()


class Static(Struct, frozen=True):
    """A static pipeline's result, evaluated once at the view's creation and kept as one run (thesis 4.2.2).

    With ``arrival`` it is evaluated again whenever its tables change, and nothing keeps it: each row of a stream meets
    it as of the row's own LSN.
    """

    name: str
    relation: Relation
    columns: tuple[Column, ...]
    arrival: bool = False


#: The maintenance method that made a statement (``planner.incremental.methods``); 'late' counts rows that come too late
#: for one.
MethodName = Literal["split", "collect", "interval", "late"]


class Statement(Struct, frozen=True):
    """``target`` trace += ``relation``, as ``method`` plans it.

    The relation's leaves are Delta of the path's inputs, Snapshot of statics, and Snapshot of states: a state as it was
    before the path's interval. Where one of its deltas is empty, it adds nothing (``needed_deltas``).
    """

    target: str
    relation: Relation
    method: MethodName = "split"


class Path(Struct, frozen=True):
    """Statements that run in order over one LSN interval and commit together.

    ``id`` names the path within its program: the manifest keeps the path's one frontier and its runs under it.
    ``inputs`` are the oids of the relations whose changes the statements read.
    """

    id: int
    inputs: tuple[int, ...]
    statements: tuple[Statement, ...]


class Mark(Struct, frozen=True):
    """The latest time of a stream, column ``latest`` of state ``watermark``, less ``age`` microseconds."""

    watermark: str
    latest: Column
    age: int


class Expiry(Struct, frozen=True):
    """Rows of ``state`` that no result needs any more: whose ``column`` lies ``age`` microseconds or more before the
    ``latest`` of state ``watermark``, and at or before all marks that ``also`` count, or is NULL. These only grow, so
    the rows need not be kept.

    Without a watermark (``''``) the clock counts, and ``latest`` is of no account. With a ``gap`` it is the last row of
    the row's session that lies so long before; ``others`` are the columns beside the time within which rows are of one
    session."""

    state: str
    column: Column
    watermark: str
    latest: Column
    age: int
    gap: int | None = None
    others: tuple[Column, ...] = ()
    also: tuple[Mark, ...] = ()

    @property
    def is_by_times(self) -> bool:
        """Whether the times of the rows and the latest ones of streams alone tell which rows go."""
        return not self.by_clock and self.gap is None

    @property
    def marks(self) -> tuple[Mark, ...]:
        """All that count; none where the clock does."""
        return () if self.by_clock else (Mark(self.watermark, self.latest, self.age), *self.also)

    @property
    def by_clock(self) -> bool:
        """Whether the clock decides, and no watermark."""
        return not self.watermark


class Borrowed(Struct, frozen=True):
    """A trace of a view that has left its home: what the view reads there of ``table`` (its oid; it is ``called`` so)
    whenever it is read. The columns are called as the table's."""

    name: str
    table: int
    called: str
    columns: tuple[Column, ...]


class Program(Struct, frozen=True):
    """One continuous view: ``final`` makes its rows, ``columns`` in order, from Snapshots of states and current tables.

    ``point_key``: output columns that are exactly the single group key of the one state under a final of only
    projections and filters, so that a point read may go to a key index; empty where there is none. ``expiries``: what
    may be taken out of states. ``borrowed``: what stands for current tables where the view is not at its home
    (``planner/incremental/programs/lending``). ``live``: tables that the query joins below a grouping are
    read by the final relation (``planner/incremental/rewrites/live_tables``).
    """

    statics: tuple[Static, ...]
    states: tuple[State, ...]
    paths: tuple[Path, ...]
    final: Relation
    columns: tuple[Column, ...]
    point_key: tuple[Column, ...] = ()
    expiries: tuple[Expiry, ...] = ()
    borrowed: tuple[Borrowed, ...] = ()
    live: bool = False

    @property
    def kept_statics(self) -> tuple[Static, ...]:
        """The statics that are evaluated once."""
        return tuple(static for static in self.statics if not static.arrival)

    @property
    def arrival_statics(self) -> tuple[Static, ...]:
        """The statics that rows meet as of their own LSNs."""
        return tuple(static for static in self.statics if static.arrival)

    @property
    def inputs(self) -> tuple[int, ...]:
        """The oids of the relations whose changes its paths read, each once."""
        return tuple(dict.fromkeys(oid for path in self.paths for oid in path.inputs))


def without_traces(relation: Relation) -> Program:
    """A program without traces, whose rows are a relation's."""
    return Program((), (), (), relation, relation.columns)


def paths_of(statements: Iterable[tuple[tuple[int, ...], Statement]]) -> tuple[Path, ...]:
    """One path for each input: all statements over its changes move together. ``statements`` come with the oids of
    their inputs; those of one that reads the changes of several make one path of all statements over any of them."""
    found = tuple(statements)
    together: dict[int, tuple[int, ...]] = {}
    for inputs, _ in found:
        joined = tuple(dict.fromkeys(other for oid in inputs for other in together.get(oid, (oid,))))
        together.update(dict.fromkeys(joined, joined))
    gathered: dict[tuple[int, ...], list[Statement]] = {}
    for inputs, statement in found:
        gathered.setdefault(together[inputs[0]], []).append(statement)
    return tuple(Path(place, inputs, readers_first(own)) for place, (inputs, own) in enumerate(gathered.items()))


def readers_first(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """The statements in their order, but a statement that reads what another one fills comes before that one, so that
    it reads the state of before the interval."""
    found = tuple(statements)
    read: dict[str, set[str]] = {}
    for item in found:
        read.setdefault(item.target, set()).update(states_read((item,)))
    depths: dict[str, int] = {}

    def depth(target: str) -> int:
        """How many states follow on one another that are filled behind a state."""
        if target not in depths:
            behind = (name for name in read[target] if name in read and name != target)
            depths[target] = max((1 + depth(name) for name in behind), default=0)
        return depths[target]

    return tuple(sorted(found, key=lambda item: depth(item.target), reverse=True))


def bounds_joins(program: Program) -> bool:
    """Whether rows leave the states of joined streams by the streams' times (``methods.interval``)."""
    return any(item.method == "interval" for path in program.paths for item in path.statements)


def needed_deltas(relation: Relation) -> frozenset[int]:
    """The oids of the inputs without whose changes a statement's relation adds nothing: of all whose deltas it reads,
    but for the rows that others must not meet, or may."""
    found: set[int] = set()
    stack: list[Node] = [relation]
    while stack:
        node = stack.pop()
        if isinstance(node, Delta):
            found.add(node.oid)
        one_sided = isinstance(node, Join) and node.kind in ("left", "anti")
        stack.extend([node.left] if one_sided and isinstance(node, Join) else children(node))
    return frozenset(found)


def states_read(statements: Iterable[Statement]) -> set[str]:
    """The traces whose snapshots statements read."""
    nodes = (node for statement in statements for node in walk(statement.relation))
    return {node.trace for node in nodes if isinstance(node, Snapshot)}

"""What lies below a grouping: the stream's pipeline, joined with static results.

Owns the step from a grouping's input to statements' relations, whose leaves are Delta(stream) and Snapshot(static):

    Join                         Join                        each static component is evaluated once, at the view's
      Join                         Join                      creation (thesis 4.2.2, 4.2.4), and is the build side;
        customer       ->            Delta lineitem          the stream is the probe side of all joins
        orders                       Snapshot static_1       = customer join orders
      lineitem                     Snapshot static_2         = part
      part

The static relations of a region of inner joins are put together by the equalities between them, but two that the stream
meets by equalities of its own stay apart, and so does one that hangs on two of them: their product may be far larger
than each (TPC-H query 5, customer and supplier by nation). Their equality is tested where the stream has joined them.
UNION ALL below a grouping splits the pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from catalog.types import INT8
from planner.algebra import Delta, Filter, Join, Project, Relation, Scan, SetOperation, Snapshot
from planner.expression import Call, Column, ColumnRef, Scalar, ScalarSubquery
from planner.incremental.equal import signature
from planner.incremental.names import Names, stored_name
from planner.pipelines import Kinds
from planner.program import Static
from planner.rules import optimise
from planner.rules.support import SUBQUERIES, Fresh, conjunction, conjuncts, filtered
from planner.walk import descend, used_columns, walk

LSN: Final = "__lsn"
ORDINAL: Final = "__ordinal"
Build = Callable[[Relation], Relation]


@dataclass(frozen=True, slots=True)
class Branch:
    """One stream's part of a grouping's input; ``arrival`` are the columns of its rows' LSN and ordinal."""

    stream: int
    relation: Relation
    arrival: tuple[Column, Column]


@dataclass(frozen=True, slots=True)
class _Found:
    """A static relation: its trace's name and columns, one for each of the relation's."""

    name: str
    columns: tuple[Column, ...]
    relation: Relation


class Statics:
    """The static relations that a program's statements read, each once."""

    def __init__(self, scope: str, fresh: Fresh) -> None:
        self._scope = scope
        self._fresh = fresh
        self._found: dict[object, _Found] = {}

    def snapshot(self, relation: Relation) -> Snapshot:
        """The leaf that stands for a static relation, with its columns."""
        found = self._of(relation)
        return Snapshot(found.name, relation.columns, tuple(map(stored_name, found.columns)))

    def source(self, relation: Relation) -> tuple[str, tuple[Column, ...]]:
        """The name and stored columns of a static relation."""
        found = self._of(relation)
        return found.name, found.columns

    def _of(self, relation: Relation) -> _Found:
        key, _ = signature(relation)
        if key not in self._found:
            names = Names()
            columns = tuple(
                replace(self._fresh.copy(column), name=names.unique(column.name)) for column in relation.columns
            )
            self._found[key] = _Found(f"{self._scope}_static_{len(self._found) + 1}", columns, relation)
        return self._found[key]

    def planned(self, statements: Iterable[Relation]) -> tuple[Static, ...]:
        """The statics that statements still read, with only the columns that they read."""
        used: dict[str, set[str]] = {}
        for statement in statements:
            for node in walk(statement):
                if isinstance(node, Snapshot):
                    used.setdefault(node.trace, set()).update(node.sources)
        return tuple(_planned(item, used[item.name]) for item in self._found.values() if item.name in used)


def _planned(found: _Found, used: set[str]) -> Static:
    pairs = zip(found.columns, found.relation.columns, strict=True)
    outputs = tuple((column, ColumnRef(below)) for column, below in pairs if stored_name(column) in used)
    relation = optimise(Project(found.relation, outputs))
    return Static(found.name, relation, relation.columns)


class Regions:
    """Turns relations below groupings into branches."""

    def __init__(self, statics: Statics, fresh: Fresh, kinds: Kinds) -> None:
        self._statics = statics
        self._fresh = fresh
        self._kinds = kinds

    def branches(self, relation: Relation) -> tuple[list[Branch], list[Relation]]:
        """The stream pipelines of a grouping's input, and its static parts (arms of a UNION ALL without a stream)."""
        streams: list[Branch] = []
        static: list[Relation] = []
        pending = [relation]
        while pending:
            arm = pending.pop()
            if self._kinds.of(arm) == "static":
                static.append(arm)
                continue
            arms = self._arms(arm)
            if arms is None:
                streams.append(self._branch(arm))
            else:
                pending.extend(reversed(arms))
        return streams, static

    def _arms(self, relation: Relation) -> list[Relation] | None:
        """The relation over either input of the first UNION ALL on the stream's way down; None where there is none."""
        builds: list[Build] = []
        node = relation
        while not isinstance(node, Scan):
            if isinstance(node, SetOperation):
                pairs = [zip(node.columns, side.columns, strict=True) for side in (node.left, node.right)]
                outputs = [tuple((column, ColumnRef(below)) for column, below in pair) for pair in pairs]
                arms = (Project(side, output) for side, output in zip((node.left, node.right), outputs, strict=True))
                return [_built(builds, arm) for arm in arms]
            builds.append(self._rebuild(node))
            node = self._streamward(node)
        return None

    def _streamward(self, node: Relation) -> Relation:
        """The input that contains the stream."""
        match node:
            case Join():
                return node.left if self._kinds.of(node.left) == "stream" else node.right
            case Filter() | Project():
                return node.input
            case _:
                raise AssertionError(f"{type(node).__name__} in a stream pipeline")

    def _rebuild(self, node: Relation) -> Build:
        """The same operator over another stream side."""
        match node:
            case Join() if self._kinds.of(node.left) == "stream":
                return lambda below: replace(node, left=below)
            case Join():
                return lambda below: replace(node, right=below)
            case Filter() | Project():
                return lambda below: replace(node, input=below)
            case _:
                raise AssertionError(f"{type(node).__name__} in a stream pipeline")

    def _branch(self, relation: Relation) -> Branch:
        """The pipeline with a Delta for its stream and Snapshots for static relations."""
        arrival = (self._fresh.column(LSN, INT8, False), self._fresh.column(ORDINAL, INT8, False))
        builds: list[Build] = []
        node = relation
        while not isinstance(node, Scan):
            build, node = self._step(node, arrival)
            builds.append(build)
        assert node.kind == "stream"
        delta = Delta(node.oid, node.name, (*node.columns, *arrival), (*node.sources, LSN, ORDINAL))
        built: Relation = descend(_built(builds, delta), self._nested)
        return Branch(node.oid, built, arrival)

    def _nested(self, node: object) -> object:
        """A static subquery that stayed in an expression reads its result instead."""
        if isinstance(node, SUBQUERIES) and not isinstance(node.relation, Snapshot):
            assert isinstance(node, ScalarSubquery)
            return ScalarSubquery(self._statics.snapshot(node.relation))
        return node

    def _step(self, node: Relation, arrival: tuple[Column, Column]) -> tuple[Build, Relation]:
        """What to put above the rest of the pipeline, and the rest."""
        match node:
            case Filter(input=Join(kind="inner")) | Join(kind="inner"):
                return self._region(node)
            case Filter():
                return (lambda below: replace(node, input=below)), node.input
            case Project():
                passed = tuple((column, ColumnRef(column)) for column in arrival)
                return (lambda below: Project(below, (*node.outputs, *passed))), node.input
            case Join(kind="left" | "semi" | "anti"):
                right = self._statics.snapshot(node.right)
                return (lambda below: Join(node.kind, below, right, node.predicate)), node.left
            case _:
                raise AssertionError(f"{type(node).__name__} in a stream pipeline")

    def _region(self, node: Relation) -> tuple[Build, Relation]:
        """A region of inner joins: the stream's leaf stays, the others become static components."""
        leaves, parts = flatten(node)
        stream = next(leaf for leaf in leaves if self._kinds.of(leaf) == "stream")
        statics = [leaf for leaf in leaves if leaf is not stream]
        joined, rest = join_components(statics, parts, set(stream.columns))
        snapshots = [self._statics.snapshot(component) for component in joined]
        return partial(_probe, snapshots=snapshots, parts=rest), stream


def _built(builds: list[Build], relation: Relation) -> Relation:
    for build in reversed(builds):
        relation = build(relation)
    return relation


def _probe(stream: Relation, snapshots: list[Snapshot], parts: list[Scalar]) -> Relation:
    """The stream joined with one static after the other, each predicate as soon as its columns are there."""
    statics = {column for snapshot in snapshots for column in snapshot.columns}
    relation, pending = stream, parts
    for snapshot in snapshots:
        missing = statics - set(relation.columns) - set(snapshot.columns)
        now = [part for part in pending if not used_columns(part) & missing]
        pending = [part for part in pending if part not in now]
        relation = Join("inner", relation, snapshot, conjunction(now))
    return filtered(relation, pending)


def flatten(relation: Relation) -> tuple[list[Relation], list[Scalar]]:
    """The leaves of a region of inner joins (and filters on them), in order, and all its predicates."""
    leaves: list[Relation] = []
    parts: list[Scalar] = []
    stack = [relation]
    while stack:
        node = stack.pop()
        match node:
            case Join(kind="inner"):
                parts.extend(conjuncts(node.predicate))
                stack.extend((node.right, node.left))
            case Filter(input=Join(kind="inner") as below):
                parts.extend(conjuncts(node.predicate))
                stack.append(below)
            case _:
                leaves.append(node)
    return leaves, parts


def join_components(
    leaves: list[Relation], parts: list[Scalar], stream: set[Column]
) -> tuple[list[Relation], list[Scalar]]:
    """Static leaves joined into components, in an order in which the stream can meet them; and predicates left over."""
    joined: list[Relation] = []
    for members in _components(leaves, parts, stream):
        relation, parts = _join_connected([leaves[place] for place in members], parts)
        joined.append(relation)
    ordered: list[Relation] = []
    have = set(stream)
    while joined:
        met = (item for item in joined if any(_bonds(part, have, set(item.columns)) for part in parts))
        ordered.append(next(met, joined[0]))
        joined.remove(ordered[-1])
        have.update(ordered[-1].columns)
    return ordered, parts


def _components(leaves: list[Relation], parts: list[Scalar], stream: set[Column]) -> list[list[int]]:
    """Places of leaves that belong together: each that the stream meets, with what hangs on it alone by equalities."""
    columns = [set(leaf.columns) for leaf in leaves]
    components = [[place] for place in range(len(leaves))]
    met = [any(_bonds(part, stream, given) for part in parts) for given in columns]

    def bonded(one: list[int], other: list[int]) -> bool:
        given = set().union(*(columns[place] for place in one)), set().union(*(columns[place] for place in other))
        return any(_bonds(part, *given) for part in parts)

    while True:
        anchored = [item for item in components if any(met[place] for place in item)]
        loose = [item for item in components if item not in anchored]
        pairs = [(item, [other for other in anchored if bonded(item, other)]) for item in loose]
        pair = next(((item, others[0]) for item, others in pairs if len(others) == 1), None)
        if pair is None:  # what hangs on nothing that the stream meets may still hang together
            free = [item for item, others in pairs if not others]
            pair = next(
                ((one, other) for one in free for other in free if one is not other and bonded(one, other)), None
            )
        if pair is None:
            return components
        components = [item for item in components if item not in pair]
        components.append(sorted(pair[0] + pair[1]))
        components.sort()


def _join_connected(leaves: list[Relation], parts: list[Scalar]) -> tuple[Relation, list[Scalar]]:
    """Leaves of one component joined along their predicates, and the predicates that reach beyond it."""
    relation, rest = leaves[0], leaves[1:]
    while rest:
        have = set(relation.columns)
        connected = (leaf for leaf in rest if any(_bonds(part, have, set(leaf.columns)) for part in parts))
        leaf = next(connected, rest[0])
        rest.remove(leaf)
        given = have | set(leaf.columns)
        now = [part for part in parts if used_columns(part) and used_columns(part) <= given]
        parts = [part for part in parts if part not in now]
        relation = Join("inner", relation, leaf, conjunction(now))
    return relation, parts


def _bonds(part: Scalar, left: set[Column], right: set[Column]) -> bool:
    """Whether a part is an equality between columns of both and of nothing else."""
    used = used_columns(part)
    equal = isinstance(part, Call) and part.function == "eq"
    return equal and bool(used & left) and bool(used & right) and used <= left | right

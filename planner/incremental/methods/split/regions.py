"""What lies below a grouping: the stream's pipeline, joined with static results.

Owns the step from a grouping's input to statements' relations, whose leaves are Delta(stream) and Snapshot(static):

    Join                         Join                        each static component is evaluated once, at the view's
      Join                         Join                      creation (thesis 4.2.2, 4.2.4), and is the build side;
        customer       ->            Delta lineitem          the stream is the probe side of all joins
        orders                       Snapshot static_1       = customer join orders
      lineitem                     Snapshot static_2         = part
      part

Which static relations become one is ``components``' matter. UNION ALL below a grouping splits the pipeline.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from catalog.values.errors import unsupported
from catalog.values.types import INT8
from planner.algebra.construction import SUBQUERIES, Fresh, conjunction, filtered
from planner.algebra.nodes import (
    Column,
    ColumnRef,
    Delta,
    Filter,
    Join,
    Project,
    Relation,
    Scalar,
    ScalarSubquery,
    Scan,
    SetOperation,
    Snapshot,
    Unnest,
)
from planner.algebra.walk import descend, used_columns, walk
from planner.incremental.methods.split.components import flatten, join_components
from planner.incremental.methods.split.statics import Statics
from planner.incremental.names import LSN, ORDINAL
from planner.incremental.properties import Kinds
from planner.rules.joins.cardinality import Cardinality

Build = Callable[[Relation], Relation]
#: What a pipeline takes of a delta.
OfDelta = Callable[[Delta], Relation]


class Branch(Struct, frozen=True):
    """One stream's part of a grouping's input; ``arrival`` are the columns of its rows' LSN and ordinal."""

    stream: int
    relation: Relation
    arrival: tuple[Column, Column]


class Branches(Struct, frozen=True):
    """A grouping's input: pipelines over streams, static relations, and what reads the states of other groupings."""

    streams: list[Branch] = field(default_factory=list)
    static: list[Relation] = field(default_factory=list)
    upper: list[Relation] = field(default_factory=list)


class Regions:
    """Turns relations below groupings into branches."""

    def __init__(self, statics: Statics, fresh: Fresh, kinds: Kinds, cardinality: Cardinality | None = None) -> None:
        self._statics = statics
        self._fresh = fresh
        self._kinds = kinds
        self._cardinality = cardinality

    def branches(self, relation: Relation, keep: OfDelta | None = None) -> Branches:
        """The parts of a grouping's input: of more than one kind where it is a UNION ALL. ``keep`` says which of a
        delta's rows there are, under the delta's columns."""
        found = Branches()
        pending = [relation]
        while pending:
            arm = pending.pop()
            match self._kinds.of(arm):
                case "static":
                    self._require_rows(arm)
                    found.static.append(arm)
                case "upper":
                    self._require_rows(arm)
                    found.upper.append(self._statics.frozen(arm))  # its tables, too, as the other arms see them
                case "stream" if (arms := self._arms(arm)) is not None:
                    pending.extend(reversed(arms))
                case "stream":
                    found.streams.append(self.branch(arm, keep))
        return found

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
            case Filter() | Project() | Unnest():
                return node.input
            case _:
                raise AssertionError(f"{type(node).__name__} in a stream pipeline")

    def _rebuild(self, node: Relation) -> Build:
        """The operator over another stream side."""
        match node:
            case Join() if self._kinds.of(node.left) == "stream":
                return lambda below: replace(node, left=below)
            case Join():
                return lambda below: replace(node, right=below)
            case Filter() | Project() | Unnest():
                return lambda below: replace(node, input=below)
            case _:
                raise AssertionError(f"{type(node).__name__} in a stream pipeline")

    def _require_rows(self, arm: Relation) -> None:
        """Raises 0A000 for rows of tables that no row of the stream has met, where it is to meet tables when it
        comes."""
        scan = next((node for node in walk(arm) if isinstance(node, Scan) and node.kind == "table"), None)
        if self._statics.arrival and scan is not None:
            what = f'table "{scan.name}" in a RIGHT or FULL JOIN, or beside the stream in a UNION ALL,'
            what += " WITH (tables = 'arrival')"
            rule = "Each row of a stream meets tables when it is committed; these rows are there without one."
            raise unsupported(what, "Write LEFT JOIN from the stream, or group the stream's rows alone.", rule=rule)

    def branch(self, relation: Relation, keep: OfDelta | None = None) -> Branch:
        """The pipeline with a Delta for its stream and Snapshots for static relations."""
        arrival = (self._fresh.column(LSN, INT8, False), self._fresh.column(ORDINAL, INT8, False))
        builds: list[Build] = []
        node = relation
        while not isinstance(node, Scan):
            build, node = self._step(node, arrival)
            builds.append(build)
        assert node.arrives
        delta = Delta(node.oid, node.name, (*node.columns, *arrival), (*node.sources, LSN, ORDINAL))
        built: Relation = descend(_built(builds, delta if keep is None else keep(delta)), self._nested)
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
            case Filter() | Unnest():
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
        joined, rest = join_components(statics, parts, stream, self._cardinality)
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

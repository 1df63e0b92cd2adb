"""What it is expected to take to follow changes through a dataflow: by node, the rows that it reads, inserts and
deletes, and milliseconds of processor time; the memory of the rows that are kept, and which are looked up instead.

The rows that change are estimated from the definitions of the nodes (``cardinalities``); beside them a node meets rows
that it finds by keys: partners of joins, states of groups, the rows of a touched partition. What a row costs is
measured: for few rows a node takes a constant, most of it Python's calls; many are an engine's, with another constant.
Where changes have been followed, their measured time corrects the estimate of the node (InQP, section 3.1.2: statistics
of earlier executions serve the next ones).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa
from msgspec import Struct

from planner.algebra.nodes import Column, Scan
from planner.incremental.cost.cardinalities import BEHIND, ChangeCardinality, touched
from planner.incremental.cost.changed_rows import NO_CHANGES, ChangedRows
from planner.incremental.cost.work import Step, Work, in_words
from planner.incremental.dataflow.graph import (
    Constant,
    Dataflow,
    DataflowNode,
    FirstOfPartitions,
    FirstRows,
    Key,
    OrderedWindow,
    Propagated,
    Ranked,
    Recomputed,
    Recursive,
    Retracted,
    Shared,
    Source,
    Term,
    rows_trace,
)
from planner.incremental.dataflow.looked_up import may_be_looked_up, with_looked_up
from planner.incremental.names import stored_name
from planner.rules.joins.cardinality import Cardinality
from planner.statistics import Statistics, TableStatistics

#: The most rows of a change with which a node works in Python; milliseconds that it then takes, and for each row.
FEW: Final = 64.0
FEW_MS: Final = 0.1
FEW_ROW_MS: Final = 0.006
#: Milliseconds of the calls of an engine that a node makes for more rows, and for each row.
MANY_MS: Final = 1.0
MANY_ROW_MS: Final = 0.001
#: Milliseconds of a node that asks an engine whatever the number of rows.
ASKING_MS: Final = 0.45
#: Rows of a table that a look-up passes in a millisecond.
PASSED: Final = 25_000.0
#: Milliseconds of a node that only calls columns by other names.
NAMING_MS: Final = 0.01
#: Bytes of a value without a fixed width, of a row's weight, and of a row in an index.
TEXT_BYTES: Final = 24.0
WEIGHT_BYTES: Final = 8.0
INDEX_BYTES: Final = 12.0


class Estimate(Struct, frozen=True):
    """What is expected at one node: how its rows change, how many it reads of its inputs' changes, how many it meets
    beside them, and the milliseconds."""

    changes: ChangedRows = NO_CHANGES
    read: float = 0.0
    met: float = 0.0
    milliseconds: float = 0.0


def node_estimates(
    flow: Dataflow,
    changed: Mapping[int, ChangedRows],
    statistics: Statistics,
    counts: Mapping[int, int],
    work: Mapping[int, Work],
) -> dict[int, Estimate]:
    """What is expected at each node that a change reaches.

    ``changed`` has the changes of sources by node, ``counts`` the rows that are kept of nodes, and ``work`` what
    changes have taken at nodes."""
    return _Estimating(flow, changed, statistics, counts, work).found


def kept_bytes(flow: Dataflow, statistics: Statistics, counts: Mapping[int, int]) -> float:
    """About the bytes of memory that the rows take which the dataflow keeps, with their indexes."""
    return _Estimating(flow, {}, statistics, counts, {}).kept_bytes


def fitting(flow: Dataflow, statistics: Statistics, most: float) -> tuple[Dataflow, float]:
    """The dataflow with rows that are looked up, those first that take most memory, until what it keeps is expected to
    take at most so many bytes; and the bytes that it is expected to take. It is the same one where that changes
    nothing, whether rows were looked up before or not."""
    before, flow = flow, with_looked_up(flow, ())
    estimating = _Estimating(flow, {}, statistics, {}, {})
    left, chosen = estimating.kept_bytes, list[int]()
    for node in sorted(may_be_looked_up(flow), key=estimating.bytes_of, reverse=True):
        if left <= most:
            break
        chosen.append(node)
        left -= estimating.bytes_of(node)
    return (before if before.looked_up.keys() == set(chosen) else with_looked_up(flow, chosen)), left


def usual_changes(flow: Dataflow, statistics: Statistics, work: Mapping[int, Work]) -> dict[int, ChangedRows]:
    """By source what a change has changed of it on average; an updated row of the largest one where nothing has
    changed."""
    sources = [node for node in flow.nodes if isinstance(node, Source)]
    changes = max((work[node.id].changes for node in sources if node.id in work), default=0)
    if changes:
        return {node.id: _mean(work[node.id], changes) for node in sources if node.id in work}
    largest = max(sources, key=lambda node: _rows_of(node, statistics), default=None)
    return {} if largest is None else {largest.id: ChangedRows(updated=1.0)}


def change_in_words(flow: Dataflow, changed: Mapping[int, ChangedRows]) -> str:
    """The changes of sources for which something is estimated."""
    sources = {node.id: _called(node) for node in flow.nodes if isinstance(node, Source)}
    return "; ".join(f"{sources[node]}: {_words(change)}" for node, change in changed.items()) or "no change"


def _called(node: Source) -> str:
    return node.definition.name if isinstance(node.definition, Scan) else f"state {node.definition.trace}"


def _words(change: ChangedRows) -> str:
    counts = {"inserted": change.inserted, "updated": change.updated, "deleted": change.deleted}
    told = [f"{in_words(count)} {name}" for name, count in counts.items() if count]
    return f"{', '.join(told)} row{'s' * (change.touched != 1)}"


def _mean(work: Work, changes: int) -> ChangedRows:
    """What one of some changes changes: as many rows as come and go count as updated."""
    inserted, deleted = work.total.inserted / changes, work.total.deleted / changes
    updated = min(inserted, deleted)
    return ChangedRows(inserted - updated, updated, deleted - updated)


def _rows_of(node: Source, statistics: Statistics) -> float:
    known = statistics.get(source_name(node))
    return 0.0 if known is None else known.rows


def source_name(node: Source) -> int | str:
    """By what statistics know the rows of a source: the oid of a table or view, the name of a state's trace."""
    return node.definition.oid if isinstance(node.definition, Scan) else node.definition.trace


class _Estimating:
    """The estimates for one dataflow, node by node."""

    def __init__(
        self,
        flow: Dataflow,
        changed: Mapping[int, ChangedRows],
        statistics: Statistics,
        counts: Mapping[int, int],
        work: Mapping[int, Work],
    ) -> None:
        self._flow = flow
        self._nodes = {node.id: node for node in flow.nodes}
        self._statistics, self._counts, self._work = {**statistics}, counts, work
        self._counted = [(node.definition, float(counts[node.id])) for node in flow.nodes if node.id in counts]
        self._cardinalities: dict[int, Cardinality] = {}
        self.found: dict[int, Estimate] = {}
        leaves = {
            source_name(node): changed[node.id]
            for node in flow.nodes
            if isinstance(node, Source) and node.id in changed
        }
        for node in flow.nodes:
            found = self._node(node, changed.get(node.id, NO_CHANGES), leaves)
            if found.changes.touched or found.read:
                self.found[node.id] = found
            if not isinstance(node, Source):  # the definitions of others read it where it chooses among its rows
                trace = rows_trace(flow.scope, node.id)
                leaves[trace], self._statistics[trace] = found.changes, self._statistics_of(node)

    def _node(self, node: DataflowNode, own: ChangedRows, leaves: Mapping[int | str, ChangedRows]) -> Estimate:
        if isinstance(node, Source):
            return (
                Estimate(own, milliseconds=self._milliseconds(node, 0.0, 0.0, own.rows)) if own.touched else Estimate()
            )
        if isinstance(node, Constant | Ranked):
            return Estimate()
        read = sum(self._change(below).rows for below in node.inputs)
        if not read:
            return Estimate()
        changes = ChangeCardinality(node.definition, self._cardinality(node.id), leaves).of(node.definition)
        met, looked_up = self._met(node), self._looked_up(node)
        return Estimate(changes, read, met, self._milliseconds(node, read, met, changes.rows, looked_up))

    def _change(self, node: int) -> ChangedRows:
        found = self.found.get(node)
        return NO_CHANGES if found is None else found.changes

    def _cardinality(self, node: int) -> Cardinality:
        found = self._cardinalities.get(node)
        if found is None:
            definition = self._nodes[node].definition
            found = self._cardinalities[node] = Cardinality(definition, self._statistics, self._counted)
        return found

    def _rows(self, node: int) -> float:
        counted = self._counts.get(node)
        return self._cardinality(node).rows(self._nodes[node].definition) if counted is None else float(counted)

    def _statistics_of(self, node: DataflowNode) -> TableStatistics:
        names = {column: stored_name(column) for column in node.columns}
        return self._cardinality(node.id).statistics(node.definition, names)

    def _alike(self, node: int, key: Key) -> float:
        """The rows of a node that have one key."""
        if not key:
            return self._rows(node)
        columns = {stored_name(column): column for column in self._nodes[node].columns}
        return self._cardinality(node).alike(self._nodes[node].definition, [columns[name] for name in key])

    # -- memory ----------------------------------------------------------------------------------------------------

    @property
    def kept_bytes(self) -> float:
        """Bytes of the rows of nodes and of the states of groupings; rows of views are kept by others."""
        groups = (node for node in self._flow.nodes if isinstance(node, Retracted))
        found = sum(self._rows(node.id) * _bytes(node.state, 1) for node in groups)
        return found + sum(map(self.bytes_of, self._flow.kept))

    def bytes_of(self, node: int) -> float:
        """Those of a node's rows, if they are kept here."""
        found = self._nodes.get(node)
        if found is None or (isinstance(found, Source) and found.is_view):
            return 0.0
        return self._rows(node) * _bytes(found.columns, 1 + len(self._flow.kept[node]))

    # -- rows that a node meets beside those that have changed ------------------------------------------------------

    def _met(self, node: DataflowNode) -> float:
        match node:
            case Propagated():
                return sum(self._met_by(term) for term in node.terms)
            case Retracted():
                return 2 * self._keys_of(node.id, self._change(node.node))
            case Recomputed():
                rows = sum(self._change(below).touched for below, _ in node.keys)
                times = 1 if node.own_key is not None else 2
                return times * sum(self._found_by(below, key, rows) for below, key in node.keys)
            case FirstRows():
                return float(node.spare)
            case FirstOfPartitions():
                return self._keys_of(node.node, self._change(node.node)) * node.last
            case OrderedWindow():
                return self._change(node.node).touched * self._reach(node)
            case Recursive():
                return self._change(node.base).rows
            case _:
                return 0.0

    def _keys_of(self, node: int, change: ChangedRows) -> float:
        return touched(max(1.0, self._rows(node)), change.touched)

    def _met_by(self, term: Term) -> float:
        """The rows that a term's changed rows find, each of which may find others."""
        changed = self._change(term.node)
        if not changed.touched:
            return 0.0
        at_hand, found = {term.node: changed.rows}, 0.0
        if term.own_key is not None:
            found = at_hand[term.node] = 2 * self._found_by(term.node, term.own_key, changed.touched)
        for fetch in term.fetches:
            by = 1.0 if fetch.by is None or not fetch.key else at_hand[fetch.by]
            at_hand[fetch.node] = self._found_by(fetch.node, fetch.key, by)
            found += at_hand[fetch.node]
        return found

    def _found_by(self, node: int, key: Key, rows: float) -> float:
        """The rows of a node that so many rows find by a key."""
        alike = self._alike(node, key)
        return alike * touched(self._rows(node) / alike, rows) if alike else 0.0

    def _looked_up(self, node: DataflowNode) -> float:
        """The rows of the tables in which changed rows look partners up."""
        terms = node.terms if isinstance(node, Propagated) else ()
        return sum(
            min(1.0, self._change(term.node).touched) * self._rows(fetch.node)
            for term in terms
            for fetch in term.fetches
            if fetch.node in self._flow.looked_up
        )

    def _reach(self, node: OrderedWindow) -> float:
        """The rows whose values one changed row changes."""
        if node.position is None and node.distance is None:
            return 1.0 + node.preceding + node.following
        return 1.0 + BEHIND * self._alike(node.node, node.partition)

    # -- time ------------------------------------------------------------------------------------------------------

    def _milliseconds(
        self, node: DataflowNode, read: float, met: float, changed: float, looked_up: float = 0.0
    ) -> float:
        """Those of a node that reads, meets and changes so many rows, some of tables of so many, as measured where it
        is."""
        looking = ASKING_MS + looked_up / PASSED if looked_up else 0.0
        expected, measured = looking + _milliseconds(node, read, met, changed), self._work.get(node.id)
        if measured is None:
            return expected
        total, changes = measured.total, measured.changes
        like_that = looking + _milliseconds(node, total.read / changes, met, (total.inserted + total.deleted) / changes)
        return expected * total.milliseconds / changes / like_that


def _milliseconds(node: DataflowNode, read: float, met: float, changed: float) -> float:
    if isinstance(node, Shared):
        return NAMING_MS
    rows = read + met + changed
    if max(read, changed) > FEW or met > FEW * FEW:
        return MANY_MS + MANY_ROW_MS * rows
    is_asking = isinstance(node, FirstRows | FirstOfPartitions | OrderedWindow | Recomputed)
    reached = 1.0 if isinstance(node, Source) else min(1.0, read)
    return reached * (ASKING_MS if is_asking else FEW_MS) + FEW_ROW_MS * rows


def _bytes(columns: Iterable[Column], indexes: int) -> float:
    """Those of a row with its weight, and its places in so many indexes."""
    return sum(map(_width, columns)) + WEIGHT_BYTES + INDEX_BYTES * indexes


def _width(column: Column) -> float:
    kind = column.type.arrow
    return kind.bit_width / 8 if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) else TEXT_BYTES


def step_of(estimate: Estimate) -> Step:
    """An estimate in the terms in which work is measured."""
    changes = estimate.changes
    inserted, deleted = changes.inserted + changes.updated, changes.deleted + changes.updated
    return Step(estimate.read, inserted, deleted, estimate.milliseconds)

"""What it is expected to take to follow changes through a dataflow: by node, the rows that it reads, inserts and
deletes, and milliseconds of processor time.

The rows that change are estimated from the definitions of the nodes (``cardinalities``); beside them a node meets rows
that it finds by keys: partners of joins, states of groups, the rows of a touched partition. What a row costs is
measured: for few rows a node takes a constant, most of it Python's calls; many are an engine's, with another constant.
Where changes have been followed, the rows that they have changed at each node, and the time that this has taken,
correct the estimates of the node (InQP, section 3.1.2: statistics of earlier executions serve the next ones).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from planner.incremental.cost.cardinalities import BEHIND, ChangeCardinality, touched
from planner.incremental.cost.changed_rows import NO_CHANGES, ChangedRows
from planner.incremental.cost.flow_sizes import FlowSizes, source_name
from planner.incremental.cost.usual_changes import usual_changes
from planner.incremental.cost.work import Step, Work
from planner.incremental.dataflow.graph import (
    Constant,
    DataflowNode,
    FirstOfPartitions,
    FirstRows,
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

#: How many times as many rows, or as few, as expected are believed to have been measured for a reason.
MOST_CORRECTED: Final = 1_000.0
#: The most rows of a change with which a node works in Python; milliseconds that it then takes, and for each row.
FEW: Final = 64.0
FEW_MS: Final = 0.1
FEW_ROW_MS: Final = 0.006
#: Milliseconds of the calls of an engine that a node makes for more rows, and for each row.
MANY_MS: Final = 0.4
MANY_ROW_MS: Final = 0.0002
#: Milliseconds of a node that asks an engine whatever the number of rows.
ASKING_MS: Final = 0.45
#: Rows of a table that a look-up passes in a millisecond.
PASSED: Final = 25_000.0
#: Milliseconds of a node that only calls columns by other names.
NAMING_MS: Final = 0.01


class Estimate(Struct, frozen=True):
    """What is expected at one node: how its rows change, how many it reads of its inputs' changes, how many it meets
    beside them, and the milliseconds."""

    changes: ChangedRows = NO_CHANGES
    read: float = 0.0
    met: float = 0.0
    milliseconds: float = 0.0


def node_estimates(
    sizes: FlowSizes,
    changed: Mapping[int, ChangedRows],
    work: Mapping[int, Work],
    corrections: Mapping[int, float] | None = None,
) -> dict[int, Estimate]:
    """What is expected at each node that a change reaches: ``changed`` has the changes of sources by node, and ``work``
    what changes have taken at nodes; ``corrections`` are those that follow from it."""
    found = corrections_by(sizes, work) if corrections is None else corrections
    return _Estimating(sizes, changed, work, found).found


def corrections_by(sizes: FlowSizes, work: Mapping[int, Work]) -> dict[int, float]:
    """By node, how many times as many rows have changed as its definition lets expect of the changes of its inputs
    (InQP, section 3.1.2: selectivities are those of earlier executions)."""
    changes = max((item.changes for item in work.values()), default=0)
    if not changes:
        return {}
    return _Estimating(sizes, usual_changes(sizes.flow, {}, work), work, measured_over=changes).corrections


class _Estimating:
    """The estimates for one change, node by node."""

    def __init__(
        self,
        sizes: FlowSizes,
        changed: Mapping[int, ChangedRows],
        work: Mapping[int, Work],
        corrections: Mapping[int, float] | None = None,
        measured_over: int = 0,
    ) -> None:
        """``corrections`` are found where the ``changed`` rows are the mean of those that have been measured over so
        many changes."""
        self._sizes, self._work = sizes, work
        self._measured_over = measured_over
        self.corrections: dict[int, float] = dict(corrections or {})
        self.found: dict[int, Estimate] = {}
        flow = sizes.flow
        leaves = {
            source_name(node): changed[node.id]
            for node in flow.nodes
            if isinstance(node, Source) and node.id in changed
        }
        for node in flow.nodes:
            found = self._node(node, changed.get(node.id, NO_CHANGES), leaves)
            if found.changes.touched or found.read:
                self.found[node.id] = found
            if not isinstance(node, Source):
                leaves[rows_trace(flow.scope, node.id)] = found.changes

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
        changes = ChangeCardinality(node.definition, self._sizes.cardinality(node.id), leaves).of(node.definition)
        if self._measured_over:
            self._correct(node.id, changes)
        changes = changes.times(self.corrections.get(node.id, 1.0))
        met, looked_up = self._met(node), self._looked_up(node)
        return Estimate(changes, read, met, self._milliseconds(node, read, met, changes.rows, looked_up))

    def _correct(self, node: int, expected: ChangedRows) -> None:
        measured = self._work.get(node)
        if measured is not None and expected.rows:
            rows = (measured.total.inserted + measured.total.deleted) / self._measured_over
            self.corrections[node] = min(MOST_CORRECTED, max(1 / MOST_CORRECTED, rows / expected.rows))

    def _change(self, node: int) -> ChangedRows:
        found = self.found.get(node)
        return NO_CHANGES if found is None else found.changes

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
                return times * sum(self._sizes.found_by(below, key, rows) for below, key in node.keys)
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
        return touched(max(1.0, self._sizes.rows(node)), change.touched)

    def _met_by(self, term: Term) -> float:
        """The rows that a term's changed rows find, each of which may find others."""
        changed = self._change(term.node)
        if not changed.touched:
            return 0.0
        at_hand, found = {term.node: changed.rows}, 0.0
        if term.own_key is not None:
            found = at_hand[term.node] = 2 * self._sizes.found_by(term.node, term.own_key, changed.touched)
        for fetch in term.fetches:
            by = 1.0 if fetch.by is None or not fetch.key else at_hand[fetch.by]
            at_hand[fetch.node] = self._sizes.found_by(fetch.node, fetch.key, by)
            found += at_hand[fetch.node]
        return found

    def _looked_up(self, node: DataflowNode) -> float:
        """The rows of the tables in which changed rows look partners up."""
        terms = node.terms if isinstance(node, Propagated) else ()
        return sum(
            min(1.0, self._change(term.node).touched) * self._sizes.rows(fetch.node)
            for term in terms
            for fetch in term.fetches
            if fetch.node in self._sizes.flow.looked_up
        )

    def _reach(self, node: OrderedWindow) -> float:
        """The rows whose values one changed row changes."""
        if node.position is None and node.distance is None:
            return 1.0 + node.preceding + node.following
        return 1.0 + BEHIND * self._sizes.alike(node.node, node.partition)

    # -- time ------------------------------------------------------------------------------------------------------

    def _milliseconds(
        self, node: DataflowNode, read: float, met: float, changed: float, looked_up: float = 0.0
    ) -> float:
        """Those of a node that reads, meets and changes so many rows, some of tables of so many, as measured where it
        is."""
        looking, times = ASKING_MS + looked_up / PASSED if looked_up else 0.0, self._times(node, read)
        expected, measured = looking + _milliseconds(node, times, read, met, changed), self._work.get(node.id)
        if measured is None:
            return expected
        fewer, more = measured.around(read + changed)
        if fewer is not None and more is not None:
            part = (read + changed - fewer[0]) / (more[0] - fewer[0])
            return fewer[1] + part * (more[1] - fewer[1])
        total = measured.total
        rows, taken = fewer or more or (total.rows / measured.changes, total.milliseconds / measured.changes)
        part = rows / (read + changed) if read + changed else 1.0
        return taken * expected / (looking + _milliseconds(node, times, part * read, part * met, part * changed))

    def _times(self, node: DataflowNode, read: float) -> float:
        """How often a node evaluates a relation for a change: twice where the rows are computed as they were, too."""
        match node:
            case Source():
                return 1.0
            case Propagated():
                reached = ((term, min(1.0, self._change(term.node).touched)) for term in node.terms)
                return sum(often * (1 if term.own_key is None else 2) for term, often in reached)
            case Recomputed(own_key=None):
                return 2 * min(1.0, read)
            case _:
                return min(1.0, read)


def _milliseconds(node: DataflowNode, times: float, read: float, met: float, changed: float) -> float:
    if isinstance(node, Shared):
        return NAMING_MS
    rows = read + met + changed
    of_many = MANY_MS * max(1.0, times) + MANY_ROW_MS * rows
    if max(read, met, changed) > FEW:
        return of_many
    is_asking = isinstance(node, FirstRows | FirstOfPartitions | OrderedWindow | Recomputed)
    of_few = times * (ASKING_MS if is_asking else FEW_MS) + FEW_ROW_MS * rows
    return min(of_few, of_many)  # one row more never takes less


def step_of(estimate: Estimate) -> Step:
    """An estimate in the terms in which work is measured."""
    changes = estimate.changes
    inserted, deleted = changes.inserted + changes.updated, changes.deleted + changes.updated
    return Step(estimate.read, inserted, deleted, estimate.milliseconds)

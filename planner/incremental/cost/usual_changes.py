"""Which changes a dataflow is planned for: those that have been measured, else single rows of its sources.

Owns the words for them, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from planner.algebra.nodes import Scan
from planner.incremental.cost.changed_rows import ChangedRows
from planner.incremental.cost.flow_sizes import source_name
from planner.incremental.cost.work import Work, in_words
from planner.incremental.dataflow.graph import Dataflow, Source
from planner.statistics import Statistics


class Seen(Struct, frozen=True):
    """What is known of the changes of one source: how many there were, and the rows of each one on average."""

    changes: int = 0
    rows: ChangedRows = ChangedRows(updated=1.0)


#: By the oid of a scan or the trace of a snapshot.
Mix = Mapping[int | str, Seen]


def mix_of(flow: Dataflow, work: Mapping[int, Work]) -> Mix:
    """The changes that a dataflow has followed."""
    found = {source_name(node): work[node.id] for node in _sources(flow) if node.id in work}
    return {name: Seen(own.changes, _mean(own, own.changes)) for name, own in found.items() if own.changes}


def weighed(flow: Dataflow, mix: Mix) -> list[tuple[float, dict[int, ChangedRows]]]:
    """A change of each source, by node, with its share of all changes. Each source counts as if it had changed once
    more than it has, so that those of which nothing is known change alike."""
    seen = {node.id: mix.get(source_name(node), Seen()) for node in _sources(flow)}
    total = sum(1 + item.changes for item in seen.values())
    return [((1 + item.changes) / total, {node: item.rows}) for node, item in seen.items()]


def usual_changes(flow: Dataflow, statistics: Statistics, work: Mapping[int, Work]) -> dict[int, ChangedRows]:
    """By source what a change has changed of it on average; an updated row of the largest one where nothing has
    changed."""
    sources = _sources(flow)
    changes = max((work[node.id].changes for node in sources if node.id in work), default=0)
    if changes:
        return {node.id: _mean(work[node.id], changes) for node in sources if node.id in work}
    largest = max(sources, key=lambda node: _rows_of(node, statistics), default=None)
    return {} if largest is None else {largest.id: ChangedRows(updated=1.0)}


def change_in_words(flow: Dataflow, changed: Mapping[int, ChangedRows]) -> str:
    """The changes of sources for which something is estimated."""
    sources = {node.id: _called(node) for node in _sources(flow)}
    return "; ".join(f"{sources[node]}: {_words(change)}" for node, change in changed.items()) or "no change"


def _sources(flow: Dataflow) -> list[Source]:
    return [node for node in flow.nodes if isinstance(node, Source)]


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

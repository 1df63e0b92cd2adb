"""What it saves to maintain a part of several views once (iShare, section 4.1.2).

The benefit of sharing is what a change takes in the views without the part, less what it takes in the part and in the
views that read its rows (equation 4, of a change instead of all changes before a trigger). A part without the filters
of its readers may change more often, and has more rows, than what each view would keep of its own: then it saves
nothing. The rows that change in the part are those that its readers read as changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from planner.algebra.nodes import Snapshot
from planner.incremental.cost.changed_rows import NO_CHANGES, ChangedRows
from planner.incremental.cost.dataflow_costs import Estimate, node_estimates
from planner.incremental.cost.flow_sizes import FlowSizes, source_name
from planner.incremental.cost.usual_changes import Mix, Seen
from planner.incremental.dataflow.graph import Dataflow, Source
from planner.incremental.sharing.join_parts import JoinPart, source_of
from planner.statistics import Statistics, TableStatistics

#: Milliseconds of bringing another dataflow forward, for each one that reads its changes.
LAYER_MS: Final = 0.1
#: What takes at most so many times as much as something else takes as much.
ALIKE: Final = 1.1


class Reader(Struct, frozen=True):
    """A view's dataflow without the part and over it, and the changes that the view follows."""

    alone: Dataflow
    sharing: Dataflow
    mix: Mix


class Saving(Struct, frozen=True):
    """The milliseconds of a change of the part's tables in all its readers ``alone``, and ``shared``, with those of the
    part unless it is there already; the bytes of the rows that the readers keep either way, and of the part's."""

    readers: int
    alone: float
    shared: float
    memory_alone: float
    memory_shared: float
    memory_part: float

    @property
    def milliseconds(self) -> float:
        """Those that are saved (iShare, equation 4)."""
        return self.alone - self.shared

    @property
    def is_worth(self) -> bool:
        """Whether the part takes less time, or as much time and less memory."""
        memory = self.memory_shared + self.memory_part
        saves_time, saves_memory = self.alone > ALIKE * self.shared, self.memory_alone > ALIKE * memory
        return saves_time or (saves_memory and ALIKE * self.alone >= self.shared)


def saved_by_sharing(
    flow: Dataflow, oid: int, readers: Sequence[Reader], statistics: Statistics, is_there: bool
) -> Saving:
    """What a part, whose rows are those of the view ``oid`` and follow changes by a dataflow, saves its readers."""
    rows = FlowSizes(flow, statistics, {})
    alone = [FlowSizes(reader.alone, statistics, {}) for reader in readers]
    sharing = [FlowSizes(reader.sharing, statistics, {}) for reader in readers]
    alone_ms = shared_ms = 0.0
    for share, changes in _changes(flow, readers):
        found = node_estimates(rows, _at(flow, changes), {})
        shown = found.get(flow.outputs[0], Estimate()).changes
        alone_ms += share * sum(_milliseconds(sizes, changes) for sizes in alone)
        shared_ms += share * (len(readers) * LAYER_MS + (0.0 if is_there else _total(found)))
        shared_ms += share * sum(_milliseconds(sizes, {**changes, oid: shown}) for sizes in sharing)
    memory = (sum(sizes.kept_bytes for sizes in found) for found in (alone, sharing, () if is_there else (rows,)))
    return Saving(len(readers), alone_ms, shared_ms, *memory)


def rows_of_part(part: JoinPart, sizes: FlowSizes) -> TableStatistics:
    """What is expected of a part's rows, its columns called as its readers call them."""
    found, final = sizes.statistics_of(sizes.nodes[sizes.flow.outputs[0]]), sizes.flow.final
    if not isinstance(final, Snapshot):
        return TableStatistics(found.rows)
    names = {name: source_of(place) for name, place in zip(final.sources, part.shown, strict=True)}
    columns = {name: found.columns[stored] for stored, name in names.items() if stored in found.columns}
    keys = (key for key in found.keys if key <= names.keys())
    return TableStatistics(found.rows, columns, tuple(frozenset(names[stored] for stored in key) for key in keys))


def _changes(flow: Dataflow, readers: Sequence[Reader]) -> Iterator[tuple[float, dict[int | str, ChangedRows]]]:
    """A change of each table of the part, with its share of all changes: as often as the reader knows that has seen it
    most often, once more."""
    tables = [source_name(node) for node in flow.nodes if isinstance(node, Source)]
    seen = {name: _most(reader.mix.get(name) for reader in readers) for name in tables}
    total = sum(1 + item.changes for item in seen.values())
    for name, item in seen.items():
        yield (1 + item.changes) / total, {name: item.rows}


def _most(found: Iterable[Seen | None]) -> Seen:
    return max((item for item in found if item is not None), key=lambda item: item.changes, default=Seen())


def _at(flow: Dataflow, changes: Mapping[int | str, ChangedRows]) -> dict[int, ChangedRows]:
    """Changes of relations by the sources of a dataflow."""
    sources = [node for node in flow.nodes if isinstance(node, Source)]
    found = {node.id: changes.get(source_name(node), NO_CHANGES) for node in sources}
    return {node: change for node, change in found.items() if change.touched}


def _milliseconds(sizes: FlowSizes, changes: Mapping[int | str, ChangedRows]) -> float:
    return _total(node_estimates(sizes, _at(sizes.flow, changes), {}))


def _total(found: Mapping[int, Estimate]) -> float:
    return sum(item.milliseconds for item in found.values())

"""The rows of one relation, kept up to date by its dataflow.

Owns: which nodes are kept, how they are filled, and the order in which a change passes them. Used by one thread at a
time. After any error the object must be given up: its nodes may stand at different moments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa

from executor.dataflow.hashing import NO_HASHES, Hashes, hashes_of
from executor.dataflow.multiset import Multiset, repeated, weighted
from executor.dataflow.operators import Changes, Merge, Query, change_schema, schema_of, shown
from planner.algebra.nodes import Column, ColumnRef, Project, Relation, Snapshot
from planner.incremental.dataflow.graph import Constant, Dataflow, Key, Retracted, Source, references, rows_trace
from planner.incremental.names import stored_name


class MaintainedRows:
    """The rows of a dataflow's outputs at one moment."""

    def __init__(
        self,
        flow: Dataflow,
        whole: Callable[[Relation], pa.Table],
        query: Query,
        merge: Merge,
    ) -> None:
        """Fills the nodes. ``whole`` evaluates a relation over tables and states as they are at the moment, ``query``
        one over a few rows of given traces."""
        self._flow = flow
        self._shared = flow.shared
        self._query = query
        self._merge = merge
        self._states: dict[int, Multiset] = {}
        self._kept: dict[int, Multiset] = {}
        for node in flow.nodes:
            if node.id in flow.kept:
                rows = pa.Table.from_arrays(whole(node.definition).columns, schema=schema_of(node.columns))
                self._kept[node.id] = Multiset(weighted(rows, 1), flow.kept[node.id], partial(merge, node.columns))
            if isinstance(node, Retracted):
                states = pa.Table.from_arrays(whole(node.fill).columns, schema=schema_of(node.state))
                keys = (node.key,) if node.key else ()
                self._states[node.id] = Multiset(weighted(states, 1), keys, partial(merge, node.state))

    @property
    def bytes(self) -> int:
        """About what the rows take in memory."""
        return sum(item.bytes for item in (*self._kept.values(), *self._states.values()))

    @property
    def count(self) -> int:
        """The rows that are kept."""
        return sum(item.count for item in (*self._kept.values(), *self._states.values()))

    @property
    def counts(self) -> dict[int, int]:
        """How many rows are kept of each node, of a grouping groups."""
        return {node: item.count for node, item in sorted({**self._states, **self._kept}.items())}

    def change(self, deltas: Mapping[int, pa.Table]) -> None:
        """Brings the rows forward: ``deltas`` are the changes of sources by node, in their columns' order, with the
        weight last. Raises Inconsistent where they are not those of what is kept."""
        changes = Changes(self._flow.scope, self._kept, self._shared, self._query, self._merge)
        for node in self._flow.nodes:
            match node:
                case Source():
                    if node.id in deltas:
                        rows = deltas[node.id]
                        changes.put(node, pa.Table.from_arrays(rows.columns, schema=change_schema(node.columns)))
                case Constant():
                    pass
                case _:
                    changes.run(node, self._states)

    def lookup(self, columns: tuple[Column, ...], values: pa.Table) -> pa.Table | None:
        """The final relation's rows whose ``columns`` have the values of a row of ``values``, and perhaps others; None
        where the final relation computes its rows."""
        final = self._flow.final
        outputs = final.outputs if isinstance(final, Project) else references(final.columns)
        leaf = final.input if isinstance(final, Project) else final
        passed = {column: value.column for column, value in outputs if isinstance(value, ColumnRef)}
        if not isinstance(leaf, Snapshot) or len(self._flow.outputs) != 1 or len(passed) < len(outputs):
            return None
        (node,) = self._flow.outputs
        if leaf.trace != rows_trace(self._flow.scope, node):
            return None
        sources = dict(zip(leaf.columns, leaf.sources, strict=True))
        key = tuple(sources[passed[column]] for column in columns)
        rows = self._read(node, key, hashes_of(values, values.column_names))
        found = rows.select([sources[passed[column]] for column, _ in outputs])
        return found.rename_columns([stored_name(column) for column, _ in outputs])

    def outputs(self) -> dict[str, pa.Table]:
        """The rows of the outputs, by the engine names of the leaves of the dataflow's final relation."""
        return {f"s_{rows_trace(self._flow.scope, node)}": self._read(node) for node in self._flow.outputs}

    def _read(self, node: int, key: Key = (), hashes: Hashes = NO_HASHES) -> pa.Table:
        """Rows of an output with some keys, or all for an empty key, each as often as it is there."""
        shared = self._shared.get(node)
        if shared is None:
            return repeated(self._kept[node].lookup(key, hashes))
        return repeated(shown(shared, self._kept[shared.node].lookup(shared.key(key), hashes)))

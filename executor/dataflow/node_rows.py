"""The rows of a dataflow's nodes, wherever they are: kept by the node, by another one that shares them, or by the
dataflow of a view that is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from executor.dataflow.hashing import NO_HASHES, Hashes
from executor.dataflow.multiset import Multiset, Range
from executor.dataflow.view_rows import ViewRows
from executor.dataflow.weighted_rows import WEIGHT
from planner.incremental.dataflow.graph import Key, Shared, names_of


class NodeRows:
    """Those of one dataflow, as they are."""

    def __init__(
        self, kept: Mapping[int, Multiset], views: Mapping[int, ViewRows], shared: Mapping[int, Shared]
    ) -> None:
        """Each by node; ``kept`` may get more."""
        self._kept, self._views, self._shared = kept, views, shared

    def lookup(self, node: int, key: Key = (), hashes: Hashes = NO_HASHES) -> pa.Table:
        """Rows with their weights: those whose keys have these hashes, and perhaps others; all for an empty key."""
        if (shared := self._shared.get(node)) is not None:
            return shown(shared, self.lookup(shared.node, shared.key(key), hashes))
        return self._holder(node).lookup(key, hashes)

    def between(self, node: int, ranges: Sequence[tuple[str, Range]]) -> pa.Table:
        """Rows with their weights that have a time, by its column, in one of some ranges."""
        if (shared := self._shared.get(node)) is not None:
            own = [(column, values) for name, values in ranges for column in shared.key((name,))]
            return shown(shared, self.between(shared.node, own))
        return self._holder(node).between(ranges)

    def consolidated(self, node: int, rows: pa.Table) -> pa.Table:
        """Equal rows of a node, which shares none of another one, as one with the sum of their weights."""
        return self._holder(node).consolidated(rows)

    def index_by(self, node: int, key: Key) -> None:
        """Makes the index by which rows with a key are found. Safe while another thread changes the rows."""
        if (shared := self._shared.get(node)) is not None:
            self.index_by(shared.node, shared.key(key))
        else:
            self._holder(node).index_by(key)

    def _holder(self, node: int) -> Multiset | ViewRows:
        view = self._views.get(node)
        return self._kept[node] if view is None else view


def shown(node: Shared, rows: pa.Table) -> pa.Table:
    """Rows of the node that another one shares, with their weights, as its own."""
    return rows.rename_columns([*names_of(node.columns), WEIGHT])

"""The rows of a dataflow's nodes, wherever they are: kept by the node, by another one whose rows it has, or by the
dataflow of a view that is read.

Owns where the rows of a node are. Knows nothing of how they change (``operators``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from executor.dataflow.rows.hashing import NO_HASHES, Hashes
from executor.dataflow.rows.multiset import Multiset
from executor.dataflow.rows.segments import Range
from executor.dataflow.rows.weighted_rows import WEIGHT
from executor.dataflow.view_rows import ViewRows
from executor.small import AnyTable
from planner.incremental.dataflow.graph import Key, Recursive, Shared, names_of


class NodeRows:
    """Those of one dataflow, as they are."""

    def __init__(
        self,
        kept: Mapping[int, Multiset],
        views: Mapping[int, ViewRows],
        showing: Mapping[int, Shared | Recursive],
    ) -> None:
        """Each by node; ``kept`` may get more. Nodes that are ``showing`` others' rows have none of their own."""
        self._kept, self._views, self._showing = kept, views, showing

    def lookup(self, node: int, key: Key = (), hashes: Hashes = NO_HASHES) -> AnyTable:
        """Rows with their weights: those whose keys have these hashes, and perhaps others; all for an empty key."""
        if (above := self._showing.get(node)) is not None:
            return shown(above, self.lookup(above.node, above.key_below(key), hashes))
        return self._holder(node).lookup(key, hashes)

    def between(self, node: int, ranges: Sequence[tuple[str, Range]]) -> AnyTable:
        """Rows with their weights that have a time, by its column, in one of some ranges."""
        if (above := self._showing.get(node)) is not None:
            own = [(column, values) for name, values in ranges for column in above.key_below((name,))]
            return shown(above, self.between(above.node, own))
        return self._holder(node).between(ranges)

    def consolidated(self, node: int, rows: AnyTable) -> AnyTable:
        """Equal rows of a node, which has none of another one, as one with the sum of their weights."""
        return self._holder(node).consolidated(rows)

    def index_by(self, node: int, key: Key) -> None:
        """Makes the index by which rows with a key are found. Safe while another thread changes the rows."""
        if (above := self._showing.get(node)) is not None:
            self.index_by(above.node, above.key_below(key))
        else:
            self._holder(node).index_by(key)

    def _holder(self, node: int) -> Multiset | ViewRows:
        view = self._views.get(node)
        return self._kept[node] if view is None else view


def shown(node: Shared | Recursive, rows: AnyTable) -> AnyTable:
    """Rows of the node whose rows another one has, with their weights, as its own."""
    return rows.select([*names_of(node.shown), WEIGHT]).rename_columns([*names_of(node.columns), WEIGHT])

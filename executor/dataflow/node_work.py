"""How much work changes are at each node of a dataflow: rows read, inserted and deleted, and processor time.

Owns the measure. A row that is updated counts as one that is deleted and one that is inserted, as it passes the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from executor.dataflow.rows.weighted_rows import WEIGHT, weights_of
from executor.small import AnyTable, SmallTable
from planner.incremental.cost.work import NONE, Step, Work


class MeasuredWork:
    """That of one dataflow's nodes since its rows were made."""

    def __init__(self, now: Callable[[], float]) -> None:
        """``now``: the seconds of processor time of the calling thread."""
        self.now = now
        self._nodes: dict[int, Work] = {}

    def note(self, node: int, read: int, delta: AnyTable | None, started: float) -> None:
        """A change has reached a node, which has read so many rows of its inputs' changes, and has changed by
        ``delta`` since it ``started``."""
        inserted, deleted = (0, 0) if delta is None else _counts(delta)
        step = Step(read, inserted, deleted, (self.now() - started) * 1000)
        self._nodes[node] = self._nodes.get(node, NONE).after(step)

    def restore(self, nodes: Mapping[int, Work]) -> None:
        """Counts on from what was measured before the rows were saved."""
        self._nodes = {**nodes}

    @property
    def nodes(self) -> dict[int, Work]:
        """What has been measured, by node."""
        return dict(self._nodes)


def _counts(delta: AnyTable) -> tuple[int, int]:
    """How many rows a change inserts and deletes."""
    if isinstance(delta, SmallTable):
        weights = delta.column(WEIGHT)
        inserted = sum(weight for weight in weights if weight > 0)
        return inserted, inserted - sum(weights)
    found = weights_of(delta)
    come = int(found[found > 0].sum())
    return come, come - int(found.sum())

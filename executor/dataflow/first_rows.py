"""The first rows in an order (``planner.incremental.dataflow.first_rows``), with a few to spare.

Owns: which rows are kept, and when they are made anew of all rows. Used by one thread at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from executor.dataflow.rows.weighted_rows import WEIGHT, Consolidate, by_sign, consolidated, weights_of
from planner.algebra.nodes import Relation
from planner.incremental.dataflow.graph import FirstRows
from planner.incremental.names import stored_name

#: Evaluates a relation over the candidates.
Choose = Callable[[Relation, pa.Table], pa.Table]


class FirstRowsState:
    """The rows that one node keeps."""

    def __init__(self, node: FirstRows, everything: Callable[[], pa.Table], choose: Choose, merge: Consolidate) -> None:
        """``everything`` gives all rows with their weights, ``merge`` consolidates rows of types that Arrow does not
        group."""
        self._node = node
        self._everything = everything
        self._choose = choose
        self._merge = merge
        #: Whether no row is left out.
        self._has_all = True
        self._rows = self._filled()

    @property
    def shown(self) -> pa.Table:
        """The rows at the node's places, each as often as it is there."""
        weights = weights_of(self._rows)
        places = np.repeat(np.arange(weights.size), np.minimum(weights, self._node.last))
        return self._rows.drop_columns([WEIGHT]).take(pa.array(places[self._node.first : self._node.last]))

    def change(self, delta: pa.Table) -> None:
        """Follows a change of all rows, which ``everything`` knows already."""
        gone, come = by_sign(delta)
        left = consolidated(pa.concat_tables([self._rows, gone]), self._merge)
        ordered = self._ordered(self._node.ordered, by_sign(left)[1], come)
        kept = np.flatnonzero(ordered.column(stored_name(self._node.were_kept)).to_numpy())
        if not self._has_all:
            ordered = ordered.slice(0, kept[-1] + 1 if kept.size else 0)
        self._rows = self._weighted(ordered)
        if not self._has_all and int(weights_of(self._rows).sum()) < self._node.last:
            self._rows = self._filled()
        elif self._rows.num_rows > 2 * self._node.spare:
            self._rows, self._has_all = self._rows.slice(0, self._node.spare), False

    def _filled(self) -> pa.Table:
        rows = self._everything()
        self._has_all = rows.num_rows <= self._node.spare
        return self._weighted(self._ordered(self._node.filled, rows, rows.slice(0, 0)))

    def _ordered(self, relation: Relation, kept: pa.Table, others: pa.Table) -> pa.Table:
        """The first ones of rows that were kept and of others, in order."""
        weight, were_kept = stored_name(self._node.weight), stored_name(self._node.were_kept)
        both = pa.concat_tables([kept, others])
        both = both.rename_columns([weight if name == WEIGHT else name for name in both.column_names])
        both = both.append_column(were_kept, pa.array(np.arange(both.num_rows) < kept.num_rows))
        return self._choose(relation, both)

    def _weighted(self, ordered: pa.Table) -> pa.Table:
        """Candidates as rows with weights."""
        rows = ordered.drop_columns([stored_name(self._node.were_kept)])
        weight = stored_name(self._node.weight)
        return rows.rename_columns([WEIGHT if name == weight else name for name in rows.column_names])

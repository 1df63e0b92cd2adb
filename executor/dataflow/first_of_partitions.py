"""The rows among which the first ones of each partition are (``planner.incremental.dataflow.first_of_partitions``).

Owns: which of the kept rows are gone. The engine sorts.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from executor.dataflow.rows.hashing import hashes_of
from executor.dataflow.rows.weighted_rows import WEIGHT, Consolidate, by_sign, consolidated, repeated
from executor.small import table_of
from planner.incremental.dataflow.graph import FirstOfPartitions
from planner.incremental.names import stored_name


def candidates(node: FirstOfPartitions, kept: pa.Table, delta: pa.Table, merge: Consolidate) -> pa.Table:
    """The ``kept`` rows of touched partitions that are still there, each with the number that it had, the rows that
    came, without one, and those that went. ``merge`` consolidates rows of types that Arrow does not group.

    Of equal rows of which some went, the others come first among those that tie with them."""
    names = [name for name in delta.column_names if name != WEIGHT]
    gone, come = by_sign(delta)
    may_be_gone = np.isin(hashes_of(kept, names), hashes_of(gone, names))
    there = table_of(repeated(kept.filter(pa.array(~may_be_gone))))
    both = pa.concat_tables([kept.filter(pa.array(may_be_gone)).select([*names, WEIGHT]), gone])
    left = repeated(by_sign(consolidated(both, merge))[1])
    numbers = there.column(stored_name(node.number)).combine_chunks()
    parts = [
        (there.select(names), numbers, False),
        (left, pa.array(np.zeros(left.num_rows, np.int64)), False),
        (come := repeated(come), pa.nulls(come.num_rows, pa.int64()), False),
        (gone.select(names), pa.nulls(gone.num_rows, pa.int64()), True),
    ]
    return pa.concat_tables([_marked(node, *part) for part in parts])


def _marked(node: FirstOfPartitions, rows: pa.Table, was: pa.Array, is_gone: bool) -> pa.Table:
    marked = rows.append_column(stored_name(node.was), was)
    return marked.append_column(stored_name(node.gone), pa.array(np.full(rows.num_rows, is_gone)))

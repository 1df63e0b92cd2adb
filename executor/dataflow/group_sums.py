"""Adds up the states of groups (``planner.incremental.dataflow.retraction``) without an engine.

Owns: the types and values for which Arrow's grouping and sums give what an engine gives. Arrow's sums do not notice an
overflow: an engine adds up states that are large enough for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute

from executor.small import AnyTable, SmallTable
from executor.small.values import EXACT, FAILURES, computed

_compute: Any = pyarrow.compute  # made at its import, where no type checker sees its functions
#: A half of what 64 bits hold, and of 10^38 in units of 2^64.
_WHOLE: Final = 1 << 62
_HIGH: Final = 10**38 // 2 // 2**64 - 1


def added_up(states: AnyTable, group: Sequence[str]) -> AnyTable | None:
    """One state for each group, the sums of at most two. The first sum counts the group's rows: a group without rows is
    left out. None where an engine must add the states up: without a key, and for types and values that Arrow does not
    treat as SQL does."""
    if isinstance(states, SmallTable):
        return _few_added_up(states, len(group))
    sums = states.column_names[len(group) :]
    if not group or not all(_is_exact(states.schema.field(name).type) for name in group):
        return None
    if not all(_adds(states.column(name)) for name in sums):
        return None
    grouped = states.group_by(list(group), use_threads=False).aggregate([(name, "sum") for name in sums])
    found = grouped.select([*group, *(f"{name}_sum" for name in sums)]).rename_columns(states.column_names)
    if not found.schema.equals(states.schema):
        return None
    return found.filter(_compute.not_equal(found.column(sums[0]), 0))


def _few_added_up(states: SmallTable, width: int) -> SmallTable | None:
    """``added_up`` of a few states. So many first columns as ``width`` are the group."""
    if not width or not all(map(_is_exact, states.types[:width])):
        return None
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in states.rows():
        known = found.get(row[:width])
        if None in row[width:]:
            return None
        if known is None:
            found[row[:width]] = [*row[width:]]
        else:
            known[:] = map(_sum, known, row[width:])
    rows = [(*key, *sums) for key, sums in found.items() if sums[0]]
    found_cells = [*map(list, zip(*rows, strict=True))] or [[] for _ in states.types]
    try:
        cells = [computed(column, kind).cells for column, kind in zip(found_cells, states.types, strict=True)]
    except FAILURES:
        return None
    return SmallTable(states.column_names, states.types, cells, len(rows))


def _sum(one: Any, other: Any) -> Any:
    return EXACT.add(one, other) if isinstance(one, Decimal) else one + other


def _is_exact(kind: pa.DataType) -> bool:
    """Whether values of a type are equal for SQL where their bits are."""
    types = pa.types
    whole = types.is_integer(kind) or types.is_boolean(kind) or types.is_temporal(kind) or types.is_decimal128(kind)
    return bool((whole and not types.is_interval(kind)) or types.is_string(kind) or types.is_large_string(kind))


def _adds(column: pa.ChunkedArray) -> bool:
    """Whether the sum of two values of a column is one of its type, without NULL."""
    if column.null_count:
        return False
    if pa.types.is_int64(column.type):
        values = column.to_numpy()
        return not values.size or (values.max() < _WHOLE and values.min() > -_WHOLE)
    if not pa.types.is_decimal128(column.type):
        return False
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    high = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset + 1 : 2 * (array.offset + len(array)) : 2]
    return not high.size or (int(high.max()) < _HIGH and int(high.min()) > -_HIGH)

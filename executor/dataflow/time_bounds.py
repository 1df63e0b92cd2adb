"""Rows whose times are compared with bounds that move as time passes (``planner.incremental.dataflow.time_bounds``).

Owns: where the bounds are, which rows are on their right side, and which rows change sides. Used by one thread at a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from executor.dataflow.rows.ordered_values import in_order
from executor.dataflow.rows.segments import Range
from executor.dataflow.rows.weighted_rows import negated
from planner.incremental.dataflow.graph import TimeBound, TimeBounded

#: A value for each bound, in the order of the values of its type; None for NULL, on whose right side no row is.
Bounds = tuple[int | None, ...]
#: The row of bounds at a time, which is the parameter of the relation that makes it.
Times = Callable[[TimeBounded], pa.Table]
#: The rows below, with weights, that have a time, by its column, in one of some ranges.
Between = Callable[[Sequence[tuple[str, Range]]], pa.Table]

_COMPARISONS: Final[Mapping[str, Callable[[npt.NDArray[np.int64], int], npt.NDArray[np.bool_]]]] = {
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}
_LEAST, _GREATEST = -(2**63), 2**63 - 1


class TimeBoundedRows:
    """The bounds of one node."""

    def __init__(self, node: TimeBounded, times: Times) -> None:
        self._node = node
        self._bounds = _bounds(times(node))

    def chosen(self, rows: pa.Table) -> pa.Table:
        """Those of some rows that are on the right side of the bounds."""
        return rows.filter(pa.array(_are_chosen(rows, self._node.bounds, self._bounds)))

    def move(self, times: Times, between: Between) -> list[pa.Table]:
        """Moves the bounds; what comes and goes of all rows, with weights."""
        before, self._bounds = self._bounds, _bounds(times(self._node))
        moved = [
            (bound.column, _between(old, new))
            for bound, old, new in zip(self._node.bounds, before, self._bounds, strict=True)
            if old != new
        ]
        if not moved:
            return []
        rows = between(moved)
        were, are = (_are_chosen(rows, self._node.bounds, bounds) for bounds in (before, self._bounds))
        return [negated(rows.filter(pa.array(were & ~are))), rows.filter(pa.array(are & ~were))]


def _bounds(row: pa.Table) -> Bounds:
    """The values of a row of times."""
    found: list[int | None] = []
    for column in row.columns:
        values, are_there = in_order(column)
        found.append(int(values[0]) if are_there[0] else None)
    return tuple(found)


def _between(one: int | None, other: int | None) -> Range:
    """The least and the greatest value that may change sides."""
    if one is None or other is None:
        return _LEAST, _GREATEST
    return min(one, other), max(one, other)


def _are_chosen(rows: pa.Table, bounds: Sequence[TimeBound], values: Bounds) -> npt.NDArray[np.bool_]:
    found = np.ones(rows.num_rows, np.bool_)
    for bound, value in zip(bounds, values, strict=True):
        times, are_there = in_order(rows.column(bound.column))
        found &= are_there if value is not None else False
        if value is not None:
            found &= _COMPARISONS[bound.function](times, value)
    return found

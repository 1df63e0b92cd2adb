"""The merge of a state's rows of equal key (planner.program.State)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from executor.small import values
from executor.small.values import FAILURES, KEYS, Fold, array_of, cells_of, fold_of, folded
from planner.program import State


@dataclass(frozen=True, slots=True)
class Merge:
    """Rows of equal key become one. ``folds`` are for the columns behind the ``width`` key columns."""

    width: int
    folds: tuple[Fold, ...]

    def run(self, table: pa.Table) -> pa.Table | None:
        """The table merged, keys in the order of their first row; None where the engine must."""
        if table.num_rows * table.num_columns > values.CELLS:
            return None
        try:
            return self._run(table)
        except FAILURES:
            return None

    def _run(self, table: pa.Table) -> pa.Table:
        columns = table.columns
        places: dict[tuple[Any, ...], int] = {}
        groups, firsts = [], []
        for row, key in enumerate(_keys(table, self.width)):
            if key not in places:
                places[key] = len(places)
                firsts.append(row)
            groups.append(places[key])
        if len(firsts) == table.num_rows:
            return table
        chosen = pa.array(firsts, pa.int64())
        arrays: list[pa.Array] = [column.take(chosen) for column in columns[: self.width]]
        for column, fold in zip(columns[self.width :], self.folds, strict=True):
            arrays.append(array_of(folded(cells_of(column), groups, len(places), fold), column.type))
        return pa.Table.from_arrays(arrays, schema=table.schema)


def _keys(table: pa.Table, width: int) -> Iterator[tuple[Any, ...]]:
    """Each row's key."""
    if not width:
        return itertools.repeat((), table.num_rows)
    return zip(*(column.to_pylist() for column in table.columns[:width]), strict=True)


def merge_of(state: State) -> Merge | None:
    """How a state's small runs merge here, if they do."""
    if any(column.type.name not in KEYS for column in state.key):
        return None
    if state.kind == "distinct":
        return Merge(len(state.columns), ()) if state.key == state.columns else None
    if state.kind != "aggregate" or state.columns != (*state.key, *(column for column, _ in state.merge)):
        return None
    folds = [fold_of(call, column.type) for column, call in state.merge]
    known = tuple(fold for fold in folds if fold is not None)
    return Merge(len(state.key), known) if len(known) == len(folds) else None

"""Merges a state's rows with equal keys (planner.incremental.programs.program.State)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct

from executor.small import values
from executor.small.values import FAILURES, KEYS, Fold, array_of, fold_of, folded, keep_cells, known_cells
from planner.incremental.programs.program import State


class Merge(Struct, frozen=True):
    """Merges rows with equal keys. ``folds`` merge the columns after the ``width`` key columns."""

    width: int
    folds: tuple[Fold, ...]

    def run(self, tables: Sequence[pa.Table]) -> pa.Table | None:
        """The tables' rows merged, with keys in the order of their first row; None if the engine must merge them."""
        if sum(table.num_rows for table in tables) * tables[0].num_columns > values.CELLS:
            return None
        try:
            return self._run(tables)
        except FAILURES:
            return None

    def _run(self, tables: Sequence[pa.Table]) -> pa.Table:
        places: dict[tuple[Any, ...], int] = {}
        groups: list[int] = []
        firsts: list[int] = []
        keys = itertools.chain.from_iterable(_keys(table, self.width) for table in tables)
        for row, key in enumerate(keys):
            place = places.setdefault(key, len(firsts))
            if place == len(firsts):
                firsts.append(row)
            groups.append(place)
        if len(firsts) == len(groups):
            return tables[0] if len(tables) == 1 else pa.concat_tables(tables)
        arrays, merged = _taken(tables, self.width, firsts), {}
        for index, fold in enumerate(self.folds, self.width):
            cells = [cell for table in tables for cell in known_cells(table, index)]
            merged[index] = folded(cells, groups, len(firsts), fold)
            arrays.append(array_of(merged[index], tables[0].schema.field(index).type))
        result = pa.Table.from_arrays(arrays, schema=tables[0].schema)
        keep_cells(result, merged)
        return result


def _keys(table: pa.Table, width: int) -> Iterator[tuple[Any, ...]]:
    """Each row's key."""
    if not width:
        return itertools.repeat((), table.num_rows)
    return zip(*(known_cells(table, index) for index in range(width)), strict=True)


def _taken(tables: Sequence[pa.Table], width: int, rows: list[int]) -> list[pa.ChunkedArray]:
    """The key columns of some rows; the first table's key columns unchanged if that table has all keys."""
    if len(rows) == tables[0].num_rows and rows[-1] == len(rows) - 1:
        return list(tables[0].columns[:width])
    chosen = pa.array(rows, pa.int64())
    together = pa.concat_tables(table.select(range(width)) for table in tables)
    return [column.take(chosen) for column in together.columns]


def merge_of(state: State) -> Merge | None:
    """The merge of a state's small runs without an engine; None if the engine must merge them."""
    if any(column.type.name not in KEYS for column in state.key):
        return None
    if state.kind == "distinct":
        return Merge(len(state.columns), ()) if state.key == state.columns else None
    if state.kind != "aggregate" or state.columns != (*state.key, *(column for column, _ in state.merge)):
        return None
    folds = [fold_of(call, column.type) for column, call in state.merge]
    known = tuple(fold for fold in folds if fold is not None)
    return Merge(len(state.key), known) if len(known) == len(folds) else None

"""The rows of states that the statements of a path can meet beside a few rows of its inputs.

Owns: how what a program says (``planner.incremental.programs.needed_rows``) becomes rows. They are found by a look at a
column or two, which costs a small part of what statements over all rows do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from planner.incremental.names import stored_name
from planner.incremental.programs.needed_rows import Leaf, Need, Needs, Passed, Sought
from planner.incremental.programs.program import State

_compute: Any = pyarrow.compute  # made at its import, where no type checker sees its functions

#: The most rows of an input beside which rows are chosen, and of how many on.
FEW: Final = 1024
MANY: Final = 4096


def needed_rows(
    states: Mapping[str, State], needs: Needs, deltas: Mapping[int, pa.Table], rows: Callable[[State], list[pa.Table]]
) -> dict[str, list[pa.Table]]:
    """By name, the runs of the states that are read, with the rows that are needed, and perhaps others."""
    if any(delta.num_rows > FEW for delta in deltas.values()):
        return {name: rows(states[name]) for name in needs if name in states}
    choosing = _Choosing(states, needs, deltas, rows)
    return {name: choosing.runs(name) for name in needs if name in states}


class _Choosing:
    """The rows for one set of deltas."""

    def __init__(
        self,
        states: Mapping[str, State],
        needs: Needs,
        deltas: Mapping[int, pa.Table],
        rows: Callable[[State], list[pa.Table]],
    ) -> None:
        self._states, self._needs, self._deltas, self._rows = states, needs, deltas, rows
        self._found: dict[str, list[pa.Table]] = {}
        self._begun: set[str] = set()

    def runs(self, name: str) -> list[pa.Table]:
        """A state's runs."""
        if name not in self._found:
            self._begun.add(name)
            self._found[name] = self._chosen(name)
        return self._found[name]

    def _chosen(self, name: str) -> list[pa.Table]:
        state, needs = self._states[name], self._needs.get(name)
        tables = self._rows(state)
        if needs is None or sum(table.num_rows for table in tables) <= MANY:
            return tables
        keys = {stored_name(column) for column in state.key}
        if state.kind != "concatenate" and not all(need.column in keys for need in needs):
            return tables  # a group's rows are merged
        marked = [self._marking(need) for need in dict.fromkeys(needs)]
        choices = [mark for mark in marked if mark is not None]
        if len(choices) < len(marked):
            return tables
        found = []
        for table in tables:
            masks = [mark(table) for mark in choices]
            found.append(table.filter(pa.array(np.logical_or.reduce(masks))))
        return found

    def _marking(self, need: Need) -> Callable[[pa.Table], npt.NDArray[np.bool_]] | None:
        """What says which rows a need is about; None where that is not known."""
        match need:
            case Sought(column=column, among=among):
                found = self._values(among)
                return None if found is None else lambda table: _are_among(table.column(column), found)
            case Passed():
                return self._passing(need)

    def _passing(self, need: Passed) -> Callable[[pa.Table], npt.NDArray[np.bool_]] | None:
        latest, before = self._latest(need.upto), self._latest(need.behind)
        end = None if latest is None else latest - need.age
        start = None if before is None else before - need.known

        def are_passed(table: pa.Table) -> npt.NDArray[np.bool_]:
            times = table.column(need.column).cast(pa.int64())
            numbers = times.fill_null(0).to_numpy()
            if end is None:
                return np.zeros(numbers.size, np.bool_)
            found: npt.NDArray[np.bool_] = numbers <= end
            return found if start is None else found & (numbers > start)

        return are_passed

    def _latest(self, leaf: Leaf) -> int | None:
        columns = [column.cast(pa.int64()) for column in self._columns(leaf) or ()]
        return max((top for column in columns if (top := _compute.max(column).as_py()) is not None), default=None)

    def _values(self, leaf: Leaf) -> pa.Array | None:
        """The values of a leaf's column; None where they are too many, or those of a state that is still looked for."""
        columns = self._columns(leaf)
        if columns is None or sum(map(len, columns)) > FEW or not columns:
            return None
        return pa.concat_arrays(
            [chunk for column in columns for chunk in column.chunks] or [columns[0].combine_chunks()]
        )

    def _columns(self, leaf: Leaf) -> list[pa.ChunkedArray] | None:
        if isinstance(leaf.of, int):
            return [self._deltas[leaf.of].column(leaf.source)]
        if leaf.of not in self._found and (leaf.of in self._begun or leaf.of not in self._states):
            return None
        return [table.column(leaf.source) for table in self.runs(leaf.of)]


def _are_among(column: pa.ChunkedArray, values: pa.Array) -> npt.NDArray[np.bool_]:
    """Where a column has one of some values, or NULL."""
    same = _compute.is_in(column, value_set=values.cast(column.type))
    found: npt.NDArray[np.bool_] = _compute.or_(same, _compute.is_null(column)).to_numpy()
    return found

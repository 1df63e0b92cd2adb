"""Window functions over few rows: places in partitions, and aggregates of whole partitions.

Owns: the functions and frames that Python computes. Rows that tie have places in the order in which they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from executor.small.ordering import in_order, key_of
from executor.small.value_expressions import Computed, Rows, compiled
from executor.small.values import KEYS, Cells, computed, fold_of, folded
from planner.algebra.nodes import AggregateCall, Column, ColumnRef, SortKey, Window, WindowCall

_PLACES: Final = ("row_number", "rank", "dense_rank")
_Call = Callable[[Rows], Cells]


def window_of(relation: Window) -> Callable[[Rows], Rows] | None:
    """A function that adds the results of window functions to rows; None if the engine must compute them."""
    found = [(column, _call(call)) for column, call in relation.calls]
    known = [(column, run) for column, run in found if run is not None]
    if len(known) < len(found):
        return None

    def step(rows: Rows) -> Rows:
        added = {column: computed(run(rows), column.type.arrow) for column, run in known}
        return Rows(rows.count, {**rows.columns, **added}, rows.parameters)

    return step


def _call(call: WindowCall) -> _Call | None:
    partition = [compiled(value) for value in call.partition]
    known = [value for value in partition if value is not None]
    if len(known) < len(partition) or not all(value.type.name in KEYS for value in call.partition):
        return None
    if call.function in _PLACES:
        return None if call.arguments or call.filter is not None else _placed(call, known)
    is_default = (call.mode, call.start, call.end, call.exclude) == (
        "range",
        "unbounded_preceding",
        "current_row",
        "no_others",
    )
    return _of_partition(call, known) if is_default and not call.order_by else None


def _partitions(rows: Rows, values: Sequence[Computed]) -> list[int]:
    """The number of each row's partition."""
    if not values:
        return [0] * rows.count
    numbers: dict[tuple[Any, ...], int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in zip(*(value(rows) for value in values), strict=True)]


# -- places ------------------------------------------------------------------------------------------------------------


def _placed(call: WindowCall, partition: Sequence[Computed]) -> _Call | None:
    keys = [(key, key_of(key)) for key in call.order_by]
    known: list[tuple[SortKey, Computed]] = [(key, value) for key, value in keys if value is not None]
    if len(known) < len(keys):
        return None
    function = call.function

    def run(rows: Rows) -> Cells:
        partitions, cells = _partitions(rows, partition), [(key, value(rows)) for key, value in known]
        peers = list(zip(*(column for _, column in cells), strict=True)) if cells else [()] * rows.count
        found: Cells = [None] * rows.count
        last: dict[int, tuple[int, int, Any]] = {}
        for row in in_order(rows.count, cells):
            number, place, before = last.get(partitions[row], (0, 0, None))
            number += 1
            if function == "row_number" or before is None or before != peers[row]:
                place = place + 1 if function == "dense_rank" else number
            last[partitions[row]] = (number, place, peers[row])
            found[row] = place
        return found

    return run


# -- aggregates of partitions ------------------------------------------------------------------------------------------


def _of_partition(call: WindowCall, partition: Sequence[Computed]) -> _Call | None:
    only = None if call.filter is None else compiled(call.filter)
    if len(call.arguments) != 1 or (call.filter is not None and only is None):
        return None
    (argument,) = call.arguments
    value, column = compiled(argument), Column(0, "value", call.type)
    fold = fold_of(AggregateCall(call.function, (ColumnRef(column),), call.type), argument.type)
    if value is None or fold is None or call.function not in ("min", "max"):
        return None
    of_row = value

    def run(rows: Rows) -> Cells:
        partitions, cells = _partitions(rows, partition), of_row(rows)
        if only is not None:
            cells = [cell if holds else None for cell, holds in zip(cells, only(rows), strict=True)]
        results = folded(cells, partitions, max(partitions, default=-1) + 1, fold)
        return [results[number] for number in partitions]

    return run

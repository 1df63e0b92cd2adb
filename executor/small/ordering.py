"""Sorts and limits few rows in Python.

Owns: the types that Python orders as the engines do, which compare text by its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from executor.small.value_expressions import Computed, Rows, compiled
from executor.small.values import ORDERED, Cells
from planner.algebra.nodes import Limit, Literal, Scalar, Sort, SortKey

#: Python compares code points, which have the order of their UTF-8 bytes.
TEXTS: Final = frozenset(("text", "varchar", "bpchar"))


def sort_of(relation: Sort) -> Callable[[Rows], Rows] | None:
    """A function that sorts rows; None if the engine must sort them."""
    found = [(key, key_of(key)) for key in relation.keys]
    known = [(key, value) for key, value in found if value is not None]
    if len(known) < len(found):
        return None
    return lambda rows: rows.taken(in_order(rows.count, [(key, value(rows)) for key, value in known]))


def in_order(count: int, keys: Sequence[tuple[SortKey, Cells]]) -> list[int]:
    """The places of so many rows in the order of some keys, by the values of each."""
    order = list(range(count))
    for key, cells in reversed(keys):  # each sort is stable
        order = _sorted(order, cells, key)
    return order


def key_of(key: SortKey) -> Computed | None:
    """The values by which a key sorts; None for a type that Python orders otherwise."""
    return compiled(key.expression) if key.expression.type.name in ORDERED | TEXTS else None


def _sorted(order: list[int], cells: Cells, key: SortKey) -> list[int]:
    without = [index for index in order if cells[index] is None]
    known = [index for index in order if cells[index] is not None]
    known.sort(key=cells.__getitem__, reverse=key.descending)
    return without + known if key.nulls_first else known + without


def limit_of(relation: Limit) -> Callable[[Rows], Rows] | None:
    """A function that applies LIMIT and OFFSET; None if the engine must compute the counts."""
    start = 0 if relation.offset is None else _count(relation.offset)
    count = None if relation.count is None else _count(relation.count)
    if start is None or (count is None and relation.count is not None):
        return None
    stop = None if count is None else start + count

    def step(rows: Rows) -> Rows:
        return rows.taken(list(range(rows.count))[start:stop])

    return step


def _count(scalar: Scalar) -> int | None:
    value = scalar.value if isinstance(scalar, Literal) else None
    return value if isinstance(value, int) and value >= 0 else None

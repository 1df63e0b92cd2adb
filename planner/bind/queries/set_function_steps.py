"""The steps in which the set-returning functions of a select list become rows.

Functions in one step advance together; a function that another one takes as an argument is in an earlier step
(PostgreSQL's split_pathtarget_at_srfs).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.algebra.nodes import Column, Scalar
from planner.algebra.walk import used_columns


def steps(sets: Iterable[tuple[Column, Scalar]]) -> list[tuple[tuple[Column, Scalar], ...]]:
    """Sets that are called in step with each other, those that others take as arguments before these."""
    depths: dict[Column, int] = {}
    found: list[list[tuple[Column, Scalar]]] = []
    for column, values in sets:
        depth = 1 + max((depths.get(item, -1) for item in used_columns(values)), default=-1)
        depths[column] = depth
        found += [[]] if depth == len(found) else []
        found[depth].append((column, values))
    return [tuple(step) for step in found]


def drawn_by(unnested: Sequence[tuple[Column, Scalar]], scalars: Sequence[Scalar]) -> bool:
    """Whether sets are called that must be there before DISTINCT ON: without any, or where it or ORDER BY needs one."""
    sets = {column for column, _ in unnested}
    return not sets or any(column in sets for scalar in scalars for column in used_columns(scalar))

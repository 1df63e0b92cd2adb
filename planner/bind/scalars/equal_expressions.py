"""Whether two expressions are equal if columns of their subqueries are disregarded.

Each subquery has fresh columns wherever it is written. PostgreSQL compares parse trees (``equal()``), in which a
subquery's columns are numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from planner.algebra.nodes import Scalar
from planner.algebra.signature import key_of
from planner.algebra.walk import RELATION_KINDS, contains


def alike(scalar: Scalar, known: Iterable[Scalar]) -> Scalar:
    """The member of ``known`` that equals an expression with subqueries; the expression itself if none does."""
    if not contains(scalar, RELATION_KINDS):
        return scalar
    said = None
    for other in known:
        if other is scalar:
            break
        said = said or of_queries(scalar)
        if of_queries(other) == said:
            return other
    return scalar


def of_queries(scalar: Scalar) -> tuple[type, Hashable] | None:
    """The key by which equal expressions with subqueries are found; None without subqueries."""
    if not contains(scalar, RELATION_KINDS):
        return None
    return type(scalar), key_of(scalar)

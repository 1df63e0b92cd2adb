"""Expressions that are equal but for their subqueries' columns, which are others wherever a subquery is written.

PostgreSQL compares parse trees (``equal()``), in which a subquery's columns are numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from planner.expression import Scalar
from planner.incremental.signature import key_of
from planner.walk import RELATIONS, walk


def alike(scalar: Scalar, known: Iterable[Scalar]) -> Scalar:
    """The one of ``known`` that says the same as an expression with subqueries; the expression itself if none does."""
    if not has_query(scalar):
        return scalar
    key = key_of(scalar)
    return next((other for other in known if type(other) is type(scalar) and key_of(other) == key), scalar)


def has_query(scalar: Scalar) -> bool:
    """Whether a subquery stands in an expression."""
    return any(isinstance(item, RELATIONS) for item in walk(scalar))


def of_queries(scalar: Scalar) -> tuple[type, Hashable] | None:
    """What an expression with subqueries has in common with those that say the same; None without subqueries."""
    return (type(scalar), key_of(scalar)) if has_query(scalar) else None

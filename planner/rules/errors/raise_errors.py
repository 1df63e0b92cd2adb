"""Errors of constants that are left in an optimised relation: ``1 / 0`` is an error even where no row asks for it.

PostgreSQL computes constants when it plans, with what that raises, and leaves alone what CASE, COALESCE and AND do not
reach; by now the rules have taken that away, but for what stands behind COALESCE's first argument.
https://www.postgresql.org/docs/15/sql-expressions.html#SYNTAX-EXPRESS-EVAL
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from catalog.values.errors import division_by_zero
from planner.algebra.identity import NodeSet
from planner.algebra.nodes import (
    Call,
    Exists,
    Filter,
    InSubquery,
    Join,
    Limit,
    Literal,
    Project,
    Relation,
    Scalar,
    ScalarSubquery,
    Sort,
)
from planner.algebra.walk import calls_of, contains, walk

_DIVISIONS: Final = calls_of("div", "mod")


def raise_errors(relation: Relation) -> Relation:
    """The relation itself. Raises 22012."""
    if contains(relation, _DIVISIONS) and any(map(_raises, _asked(relation))):
        raise division_by_zero()
    return relation


def _asked(relation: Relation) -> Iterator[Scalar]:
    """Expressions that are surely asked for: predicates, and what the whole shows, which others may not be."""
    top = relation
    while isinstance(top, Sort | Limit):
        top = top.input
    if isinstance(top, Project):
        yield from (scalar for _, scalar in top.outputs)
    for node in walk(relation):
        if isinstance(node, Filter | Join) and node.predicate is not None:
            yield node.predicate


def _raises(scalar: Scalar) -> bool:
    found = [node for node in walk(scalar) if _divides_by_zero(node)]
    if not found:
        return False
    skipped = NodeSet(part for node in walk(scalar) for lazy in _unasked(node) for part in walk(lazy))
    return any(node not in skipped for node in found)


def _unasked(node: Any) -> tuple[Any, ...]:
    """What is below a node that may not be computed: predicates of subqueries are looked at by themselves."""
    match node:
        case Call(function="coalesce", arguments=(_, *later)):
            return tuple(later)
        case ScalarSubquery(relation=relation) | Exists(relation=relation) | InSubquery(relation=relation):
            return (relation,)
        case _:
            return ()


def _divides_by_zero(node: Any) -> bool:
    match node:
        case Call(function="div" | "mod", arguments=(Literal(value=int() as left), Literal(value=0 as right))):
            return not isinstance(left, bool) and not isinstance(right, bool)
        case _:
            return False

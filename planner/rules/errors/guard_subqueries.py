"""A subquery that only some rows ask for sees only those: its condition goes into it.

    CASE WHEN c THEN (SELECT f FROM S WHERE p)     =  CASE WHEN c THEN (SELECT f FROM S WHERE p AND c)
    CASE WHEN b .. WHEN c THEN (SELECT ...)        =  the same with (b is not true and c is)
    coalesce(a, (SELECT ...))                      =  coalesce(a, (SELECT ... AND a IS NULL))

An engine that unnests subqueries computes a correlated one for all rows and picks afterwards. PostgreSQL promises that
CASE evaluates no more than it needs, on which queries rely:

    CASE WHEN t.a <> 0 THEN (SELECT s.x / t.a FROM s WHERE s.k = t.k) END       -- no division by zero

So this is about what may raise: an expression, or the second row of a scalar subquery. A subquery that is not
correlated stays as it is, since an engine would compute it anew for each row's values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from catalog.values.types import BOOL
from planner.algebra.construction import (
    FALSE,
    SUBQUERIES,
    TRUE,
    Fresh,
    conjunction,
    conjuncts,
    has_subquery,
    outermost_subqueries,
    volatility,
)
from planner.algebra.failures import may_raise
from planner.algebra.identity import NodeSet
from planner.algebra.nodes import (
    Aggregate,
    Call,
    Case,
    Filter,
    Limit,
    Project,
    Relation,
    Scalar,
    ScalarSubquery,
    Sort,
    Unnest,
    Window,
)
from planner.algebra.walk import SUBQUERY_KINDS, contains, free_columns, transform, transform_relations
from planner.rules.subqueries.correlation import rows_at_most_one

_Guard = Callable[[], Scalar]


def guard_subqueries(relation: Relation) -> Relation:
    """The relation with conditions of CASE and coalesce inside the subqueries that they decide about."""
    if not contains(relation, SUBQUERY_KINDS):
        return relation
    fresh = Fresh(relation)
    return transform_relations(relation, lambda node: _change(node, fresh), SUBQUERY_KINDS)


def may_fail(node: Any) -> bool:
    """Whether a node is a subquery that is correlated and may raise."""
    if not isinstance(node, SUBQUERIES) or not free_columns(node.relation):
        return False
    return may_raise(node.relation) or (isinstance(node, ScalarSubquery) and not rows_at_most_one(node.relation))


def _change(node: Any, fresh: Fresh) -> Any:
    match node:
        case Case() if has_subquery(node):
            return _case(node, fresh)
        case Call(function="coalesce", arguments=arguments) if any(map(has_subquery, arguments[1:])):
            guarded = (
                _in_scalar(item, _missing(arguments[:place], fresh)) if place else item
                for place, item in enumerate(arguments)
            )
            return replace(node, arguments=tuple(guarded))
        case _:
            return node


def _case(node: Case, fresh: Fresh) -> Case:
    conditions = [condition for condition, _ in node.branches]
    branches = tuple(
        (
            _in_scalar(condition, _reached(conditions[:place], TRUE, fresh)) if place else condition,
            _in_scalar(value, _reached(conditions[:place], condition, fresh)),
        )
        for place, (condition, value) in enumerate(node.branches)
    )
    return replace(node, branches=branches, otherwise=_in_scalar(node.otherwise, _reached(conditions, TRUE, fresh)))


def _reached(before: list[Scalar], condition: Scalar, fresh: Fresh) -> _Guard:
    """Whether a condition is true of a row, and none before it; evaluated as CASE would."""

    def guard() -> Scalar:
        if not before and not may_raise(condition):
            return _copied(condition, fresh)
        branches = (*((_copied(item, fresh), FALSE) for item in before), (_copied(condition, fresh), TRUE))
        return Case(branches, FALSE, BOOL)

    return guard


def _missing(before: tuple[Scalar, ...], fresh: Fresh) -> _Guard:
    """Whether all values are NULL."""

    def guard() -> Scalar:
        found = conjunction(Call("is_null", (_copied(item, fresh),), BOOL) for item in before)
        assert found is not None
        return found

    return guard


def _copied(scalar: Scalar, fresh: Fresh) -> Scalar:
    """A scalar whose subqueries have columns of their own."""

    def change(node: Any) -> Any:
        return replace(node, relation=fresh.rename(node.relation)[0]) if isinstance(node, SUBQUERIES) else node

    result: Scalar = transform(scalar, change)
    return result


def _in_scalar(scalar: Scalar, make: _Guard) -> Scalar:
    """A scalar with a guard in each of its subqueries that want one."""
    wanting = NodeSet(item for item in outermost_subqueries(scalar) if may_fail(item))
    if not wanting or volatility(guard := make()) == "volatile":
        return scalar

    def change(node: Any) -> Any:
        return replace(node, relation=_guarded(node.relation, guard)) if node in wanting else node

    result: Scalar = transform(scalar, change)
    return result


def _guarded(relation: Relation, guard: Scalar) -> Relation:
    """A subquery's rows where a guard is true, tested below what it computes of each row; else few or none."""
    above: list[Any] = []
    while isinstance(relation, Project | Filter | Aggregate | Window | Unnest | Sort | Limit):
        above.append(relation)
        relation = relation.input
    relation = Filter(relation, guard)
    for node in reversed(above):
        match node:
            case Filter():
                relation = Filter(relation, _beside(guard, node.predicate))
            case Aggregate(keys=()):  # has a row over no rows
                relation = Filter(replace(node, input=relation), guard)
            case _:
                relation = replace(node, input=relation)
    return relation


def _beside(guard: Scalar, predicate: Scalar) -> Scalar:
    """A predicate that may be tested beside a guard in any order."""
    parts = (Case(((guard, part),), FALSE, BOOL) if may_raise(part) else part for part in conjuncts(predicate))
    return conjunction(parts) or TRUE

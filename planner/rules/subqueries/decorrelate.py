"""Subqueries become joins.

    Filter(R, EXISTS S)            =  R semi join S' on its predicates              NOT EXISTS: anti
    Filter(R, a IN S)              =  R semi join S' on a = s AND its predicates
    Filter(R, a NOT IN S)          =  R anti join S' on (a = s) IS NOT FALSE ...    a plain = where neither is ever NULL
    scalar (SELECT agg ...)        =  R left join Aggregate(S', keys of its equalities) on the equalities
                                      with count read as coalesce(count, 0), since a group that is not there counts 0
    scalar, not correlated         =  R cross join S          S has exactly one row (left join: at most one)
    EXISTS, IN within OR or SELECT =  R left join Aggregate(S'), compared with what was counted
    LATERAL                        =  a join on its predicates (``lateral_joins``)
    what none of these fits        =  a join by Neumann and Kemper's general method (``subquery_joins``)

S' is S without its correlated predicates (``correlation.pull``). An uncorrelated scalar subquery of which nobody knows
that it has at most one row stays where it is: the engine raises 21000 at the second. NOT IN over a nullable column, not
correlated, counts rows and NULLs of S first, so that the join itself can hash. Nested subqueries go from the innermost
out, so that each meets relations without any; columns of rows further out are still free in what it becomes.

A NULL in S makes NOT IN never true, so this is not an anti join on equality:

    SELECT * FROM t WHERE a NOT IN (SELECT b FROM u)     -- empty once u.b holds a NULL
"""

from __future__ import annotations

from typing import Any

from planner.algebra.construction import (
    Fresh,
    both,
    conjunction,
    conjuncts,
    filtered,
    has_subquery,
    keep_columns,
)
from planner.algebra.nodes import (
    Aggregate,
    Call,
    Exists,
    Filter,
    InSubquery,
    Join,
    Project,
    Relation,
    Scalar,
    Sort,
    Unnest,
    Window,
)
from planner.algebra.walk import is_dependent, transform, used_columns
from planner.rules.subqueries.correlation import refuse
from planner.rules.subqueries.dependent_joins import Domain, independent_join
from planner.rules.subqueries.lateral_joins import unnest_lateral
from planner.rules.subqueries.subquery_columns import Lift


def decorrelate(relation: Relation) -> Relation:
    """The relation with every subquery that a continuous view may have turned into a join. Raises 0A000."""
    fresh = Fresh(relation)
    result: Relation = transform(relation, lambda node: _rewrite(node, fresh))
    return result


def unnest(relation: Relation) -> Relation:
    """The relation with every subquery and every LATERAL turned into a join, for an engine without. Raises 0A000."""
    fresh = Fresh(relation)

    def change(node: Any) -> Any:
        found = _rewrite(node, fresh)
        if isinstance(found, Join) and found.kind in ("inner", "left") and is_dependent(found.right, found.left):
            return independent_join(found.kind, found.left, found.right, found.predicate, fresh)
        return found

    result: Relation = transform(relation, change)
    return result


def _rewrite(node: Any, fresh: Fresh) -> Any:
    """One operator whose nested relations are done already."""
    match node:
        case Filter() if has_subquery(node.predicate):
            return keep_columns(_filter(node, fresh), node.columns)
        case Project(outputs=outputs):
            lift = Lift(node.input, fresh)
            lifted = tuple((column, lift.scalar(value)) for column, value in outputs)
            return node if lift.relation is node.input else Project(lift.relation, lifted)
        case Aggregate():
            return _aggregate(node, fresh)
        case Window(calls=calls) if any(has_subquery(call) for _, call in calls):
            lift = Lift(node.input, fresh)
            computed = tuple((column, transform(call, lift.change)) for column, call in calls)
            return keep_columns(Window(lift.relation, computed), node.columns)
        case Unnest(items=items) if any(has_subquery(value) for _, value in items):
            lift = Lift(node.input, fresh)
            arrays = tuple((column, lift.scalar(value)) for column, value in items)
            return keep_columns(Unnest(lift.relation, arrays, node.ordinality), node.columns)
        case Sort():
            lift = Lift(node.input, fresh)
            keys = tuple(type(key)(lift.scalar(key.expression), key.descending, key.nulls_first) for key in node.keys)
            return node if lift.relation is node.input else keep_columns(Sort(lift.relation, keys), node.columns)
        case Join(kind="inner" | "left") if is_dependent(node.right, node.left):
            return unnest_lateral(node, fresh)
        case Join(predicate=predicate) if predicate is not None and has_subquery(predicate):
            return _join(node, predicate, fresh)
        case _:
            return node


def _aggregate(node: Aggregate, fresh: Fresh) -> Aggregate:
    lift = Lift(node.input, fresh)
    keys = tuple((column, lift.scalar(value)) for column, value in node.keys)
    aggregates = tuple((column, transform(call, lift.change)) for column, call in node.aggregates)
    return node if lift.relation is node.input else Aggregate(lift.relation, keys, aggregates)


def _join(node: Join, predicate: Scalar, fresh: Fresh) -> Relation:
    """A subquery in ON: an inner join's goes above it, an outer join's into the side that it is about."""
    if node.kind == "inner":
        crossed = Filter(Join("inner", node.left, node.right, None), predicate)
        return keep_columns(_filter(crossed, fresh), node.columns)
    left, right = Lift(node.left, fresh), Lift(node.right, fresh)
    parts: list[Scalar] = []
    inside: list[Scalar] = []
    across: list[Scalar] = []
    for part in conjuncts(predicate):
        used = used_columns(part)
        if not has_subquery(part):
            parts.append(part)
        elif node.kind == "left" and used.isdisjoint(node.left.columns):
            inside.append(part)
        elif used.isdisjoint(node.right.columns):
            parts.append(left.scalar(part))
        elif used.isdisjoint(node.left.columns):
            parts.append(right.scalar(part))
        else:
            across.append(part)
    right.relation = _rewrite(filtered(right.relation, inside), fresh)
    joined = Join(node.kind, left.relation, right.relation, conjunction(parts))
    return keep_columns(_joined_across(joined, across, fresh) if across else joined, node.columns)


def _joined_across(node: Join, across: list[Scalar], fresh: Fresh) -> Join:
    """What is about both sides filters the one that may be padded, which stands beside all values of the other's
    columns: each of its rows meets a row of the other once."""
    if node.kind == "full":
        raise refuse("of both sides in the ON clause of a full join")
    kept, padded = (node.right, node.left) if node.kind == "right" else (node.left, node.right)
    domain = Domain.of(kept, filtered(padded, across), fresh)
    assert domain is not None, "the predicates use both sides"
    side = _rewrite(filtered(domain.beside(padded), map(domain.over_own, across)), fresh)
    predicate = both(node.predicate, domain.pairs())
    left, right = (side, kept) if node.kind == "right" else (kept, side)
    return Join(node.kind, left, right, predicate)


def _filter(node: Filter, fresh: Fresh) -> Relation:
    """The filter's rows, with columns of lifted subqueries beside them."""
    lift = Lift(node.input, fresh)
    plain = [part for part in conjuncts(node.predicate) if not has_subquery(part)]
    lift.relation = filtered(lift.relation, plain)
    rest: list[Scalar] = []
    for part in conjuncts(node.predicate):
        if not has_subquery(part):
            continue
        match part:
            case Exists():
                lift.exists("semi", part)
            case Call(function="not", arguments=(Exists() as nested,)):
                lift.exists("anti", nested)
            case InSubquery() if lift.member("semi", part):
                pass
            case Call(function="not", arguments=(InSubquery() as nested,)) if lift.member("anti", nested):
                pass
            case _:
                rest.append(lift.scalar(part))
    return filtered(lift.relation, rest)

"""EXISTS becomes a join where rows that are equal in something are asked for.

    Filter(R, EXISTS S)       =  R semi join S' on the correlated predicates of S
    Filter(R, NOT EXISTS S)   =  R anti join S' on the same

S' is S without these predicates (``correlation.pull``). An engine that unnests the subquery by itself does it for all
values of R's columns, NULL among them, and may only make a join of it where it knows that there is none. It then keeps
the subquery in its place, too, while a join may come after others that leave fewer rows.

A subquery stays one where nothing of it equals anything of R's own rows, for what is compared otherwise is compared
pair by pair; where it may raise, since a join decides by itself which rows see a predicate; where a subquery in it is
about R's rows, too; and over rows of a stream.

    SELECT * FROM l WHERE EXISTS (SELECT FROM l AS o WHERE o.k = l.k AND o.s <> l.s)      -- a join on k
    SELECT * FROM l WHERE EXISTS (SELECT FROM l AS o WHERE o.s <> l.s)                    -- stays
"""

from __future__ import annotations

from typing import Any

from catalog.values.errors import SqlError
from planner.algebra.construction import SUBQUERIES, Fresh, conjunction, conjuncts, filtered, volatility
from planner.algebra.failures import may_raise
from planner.algebra.nodes import Call, Exists, Filter, Join, JoinKind, Relation, Scalar, Scan
from planner.algebra.walk import contains, free_columns, kinds_of, produced_columns, transform_relations, walk
from planner.rules.subqueries.correlation import Pulled, equal_parts, pull, without_top


def join_existing(relation: Relation) -> Relation:
    """The relation with such conditions as joins."""
    if not contains(relation, kinds_of(Exists)):
        return relation
    fresh = Fresh(relation)

    def change(node: Any) -> Any:
        return _change(node, fresh) if isinstance(node, Filter) else node

    return transform_relations(relation, change, kinds_of(Exists))


def _change(node: Filter, fresh: Fresh) -> Relation:
    """A filter whose nested relations are done already."""
    rest: list[Scalar] = []
    joins: list[tuple[JoinKind, Pulled]] = []
    for part in conjuncts(node.predicate):
        match part:
            case Exists(relation=nested):
                kind: JoinKind = "semi"
            case Call(function="not", arguments=(Exists(relation=nested),)):
                kind = "anti"
            case _:
                rest.append(part)
                continue
        pulled = _pulled(node.input, nested, fresh)
        if pulled is None:
            rest.append(part)
        else:
            joins.append((kind, pulled))
    if not joins:
        return node
    relation = filtered(node.input, rest)
    for kind, pulled in joins:
        relation = Join(kind, relation, pulled.relation, conjunction(pulled.predicates))
    return relation


def _pulled(outer: Relation, nested: Relation, fresh: Fresh) -> Pulled | None:
    """The subquery as a side of a join with the relation that asks for its rows; None where it stays one."""
    nested = without_top(nested)
    free = free_columns(nested)
    if not free or not free <= set(outer.columns) or may_raise(nested) or volatility(nested) == "volatile":
        return None
    if any(isinstance(item, SUBQUERIES) and free_columns(item.relation) & free for item in walk(nested)):
        return None
    if any(isinstance(item, Scan) and item.arrives for side in (outer, nested) for item in walk(side)):
        return None
    if produced_columns(nested) & produced_columns(outer):  # one may be written once and bound twice
        nested = fresh.rename(nested)[0]
    try:
        pulled = pull(nested, fresh)
    except SqlError:
        return None
    equal = any(equal_parts(item, frozenset(free)) is not None for item in pulled.predicates)
    return pulled if equal else None

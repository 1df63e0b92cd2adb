"""LATERAL becomes a plain join, where a rule takes the correlation out of its right side.

    L join Project(R, f)     =  Project(L join R, L's columns and f)             inner; where R is one row, L
    L join R(o)              =  L join R' on its predicates                      inner and left (``correlation.pull``)
    L join Aggregate(R(o))   =  Project(L left join Aggregate(R', keys of its equalities) on the equalities, f)
                                with count read as coalesce(count, 0), since a group that is not there counts 0

What no rule takes out stays as it is: an engine evaluates it for each row where it stands above all groupings, and
``planner.incremental.checks`` refuses it elsewhere.
"""

from __future__ import annotations

from catalog.values.errors import SqlError
from planner.algebra.construction import (
    Fresh,
    both,
    conjunction,
    conjuncts,
    equality,
    filtered,
    keep_columns,
    substitute,
)
from planner.algebra.nodes import Aggregate, Column, ColumnRef, Filter, Join, Project, Relation, Scalar, Sort, Values
from planner.algebra.walk import free_columns, is_dependent, used_columns
from planner.rules.subqueries.correlation import equal_parts, name_of, pull, refuse
from planner.rules.subqueries.dependent_joins import over_nothing

_ONE_ROW = Values((), ((),))


def unnest_lateral(node: Join, fresh: Fresh) -> Relation:
    """A join whose right side uses the left's columns, without that if a rule fits."""
    try:
        return _inner(node, fresh) if node.kind == "inner" else _outer(node, fresh)
    except SqlError as error:
        if error.sqlstate != "0A000":
            raise
        return node


def _inner(node: Join, fresh: Fresh) -> Relation:
    """Projections and filters on top of the right side stand above the join as well."""
    right, outputs, conditions = _stripped(node.right)
    mapping = {column: value for column, value in outputs.items() if column in node.right.columns}
    above = [substitute(part, mapping) for part in (*conjuncts(node.predicate),)] + conditions
    joined: Relation
    if right == _ONE_ROW:
        joined = node.left
    elif isinstance(right, Aggregate) and not right.keys:
        joined, read = _beside_one_row(node.left, right, fresh)
        above = [substitute(part, read) for part in above]
        mapping = {column: substitute(value, read) for column, value in mapping.items()}
    elif is_dependent(right, node.left):
        pulled = pull(right, fresh)
        joined = Join("inner", node.left, pulled.relation, conjunction(pulled.predicates))
    else:
        joined = Join("inner", node.left, right, None)
    own = tuple((column, ColumnRef(column)) for column in node.left.columns)
    return Project(filtered(joined, above), (*own, *mapping.items()))


def _outer(node: Join, fresh: Fresh) -> Relation:
    """Where a row without a partner is kept, only what has always one row may move above the join."""
    right, _, conditions = _stripped(node.right)
    if isinstance(right, Aggregate) and not right.keys and not conditions and not [*conjuncts(node.predicate)]:
        return _inner(Join("inner", node.left, node.right, None), fresh)
    pulled = pull(node.right, fresh)
    joined = Join(node.kind, node.left, pulled.relation, both(node.predicate, pulled.predicates))
    return keep_columns(joined, node.columns)


def _stripped(relation: Relation) -> tuple[Relation, dict[Column, Scalar], list[Scalar]]:
    """What lies below projections, filters and orders, what the columns are over it, and what must hold."""
    outputs: dict[Column, Scalar] = {column: ColumnRef(column) for column in relation.columns}
    conditions: list[Scalar] = []
    while True:
        match relation:
            case Project():
                mapping = dict(relation.outputs)
                outputs = {column: substitute(value, mapping) for column, value in outputs.items()}
                conditions = [substitute(item, mapping) for item in conditions]
            case Filter():
                conditions = [*conjuncts(relation.predicate), *conditions]
            case Sort():
                pass
            case _:
                return relation, outputs, conditions
        relation = relation.input


def _beside_one_row(left: Relation, aggregate: Aggregate, fresh: Fresh) -> tuple[Relation, dict[Column, Scalar]]:
    """The rows beside the one row of an aggregate over what uses their columns, and how its columns are read."""
    free = frozenset(free_columns(aggregate.input))
    if any(used_columns(call) & set(left.columns) for _, call in aggregate.aggregates):
        raise refuse("whose aggregate uses the outer query's columns")
    pulled = pull(aggregate.input, fresh)
    keys: list[tuple[Column, Scalar]] = []
    pairs: list[Scalar] = []
    for predicate in pulled.predicates:
        parts = equal_parts(predicate, free)
        if parts is None:
            raise refuse("compared otherwise than by equality with the outer query")
        keys.append((fresh.column(name_of(parts[0]), parts[0].type), parts[0]))
        pairs.append(equality(ColumnRef(keys[-1][0]), parts[1]))
    grouped = Aggregate(pulled.relation, tuple(keys), aggregate.aggregates)
    read = dict(over_nothing(aggregate)) if keys else {}
    return Join("left" if keys else "inner", left, grouped, conjunction(pairs)), read

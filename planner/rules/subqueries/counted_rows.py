"""Scalar subqueries of which nobody knows that they have at most one row, as groupings, which have exactly one.

    (SELECT x FROM R)  =  (SELECT CASE WHEN count(*) > 1 THEN error(21000) ELSE min(x) END FROM R)

For relations of which changes are followed, where such a subquery is one group that a change touches; an engine raises
the error of the second row by itself.
"""

from __future__ import annotations

from typing import Any, Final

from catalog.values.types import BOOL, INT8
from planner.algebra.construction import Fresh
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Case,
    ColumnRef,
    Literal,
    Project,
    Relation,
    ScalarSubquery,
)
from planner.algebra.walk import kinds_of, transform
from planner.rules.subqueries.correlation import rows_at_most_one, second_row

#: Types of which min gives the only value that there is.
_ORDERED: Final = frozenset(
    ("int2", "int4", "int8", "numeric", "text", "varchar", "date", "timestamp", "timestamptz", "time")
)
_KINDS: Final = kinds_of(ScalarSubquery)


def count_rows(relation: Relation) -> Relation:
    """The relation whose scalar subqueries have exactly one row, where their types allow it."""
    fresh = Fresh(relation)

    def change(node: Any) -> Any:
        if not isinstance(node, ScalarSubquery) or rows_at_most_one(node.relation):
            return node
        return ScalarSubquery(_counted(node.relation, fresh)) if _is_ordered(node.relation) else node

    found: Relation = transform(relation, change, _KINDS)
    return found


def _is_ordered(relation: Relation) -> bool:
    (column,) = relation.columns
    return column.type.name in _ORDERED and column.type.element is None


def _counted(relation: Relation, fresh: Fresh) -> Relation:
    (column,) = relation.columns
    rows, least, value = fresh.column("rows", INT8, False), fresh.copy(column), fresh.copy(column)
    calls = (
        (rows, AggregateCall("count", (), INT8)),
        (least, AggregateCall("min", (ColumnRef(column),), column.type)),
    )
    are_many = Call("gt", (ColumnRef(rows), Literal(1, INT8)), BOOL)
    grouped = Aggregate(relation, (), calls)
    return Project(grouped, ((value, Case(((are_many, second_row(column.type)),), ColumnRef(least), column.type)),))

"""Subqueries as joins, whatever they are: where no special rule takes their correlation out (``dependent_joins``).

    scalar (SELECT agg ...)     R left join the aggregates by the domain, on the domain
    scalar                      R left join S, in which the second row of one value of the domain is error 21000
    EXISTS S                    R left join the domain's values for which S has rows; whether there was one
    a IN S                      the scalar (SELECT three-valued any of a = s FROM S)

A subquery may use columns of rows further out, of a query that this one is nested in: they stay free.
"""

from __future__ import annotations

from typing import Final

from catalog.values.types import BOOL, INT8
from planner.algebra.construction import FALSE, TRUE, Fresh, conjunction, equality, substitute
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Case,
    ColumnRef,
    Exists,
    InSubquery,
    Join,
    Literal,
    Project,
    Relation,
    Scalar,
    ScalarSubquery,
    Window,
    WindowCall,
)
from planner.rules.subqueries.correlation import SingleRow, rows_at_most_one, second_row, single_row
from planner.rules.subqueries.dependent_joins import Domain, independent_join, over_nothing

_ONE: Final = Literal(1, INT8)


def joined_value(left: Relation, node: ScalarSubquery | Exists | InSubquery, fresh: Fresh) -> tuple[Relation, Scalar]:
    """The relation with a join more, and the subquery's value over its columns. Raises 0A000."""
    match node:
        case ScalarSubquery(relation=relation):
            single = single_row(relation)
            if single is not None:
                return _joined_single(left, single, Literal(None, node.type), fresh)
            found = _checked(relation, fresh)
            return independent_join("left", left, found, None, fresh), ColumnRef(found.columns[0])
        case Exists(relation=relation):
            single = single_row(relation) if relation.columns else None
            if single is not None:
                return _joined_single(left, SingleRow(single.aggregate, TRUE, single.conditions), FALSE, fresh)
            present = fresh.column("present", BOOL)
            joined = independent_join("left", left, Aggregate(relation, ((present, TRUE),), ()), None, fresh)
            return joined, Call("is_not_null", (ColumnRef(present),), BOOL)
        case InSubquery():
            return _joined_single(left, _membership(node, fresh), FALSE, fresh)


def _joined_single(left: Relation, single: SingleRow, otherwise: Scalar, fresh: Fresh) -> tuple[Relation, Scalar]:
    """The value over an aggregate without keys, of which no row is missing."""
    domain = Domain.of(left, single.aggregate, fresh)
    if domain is None:
        joined, condition, value = (
            Join("inner", left, single.aggregate, None),
            conjunction(single.conditions),
            single.value,
        )
    else:
        joined = Join("left", left, domain.groups(single.aggregate), conjunction(domain.pairs()))
        read = dict(over_nothing(single.aggregate))
        condition = conjunction(substitute(item, read) for item in single.conditions)
        value = substitute(single.value, read)
    return joined, value if condition is None else Case(((condition, value),), otherwise, value.type)


def _checked(relation: Relation, fresh: Fresh) -> Relation:
    """A relation of one column and at most one row: its second row is an error."""
    if rows_at_most_one(relation):
        return relation
    number, value = fresh.column("row_number", INT8, False), fresh.copy(relation.columns[0])
    numbered = Window(relation, ((number, WindowCall("row_number", (), INT8)),))
    is_second = Call("gt", (ColumnRef(number), _ONE), BOOL)
    checked = Case(((is_second, second_row(value.type)),), ColumnRef(relation.columns[0]), value.type)
    return Project(numbered, ((value, checked),))


def _membership(node: InSubquery, fresh: Fresh) -> SingleRow:
    """IN, three-valued: true with a match, NULL where a comparison is, else false."""
    found = equality(node.argument, ColumnRef(node.relation.columns[0]))
    calls = tuple(
        (fresh.column(name, type_), AggregateCall(function, arguments, type_))
        for name, function, arguments, type_ in (
            ("found", "bool_or", (found,), BOOL),
            ("rows", "count", (), INT8),
            ("known", "count", (found,), INT8),
        )
    )
    matched, rows, known = (ColumnRef(column) for column, _ in calls)
    is_unknown = Call("lt", (known, rows), BOOL)
    value = Case(((matched, TRUE), (is_unknown, Literal(None, BOOL))), FALSE, BOOL)
    return SingleRow(Aggregate(node.relation, (), calls), value, ())

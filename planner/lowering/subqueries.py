"""Subqueries and lateral items where an engine takes them: as columns of their own.

    SELECT f((SELECT ...))                         SELECT f(c) FROM (SELECT *, (SELECT ...) AS c ...)
    r LEFT JOIN s ON r.a = (SELECT ...)            (SELECT *, (SELECT ...) AS c FROM r) LEFT JOIN s ON r.a = c
    (SELECT ROW(a, b) ...).f1                      (SELECT a ...)
    r, LATERAL (SELECT r.a + 1 AS b)               SELECT *, r.a + 1 AS b FROM r

A scalar subquery that is an operand of a comparison stays, since engines run it as a join.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from catalog.values.types import INT4
from planner.algebra.construction import SUBQUERIES, Fresh, conjunction, conjuncts, keep_columns
from planner.algebra.identity import NodeSet
from planner.algebra.nodes import (
    Call,
    Column,
    ColumnRef,
    Filter,
    Join,
    Limit,
    Literal,
    Project,
    Relation,
    Scalar,
    ScalarSubquery,
    Values,
)
from planner.algebra.walk import descend, free_columns, is_dependent, replace_columns, used_columns
from planner.rules.subqueries.correlation import rows_at_most_one

#: Operators that may stand around a subquery that stays.
_TRANSPARENT: Final = frozenset(("and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge"))


def columns_of_subqueries(node: Any, fresh: Fresh) -> Any:
    """One operator, with its scalar subqueries as columns computed below it."""
    match node:
        case Project():
            lifted = _Lifted(fresh)
            outputs = tuple((column, lifted.scalar(value)) for column, value in node.outputs)
            return Project(lifted.above(node.input), outputs) if lifted.columns else node
        case Filter():
            lifted = _Lifted(fresh)
            predicate = lifted.scalar(node.predicate)
            return keep_columns(Filter(lifted.above(node.input), predicate), node.columns) if lifted.columns else node
        case Join() if node.predicate is not None and node.kind != "inner":
            return _join(node, node.predicate, fresh)
        case _:
            return node


def fields_of_subqueries(node: Any, fresh: Fresh) -> Any:
    """A field of a subquery's row, as a subquery that yields only this field: no engine has to carry the row."""
    match node:
        case Call(function="field", arguments=(ScalarSubquery(relation=relation), Literal(value=int(place)))):
            field = fresh.column("field", node.type)
            return ScalarSubquery(_with_field(relation, place, field, fresh))
        case _:
            return node


def _with_field(relation: Relation, place: int, field: Column, fresh: Fresh) -> Relation:
    """A one-column relation's rows with one field of the column's row value as their only column ``field``."""
    match relation:
        case Limit(input=below):
            return replace(relation, input=_with_field(below, place, field, fresh))
        case Project(input=below, outputs=((_, Call(function="row", arguments=values)),)) if all(
            isinstance(value, ColumnRef | Literal) for value in values
        ):
            return Project(below, ((field, values[place - 1]),))
        case _:
            value = Call("field", (ColumnRef(relation.columns[0]), Literal(place, INT4)), field.type)
            return Project(relation, ((field, value),))


def in_place(node: Any, fresh: Fresh) -> Any:
    """A lateral item that is one row of expressions, as columns of a projection."""
    if not isinstance(node, Join) or node.kind != "inner" or not isinstance(node.right, Project):
        return node
    values = node.right.input
    if not (isinstance(values, Values) and values.rows == ((),) and is_dependent(node.right, node.left)):
        return node
    passed = tuple((column, ColumnRef(column)) for column in node.left.columns)
    found = Project(node.left, (*passed, *node.right.outputs))
    return found if node.predicate is None else Filter(found, node.predicate)


class _Lifted:
    """Subqueries lifted out of expressions, and the columns that replace them."""

    def __init__(self, fresh: Fresh) -> None:
        self._fresh = fresh
        self.columns: list[tuple[Column, Scalar]] = []

    def above(self, relation: Relation) -> Relation:
        """The relation with the lifted subqueries as further columns. A subquery that is the same for all rows is
        joined: Spark would treat it as a constant, which it cannot pass to a Python function."""
        kept: list[tuple[Column, Scalar]] = [(column, ColumnRef(column)) for column in relation.columns]
        for column, value in self.columns:
            if isinstance(value, ScalarSubquery) and not free_columns(value) and rows_at_most_one(value.relation):
                found, _ = self._fresh.rename(value.relation)
                relation, value = Join("left", relation, found, None), ColumnRef(found.columns[0])
            kept.append((column, value))
        return Project(relation, tuple(kept))

    def scalar(self, value: Scalar) -> Scalar:
        """An expression without scalar subqueries, except where they may stay."""
        stays = _staying(value)
        return _outside(value, lambda node: None if node in stays else self.column(node))

    def column(self, node: ScalarSubquery) -> ColumnRef:
        """The column that replaces a subquery."""
        column = self._fresh.column("subquery", node.type)
        self.columns.append((column, node))
        return ColumnRef(column)


def _outside(value: Scalar, change: Callable[[ScalarSubquery], ColumnRef | None]) -> Scalar:
    """An expression with columns in place of its own subqueries that have one; nothing within a subquery changes.

    Subqueries that stay are taken out while the others are searched.
    """
    away: dict[Column, Scalar] = {}

    def visit(node: Any) -> Any:
        if not isinstance(node, SUBQUERIES):
            return node
        found = change(node) if isinstance(node, ScalarSubquery) else None
        if found is None:
            found = ColumnRef(Column(-1 - len(away), "away", node.type))
            away[found.column] = node
        return found

    found: Scalar = replace_columns(descend(value, visit), away)
    return found


def _staying(value: Scalar) -> NodeSet:
    """The subqueries that are a whole condition or an operand of a comparison."""
    found = NodeSet()
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, ScalarSubquery):
            found.add(item)
        elif isinstance(item, Call) and item.function in _TRANSPARENT:
            stack.extend(item.arguments)
    return found


def _join(node: Join, predicate: Scalar, fresh: Fresh) -> Relation:
    """Subqueries in ON as columns of the side whose columns they use."""
    sides = {"left": _Lifted(fresh), "right": _Lifted(fresh)}
    of_right = set(node.right.columns)
    of_left = set(node.left.columns)

    def change(item: ScalarSubquery) -> ColumnRef | None:
        used = used_columns(item)
        if used.isdisjoint(of_right):
            return sides["left"].column(item)
        return sides["right"].column(item) if used.isdisjoint(of_left) else None

    parts = [_outside(part, change) for part in conjuncts(predicate)]
    if not any(side.columns for side in sides.values()):
        return node
    left, right = (
        side.above(below) if side.columns else below
        for side, below in zip(sides.values(), (node.left, node.right), strict=True)
    )
    return keep_columns(replace(node, left=left, right=right, predicate=conjunction(parts)), node.columns)

"""Subqueries in expressions: scalar, EXISTS, IN, and comparisons with ANY and ALL.

Owns: the scalars that SubLink nodes become. A correlated reference is a ColumnRef to the outer query's column; a rule
removes the correlation.
"""

from __future__ import annotations

from typing import Any

from pglast.enums import SubLinkType

from catalog.values.errors import unsupported
from catalog.values.types import BOOL, BYTEA, SqlType
from planner.algebra.nodes import (
    Call,
    Case,
    ColumnRef,
    Exists,
    Filter,
    InSubquery,
    Literal,
    Project,
    Relation,
    Scalar,
    ScalarSubquery,
)
from planner.bind.calls.families.arrays import array_of_query
from planner.bind.calls.operator_calls.operation import compare, operate
from planner.bind.conversion.rows import is_row
from planner.bind.lookup.dotted_names import names_of
from planner.bind.scalars.predicates import is_volatile, refuse_large
from planner.bind.scalars.row_comparisons import compare_with_query, row_in_query
from planner.bind.state.environment import Environment
from planner.bind.state.from_names import BoundQuery


def bind_sublink(env: Environment, node: Any) -> Scalar:
    """The scalar that a subquery in an expression is."""
    match node.subLinkType:
        case SubLinkType.EXISTS_SUBLINK:
            return Exists(env.nested(node.subselect).relation)
        case SubLinkType.EXPR_SUBLINK:
            return ScalarSubquery(_single(env, env.nested(node.subselect), node))
        case SubLinkType.ANY_SUBLINK | SubLinkType.ALL_SUBLINK:
            return _quantified(env, node)
        case SubLinkType.ARRAY_SUBLINK:
            return array_of_query(env, _single(env, env.nested(node.subselect), node), node)
        case _:
            raise unsupported("this subquery", position=env.binding.position(node))


def _single(env: Environment, query: BoundQuery, node: Any) -> Relation:
    if len(query.relation.columns) != 1:
        raise env.error("42601", "subquery must return only one column", node)
    env.binding.modifiers[id(node)] = node, query.outputs[0].typmod
    return query.relation


def _quantified(env: Environment, node: Any) -> Scalar:
    """x IN (q), x = ANY (q) and x <> ALL (q); the other comparisons by EXISTS."""
    every = node.subLinkType == SubLinkType.ALL_SUBLINK
    symbol = names_of(node.operName)[-1] if node.operName else "="
    if (symbol, every) not in (("=", False), ("<>", True)):
        return _compared(env, symbol, every, node)
    if is_row(node.testexpr):
        matched = row_in_query(env, node)
        return Call("not", (matched,), BOOL) if every else matched
    argument = env.bind(node.testexpr)
    query = env.nested(node.subselect)
    column, *others = query.relation.columns
    if others:
        raise env.error("42601", "subquery has too many columns", node)
    left, right = map(_by_value, compare(env, "=", argument, ColumnRef(column), node))
    found = InSubquery(left, _as(env, query.relation, right))
    return Call("not", (found,), BOOL) if every else found


def _by_value(scalar: Scalar) -> Scalar:
    """What IN compares: of a jsonb not its text, in which 1 and 1.0 differ."""
    return Call("json_order", (scalar,), BYTEA) if scalar.type.name == "jsonb" else scalar


def _compared(env: Environment, symbol: str, every: bool, node: Any) -> Scalar:
    """x op ANY (q): true where it is of a row, else unknown where it is of a row; x op ALL (q): false, else unknown."""

    def has(test: str | None) -> Scalar:
        query = env.nested(node.subselect)
        found = _with_each(env, symbol, every, query, node)
        return Exists(Filter(query.relation, found if test is None else Call(test, (found,), BOOL)))

    decided = has("not" if every else None), Literal(not every, BOOL)
    unknown = has("is_null"), Literal(None, BOOL)
    return Case((decided, unknown), Literal(every, BOOL), BOOL)


def _with_each(env: Environment, symbol: str, every: bool, query: BoundQuery, node: Any) -> Scalar:
    """A value, or a row, compared with a row of the subquery's."""
    if is_row(node.testexpr):
        found = compare_with_query(env, symbol, node.testexpr, query, node)
    else:
        column, *others = query.relation.columns
        if others:
            raise env.error("42601", "subquery has too many columns", node)
        argument = env.bind(node.testexpr)
        found = operate(env, symbol, argument, ColumnRef(column), node, (node.testexpr, node.testexpr))
    refuse_large(found)
    if is_volatile(found):
        word = f"{symbol} {'ALL' if every else 'ANY'} (subquery)"
        raise unsupported(f"a volatile function with {word}", position=env.binding.position(node))
    return found


def _as(env: Environment, relation: Relation, scalar: Scalar) -> Relation:
    """The subquery's relation with its column in the type that the comparison wants."""
    column = relation.columns[0]
    if isinstance(scalar, ColumnRef) and scalar.column == column:
        return relation
    kind: SqlType = scalar.type
    return Project(relation, ((env.binding.column(column.name, kind, column.nullable), scalar),))

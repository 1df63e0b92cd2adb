"""Comparisons of row constructors: (a, b) with (c, d), with a list of rows, with a subquery, with NULL.

Owns: the comparisons of columns that these become. If one of two rows is not written out, the rows are compared as
values, where a NULL equals a NULL (``calls.operator_calls.operation``).

    (a, b) = (c, d)             a = c AND b = d
    (a, b) < (c, d)             a < c OR (a = c AND b < d)
    (a, b) < (SELECT x, y)      (SELECT (a, b) < (x, y))
    (a, b) IN (SELECT x, y)     CASE WHEN EXISTS (... a = x AND b = y) THEN true
                                     WHEN EXISTS (... (a = x AND b = y) IS NULL) THEN NULL ELSE false END
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pglast.enums import SubLinkType

from catalog.values.types import BOOL
from planner.algebra.nodes import Call, Case, ColumnRef, Exists, Filter, Literal, Project, Scalar, ScalarSubquery
from planner.bind.calls.operator_calls.operation import any_of, compare, operate
from planner.bind.conversion.coercion import text_if_unknown
from planner.bind.conversion.rows import Items, fields_of, is_row, row_items, source_of_row
from planner.bind.lookup.dotted_names import names_of
from planner.bind.state.environment import Environment
from planner.bind.state.from_names import BoundQuery

_STRICT: Final = {"<": "<", "<=": "<", ">": ">", ">=": ">"}
_EQUAL: Final = ("=", "<>", "!=")


def _both(env: Environment, left: Items, node: Any, right: Any) -> list[tuple[Any, Any]]:
    items = row_items(env, right)
    if len(items) != len(left):
        raise env.error("42601", "unequal number of entries in row expressions", node)
    if not items:
        raise env.error("0A000", "cannot compare rows of zero length", node)
    return list(zip(left, items, strict=True))


def compare_rows(env: Environment, node: Any) -> Scalar:
    """``row op row`` and ``row op (subquery)``."""
    symbol = names_of(node.name)[-1]
    if is_query(node.rexpr):
        return _with_query(env, symbol, node)
    if not is_row(node.rexpr):
        return operate(env, symbol, env.bind(node.lexpr), env.bind(node.rexpr), node, (node.lexpr, node.rexpr))
    return _compared(env, symbol, _both(env, row_items(env, node.lexpr), node, node.rexpr), node)


def is_query(node: Any) -> bool:
    """Whether a parse node is a subquery as a value."""
    return type(node).__name__ == "SubLink" and node.subLinkType == SubLinkType.EXPR_SUBLINK


def _with_query(env: Environment, symbol: str, node: Any) -> Scalar:
    """``row op (SELECT x, y ...)``: the comparison with its one row, NULL without any."""
    query = env.nested(node.rexpr.subselect)
    found = compare_with_query(env, symbol, node.lexpr, query, node)
    return ScalarSubquery(Project(query.relation, ((env.binding.column("?column?", BOOL), found),)))


def compare_with_query(env: Environment, symbol: str, row: Any, query: BoundQuery, node: Any) -> Scalar:
    """``row op row`` of a row constructor and a subquery's row. Raises 42601."""
    left = row_items(env, row)
    columns: Items = [(ColumnRef(column), node) for column in query.relation.columns]
    if len(columns) != len(left):
        few = len(columns) < len(left)
        raise env.error("42601", f"subquery has too {'few' if few else 'many'} columns", node)
    return _compared(env, symbol, list(zip(left, columns, strict=True)), node)


def _compared(env: Environment, symbol: str, pairs: Sequence[tuple[Any, Any]], node: Any) -> Scalar:
    """What a comparison of rows is of their columns. Raises 0A000 for an operator that has no order."""
    if symbol in _EQUAL:
        parts = tuple(_operate(env, symbol, pair, node) for pair in pairs)
        return _joined("and" if symbol == "=" else "or", parts)
    if symbol not in _STRICT:
        hint = "Row comparison operators must be associated with btree operator families."
        message = f"could not determine interpretation of row comparison operator {symbol}"
        raise env.error("0A000", message, node, hint=hint)
    found = _operate(env, symbol, pairs[-1], node)
    for pair in reversed(pairs[:-1]):
        rest = Call("and", (_operate(env, "=", pair, node), found), BOOL)
        found = Call("or", (_operate(env, _STRICT[symbol], pair, node), rest), BOOL)
    return found


def _operate(env: Environment, symbol: str, pair: tuple[Any, Any], node: Any) -> Scalar:
    (left, left_node), (right, right_node) = pair
    return operate(env, symbol, left, right, node, (left_node, right_node))


def _joined(function: str, parts: tuple[Scalar, ...]) -> Scalar:
    return parts[0] if len(parts) == 1 else Call(function, parts, BOOL)


def rows_in_list(env: Environment, node: Any) -> Scalar:
    """``row IN (row, ...)``."""
    if not all(map(is_row, node.rexpr)):
        return any_of(env, env.bind(node.lexpr), [env.bind(item) for item in node.rexpr], node)
    found = []
    for item in node.rexpr:
        pairs = _both(env, row_items(env, node.lexpr), node, item)
        found.append(_joined("and", tuple(_operate(env, "=", pair, node) for pair in pairs)))
    return _joined("or", tuple(found))


def rows_distinct(env: Environment, node: Any) -> Scalar:
    """``row IS DISTINCT FROM row``."""
    if not is_row(node.rexpr):
        return Call("is_distinct", compare(env, "=", env.bind(node.lexpr), env.bind(node.rexpr), node), BOOL)
    pairs = _both(env, row_items(env, node.lexpr), node, node.rexpr)
    parts = [compare(env, "=", left, right, node) for (left, _), (right, _) in pairs]
    return _joined("or", tuple(Call("is_distinct", part, BOOL) for part in parts))


def null_test(env: Environment, node: Any, name: str) -> Scalar:
    """``value IS [NOT] NULL``; of a row: all of its fields are (not) NULL."""
    if is_row(node.arg):
        values = [text_if_unknown(env, scalar, item) for scalar, item in row_items(env, node.arg)]
    elif (source := source_of_row(env, node.arg)) is not None:
        values = [entry.scalar for entry in source.entries]
    else:
        scalar = text_if_unknown(env, env.bind(node.arg), node.arg)
        if scalar.type.row is None:
            return Call(name, (scalar,), BOOL)
        values = [value for _, value in fields_of(scalar)]
    if not values:
        return Literal(name == "is_null", BOOL)
    return _joined("and", tuple(Call(name, (value,), BOOL) for value in values))


def row_in_query(env: Environment, node: Any) -> Scalar:
    """``row IN (subquery)``, three-valued."""
    branches = []
    for value, answer in ((True, True), (None, None)):
        query = env.nested(node.subselect)
        equal = compare_with_query(env, "=", node.testexpr, query, node)
        condition = equal if value else Call("is_null", (equal,), BOOL)
        branches.append((Exists(Filter(query.relation, condition)), Literal(answer, BOOL)))
    return Case(tuple(branches), Literal(False, BOOL), BOOL)

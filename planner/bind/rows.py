"""Row values: (a, b) compared with (c, d), with a list of such rows, with a subquery's, with NULL.

Owns: what each becomes, which is comparisons of the columns; no value of the algebra is a row.

    (a, b) = (c, d)             a = c AND b = d
    (a, b) < (c, d)             a < c OR (a = c AND b < d)
    (a, b) IN (SELECT x, y)     CASE WHEN EXISTS (... a = x AND b = y) THEN true
                                     WHEN EXISTS (... (a = x AND b = y) IS NULL) THEN NULL ELSE false END
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from catalog.errors import unsupported
from catalog.types import BOOL
from planner.algebra import Filter
from planner.bind.calls.operation import compare, operate
from planner.bind.environment import Environment
from planner.bind.typenames import names_of
from planner.expression import Call, Case, ColumnRef, Exists, Literal, Scalar

Bind = Callable[[Environment, Any], Scalar]
Items = list[tuple[Scalar, Any]]

_STRICT: Final = {"<": "<", "<=": "<", ">": ">", ">=": ">"}
_EQUAL: Final = ("=", "<>", "!=")


def is_row(node: Any) -> bool:
    """Whether a parse node is a row constructor."""
    return type(node).__name__ == "RowExpr"


def _items(env: Environment, node: Any, bind: Bind) -> Items:
    """The values of a row constructor with where they were written; t.* is all columns of t."""
    found: Items = []
    for item in node.args or ():
        if type(item).__name__ == "ColumnRef" and type(item.fields[-1]).__name__ == "A_Star":
            source = env.scope.source(names_of(item.fields[:-1])[-1]) if len(item.fields) > 1 else None
            if source is None:
                raise unsupported("* in a row value", "Name the columns.", env.binding.position(item))
            found.extend((entry.scalar, item) for entry in source.entries)
        else:
            found.append((bind(env, item), item))
    return found


def _both(env: Environment, left: Items, node: Any, right: Any, bind: Bind) -> list[tuple[Any, Any]]:
    if not is_row(right):
        raise unsupported("a row compared with something else", "Compare the columns.", env.binding.position(right))
    items = _items(env, right, bind)
    if len(items) != len(left):
        raise env.error("42601", "unequal number of entries in row expressions", node)
    if not items:
        raise env.error("0A000", "cannot compare rows of zero length", node)
    return list(zip(left, items, strict=True))


def compare_rows(env: Environment, node: Any, bind: Bind) -> Scalar:
    """``row op row``."""
    symbol = names_of(node.name)[-1]
    pairs = _both(env, _items(env, node.lexpr, bind), node, node.rexpr, bind)
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


def rows_in_list(env: Environment, node: Any, bind: Bind) -> Scalar:
    """``row IN (row, ...)``."""
    found = []
    for item in node.rexpr:
        pairs = _both(env, _items(env, node.lexpr, bind), node, item, bind)
        found.append(_joined("and", tuple(_operate(env, "=", pair, node) for pair in pairs)))
    return _joined("or", tuple(found))


def rows_distinct(env: Environment, node: Any, bind: Bind) -> Scalar:
    """``row IS DISTINCT FROM row``."""
    pairs = _both(env, _items(env, node.lexpr, bind), node, node.rexpr, bind)
    parts = [compare(env, "=", left, right, node) for (left, _), (right, _) in pairs]
    return _joined("or", tuple(Call("is_distinct", part, BOOL) for part in parts))


def row_null_test(env: Environment, node: Any, name: str, bind: Bind) -> Scalar | None:
    """``row IS [NOT] NULL``: all of its values are (not) NULL. None where the argument is no row."""
    if is_row(node.arg):
        values = [scalar for scalar, _ in _items(env, node.arg, bind)]
    else:
        source = _whole_row(env, node.arg)
        if source is None:
            return None
        values = [entry.scalar for entry in source.entries]
    if not values:
        return Literal(name == "is_null", BOOL)
    return _joined("and", tuple(Call(name, (value,), BOOL) for value in values))


def row_values(env: Environment, node: Any, bind: Bind) -> list[tuple[str, Scalar]] | None:
    """The columns of a row constructor or of an item of FROM, with their names; None for what is no row.

    A row that an outer join fills up is NULL as a whole, which its columns do not tell: 0A000.
    """
    if is_row(node):
        return [(f"f{place}", scalar) for place, (scalar, _) in enumerate(_items(env, node, bind), 1)]
    source = _whole_row(env, node)
    if source is None or source.value is not None:
        return None
    if source.padded:
        instead = "Name its columns."
        raise unsupported("a whole row of the outer side of a join", instead, env.binding.position(node))
    return [(entry.name, entry.scalar) for entry in source.entries]


def _whole_row(env: Environment, node: Any) -> Any:
    """The item of FROM whose name stands for its row."""
    if type(node).__name__ != "ColumnRef" or len(node.fields) != 1 or type(node.fields[0]).__name__ == "A_Star":
        return None
    (name,) = names_of(node.fields)
    taken = any(entry.name == name for level in env.scope.levels() for entry in level.entries)
    return None if taken else env.scope.source(name)


def row_in_query(env: Environment, node: Any, bind: Bind) -> Scalar:
    """``row IN (subquery)``, three-valued."""
    branches = []
    for value, answer in ((True, True), (None, None)):
        query = env.subquery(node.subselect, env.scope)
        left = _items(env, node.testexpr, bind)
        if len(query.relation.columns) != len(left):
            few = len(query.relation.columns) < len(left)
            raise env.error("42601", f"subquery has too {'few' if few else 'many'} columns", node)
        columns: Items = [(ColumnRef(column), node) for column in query.relation.columns]
        equal = _joined("and", tuple(_operate(env, "=", pair, node) for pair in zip(left, columns, strict=True)))
        condition = equal if value else Call("is_null", (equal,), BOOL)
        branches.append((Exists(Filter(query.relation, condition)), Literal(answer, BOOL)))
    return Case(tuple(branches), Literal(False, BOOL), BOOL)

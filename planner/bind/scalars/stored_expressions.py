"""Expressions that the catalog stores as text (DEFAULT, CHECK), coerced to the type of their column."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from typing import Any

from catalog.objects import ColumnDefinition
from catalog.values.errors import SqlError
from catalog.values.types import SqlType
from planner.algebra.nodes import Column, Scalar
from planner.bind.conversion.coercion import coerce
from planner.bind.conversion.stored_texts import bind_over, bind_text
from planner.bind.lookup.type_names import display
from planner.bind.state.context import Context
from planner.bind.state.environment import Binder, Binding
from planner.parse.parser import nodes, parse


def row_of(columns: Sequence[ColumnDefinition]) -> list[Column]:
    """A row with a definition's columns."""
    return [Column(-1 - index, column.name, column.type) for index, column in enumerate(columns)]


def unqualified(tree: Any, table: str) -> Any:
    """An expression of a table's definition in which columns go without the table's name, which may change."""
    tree = copy.deepcopy(tree)
    for node in nodes(tree):
        if type(node).__name__ == "ColumnRef":
            first, *rest = node.fields
            if rest and getattr(first, "sval", None) == table:
                node.fields = tuple(rest)
    return tree


def bind_stored(
    binder: Binder,
    text: str,
    columns: Sequence[Column],
    context: Context,
    kind: SqlType | None = None,
    what: str = "DEFAULT",
) -> Scalar:
    """A DEFAULT or CHECK text over a row's columns, coerced to ``kind`` as an assignment is. No error has a place."""
    scalar, node, binding = bind_text(binder, text, columns, context, what)
    with binding.without_positions():
        return _assigned(binding, scalar, node, kind, what)


def is_expression(text: str) -> bool:
    """Whether a user's text is one expression with nothing after it. Raises 42601."""
    statements = parse(f"SELECT {text}")
    select: Any = statements[0].node
    clauses = [name for name in select if getattr(select, name)]
    if len(statements) > 1 or clauses != ["targetList"]:
        return False
    return [target.name for target in select.targetList] == [None]


def functions_called(binder: Binder, text: str, columns: Sequence[Column], context: Context) -> Collection[int]:
    """The users' functions that a text calls, itself or through others, by oid; none where it does not bind."""
    try:
        return bind_text(binder, text, columns, context, "DEFAULT")[2].functions
    except SqlError:
        return ()


def bind_tree(
    binding: Binding, node: Any, columns: Sequence[Column], kind: SqlType | None, what: str = "DEFAULT"
) -> Scalar:
    """An expression of the statement that is being bound, over a row's columns, coerced to ``kind``."""
    return _assigned(binding, bind_over(binding, node, columns, what), node, kind, what)


def _assigned(binding: Binding, scalar: Scalar, node: Any, kind: SqlType | None, what: str) -> Scalar:
    if kind is None:
        return scalar
    found = coerce(binding, scalar, kind, "assignment", node)
    if found is None:
        message = f"{what} expression is of type {display(scalar.type)}, not {display(kind)}"
        raise SqlError("42804", message)
    return found

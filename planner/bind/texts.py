"""Expressions that the catalog keeps as text: DEFAULT and CHECK."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catalog.errors import SqlError
from catalog.objects import ColumnDefinition
from catalog.types import SqlType
from planner.bind.context import Binding, Context
from planner.bind.environment import Environment
from planner.bind.expressions import bind_scalar
from planner.bind.levels import Level
from planner.bind.scope import Entry, source_of
from planner.bind.select import subquery_binder
from planner.bind.types import coerce, display
from planner.expression import Column, ColumnRef, Scalar
from planner.parse import parse


def row_of(columns: Sequence[ColumnDefinition]) -> list[Column]:
    """A row with a definition's columns."""
    return [Column(-1 - index, column.name, column.type) for index, column in enumerate(columns)]


def bind_expression(
    text: str, columns: Sequence[Column], context: Context, kind: SqlType | None = None, what: str = "DEFAULT"
) -> Scalar:
    """A DEFAULT or CHECK text over a row's columns, coerced to ``kind`` as an assignment is. No error has a place."""
    raw = parse(f"SELECT {text}")[0]
    binding = Binding(raw, context)
    with binding.without_positions():
        return bind_tree(binding, raw.node.targetList[0].val, columns, kind, what)


def bind_tree(
    binding: Binding, node: Any, columns: Sequence[Column], kind: SqlType | None, what: str = "DEFAULT"
) -> Scalar:
    """The same for an expression of the statement that is being bound."""
    scope = source_of("", [Entry(column.name, ColumnRef(column)) for column in columns])
    env = Environment(binding, scope, f"{what} expressions", subquery_binder(Level(binding)))
    scalar = bind_scalar(env, node)
    if kind is None:
        return scalar
    found = coerce(binding, scalar, kind, "assignment", node)
    if found is None:
        message = f"{what} expression is of type {display(scalar.type)}, not {display(kind)}"
        raise SqlError("42804", message)
    return found

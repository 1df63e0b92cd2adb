"""Expressions that the catalog keeps as text, bound for what reads them: DEFAULT, CHECK and the checks of domains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catalog.values.times.styles import USUAL
from planner.algebra.nodes import Column, ColumnRef, Scalar
from planner.bind.state.context import Context, within
from planner.bind.state.environment import Binder, Binding, Environment, Level, source_of
from planner.bind.state.from_names import Entry
from planner.parse.parser import parse


def bind_text(
    binder: Binder, text: str, columns: Sequence[Column], context: Context, what: str
) -> tuple[Scalar, Any, Binding]:
    """A text over a row's columns, its parse node, and what was found while it was bound. No error has a place."""
    raw = parse(f"SELECT {text}")[0]
    binding = Binding(raw, within(context, reading=USUAL), binder)
    node = raw.node.targetList[0].val
    with binding.without_positions():
        return bind_over(binding, node, columns, what), node, binding


def bind_over(binding: Binding, node: Any, columns: Sequence[Column], what: str) -> Scalar:
    """An expression over a row's columns; ``what`` it is, as errors call it."""
    scope = source_of("", [Entry(column.name, ColumnRef(column)) for column in columns])
    return Environment(binding, scope, f"{what} expressions", Level(binding)).bind(node)

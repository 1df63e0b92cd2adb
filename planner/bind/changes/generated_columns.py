"""Columns GENERATED ALWAYS AS (expression) STORED.

Owns: what their expressions may contain, and the errors of a definition and of an INSERT or UPDATE that assigns to them
(428C9). The values are computed over the whole row before any check. See
https://www.postgresql.org/docs/15/ddl-generated-columns.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from catalog.objects import ColumnDefinition, ForeignKey, Stream, Table
from catalog.values.errors import SqlError, unsupported
from planner.algebra.construction import volatility
from planner.algebra.nodes import Column, ColumnRef, Exists, InSubquery, Scalar, ScalarSubquery
from planner.algebra.walk import walk
from planner.bind.conversion.coercion import coerce
from planner.bind.lookup.type_names import display
from planner.bind.scalars.stored_expressions import bind_stored, bind_tree, row_of
from planner.bind.state.environment import Binding
from planner.parse.parser import nodes


def generated_of(binding: Binding, target: Table | Stream, row: Sequence[Column]) -> tuple[tuple[Column, Scalar], ...]:
    """A row's columns, each with its value or, where it is generated, its expression; nothing where none is."""
    if all(column.generated is None for column in target.columns):
        return ()
    named = [replace(column, name=definition.name) for column, definition in zip(row, target.columns, strict=True)]
    context = replace(binding.context, parameter_types=())
    return tuple(
        (
            column,
            ColumnRef(column)
            if definition.generated is None
            else bind_stored(binding.binder, definition.generated, named, context, definition.type),
        )
        for column, definition in zip(row, target.columns, strict=True)
    )


def refuse_inserted(column: ColumnDefinition) -> None:
    """An INSERT's value for a generated column. Raises 428C9."""
    if column.generated is not None:
        message = f'cannot insert a non-DEFAULT value into column "{column.name}"'
        raise SqlError("428C9", message, f'Column "{column.name}" is a generated column.')


def refuse_updated(column: ColumnDefinition) -> None:
    """An UPDATE's value for a generated column. Raises 428C9."""
    if column.generated is not None:
        message = f'column "{column.name}" can only be updated to DEFAULT'
        raise SqlError("428C9", message, f'Column "{column.name}" is a generated column.')


def check_generation(
    binding: Binding, columns: Sequence[ColumnDefinition], column: ColumnDefinition, node: Any
) -> frozenset[str]:
    """The columns that a generation expression reads. Raises 0A000, 42804, 42P17."""
    row = row_of(columns)
    scalar = bind_tree(binding, node, row, None, "column generation")
    if any(isinstance(item, ScalarSubquery | Exists | InSubquery) for item in walk(scalar)):
        raise SqlError("0A000", "cannot use subquery in column generation expression", position=binding.start(node))
    used = frozenset(item.column.name for item in walk(scalar) if isinstance(item, ColumnRef))
    for other in columns:
        if other.generated is not None and other.name in used:
            message = f'cannot use generated column "{other.name}" in column generation expression'
            detail = "A generated column cannot reference another generated column."
            raise SqlError("42P17", message, detail, position=_place(binding, node, other.name))
    if coerce(binding, scalar, column.type, "assignment", node) is None:
        types = f"{display(column.type)} but default expression is of type {display(scalar.type)}"
        hint = "You will need to rewrite or cast the expression."
        raise SqlError("42804", f'column "{column.name}" is of type {types}', hint=hint)
    if volatility(scalar) != "immutable":
        raise SqlError("42P17", "generation expression is not immutable")
    return used


def _place(binding: Binding, node: Any, name: str) -> int | None:
    """Where an expression's tree refers to a column."""
    for item in nodes(node):
        if type(item).__name__ == "ColumnRef" and getattr(item.fields[-1], "sval", None) == name:
            return binding.position(item)
    return None


def check_actions(table: Table, reference: ForeignKey, used: frozenset[str]) -> None:
    """A foreign key's actions cannot change what a generated column is or reads. Raises 42601 and 0A000."""
    for clause, changes in (
        ("ON UPDATE", reference.on_update in "cnd"),
        ("ON DELETE", reference.on_delete in "nd"),
    ):
        names = set(reference.columns) if changes else set()
        if any(column.generated is not None and column.name in names for column in table.columns):
            message = f"invalid {clause} action for foreign key constraint containing generated column"
            raise SqlError("42601", message)
        if names & used:
            raise unsupported(f"a generated column over a foreign key with an {clause} action", "Compute it in a view.")

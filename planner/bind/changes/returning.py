"""RETURNING: expressions over the changed row, and over the row that FROM of UPDATE or USING of DELETE joined to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from catalog.objects import Stream, Table
from catalog.values.errors import unsupported
from planner.algebra.functions import DRAWN_FUNCTIONS
from planner.algebra.nodes import Call, Column, ColumnRef, Relation, Scalar
from planner.algebra.walk import replace_columns, used_columns, walk
from planner.bind.changes.assignments import scope_of_target
from planner.bind.changes.updatable_views import Through
from planner.bind.conversion.coercion import text_if_unknown
from planner.bind.lookup.type_names import declared_typmod
from planner.bind.scalars.select_lists import bind_targets
from planner.bind.state.environment import Binding, Environment, Level, Scope
from planner.bind.state.from_names import Entry
from planner.statements.statement import Returning


class Others(Struct, frozen=True):
    """FROM of UPDATE, USING of DELETE: what stands beside the target."""

    relation: Relation
    scope: Scope

    def beside(self, target: Scope) -> Scope:
        """The target's names and these."""
        return Scope(target.sources + self.scope.sources, target.entries + self.scope.entries)


def shown_by(node: Any) -> tuple[Any, ...]:
    """A statement's RETURNING list."""
    clause = getattr(node, "returningClause", None)
    return tuple((clause.exprs if clause is not None else getattr(node, "returningList", None)) or ())


def returning_of(
    level: Level,
    target: Table | Stream,
    row: tuple[Column, ...],
    node: Any,
    other: Others | None = None,
    through: Through | None = None,
    updated: Column | None = None,
) -> Returning | None:
    """RETURNING over the changed row and what is beside it; ``updated`` is the row's xmax, where it may have one."""
    clause = getattr(node, "returningClause", None)
    items = shown_by(node)
    if not items:
        return None
    if isinstance(target, Stream):
        instead = "Leave RETURNING out: a stream keeps no rows."
        raise unsupported("RETURNING from a stream", instead, level.binding.position(items[0]))
    if clause is not None and clause.options:
        raise unsupported("RETURNING WITH (OLD, NEW)", "Leave WITH out.")
    entries = [
        Entry(definition.name, ColumnRef(column), target.oid, index + 1, declared_typmod(definition.type))
        for index, (definition, column) in enumerate(zip(target.columns, row, strict=True))
    ]
    scope = scope_of_target(target, node, entries) if through is None else through.scope(row, node.relation.alias)
    if updated is not None and through is None:
        scope = replace(scope, sources=(replace(scope.sources[0], deleted=ColumnRef(updated)),))
    if other is not None:
        scope = other.beside(scope)
    env = Environment(level.binding, scope, "RETURNING", level)
    targets = [item.over(text_if_unknown(env, item.scalar, item.node)) for item in bind_targets(env, items)]
    columns = tuple((level.binding.column(item.name, item.scalar.type), item.scalar) for item in targets)
    return Returning(columns, tuple(item.output() for item in targets))


def refuse_drawn_twice(returning: Returning | None, *changed: Relation | Scalar) -> None:
    """Of several rows, RETURNING would see a sequence as it is after all of them, and not after its own row."""
    calls = [] if returning is None else _drawing([scalar for _, scalar in returning.expressions])
    if calls and _drawing(changed):
        raise unsupported(f"{calls[0]}() in RETURNING of several rows", "Return the column.")


def _drawing(nodes: Sequence[Relation | Scalar]) -> list[str]:
    """The functions of sequences that are called."""
    found = (item.function for node in nodes for item in walk(node) if isinstance(item, Call))
    return [function for function in found if function in DRAWN_FUNCTIONS]


def passed(
    binding: Binding, returning: Returning | None, other: Others | None
) -> tuple[Returning | None, tuple[tuple[Column, Scalar], ...]]:
    """RETURNING over copies of the columns that it takes from FROM or USING, and these copies."""
    if returning is None or other is None:
        return returning, ()
    used = {column for _, scalar in returning.expressions for column in used_columns(scalar)}
    copies = {column: binding.column(column.name, column.type) for column in other.relation.columns if column in used}
    renamed: dict[Column, Scalar] = {column: ColumnRef(copy) for column, copy in copies.items()}
    expressions = tuple((column, replace_columns(scalar, renamed)) for column, scalar in returning.expressions)
    return replace(returning, expressions=expressions), tuple(
        (copy, ColumnRef(column)) for column, copy in copies.items()
    )

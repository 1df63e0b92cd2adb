"""A bound query as an item of FROM: a subquery, a view's definition, a function's rows."""

from __future__ import annotations

from typing import Any

from planner.algebra.nodes import ColumnRef, Project, Relation
from planner.bind.from_items.item_scopes import renamed
from planner.bind.state.environment import Binding, Level, Scope
from planner.bind.state.from_names import BoundQuery, Entry, Source


def derived(
    level: Level,
    query: BoundQuery,
    names: tuple[str, ...],
    alias: Any,
    name: str,
    node: Any,
    nullable: bool,
    schema: str | None = None,
    row: int = 0,
) -> tuple[Relation, Scope]:
    """A query as an item of FROM, of the ``schema`` and ``row`` of the view that it is, if any."""
    sure = [not column.nullable for column in query.relation.columns]
    relation = made_nullable(level.binding, query.relation) if nullable else query.relation
    entries = tuple(
        Entry(label, ColumnRef(column), output.table, output.attribute, output.typmod, is_sure)
        for label, column, output, is_sure in zip(names, relation.columns, query.outputs, sure, strict=True)
    )
    source = Source(name if alias is None else alias.aliasname, entries, schema if alias is None else None, row=row)
    return relation, renamed(level.binding, Scope((source,), entries), alias, node)


def made_nullable(binding: Binding, relation: Relation) -> Relation:
    """What an outer join may fill with nulls must say so: columns have one identity and one nullability."""
    if all(column.nullable for column in relation.columns):
        return relation
    outputs = tuple((binding.column(column.name, column.type), ColumnRef(column)) for column in relation.columns)
    return Project(relation, outputs)

"""Aggregates in a subquery that belong to an outer query.

PostgreSQL computes an aggregate in the innermost query whose columns it uses. The subquery then reads the result as a
column of that query's groups.

Owns: ``owner``, which finds that query. https://www.postgresql.org/docs/15/sql-expressions.html#SYNTAX-AGGREGATES
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from catalog.values.errors import SqlError
from planner.algebra.nodes import ColumnRef
from planner.algebra.walk import Node, used_columns, walk
from planner.bind.state.environment import Environment, Scope


def owner(env: Environment, parts: Iterable[Node], node: Any) -> Environment:
    """Where an aggregate of some expressions is computed: its own place, or one around it. Raises 42803."""
    references = [item for part in parts for item in walk(part) if isinstance(item, ColumnRef)]
    used = {item.column.id for item in references}
    for scope in env.scope.levels():
        _refuse_nested(env, env if scope is env.scope else scope.host, references)
        if used.isdisjoint(_offered(scope)):
            continue
        if scope is env.scope:
            return env
        if scope.host is None:
            message = "aggregate functions are not allowed in FROM clause of their own query level"
            raise SqlError("42803", message, position=env.binding.position(node))
        return scope.host
    return env


def _refuse_nested(env: Environment, place: Environment | None, references: Iterable[ColumnRef]) -> None:
    """The result of an aggregate of a query is in no other aggregate of that query."""
    known = () if place is None or place.groups is None else place.groups.aggregates
    results = {column.id for column, _ in known}
    for item in references:
        if item.column.id in results:
            position = env.binding.origin(item)[0]
            raise SqlError("42803", "aggregate function calls cannot be nested", position=position)


def _offered(scope: Scope) -> set[int]:
    entries = {id(entry): entry for source in scope.sources for entry in (*source.entries, *source.hidden)}
    entries.update((id(entry), entry) for entry in scope.entries)
    return {column.id for entry in entries.values() for column in used_columns(entry.scalar)}

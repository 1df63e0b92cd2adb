"""Visits and rewrites the relations and scalars in a statement.

Owns: which statement classes contain any. Within a relation or scalar, ``planner.algebra.walk`` continues.
"""

from __future__ import annotations

from typing import Any, Final

from planner.algebra.walk import is_node, transform
from planner.statements.definitions import AlterTable
from planner.statements.statement import (
    Conflict,
    CopyIn,
    CopyOut,
    CreateTableAs,
    DeclareCursor,
    Delete,
    ExecutePrepared,
    Explain,
    Insert,
    Merge,
    MergeAction,
    Modifying,
    Query,
    Returning,
    Update,
    Upsert,
)

#: Classes whose fields may contain expressions with session functions or parameters.
_HOLDERS: Final = frozenset(
    (
        *(Query, Insert, Update, Delete, Merge, Modifying, CopyIn, CopyOut, CreateTableAs, Explain, ExecutePrepared),
        *(DeclareCursor, Returning, Conflict, Upsert, MergeAction, AlterTable),
    )
)


def roots(value: Any) -> list[Any]:
    """The relations and scalars in a statement's fields; those of an Insert's ``literals`` are in its source."""
    if is_node(value):
        return [value]
    if type(value) is Query:  # the most frequent statements
        return [value.relation]
    if type(value) is tuple:
        return [root for item in value for root in roots(item)]
    if type(value) in _HOLDERS:
        names = (name for name in value.__struct_fields__ if name != "literals")
        return [root for name in names for root in roots(getattr(value, name))]
    return []


def rewrite(value: Any, change: Any) -> Any:
    """A statement with ``change`` applied to every node of its expressions and relations."""
    if is_node(value):
        return transform(value, change)
    if type(value) is tuple:
        return tuple(rewrite(item, change) for item in value)
    if type(value) in _HOLDERS:
        return type(value)(*(rewrite(getattr(value, name), change) for name in value.__struct_fields__))
    return value

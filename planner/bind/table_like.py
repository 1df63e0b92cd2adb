"""CREATE TABLE (LIKE source ...): what is copied of another relation's definition.

Owns: the options of LIKE. Columns and NOT NULL always come; foreign keys never do. See
https://www.postgresql.org/docs/15/sql-createtable.html.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from catalog.objects import Check, ColumnDefinition, Table, UniqueKey
from planner.bind.context import Binding
from planner.bind.sources import find_object

#: Bits of TableLikeClause.options (parsenodes.h).
_CONSTRAINTS: Final = 1 << 2
_DEFAULTS: Final = 1 << 3
_GENERATED: Final = 1 << 4
_IDENTITY: Final = 1 << 5
_INDEXES: Final = 1 << 6


def like(binding: Binding, node: Any) -> tuple[tuple[ColumnDefinition, ...], tuple[Check, ...], tuple[UniqueKey, ...]]:
    """The columns, checks and keys that LIKE brings; the keys' names are the source's."""
    source = find_object(binding, node.relation)
    columns = tuple(_column(column, node.options) for column in source.columns)
    if not isinstance(source, Table):
        return columns, (), ()
    checks = source.checks if node.options & _CONSTRAINTS else ()
    return columns, checks, source.keys if node.options & _INDEXES else ()


def _column(column: ColumnDefinition, options: int) -> ColumnDefinition:
    default = column.default if options & _DEFAULTS else None
    generated = column.generated if options & _GENERATED else None
    identity = column.identity if options & _IDENTITY else ""
    return replace(column, default=default, generated=generated, identity=identity)

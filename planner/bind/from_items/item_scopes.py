"""Scopes of items of FROM: side by side, and under aliases of their columns.

Owns: PostgreSQL's errors for names that occur twice (42712) and for too many aliases (42P10).
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from catalog.values.errors import SqlError
from planner.bind.lookup.dotted_names import names_of
from planner.bind.state.environment import Binding, Scope
from planner.bind.state.from_names import Source


def beside_each_other(left: Scope, right: Scope) -> Scope:
    """Two items of FROM. Raises 42712 where both have one name."""
    for source in right.sources:
        if source.name and any(_in_the_way(source, other) for other in left.sources):
            raise SqlError("42712", f'table name "{source.name}" specified more than once')
    return Scope(left.sources + right.sources, left.entries + right.entries)


def _in_the_way(one: Source, other: Source) -> bool:
    """Two relations of different schemas may have one name beside each other."""
    apart = one.schema is not None and other.schema is not None and one.schema != other.schema
    return one.name == other.name and not apart


def renamed(binding: Binding, scope: Scope, alias: Any, node: Any) -> Scope:
    """Column aliases: FROM t AS a (x, y)."""
    if alias is None or not alias.colnames:
        return scope
    (source,) = scope.sources
    names = names_of(alias.colnames)
    if len(names) > len(source.entries):
        count = f"{len(source.entries)} columns available but {len(names)} columns specified"
        raise SqlError("42P10", f'table "{source.name}" has {count}', position=binding.position(node))
    entries = tuple(
        replace(entry, name=names[index]) if index < len(names) else entry for index, entry in enumerate(source.entries)
    )
    return Scope((replace(source, entries=entries),), entries)

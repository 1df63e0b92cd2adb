"""SET CONSTRAINTS: the constraints that its names mean.

https://www.postgresql.org/docs/15/sql-set-constraints.html
"""

from __future__ import annotations

from typing import Any

from catalog.objects import Table
from catalog.values.errors import SqlError
from planner.bind.definitions.named_objects import constraint_names
from planner.bind.lookup.search_path import searched
from planner.bind.state.environment import Binding
from planner.statements.statement import SetConstraints


def bind_set_constraints(binding: Binding, node: Any) -> SetConstraints:
    """SET CONSTRAINTS {ALL | names} {DEFERRED | IMMEDIATE}. Raises 42704, and 42809 for one that cannot wait."""
    if not node.constraints:
        return SetConstraints(None, bool(node.deferred))
    named = [pair for item in node.constraints for pair in _named(binding, item, bool(node.deferred))]
    return SetConstraints(tuple(named), bool(node.deferred))


def _named(binding: Binding, item: Any, deferred: bool) -> list[tuple[int, str]]:
    """All constraints of a name, of the first schema that has one."""
    name = item.relname
    tables = [found for found in binding.context.catalog.objects.values() if isinstance(found, Table)]
    for schema in searched(binding, item.schemaname):
        found = [table for table in tables if table.schema == schema and name in constraint_names(table)]
        waiting = [(table.oid, name) for table in found if _may_wait(table, name)]
        if deferred and len(waiting) < len(found):
            raise SqlError("42809", f'constraint "{name}" is not deferrable')
        if found:
            return waiting
    raise SqlError("42704", f'constraint "{name}" does not exist')


def _may_wait(table: Table, name: str) -> bool:
    """Whether a table's constraint of a name is DEFERRABLE."""
    return any(key.name == name and key.deferrable for key in table.foreign_keys) or any(
        key.name == name and key.deferrable for key in table.keys
    )

"""CREATE, ALTER and DROP DATABASE. A server has one database, and no other can be created.

Owns: PostgreSQL's messages about that database and about others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from catalog.values.errors import SqlError, unsupported
from planner.bind.state.environment import Binding
from planner.statements.statement import NoOperation, Statement

_ONE: Final = "Create a schema in this one, or start another server with a folder of its own."
_SETTINGS: Final = "SET it in each session, or give it in the server's configuration."


def _create_database(binding: Binding, node: Any) -> Statement:
    if node.dbname == binding.context.database:
        raise SqlError("42P04", f'database "{node.dbname}" already exists')
    raise unsupported("CREATE DATABASE", _ONE)


def _drop_database(binding: Binding, node: Any) -> Statement:
    if node.dbname == binding.context.database:
        raise SqlError("55006", "cannot drop the currently open database")
    message = f'database "{node.dbname}" does not exist'
    if not node.missing_ok:
        raise SqlError("3D000", message)
    return NoOperation("DROP DATABASE", (f"{message}, skipping",))


def _alter_database(binding: Binding, node: Any) -> Statement:
    if node.dbname != binding.context.database:
        raise SqlError("3D000", f'database "{node.dbname}" does not exist')
    raise unsupported("ALTER DATABASE", _SETTINGS)


HANDLERS: Final[dict[str, Callable[[Binding, Any], Statement]]] = {
    "CreatedbStmt": _create_database,
    "DropdbStmt": _drop_database,
    "AlterDatabaseStmt": _alter_database,
}

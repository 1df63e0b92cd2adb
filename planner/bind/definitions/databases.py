"""Databases and extensions: a server has one database, and the extensions that are built in.

Owns: what PostgreSQL says about those that there are and that there are not; others cannot be made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from catalog.errors import SqlError, unsupported
from catalog.system.naming import EXTENSION_FUNCTIONS, EXTENSIONS, PLPGSQL, PLPGSQL_COMMENT
from planner.bind.context import Binding
from planner.bind.definitions.functions import bind_create_function
from planner.parse import parse
from planner.statements import NoOperation, Statement

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


def _create_extension(binding: Binding, node: Any) -> Statement:
    if node.extname in EXTENSION_FUNCTIONS:
        return _create_functions(binding, node)
    if node.extname not in EXTENSIONS:
        hint = "Extensions are code for PostgreSQL itself; those that are there are built in (pg_extension)."
        raise SqlError("0A000", f'extension "{node.extname}" is not available', hint=hint)
    message = f'extension "{node.extname}" already exists'
    if not node.if_not_exists:
        raise SqlError("42710", message)
    return NoOperation("CREATE EXTENSION", (f"{message}, skipping",))


def _create_functions(binding: Binding, node: Any) -> Statement:
    """An extension that is a function written in SQL: the function, in the schema that it is given."""
    function = parse(EXTENSION_FUNCTIONS[node.extname])[0].node
    schema = next((item.arg for item in node.options or () if item.defname == "schema"), None)
    if schema is not None:
        function.funcname = (schema, *function.funcname)
    created = bind_create_function(binding, function)
    if created.before is None:
        return replace(created, tag="CREATE EXTENSION")
    message = f'extension "{node.extname}" already exists'
    if not node.if_not_exists:
        raise SqlError("42710", message)
    return NoOperation("CREATE EXTENSION", (f"{message}, skipping",))


def _alter_extension(binding: Binding, node: Any) -> Statement:
    if node.extname not in EXTENSIONS:
        raise SqlError("42704", f'extension "{node.extname}" does not exist')
    raise unsupported("ALTER EXTENSION", "Leave it out: extensions here are built in.")


def bind_drop_extension(binding: Binding, node: Any) -> NoOperation:
    """DROP EXTENSION [IF EXISTS] names."""
    notices = []
    for item in node.objects:
        if item.sval in EXTENSIONS:
            message = f"cannot drop extension {item.sval} because it is required by the database system"
            raise SqlError("2BP01", message)
        message = f'extension "{item.sval}" does not exist'
        if not node.missing_ok:
            raise SqlError("42704", message)
        notices.append(f"{message}, skipping")
    return NoOperation("DROP EXTENSION", tuple(notices))


def bind_comment_extension(binding: Binding, node: Any) -> Statement:
    """COMMENT ON EXTENSION: dumps give PostgreSQL's own the comment that it has."""
    name = node.object.sval
    if name not in EXTENSIONS:
        raise SqlError("42704", f'extension "{name}" does not exist')
    if (name, node.comment) != (PLPGSQL, PLPGSQL_COMMENT):
        raise unsupported("COMMENT ON EXTENSION", "Leave it out: extensions here are built in.")
    return NoOperation("COMMENT")


HANDLERS: Final[dict[str, Callable[[Binding, Any], Statement]]] = {
    "CreatedbStmt": _create_database,
    "DropdbStmt": _drop_database,
    "AlterDatabaseStmt": _alter_database,
    "CreateExtensionStmt": _create_extension,
    "AlterExtensionStmt": _alter_extension,
    "AlterExtensionContentsStmt": _alter_extension,
}

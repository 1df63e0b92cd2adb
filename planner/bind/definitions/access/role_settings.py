"""ALTER ROLE ... SET and ALTER DATABASE ... SET: the settings that a session starts with.

Owns: the role and database of a setting, and the privilege to change it. The server checks names and values, and
applies them when a client connects.

https://www.postgresql.org/docs/15/sql-alterrole.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pglast.enums import VariableSetKind

from catalog.privileges import DATABASE
from catalog.roles import EVERYBODY, Roles
from catalog.values.errors import SqlError, unsupported
from catalog.values.identifiers import is_the_database
from planner.bind.definitions.access.roles import require_settable
from planner.bind.definitions.access.setting_values import set_text
from planner.bind.lookup.roles import current_role, role_of
from planner.bind.state.environment import Binding
from planner.statements.definitions import ChangeRoles
from planner.statements.statement import Statement

#: What names a session's user, which a session cannot begin by changing.
_IDENTITY: Final = ("role", "session_authorization")
#: Names with capitals, which the catalog shows.
_CASED: Final = {name.lower(): name for name in ("DateStyle", "IntervalStyle", "TimeZone")}


def _alter_role(binding: Binding, node: Any) -> ChangeRoles:
    """ALTER ROLE name or ALL [IN DATABASE name] SET or RESET. Raises 42501, 42704, 3D000 and 0A000."""
    database = 0 if node.database is None else _database(binding, node.database)
    if node.role is None:
        if database == 0 and not current_role(binding).superuser:
            raise SqlError("42501", "must be superuser to alter settings globally")
        if database:
            _require_owner(binding, node.database)
        return _changed(binding, "ALTER ROLE", EVERYBODY, database, node.setstmt)
    role = role_of(binding, node.role)
    require_settable(binding, role)
    return _changed(binding, "ALTER ROLE", role.oid, database, node.setstmt)


def _alter_database(binding: Binding, node: Any) -> ChangeRoles:
    """ALTER DATABASE name SET or RESET."""
    database = _database(binding, node.dbname)
    _require_owner(binding, node.dbname)
    return _changed(binding, "ALTER DATABASE", EVERYBODY, database, node.setstmt)


def _database(binding: Binding, name: str) -> int:
    if not is_the_database(binding.context.database, name):
        raise SqlError("3D000", f'database "{name}" does not exist')
    return DATABASE


def _require_owner(binding: Binding, name: Any) -> None:
    roles, owner = binding.context.catalog.roles, binding.context.catalog.rights_of(DATABASE).owner
    if not roles.has_role(current_role(binding).oid, owner):
        raise SqlError("42501", f"must be owner of database {name}")


def _changed(binding: Binding, tag: str, role: int, database: int, node: Any) -> ChangeRoles:
    before: Roles = binding.context.catalog.roles
    if node.kind == VariableSetKind.VAR_RESET_ALL:
        return ChangeRoles(tag, before, before.without_settings(role, database))
    written: str = node.name.lower()
    name = _CASED.get(written, written)
    if name in _IDENTITY:
        raise unsupported(f"{tag} ... SET {name}", "SET it in the session.")
    if node.kind == VariableSetKind.VAR_SET_CURRENT:
        raise unsupported("SET ... FROM CURRENT", "Write the value.")
    value = set_text(node) if node.kind == VariableSetKind.VAR_SET_VALUE else None
    return ChangeRoles(tag, before, before.with_setting(role, database, name, value), setting=(name, value))


HANDLERS: Final[dict[str, Callable[[Binding, Any], Statement]]] = {
    "AlterRoleSetStmt": _alter_role,
    "AlterDatabaseSetStmt": _alter_database,
}

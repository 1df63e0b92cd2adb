"""CREATE, ALTER and DROP ROLE, and membership: GRANT and REVOKE of roles.

Owns: the options of roles, and the privileges that changing roles takes, with PostgreSQL's errors (user.c). ``grants``
has the privileges on objects.

https://www.postgresql.org/docs/15/sql-createrole.html
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from msgspec.structs import replace
from pglast.enums import RoleSpecType, RoleStmtType

from catalog.default_privileges import DefaultRights
from catalog.objects import Sequence, SystemView, column_grants
from catalog.passwords import is_empty, is_md5
from catalog.roles import BOOTSTRAP, Membership, Role, Roles, is_predefined
from catalog.values.errors import SqlError, unsupported
from catalog.values.types import SqlType
from planner.bind.conversion.literals import value_of
from planner.bind.definitions.named_objects import described
from planner.bind.lookup.roles import current_role, named_role, role_of
from planner.bind.state.environment import Binding
from planner.statements.definitions import ChangeRoles
from planner.statements.statement import Statement

_NO_PASSWORD: Final = SqlError("00000", "empty string is not a valid password, clearing password")
#: Kinds of objects that have default privileges.
_DEFAULTS: Final = {"r": "relations", "S": "sequences", "f": "functions", "n": "schemas", "T": "types"}
#: Options that set a field to a Boolean.
_FLAGS: Final = {
    "superuser": "superuser",
    "inherit": "inherit",
    "createrole": "create_role",
    "createdb": "create_db",
    "canlogin": "login",
    "isreplication": "replication",
    "bypassrls": "bypass_rls",
}


def refuse_grantor(binding: Binding, node: Any) -> None:
    """GRANTED BY may name who asks. Raises 0A000."""
    if node.grantor is not None and role_of(binding, node.grantor).oid != current_role(binding).oid:
        raise unsupported("GRANTED BY another role", "Leave it out.")


def bind_create_role(binding: Binding, node: Any) -> ChangeRoles:
    """CREATE ROLE, USER and GROUP."""
    catalog = binding.context.catalog
    options, notices = _options(binding, node.options or ())
    role = Role(catalog.next_oid, node.role, login=node.stmt_type == RoleStmtType.ROLESTMT_USER)
    role = _changed(binding, role, options)
    _require_power(binding, role, "create")
    _require_name(node.role)
    if catalog.roles.find(node.role) is not None:
        raise SqlError("42710", f'role "{node.role}" already exists')
    roles = catalog.roles.put(role)
    grantor = current_role(binding).oid
    for group in _each(binding, options.get("addroleto")):
        _require_admin(binding, group)
        roles = _joined(roles, group, role, grantor, False, notices)
    for name, admin in (("rolemembers", False), ("adminmembers", True)):
        for member in _each(binding, options.get(name)):
            roles = _joined(roles, role, member, grantor, admin, notices)
    return ChangeRoles("CREATE ROLE", catalog.roles, roles, tuple(notices))


def bind_alter_role(binding: Binding, node: Any) -> ChangeRoles:
    """ALTER ROLE ... options, and ALTER GROUP ... ADD or DROP USER."""
    before = role_of(binding, node.role)
    _require_own(before)
    options, notices = _options(binding, node.options or ())
    after = _changed(binding, before, options)
    _require_alterable(binding, before, after, options)
    roles = binding.context.catalog.roles.put(after)
    for member in _each(binding, options.get("rolemembers")):
        if node.action > 0:
            roles = _joined(roles, after, member, current_role(binding).oid, False, notices)
        else:
            roles = _parted(roles, after, member, False, notices)
    return ChangeRoles("ALTER ROLE", binding.context.catalog.roles, roles, tuple(notices))


def bind_rename_role(binding: Binding, node: Any) -> ChangeRoles:
    """ALTER ROLE a RENAME TO b."""
    roles = binding.context.catalog.roles
    before = named_role(binding, node.subname)
    for name, words in ((binding.context.session_role, "session"), (binding.context.role, "current")):
        if before.name == name:
            raise SqlError("0A000", f"{words} user cannot be renamed")
    _require_own(before)
    _require_name(node.newname)
    if roles.find(node.newname) is not None:
        raise SqlError("42710", f'role "{node.newname}" already exists')
    if before.oid == BOOTSTRAP:
        raise unsupported(f'renaming the role "{before.name}"', "Create another superuser.")
    _require_power(binding, before, "rename")
    return ChangeRoles("ALTER ROLE", roles, roles.put(replace(before, name=node.newname)))


def bind_drop_role(binding: Binding, node: Any) -> ChangeRoles:
    """DROP ROLE [IF EXISTS]. Raises 2BP01 where something belongs to one, or somebody has given it something."""
    if not _may_create(binding):
        raise SqlError("42501", "permission denied to drop role")
    catalog = binding.context.catalog
    roles = catalog.roles
    notices: list[SqlError] = []
    for item in node.roles:
        if item.roletype != RoleSpecType.ROLESPEC_CSTRING:
            raise SqlError("22023", "cannot use special role specifier in DROP ROLE")
        found = catalog.roles.find(item.rolename)
        if found is None and not node.missing_ok:
            raise SqlError("42704", f'role "{item.rolename}" does not exist')
        if found is None:
            notices.append(SqlError("00000", f'role "{item.rolename}" does not exist, skipping'))
            continue
        _require_droppable(binding, found)
        roles = roles.drop(found.oid)
    return ChangeRoles("DROP ROLE", catalog.roles, roles, tuple(notices))


def _require_droppable(binding: Binding, role: Role) -> None:
    for name, words in ((binding.context.role, "current"), (binding.context.session_role, "session")):
        if role.name == name:
            raise SqlError("55006", f"{words} user cannot be dropped")
    if role.superuser and not current_role(binding).superuser:
        raise SqlError("42501", "must be superuser to drop superusers")
    if role.oid == BOOTSTRAP or is_predefined(role.oid):
        message = f"cannot drop role {role.name} because it is required by the database system"
        raise SqlError("2BP01", message)
    detail = "\n".join(_needing(binding, role))
    if detail:
        message = f'role "{role.name}" cannot be dropped because some objects depend on it'
        raise SqlError("2BP01", message, detail)


def _needing(binding: Binding, role: Role) -> Iterable[str]:
    """What stands in the way of a role's end, as PostgreSQL's DETAIL says it."""
    for oid, rights in binding.context.catalog.rights.items():
        if rights.owner == role.oid:
            yield f"owner of {described(binding, oid)}"
        elif rights.names(role.oid):
            yield f"privileges for {described(binding, oid)}"
    for relation in binding.context.catalog.objects.values():
        for column in () if isinstance(relation, Sequence | SystemView) else relation.columns:
            if column_grants(column).names(role.oid):
                yield f"privileges for column {column.name} of {described(binding, relation.oid)}"
    for item in binding.context.catalog.defaults:
        if item.rights.owner == role.oid:
            yield f"owner of {_default_words(binding, item)}"
        elif item.rights.names(role.oid):
            yield f"privileges for {_default_words(binding, item)}"


def _default_words(binding: Binding, item: DefaultRights) -> str:
    """Default privileges as DETAIL names them (getObjectDescription)."""
    catalog = binding.context.catalog
    words = (
        f"default privileges on new {_DEFAULTS[item.kind]} belonging to role {catalog.roles.name(item.rights.owner)}"
    )
    schema = catalog.schema(item.schema)
    return words if schema is None else f"{words} in schema {schema.name}"


def bind_grant_role(binding: Binding, node: Any) -> ChangeRoles:
    """GRANT and REVOKE [ADMIN OPTION FOR] roles."""
    catalog = binding.context.catalog
    admin = bool(node.opt)
    refuse_grantor(binding, node)
    roles = catalog.roles
    notices: list[SqlError] = []
    members = [role_of(binding, item) for item in node.grantee_roles]
    for item in node.granted_roles:
        role = named_role(binding, item.priv_name)
        _require_admin(binding, role)
        for member in members:
            if node.is_grant:
                roles = _joined(roles, role, member, current_role(binding).oid, admin, notices)
            else:
                roles = _parted(roles, role, member, admin, notices)
    return ChangeRoles("GRANT ROLE" if node.is_grant else "REVOKE ROLE", catalog.roles, roles, tuple(notices))


# --- options ---------------------------------------------------------------------------------------------------------


def _options(binding: Binding, items: Iterable[Any]) -> tuple[dict[str, Any], list[SqlError]]:
    """Options by name, each once. Raises 42601."""
    found: dict[str, Any] = {}
    notices: list[SqlError] = []
    for item in items:
        if item.defname in found:
            raise SqlError("42601", "conflicting or redundant options", position=binding.position(item))
        if item.defname == "sysid":
            notices.append(SqlError("00000", "SYSID can no longer be specified"))
        found[item.defname] = item.arg
    if is_empty(getattr(found.get("password"), "sval", None)):
        notices.append(_NO_PASSWORD)
    return found, notices


def _changed(binding: Binding, role: Role, options: dict[str, Any]) -> Role:
    """A role with options set."""
    for name, argument in options.items():
        if name in _FLAGS:
            role = replace(role, **cast(Any, {_FLAGS[name]: bool(argument.boolval)}))
        elif name in _VALUES:
            role = _VALUES[name](binding, role, argument)
    return role


def _limited(binding: Binding, role: Role, argument: Any) -> Role:
    if argument.ival < -1:
        raise SqlError("22023", f"invalid connection limit: {argument.ival}")
    return replace(role, connection_limit=argument.ival)


def _with_password(binding: Binding, role: Role, argument: Any) -> Role:
    text = None if argument is None or is_empty(argument.sval) else argument.sval
    if text is not None and is_md5(text):
        raise unsupported("an MD5 password", "Write the password itself: the server stores its SCRAM-SHA-256 verifier.")
    return replace(role, password=text)


def _with_end(binding: Binding, role: Role, argument: Any) -> Role:
    if argument.sval.strip().lower() == "infinity":
        return replace(role, valid_until=None)
    until = value_of(argument.sval, SqlType("timestamptz"), binding.context.time_zone, binding.context.reading)
    assert isinstance(until, dt.datetime)
    return replace(role, valid_until=until)


_VALUES: Final[dict[str, Callable[[Binding, Role, Any], Role]]] = {
    "connectionlimit": _limited,
    "password": _with_password,
    "validUntil": _with_end,
}


# --- who may ---------------------------------------------------------------------------------------------------------


def _may_create(binding: Binding) -> bool:
    role = current_role(binding)
    return role.superuser or role.create_role


def _require_name(name: str) -> None:
    if name in ("public", "none"):
        raise SqlError("42939", f'role name "{name}" is reserved')
    if name.startswith("pg_"):
        raise SqlError("42939", f'role name "{name}" is reserved', 'Role names starting with "pg_" are reserved.')


def _require_own(role: Role) -> None:
    if is_predefined(role.oid):
        raise SqlError("42939", f'role name "{role.name}" is reserved', "Cannot alter reserved roles.")


def _require_power(binding: Binding, role: Role, word: str) -> None:
    """CREATE and RENAME. Raises 42501."""
    if current_role(binding).superuser:
        return
    powers = (("superuser", "superusers"), ("replication", "replication users"), ("bypass_rls", "bypassrls users"))
    for name, words in powers:
        if getattr(role, name):
            raise SqlError("42501", f"must be superuser to {word} {words}")
    if not _may_create(binding):
        raise SqlError("42501", f"permission denied to {word} role")


def _require_alterable(binding: Binding, before: Role, after: Role, options: dict[str, Any]) -> None:
    """ALTER: a role may change its own password without more. Raises 42501."""
    if current_role(binding).superuser:
        return
    if before.superuser or "superuser" in options:
        raise SqlError("42501", "must be superuser to alter superuser roles or change superuser attribute")
    if before.replication or "isreplication" in options:
        raise SqlError("42501", "must be superuser to alter replication roles or change replication attribute")
    if "bypassrls" in options:
        raise SqlError("42501", "must be superuser to change bypassrls attribute")
    own = before.oid == current_role(binding).oid and set(options) == {"password"}
    if not own and not _may_create(binding):
        raise SqlError("42501", "permission denied")


def require_settable(binding: Binding, role: Role) -> None:
    """ALTER ... SET: a role may change its own settings. Raises 42501."""
    who = current_role(binding)
    if who.superuser:
        return
    if role.superuser:
        raise SqlError("42501", "must be superuser to alter superusers")
    if role.oid != who.oid and not _may_create(binding):
        raise SqlError("42501", "permission denied")


def _require_admin(binding: Binding, role: Role) -> None:
    """Who may let others into a role, and out. Raises 42501."""
    who = current_role(binding)
    if who.superuser:
        return
    if role.superuser:
        raise SqlError("42501", "must be superuser to alter superusers")
    if not who.create_role and role.oid not in binding.context.catalog.roles.administered(who.oid):
        raise SqlError("42501", f'must have admin option on role "{role.name}"')


# --- memberships -----------------------------------------------------------------------------------------------------


def _each(binding: Binding, items: Any) -> list[Role]:
    return [role_of(binding, item) for item in items or ()]


def _joined(roles: Roles, role: Role, member: Role, grantor: int, admin: bool, notices: list[SqlError]) -> Roles:
    """A member more. Raises 0LP01 where the role is, through others, one of the new member's."""
    if member.oid in roles.groups(role.oid):
        raise SqlError("0LP01", f'role "{role.name}" is a member of role "{member.name}"')
    known = roles.membership(role.oid, member.oid)
    if known is not None and (known.admin or not admin):
        notices.append(SqlError("00000", f'role "{member.name}" is already a member of role "{role.name}"'))
        return roles
    kept = tuple(item for item in roles.members if item is not known)
    return replace(roles, members=(*kept, Membership(role.oid, member.oid, grantor, admin)))


def _parted(roles: Roles, role: Role, member: Role, option_only: bool, notices: list[SqlError]) -> Roles:
    """A member less, or one that may let nobody in any more."""
    known = roles.membership(role.oid, member.oid)
    if known is None:
        notices.append(SqlError("01000", f'role "{member.name}" is not a member of role "{role.name}"'))
        return roles
    kept = tuple(item for item in roles.members if item is not known)
    return replace(roles, members=(*kept, replace(known, admin=False)) if option_only else kept)


HANDLERS: Final[dict[str, Callable[[Binding, Any], Statement]]] = {
    "CreateRoleStmt": bind_create_role,
    "AlterRoleStmt": bind_alter_role,
    "DropRoleStmt": bind_drop_role,
    "GrantRoleStmt": bind_grant_role,
}

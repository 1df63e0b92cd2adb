"""Roles that a command names, and the one that runs the statement."""

from __future__ import annotations

from typing import Any

from pglast.enums import RoleSpecType

from catalog.roles import Role
from catalog.values.errors import SqlError
from planner.bind.state.bind_state import BindState


def current_role(binding: BindState) -> Role:
    """Who asks. Raises 42704 where the role has been dropped meanwhile."""
    return named_role(binding, binding.context.role)


def named_role(binding: BindState, name: str) -> Role:
    """The role of a name. Raises 42704."""
    found = binding.context.catalog.roles.find(name)
    if found is None:
        raise SqlError("42704", f'role "{name}" does not exist')
    return found


def role_of(binding: BindState, node: Any) -> Role:
    """What a RoleSpec means. Raises 42704."""
    match node.roletype:
        case RoleSpecType.ROLESPEC_CSTRING:
            return named_role(binding, node.rolename)
        case RoleSpecType.ROLESPEC_SESSION_USER:
            return named_role(binding, binding.context.session_role)
        case RoleSpecType.ROLESPEC_PUBLIC:
            raise SqlError("42704", 'role "public" does not exist')
        case _:
            return current_role(binding)

"""The roles of a session: the one that logged in, and those set by SET SESSION AUTHORIZATION and SET ROLE.

Owns: whether it may, and which settings the role may see. The values are settings like others, so that transactions
give back what they had (``server.settings.settings``).

https://www.postgresql.org/docs/15/sql-set-role.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from catalog.roles import Role, Roles
from catalog.values.errors import SqlError

if TYPE_CHECKING:
    from executor.sql.session import DatabaseSession
    from server.net.cancel_keys import Backend
    from server.settings.settings import Settings

#: PostgreSQL's (GUC_SUPERUSER_ONLY) that are folders and files, and ours.
_OF_OPERATORS: Final = frozenset(
    (
        *("config_file", "data_directory", "external_pid_file", "hba_file", "ident_file", "krb_server_keyfile"),
        *("log_directory", "log_filename", "data", "storage", "shared_files"),
    )
)


class Identified(Protocol):
    """The part of a session that says which roles it has."""

    db: DatabaseSession
    settings: Settings
    backend: Backend

    @property
    def user(self) -> str:
        """The current role."""
        ...


def take_on(session: Identified, name: str, value: str | None, local: bool) -> None:
    """SET [LOCAL] ROLE or SESSION AUTHORIZATION; None is DEFAULT. Raises 22023 and 42501."""
    roles = session.db.catalog.roles
    if name == "role" and value not in (None, "none"):
        require_member(roles, session.settings.value("session_authorization"), str(value))
    if name == "session_authorization":
        _require_power(roles, session.backend.login, session.backend.login if value is None else value)
        session.settings.set("role", "none", local)
    session.settings.set(name, value, local)


def is_superuser(session: Identified) -> bool:
    """Whether nothing is forbidden to the current role."""
    role = session.db.catalog.roles.find(session.user)
    return role is not None and role.superuser


def may_examine(session: Identified, name: str) -> bool:
    """Whether the current role may see a setting: where files are, operators know alone."""
    if name.lower() not in _OF_OPERATORS:
        return True
    roles = session.db.catalog.roles
    own, readers = roles.find(session.user), roles.find("pg_read_all_settings")
    return own is not None and readers is not None and roles.has_role(own.oid, readers.oid)


def require_examinable(session: Identified, name: str) -> None:
    """Raises 42501 where the current role may not see a setting."""
    if not may_examine(session, name):
        message = f'must be superuser or have privileges of pg_read_all_settings to examine "{name}"'
        raise SqlError("42501", message)


def _require_power(roles: Roles, login: str, name: str) -> None:
    """Checks that the logged-in role may become another. Raises 22023 and 42501."""
    _find(roles, name)
    own = roles.find(login)
    if name != login and (own is None or not own.superuser):
        raise SqlError("42501", "permission denied to set session authorization")


def require_member(roles: Roles, user: str, name: str) -> None:
    """Whether a user may take on a role. Raises 22023 and 42501."""
    role, own = _find(roles, name), roles.find(user)
    if own is None or not roles.has_role(own.oid, role.oid, inherited=False):
        raise SqlError("42501", f'permission denied to set role "{name}"')


def _find(roles: Roles, name: str) -> Role:
    found = roles.find(name)
    if found is None:
        raise SqlError("22023", f'role "{name}" does not exist')
    return found

"""Roles and their memberships.

Owns: ``Roles``, immutable like the catalog that contains it, with PostgreSQL's predefined roles and the initial
superuser. ``catalog.privileges`` has the privileges of roles on objects, ``catalog.passwords`` the stored passwords.

https://www.postgresql.org/docs/15/user-manag.html
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

#: The initial superuser.
BOOTSTRAP: Final = 10
BOOTSTRAP_NAME: Final = "millstream"
#: The oid of PUBLIC.
EVERYBODY: Final = 0


class Role(Struct, frozen=True):
    """A user or group. ``password`` is a verifier; ``valid_until`` is when the password expires."""

    oid: int
    name: str
    superuser: bool = False
    inherit: bool = True
    create_role: bool = False
    create_db: bool = False
    login: bool = False
    replication: bool = False
    bypass_rls: bool = False
    connection_limit: int = -1
    password: str | None = None
    valid_until: dt.datetime | None = None


class Membership(Struct, frozen=True):
    """``member`` is a member of ``role``; ``admin``: it may also add other members."""

    role: int
    member: int
    grantor: int = BOOTSTRAP
    admin: bool = False


class RoleSetting(Struct, frozen=True):
    """The initial value of a setting for sessions of a role (``EVERYBODY``: of all roles) in a database (0: in all)."""

    role: int
    database: int
    name: str
    value: str


_PREDEFINED: Final = {
    "pg_database_owner": 6171,
    "pg_read_all_data": 6181,
    "pg_write_all_data": 6182,
    "pg_monitor": 3373,
    "pg_read_all_settings": 3374,
    "pg_read_all_stats": 3375,
    "pg_stat_scan_tables": 3377,
    "pg_read_server_files": 4569,
    "pg_write_server_files": 4570,
    "pg_execute_server_program": 4571,
    "pg_signal_backend": 4200,
    "pg_checkpoint": 4544,
}
_BOOTSTRAP: Final = Role(
    BOOTSTRAP,
    BOOTSTRAP_NAME,
    superuser=True,
    create_role=True,
    create_db=True,
    login=True,
    replication=True,
    bypass_rls=True,
)
_BUILT_IN: Final = (_BOOTSTRAP, *(Role(oid, name) for name, oid in _PREDEFINED.items()))
DATABASE_OWNER: Final = _PREDEFINED["pg_database_owner"]
READ_ALL_DATA: Final = _PREDEFINED["pg_read_all_data"]
WRITE_ALL_DATA: Final = _PREDEFINED["pg_write_all_data"]
READ_SERVER_FILES: Final = _PREDEFINED["pg_read_server_files"]
WRITE_SERVER_FILES: Final = _PREDEFINED["pg_write_server_files"]
READ_ALL_STATS: Final = _PREDEFINED["pg_read_all_stats"]
SIGNAL_BACKEND: Final = _PREDEFINED["pg_signal_backend"]


class Roles(Struct, frozen=True):
    """All roles at one version of the catalog."""

    items: tuple[Role, ...] = _BUILT_IN
    members: tuple[Membership, ...] = tuple(
        Membership(_PREDEFINED[role], _PREDEFINED["pg_monitor"])
        for role in ("pg_read_all_settings", "pg_read_all_stats", "pg_stat_scan_tables")
    )
    settings: tuple[RoleSetting, ...] = ()

    def find(self, name: str) -> Role | None:
        """The role of a name, or None."""
        return next((item for item in self.items if item.name == name), None)

    def get(self, oid: int) -> Role | None:
        """The role with an oid, or None."""
        return next((item for item in self.items if item.oid == oid), None)

    def name(self, oid: int) -> str:
        """A role's name; PUBLIC for ``EVERYBODY``."""
        found = self.get(oid)
        return found.name if found is not None else "public" if oid == EVERYBODY else f"unknown (OID={oid})"

    def put(self, role: Role) -> Roles:
        """The roles with one more, or with one redefined."""
        kept = tuple(item for item in self.items if item.oid != role.oid)
        return replace(self, items=(*kept, role))

    def drop(self, oid: int) -> Roles:
        """The roles without one and its memberships."""
        members = tuple(item for item in self.members if oid not in (item.role, item.member))
        settings = tuple(item for item in self.settings if item.role != oid)
        return Roles(tuple(item for item in self.items if item.oid != oid), members, settings)

    def with_setting(self, role: int, database: int, name: str, value: str | None) -> Roles:
        """The roles with another value of a setting, or without it."""
        place = (role, database, name)
        kept = tuple(item for item in self.settings if (item.role, item.database, item.name) != place)
        return replace(self, settings=kept if value is None else (*kept, RoleSetting(*place, value)))

    def without_settings(self, role: int, database: int) -> Roles:
        """The roles without the settings of a role, or of all roles, in a database, or in all."""
        kept = tuple(item for item in self.settings if (item.role, item.database) != (role, database))
        return replace(self, settings=kept)

    def begins_with(self, role: int, database: int) -> dict[str, str]:
        """The initial settings of a session: a role's settings in the database come before the role's own, the
        database's, and those of all sessions."""
        found: dict[str, str] = {}
        for place in ((EVERYBODY, 0), (EVERYBODY, database), (role, 0), (role, database)):
            found |= {item.name: item.value for item in self.settings if (item.role, item.database) == place}
        return found

    def groups(self, oid: int, inherited: bool = False) -> frozenset[int]:
        """The role and the roles of which it is a member, directly or through others. ``inherited``: only those whose
        privileges it has without SET ROLE."""
        found = {oid}
        pending = [oid]
        while pending:
            role = self.get(pending.pop())
            if role is None or (inherited and not role.inherit):
                continue
            for item in self._groups_of(role.oid):
                if item not in found:
                    found.add(item)
                    pending.append(item)
        return frozenset(found)

    def _groups_of(self, oid: int) -> Iterator[int]:
        for item in self.members:
            if item.member == oid:
                yield item.role
        if oid == BOOTSTRAP:  # the owner of the database
            yield DATABASE_OWNER

    def administered(self, oid: int) -> frozenset[int]:
        """The roles to which a role, or a role of which it is a member, may add members."""
        groups = self.groups(oid)
        return frozenset(item.role for item in self.members if item.admin and item.member in groups)

    def membership(self, role: int, member: int) -> Membership | None:
        """A role's direct membership in another; None if there is none."""
        return next((item for item in self.members if (item.role, item.member) == (role, member)), None)

    def is_superuser(self, oid: int) -> bool:
        """Whether a role is a superuser."""
        role = self.get(oid)
        return role is not None and role.superuser

    def has_role(self, oid: int, role: int, inherited: bool = True) -> bool:
        """Whether a role has the privileges of another: as a superuser, or by membership."""
        return self.is_superuser(oid) or role in self.groups(oid, inherited)

    def completed(self) -> Roles:
        """The roles with the predefined ones that an older version did not have."""
        missing = tuple(item for item in _BUILT_IN if self.get(item.oid) is None)
        return replace(self, items=(*missing, *self.items)) if missing else self


def is_predefined(oid: int) -> bool:
    """Whether a role is one of PostgreSQL's own."""
    return oid in _PREDEFINED.values()

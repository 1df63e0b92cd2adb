"""The privileges that a role's new objects grant to others: ALTER DEFAULT PRIVILEGES.

Owns: ``DefaultRights``, and the privileges of a new object. Global default privileges replace the built-in ones of a
kind of object; those of a schema are added.

https://www.postgresql.org/docs/15/catalog-pg-default-acl.html
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.objects import CatalogObject, Schema, Sequence, UserType
from catalog.privileges import OF_FUNCTION, OF_SCHEMA, OF_SEQUENCE, OF_TABLE, OF_TYPE, Rights
from catalog.routines import Function

#: All privileges of the kinds of objects with default privileges, by pg_default_acl's letter.
KINDS: Final = {"r": OF_TABLE, "S": OF_SEQUENCE, "f": OF_FUNCTION, "n": OF_SCHEMA, "T": OF_TYPE}


class DefaultRights(Struct, frozen=True):
    """The grants of new objects of a kind in a schema (``schema`` 0: in all schemas) that ``rights.owner`` creates."""

    oid: int
    schema: int
    kind: str
    rights: Rights

    @property
    def place(self) -> tuple[int, int, str]:
        """The key, which is unique among default privileges."""
        return self.rights.owner, self.schema, self.kind

    @property
    def is_needless(self) -> bool:
        """Whether new objects get the same privileges without it."""
        return _sorted(self.rights, self.kind) == _sorted(beginning(self.rights.owner, self.schema), self.kind)

    def sorted(self) -> DefaultRights:
        """The same default privileges with their grants in pg_default_acl's order."""
        return replace(self, rights=_sorted(self.rights, self.kind))


def beginning(owner: int, schema: int) -> Rights:
    """The default privileges before the first ALTER DEFAULT PRIVILEGES."""
    return Rights(owner, () if schema else None)


def _sorted(rights: Rights, kind: str) -> Rights:
    listed = rights.listed(KINDS[kind])
    return replace(rights, grants=tuple(sorted(listed, key=lambda item: (item.grantee, item.grantor, item.letters))))


def kind_of(item: CatalogObject | Schema | Function | UserType) -> str:
    """An object's kind, as pg_default_acl's letter."""
    match item:
        case Schema():
            return "n"
        case Sequence():
            return "S"
        case Function():
            return "f"
        case _:
            return "T" if isinstance(item, UserType) else "r"


def first_rights(defaults: Iterable[DefaultRights], owner: int, schema: int, kind: str) -> Rights:
    """The privileges of a role's new object."""
    found = {item.schema: item.rights for item in defaults if item.place in ((owner, 0, kind), (owner, schema, kind))}
    rights = found.pop(0, Rights(owner))
    for more in found.values():
        for grant in more.grants or ():
            rights = rights.grant(KINDS[kind], grant)
    plain = _sorted(rights, kind) == _sorted(Rights(owner), kind)
    return Rights(owner) if plain else _sorted(rights, kind)

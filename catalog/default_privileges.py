"""What new objects of a role's grant to others: ALTER DEFAULT PRIVILEGES.

Owns: ``DefaultRights``, and the rights of an object that begins to be. Global ones stand in the place of those that a
kind of object begins with; a schema's come to them.

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

#: All privileges of the kinds of objects that have defaults, by pg_default_acl's letter.
KINDS: Final = {"r": OF_TABLE, "S": OF_SEQUENCE, "f": OF_FUNCTION, "n": OF_SCHEMA, "T": OF_TYPE}


class DefaultRights(Struct, frozen=True):
    """The grants that new objects of a kind begin with, in a schema (``schema`` 0: in all), if ``rights.owner`` makes
    them."""

    oid: int
    schema: int
    kind: str
    rights: Rights

    @property
    def place(self) -> tuple[int, int, str]:
        """Of which there is one."""
        return self.rights.owner, self.schema, self.kind

    @property
    def is_needless(self) -> bool:
        """Whether new objects are as they would be without it."""
        return _sorted(self.rights, self.kind) == _sorted(beginning(self.rights.owner, self.schema), self.kind)

    def sorted(self) -> DefaultRights:
        """With its grants in pg_default_acl's order."""
        return replace(self, rights=_sorted(self.rights, self.kind))


def beginning(owner: int, schema: int) -> Rights:
    """Default rights before the first ALTER DEFAULT PRIVILEGES."""
    return Rights(owner, () if schema else None)


def _sorted(rights: Rights, kind: str) -> Rights:
    listed = rights.listed(KINDS[kind])
    return replace(rights, grants=tuple(sorted(listed, key=lambda item: (item.grantee, item.grantor, item.letters))))


def kind_of(item: CatalogObject | Schema | Function | UserType) -> str:
    """An object's kind."""
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
    """The rights of a role's new object."""
    found = {item.schema: item.rights for item in defaults if item.place in ((owner, 0, kind), (owner, schema, kind))}
    rights = found.pop(0, Rights(owner))
    for more in found.values():
        for grant in more.grants or ():
            rights = rights.grant(KINDS[kind], grant)
    plain = _sorted(rights, kind) == _sorted(Rights(owner), kind)
    return Rights(owner) if plain else _sorted(rights, kind)

"""Owners of objects and PostgreSQL's access control lists.

Owns: ``Rights`` of one object, its privileges as letters, and whether a role has one of them. The binder knows which
privileges a statement requires; an object without rights of its own belongs to the initial superuser.

https://www.postgresql.org/docs/15/ddl-priv.html
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.roles import BOOTSTRAP, DATABASE_OWNER, EVERYBODY, READ_ALL_DATA, WRITE_ALL_DATA, Roles

#: Privileges by letter, in the order in which PostgreSQL writes them.
WORDS: Final = {
    "a": "INSERT",
    "r": "SELECT",
    "w": "UPDATE",
    "d": "DELETE",
    "D": "TRUNCATE",
    "x": "REFERENCES",
    "t": "TRIGGER",
    "X": "EXECUTE",
    "U": "USAGE",
    "C": "CREATE",
    "T": "TEMPORARY",
    "c": "CONNECT",
}
LETTERS: Final = {word: letter for letter, word in WORDS.items()}
#: All privileges of each kind of object.
OF_TABLE: Final = "arwdDxt"
OF_COLUMN: Final = "arwx"
OF_SEQUENCE: Final = "rwU"
OF_SCHEMA: Final = "UC"
OF_DATABASE: Final = "CTc"
OF_FUNCTION: Final = "X"
OF_TYPE: Final = "U"
#: Kinds of objects that PUBLIC may use until the privilege is revoked.
_OPEN: Final = (OF_FUNCTION, OF_TYPE)
#: The oid of the only database.
DATABASE: Final = 5


class Grant(Struct, frozen=True):
    """The privileges that one role has granted to another; ``options`` are those with grant option. ``grantee`` 0 is
    PUBLIC."""

    grantee: int
    grantor: int
    letters: str
    options: str = ""


class Rights(Struct, frozen=True):
    """An object's owner and grants; the grants are None before the first GRANT or REVOKE."""

    owner: int = BOOTSTRAP
    grants: tuple[Grant, ...] | None = None

    def listed(self, every: str) -> tuple[Grant, ...]:
        """The grants, including the owner's default ones; ``every`` are all privileges of the kind."""
        if self.grants is not None:
            return self.grants
        own = Grant(self.owner, self.owner, every)
        return (Grant(EVERYBODY, self.owner, every), own) if every in _OPEN else (own,)

    def allows(self, roles: Roles, role: int, letters: str, every: str) -> bool:
        """Whether a role has all of these privileges: by its own grants, by grants to PUBLIC, or as a member of other
        roles."""
        return roles.is_superuser(role) or not set(letters) - self.held(roles, role, every)

    def held(self, roles: Roles, role: int, every: str) -> set[str]:
        """The privileges that a role has."""
        who = roles.groups(role, inherited=True)
        return {
            letter for item in self.listed(every) if item.grantee == EVERYBODY or item.grantee in who
            for letter in item.letters
        } | _predefined(who, every)  # fmt: skip

    def may_give(self, roles: Roles, role: int) -> set[str] | None:
        """The privileges that a role may grant to others; None for all, as for an owner."""
        who = roles.groups(role, inherited=True)
        if roles.is_superuser(role) or self.owner in who:
            return None
        return {letter for item in self.grants or () if item.grantee in who for letter in item.options}

    def grant(self, every: str, given: Grant) -> Rights:
        """The rights with some more privileges granted."""
        found = list(self.listed(every))
        for place, item in enumerate(found):
            if (item.grantee, item.grantor) == (given.grantee, given.grantor):
                found[place] = replace(
                    item, letters=_united(item.letters, given.letters), options=_united(item.options, given.options)
                )
                return replace(self, grants=tuple(found))
        return replace(self, grants=(*found, given))

    def revoke(self, every: str, taken: Grant, option_only: bool) -> Rights:
        """The rights without some privileges that one role has granted to another, or without their grant option."""
        kept = []
        for item in self.listed(every):
            if (item.grantee, item.grantor) == (taken.grantee, taken.grantor):
                letters = item.letters if option_only else _without(item.letters, taken.letters)
                item = replace(item, letters=letters, options=_without(item.options, taken.letters))
            if item.letters:
                kept.append(item)
        return replace(self, grants=tuple(kept))

    def owned_by(self, owner: int) -> Rights:
        """The rights with another owner, which replaces the former owner in all grants (aclnewowner)."""
        if self.grants is None:
            return Rights(owner)
        moved = Rights(owner, ())
        for item in self.grants:
            grantee = owner if item.grantee == self.owner else item.grantee
            grantor = owner if item.grantor == self.owner else item.grantor
            moved = moved.grant("", replace(item, grantee=grantee, grantor=grantor))
        return moved

    def names(self, oid: int) -> bool:
        """Whether this role occurs in grants of another owner."""
        return any(oid in (item.grantee, item.grantor) for item in self.grants or ())


#: The rights on the initial schemas: ``public``, and the others.
PUBLIC_SCHEMA: Final = Rights(
    DATABASE_OWNER, (Grant(DATABASE_OWNER, DATABASE_OWNER, OF_SCHEMA), Grant(EVERYBODY, DATABASE_OWNER, "U"))
)
SYSTEM_SCHEMA: Final = Rights(BOOTSTRAP, (Grant(BOOTSTRAP, BOOTSTRAP, OF_SCHEMA), Grant(EVERYBODY, BOOTSTRAP, "U")))


#: PUBLIC may connect and create temporary tables.
DATABASE_RIGHTS: Final = Rights(
    BOOTSTRAP, (Grant(EVERYBODY, BOOTSTRAP, "Tc"), Grant(BOOTSTRAP, BOOTSTRAP, OF_DATABASE))
)


def _predefined(who: frozenset[int], every: str) -> set[str]:
    """The privileges that pg_read_all_data and pg_write_all_data give."""
    found: set[str] = set()
    if every == OF_DATABASE:
        return found
    if READ_ALL_DATA in who:
        found |= set("U") if every == OF_SCHEMA else set("r")
    if WRITE_ALL_DATA in who:
        found |= set("U") if every == OF_SCHEMA else set("w") if every == OF_SEQUENCE else set("awd")
    return found


def _united(left: str, right: str) -> str:
    return "".join(letter for letter in WORDS if letter in left or letter in right)


def _without(letters: str, taken: str) -> str:
    return "".join(letter for letter in letters if letter not in taken)

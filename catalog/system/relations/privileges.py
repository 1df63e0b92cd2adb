"""Each role's privileges on each object, and its memberships: the rows that has_table_privilege() and similar functions
look up.

Owns: two relations that clients do not see, computed as a whole from one version of the catalog.
"""

from __future__ import annotations

from collections.abc import Iterator

from catalog.catalog import Catalog
from catalog.objects import Sequence, column_grants, rows_of
from catalog.privileges import (
    DATABASE,
    OF_COLUMN,
    OF_DATABASE,
    OF_FUNCTION,
    OF_SCHEMA,
    OF_SEQUENCE,
    OF_TABLE,
    OF_TYPE,
    WORDS,
    Rights,
)
from catalog.roles import EVERYBODY, Roles
from catalog.routines import every
from catalog.system.own_objects import own_objects
from catalog.system.rows import Row
from catalog.values.types import Composite


def held_privileges(catalog: Catalog) -> Iterator[Row]:
    """For each role and object, the privileges, as ',SELECT,SELECT WITH GRANT OPTION,INSERT,'."""
    kinds = [(item.oid, OF_SEQUENCE if isinstance(item, Sequence) else OF_TABLE) for item in own_objects(catalog)]
    kinds += [(schema.oid, OF_SCHEMA) for schema in catalog.schemas.values()]
    kinds += [(item.oid, OF_FUNCTION) for item in every(catalog.functions)]
    kinds.append((DATABASE, OF_DATABASE))
    held = [(oid, catalog.rights_of(oid), letters) for oid, letters in kinds]
    held += [(oid, rights, OF_TYPE) for oid, rights in _types(catalog)]
    for role in (EVERYBODY, *(item.oid for item in catalog.roles.items)):
        for oid, rights, letters in held:
            words = _words(catalog.roles, rights, role, letters)
            if words:
                yield {"role": role, "target": oid, "words": f",{','.join(words)},"}


def _types(catalog: Catalog) -> Iterator[tuple[int, Rights]]:
    """Types by their oids in pg_type: an array type has its element type's rights, and row types have the default
    ones."""
    for item in own_objects(catalog):
        if not isinstance(item, Sequence):
            whole, rights = rows_of(item), Rights(catalog.rights_of(item.oid).owner)
            yield from ((whole.type_oid, rights), (whole.array_oid, rights))
    for declared in catalog.types.values():
        oid = declared.type_oid if isinstance(declared, Composite) else declared.oid
        rights = catalog.rights_of(declared.oid)
        yield from ((oid, rights), (oid - 1, rights))


def held_columns(catalog: Catalog) -> Iterator[Row]:
    """For each role, the privileges on single columns, for the columns with grants."""
    for item in own_objects(catalog):
        for place, column in enumerate(item.columns, 1):
            rights = column_grants(column, catalog.rights_of(item.oid).owner)
            for role in (EVERYBODY, *(each.oid for each in catalog.roles.items)) if column.grants else ():
                words = _words(catalog.roles, rights, role, OF_COLUMN)
                about = {"role": role, "target": item.oid, "place": place, "name": column.name}
                yield {**about, "words": f",{','.join(words)},"}


def _words(roles: Roles, rights: Rights, role: int, every: str) -> list[str]:
    whole = roles.is_superuser(role)
    held = set(every) if whole else rights.held(roles, role, every)
    given = rights.may_give(roles, role)
    options = set(every) if given is None else given
    words = [WORDS[letter] for letter in every if letter in held]
    return words + [f"{WORDS[letter]} WITH GRANT OPTION" for letter in every if letter in options]


def memberships(catalog: Catalog) -> Iterator[Row]:
    """For each role, the roles of which it is a member, whether it has their privileges without SET ROLE, and whether
    it may add members."""
    roles = catalog.roles
    everything = frozenset(item.oid for item in roles.items)
    for item in roles.items:
        groups = everything if item.superuser else roles.groups(item.oid)
        inherited = everything if item.superuser else roles.groups(item.oid, inherited=True)
        admin = everything if item.superuser else roles.administered(item.oid)
        for oid in groups:
            yield {"member": item.oid, "role": oid, "inherited": oid in inherited, "admin": oid in admin}

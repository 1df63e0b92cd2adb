"""Roles, owners and privileges in a transaction: what their statements change of the catalog and log of it.

Owns: the records of such changes, and that no password is kept but as a verifier. Which changes are allowed is the
binder's matter (``planner.bind.definitions.access.roles``, ``grants``).
"""

from __future__ import annotations

import json
import secrets
from typing import Any

from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.codec import CATALOG_CLASSES, decode, encode
from catalog.default_privileges import DefaultRights, first_rights, kind_of
from catalog.objects import CatalogObject, Schema, UserType
from catalog.passwords import SALT_BYTES, make_verifier, read_verifier
from catalog.privileges import Rights
from catalog.roles import BOOTSTRAP, Role, Roles
from catalog.routines import Function
from executor.transactions.result import Result
from executor.transactions.transaction import OutdatedError, Transaction
from planner.statements.definitions import ChangeDefaults, ChangeRights, ChangeRoles


def change_roles(transaction: Transaction, catalog: Catalog, statement: ChangeRoles) -> Result:
    """CREATE, ALTER and DROP ROLE, and memberships. Raises 40001 where another transaction has changed roles since."""
    if catalog.roles != statement.before:
        raise OutdatedError
    roles = replace(statement.after, items=tuple(_secured(item) for item in statement.after.items))
    transaction.catalog = catalog.with_roles(roles)
    transaction.catalog_changes.append(json.dumps({"roles": encode(roles)}))
    return Result(statement.tag, notices=statement.notices)


def change_rights(transaction: Transaction, catalog: Catalog, statement: ChangeRights) -> Result:
    """GRANT, REVOKE and OWNER TO. Raises 40001 like ``change_roles``."""
    for oid, before, after in statement.changes:
        if catalog.rights_of(oid) != before:
            raise OutdatedError
        transaction.catalog = transaction.catalog or catalog
        set_rights(transaction, oid, after)
    return Result(statement.tag, notices=statement.notices)


def change_defaults(transaction: Transaction, catalog: Catalog, statement: ChangeDefaults) -> Result:
    """ALTER DEFAULT PRIVILEGES. Raises 40001 like ``change_roles``."""
    if catalog.defaults != statement.before:
        raise OutdatedError
    next_oid, found = catalog.next_oid, list[DefaultRights]()
    for item in statement.after:
        if item not in statement.before and item.oid >= catalog.next_oid:
            item, next_oid = replace(item, oid=next_oid), next_oid + 1
        found.append(item)
    transaction.catalog = catalog.with_defaults(tuple(found))
    transaction.catalog_changes.append(json.dumps({"default_rights": encode(tuple(found))}))
    return Result("ALTER DEFAULT PRIVILEGES")


def own(transaction: Transaction, item: CatalogObject | Schema | Function | UserType) -> None:
    """A new object belongs to its creator, with the creator's default privileges."""
    catalog = transaction.catalog
    assert catalog is not None
    if transaction.role == BOOTSTRAP and not catalog.defaults:
        return
    schema = None if isinstance(item, Schema) else catalog.schemas.get(item.schema)
    where = 0 if schema is None else schema.oid
    set_rights(transaction, item.oid, first_rights(catalog.defaults, transaction.role, where, kind_of(item)))


def set_rights(transaction: Transaction, oid: int, rights: Rights) -> None:
    """An object that is no session's own has other rights."""
    assert transaction.catalog is not None
    if transaction.catalog.rights_of(oid) != rights:
        transaction.catalog = transaction.catalog.with_rights(oid, rights)
        transaction.catalog_changes.append(json.dumps({"rights": encode(rights), "of": oid}))


def _secured(role: Role) -> Role:
    """A role whose password was just given has its verifier instead."""
    if role.password is None or read_verifier(role.password) is not None:
        return role
    return replace(role, password=str(make_verifier(role.password, secrets.token_bytes(SALT_BYTES))))


def apply_roles_change(catalog: Catalog, data: dict[str, Any]) -> Catalog | None:
    """The catalog after one logged change of roles or rights; None where it is none."""
    if "roles" in data:
        roles: Roles = decode(data["roles"], CATALOG_CLASSES)
        return catalog.with_roles(roles.completed())
    if "rights" in data:
        return catalog.with_rights(data["of"], decode(data["rights"], CATALOG_CLASSES))
    if "default_rights" in data:
        return catalog.with_defaults(decode(data["default_rights"], CATALOG_CLASSES))
    return None

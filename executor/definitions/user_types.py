"""CREATE and ALTER of types in a transaction, and the end of those that DROP takes away.

Owns: what they change of the catalog, and what the log record carries of it. Relations that have columns of an enum are
given its new definition; stored values stay as they are.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from catalog.catalog import Catalog, following
from catalog.codec import CATALOG_CLASSES, decode, encode
from catalog.objects import Table, Typed, UserType
from catalog.values.types import Composite, Enumeration
from executor.definitions.roles import own
from executor.definitions.unchanged_objects import require_same
from executor.transactions.result import Result
from executor.transactions.transaction import OutdatedError, Transaction
from planner.statements.definitions import AlterType, CreateType


def define_type(
    transaction: Transaction, catalog: Catalog, statement: CreateType | AlterType, time_zone: str
) -> Result:
    """Runs one statement. Raises 23502 and 23514 where a new constraint of a domain does not hold of stored values."""
    match statement:
        case CreateType(tag=tag, item=item):
            item = replace(item, oid=max(item.oid, catalog.type_oid()))
            transaction.catalog = catalog.add_type(item)
            transaction.catalog_changes.append(json.dumps({"add_type": encode(item)}))
            own(transaction, item)
            return Result(tag)
        case AlterType(tag=tag, before=before, item=item, changes=changes, checks=checks):
            _require_same(catalog, before)
            for error, relation in checks:
                if transaction.writer().query(relation, {}, (), time_zone).num_rows:
                    raise error
            _change_type(transaction, catalog, item)
            for old, new in changes:
                _require_same(catalog, old)
                _redefine(transaction, new)
            return Result(tag)


def forget_types(transaction: Transaction, catalog: Catalog, items: tuple[UserType, ...]) -> None:
    """Types that nothing uses any more."""
    for item in items:
        _require_same(catalog, item)
        transaction.catalog = catalog = catalog.drop_type(item.oid)
        transaction.catalog_changes.append(json.dumps({"drop_type": item.oid}))


def move_types(transaction: Transaction, catalog: Catalog, before: str, after: str) -> None:
    """The types of a schema that has another name."""
    for oid in [item.oid for item in catalog.types.values() if item.schema == before]:
        item = catalog.declared(oid)
        assert item is not None
        moved = replace(item, schema=after)
        _change_type(transaction, catalog, moved)
        catalog = transaction.catalog or catalog
        for _, new in following(catalog, moved) if isinstance(moved, Enumeration | Composite) else ():
            _redefine(transaction, new)
        catalog = transaction.catalog or catalog


def _require_same(catalog: Catalog, before: Typed) -> None:
    """Raises 40001 where another transaction has changed a type, or what is of it, since a statement was bound."""
    if not isinstance(before, UserType):
        require_same(catalog, before)
    elif catalog.types.get((before.schema, before.name)) != before:
        raise OutdatedError


def _change_type(transaction: Transaction, catalog: Catalog, item: UserType) -> None:
    transaction.catalog = catalog.change_type(item)
    transaction.catalog_changes.append(json.dumps({"change_type": encode(item)}))


def _redefine(transaction: Transaction, item: Typed) -> None:
    """A relation with columns of a type that has changed, or a domain over it."""
    assert transaction.catalog is not None
    if isinstance(item, UserType):
        _change_type(transaction, transaction.catalog, item)
        return
    transaction.catalog = transaction.catalog.change(item)
    transaction.catalog_changes.append(json.dumps({"change": encode(item)}))
    if isinstance(item, Table):
        transaction.writer().define(item)


def apply_type_change(catalog: Catalog, data: dict[str, Any]) -> Catalog | None:
    """The catalog after one logged change of a type; None where it is none."""
    if "drop_type" in data:
        return catalog.drop_type(data["drop_type"])
    if "change_type" in data:
        return catalog.change_type(decode(data["change_type"], CATALOG_CLASSES))
    if "add_type" in data:
        return catalog.add_type(decode(data["add_type"], CATALOG_CLASSES))
    return None

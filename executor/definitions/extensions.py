"""CREATE and DROP EXTENSION in a transaction: what they change of the catalog, and what the log record has of it."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.codec import CATALOG_CLASSES, decode, encode
from catalog.extensions import Extension
from catalog.privileges import Rights
from catalog.roles import BOOTSTRAP
from catalog.routines import named
from catalog.values.errors import SqlError
from executor.definitions.roles import set_rights
from executor.transactions.result import Result
from executor.transactions.transaction import OutdatedError, Transaction
from planner.statements.definitions import AlterExtension, CreateExtension


def create_extension(transaction: Transaction, catalog: Catalog, statement: CreateExtension) -> Result:
    """An extension and its members, which are the first superuser's. Raises 42710 and 42723 where a name is taken."""
    item = replace(statement.item, oid=max(statement.item.oid, catalog.next_oid))
    if item.name in catalog.extensions:
        raise SqlError("42710", f'extension "{item.name}" already exists')
    _put(transaction, catalog, item)
    for declared in statement.types:
        _change(transaction, transaction.sees(catalog).add_type(declared), {"add_type": encode(declared)})
    for function in statement.functions:
        known = named(transaction.sees(catalog).functions, function.name, (function.schema,))
        if any(each.types == function.types for each in known):
            raise SqlError("42723", f'function "{function.name}" already exists with same argument types')
        _change(transaction, transaction.sees(catalog).put_function(function), {"function": encode(function)})
    if transaction.role != BOOTSTRAP:
        set_rights(transaction, item.oid, Rights(transaction.role))
    return Result("CREATE EXTENSION")


def alter_extension(transaction: Transaction, catalog: Catalog, statement: AlterExtension) -> Result:
    """An extension with another comment. Raises 40001 where another transaction has changed it."""
    _require_same(catalog, statement.before)
    _put(transaction, catalog, statement.item)
    return Result(statement.tag)


def forget_extensions(transaction: Transaction, catalog: Catalog, items: tuple[Extension, ...]) -> None:
    """Extensions whose members are gone."""
    for item in items:
        _require_same(catalog, item)
        _change(transaction, transaction.sees(catalog).without_extension(item.name), {"drop_extension": item.name})


def _require_same(catalog: Catalog, item: Extension) -> None:
    if catalog.extensions.get(item.name) != item:
        raise OutdatedError


def _put(transaction: Transaction, catalog: Catalog, item: Extension) -> None:
    _change(transaction, catalog.with_extension(item), {"extension": encode(item)})


def _change(transaction: Transaction, catalog: Catalog, change: dict[str, Any]) -> None:
    transaction.catalog = catalog
    transaction.catalog_changes.append(json.dumps(change))


def apply_extension(catalog: Catalog, data: dict[str, Any]) -> Catalog | None:
    """The catalog after one logged change of an extension; None where it is none."""
    if "drop_extension" in data:
        return catalog.without_extension(data["drop_extension"])
    if "extension" in data:
        return catalog.with_extension(decode(data["extension"], CATALOG_CLASSES))
    return None

"""CREATE and DROP FUNCTION in a transaction: what they change of the catalog, and what the log record carries of it."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.codec import CATALOG_CLASSES, decode, encode
from catalog.routines import Function, every
from executor.definitions.roles import own
from executor.transactions.result import Result
from executor.transactions.transaction import OutdatedError, Transaction
from planner.statements.definitions import CreateFunction


def create_function(transaction: Transaction, catalog: Catalog, statement: CreateFunction) -> Result:
    """Runs CREATE [OR REPLACE] FUNCTION, and what alters one. Raises 40001 where what is replaced has changed since."""
    item, before = statement.function, statement.before
    if before is not None and catalog.function(before.oid) != before:
        raise OutdatedError
    if before is None:
        item = replace(item, oid=max(item.oid, catalog.next_oid))
    _put(transaction, catalog, item)
    if before is None:
        own(transaction, item)
    return Result(statement.tag)


def forget_functions(transaction: Transaction, catalog: Catalog, items: tuple[Function, ...]) -> None:
    """Functions that nothing uses any more."""
    for item in items:
        if catalog.function(item.oid) != item:
            raise OutdatedError
        transaction.catalog = catalog = catalog.drop_function(item.oid)
        transaction.catalog_changes.append(json.dumps({"drop_function": item.oid}))


def move_functions(transaction: Transaction, catalog: Catalog, before: str, after: str) -> None:
    """The functions of a schema that has another name."""
    for item in [item for item in every(catalog.functions) if item.schema == before]:
        _put(transaction, transaction.catalog or catalog, replace(item, schema=after))


def _put(transaction: Transaction, catalog: Catalog, item: Function) -> None:
    transaction.catalog = catalog.put_function(item)
    transaction.catalog_changes.append(json.dumps({"function": encode(item)}))


def apply_function(catalog: Catalog, data: dict[str, Any]) -> Catalog | None:
    """The catalog after one logged change of a function; None where it is none."""
    if "drop_function" in data:
        return catalog.drop_function(data["drop_function"])
    if "function" in data:
        return catalog.put_function(decode(data["function"], CATALOG_CLASSES))
    return None

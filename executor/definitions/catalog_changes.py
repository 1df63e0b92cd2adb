"""Changes of the catalog within a transaction: as it sees them, and as the log's record will have them.

Owns: adding, changing and dropping one object. What a statement does with several is ``ddl``'s, and ``moving``'s.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

from catalog.catalog import Catalog
from catalog.codec import encode
from catalog.objects import CatalogObject, Schema, Sequence, Table, View, is_temporary
from catalog.values.errors import undefined_table
from executor.definitions.roles import own
from executor.definitions.unchanged_objects import require_same
from executor.tables.temporary import TemporaryOids
from executor.transactions.transaction import Transaction
from planner.statements.definitions import Drop


class Oids(Protocol):
    """Where new objects get their oids from."""

    temporary: TemporaryOids

    def take_oids(self, first: int, count: int) -> int:
        """The first of so many oids that no transaction has taken; at least ``first``."""
        ...


def free_oid(oids: Oids, catalog: Catalog, item: CatalogObject | Schema, count: int = 1) -> int:
    """The oid that the binder chose, or the next one that no other transaction took; the first of so many."""
    if is_temporary(item):
        return oids.temporary.take(count)
    return oids.take_oids(max(item.oid, catalog.next_oid), count)


def _log(transaction: Transaction, item: CatalogObject | Schema, change: dict[str, Any]) -> None:
    """Notes a change of the catalog for the record; of temporary relations there is nothing in it."""
    if not is_temporary(item):
        transaction.catalog_changes.append(json.dumps(change))


def add_object(transaction: Transaction, catalog: Catalog, item: CatalogObject | Schema) -> None:
    """A new object, which belongs to the transaction's role."""
    transaction.catalog = catalog.add(item)
    _log(transaction, item, {"add": encode(item)})
    if not is_temporary(item):
        own(transaction, item)


def change_object(transaction: Transaction, catalog: Catalog, item: CatalogObject | Schema) -> None:
    """An object as it is from now on. Raises 42P01 where it is no longer there."""
    if item.oid not in catalog.objects and catalog.schema(item.oid) is None:
        raise undefined_table(item.name)
    transaction.catalog = catalog.change(item)
    _log(transaction, item, {"change": encode(item)})


def drop_object(transaction: Transaction, catalog: Catalog, oid: int) -> Catalog:
    """The catalog without an object."""
    item = catalog.objects.get(oid) or catalog.schema(oid)
    if item is None:
        return catalog
    if isinstance(item, Table):
        transaction.writer().require_settled(item, "DROP TABLE")
        transaction.writer().drop(oid)
    transaction.views[:] = [new for new in transaction.views if new.view.oid != oid]
    transaction.catalog = catalog.drop(oid)
    _log(transaction, item, {"drop": oid})
    return transaction.catalog


def follow(
    transaction: Transaction,
    catalog: Catalog,
    changes: tuple[tuple[Table | Sequence | View, Table | Sequence | View], ...],
) -> None:
    """Other objects that change with a statement."""
    for before, after in changes:
        require_same(catalog, before)
        change_object(transaction, transaction.catalog or catalog, after)
        if isinstance(after, Table):
            transaction.writer().define(after)


def take_away(transaction: Transaction, catalog: Catalog, drop: Drop) -> None:
    """What a DROP changes and what it drops."""
    follow(transaction, catalog, drop.changes)
    catalog = transaction.catalog or catalog
    for oid in drop.oids:
        catalog = drop_object(transaction, catalog, oid)

"""Enums of a view that moves: on the guest's server they are types of the same names that know their home.

Owns: that they exist before the view does, as their home has them, and are dropped when nothing there needs them.
Values are positions of labels, the same everywhere, so neither states nor programs change, only the types of columns.
While the view is away, its home alters no enum, since it alters neither the view nor its streams
(``moving.change_guards``). Composite types occur in no columns of streams or continuous views.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from catalog.catalog import Catalog, following
from catalog.codec import encode
from catalog.objects import ColumnDefinition, SystemView
from catalog.routines import every
from catalog.values.errors import SqlError
from catalog.values.nested_types import enum_of, over_enums
from catalog.values.types import Enumeration
from executor.definitions.user_types import define_type, forget_types
from executor.transactions.transaction import Transaction
from planner.statements.definitions import AlterType, CreateType

Columns = tuple[ColumnDefinition, ...]
#: Gives the same columns with the types of this server.
Retyped = Callable[[Columns], Columns]


def _over(columns: tuple[ColumnDefinition, ...], change: Callable[[Enumeration], Enumeration]) -> Columns:
    return tuple(replace(column, type=over_enums(column.type, change)) for column in columns)


def at_home(columns: Columns) -> Columns:
    """Columns as their types' home has them."""
    return _over(columns, lambda known: replace(known, oid=known.home[1], home=("", 0)) if known.home[0] else known)


def bring(transaction: Transaction, catalog: Catalog, home: str, columns: Iterable[ColumnDefinition]) -> Retyped:
    """Creates the enums of another server's columns here; a function that gives such columns these types. Raises 3F000,
    and 42710 where a name is taken."""
    found: dict[int, Enumeration] = {}
    for column in columns:
        declared = enum_of(column.type)
        if declared is not None and declared.oid not in found:
            found[declared.oid] = _brought(transaction, transaction.catalog or catalog, home, declared)
    return lambda those: _over(those, lambda known: found[known.oid])


def _brought(transaction: Transaction, catalog: Catalog, home: str, declared: Enumeration) -> Enumeration:
    if declared.schema not in catalog.schemas:
        raise SqlError("3F000", f'schema "{declared.schema}" does not exist')
    origin = (home, declared.oid)
    before = next((item for item in _of(catalog, home) if item.home == origin), None)
    item = replace(declared, oid=catalog.type_oid() if before is None else before.oid, home=origin)
    if before is None:
        define_type(transaction, catalog, CreateType("", item), "")
    elif before != item:  # what else is of it here follows
        define_type(transaction, catalog, AlterType("", before, item, following(catalog, item)), "")
    return item


def _of(catalog: Catalog, home: str) -> list[Enumeration]:
    return [item for item in catalog.types.values() if isinstance(item, Enumeration) and item.home[0] == home]


def keep(transaction: Transaction, catalog: Catalog, home: str) -> None:
    """Makes a server's enums this server's own."""
    for before in _of(catalog, home):
        item, known = replace(before, home=("", 0)), transaction.catalog or catalog
        define_type(transaction, known, AlterType("", before, item, following(known, item)), "")


def forget(transaction: Transaction, catalog: Catalog, home: str) -> None:
    """Drops those enums of a server that nothing here mentions any more."""
    objects = [item for item in catalog.objects.values() if not isinstance(item, SystemView)]
    found = [encode(item) for item in (*objects, *every(catalog.functions))]
    for declared in _of(catalog, home):
        others = (encode(item) for item in catalog.types.values() if item is not declared)
        if not any(_mentions(item, declared) for item in (*found, *others)):
            forget_types(transaction, transaction.catalog or catalog, (declared,))


def _mentions(encoded: Any, declared: Enumeration) -> bool:
    """Whether something in the catalog has a type of an enum, or names the enum in a text: by its name as in a
    function's body, or by its oid as in a default. An object of the same name, such as a column, does not mention
    it."""
    match encoded:
        case {"$": "Enumeration", "oid": declared.oid}:
            return True
        case dict():
            return any(_mentions(item, declared) for item in encoded.values())
        case list():
            return any(_mentions(item, declared) for item in encoded)
        case str() if encoded != declared.name:
            names = declared.name, declared.name.replace('"', '""'), f'pg_type."{declared.oid}"'
            return re.search(rf"(?<!\w)({'|'.join(map(re.escape, names))})(?!\w)", encoded) is not None
    return False

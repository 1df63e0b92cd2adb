"""Which locks a definition takes, found before it runs.

Owns: PostgreSQL's modes on the relations that a definition changes or refers to, and the locks that keep two open
transactions from changing one object or taking one name: ``Definition`` of an object, and ``Name``. Definitions of
relations share ``EVERY_DEFINITION``; those of types, functions, extensions, roles and default privileges, and whatever
changes many objects, have it alone. What is temporary is its session's own and needs no lock.

https://www.postgresql.org/docs/15/explicit-locking.html#LOCKING-TABLES
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from catalog.catalog import Catalog
from catalog.objects import CatalogObject, Schema, Table, UserType, View, is_temporary
from executor.locks.modes import Mode
from executor.locks.targets import Definition, Name, Relation
from executor.tables.statements.lock_needs import Need
from planner.algebra.nodes import Scan
from planner.algebra.walk import walk
from planner.bind.definitions.dependents import readers
from planner.statements.definitions import (
    AlterSchema,
    AlterSequence,
    AlterTable,
    AlterType,
    ChangeRights,
    CreateSchema,
    CreateSequence,
    CreateStream,
    CreateTable,
    Drop,
    DropExtension,
    DropType,
    Redefine,
)
from planner.statements.statement import AlterView, CreateTableAs, CreateView

#: All definitions of the server.
EVERY_DEFINITION: Final = Definition(0)
#: The namespace of schemas themselves.
_SCHEMAS: Final = ""
_SHARED: Final = (EVERY_DEFINITION, Mode.ROW_EXCLUSIVE)
_ALONE: Final = (EVERY_DEFINITION, Mode.EXCLUSIVE)
#: Modes of commands that need less than ACCESS EXCLUSIVE. A table's writers know its definition, comments included.
_MODES: Final = {
    "CREATE INDEX": Mode.SHARE,
    "COMMENT": Mode.SHARE_ROW_EXCLUSIVE,
    "GRANT": Mode.SHARE_ROW_EXCLUSIVE,
    "REVOKE": Mode.SHARE_ROW_EXCLUSIVE,
}


def definition_needs(statement: Any, catalog: Catalog) -> Iterator[Need]:
    """The locks of a definition."""
    match statement:
        case CreateSchema(schema=schema):
            yield _SHARED
            yield Name(_SCHEMAS, schema.name), Mode.EXCLUSIVE
        case CreateTable(table=table, sequences=sequences):
            yield from _created(catalog, table, *sequences)
            yield from _referred(table, catalog)
        case CreateTableAs(table=table):
            yield from _created(catalog, table)
        case CreateSequence(sequence=item) | CreateStream(stream=item):
            yield from _created(catalog, item)
        case CreateView(refreshed=View() as refreshed):
            yield from _changed(catalog, [refreshed], Mode.ACCESS_EXCLUSIVE)
        case CreateView(view=view):
            yield from _created(catalog, view)
            yield from _viewed(statement, catalog)
        case Drop(types=types, functions=functions, extensions=extensions):
            if types is not None or functions or extensions:
                yield _ALONE
            yield from _dropped(statement, catalog)
            if types is not None:
                yield from definition_needs(types, catalog)
        case AlterTable(sequences=sequences):
            if sequences:
                yield _ALONE
            yield from _altered(statement, catalog)
        case Redefine(tag=tag, before=before, item=item, changes=changes):
            yield from _changed(catalog, [before], _MODES.get(tag, Mode.ACCESS_EXCLUSIVE))
            yield from _renamed(before, item)
            yield from _followed(catalog, changes)
        case AlterView(view=view, query=query):
            above = () if query is None else readers(catalog, view.oid)  # they show what it shows
            yield from _changed(catalog, [view, *above], Mode.ACCESS_EXCLUSIVE)
        case AlterSequence(sequence=sequence):
            yield from _changed(catalog, [sequence], Mode.SHARE_ROW_EXCLUSIVE)
        case ChangeRights(changes=changes, columns=columns):
            yield _SHARED
            for oid, _, _ in changes:
                yield Definition(oid), Mode.EXCLUSIVE
            for part in columns:
                yield from definition_needs(part, catalog)
        case AlterSchema(before=before, after=after):
            yield _ALONE
            moved = catalog.contents(before.name) if before.name != after.name else ()
            yield from _changed(catalog, moved, Mode.ACCESS_EXCLUSIVE)
        case AlterType(changes=changes, alterations=alterations):
            yield _ALONE
            yield from _followed(catalog, changes)
            for alteration in alterations:
                yield from _altered(alteration, catalog)
        case DropType(drops=drops, alterations=alterations):
            yield _ALONE
            yield from _changed(catalog, _objects(catalog, drops), Mode.ACCESS_EXCLUSIVE)
            for alteration in alterations:
                yield from _altered(alteration, catalog)
        case DropExtension(types=dropped):
            yield from definition_needs(dropped, catalog)
        case _:
            yield _ALONE


def _objects(catalog: Catalog, oids: Iterable[int]) -> list[CatalogObject]:
    return [item for oid in oids if (item := catalog.objects.get(oid)) is not None]


def _created(catalog: Catalog, *items: Any) -> Iterator[Need]:
    """New objects: their names are theirs, and their schemas stay."""
    if all(map(is_temporary, items)):
        return
    yield _SHARED
    for item in items:
        if (schema := catalog.schemas.get(item.schema)) is not None:
            yield Definition(schema.oid), Mode.ACCESS_SHARE
        yield Name(item.schema, item.name), Mode.EXCLUSIVE


def _referred(table: Table, catalog: Catalog) -> Iterator[Need]:
    """What a new table refers to."""
    for key in table.foreign_keys:
        if key.target in catalog.objects and key.target != table.oid:
            yield Relation(key.target), Mode.SHARE_ROW_EXCLUSIVE
    for oid in (oid for column in table.columns for oid in column.sequences):
        if oid in catalog.objects:
            yield Relation(oid), Mode.ACCESS_SHARE


def _viewed(statement: CreateView, catalog: Catalog) -> Iterator[Need]:
    """What a view reads; of the tables that a view over streams joins the rows stay until it is there."""
    view = statement.view
    for oid in sorted(view.depends_on):
        yield Relation(oid), Mode.ACCESS_SHARE
    if view.keeps_rows:
        scans = (item for item in walk(statement.query.relation) if isinstance(item, Scan) and item.kind == "table")
        for oid in sorted({item.oid for item in scans}):
            yield Relation(oid), Mode.SHARE
    old = catalog.at(view.schema, view.name) if statement.replaces else None
    if old is not None:
        yield from _changed(catalog, [old], Mode.ACCESS_EXCLUSIVE)
    yield from _followed(catalog, statement.above)


def _dropped(statement: Drop, catalog: Catalog) -> Iterator[Need]:
    items = [catalog.objects.get(oid) or catalog.schema(oid) for oid in statement.oids]
    yield from _changed(catalog, [item for item in items if item is not None], Mode.ACCESS_EXCLUSIVE)
    yield from _followed(catalog, statement.changes)
    for item in items:
        for key in item.foreign_keys if isinstance(item, Table) else ():
            yield Relation(key.target), Mode.ACCESS_EXCLUSIVE


def _altered(statement: AlterTable, catalog: Catalog) -> Iterator[Need]:
    before, table = statement.before, statement.table
    yield from _changed(catalog, [before], _MODES.get(statement.tag, Mode.ACCESS_EXCLUSIVE))
    yield from _renamed(before, table)
    yield from _followed(catalog, statement.changes)
    for options in statement.options:
        yield from definition_needs(options, catalog)
    yield from _changed(catalog, _objects(catalog, statement.drops), Mode.ACCESS_EXCLUSIVE)
    for key in {*table.foreign_keys} ^ {*before.foreign_keys}:
        if key.target != table.oid:
            yield Relation(key.target), Mode.SHARE_ROW_EXCLUSIVE


def _renamed(before: Any, after: Any) -> Iterator[Need]:
    if (before.schema, before.name) != (after.schema, after.name) and not is_temporary(after):
        yield Name(after.schema, after.name), Mode.EXCLUSIVE


def _followed(catalog: Catalog, changes: Iterable[tuple[Any, Any]]) -> Iterator[Need]:
    """Other objects that change with a statement."""
    yield from _changed(catalog, [before for before, _ in changes], Mode.ACCESS_EXCLUSIVE)


def _changed(catalog: Catalog, items: Iterable[Any], mode: Mode) -> Iterator[Need]:
    """Objects that change, or go; types change alone."""
    for item in items:
        if isinstance(item, UserType):
            continue
        if is_temporary(item):
            yield Relation(item.oid), mode
            continue
        yield _SHARED
        if isinstance(item, Schema):
            yield Definition(item.oid), Mode.ACCESS_EXCLUSIVE
        else:
            yield Relation(item.oid), mode
            yield Definition(item.oid), Mode.EXCLUSIVE

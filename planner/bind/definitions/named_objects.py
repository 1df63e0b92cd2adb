"""Objects that a command names by kind and name, and the words for them in messages.

Owns: which kinds of relations ALTER and COMMENT know, and PostgreSQL's errors for a name of another kind (42809).
"""

from __future__ import annotations

from typing import Any, Final

from pglast.enums import ObjectType

from catalog.catalog import Catalog
from catalog.objects import CatalogObject, Schema, Sequence, Stream, SystemView, Table, View
from catalog.privileges import DATABASE
from catalog.values.errors import SqlError
from planner.bind.lookup.functions import signature
from planner.bind.lookup.relations import describe, require_object
from planner.bind.state.environment import Binding

RELATIONS: Final = {
    ObjectType.OBJECT_TABLE: (Table, View, Sequence, Stream),
    ObjectType.OBJECT_VIEW: (View,),
    ObjectType.OBJECT_MATVIEW: (View,),
    ObjectType.OBJECT_SEQUENCE: (Sequence,),
    ObjectType.OBJECT_FOREIGN_TABLE: (Stream,),
}


def relation_words(kind: Any) -> str:
    """A kind of object as commands name it."""
    return ObjectType(kind).name.removeprefix("OBJECT_").replace("_", " ").replace("MATVIEW", "MATERIALIZED VIEW")


def require_relation(binding: Binding, name: Any, kind: Any) -> CatalogObject:
    """The relation of a kind that a command is about. Raises 3F000, 42P01, 42501 and 42809."""
    found = require_object(binding, name)
    if isinstance(found, SystemView):
        raise SqlError("42501", f"permission denied: view {found.name} belongs to the system")
    if not isinstance(found, RELATIONS[kind]):
        raise SqlError("42809", f'"{found.name}" is not a {relation_words(kind).lower()}')
    return found


def constraint_names(table: Table) -> tuple[str, ...]:
    """The names of all constraints of a table."""
    keys = (*(key.name for key in table.keys if not key.index), *(key.name for key in table.foreign_keys))
    return (*keys, *(check.name for check in table.checks))


TYPES: Final = (ObjectType.OBJECT_TYPE, ObjectType.OBJECT_DOMAIN)


def find_schema(catalog: Catalog, name: str) -> Schema:
    """A schema by name. Raises 3F000."""
    found = catalog.schemas.get(name)
    if found is None:
        raise SqlError("3F000", f'schema "{name}" does not exist')
    return found


def described(binding: Binding, oid: int) -> str:
    """An object that has rights, as DETAIL names it."""
    catalog = binding.context.catalog
    if oid == DATABASE:
        return f"database {binding.context.database}"
    item, schema, declared = catalog.objects.get(oid), catalog.schema(oid), catalog.declared(oid)
    if item is not None:
        return describe(binding, item)
    function = catalog.function(oid)
    if function is not None:
        return f"function {signature(catalog, function)}"
    return f"schema {schema.name}" if schema is not None else f"type {declared.name if declared else oid}"

"""CREATE SCHEMA, ALTER SCHEMA and ALTER ... SET SCHEMA.

Owns: which names schemas may have, and what goes along when a relation moves. There is one role, so an owner may be
named and is always that. DROP SCHEMA is ``planner.bind.definitions.drops``.

https://www.postgresql.org/docs/15/sql-createschema.html
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from pglast.enums import ObjectType, RoleSpecType

from catalog.catalog import Catalog
from catalog.errors import SqlError, unsupported
from catalog.objects import PG_TEMP, SYSTEM_SCHEMAS, CatalogObject, Schema, Sequence, SystemView, Table
from planner.bind.context import Binding
from planner.bind.definitions.renames import RELATIONS, relation_words, require_relation
from planner.bind.definitions.user_types import bind_move_type, named_type
from planner.bind.relations import look_up
from planner.bind.typenames import names_of
from planner.definitions import AlterSchema, AlterTable, CreateSchema, Redefine
from planner.statements import NoOperation, Statement

_TYPES: Final = (ObjectType.OBJECT_TYPE, ObjectType.OBJECT_DOMAIN)


def bind_create_schema(binding: Binding, node: Any) -> CreateSchema:
    """CREATE SCHEMA [IF NOT EXISTS] [name] [AUTHORIZATION role]. Raises 42P06, 42704 and 42939."""
    owner = None if node.authrole is None else require_role(binding, node.authrole)
    name = node.schemaname or owner
    assert name is not None, "the grammar wants one of them"
    if node.schemaElts:
        instead = "Create what is to be in it with statements of their own."
        raise unsupported("CREATE SCHEMA with what is in it", instead, binding.position(node.schemaElts[0]))
    catalog = binding.context.catalog
    _require_name(name)
    exists = name in catalog.schemas
    if exists and not node.if_not_exists:
        raise SqlError("42P06", f'schema "{name}" already exists')
    return CreateSchema(Schema(catalog.next_oid, name), exists)


def require_role(binding: Binding, node: Any) -> str:
    """The name of a role. Raises 42704 for any but the session's."""
    if node.roletype == RoleSpecType.ROLESPEC_CSTRING and node.rolename != binding.context.role:
        raise SqlError("42704", f'role "{node.rolename}" does not exist')
    return binding.context.role


def _require_name(name: str) -> None:
    if name.startswith("pg_"):
        detail = 'The prefix "pg_" is reserved for system schemas.'
        raise SqlError("42939", f'unacceptable schema name "{name}"', detail)


def find_schema(catalog: Catalog, name: str) -> Schema:
    """A schema by name. Raises 3F000."""
    found = catalog.schemas.get(name)
    if found is None:
        raise SqlError("3F000", f'schema "{name}" does not exist')
    return found


def bind_rename_schema(binding: Binding, node: Any) -> AlterSchema:
    """ALTER SCHEMA a RENAME TO b."""
    catalog = binding.context.catalog
    before = find_schema(catalog, node.subname)
    if node.newname in catalog.schemas:
        raise SqlError("42P06", f'schema "{node.newname}" already exists')
    _require_name(node.newname)
    if before.name in SYSTEM_SCHEMAS:
        raise SqlError("42501", f"permission denied: schema {before.name} belongs to the system")
    return AlterSchema("ALTER SCHEMA", before, replace(before, name=node.newname))


def bind_alter_owner(binding: Binding, node: Any) -> NoOperation:
    """ALTER SCHEMA, TYPE or DOMAIN name OWNER TO role: there is one."""
    words = relation_words(node.objectType)
    if node.objectType in _TYPES:
        named_type(binding, names_of(node.object), node.objectType)
    elif node.objectType == ObjectType.OBJECT_SCHEMA:
        find_schema(binding.context.catalog, node.object.sval)
    else:
        raise unsupported(f"ALTER {words} OWNER TO")
    require_role(binding, node.newowner)
    return NoOperation(f"ALTER {words}")


def bind_set_schema(binding: Binding, node: Any) -> Statement:
    """ALTER kind [IF EXISTS] name SET SCHEMA schema. Raises 3F000, 42P01, 42P07, 42809 and 0A000."""
    words = relation_words(node.objectType)
    if node.objectType in _TYPES:
        return bind_move_type(binding, node)
    if node.objectType not in RELATIONS:
        raise unsupported(f"ALTER {words} SET SCHEMA")
    name, tag = node.relation, f"ALTER {words}"
    if node.missing_ok and look_up(binding, name.relname, name.schemaname) is None:
        return NoOperation(tag, (f'relation "{name.relname}" does not exist, skipping',))
    found = require_relation(binding, name, node.objectType)
    return _moved(binding.context.catalog, found, node.newschema, tag)


def _moved(catalog: Catalog, found: CatalogObject, schema: str, tag: str) -> Statement:
    if isinstance(found, Sequence) and found.owner is not None:
        table = catalog.objects[found.owner[0]].name
        detail = f'Sequence "{found.name}" is linked to table "{table}".'
        raise SqlError("0A000", "cannot move an owned sequence into another schema", detail)
    if PG_TEMP in (schema, found.schema):
        raise SqlError("0A000", "cannot move objects into or out of temporary schemas")
    find_schema(catalog, schema)
    if schema in SYSTEM_SCHEMAS:
        raise SqlError("42501", f"permission denied for schema {schema}")
    if schema != found.schema:
        _require_free(catalog, found, schema)
    if isinstance(found, Table):
        owned = tuple((item, replace(item, schema=schema)) for item in catalog.owned(found.oid))
        for sequence, _ in owned if schema != found.schema else ():
            _require_free(catalog, sequence, schema)
        return AlterTable(tag, found, replace(found, schema=schema), changes=owned, renames=True)
    assert not isinstance(found, SystemView)
    return Redefine(tag, found, replace(found, schema=schema))


def _require_free(catalog: Catalog, item: CatalogObject, schema: str) -> None:
    if catalog.find(item.name, schema) is not None:
        raise SqlError("42P07", f'relation "{item.name}" already exists in schema "{schema}"')

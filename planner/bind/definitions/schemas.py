"""CREATE SCHEMA, ALTER SCHEMA and ALTER ... SET SCHEMA.

Owns: the names that schemas may have, and what moves along with a relation. DROP SCHEMA is in
``planner.bind.definitions.drops``, OWNER TO in ``planner.bind.definitions.access.owners``.

https://www.postgresql.org/docs/15/sql-createschema.html
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import PG_TEMP, SYSTEM_SCHEMAS, CatalogObject, Schema, Sequence, SystemView, Table
from catalog.routines import Function, every
from catalog.values.errors import SqlError, unsupported
from planner.bind.definitions.named_objects import RELATIONS, TYPES, find_schema, relation_words, require_relation
from planner.bind.definitions.routines.functions import dependents_of
from planner.bind.definitions.types.user_types import bind_move_type
from planner.bind.lookup.relations import look_up
from planner.bind.lookup.roles import role_of
from planner.bind.state.environment import Binding
from planner.parse.parser import Raw, schema_elements
from planner.statements.definitions import AlterSchema, AlterTable, CreateSchema, Redefine
from planner.statements.statement import NoOperation, Statement

#: The elements that a schema may have, in the order in which they are created.
_ORDER: Final = ("CreateSeqStmt", "CreateStmt", "ViewStmt", "IndexStmt", "CreateTrigStmt", "GrantStmt")
#: Where these have their names.
_NAMED: Final = ("sequence", "view", "relation")


def bind_create_schema(binding: Binding, node: Any) -> CreateSchema:
    """CREATE SCHEMA [IF NOT EXISTS] [name] [AUTHORIZATION role]. Raises 42P06, 42704 and 42939."""
    owner = None if node.authrole is None else role_of(binding, node.authrole)
    name = node.schemaname or (None if owner is None else owner.name)
    assert name is not None, "the grammar wants one of them"
    catalog = binding.context.catalog
    _require_name(name)
    exists = name in catalog.schemas
    if exists and not node.if_not_exists:
        raise SqlError("42P06", f'schema "{name}" already exists')
    elements = _elements(binding, node.schemaElts or (), name)
    return CreateSchema(Schema(catalog.next_oid, name), exists, None if owner is None else owner.oid, elements)


def _elements(binding: Binding, elements: tuple[Any, ...], schema: str) -> tuple[Raw, ...]:
    """What is to be in a new schema, in the order in which it is created (transformCreateSchemaStmtElements): what may
    need something else comes behind it. Raises 42P15 and 42P16 for what names another schema."""
    texts = schema_elements(binding.raw) if elements else ()
    assert len(texts) == len(elements)
    raws = [Raw(node, *text) for node, text in zip(elements, texts, strict=True)]
    for raw in raws:
        name: Any = next((item for part in _NAMED if (item := getattr(raw.node, part, None)) is not None), None)
        if type(name).__name__ != "RangeVar" or type(raw.node).__name__ == "IndexStmt":
            continue
        if name.schemaname not in (None, schema):
            message = f"CREATE specifies a schema ({name.schemaname}) different from the one being created ({schema})"
            raise SqlError("42P15", message)
        if name.relpersistence == "t":
            message = "cannot create temporary relation in non-temporary schema"
            raise SqlError("42P16", message, position=binding.position(name))
    return tuple(sorted(raws, key=lambda raw: _ORDER.index(type(raw.node).__name__)))


def _require_name(name: str) -> None:
    if name.startswith("pg_"):
        detail = 'The prefix "pg_" is reserved for system schemas.'
        raise SqlError("42939", f'unacceptable schema name "{name}"', detail)


def bind_rename_schema(binding: Binding, node: Any) -> AlterSchema:
    """ALTER SCHEMA a RENAME TO b."""
    catalog = binding.context.catalog
    before = find_schema(catalog, node.subname)
    if node.newname in catalog.schemas:
        raise SqlError("42P06", f'schema "{node.newname}" already exists')
    _require_name(node.newname)
    if before.name in SYSTEM_SCHEMAS:
        raise SqlError("42501", f"permission denied: schema {before.name} belongs to the system")
    extension = next((item for item in catalog.extensions.values() if item.schema == before.name), None)
    if extension is not None:
        raise unsupported(
            f"RENAME of the schema of extension {extension.name}", "Leave its name, or drop the extension."
        )
    for function in every(catalog.functions) if before.name != node.newname else ():
        if function.schema == before.name:
            _refuse_called(binding, function)
    return AlterSchema("ALTER SCHEMA", before, replace(before, name=node.newname))


def _refuse_called(binding: Binding, function: Function) -> None:
    """Texts of tables, domains and functions find what they call by its name. Raises 0A000."""
    for words, name in dependents_of(binding, [function], by_name=True):
        instead = "Drop that first, and create it again."
        raise unsupported(f"RENAME of a schema of whose functions {words} calls {name}", instead)


def bind_set_schema(binding: Binding, node: Any) -> Statement:
    """ALTER kind [IF EXISTS] name SET SCHEMA schema. Raises 3F000, 42P01, 42P07, 42809 and 0A000."""
    words = relation_words(node.objectType)
    if node.objectType in TYPES:
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
    if catalog.at(schema, item.name) is not None:
        raise SqlError("42P07", f'relation "{item.name}" already exists in schema "{schema}"')

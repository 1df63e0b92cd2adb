"""CREATE TYPE ... AS (fields) and ALTER TYPE of composite types: their attributes.

Owns: the type's fields, and the rows of tables with columns of the type. As in PostgreSQL, an attribute can get another
type only while no column has the composite type; attributes can be added, dropped and renamed at any time.

https://www.postgresql.org/docs/15/sql-altertype.html
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from pglast.enums import AlterTableType

from catalog.catalog import following
from catalog.objects import Table
from catalog.values.errors import SqlError, undefined_table, unsupported
from catalog.values.nested_types import holds
from catalog.values.types import Composite, SqlType
from planner.bind.conversion.rows import check_kept
from planner.bind.definitions.dependents import first_broken
from planner.bind.definitions.types.enums import after_all
from planner.bind.definitions.types.reshaped_rows import reshaped
from planner.bind.lookup.relations import type_schema
from planner.bind.lookup.search_path import find_relation
from planner.bind.lookup.type_names import check_collation, find_type, type_or_domain
from planner.bind.state.environment import Binding
from planner.statements.definitions import AlterType, CreateType
from planner.statements.statement import NoOperation, Statement

#: Attributes with their domains.
Fields = tuple[tuple[str, SqlType, int], ...]


def bind_create_composite(binding: Binding, node: Any) -> CreateType:
    """CREATE TYPE name AS (name type, ...). Raises 42P07, 42710, 42701, 42704 and 42P16."""
    name = node.typevar
    if not node.coldeflist:
        raise unsupported("a composite type without attributes", position=binding.position(name))
    fields: Fields = ()
    with binding.without_positions():
        for item in node.coldeflist:
            if any(item.colname == known for known, *_ in fields):
                raise SqlError("42701", f'column "{item.colname}" specified more than once')
            fields = (*fields, _field(binding, item))
    catalog = binding.context.catalog
    schema = type_schema(binding, name.schemaname, name.relname)
    declared = _with_fields(Composite(catalog.type_oid(), name.relname, (), schema), fields)
    catalog.add_type(declared)  # raises where the name is taken
    return CreateType("CREATE TYPE", declared)


def _fields(declared: Composite) -> Fields:
    return tuple((name, kind, declared.domain(place)) for place, (name, kind) in enumerate(declared.fields))


def _with_fields(declared: Composite, fields: Fields) -> Composite:
    domains = tuple(domain for _, _, domain in fields)
    own = tuple((name, kind) for name, kind, _ in fields)
    comments = tuple(item for item in declared.comments if item[0] in dict(own))
    return replace(declared, fields=own, domains=domains if any(domains) else (), comments=comments)


def _field(binding: Binding, node: Any) -> tuple[str, SqlType, int]:
    kind, domain = type_or_domain(binding, node.typeName)
    check_kept(binding.context.catalog, node.colname, kind)
    if node.collClause is not None:
        check_collation(binding, node.collClause, kind)
    return node.colname, kind, domain


def _declared(binding: Binding, name: Any) -> Composite:
    """The type that ALTER TYPE is about. Raises 42809 and 42P01."""
    found = find_type(binding, tuple(part for part in (name.schemaname, name.relname) if part))
    if isinstance(found, Composite):
        return found
    if find_relation(binding, name.relname, name.schemaname) is not None:
        raise SqlError("42809", f'"{name.relname}" is not a composite type')
    raise undefined_table(f"{name.schemaname}.{name.relname}" if name.schemaname else name.relname)


def bind_alter_composite(binding: Binding, node: Any) -> Statement:
    """ALTER TYPE name ADD, DROP and ALTER ATTRIBUTE."""
    found = _declared(binding, node.relation)
    fields, notices = _fields(found), list[str]()
    kept = {name for name, *_ in fields}
    for command in node.cmds:
        if command.subtype == AlterTableType.AT_AlterColumnType:
            _refuse_used(binding, found)
        with binding.without_positions():
            fields = _acted(binding, found, fields, command, notices)
        kept -= {command.name} if command.subtype == AlterTableType.AT_DropColumn else set()
    if not fields:
        raise unsupported("a composite type without attributes")
    if fields == _fields(found):
        return NoOperation("ALTER TYPE", tuple(notices))
    altered = _redefined(binding, found, _with_fields(found, fields), "changing")
    return reshaped(binding, altered, kept)


def _acted(binding: Binding, found: Composite, fields: Fields, command: Any, notices: list[str]) -> Fields:
    """The attributes after one action. Raises 42701, 42703 and 0A000."""
    match command.subtype:
        case AlterTableType.AT_AddColumn:
            _refuse_known(found, fields, command.def_.colname)
            return (*fields, _field(binding, command.def_))
        case AlterTableType.AT_DropColumn:
            if command.missing_ok and all(name != command.name for name, *_ in fields):
                notices.append(f'column "{command.name}" of relation "{found.name}" does not exist, skipping')
                return fields
            _require_known(found, fields, command.name)
            return tuple(field for field in fields if field[0] != command.name)
        case AlterTableType.AT_AlterColumnType:
            _require_known(found, fields, command.name)
            command.def_.colname = command.name
            changed = _field(binding, command.def_)
            return tuple(changed if field[0] == command.name else field for field in fields)
        case kind:
            raise unsupported(f"ALTER TYPE ... {AlterTableType(kind).name[3:]}")


def _refuse_known(found: Composite, fields: Fields, name: str) -> None:
    if any(known == name for known, *_ in fields):
        raise SqlError("42701", f'column "{name}" of relation "{found.name}" already exists')


def _require_known(found: Composite, fields: Fields, name: str) -> None:
    if all(known != name for known, *_ in fields):
        raise SqlError("42703", f'column "{name}" of relation "{found.name}" does not exist')


def _refuse_used(binding: Binding, found: Composite) -> None:
    for item in binding.context.catalog.objects.values():
        for column in item.columns if isinstance(item, Table) else ():
            if holds(column.type, lambda kind: kind.row is not None and kind.row.oid == found.oid):
                message = f'cannot alter type "{found.name}" because column "{item.name}.{column.name}" uses it'
                raise SqlError("0A000", message)


def bind_rename_attribute(binding: Binding, node: Any) -> AlterType:
    """ALTER TYPE name RENAME ATTRIBUTE a TO b. Raises 42701, 42703, and 0A000 where a kept text names it."""
    found = _declared(binding, node.relation)
    if all(known != node.subname for known, _ in found.fields):
        raise SqlError("42703", f'column "{node.subname}" does not exist')
    _refuse_known(found, _fields(found), node.newname)
    renamed = {node.subname: node.newname}
    fields = tuple((renamed.get(name, name), kind) for name, kind in found.fields)
    comments = tuple((renamed.get(name, name), comment) for name, comment in found.comments)
    return _redefined(binding, found, replace(found, fields=fields, comments=comments), "renaming")


def _redefined(binding: Binding, before: Composite, after: Composite, doing: str) -> AlterType:
    """The new definition, which what has columns of the type follows."""
    altered = AlterType("ALTER TYPE", before, after, following(binding.context.catalog, after))
    user = first_broken(binding, after_all(binding.context.catalog, altered))
    if user is not None:
        raise unsupported(f"{doing} an attribute that {user} uses", "Drop it first, and create it again.")
    return altered

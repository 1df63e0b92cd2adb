"""ALTER ... OWNER TO: relations, schemas, types and functions.

Owns: which role may become the owner, and what else changes owner (a table's sequences, the grants on its columns).

https://www.postgresql.org/docs/15/sql-altertable.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace
from pglast.enums import AlterTableType, ObjectType

from catalog.objects import CatalogObject, Schema, Sequence, SystemView, Table, column_grants, is_temporary
from catalog.privileges import Rights
from catalog.roles import Role
from catalog.routines import Function
from catalog.values.errors import SqlError, unsupported
from planner.bind.definitions.access.grants import target_of
from planner.bind.definitions.named_objects import TYPES, find_schema, relation_words
from planner.bind.definitions.redefinition import redefined
from planner.bind.definitions.types.user_types import named_type
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.relations import require_room
from planner.bind.lookup.roles import role_of
from planner.bind.privileges import owns
from planner.bind.state.environment import Binding
from planner.statements.definitions import AlterTable, ChangeRights, Redefine


def new_owner(commands: Any) -> Any:
    """The role of OWNER TO among ALTER TABLE's commands, if it is one. Raises 0A000 beside others."""
    found = [item.newowner for item in commands if item.subtype == AlterTableType.AT_ChangeOwner]
    if found and len(commands) > 1:
        raise unsupported("OWNER TO beside other commands", "Use a separate statement.")
    return found[0] if found else None


def bind_owner(binding: Binding, item: CatalogObject, node: Any, tag: str) -> ChangeRights:
    """A relation's new owner; a table's sequences go along. Raises 42501, 42704 and 0A000."""
    owner, catalog = role_of(binding, node), binding.context.catalog
    if isinstance(item, SystemView):
        raise SqlError("42501", f"permission denied: view {item.name} belongs to the system")
    if isinstance(item, Sequence) and item.owner is not None:
        table = catalog.objects[item.owner[0]].name
        detail = f'Sequence "{item.name}" is linked to table "{table}".'
        raise SqlError("0A000", "cannot change owner of sequence", detail)
    if is_temporary(item):
        return ChangeRights(tag, ())
    target = target_of(item)
    _require(binding, item.oid, f"{target.word} {item.name}", owner, item.schema)
    moved = [item.oid, *(sequence.oid for sequence in (catalog.owned(item.oid) if isinstance(item, Table) else ()))]
    return _changed(binding, moved, owner, tag)


def bind_alter_owner(binding: Binding, node: Any) -> ChangeRights:
    """ALTER SCHEMA, TYPE or DOMAIN name OWNER TO role."""
    words = relation_words(node.objectType)
    owner = role_of(binding, node.newowner)
    if node.objectType in TYPES:
        found = named_type(binding, names_of(node.object), node.objectType)
        _require(binding, found.oid, f"type {found}", owner, found.schema)
        return _changed(binding, [found.oid], owner, f"ALTER {words}")
    if node.objectType != ObjectType.OBJECT_SCHEMA:
        raise unsupported(f"ALTER {words} OWNER TO")
    schema: Schema = find_schema(binding.context.catalog, node.object.sval)
    _require(binding, schema.oid, f"schema {schema.name}", owner, None)
    return _changed(binding, [schema.oid], owner, f"ALTER {words}")


def give_function(binding: Binding, function: Function, owner: Role, tag: str) -> ChangeRights:
    """A function's new owner."""
    _require(binding, function.oid, f"function {function.name}", owner, function.schema)
    return _changed(binding, [function.oid], owner, tag)


def _changed(binding: Binding, oids: list[int], owner: Role, tag: str) -> ChangeRights:
    catalog = binding.context.catalog
    pairs = [(oid, catalog.rights_of(oid)) for oid in oids]
    columns = tuple(item for oid, before in pairs for item in _granted(catalog.objects.get(oid), before, owner.oid))
    return ChangeRights(tag, tuple((oid, before, before.owned_by(owner.oid)) for oid, before in pairs), (), columns)


def _granted(item: CatalogObject | None, before: Rights, owner: int) -> Iterator[AlterTable | Redefine]:
    """A relation whose columns' grants are the new owner's where they were the old one's."""
    if item is None or isinstance(item, Sequence | SystemView):
        return
    columns = tuple(
        replace(column, grants=column_grants(column, before.owner).owned_by(owner).grants or ())
        for column in item.columns
    )
    if columns != item.columns:
        yield redefined("ALTER", item, replace(item, columns=columns), renames=True)


def _require(binding: Binding, oid: int, what: str, owner: Role, schema: str | None) -> None:
    """Requires that the current role owns the object and is a member of the new owner, and that the new owner may
    create objects in the schema. Raises 42501."""
    role, catalog = binding.reader, binding.context.catalog
    if role is None:
        return
    if not owns(binding, oid, role):
        raise SqlError("42501", f"must be owner of {what}")
    if not catalog.roles.has_role(role, owner.oid, inherited=False):
        raise SqlError("42501", f'must be member of role "{owner.name}"')
    if schema is None:
        raise SqlError("42501", f"permission denied for database {binding.context.database}")
    require_room(binding, schema, owner.oid)

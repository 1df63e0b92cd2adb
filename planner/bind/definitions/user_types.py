"""ALTER TYPE, COMMENT ON TYPE and DROP TYPE: what users' types have in common.

Owns: what depends on a type (columns, and texts that name it), and the errors for kinds of types that are not there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pglast.enums import DropBehavior, ObjectType

from catalog.errors import SqlError, unsupported
from catalog.objects import Catalog, Domain, Stream, Table, UserType, View
from catalog.types import Enumeration, enum_of
from planner.bind.context import Binding
from planner.bind.definitions.dependents import first_broken
from planner.bind.definitions.domains import bind_rename_domain
from planner.bind.definitions.enums import alter_enum
from planner.bind.relations import describe, type_schema
from planner.bind.typenames import declared_type, find_type, names_of, unknown_type
from planner.definitions import AlterType, DropType
from planner.statements import Statement


def refuse_composite(binding: Binding, node: Any) -> Statement:
    """CREATE TYPE name AS (columns)."""
    raise unsupported("a composite type", "Use a column for each of its fields.", binding.position(node.typevar))


def refuse_range(binding: Binding, node: Any) -> Statement:
    """CREATE TYPE name AS RANGE."""
    raise unsupported("a range type", "Use two columns, for its lower and its upper bound.")


def bind_rename_type(binding: Binding, node: Any) -> AlterType:
    """ALTER TYPE name RENAME TO name."""
    found = declared_type(binding, names_of(node.object))
    if isinstance(found, Domain):
        return bind_rename_domain(binding, node, "ALTER TYPE")
    altered = redefined(binding, found, replace(found, name=node.newname), "ALTER TYPE")
    binding.context.catalog.drop_type(found.oid).add_type(altered.item)  # raises where the name is taken
    return altered


def redefined(binding: Binding, before: UserType, after: UserType, tag: str) -> AlterType:
    """A type under another name, in another schema, or with a comment."""
    if isinstance(before, Enumeration) and isinstance(after, Enumeration):
        return replace(alter_enum(binding.context.catalog, before, after), tag=tag)
    return AlterType(tag, before, after)


def named_type(binding: Binding, names: tuple[str, ...], kind: ObjectType) -> UserType:
    """The user's type that a command of a kind (of types or of domains) is about. Raises 42704, 3F000 and 42809."""
    found = declared_type(binding, names)
    if kind == ObjectType.OBJECT_DOMAIN and not isinstance(found, Domain):
        raise SqlError("42809", f'"{found.name}" is not a domain')
    return found


def bind_move_type(binding: Binding, node: Any) -> AlterType:
    """ALTER TYPE or DOMAIN name SET SCHEMA schema. Raises 42710, 3F000 and 42501."""
    found = named_type(binding, names_of(node.object), node.objectType)
    schema = type_schema(binding, node.newschema, found.name)
    catalog = binding.context.catalog
    if schema != found.schema and ((schema, found.name) in catalog.types or (schema, found.name) in catalog.names):
        raise SqlError("42710", f'type "{found.name}" already exists in schema "{schema}"')
    words = "DOMAIN" if node.objectType == ObjectType.OBJECT_DOMAIN else "TYPE"
    return redefined(binding, found, replace(found, schema=schema), f"ALTER {words}")


def bind_comment_type(binding: Binding, node: Any) -> AlterType:
    """COMMENT ON TYPE or DOMAIN name."""
    found = named_type(binding, names_of(node.object.names), node.objtype)
    return redefined(binding, found, replace(found, comment=node.comment), "COMMENT")


def bind_drop_type(binding: Binding, node: Any) -> DropType:
    """DROP TYPE [IF EXISTS] names. Raises 42704, 3F000, and 2BP01 where something depends on one."""
    found: list[UserType] = []
    notices: list[str] = []
    for item in node.objects:
        known = find_type(binding, names_of(item.names))
        if known is None:
            error = unknown_type(binding, names_of(item.names))
            if not node.missing_ok:
                raise error
            notices.append(f"{error.message}, skipping")
        elif named_type(binding, names_of(item.names), node.removeType) not in found:
            found.append(known)
    require_unused(binding, binding.context.catalog, found, node.behavior == DropBehavior.DROP_CASCADE)
    kind = "DOMAIN" if node.removeType == ObjectType.OBJECT_DOMAIN else "TYPE"
    return DropType(kind, tuple(found), tuple(notices))


def require_unused(binding: Binding, catalog: Catalog, types: list[UserType], cascade: bool) -> None:
    """Raises 2BP01 where something in a catalog depends on one of the types, and 0A000 where CASCADE would take it."""
    lines = [line for item in types for line in _users(binding, catalog, item, types)]
    after = catalog
    for item in types:
        after = after.drop_type(item.oid)
    text = None if lines else first_broken(binding, after)
    if text is not None:
        lines = [f"{text} depends on type {types[0]}"]
    if lines and cascade:
        instead = "Drop the columns, views and defaults that use it first."
        raise unsupported("DROP TYPE ... CASCADE of a type in use", instead)
    if lines:
        what = f"type {types[0]}" if len(types) == 1 else "desired object(s)"
        hint = "Use DROP ... CASCADE to drop the dependent objects too."
        raise SqlError("2BP01", f"cannot drop {what} because other objects depend on it", "\n".join(lines), hint)


def _users(binding: Binding, catalog: Catalog, declared: UserType, dropped: list[UserType]) -> list[str]:
    """What depends on a type and stays, described."""
    lines = [
        f"column {column.name} of {describe(binding, item)} depends on type {declared}"
        for item in catalog.objects.values()
        if isinstance(item, Table | Stream | View)
        for column in item.columns
        if declared.oid in (column.domain, getattr(enum_of(column.type), "oid", None))
    ]
    return lines + [
        f"type {item} depends on type {declared}"
        for item in catalog.types.values()
        if isinstance(item, Domain) and item.parent == declared.oid and item not in dropped
    ]

"""ALTER TYPE and COMMENT ON TYPE: what holds for all kinds of users' types.

Owns: a type under another name, in another schema or with a comment, and the errors for kinds of types that Millstream
does not have.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from pglast.enums import ObjectType

from catalog.catalog import following
from catalog.extensions import BaseType
from catalog.objects import Domain, UserType
from catalog.values.errors import SqlError, unsupported
from catalog.values.types import Composite, Enumeration
from planner.bind.definitions.types.domains import bind_rename_domain
from planner.bind.definitions.types.enums import alter_enum
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.relations import type_schema
from planner.bind.lookup.type_names import declared_type
from planner.bind.state.environment import Binding
from planner.statements.definitions import AlterType
from planner.statements.statement import Statement


def refuse_range(binding: Binding, node: Any) -> Statement:
    """CREATE TYPE name AS RANGE."""
    raise unsupported("a range type", "Use numrange or another of PostgreSQL's own, or two columns for the bounds.")


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
    if isinstance(before, BaseType):
        raise unsupported(f"{tag} of a type of extension {before.extension}", "Leave it as it is.")
    if isinstance(before, Enumeration) and isinstance(after, Enumeration):
        return replace(alter_enum(binding.context.catalog, before, after), tag=tag)
    if isinstance(after, Composite):
        return AlterType(tag, before, after, following(binding.context.catalog, after))
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

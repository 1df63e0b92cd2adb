"""ALTER FUNCTION and COMMENT ON FUNCTION: a function's attributes, name, schema, owner and comment.

Bodies and defaults are stored as texts, so a function that one of them calls cannot be renamed.

https://www.postgresql.org/docs/15/sql-alterfunction.html
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace
from pglast.enums import ObjectType

from catalog.objects import SYSTEM_SCHEMAS
from catalog.routines import Function, named
from catalog.values.errors import SqlError, unsupported
from planner.bind.definitions.access.owners import give_function
from planner.bind.definitions.named_objects import find_schema
from planner.bind.definitions.routines.functions import (
    attributes_of,
    dependents_of,
    require_no_member,
    require_no_program,
)
from planner.bind.lookup.functions import find_function, signature
from planner.bind.lookup.relations import require_room
from planner.bind.lookup.roles import role_of
from planner.bind.privileges import owns
from planner.bind.state.environment import Binding
from planner.statements.definitions import ChangeRights, CreateFunction

FUNCTIONS: Final = (ObjectType.OBJECT_FUNCTION, ObjectType.OBJECT_ROUTINE)


def bind_alter_function(binding: Binding, node: Any) -> CreateFunction:
    """ALTER FUNCTION f(types) IMMUTABLE, STRICT and the like.

    Raises 42601, 22023, and 0A000 where a continuous view has its old body.
    """
    before = _own(binding, node.func)
    given: dict[str, Any] = {}
    for item in node.actions:
        if item.defname in given:
            raise SqlError("42601", "conflicting or redundant options", position=binding.position(item))
        given[item.defname] = item.arg
    if "rows" in given and not before.returns_set:
        raise SqlError("22023", "ROWS is not applicable when function does not return a set")
    after = replace(before, **attributes_of(given))
    if before.strict != after.strict:
        require_no_program(binding, before, "altering")
    return CreateFunction(after, before, _tag(node.objtype))


def bind_rename_function(binding: Binding, node: Any) -> CreateFunction:
    """ALTER FUNCTION f(types) RENAME TO name. Raises 42723, and 0A000 where a kept text calls it."""
    before = _own(binding, node.object)
    return _placed(binding, before, replace(before, name=node.newname), _tag(node.renameType), True)


def bind_move_function(binding: Binding, node: Any) -> CreateFunction:
    """ALTER FUNCTION f(types) SET SCHEMA schema. Raises 3F000, 42723, and 0A000 where a kept text calls it."""
    before = _own(binding, node.object)
    schema = find_schema(binding.context.catalog, node.newschema)
    if schema.name in SYSTEM_SCHEMAS:
        raise SqlError("42501", f"permission denied for schema {schema.name}")
    return _placed(binding, before, replace(before, schema=schema.name), _tag(node.objectType))


def bind_function_owner(binding: Binding, node: Any) -> ChangeRights:
    """ALTER FUNCTION f(types) OWNER TO role."""
    found = find_function(binding, node.object)
    return give_function(binding, found, role_of(binding, node.newowner), _tag(node.objectType))


def bind_comment_function(binding: Binding, node: Any) -> CreateFunction:
    """COMMENT ON FUNCTION f(types) IS 'text' or NULL."""
    before = _own(binding, node.object)
    return CreateFunction(replace(before, comment=node.comment or None), before, "COMMENT")


def _tag(kind: Any) -> str:
    return "ALTER ROUTINE" if kind == ObjectType.OBJECT_ROUTINE else "ALTER FUNCTION"


def _own(binding: Binding, node: Any) -> Function:
    """The function that is named. Raises 42883, 0A000 and, where it is not the role's own, 42501."""
    found = find_function(binding, node)
    require_no_member(found, "altering")
    if binding.reader is not None and not owns(binding, found.oid, binding.reader):
        raise SqlError("42501", f"must be owner of function {found.name}")
    return found


def _placed(binding: Binding, before: Function, after: Function, tag: str, renames: bool = False) -> CreateFunction:
    """A function under another name, which may not be its own already, or in another schema."""
    catalog = binding.context.catalog
    if after != before or renames:
        if binding.reader is not None:
            require_room(binding, after.schema, binding.reader)
        if any(item.types == after.types for item in named(catalog.functions, after.name, (after.schema,))):
            shown = signature(catalog, after).replace(",", ", ")
            raise SqlError("42723", f'function {shown} already exists in schema "{after.schema}"')
        for words, _ in dependents_of(binding, [before], by_name=True):
            raise unsupported(f"{tag} of a function that {words} calls", "Drop that first, and create it again.")
    return CreateFunction(after, before, tag)

"""ALTER FUNCTION and COMMENT ON FUNCTION.

Owns: which attributes change, and what keeps a function from another name or schema: the texts that name it, as no text
is rewritten for it.

https://www.postgresql.org/docs/15/sql-alterfunction.html
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from catalog.errors import SqlError, unsupported
from catalog.objects import PG_TEMP, SYSTEM_SCHEMAS, View
from catalog.routines import Function, every
from planner.bind.context import Binding
from planner.bind.definitions.functions import (
    calls_of,
    dependents_of,
    find_function,
    parallel_of,
    refuse_options,
    signature,
    volatility_of,
)
from planner.bind.definitions.renames import relation_words
from planner.bind.definitions.schemas import find_schema
from planner.bind.privileges import owns
from planner.definitions import CreateFunction


def bind_alter_function(binding: Binding, node: Any) -> CreateFunction:
    """ALTER FUNCTION name [(types)] attributes. Raises 42883, 42501, 42601, 22023 and 0A000."""
    before = own_function(binding, node.func)
    options: dict[str, Any] = {}
    for item in node.actions:
        if item.defname in options:
            position = binding.position(item)
            raise SqlError("42601", "conflicting or redundant options", position=position)
        options[item.defname] = item.arg
    refuse_options(options)
    if "rows" in options:
        raise SqlError("22023", "ROWS is not applicable when function does not return a set")
    after = replace(
        before,
        volatility=volatility_of(options, before.volatility),
        strict=bool(options["strict"].boolval) if "strict" in options else before.strict,
        leakproof=bool(options["leakproof"].boolval) if "leakproof" in options else before.leakproof,
        parallel=parallel_of(options, before.parallel),
    )
    if after.strict != before.strict:
        _refuse_in_views(binding, before)
    return CreateFunction(after, before, f"ALTER {relation_words(node.objtype)}")


def bind_rename_function(binding: Binding, node: Any) -> CreateFunction:
    """ALTER FUNCTION name [(types)] RENAME TO name. Raises 42723 and 0A000."""
    before = own_function(binding, node.object)
    return _moved(binding, before, replace(before, name=node.newname), f"ALTER {relation_words(node.renameType)}")


def bind_move_function(binding: Binding, node: Any) -> CreateFunction:
    """ALTER FUNCTION name [(types)] SET SCHEMA schema. Raises 3F000, 42723 and 0A000."""
    before = own_function(binding, node.object)
    schema = node.newschema
    find_schema(binding.context.catalog, schema)
    if PG_TEMP in (schema, before.schema):
        raise SqlError("0A000", "cannot move objects into or out of temporary schemas")
    if schema in SYSTEM_SCHEMAS:
        raise SqlError("42501", f"permission denied for schema {schema}")
    return _moved(binding, before, replace(before, schema=schema), f"ALTER {relation_words(node.objectType)}")


def bind_comment_function(binding: Binding, node: Any) -> CreateFunction:
    """COMMENT ON FUNCTION name [(types)] IS 'text' or NULL."""
    before = own_function(binding, node.object)
    return CreateFunction(replace(before, comment=node.comment), before, "COMMENT")


def own_function(binding: Binding, item: Any) -> Function:
    """The function that a command names. Raises 42501 where it is another's."""
    found = find_function(binding, item)
    if binding.reader is not None and not owns(binding, found.oid, binding.reader):
        raise SqlError("42501", f"must be owner of function {found.name}")
    return found


def _moved(binding: Binding, before: Function, after: Function, tag: str) -> CreateFunction:
    catalog = binding.context.catalog
    if (before.name, before.schema) == (after.name, after.schema):
        return CreateFunction(after, before, tag)
    others = catalog.functions.get(after.name, ())
    if any(item.schema == after.schema and item.types == after.types for item in others):
        shown = signature(catalog, after).replace(",", ", ")
        raise SqlError("42723", f'function {shown} already exists in schema "{after.schema}"')
    needed = next((words for words, _ in dependents_of(binding, [before])), None)
    if needed is None:
        callers = (item for item in every(catalog.functions) if before.oid in calls_of(binding, item))
        needed = next((f"function {signature(catalog, item)}" for item in callers), None)
    if needed is not None:
        instead = "Drop that first, and create it again with the new name."
        raise unsupported(f"another name or schema of a function that {needed} calls", instead)
    return CreateFunction(after, before, tag)


def _refuse_in_views(binding: Binding, function: Function) -> None:
    """A continuous view's program has the function as it was."""
    for item in binding.context.catalog.objects.values():
        if isinstance(item, View) and item.continuous and function.oid in item.functions:
            instead = "Drop the view first, and create it again."
            raise unsupported(f"altering a function that continuous view {item.name} calls", instead)

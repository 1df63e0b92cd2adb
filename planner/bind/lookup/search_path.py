"""Names without a schema: the one module that walks a search path.

Owns: the schemas in which a statement looks names up, and USAGE on a schema that is written (namespace.c). A schema
that the role may not use is skipped, for relations as for types, functions, indexes and constraints.

https://www.postgresql.org/docs/15/ddl-schemas.html#DDL-SCHEMAS-PATH
"""

from __future__ import annotations

from catalog.catalog import whole_path
from catalog.objects import CatalogObject, UserType
from catalog.routines import Function, named
from catalog.values.errors import SqlError
from planner.bind.state.bind_state import BindState
from planner.bind.state.context import restricted


def usable_path(binding: BindState) -> tuple[str, ...]:
    """The search path without schemas that the reader may not use."""
    return binding.context.catalog.usable(binding.context.search_path, binding.reader)


def session_path(binding: BindState) -> tuple[str, ...]:
    """The session's search path, without schemas that its role may not use, wherever a view's text has another."""
    catalog, context = binding.context.catalog, binding.context
    return catalog.usable(binding.search_path, restricted(catalog, context.role))


def searched(binding: BindState, schema: str | None) -> tuple[str, ...]:
    """The schemas in which a relation of a name is looked up: the one that is written, or those of the path with the
    temporary one and PostgreSQL's own. Raises 42501."""
    return whole_path(usable_path(binding)) if schema is None else _written(binding, schema)


def find_relation(binding: BindState, name: str, schema: str | None) -> CatalogObject | None:
    """The relation that a name means, or None. Raises 42501."""
    catalog = binding.context.catalog
    found = (catalog.at(each, name) for each in searched(binding, schema))
    return next((item for item in found if item is not None), None)


def find_user_type(binding: BindState, name: str, schema: str | None) -> UserType | None:
    """The user's type that a name means, or None. Raises 42501."""
    types = binding.context.catalog.types
    found = (types.get((each, name)) for each in _placed(binding, schema))
    return next((item for item in found if item is not None), None)


def find_functions(binding: BindState, name: str, schema: str | None) -> list[Function]:
    """The users' functions that a name means. Raises 42501."""
    return named(binding.context.catalog.functions, name, _placed(binding, schema))


def _placed(binding: BindState, schema: str | None) -> tuple[str, ...]:
    return usable_path(binding) if schema is None else _written(binding, schema)


def _written(binding: BindState, schema: str) -> tuple[str, ...]:
    """A schema that is written. Raises 42501 where the reader may not use it."""
    catalog = binding.context.catalog
    if not catalog.usable((schema,), binding.reader):
        raise SqlError("42501", f"permission denied for schema {schema}")
    return (schema,)

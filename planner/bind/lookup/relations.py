"""The relation that a name in a statement means, and the schema of a new relation.

Owns: look-up by the search path (``planner.bind.lookup.search_path``), or within a view's text by what its names meant
when the view was created, and PostgreSQL's errors for unknown names: for a missing schema, a query raises 42P01 and a
command 3F000.

https://www.postgresql.org/docs/15/ddl-schemas.html
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pglast.enums import OnCommitAction

from catalog.objects import (
    PG_CATALOG,
    PG_TEMP,
    SYSTEM_SCHEMAS,
    CatalogObject,
    FileTable,
    Sequence,
    Stream,
    SystemView,
    Table,
    View,
)
from catalog.privileges import DATABASE, OF_DATABASE, OF_SCHEMA
from catalog.values.errors import SqlError, duplicate_table, undefined_table, unsupported
from catalog.values.identifiers import join_names, quote_name, split_list
from catalog.values.times.styles import USUAL
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.search_path import find_relation, usable_path
from planner.bind.state.bind_state import BindState
from planner.bind.state.context import Context, within
from planner.parse.parser import Raw


def look_up(binding: BindState, name: str, schema: str | None = None) -> CatalogObject | None:
    """What a name means where it stands; a statement's own names are noted, since a view keeps them."""
    context, written = binding.context, (schema or "", name)
    oid = None if context.names is None else context.names.get(written)
    if oid is not None:
        return context.catalog.objects.get(oid)
    found = find_relation(binding, name, schema)
    if found is not None and not binding.views and not isinstance(found, SystemView):
        binding.names[written] = found.oid
    return found


def find_object(binding: BindState, node: Any) -> CatalogObject:
    """What a RangeVar in a query or a change of rows means. Raises 42P01 and 42501."""
    _refuse_database(binding, node)
    try:
        found = look_up(binding, node.relname, node.schemaname)
    except SqlError as error:
        error.position = binding.position(node)
        raise
    if found is None:
        name = f"{node.schemaname}.{node.relname}" if node.schemaname else node.relname
        raise undefined_table(name, binding.position(node))
    return found


def require_object(binding: BindState, node: Any, placed: bool = False) -> CatalogObject:
    """What a RangeVar in a command means. ``placed``: errors have a position. Raises 3F000 and 42P01."""
    _refuse_database(binding, node)
    try:
        return require_named(binding, node.relname, node.schemaname)
    except SqlError as error:
        error.position = binding.position(node) if placed else None
        raise


def require_named(binding: BindState, name: str, schema: str | None = None) -> CatalogObject:
    """What a name in a command means. Raises 3F000 and 42P01."""
    found = look_up(binding, name, schema)
    if found is None:
        raise binding.context.catalog.missing(name, schema)
    return found


def find_named(context: Context, name: str, schema: str | None = None) -> CatalogObject | None:
    """What a name means that stands in no text. Raises 42501."""
    return look_up(BindState(Raw(None, "", 0), context), name, schema)


def _refuse_database(binding: BindState, node: Any) -> None:
    if node.catalogname and node.catalogname != binding.context.database:
        full = f"{node.catalogname}.{node.schemaname}.{node.relname}"
        message = f'cross-database references are not implemented: "{full}"'
        raise SqlError("0A000", message, position=binding.position(node))


def written(parts: Any) -> tuple[str, str | None]:
    """Name and schema of a dotted name, as DROP and COMMENT have it."""
    *schema, name = names_of(parts)
    return name, schema[-1] if schema else None


def shown(binding: BindState, item: CatalogObject) -> str:
    """A relation's name as errors describe it: with its schema where the search path does not find it."""
    visible = find_relation(binding, item.name, None)
    if visible is not None and visible.oid == item.oid:
        return item.name
    return f"{quote_name(item.schema)}.{quote_name(item.name)}"


WORDS: Final[dict[type, str]] = {
    Table: "table",
    Stream: "foreign table",
    FileTable: "foreign table",
    View: "view",
    SystemView: "view",
    Sequence: "sequence",
}


def describe(binding: BindState, item: CatalogObject) -> str:
    """An object as errors name it."""
    words = "materialized view" if isinstance(item, View) and item.materialized else WORDS[type(item)]
    return f"{words} {shown(binding, item)}"


# --- new relations ---------------------------------------------------------------------------------------------------


def target_schema(binding: BindState, node: Any, placed: bool = False) -> str:
    """Where a new relation goes: the schema it names, or the first of the search path that there is.

    ``placed``: errors have a position. Raises 3F000, 42501 and 42P16.
    """
    _refuse_database(binding, node)
    position = binding.position(node) if placed else None
    schema = node.schemaname
    if node.relpersistence == "t" or schema == PG_TEMP:
        if schema not in (None, PG_TEMP):
            message = "cannot create temporary relation in non-temporary schema"
            raise SqlError("42P16", message, position=position)
        _require_temporary(binding)
        return PG_TEMP
    return schema_for(binding, schema, node.relname, position)


def _require_temporary(binding: BindState) -> None:
    """Whether the role may make temporary relations. Raises 42501."""
    catalog, role = binding.context.catalog, binding.reader
    if role is not None and not catalog.rights_of(DATABASE).allows(catalog.roles, role, "T", OF_DATABASE):
        message = f'permission denied to create temporary tables in database "{binding.context.database}"'
        raise SqlError("42501", message)


def schema_for(binding: BindState, schema: str | None, name: str, position: int | None = None) -> str:
    """Where something new of a name goes: its schema, or the first of the search path that there is.

    Raises 3F000 and 42501.
    """
    catalog = binding.context.catalog
    if schema is None:
        path = usable_path(binding)
        schema = next((name for name in path if name in catalog.schemas or name == PG_TEMP), None)
    if schema is None:
        raise SqlError("3F000", "no schema has been selected to create in", position=position)
    if schema == PG_TEMP:
        return PG_TEMP
    if schema not in catalog.schemas:
        raise SqlError("3F000", f'schema "{schema}" does not exist', position=position)
    if schema in SYSTEM_SCHEMAS:
        message = f'permission denied to create "{schema}.{name}"'
        raise SqlError("42501", message, "System catalog modifications are currently disallowed.", position=position)
    if binding.reader is not None:
        require_room(binding, schema, binding.reader, position)
    return schema


def require_room(binding: BindState, schema: str, role: int, position: int | None = None) -> None:
    """CREATE on a schema. Raises 42501."""
    catalog = binding.context.catalog
    rights = catalog.rights_of(catalog.schemas[schema].oid)
    if not rights.allows(catalog.roles, role, "C", OF_SCHEMA):
        raise SqlError("42501", f"permission denied for schema {schema}", position=position)


_ON_COMMIT: Final[dict[Any, Literal["", "delete", "drop"]]] = {
    OnCommitAction.ONCOMMIT_DELETE_ROWS: "delete",
    OnCommitAction.ONCOMMIT_DROP: "drop",
}


def on_commit(action: Any, schema: str) -> Literal["", "delete", "drop"]:
    """The ON COMMIT option of a new table. Raises 42P16 if the table is not temporary."""
    if action != OnCommitAction.ONCOMMIT_NOOP and schema != PG_TEMP:
        raise SqlError("42P16", "ON COMMIT can only be used on temporary tables")
    return _ON_COMMIT.get(action, "")


def type_schema(binding: BindState, schema: str | None, name: str) -> str:
    """Where a new type goes. Raises 3F000, 42501 and 0A000."""
    found = schema_for(binding, schema, name)
    if found == PG_TEMP:
        raise unsupported("a temporary type", "Create an ordinary type and drop it.")
    return found


def is_taken(binding: BindState, node: Any, schema: str, tolerated: bool) -> bool:
    """Whether the name is in use. Raises 42P07 unless IF NOT EXISTS tolerates that."""
    found = binding.context.catalog.at(schema, node.relname)
    if found is not None and not tolerated:
        raise duplicate_table(node.relname)
    return found is not None


# --- texts of views --------------------------------------------------------------------------------------------------

_PATH: Final = "search_path"


def settings_of(context: Context) -> tuple[tuple[str, str], ...]:
    """What a view keeps of the settings of its creation."""
    return (("TimeZone", context.time_zone), (_PATH, join_names(context.search_path)))


def of_system(context: Context) -> Context:
    """The context of the definitions of PostgreSQL's own views."""
    return within(context, search_path=(PG_CATALOG,), reading=USUAL, names=None, calls=None)


def as_created(context: Context, view: View) -> Context:
    """The context in which a view's text means what it did when the view was created."""
    settings = dict(view.settings)
    path = split_list(settings[_PATH]) if _PATH in settings else context.search_path
    names = {(schema, name): oid for schema, name, oid in view.names}
    types = {(schema, name): oid for schema, name, oid in view.types}
    calls: dict[tuple[str, str], tuple[int, ...]] = {}
    for schema, name, oid in view.calls:
        calls[schema, name] = (*calls.get((schema, name), ()), oid)
    zone = settings.get("TimeZone", context.time_zone)
    known = within(context, names=names, types=types, calls=calls, reads=dict(view.reads))
    return within(known, search_path=path, time_zone=zone, reading=USUAL)

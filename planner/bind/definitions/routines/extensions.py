"""CREATE, ALTER, DROP and COMMENT ON EXTENSION.

Owns: the members of an extension, those of PostgreSQL's own that Millstream has (``catalog.extensions``): its types,
and its functions with what computes each. A function that nothing computes exists by name, and its calls raise 0A000.

https://www.postgresql.org/docs/15/sql-createextension.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace
from pglast.enums import DropBehavior

from catalog.extensions import About, BaseType, Extension, available, members
from catalog.routines import Argument, Function, every
from catalog.system.own_objects import EXTENSIONS, PLPGSQL, PLPGSQL_COMMENT
from catalog.values.errors import SqlError, unsupported
from catalog.values.identifiers import quote_name
from catalog.values.types import RECORD_OID, is_known
from planner.bind.conversion.resolution import ANYELEMENT
from planner.bind.definitions.types.type_drops import drop_types
from planner.bind.lookup.relations import schema_for
from planner.bind.privileges import owns
from planner.bind.state.environment import Binding
from planner.statements.definitions import AlterExtension, CreateExtension, DropExtension
from planner.statements.statement import NoOperation, Statement

#: What to write instead of extensions that are often asked for.
_INSTEAD: Final = {"citext": "Use text: compare lower(x), and have a unique index over lower(x)."}
_BUILT_IN: Final = "Leave it out: extensions here are built in."
#: The canonical functions that compute members, by what PostgreSQL calls their C functions.
_COMPUTED: Final = {
    "hstore_fetchval": "hs_get",
    "hstore_slice_to_array": "hs_slice_array",
    "hstore_slice_to_hstore": "hs_slice",
    "hstore_exists": "hs_exists",
    "hstore_exists_any": "hs_exists_any",
    "hstore_exists_all": "hs_exists_all",
    "hstore_defined": "hs_defined",
    "hstore_delete": "hs_delete",
    "hstore_delete_array": "hs_delete_array",
    "hstore_delete_hstore": "hs_delete_pairs",
    "hstore_concat": "hs_concat",
    "hstore_contains": "hs_contains",
    "hstore_contained": "hs_contained",
    "hstore_from_text": "hs_pair",
    "hstore_from_arrays": "hs_pairs",
    "hstore_from_array": "hs_of_array",
    "hstore_from_record": "hs_of_row",
    "hstore_to_json": "hs_json",
    "hstore_to_json_loose": "hs_json_loose",
    "hstore_to_jsonb": "hs_json",
    "hstore_to_jsonb_loose": "hs_jsonb_loose",
    "hstore_to_array": "hs_array",
    "hstore_to_matrix": "hs_matrix",
    "hstore_akeys": "hs_keys",
    "hstore_avals": "hs_values",
    "hstore_eq": "eq",
    "hstore_ne": "ne",
}
#: Types that are any row, and any value.
_ANY: Final = (RECORD_OID, ANYELEMENT)
#: Members' bodies in SQL, by the same; {0} is the extension's schema.
_BODIES: Final = {
    "uuid_generate_v4": "SELECT gen_random_uuid()",
    **{
        f"uuid_{name}": f"SELECT uuid '{value}'"
        for name, value in {
            "nil": "00000000-0000-0000-0000-000000000000",
            "ns_dns": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            "ns_url": "6ba7b811-9dad-11d1-80b4-00c04fd430c8",
            "ns_oid": "6ba7b812-9dad-11d1-80b4-00c04fd430c8",
            "ns_x500": "6ba7b814-9dad-11d1-80b4-00c04fd430c8",
        }.items()
    },
    "hstore_skeys": "SELECT unnest({0}.akeys($1))",
    "hstore_svals": "SELECT unnest({0}.avals($1))",
    "hstore_each": "SELECT k, v FROM unnest({0}.akeys($1), {0}.avals($1)) AS pairs(k, v)",
}


# --- CREATE ----------------------------------------------------------------------------------------------------------


def bind_create_extension(binding: Binding, node: Any) -> Statement:
    """CREATE EXTENSION [IF NOT EXISTS] name [SCHEMA schema] [VERSION version]. Raises 42710, 0A000, 22023 and 3F000."""
    catalog, name = binding.context.catalog, node.extname
    about = available().get(name)
    if name in EXTENSIONS or name in catalog.extensions:
        message = f'extension "{name}" already exists'
        if not node.if_not_exists:
            raise SqlError("42710", message)
        return NoOperation("CREATE EXTENSION", (f"{message}, skipping",))
    if about is None:
        those = f"Those that are there are {', '.join(available())}, and what is built in (pg_available_extensions)."
        hint = _INSTEAD.get(name, those)
        raise SqlError("0A000", f'extension "{name}" is not available', hint=hint)
    options = {item.defname: item.arg.sval for item in node.options or () if item.defname != "cascade"}
    _check_version(about, options.get("new_version"))
    schema = schema_for(binding, options.get("schema"), name)
    item = Extension(catalog.next_oid, name, schema, about.version, about.comment)
    return CreateExtension(item, tuple(_types(item)), tuple(_functions(item)))


def _check_version(about: About, wanted: str | None) -> None:
    if wanted not in (None, about.version):
        message = f'extension "{about.name}" has no installation script nor update path for version "{wanted}"'
        raise SqlError("22023", message)


def _types(item: Extension) -> Iterator[BaseType]:
    for row in members(item.name, "pg_type"):
        oid = int(str(row["oid"]))
        if row["typcategory"] != "A" and is_known(oid):
            yield BaseType(oid, str(row["typname"]), item.name, item.schema)


def _functions(item: Extension) -> Iterator[Function]:
    """The members that values can be given to: those of index methods, and what reads and writes, cannot."""
    for row in members(item.name, "pg_proc"):
        types = [int(oid) for oid in str(row["proargtypes"]).split()]
        result = int(str(row["prorettype"]))
        if row["prokind"] == "f" and all(oid in _ANY or is_known(oid) for oid in (*types, result)):
            yield _function(item, row, types, result)


def _function(item: Extension, row: Mapping[str, str | None], types: list[int], result: int) -> Function:
    source, names, modes = str(row["prosrc"]), _items(row["proargnames"]), _items(row["proargmodes"])
    every_type = [int(oid) for oid in _items(row["proallargtypes"])]
    columns = (
        Argument(name, kind) for name, kind, mode in zip(names, every_type, modes, strict=False) if mode in ("o", "t")
    )
    return Function(
        int(str(row["oid"])),
        str(row["proname"]),
        tuple(Argument(name, kind) for name, kind in zip(names or [""] * len(types), types, strict=False)),
        result,
        _BODIES.get(source, "").format(quote_name(item.schema)),
        volatility=str(row["provolatile"]),
        strict=row["proisstrict"] == "t",
        parallel=str(row["proparallel"]),
        schema=item.schema,
        returns_set=row["proretset"] == "t",
        columns=tuple(columns),
        extension=item.name,
        computed=_COMPUTED.get(source, ""),
    )


def _items(array: str | None) -> list[str]:
    return [] if array is None else array.strip("{}").split(",")


# --- what there is ---------------------------------------------------------------------------------------------------


def _found(binding: Binding, name: str) -> Extension:
    """An extension that was created. Raises 42704, and 42501 where it is another's."""
    found = binding.context.catalog.extensions.get(name)
    if found is None:
        raise SqlError("42704", f'extension "{name}" does not exist')
    if binding.reader is not None and not owns(binding, found.oid, binding.reader):
        raise SqlError("42501", f"must be owner of extension {name}")
    return found


def bind_alter_extension(binding: Binding, node: Any) -> Statement:
    """ALTER EXTENSION name UPDATE [TO version], which has none to update to. Raises 42704, 22023 and 0A000."""
    if node.extname in EXTENSIONS:
        raise unsupported("ALTER EXTENSION", _BUILT_IN)
    found = _found(binding, node.extname)
    if type(node).__name__ != "AlterExtensionStmt":
        raise unsupported("ALTER EXTENSION ... ADD and DROP", "The members of an extension are fixed.")
    wanted = next((item.arg.sval for item in node.options or () if item.defname == "new_version"), found.version)
    if wanted != found.version:
        words = f'extension "{found.name}" has no update path from version "{found.version}" to version "{wanted}"'
        raise SqlError("22023", words)
    notice = f'version "{found.version}" of extension "{found.name}" is already installed'
    return NoOperation("ALTER EXTENSION", (notice,))


def bind_comment_extension(binding: Binding, node: Any) -> Statement:
    """COMMENT ON EXTENSION; dumps give PostgreSQL's own the comment that it has."""
    name = node.object.sval
    if name not in EXTENSIONS:
        found = _found(binding, name)
        return AlterExtension("COMMENT", found, replace(found, comment=node.comment))
    if (name, node.comment) != (PLPGSQL, PLPGSQL_COMMENT):
        raise unsupported("COMMENT ON EXTENSION", _BUILT_IN)
    return NoOperation("COMMENT")


def bind_drop_extension(binding: Binding, node: Any) -> Statement:
    """DROP EXTENSION [IF EXISTS] names [CASCADE]. Raises 42704, 2BP01 and 42501."""
    notices: list[str] = []
    found: list[Extension] = []
    for name in (item.sval for item in node.objects):
        if name in EXTENSIONS:
            message = f"cannot drop extension {name} because it is required by the database system"
            raise SqlError("2BP01", message)
        if node.missing_ok and name not in binding.context.catalog.extensions:
            notices.append(f'extension "{name}" does not exist, skipping')
        elif (known := _found(binding, name)) not in found:
            found.append(known)
    if not found:
        return NoOperation("DROP EXTENSION", tuple(notices))
    catalog, names = binding.context.catalog, [item.name for item in found]
    types = [item for item in catalog.types.values() if isinstance(item, BaseType) and item.extension in names]
    functions = tuple(item for item in every(catalog.functions) if item.extension in names)
    what = f"extension {names[0]}" if len(names) == 1 else "desired object(s)"
    cascade = node.behavior == DropBehavior.DROP_CASCADE
    dropped = drop_types(binding, "EXTENSION", [*types], notices, cascade, what, functions)
    return DropExtension(tuple(found), functions, dropped)


HANDLERS: Final[dict[str, Callable[[Binding, Any], Statement]]] = {
    "CreateExtensionStmt": bind_create_extension,
    "AlterExtensionStmt": bind_alter_extension,
    "AlterExtensionContentsStmt": bind_alter_extension,
}

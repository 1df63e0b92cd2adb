"""The names of oids in results: regclass, regtype, regproc, regnamespace and regrole as text.

Owns: the names of the oids in a result, for its encoders. (Casts to text in a query are SQL, in ``functions``.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from catalog.catalog import Catalog, whole_path
from catalog.objects import Table, View
from catalog.postgres import function, functions, rows
from catalog.system.names.lookup_texts import function_names, type_names
from catalog.system.own_objects import as_seen
from catalog.system.relations import extension_members
from catalog.system.relations.indexes import indexes_of
from catalog.values.identifiers import quote_name

#: Types whose oids are always PostgreSQL's own objects: the catalog, its name column, and the word for one in errors.
NAMED: Final = {
    "regcollation": ("pg_collation", "collname", "collation"),
    "regconfig": ("pg_ts_config", "cfgname", "text search configuration"),
    "regdictionary": ("pg_ts_dict", "dictname", "text search dictionary"),
}


def names_of(catalog: Catalog, kind: str, oids: Iterable[int], path: tuple[str, ...]) -> dict[int, str]:
    """The names of some oids of a type such as regclass; an oid without a name is shown as its number, and 0 as '-'."""
    wanted = set(oids)
    match kind:
        case "regclass":
            found = _relations(catalog, wanted, path)
        case "regtype":
            found = {
                int(str(row["oid"])): as_seen(catalog, f"{row['head']}{row['tail']}", path)
                for row in type_names(catalog)
                if row["oid"] in wanted
            }
        case "regproc":
            found = {oid: name for oid in wanted if (name := _function(oid)) is not None}
            found |= {int(str(row["oid"])): str(row["shown"]) for row in extension_members.function_names(catalog)}
            if wanted - found.keys() - {0}:  # user-defined
                found |= {
                    int(str(row["oid"])): as_seen(catalog, str(row["shown"]), path).removesuffix("(")
                    for row in function_names(catalog)
                    if row["oid"] in wanted
                }
        case "regprocedure":
            found = {
                int(str(row["oid"])): as_seen(catalog, f"{row['alone']}{row['types']}", path)
                for row in function_names(catalog)
                if row["oid"] in wanted
            }
        case "regnamespace":
            found = {item.oid: quote_name(item.name) for item in catalog.schemas.values()}
        case "regrole":
            found = {item.oid: quote_name(item.name) for item in catalog.roles.items}
        case "regoper" | "regoperator":
            found = operator_names(catalog, kind)
        case "regcollation" | "regconfig" | "regdictionary":
            found = {int(str(row["oid"])): quote_name(str(row[NAMED[kind][1]])) for row in rows(NAMED[kind][0])}
        case _:
            found = {}
    nothing = "0" if kind in ("regoper", "regoperator") else "-"
    return {oid: found.get(oid, str(oid) if oid else nothing) for oid in wanted}


def operator_names(catalog: Catalog, kind: str) -> dict[int, str]:
    """PostgreSQL's operators as regoper shows them, qualified or with their operands if several have the name."""
    found = [*rows("pg_operator"), *extension_members.rows_of(catalog, "pg_operator")]
    oids = [int(str(row["oid"])) for row in found]
    if kind == "regoper":
        counts = Counter(row["oprname"] for row in found)
        shown = (("" if counts[row["oprname"]] == 1 else "pg_catalog.") + str(row["oprname"]) for row in found)
        return dict(zip(oids, shown, strict=True))
    names = {str(row["oid"]): str(row["plain"]) for row in type_names(catalog)} | {"0": "NONE"}
    operands = ((names[str(row["oprleft"])], names[str(row["oprright"])]) for row in found)
    return {
        oid: f"{row['oprname']}({left},{right})" for oid, row, (left, right) in zip(oids, found, operands, strict=True)
    }


def _relations(catalog: Catalog, wanted: set[int], path: tuple[str, ...]) -> dict[int, str]:
    visible = whole_path(path)
    found = {}
    for oid in wanted:
        item = catalog.objects.get(oid)
        if item is not None:
            found[oid] = _qualified(item.schema, item.name, catalog.find(item.name, path) is item)
    if len(found) < len(wanted):
        for item in catalog.objects.values():
            if isinstance(item, Table | View):
                own = {
                    index.oid: _qualified(item.schema, index.name, item.schema in visible) for index in indexes_of(item)
                }
                found |= {oid: name for oid, name in own.items() if oid in wanted}
    return found


def _qualified(schema: str, name: str, is_visible: bool) -> str:
    return quote_name(name) if is_visible else f"{quote_name(schema)}.{quote_name(name)}"


def _function(oid: int) -> str | None:
    try:
        name = function(oid).name
    except KeyError:
        return None
    return quote_name(name) if len(functions(name)) == 1 else f"pg_catalog.{quote_name(name)}"

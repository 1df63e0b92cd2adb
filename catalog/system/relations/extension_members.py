"""The members of created extensions, as system catalogs list them.

Owns: PostgreSQL's rows of the members, in the schema of the extension, their texts, and their dependency on the
extension (pg_depend). ``catalog.system.relations.cluster`` lists the extensions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from catalog.catalog import Catalog
from catalog.extensions import Extension, has_rows, members, path_of
from catalog.objects import SystemView
from catalog.postgres import types
from catalog.system import own_objects
from catalog.system.rows import Row
from catalog.system.stored import stored
from catalog.values.identifiers import quote_name
from catalog.values.types import by_oid, is_known

#: Kinds of members that depend on an extension directly, by the oids of their catalogs.
_CATALOGS: Final = {
    "pg_type": own_objects.PG_TYPE,
    "pg_proc": own_objects.PG_PROC,
    "pg_operator": own_objects.PG_OPERATOR,
    "pg_cast": own_objects.PG_CAST,
    "pg_opclass": own_objects.PG_OPCLASS,
    "pg_opfamily": own_objects.PG_OPFAMILY,
}


def member_rows(catalog: Catalog, view: SystemView) -> Iterator[pa.Table]:
    """The rows that created extensions add to a system catalog."""
    for item in catalog.extensions.values():
        if has_rows(item.name, view.name):
            yield _placed(catalog, item, stored(path_of(item.name, view.name), view.columns))


def _placed(catalog: Catalog, item: Extension, found: pa.Table) -> pa.Table:
    """The rows with the extension's schema in place of their own."""
    schema = own_objects.schema_oid(catalog, item.schema)
    for place, name in enumerate(found.column_names):
        if name.endswith("namespace"):
            kind = found.schema.field(place).type
            found = found.set_column(place, name, pa.repeat(pa.scalar(schema, kind), found.num_rows))
    return found


def depending(catalog: Catalog) -> Iterator[tuple[tuple[int, int], int]]:
    """Each member, as (catalog, oid), and its extension's oid. An array type depends on its element type instead."""
    for item in catalog.extensions.values():
        for name, classid in _CATALOGS.items():
            for row in members(item.name, name):
                if name != "pg_type" or row["typcategory"] != "A":
                    yield (classid, int(str(row["oid"]))), item.oid


def rows_of(catalog: Catalog, name: str) -> Iterator[dict[str, str | None]]:
    """The rows that created extensions add to a system catalog, as texts."""
    for item in catalog.extensions.values():
        yield from members(item.name, name)


def homes(catalog: Catalog) -> dict[int, str]:
    """The schemas of types that are members."""
    return {
        int(str(row["oid"])): item.schema
        for item in catalog.extensions.values()
        for row in members(item.name, "pg_type")
    }


def function_names(catalog: Catalog) -> Iterator[Row]:
    """Member functions by name, as regproc and regprocedure show them: a name that several functions have is
    qualified."""
    for item in catalog.extensions.values():
        found = list(members(item.name, "pg_proc"))
        counts = Counter(row["proname"] for row in found)
        for row in found:
            name = quote_name(str(row["proname"]))
            arguments = ",".join(_type_name(int(oid)) for oid in str(row["proargtypes"] or "").split())
            shown = name if counts[row["proname"]] == 1 else f"{quote_name(item.schema)}.{name}"
            yield {"oid": int(str(row["oid"])), "shown": shown, "alone": name, "types": f"({arguments})"}


def _type_name(oid: int) -> str:
    return str(by_oid(oid)) if is_known(oid) else quote_name(types()[oid].name)


def depends(catalog: Catalog) -> Iterator[Row]:
    """The rows for pg_depend."""
    for (classid, oid), extension in depending(catalog):
        yield {
            "classid": classid,
            "objid": oid,
            "refclassid": own_objects.PG_EXTENSION,
            "refobjid": extension,
            "deptype": "e",
        }

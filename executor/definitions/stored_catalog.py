"""The catalog as the log and the tables' database keep it: JSON documents.

Owns: a record's changes of the catalog as they are applied again, and the whole catalog's text. Who writes them is
``executor.sql.ddl``; the classes that may stand in them are ``catalog.codec``'s.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.codec import CATALOG_CLASSES, decode, encode
from catalog.objects import PUBLIC, SYSTEM_SCHEMAS, CatalogObject, Schema, Stream, SystemView, Table, View
from catalog.routines import every
from executor.definitions.extensions import apply_extension
from executor.definitions.roles import apply_roles_change
from executor.definitions.routines import apply_function
from executor.definitions.user_types import apply_type_change


def apply_change(catalog: Catalog, change: str, lsn: int) -> Catalog:
    """The catalog after one logged change; what begins with its record has its LSN."""
    data = json.loads(change)
    if "rebuild" in data:
        return catalog
    changed = apply_type_change(catalog, data) or apply_roles_change(catalog, data) or apply_function(catalog, data)
    changed = changed or apply_extension(catalog, data)
    if changed is not None:
        return changed
    if "drop" in data:
        return catalog.drop(data["drop"])
    if "change" in data:
        return catalog.change(numbered(decode(data["change"], CATALOG_CLASSES), lsn))
    return catalog.add(numbered(decode(data["add"], CATALOG_CLASSES), lsn))


def changed_table(change: dict[str, Any]) -> Table | None:
    """The table that a logged change defines anew."""
    item = decode(change["change"], CATALOG_CLASSES) if "change" in change else None
    return item if isinstance(item, Table) else None


def numbered(item: CatalogObject | Schema, lsn: int) -> CatalogObject | Schema:
    """The object with the LSN of the record that makes it, or begins its history, where it has none yet."""
    if isinstance(item, View) and not item.created_lsn:
        return replace(item, created_lsn=lsn)
    if isinstance(item, Stream) and item.keeps_rows and item.kept_since < 0:
        return replace(item, kept_since=lsn - 1)  # rows of the record itself are kept
    return item


def dump_catalog(catalog: Catalog) -> str:
    """The catalog's own objects as JSON, for the table database."""
    items = [encode(item) for item in catalog.objects.values() if not isinstance(item, SystemView)]
    schemas = [encode(item) for item in catalog.schemas.values() if item.name not in SYSTEM_SCHEMAS]
    types = [encode(item) for item in catalog.types.values()]
    document = {"next_oid": catalog.next_oid, "version": catalog.version, "schemas": schemas, "types": types}
    document["functions"] = [encode(item) for item in every(catalog.functions)]
    document["extensions"] = [encode(item) for item in catalog.extensions.values()]
    rights = [[oid, encode(item)] for oid, item in catalog.rights.items()]
    document["default_rights"] = encode(catalog.defaults)
    return json.dumps({**document, "objects": items, "roles": encode(catalog.roles), "rights": rights})


def load_documents(whole: str | None, changes: Iterable[tuple[int, str]], start: Catalog) -> Catalog:
    """The catalog of a whole document, if there is one, and the changes after it, each with its record's LSN."""
    catalog = start if whole is None else load_catalog(whole, start)
    for lsn, change in changes:
        catalog = apply_change(catalog, change, lsn)
    return catalog


def load_catalog(text: str, start: Catalog) -> Catalog:
    """``start`` (the system views) with the stored objects; before there were schemas, the only one was public."""
    data = json.loads(text)
    catalog = start
    if "schemas" in data:
        catalog = catalog.drop(catalog.schemas[PUBLIC].oid)
    for item in data.get("types", ()):
        catalog = catalog.add_type(decode(item, CATALOG_CLASSES))
    for item in (*data.get("schemas", ()), *data["objects"]):
        catalog = catalog.add(decode(item, CATALOG_CLASSES))
    roles = decode(data["roles"], CATALOG_CLASSES).completed() if "roles" in data else start.roles
    for item in data.get("functions", ()):
        catalog = catalog.put_function(decode(item, CATALOG_CLASSES))
    for item in data.get("extensions", ()):
        catalog = catalog.with_extension(decode(item, CATALOG_CLASSES))
    rights = {oid: decode(item, CATALOG_CLASSES) for oid, item in data.get("rights", ())}
    return replace(
        catalog,
        next_oid=data["next_oid"],
        version=data["version"],
        roles=roles,
        rights=MappingProxyType({**start.rights, **rights}),
        defaults=decode(data.get("default_rights", []), CATALOG_CLASSES),
    )

"""What system catalogs list of ours, and the oids of what has none of its own in our catalog.

Owns: numbers that stay the same over restarts because they follow from the names of a relation's parts. They lie above
those that objects are given in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final
from zlib import crc32

from catalog.catalog import Catalog
from catalog.names import quote_name
from catalog.objects import PG_TEMP, CatalogObject

#: The one role, and the one database.
ROLE: Final = 10
DATABASE: Final = 5
TABLESPACE: Final = 1663
#: The schema of the session's temporary relations.
TEMPORARY: Final = 14_998
ROLE_NAME: Final = "millstream"
DATABASE_NAME: Final = "millstream"

#: Catalogs' own oids, for classoid.
PG_CLASS, PG_TYPE, PG_PROC, PG_NAMESPACE, PG_CONSTRAINT, PG_ATTRDEF = 1259, 1247, 1255, 2615, 2606, 2604
PG_REWRITE: Final = 2618

_FIRST: Final = 1 << 31


#: Schemas whose relations' rows are data, or nobody's matter.
_HIDDEN: Final = ("pg_catalog", "information_schema", "pg_lookups")


def own_objects(catalog: Catalog) -> Iterator[CatalogObject]:
    """Everything that is no relation of PostgreSQL's, whose rows are data."""
    for item in catalog.objects.values():
        if item.schema not in _HIDDEN:
            yield item


@lru_cache(1 << 14)
def part_oid(owner: int, kind: str, name: str = "") -> int:
    """The oid of a part of a relation: an index, a constraint, a default, its rows' type."""
    return _FIRST | (crc32(f"{owner} {kind} {name}".encode()) & (_FIRST - 1))


def schema_oid(catalog: Catalog, name: str) -> int:
    """A schema's oid; 0 where it is none that the catalog lists."""
    if name == PG_TEMP:
        return TEMPORARY
    schema = catalog.schemas.get(name)
    return 0 if schema is None else schema.oid


#: A user's type as kept texts name it.
_TYPE: Final = re.compile(r'\bpg_type\."(\d+)"')
_CALL: Final = re.compile(r"\b(nextval|currval|setval)\((\d+)")


def default_text(catalog: Catalog, text: str) -> str:
    """An expression as SQL text: sequences and users' types, which are kept by oid, by their names."""

    def named(match: re.Match[str]) -> str:
        item = catalog.objects.get(int(match[2]))
        if item is None:
            return match[0]
        name = (
            quote_name(item.name) if item.schema == "public" else f"{quote_name(item.schema)}.{quote_name(item.name)}"
        )
        return f"{match[1]}('{name.replace(chr(39), chr(39) * 2)}'::regclass"

    def typed(match: re.Match[str]) -> str:
        item = catalog.declared(int(match[1]))
        if item is None:
            return match[0]
        return str(item) if item.schema == "public" else f"{quote_name(item.schema)}.{item}"

    return _CALL.sub(named, _TYPE.sub(typed, text))

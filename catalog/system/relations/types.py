"""Types: pg_type with the types of relations' rows and user-defined types, pg_enum, and the constraints of domains.

Owns: how an enum, a domain and their array types appear there. Their oids are stored in the catalog and do not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from catalog.catalog import Catalog
from catalog.extensions import BaseType
from catalog.objects import Check, Domain, Sequence, rows_of
from catalog.postgres import rows
from catalog.system.own_objects import ROLE, as_seen, default_text, own_objects, rights_of, schema_oid
from catalog.system.rows import Row
from catalog.values.identifiers import LONGEST_NAME
from catalog.values.oids import part_oid
from catalog.values.types import Composite, Enumeration

#: The functions of types, by kind of type.
_RECORD: Final = {"typinput": 2290, "typoutput": 2291, "typreceive": 2402, "typsend": 2403}
_ARRAY: Final = {
    "typinput": 750, "typoutput": 751, "typreceive": 2400, "typsend": 2401, "typanalyze": 3816, "typsubscript": 6179,
}  # fmt: skip
_ENUM: Final = {"typinput": 3506, "typoutput": 3507, "typreceive": 3532, "typsend": 3533}
_DOMAIN: Final = {"typinput": 2597, "typreceive": 2598}
#: The array input functions for a domain whose base type is a row type or an array of user-defined values.
_ROWS: Final[Row] = {"typlen": -1, "typcategory": "C", "typalign": "d", "typstorage": "x", **_RECORD}
_ARRAYS: Final[Row] = {"typlen": -1, "typcategory": "A", "typalign": "i", "typstorage": "x", **_ARRAY}
#: The fields that a domain takes from its base type.
_INHERITED: Final = (
    *("typlen", "typbyval", "typcategory", "typalign", "typstorage"),
    *("typoutput", "typsend", "typanalyze"),
)
#: The word VALUE, outside of quotes.
_VALUE: Final = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\b(value)\b""")
#: The distance between two labels as declared: 1 in pg_enum.
_UNIT: Final = 1 << 32


def pg_type(catalog: Catalog) -> Iterator[Row]:
    """The types of relations' rows, the user-defined types, and the array types of all these."""
    for item in own_objects(catalog):
        if not isinstance(item, Sequence):
            yield from _rows(catalog, rows_of(item), item.schema)
    for declared in catalog.types.values():
        if isinstance(declared, Composite):
            yield from _rows(catalog, declared, declared.schema)
            continue
        if isinstance(declared, BaseType):
            continue  # its row is data (extension_members)
        own = _enum(catalog, declared) if isinstance(declared, Enumeration) else _domain(catalog, declared)
        yield own
        align = "d" if own["typalign"] == "d" else "i"
        shared = {
            **_shared(catalog, declared.schema, align, catalog.rights_of(declared.oid).owner),
            "typcollation": own.get("typcollation", 0),
        }
        yield _array(shared, declared.name, declared.oid, declared.oid - 1)


def _rows(catalog: Catalog, item: Composite, schema: str) -> Iterator[Row]:
    """A row type and its array type."""
    owner, acl = rights_of(catalog, item.oid)
    shared = _shared(catalog, schema, "d", owner)
    shown = None if item.oid in catalog.objects else acl  # a relation's comment belongs to its row in pg_class
    yield {**shared, **_RECORD, "typacl": shown,
           "oid": item.type_oid, "typname": item.name, "typtype": "c", "typcategory": "C",
           "typrelid": item.oid, "typarray": item.array_oid}  # fmt: skip
    yield _array(shared, item.name, item.type_oid, item.array_oid)


def _shared(catalog: Catalog, schema: str, align: str, owner: int = ROLE) -> Row:
    return {
        "typnamespace": schema_oid(catalog, schema),
        "typowner": owner,
        "typlen": -1,
        "typisdefined": True,
        "typdelim": ",",
        "typalign": align,
        "typstorage": "x",
        "typtypmod": -1,
    }


def _array(shared: Row, name: str, element: int, oid: int) -> Row:
    return {**shared, **_ARRAY, "oid": oid, "typname": f"_{name}"[:LONGEST_NAME], "typtype": "b", "typcategory": "A",
            "typelem": element}  # fmt: skip


def _declared(catalog: Catalog, declared: Enumeration | Domain, kind: str) -> Row:
    owner, acl = rights_of(catalog, declared.oid)
    return {
        **_shared(catalog, declared.schema, "i", owner),
        "typacl": acl,
        "oid": declared.oid,
        "typname": declared.name,
        "typtype": kind,
        "typarray": declared.oid - 1,
    }


def _enum(catalog: Catalog, declared: Enumeration) -> Row:
    own = {"typlen": 4, "typbyval": True, "typcategory": "E", "typstorage": "p"}
    return {**_declared(catalog, declared, "e"), **_ENUM, **own}


def _domain(catalog: Catalog, declared: Domain) -> Row:
    base = declared.base
    below = catalog.declared(declared.parent or base.oid)
    if isinstance(below, Domain):
        inherited = _domain(catalog, below)
    elif isinstance(below, Enumeration):
        inherited = _enum(catalog, below)
    else:
        inherited = _ROWS if base.row is not None else _stored().get(base.oid, _ARRAYS)
    return {
        **_declared(catalog, declared, "d"),
        **_DOMAIN,
        **{name: inherited[name] for name in _INHERITED if name in inherited},
        "typbasetype": declared.parent or base.oid,
        "typtypmod": base.typmod if base.element is None else base.element.typmod,
        "typndims": 1 if base.element is not None else 0,
        "typcollation": 100 if base.category == "S" else 0,
        "typnotnull": declared.not_null,
        "typdefault": None if declared.default is None else as_seen(catalog, default_text(catalog, declared.default)),
        "typdefaultbin": None if declared.default is None else default_text(catalog, declared.default),
    }


@cache
def _stored() -> Mapping[int, Row]:
    """The fields that domains inherit from PostgreSQL's own types, by oid."""
    found = {}
    for row in rows("pg_type"):
        own: dict[str, object] = {name: row[name] for name in ("typcategory", "typalign", "typstorage")}
        own |= {name: int(str(row[name])) for name in ("typlen", "typoutput", "typsend", "typanalyze")}
        found[int(str(row["oid"]))] = {**own, "typbyval": row["typbyval"] == "t"}
    return found


def pg_enum(catalog: Catalog) -> Iterator[Row]:
    """Labels of enums. The distances of the sort order are those of the labels' places."""
    for declared in catalog.types.values():
        if isinstance(declared, Enumeration):
            for label, place in zip(declared.labels, declared.places, strict=True):
                yield {
                    "oid": part_oid(declared.oid, "label", str(place)),
                    "enumtypid": declared.oid,
                    "enumsortorder": place / _UNIT,
                    "enumlabel": label,
                }


def domain_constraints(catalog: Catalog) -> Iterator[tuple[int, Domain, Check, str]]:
    """The CHECKs of domains: oid, domain, constraint and expression."""
    for domain in catalog.types.values():
        if isinstance(domain, Domain):
            for check in domain.checks:
                text = _VALUE.sub(lambda match: match[0].upper() if match[1] else match[0], check.expression)
                oid = part_oid(domain.oid, "constraint", check.name)
                yield oid, domain, check, default_text(catalog, text)

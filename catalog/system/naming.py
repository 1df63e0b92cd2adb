"""What system catalogs list of ours: numbers and names that everything in ``catalog.system`` shares."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from catalog.catalog import Catalog
from catalog.names import quote_name
from catalog.objects import PG_TEMP, PUBLIC, CatalogObject
from catalog.privileges import Grant, Rights
from catalog.roles import BOOTSTRAP, EVERYBODY

#: Whose everything is that nobody has made, and the one database.
ROLE: Final = BOOTSTRAP
TABLESPACE: Final = 1663
#: The schema of the session's temporary relations.
TEMPORARY: Final = 14_998
#: What is here and not in PostgreSQL: a schema, and the extension that it belongs to.
OWN_SCHEMA: Final = "millstream"
EXTENSION: Final = 14_997
#: What PostgreSQL always has, whose language its catalogs list.
PLPGSQL: Final = "plpgsql"
PLPGSQL_OID: Final = 13_559
PLPGSQL_COMMENT: Final = "PL/pgSQL procedural language"
#: Extensions that are built in, with their oids and schemas.
EXTENSIONS: Final = {OWN_SCHEMA: (EXTENSION, OWN_SCHEMA), PLPGSQL: (PLPGSQL_OID, "pg_catalog")}
#: What these are for, as pg_available_extensions tells it.
EXTENSION_COMMENTS: Final = {
    OWN_SCHEMA: "streams, continuous views, and what runs",
    PLPGSQL: PLPGSQL_COMMENT,
}
EXTENSION_VERSION: Final = "1.0"
DATABASE_NAME: Final = "millstream"

#: Catalogs' own oids, for classoid.
PG_CLASS, PG_TYPE, PG_PROC, PG_NAMESPACE, PG_CONSTRAINT, PG_ATTRDEF = 1259, 1247, 1255, 2615, 2606, 2604
PG_REWRITE, PG_EXTENSION, PG_FOREIGN_DATA_WRAPPER, PG_FOREIGN_SERVER = 2618, 3079, 2328, 1417

#: Schemas whose relations' rows are data, or nobody's matter.
_HIDDEN: Final = ("pg_catalog", "information_schema", "pg_lookups")


def own_objects(catalog: Catalog) -> Iterator[CatalogObject]:
    """Everything that is no relation of PostgreSQL's, whose rows are data."""
    for item in catalog.objects.values():
        if item.schema not in _HIDDEN:
            yield item


def rights_of(catalog: Catalog, oid: int) -> tuple[int, list[str] | None]:
    """An object's owner and its access control list as text; None where nothing was ever granted or revoked."""
    rights = catalog.rights_of(oid)
    return rights.owner, acl_of(catalog, rights)


def acl_of(catalog: Catalog, rights: Rights) -> list[str] | None:
    """An access control list as text; None where nothing was ever granted or revoked."""
    return None if rights.grants is None else [_acl(catalog, item) for item in rights.grants]


def _acl(catalog: Catalog, item: Grant) -> str:
    """grantee=privileges/grantor, with a star behind those that may be given on (aclitemout)."""
    letters = "".join(letter + ("*" if letter in item.options else "") for letter in item.letters)
    grantee = "" if item.grantee == EVERYBODY else _role(catalog, item.grantee)
    return f"{grantee}={letters}/{_role(catalog, item.grantor)}"


def _role(catalog: Catalog, oid: int) -> str:
    """A role's name as lists have it: in quotes where it is more than ASCII letters, digits and underscores (putid)."""
    name = catalog.roles.name(oid)
    return name if re.fullmatch(r"[A-Za-z0-9_]+", name) else '"' + name.replace('"', '""') + '"'


def schema_oid(catalog: Catalog, name: str) -> int:
    """A schema's oid; 0 where it is none that the catalog lists."""
    if name == PG_TEMP:
        return TEMPORARY
    schema = catalog.schemas.get(name)
    return 0 if schema is None else schema.oid


#: A user's type as kept texts name it.
TYPE: Final = re.compile(r'\bpg_type\."(\d+)"')
#: Texts within kept texts, and calls of functions of the schema public.
_PUBLIC_CALL: Final = re.compile(r"('(?:[^']|'')*')|\bpublic\.(?=[\w$]+\(|\"(?:[^\"]|\"\")+\"\()")
_CALL: Final = re.compile(r"\b(nextval|currval|setval)\((\d+)")


#: Stands in kept texts before a name of the schema public, which pg_get_expr() and the like name where no path has it.
PUBLIC_MARK: Final = "\x01"


def default_text(catalog: Catalog, text: str, mark: str = PUBLIC_MARK) -> str:
    """An expression as SQL text: sequences and users' types, which are kept by oid, by their names."""

    def named(match: re.Match[str]) -> str:
        item = catalog.objects.get(int(match[2]))
        if item is None:
            return match[0]
        place = mark if item.schema == PUBLIC else f"{quote_name(item.schema)}."
        name = quote_name(item.name).replace("'", "''")
        return f"{match[1]}('{place}{name}'::regclass"

    def typed(match: re.Match[str]) -> str:
        item = catalog.declared(int(match[1]))
        if item is None:
            return match[0]
        return f"{mark}{item}" if item.schema == PUBLIC else f"{quote_name(item.schema)}.{item}"

    called = _PUBLIC_CALL.sub(lambda match: match[1] or mark, text)
    return _CALL.sub(named, TYPE.sub(typed, called))

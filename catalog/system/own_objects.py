"""What system catalogs list of ours: numbers and names that everything in ``catalog.system`` shares."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from catalog.catalog import Catalog, whole_path
from catalog.objects import PG_CATALOG, PG_TEMP, PUBLIC, CatalogObject, UserType
from catalog.postgres import functions
from catalog.privileges import Grant, Rights
from catalog.roles import BOOTSTRAP, EVERYBODY
from catalog.routines import Function
from catalog.routines import named as called
from catalog.values.identifiers import quote_name

#: The owner of predefined objects, and the one database.
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
PG_OPERATOR, PG_CAST, PG_OPCLASS, PG_OPFAMILY = 2617, 2605, 2616, 2753
PG_AUTHID, PG_DATABASE, PG_TABLESPACE, PG_LANGUAGE, PG_COLLATION = 1260, 1262, 1213, 2612, 3456

#: Schemas of the system catalogs, which ``own_objects`` leaves out.
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
#: Texts within kept texts, and schemas before calls of functions.
_QUALIFIED_CALL: Final = re.compile(
    r"('(?:[^']|'')*')|(?<![\w$\".])([^\W\d][\w$]*|\"(?:[^\"]|\"\")+\")\.(?=[\w$]+\(|\"(?:[^\"]|\"\")+\"\()"
)
_CALL: Final = re.compile(r"\b(nextval|currval|setval)\((\d+)")


#: Stands in kept texts before a schema that is named only to those whose path does not find what is in it.
MARK: Final = "\x01"
_NAME: Final = r"(?:\"(?:[^\"]|\"\")+\"|[\w$]+)"
_MARKED: Final = re.compile(rf"{MARK}({_NAME})\.({_NAME})(\(?)")


def prefix(schema: str) -> str:
    """What stands before the name of something in a schema, for those whose path does not find it."""
    return "" if schema in ("", PG_CATALOG, PG_TEMP) else f"{MARK}{quote_name(schema)}."


def default_text(catalog: Catalog, text: str) -> str:
    """An expression as SQL text: sequences and users' types, which are kept by oid, by their names, with ``MARK``."""

    def named(match: re.Match[str]) -> str:
        item = catalog.objects.get(int(match[2]))
        if item is None:
            return match[0]
        name = f"{quote_name(item.schema)}.{quote_name(item.name)}".replace("'", "''")
        return f"{match[1]}('{MARK}{name}'::regclass"

    def typed(match: re.Match[str]) -> str:
        item = catalog.declared(int(match[1]))
        return match[0] if item is None else f"{MARK}{quote_name(item.schema)}.{quote_name(item.name)}"

    calls = _QUALIFIED_CALL.sub(lambda match: match[1] or f"{MARK}{match[2]}.", text)
    return _CALL.sub(named, TYPE.sub(typed, calls))


def as_seen(catalog: Catalog, text: str, path: tuple[str, ...] = (PUBLIC,)) -> str:
    """A text with marks as a session with this search path sees it: objects that the path does not find are
    qualified."""

    def seen(match: re.Match[str]) -> str:
        schema, name = map(_plain, match.groups()[:2])
        if match[3]:
            items = catalog.functions.get(name, ())
            is_found = any(is_visible(catalog, item, path) for item in items if item.schema == schema)
        else:
            item = catalog.types.get((schema, name)) or catalog.at(schema, name)
            if item is not None:
                is_found = is_visible(catalog, item, path)
            elif any(extension.schema == schema for extension in catalog.extensions.values()):
                is_found = schema in whole_path(path)  # its type
            else:
                return match[0]  # an octet of a text
        return match[0].removeprefix(MARK + match[1] + "." if is_found else MARK)

    return _MARKED.sub(seen, text)


def _plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def is_visible(catalog: Catalog, item: CatalogObject | UserType | Function, path: tuple[str, ...]) -> bool:
    """Whether a relation's, type's or function's name alone finds it, no schema before its own having the same."""
    if isinstance(item, Function):
        found = called(catalog.functions, item.name, whole_path(path))
        return any(other.oid == item.oid for other in found) and not functions(item.name)
    for schema in whole_path(path):
        if (schema, item.name) in catalog.types or (schema, item.name) in catalog.names:
            return schema == item.schema
    return False

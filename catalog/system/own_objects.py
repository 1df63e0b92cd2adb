"""Millstream's objects in the system catalogs: numbers and names shared by all of ``catalog.system``."""

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

#: The owner of predefined objects, and the only database.
ROLE: Final = BOOTSTRAP
TABLESPACE: Final = 1663
#: The schema of the session's temporary relations.
TEMPORARY: Final = 14_998
#: Objects that PostgreSQL lacks: a schema, and the extension to which it belongs.
OWN_SCHEMA: Final = "millstream"
EXTENSION: Final = 14_997
#: The extension that PostgreSQL always has, whose language the catalogs list.
PLPGSQL: Final = "plpgsql"
PLPGSQL_OID: Final = 13_559
PLPGSQL_COMMENT: Final = "PL/pgSQL procedural language"
#: Built-in extensions, with their oids and schemas.
EXTENSIONS: Final = {OWN_SCHEMA: (EXTENSION, OWN_SCHEMA), PLPGSQL: (PLPGSQL_OID, "pg_catalog")}
#: Their descriptions in pg_available_extensions.
EXTENSION_COMMENTS: Final = {
    OWN_SCHEMA: "streams, continuous views, and what runs",
    PLPGSQL: PLPGSQL_COMMENT,
}
EXTENSION_VERSION: Final = "1.0"
DATABASE_NAME: Final = "millstream"

#: The oids of catalogs, for classoid.
PG_CLASS, PG_TYPE, PG_PROC, PG_NAMESPACE, PG_CONSTRAINT, PG_ATTRDEF = 1259, 1247, 1255, 2615, 2606, 2604
PG_REWRITE, PG_EXTENSION, PG_FOREIGN_DATA_WRAPPER, PG_FOREIGN_SERVER = 2618, 3079, 2328, 1417
PG_OPERATOR, PG_CAST, PG_OPCLASS, PG_OPFAMILY = 2617, 2605, 2616, 2753
PG_AUTHID, PG_DATABASE, PG_TABLESPACE, PG_LANGUAGE, PG_COLLATION = 1260, 1262, 1213, 2612, 3456

#: The schemas of the system catalogs, which ``own_objects`` excludes.
_HIDDEN: Final = ("pg_catalog", "information_schema", "pg_lookups")


def own_objects(catalog: Catalog) -> Iterator[CatalogObject]:
    """All relations except PostgreSQL's, whose rows are data."""
    for item in catalog.objects.values():
        if item.schema not in _HIDDEN:
            yield item


def rights_of(catalog: Catalog, oid: int) -> tuple[int, list[str] | None]:
    """An object's owner and its access control list as text; the list is None if nothing was ever granted or
    revoked."""
    rights = catalog.rights_of(oid)
    return rights.owner, acl_of(catalog, rights)


def acl_of(catalog: Catalog, rights: Rights) -> list[str] | None:
    """An access control list as text; None if nothing was ever granted or revoked."""
    return None if rights.grants is None else [_acl(catalog, item) for item in rights.grants]


def _acl(catalog: Catalog, item: Grant) -> str:
    """grantee=privileges/grantor, with a star after each privilege with grant option (aclitemout)."""
    letters = "".join(letter + ("*" if letter in item.options else "") for letter in item.letters)
    grantee = "" if item.grantee == EVERYBODY else _role(catalog, item.grantee)
    return f"{grantee}={letters}/{_role(catalog, item.grantor)}"


def _role(catalog: Catalog, oid: int) -> str:
    """A role's name as written in access control lists: quoted unless it is only ASCII letters, digits and underscores
    (putid)."""
    name = catalog.roles.name(oid)
    return name if re.fullmatch(r"[A-Za-z0-9_]+", name) else '"' + name.replace('"', '""') + '"'


def schema_oid(catalog: Catalog, name: str) -> int:
    """A schema's oid; 0 for one that the catalog does not list."""
    if name == PG_TEMP:
        return TEMPORARY
    schema = catalog.schemas.get(name)
    return 0 if schema is None else schema.oid


#: A user-defined type in stored texts.
TYPE: Final = re.compile(r'\bpg_type\."(\d+)"')
#: String literals within stored texts, and schemas before function calls.
_QUALIFIED_CALL: Final = re.compile(
    r"('(?:[^']|'')*')|(?<![\w$\".])([^\W\d][\w$]*|\"(?:[^\"]|\"\")+\")\.(?=[\w$]+\(|\"(?:[^\"]|\"\")+\"\()"
)
_CALL: Final = re.compile(r"\b(nextval|currval|setval)\((\d+)")


#: In stored texts, precedes a schema name that is shown only if the session's path does not find the object.
MARK: Final = "\x01"
_NAME: Final = r"(?:\"(?:[^\"]|\"\")+\"|[\w$]+)"
_MARKED: Final = re.compile(rf"{MARK}({_NAME})\.({_NAME})(\(?)")


def prefix(schema: str) -> str:
    """The schema prefix of an object's name, with the mark, for sessions whose path does not find it."""
    return "" if schema in ("", PG_CATALOG, PG_TEMP) else f"{MARK}{quote_name(schema)}."


def default_text(catalog: Catalog, text: str) -> str:
    """An expression as SQL text: sequences and user-defined types, which are stored by oid, are named, with
    ``MARK``."""

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
    """A text with marks as shown to a session with this search path: objects that the path does not find are
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
                is_found = schema in whole_path(path)  # the type of its rows
            else:
                return match[0]  # a byte of a text
        return match[0].removeprefix(MARK + match[1] + "." if is_found else MARK)

    return _MARKED.sub(seen, text)


def _plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def is_visible(catalog: Catalog, item: CatalogObject | UserType | Function, path: tuple[str, ...]) -> bool:
    """Whether a relation, type or function is found by its unqualified name, as no earlier schema in the path has the
    name."""
    if isinstance(item, Function):
        found = called(catalog.functions, item.name, whole_path(path))
        return any(other.oid == item.oid for other in found) and not functions(item.name)
    for schema in whole_path(path):
        if (schema, item.name) in catalog.types or (schema, item.name) in catalog.names:
            return schema == item.schema
    return False

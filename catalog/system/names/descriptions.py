"""Descriptions of objects in messages about dependencies, as from pg_describe_object() (objectaddress.c).

Owns: the description of each object, by its catalog and oid. If a description ends with a relation's name, the
relation's oid is returned beside it, since the form of the name depends on the session's search path. Knows no
sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from catalog.catalog import Catalog
from catalog.postgres import rows
from catalog.system import own_objects
from catalog.system.names.lookup_texts import function_names, type_names
from catalog.system.names.oid_names import operator_names
from catalog.system.relations import classes, cluster, extension_members, indexes
from catalog.system.rows import Row
from catalog.values.identifiers import quote_name

#: The word before a relation's name, by relkind.
_RELATIONS: Final = {
    "r": "table ",
    "v": "view ",
    "i": "index ",
    "S": "sequence ",
    "f": "foreign table ",
    "m": "materialized view ",
    "c": "composite type ",
}


def object_descriptions(catalog: Catalog) -> Iterator[Row]:
    """Rows of (classid, oid, text, target): the object's catalog and oid, its description, and the oid of a relation,
    or None. With a relation, its name must be appended to the description."""
    relations = {_oid(row): row for row in (*rows("pg_class"), *classes.pg_class(catalog))}
    words = {oid: _RELATIONS.get(str(row["relkind"]), "") for oid, row in relations.items()}
    columns = {
        (_number(row["attrelid"]), _number(row["attnum"])): str(row["attname"]) for row in classes.pg_attribute(catalog)
    }
    for oid, word in words.items():
        yield _described(own_objects.PG_CLASS, oid, word, oid)
    for row in (*rows("pg_constraint"), *indexes.pg_constraint(catalog)):
        table = _number(row.get("conrelid") or 0)
        text = f"constraint {row['conname']}" + (f" on {words[table]}" if table else "")
        yield _described(own_objects.PG_CONSTRAINT, _oid(row), text, table)
    for row in classes.pg_attrdef(catalog):
        table = _number(row["adrelid"])
        text = f"default value for column {columns[table, _number(row['adnum'])]} of {words[table]}"
        yield _described(own_objects.PG_ATTRDEF, _oid(row), text, table)
    for row in classes.pg_rewrite(catalog):
        table = _number(row["ev_class"])
        yield _described(own_objects.PG_REWRITE, _oid(row), f"rule {row['rulename']} on {words[table]}", table)
    yield from _of_expressions(catalog)
    for classid, word, column, filler in _NAMED:
        for row in filler(catalog):
            yield _described(classid, _oid(row), f"{word} {row[column]}")


def _of_expressions(catalog: Catalog) -> Iterator[Row]:
    """Types, and operators, functions and similar objects over their values."""
    types: dict[int, str] = {}
    for row in type_names(catalog):
        types[_oid(row)] = f"{row['head']}{row['tail']}"
        yield _described(own_objects.PG_TYPE, _oid(row), f"type {types[_oid(row)]}")
    for row in function_names(catalog):
        yield _described(own_objects.PG_PROC, _oid(row), f"function {row['alone']}{row['types']}")
    for oid, name in operator_names(catalog, "regoperator").items():
        yield _described(own_objects.PG_OPERATOR, oid, f"operator {name}")
    for row in (*rows("pg_cast"), *extension_members.rows_of(catalog, "pg_cast")):
        source, target = (types.get(_number(row[column]), "") for column in ("castsource", "casttarget"))
        yield _described(own_objects.PG_CAST, _oid(row), f"cast from {source} to {target}")
    methods = {_oid(row): quote_name(str(row["amname"])) for row in rows("pg_am")}
    for classid, name, column, word in (
        (own_objects.PG_OPCLASS, "pg_opclass", "opc", "operator class"),
        (own_objects.PG_OPFAMILY, "pg_opfamily", "opf", "operator family"),
    ):
        for row in (*rows(name), *extension_members.rows_of(catalog, name)):
            method = methods[_number(row[f"{column}method"])]
            text = f"{word} {quote_name(str(row[f'{column}name']))} for access method {method}"
            yield _described(classid, _oid(row), text)


def _stored(name: str) -> Callable[[Catalog], Iterator[Mapping[str, object]]]:
    return lambda catalog: rows(name)


#: Catalogs whose objects are described by a word and a name: oid, word, the name's column, rows.
_NAMED: Final[tuple[tuple[int, str, str, Callable[[Catalog], Iterator[Mapping[str, object]]]], ...]] = (
    (own_objects.PG_NAMESPACE, "schema", "nspname", cluster.pg_namespace),
    (own_objects.PG_EXTENSION, "extension", "extname", cluster.pg_extension),
    (own_objects.PG_AUTHID, "role", "rolname", cluster.pg_authid),
    (own_objects.PG_DATABASE, "database", "datname", cluster.pg_database),
    (own_objects.PG_TABLESPACE, "tablespace", "spcname", cluster.pg_tablespace),
    (own_objects.PG_LANGUAGE, "language", "lanname", _stored("pg_language")),
    (own_objects.PG_COLLATION, "collation", "collname", _stored("pg_collation")),
    (own_objects.PG_FOREIGN_DATA_WRAPPER, "foreign-data wrapper", "fdwname", cluster.pg_foreign_data_wrapper),
    (own_objects.PG_FOREIGN_SERVER, "server", "srvname", cluster.pg_foreign_server),
)


def _described(classid: int, oid: int, text: str, target: int = 0) -> Row:
    return {"classid": classid, "oid": oid, "text": text, "target": target or None}


def _oid(row: Mapping[str, object]) -> int:
    return _number(row["oid"])


def _number(value: object) -> int:
    return int(str(value))

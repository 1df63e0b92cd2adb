"""Texts by oid: functions' signatures, names of types and relations, and the grammar's keywords.

Owns: the rows that pg_get_function_arguments(), format_type(), regclass and pg_get_keywords() look up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from catalog.catalog import Catalog
from catalog.objects import PG_TEMP, Schema
from catalog.postgres import MEMBERS, rows, types
from catalog.system.own_objects import TEMPORARY, prefix
from catalog.system.relations import extension_members
from catalog.system.relations.classes import pg_class
from catalog.system.relations.routines import own_names, own_signatures
from catalog.system.relations.types import pg_type
from catalog.system.rows import Row
from catalog.values.identifiers import quote_name
from catalog.values.types import DISPLAY

SIGNATURE: Final = ("arguments", "identity", "result", "definition")
KEYWORD: Final = ("word", "catcode", "barelabel", "catdesc", "baredesc")


def signatures(catalog: Catalog) -> Iterator[Row]:
    """The parameters and results of functions."""
    for row in (*rows("signatures"), *extension_members.rows_of(catalog, "signatures")):
        yield {"oid": int(str(row["oid"])), **{name: row[name] for name in SIGNATURE[:3]}}
    names = {int(str(row["oid"])): f"{row['head']}{row['tail']}" for row in type_names(catalog)}
    yield from own_signatures(catalog, names)


def keywords(catalog: Catalog) -> Iterator[Row]:
    """The keywords of the grammar."""
    yield from rows("keywords")


def token_types(catalog: Catalog) -> Iterator[Row]:
    """The token types of the text search parser."""
    for row in rows("token_types"):
        yield {**row, "tokid": int(str(row["tokid"]))}


def encodings(catalog: Catalog) -> Iterator[Row]:
    """The encodings, with PostgreSQL's numbers."""
    for row in rows("encodings"):
        yield {**row, "encoding": int(str(row["encoding"]))}


TYPE: Final = ("head", "tail", "plain", "alias", "within")
FUNCTION: Final = ("shown", "alone", "types")
#: Names with a type's modifier in their middle.
_TAILS: Final = (" without time zone", " with time zone")


def type_names(catalog: Catalog) -> Iterator[Row]:
    """The parts of the names that format_type() returns: ``head`` and ``tail`` surround a modifier, ``plain`` is
    without one.

    ``element`` is the type whose modifier it is, and ``within`` the schema; ``head`` includes the schema if the path
    finds another type.
    """
    known, homes = types(), extension_members.homes(catalog)
    for item in known.values():
        if item.oid in MEMBERS and item.oid not in homes:
            continue
        is_array = item.category == "A" and item.length == -1 and item.name.startswith("_")
        base = known[item.element] if is_array else item
        name = DISPLAY.get(base.name, _LONGER.get(base.name, quote_name(base.name)))
        tail = next((tail for tail in _TAILS if name.endswith(tail)), "")
        suffix = "[]" if is_array else ""
        yield {
            "oid": item.oid,
            "element": base.oid,
            "head": prefix(homes.get(item.oid, "")) + name.removesuffix(tail),
            "tail": tail + suffix,
            "plain": name + suffix,
            "alias": item.name,
            "within": homes.get(item.oid, ""),
        }
    names: dict[object, tuple[str, str]] = {}
    for row in pg_type(catalog):
        alias, element = str(row["typname"]), row.get("typelem", 0)
        schema = _schema_name(catalog, int(str(row["typnamespace"])))
        name = quote_name(alias)
        head, plain = (f"{text}[]" for text in names[element]) if element else (prefix(schema) + name, name)
        names[row["oid"]] = head, plain
        yield {"oid": row["oid"], "element": 0, "head": head, "tail": "", "plain": plain, "alias": alias,
               "within": schema}  # fmt: skip


RELATION: Final = ("written", "within")


def relation_names(catalog: Catalog) -> Iterator[Row]:
    """The texts that regclass reads as a relation or index: ``within`` is the schema that the path must contain, or
    ''."""
    for row in (*rows("pg_class"), *pg_class(catalog)):
        oid, name = int(str(row["oid"])), str(row["relname"])
        schema = _schema_name(catalog, int(str(row["relnamespace"])))
        for written in {name, quote_name(name)}:
            yield {"oid": oid, "written": written, "within": schema}
        for written in {f"{schema}.{name}", f"{quote_name(schema)}.{quote_name(name)}"}:
            yield {"oid": oid, "written": written, "within": ""}


def _schema_name(catalog: Catalog, oid: int) -> str:
    schema = Schema(oid, PG_TEMP) if oid == TEMPORARY else catalog.schema(oid)
    return "" if schema is None else schema.name


#: The settings that Millstream stores, as DISPLAY writes them.
_LONGER: Final = {
    "timetz": "time with time zone",
    "varbit": "bit varying",
    "char": '"char"',
    **{name: name for name in ("bit", "interval", "numeric")},  # names of the grammar
}


def function_names(catalog: Catalog) -> Iterator[Row]:
    """Functions by name, as regproc and regprocedure show them: a name that several functions have is qualified."""
    found = list(rows("pg_proc"))
    counts = Counter(row["proname"] for row in found)
    names = {int(str(item["oid"])): f"{item['head']}{item['tail']}" for item in type_names(catalog)}
    for row in found:
        name = quote_name(str(row["proname"]))
        arguments = ",".join(names[int(oid)] for oid in str(row["proargtypes"] or "").split())
        shown = name if counts[row["proname"]] == 1 else f"pg_catalog.{name}"
        yield {"oid": int(str(row["oid"])), "shown": shown, "alone": name, "types": f"({arguments})"}
    yield from extension_members.function_names(catalog)
    yield from own_names(catalog, names)

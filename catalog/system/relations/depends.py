"""pg_depend: the dependencies that clients follow.

Owns: the dependencies of constraints and indexes on their columns, of indexes on constraints, of foreign keys on the
other table's key, of sequences on the columns that own them, of views' rules on what the views read, of defaults on the
sequences that they call, of relations on their types, and of members on their extension.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from catalog.catalog import Catalog
from catalog.objects import Domain, ForeignKey, Indexed, Sequence, SystemView, Table, View, keys_of
from catalog.routines import every
from catalog.system.own_objects import (
    EXTENSION,
    OWN_SCHEMA,
    PG_ATTRDEF,
    PG_CLASS,
    PG_CONSTRAINT,
    PG_EXTENSION,
    PG_FOREIGN_DATA_WRAPPER,
    PG_FOREIGN_SERVER,
    PG_NAMESPACE,
    PG_PROC,
    PG_REWRITE,
    PG_TYPE,
    own_objects,
)
from catalog.system.relations.cluster import SERVERS
from catalog.system.relations.extension_members import depends
from catalog.system.relations.indexes import serves, used_places
from catalog.system.rows import Row
from catalog.values.identifiers import quote_name
from catalog.values.oids import part_oid, row_oid
from catalog.values.types import Composite, SqlType

_NEXTVAL: Final = re.compile(r"\bnextval\((\d+)")


def pg_depend(catalog: Catalog) -> Iterator[Row]:
    """All rows of pg_depend."""
    yield from _members(catalog)
    yield from depends(catalog)
    for item in own_objects(catalog):
        match item:
            case Sequence():
                yield from _owned(catalog, item)
            case View():
                yield from _rule(item)
                yield from _of_indexes(item)
            case Table():
                yield from _of_table(catalog, item)
            case _:
                pass
        types = {column.domain | 1 if column.domain else _named(column.type) for column in item.columns}
        yield from _on_types(catalog, item.oid, types)
        if not isinstance(item, Sequence):  # the type of the relation's rows
            yield _depends((PG_TYPE, row_oid(item.oid)), (PG_CLASS, item.oid), "i")
    for declared in catalog.types.values():
        if isinstance(declared, Domain):
            below = declared.parent | 1 if declared.parent else declared.base.oid
            if catalog.declared(below) is not None:
                yield _depends((PG_TYPE, declared.oid), (PG_TYPE, below), "n")
    for function in every(catalog.functions):
        if not function.extension:
            own = {oid | 1 for oid in function.named_types if catalog.type_of(oid) is not None}  # arrays' element types
            yield from (_depends((PG_PROC, function.oid), (PG_TYPE, oid), "n") for oid in sorted(own))


def _members(catalog: Catalog) -> Iterator[Row]:
    """The members of Millstream's extension: the schema and its views, and the servers of foreign tables."""
    members = [(PG_NAMESPACE, catalog.schemas[OWN_SCHEMA].oid)]
    members += [(PG_CLASS, item.oid) for item in own_objects(catalog) if isinstance(item, SystemView)]
    for name in SERVERS:
        server = (PG_FOREIGN_SERVER, part_oid(0, "server", name))
        members += [(PG_FOREIGN_DATA_WRAPPER, part_oid(0, "wrapper", name)), server]
    for member in members:
        yield _depends(member, (PG_EXTENSION, EXTENSION), "e")


def _owned(catalog: Catalog, item: Sequence) -> Iterator[Row]:
    table = None if item.owner is None else catalog.objects.get(item.owner[0])
    if item.owner is not None and isinstance(table, Table):
        names = [column.name for column in table.columns]
        place = names.index(item.owner[1])
        how = "i" if table.columns[place].identity else "a"
        yield _depends((PG_CLASS, item.oid), (PG_CLASS, table.oid), how, place + 1)


def serial_sequences(catalog: Catalog) -> Iterator[Row]:
    """The sequences owned by columns, as pg_get_serial_sequence() shows them."""
    known: set[tuple[int, str]] = set()
    for item in own_objects(catalog):
        if not isinstance(item, Sequence) or item.owner is None or item.owner in known:
            continue
        known.add(item.owner)
        relation, name = item.owner
        shown = f"{quote_name(item.schema)}.{quote_name(item.name)}"
        yield {"oid": item.oid, "relation": relation, "attname": name, "shown": shown}


def _rule(view: View) -> Iterator[Row]:
    rule = (PG_REWRITE, part_oid(view.oid, "rule"))
    yield _depends(rule, (PG_CLASS, view.oid), "i")
    for oid in dict.fromkeys((*view.depends_on, *(oid for _, _, oid in view.names))):
        yield _depends(rule, (PG_CLASS, oid), "n")


def _of_table(catalog: Catalog, table: Table) -> Iterator[Row]:
    yield from _of_indexes(table)
    yield from _of_checks(table)
    for reference in table.foreign_keys:
        yield from _of_reference(catalog, table, reference)
    yield from _of_defaults(table)


def _of_indexes(table: Indexed) -> Iterator[Row]:
    """An index depends on its columns; the index of a constraint depends on the constraint, which depends on its
    columns."""
    for key in keys_of(table):
        index = (PG_CLASS, part_oid(table.oid, "index", key.name))
        constraint = (PG_CONSTRAINT, part_oid(table.oid, "constraint", key.name))
        yield from _on_columns(index if key.index else constraint, table, key.columns)
        if not key.index:
            yield _depends(index, constraint, "i")
    for item in table.indexes:
        index = (PG_CLASS, part_oid(table.oid, "index", item.name))
        yield from _on_columns(index, table, item.columns)
        if not set(item.parts) & set(item.columns):  # all parts are computed: it depends on the table
            yield _depends(index, (PG_CLASS, table.oid), "a")


def _of_checks(table: Table) -> Iterator[Row]:
    for check in table.checks:
        own = (PG_CONSTRAINT, part_oid(table.oid, "constraint", check.name))
        used = [table.columns[place - 1].name for place in used_places(table, check.expression)]
        yield from _on_columns(own, table, used)
        yield from _on_columns(own, table, used, "n")  # and the columns in its expressions


def _of_reference(catalog: Catalog, table: Table, reference: ForeignKey) -> Iterator[Row]:
    own = (PG_CONSTRAINT, part_oid(table.oid, "constraint", reference.name))
    yield from _on_columns(own, table, reference.columns)
    target = catalog.objects.get(reference.target)
    if not isinstance(target, Table):
        return
    yield from _on_columns(own, target, reference.target_columns, "n")
    keys = [key for key in target.keys if serves(key, reference)]
    if keys:
        yield _depends(own, (PG_CLASS, part_oid(target.oid, "index", keys[0].name)), "n")


def _of_defaults(table: Table) -> Iterator[Row]:
    relation = (PG_CLASS, table.oid)
    for place, column in enumerate(table.columns, 1):
        default = (PG_ATTRDEF, part_oid(table.oid, "default", column.name))
        if column.default is not None and not column.identity:
            yield _depends(default, relation, "a", place)
            for match in _NEXTVAL.finditer(column.default):
                yield _depends(default, (PG_CLASS, int(match[1])), "n")
        if column.generated is not None:
            yield _depends(default, relation, "i", place)
            for used in used_places(table, column.generated):
                yield _depends(default, relation, "n", used)


def _on_columns(what: tuple[int, int], table: Indexed, columns: Collection[str], how: str = "a") -> Iterator[Row]:
    """Dependencies on each of some columns: automatic, or normal (n), which prevents that the column is dropped."""
    for place, column in enumerate(table.columns, 1):
        if column.name in columns:
            yield _depends(what, (PG_CLASS, table.oid), how, place)


def _on_types(catalog: Catalog, relation: int, types: set[int]) -> Iterator[Row]:
    for oid in sorted(types):
        declared = catalog.declared(oid)
        if declared is not None:
            known = declared.type_oid if isinstance(declared, Composite) else oid
            yield _depends((PG_CLASS, relation), (PG_TYPE, known), "n")


def _named(kind: SqlType) -> int:
    """The oid of the user-defined type of an SqlType, as in the catalog."""
    return kind.oid if kind.row is None else kind.row.oid


def _depends(what: tuple[int, int], on: tuple[int, int], how: str, column: int = 0) -> Row:
    return {
        "classid": what[0],
        "objid": what[1],
        "refclassid": on[0],
        "refobjid": on[1],
        "refobjsubid": column,
        "deptype": how,
    }

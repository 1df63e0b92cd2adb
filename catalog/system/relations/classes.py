"""Relations and their columns: pg_class, pg_attribute, pg_attrdef, pg_sequence, pg_description.

Owns: how tables, streams, views, indexes and sequences appear there. A stream is a foreign table, and so is a table
over files; a continuous view is a view, since clients may use it like one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from catalog.catalog import Catalog
from catalog.objects import (
    PG_TEMP,
    CatalogObject,
    Check,
    ColumnDefinition,
    FileTable,
    ForeignKey,
    Index,
    Indexed,
    Sequence,
    Stream,
    SystemView,
    Table,
    UniqueKey,
    View,
    column_grants,
    keys_of,
)
from catalog.postgres import rows
from catalog.routines import every
from catalog.system.own_objects import (
    PG_CLASS,
    PG_CONSTRAINT,
    PG_EXTENSION,
    PG_NAMESPACE,
    PG_PROC,
    PG_TYPE,
    PLPGSQL_COMMENT,
    PLPGSQL_OID,
    acl_of,
    default_text,
    own_objects,
    rights_of,
    schema_oid,
)
from catalog.system.relations.indexes import IndexEntry, indexes_of
from catalog.system.relations.types import domain_constraints
from catalog.system.rows import Row
from catalog.values.oids import part_oid, row_oid
from catalog.values.types import Composite, SqlType

#: Access methods.
_HEAP = 2
#: Access methods of indexes.
_METHODS: Final = {"btree": 403, "hash": 405, "gist": 783, "gin": 2742, "spgist": 4000, "brin": 3580}
#: Schemas whose comments are PostgreSQL's data.
_TOLD: Final = (11, 2200)


def kind_of(item: CatalogObject) -> str:
    """pg_class.relkind."""
    match item:
        case Table():
            return "r"
        case Stream() | FileTable():
            return "f"
        case Sequence():
            return "S"
        case View(materialized=True):
            return "m"
        case View() | SystemView():
            return "v"


def pg_class(catalog: Catalog) -> Iterator[Row]:
    """Relations and indexes."""
    tables = [item for item in catalog.objects.values() if isinstance(item, Table)]
    referenced = {reference.target for table in tables for reference in table.foreign_keys}
    for item in own_objects(catalog):
        # PostgreSQL checks foreign keys with triggers on both tables; psql looks for foreign keys only if there are
        # triggers.
        checked = item.oid in referenced or (isinstance(item, Table) and bool(item.foreign_keys))
        yield {**_relation(catalog, item), "relhastriggers": checked}
        if isinstance(item, Table | View):
            for index in indexes_of(item):
                yield _index(catalog, item, index)
    for composite in _composites(catalog):
        yield _of_type_alone(catalog, composite)


def _composites(catalog: Catalog) -> Iterator[Composite]:
    return (item for item in catalog.types.values() if isinstance(item, Composite))


def _of_type_alone(catalog: Catalog, item: Composite) -> Row:
    """A composite type, as a relation without rows."""
    return {
        "oid": item.oid,
        "relname": item.name,
        "relnamespace": schema_oid(catalog, item.schema),
        "reltype": item.type_oid,
        "relowner": catalog.rights_of(item.oid).owner,
        "relpersistence": "p",
        "relkind": "c",
        "relnatts": len(item.fields),
        "relispopulated": True,
        "relreplident": "n",
    }


def _relation(catalog: Catalog, item: CatalogObject) -> Row:
    table = item if isinstance(item, Table) else None
    owner, acl = rights_of(catalog, item.oid)
    return {
        "oid": item.oid,
        "relname": item.name,
        "relnamespace": schema_oid(catalog, item.schema),
        "reltype": row_oid(item.oid) if not isinstance(item, Sequence) else 0,
        "relowner": owner,
        "relacl": acl,
        "relam": _HEAP if table is not None else 0,
        "relfilenode": item.oid if isinstance(item, Table | Sequence) else 0,
        "reltuples": -1.0,
        "relhasindex": isinstance(item, Table | View) and bool(keys_of(item) or item.indexes),
        "relpersistence": "t" if item.schema == PG_TEMP else "p",
        "relkind": kind_of(item),
        "relnatts": len(item.columns),
        "relchecks": len(table.checks) if table is not None else 0,
        "relhasrules": isinstance(item, View | SystemView),
        "relispopulated": item.populated if isinstance(item, View) else True,
        "relreplident": "d" if table is not None or (isinstance(item, View) and item.materialized) else "n",
        "reloptions": [f"{name}={value}" for name, value in item.options] or None if isinstance(item, View) else None,
    }


def _index(catalog: Catalog, table: Indexed, index: IndexEntry) -> Row:
    return {
        "oid": index.oid,
        "relname": index.name,
        "relnamespace": schema_oid(catalog, table.schema),
        "relowner": rights_of(catalog, table.oid)[0],
        "relam": _METHODS[index.method],
        "relfilenode": index.oid,
        "relpersistence": "t" if table.schema == PG_TEMP else "p",
        "relkind": "i",
        "relnatts": len(index.parts),
        "relispopulated": True,
        "relreplident": "n",
    }


def pg_attribute(catalog: Catalog) -> Iterator[Row]:
    """Columns of relations and indexes."""
    for item in own_objects(catalog):
        for place, column in enumerate(item.columns, 1):
            acl = acl_of(catalog, column_grants(column)) if column.grants else None
            yield {**_attribute(item.oid, place, column), "attacl": acl}
        if isinstance(item, Table):
            yield from _system_attributes(item.oid)
        if isinstance(item, Table | View):
            for index in indexes_of(item):
                for place, name in enumerate(index.labels):
                    part = index.columns[place]
                    domain = {"atttypid": part.domain, "atttypmod": -1} if part is not None and part.domain else {}
                    yield {**_of_type(index.oid, place + 1, index.type(place)), **domain, "attname": name}
    for composite in _composites(catalog):
        for place, (name, kind) in enumerate(composite.fields, 1):
            field = ColumnDefinition(name, kind, domain=composite.domain(place - 1))
            yield _attribute(composite.oid, place, field)


#: System columns of a table with their types and these types' alignments, from the number -1 downwards.
_SYSTEM_COLUMNS: Final = (
    *(("ctid", "tid", "s"), ("xmin", "xid", "i"), ("cmin", "cid", "i")),
    *(("xmax", "xid", "i"), ("cmax", "cid", "i"), ("tableoid", "oid", "i")),
)


def _system_attributes(relation: int) -> Iterator[Row]:
    for place, (name, kind, alignment) in enumerate(_SYSTEM_COLUMNS, 1):
        row = _of_type(relation, -place, SqlType(kind))
        row = {**row, "attnotnull": True, "attstattarget": 0, "attbyval": kind != "tid", "attalign": alignment}
        yield {**row, "attname": name}


def _attribute(relation: int, place: int, column: ColumnDefinition) -> Row:
    return {
        **_of_type(relation, place, column.type),
        **({"atttypid": column.domain, "atttypmod": -1} if column.domain else {}),
        **({"atttypmod": -1} if column.is_computed else {}),
        **({"attcollation": column.collation} if column.collation else {}),
        "attname": column.name,
        "attnotnull": column.not_null,
        "atthasdef": _shown_default(column) is not None,
        "attidentity": column.identity,
        "attgenerated": "s" if column.generated is not None else "",
    }


def _of_type(relation: int, place: int, kind: SqlType | None) -> Row:
    """The fields that a column takes from its type; those of an index's computed column are not read."""
    row: Row = {
        "attrelid": relation,
        "attnum": place,
        "attstattarget": -1,
        "attcacheoff": -1,
        "attislocal": True,
        "atttypmod": -1,
        "attalign": "i",
        "attstorage": "p",
    }
    if kind is None:
        return {**row, "atttypid": 25, "attlen": -1, "attcollation": 100}
    collation = 100 if kind.category == "S" else 0
    return {
        **row,
        "atttypid": kind.oid,
        "attlen": kind.length,
        "atttypmod": _typmod(kind),
        "attndims": 2 if kind.name == "shaped" else 1 if kind.element is not None else 0,
        "attbyval": 0 < kind.length <= 8 and kind.name != "array",
        "attcollation": 950 if kind.name == "name" else collation,
        "attstorage": _storage(kind),
    }


def _storage(kind: SqlType) -> str:
    if kind.name in ("numeric", "inet", "cidr"):
        return "m"
    return "x" if kind.length < 0 and kind.name != "tsquery" else "p"


def _typmod(kind: SqlType) -> int:
    while kind.element is not None:
        kind = kind.element
    return kind.typmod


def _shown_default(column: ColumnDefinition) -> str | None:
    """The text of a default or of a generated column; an identity column's default is not shown."""
    if column.generated is not None:
        return column.generated
    return None if column.identity else column.default


def pg_attrdef(catalog: Catalog) -> Iterator[Row]:
    """Defaults, and the expressions of generated columns."""
    for item in own_objects(catalog):
        for place, column in enumerate(item.columns, 1):
            text = _shown_default(column)
            if text is not None:
                yield {
                    "oid": part_oid(item.oid, "default", column.name),
                    "adrelid": item.oid,
                    "adnum": place,
                    "adbin": default_text(catalog, text),
                }


def pg_sequence(catalog: Catalog) -> Iterator[Row]:
    """Sequences' parameters."""
    for item in own_objects(catalog):
        if isinstance(item, Sequence):
            yield {
                "seqrelid": item.oid,
                "seqtypid": item.type.oid,
                "seqstart": item.start,
                "seqincrement": item.increment,
                "seqmax": item.maximum,
                "seqmin": item.minimum,
                "seqcache": item.cache,
                "seqcycle": item.cycle,
            }


def pg_description(catalog: Catalog) -> Iterator[Row]:
    """Comments on schemas, types, functions, relations and columns."""
    for schema in catalog.schemas.values():
        if schema.comment is not None and schema.oid not in _TOLD:
            yield {"objoid": schema.oid, "classoid": PG_NAMESPACE, "description": schema.comment}
    yield {"objoid": PLPGSQL_OID, "classoid": PG_EXTENSION, "description": PLPGSQL_COMMENT}
    for extension in catalog.extensions.values():
        if extension.comment is not None:
            yield {"objoid": extension.oid, "classoid": PG_EXTENSION, "description": extension.comment}
    for declared in catalog.types.values():
        if declared.comment is not None:
            oid = declared.type_oid if isinstance(declared, Composite) else declared.oid
            yield {"objoid": oid, "classoid": PG_TYPE, "description": declared.comment}
        if isinstance(declared, Composite):
            yield from _attribute_comments(declared)
    for function in every(catalog.functions):
        if function.comment is not None:
            yield {"objoid": function.oid, "classoid": PG_PROC, "description": function.comment}
    for oid, _, check, _ in domain_constraints(catalog):
        if check.comment is not None:
            yield {"objoid": oid, "classoid": PG_CONSTRAINT, "description": check.comment}
    for item in own_objects(catalog):
        if isinstance(item, SystemView):
            continue
        if item.comment is not None:
            yield {"objoid": item.oid, "classoid": PG_CLASS, "description": item.comment}
        if isinstance(item, Table | View):
            yield from _part_comments(item)
        for place, column in enumerate(item.columns, 1):
            if column.comment is not None:
                yield {"objoid": item.oid, "classoid": PG_CLASS, "objsubid": place, "description": column.comment}


def _attribute_comments(declared: Composite) -> Iterator[Row]:
    places = {name: place for place, (name, _) in enumerate(declared.fields, 1)}
    for name, comment in declared.comments:
        yield {"objoid": declared.oid, "classoid": PG_CLASS, "objsubid": places[name], "description": comment}


def _part_comments(table: Indexed) -> Iterator[Row]:
    """Comments on a table's constraints, and on the indexes of a table or view."""
    parts: tuple[UniqueKey | ForeignKey | Check | Index, ...] = table.indexes
    if isinstance(table, Table):
        parts = (*table.keys, *table.foreign_keys, *table.checks, *parts)
    for part in parts:
        if part.comment is not None:
            is_index = isinstance(part, Index) or (isinstance(part, UniqueKey) and part.index)
            yield _part_comment(table, part.name, is_index, part.comment)
    for key in keys_of(table):
        if key.index_comment is not None:
            yield _part_comment(table, key.name, True, key.index_comment)


def _part_comment(table: Indexed, name: str, is_index: bool, comment: str) -> Row:
    oid = part_oid(table.oid, "index" if is_index else "constraint", name)
    return {"objoid": oid, "classoid": PG_CLASS if is_index else PG_CONSTRAINT, "description": comment}


def pg_rewrite(catalog: Catalog) -> Iterator[Row]:
    """The rules of views."""
    stored = (int(str(row["oid"])) for row in rows("pg_class") if row["relkind"] == "v")
    for oid in (*stored, *(item.oid for item in own_objects(catalog) if kind_of(item) in "vm")):
        yield {
            "oid": part_oid(oid, "rule"),
            "rulename": "_RETURN",
            "ev_class": oid,
            "ev_type": "1",
            "ev_enabled": "O",
            "is_instead": True,
        }


def pg_foreign_table(catalog: Catalog) -> Iterator[Row]:
    """Streams, and tables over files. In a dump, a stream of another server becomes a local stream, as it has no
    options of its own."""
    for item in own_objects(catalog):
        if isinstance(item, Stream | FileTable):
            server = part_oid(0, "server", "stream" if isinstance(item, Stream) else "files")
            is_guest = isinstance(item, Stream) and item.option("server") != ""
            options = [f"{name}={value}" for name, value in item.options if not is_guest] or None
            yield {"ftrelid": item.oid, "ftserver": server, "ftoptions": options}

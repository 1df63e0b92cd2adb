"""pg_catalog and information_schema: relations computed from one version of the catalog.

Owns: ``system_catalog``, the initial objects of every catalog, and ``rows_of``, a relation's rows. PostgreSQL's own
rows of a relation are in a file of ``catalog.postgres``; a function in one of the files here, one per family, adds
Millstream's rows. A relation without either is empty, as Millstream has no such objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Final

import pyarrow as pa

from catalog.catalog import Catalog
from catalog.objects import PG_CATALOG, ColumnDefinition, SystemView
from catalog.read_set import Look, Seen
from catalog.system.declarations import system_relations
from catalog.system.functions import LOOKUPS
from catalog.system.names import descriptions, lookup_texts
from catalog.system.own_objects import MARK, as_seen
from catalog.system.relations import classes, cluster, depends, indexes, privileges, routines, types
from catalog.system.relations.extension_members import member_rows
from catalog.system.rows import Row, table_of
from catalog.system.stored import stored
from catalog.system.visibility import VISIBILITY, Visibility
from catalog.values.types import BOOL, FLOAT8, INT4, INT8, OID, TEXT, SqlType

Filler = Callable[[Catalog], Iterator[Row]]
FILLERS: Final[Mapping[str, Filler]] = {
    item.__name__: item
    for item in (
        classes.pg_class,
        classes.pg_attribute,
        classes.pg_attrdef,
        types.pg_type,
        types.pg_enum,
        classes.pg_sequence,
        classes.pg_description,
        classes.pg_rewrite,
        classes.pg_foreign_table,
        indexes.pg_index,
        indexes.pg_constraint,
        depends.pg_depend,
        depends.serial_sequences,
        cluster.pg_namespace,
        cluster.pg_database,
        cluster.pg_authid,
        cluster.pg_auth_members,
        cluster.pg_db_role_setting,
        privileges.held_privileges,
        privileges.held_columns,
        privileges.memberships,
        cluster.pg_tablespace,
        cluster.pg_extension,
        cluster.pg_available_extensions,
        cluster.pg_available_extension_versions,
        cluster.pg_default_acl,
        cluster.pg_init_privs,
        cluster.pg_foreign_server,
        cluster.pg_foreign_data_wrapper,
        indexes.index_definitions,
        indexes.constraint_definitions,
        indexes.pretty_expressions,
        routines.pg_proc,
        lookup_texts.signatures,
        lookup_texts.keywords,
        lookup_texts.token_types,
        lookup_texts.encodings,
        lookup_texts.type_names,
        lookup_texts.function_names,
        lookup_texts.relation_names,
        descriptions.object_descriptions,
    )
}


def _named(names: Sequence[str]) -> tuple[ColumnDefinition, ...]:
    return tuple(ColumnDefinition(name, TEXT) for name in names)


_OIDS: Final = (ColumnDefinition("oid", OID),)
_LOOKUPS: Final = {
    "view_definitions": (*_OIDS, *_named(("plain", "pretty"))),
    "index_definitions": (*_OIDS, ColumnDefinition("place", INT4), *_named(("definition", "pretty"))),
    "pretty_expressions": _named(("text", "pretty")),
    "constraint_definitions": (*_OIDS, *_named(("definition", "pretty"))),
    "signatures": (*_OIDS, *_named(lookup_texts.SIGNATURE)),
    "keywords": _named(lookup_texts.KEYWORD),
    "token_types": (ColumnDefinition("tokid", INT4), *_named(("alias", "description"))),
    "encodings": (ColumnDefinition("encoding", INT4), ColumnDefinition("name", TEXT)),
    "type_names": (*_OIDS, ColumnDefinition("element", OID), *_named(lookup_texts.TYPE)),
    "function_names": (*_OIDS, *_named(lookup_texts.FUNCTION)),
    "object_descriptions": (
        *(ColumnDefinition("classid", OID), *_OIDS, ColumnDefinition("target", OID)),
        ColumnDefinition("text", TEXT),
    ),
    "sizes": (*_OIDS, ColumnDefinition("bytes", INT8)),
    "log_position": (ColumnDefinition("lsn", SqlType("pg_lsn")),),
    "relation_names": (*_OIDS, *_named(lookup_texts.RELATION)),
    "shown_settings": _named(("name", "value")),
    "held_privileges": (ColumnDefinition("role", OID), ColumnDefinition("target", OID), *_named(("words",))),
    "held_columns": (
        *(ColumnDefinition(name, OID) for name in ("role", "target")),
        *(ColumnDefinition("place", INT4), ColumnDefinition("name", TEXT), ColumnDefinition("words", TEXT)),
    ),
    "memberships": (
        *(ColumnDefinition(name, OID) for name in ("member", "role")),
        *(ColumnDefinition(name, BOOL) for name in ("inherited", "admin")),
    ),
    "sequence_values": (*_OIDS, ColumnDefinition("last_value", INT8)),
    "listening_channels": _named(("channel",)),
    "own_connection": _named(("server_addr",)),
    "lock_waits": (ColumnDefinition("waiter", INT4), ColumnDefinition("blocker", INT4)),
    "notification_queue": (ColumnDefinition("usage", FLOAT8),),
    "view_updates": (*_OIDS, ColumnDefinition("place", INT4)),
    "serial_sequences": (*_OIDS, ColumnDefinition("relation", OID), *_named(("attname", "shown"))),
    "relation_visibility": tuple(map(ColumnDefinition, VISIBILITY, (OID, BOOL, TEXT))),
}
_FIRST: Final = 14_900


def system_catalog() -> Catalog:
    """A catalog with only the system relations."""
    catalog = Catalog()
    return catalog.with_system(
        (
            *system_relations(),
            *(SystemView(_FIRST + place, LOOKUPS, *item) for place, item in enumerate(_LOOKUPS.items())),
        )
    )


class _Kept:
    """Each relation's rows for the last catalogs in which it was read, with the read sets of the rows."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: dict[int, tuple[tuple[Seen, pa.Table], ...]] = {}

    def get(self, catalog: Catalog, view: SystemView) -> pa.Table:
        known = self._items.get(view.oid, ())
        for seen, found in known:
            if seen.holds(catalog):
                if seen.catalog is not catalog:  # frees the older catalog
                    others = tuple(item for item in known if item[1] is not found)
                    self._items[view.oid] = ((seen.within(catalog), found), *others)
                return found
        look = Look(catalog)
        found = _computed(look.catalog, view)
        self._items[view.oid] = ((look.seen, found), *known)[: self._limit]
        return found


_KEPT: Final = _Kept(2)


def rows_of(catalog: Catalog, view: SystemView) -> pa.Table:
    """A relation's rows in one version of the catalog."""
    return _KEPT.get(catalog, view)


#: Relations with texts that contain marks.
MARKED: Final = frozenset(
    (
        *("pg_attrdef", "pg_index", "pg_constraint", "pg_type", "pg_proc"),
        *(
            "constraint_definitions",
            "index_definitions",
            "pretty_expressions",
            "view_definitions",
            "type_names",
            "function_names",
            "object_descriptions",
            "signatures",
        ),
    )
)


#: What the last search paths find, with the rows from which it was computed.
_VISIBLE: Final[dict[tuple[str, ...], tuple[pa.Table, pa.Table, Visibility]]] = {}
_PATHS: Final = 16


def visibility(catalog: Catalog, path: tuple[str, ...]) -> Visibility:
    """The relations that a search path finds by their unqualified names."""
    classes, namespaces = (rows_of(catalog, _system_view(catalog, name)) for name in ("pg_class", "pg_namespace"))
    known = _VISIBLE.get(path)
    if known is not None and known[0] is classes and known[1] is namespaces:
        return known[2]
    if len(_VISIBLE) >= _PATHS:
        _VISIBLE.clear()
    found = Visibility(classes, namespaces, path)
    _VISIBLE[path] = classes, namespaces, found
    return found


def _system_view(catalog: Catalog, name: str) -> SystemView:
    view = catalog.objects[catalog.names[PG_CATALOG, name]]
    assert isinstance(view, SystemView), view
    return view


def seen_table(catalog: Catalog, table: pa.Table, path: tuple[str, ...]) -> pa.Table:
    """Rows with their texts as shown to a session with this search path."""
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        if pa.types.is_string(column.type) and _has_marks(column):
            named = visibility(catalog, path).named
            texts = [None if text is None else as_seen(catalog, named(text), path) for text in column.to_pylist()]
            table = table.set_column(place, table.schema.field(name), pa.array(texts, column.type))
    return table


def _has_marks(column: pa.ChunkedArray) -> bool:
    """Whether a column has marks; all texts are searched at once, as thousands of functions have none."""
    texts = (chunk.buffers()[2] for chunk in column.chunks)
    return any(MARK.encode() in text.to_pybytes() for text in texts if text is not None)


def _computed(catalog: Catalog, view: SystemView) -> pa.Table:
    filler = FILLERS.get(view.name)
    own = table_of(view.columns, () if filler is None else filler(catalog))
    if view.schema == LOOKUPS or not files("catalog.postgres").joinpath(f"{view.name}.tsv").is_file():
        return own
    return pa.concat_tables([stored(view.name, view.columns), *member_rows(catalog, view), own])

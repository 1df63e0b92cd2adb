"""FROM: tables, streams, views, subqueries and joins become one relation and the names that it offers.

Owns: scans with fresh columns, and expansion of ordinary views and WITH queries. Items between commas become inner
joins without a predicate; a rule moves WHERE into them. ``joins`` has JOIN, ``function_items`` has functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

from msgspec.structs import replace

from catalog.objects import PG_TEMP, CatalogObject, FileTable, Kind, Sequence, Stream, SystemView, Table, View
from catalog.values.errors import SqlError, unsupported
from planner.algebra.nodes import ColumnRef, Join, Project, Relation, Scan, Working
from planner.bind.from_items.derived_tables import derived
from planner.bind.from_items.function_items import bind_functions
from planner.bind.from_items.item_scopes import beside_each_other, renamed
from planner.bind.from_items.joins import bind_join
from planner.bind.from_items.table_samples import sampled
from planner.bind.lookup.relations import as_created, find_object, of_system
from planner.bind.lookup.type_names import declared_typmod
from planner.bind.state.context import restricted
from planner.bind.state.environment import Binding, Environment, InFrom, Level, Scope
from planner.bind.state.from_names import ANY_SCHEMA, BoundQuery, Entry, Source
from planner.bind.state.row_versions import placed
from planner.bind.state.with_names import Itself, Known, Refused, Returned
from planner.bind.with_queries.cte_columns import cte_names, read_returned
from planner.bind.with_queries.cte_queries import bind_cte, stand_in
from planner.bind.with_queries.shared_queries import read_shared
from planner.parse.parser import Raw, parse
from planner.statements.statement import Output


def bind_from(level: Level, items: tuple[Any, ...]) -> tuple[Relation, Scope]:
    """The cross product of FROM's items."""
    relation, scope = _item(level, items[0], False, Scope())
    for item in items[1:]:
        right, right_scope = _item(level, item, False, scope)
        relation = Join("inner", relation, right, None)
        scope = beside_each_other(scope, right_scope)
    return relation, replace(scope, outer=level.outer)


def _item(level: Level, node: Any, nullable: bool, beside: Scope) -> tuple[Relation, Scope]:
    """An item of FROM; ``beside`` is what LATERAL sees of the items to its left."""
    level.binding.count_relation()
    match type(node).__name__:
        case "RangeVar":
            return _named(level, node, nullable)
        case "RangeSubselect":
            return _subselect(level, node, nullable, beside)
        case "JoinExpr":
            return bind_join(level, node, nullable, beside, _item)
        case "RangeFunction":
            return bind_functions(level, node, nullable, beside)
        case "RangeTableSample":
            relation, scope = _item(level, node.relation, nullable, beside)
            env = Environment(level.binding, Scope(outer=level.outer), "TABLESAMPLE", level)
            return sampled(env, node, relation), scope
        case "JsonTable":
            instead = "Use jsonb_path_query() or jsonb_to_recordset()."
            raise unsupported("JSON_TABLE", instead, level.binding.position(node))
        case "RangeTableFunc":
            raise unsupported("XMLTABLE", "Parse the text in the client.", level.binding.position(node))
        case name:
            raise unsupported(name, position=level.binding.position(node))


def _named(level: Level, node: Any, nullable: bool) -> tuple[Relation, Scope]:
    if node.schemaname is None and (cte := level.ctes.get(node.relname)) is not None:
        return _reference(level, cte, node, nullable)
    try:
        found = find_object(level.binding, node)
    except SqlError as error:
        if error.sqlstate == "42P01" and node.schemaname is None and level.ctes.is_later(node.relname):
            words = "but it cannot be referenced from this part of the query."
            error.detail = f'There is a WITH item named "{node.relname}", {words}'
            error.hint = "Use WITH RECURSIVE, or re-order the WITH items to remove forward references."
        raise
    need = level.binding.need(found.oid)
    relation, scope = _read(level, node, nullable, found)
    need.columns = relation.columns
    return relation, scope


def _read(level: Level, node: Any, nullable: bool, found: CatalogObject) -> tuple[Relation, Scope]:
    if not isinstance(found, SystemView):
        level.binding.depends_on[found.oid] = None
    if isinstance(found, View) and not found.populated and not _is_within_materialized(level.binding):
        level.binding.unpopulated.append(found.name)
    if (isinstance(found, View) and is_expanded(level.binding, found)) or (
        isinstance(found, SystemView) and found.definition
    ):
        query, names = _known(level.binding, _of_view(_expand(level.binding, found), found), found)
        schema = schema_of(level.binding, node, found)
        return derived(level, query, names, node.alias, node.relname, node, nullable, schema, _row(found))
    if isinstance(found, Stream):
        level.binding.streams.append((found.name, level.binding.position(node)))
    if isinstance(found, View) and found.timed:
        level.binding.reads_time = True
    scan, scope = scan_object(level.binding, found, _alias(node), nullable, node.relname)
    relation, scope = with_place(level.binding, scan, scope)
    if node.alias is None:
        source = replace(scope.sources[0], schema=schema_of(level.binding, node, found))
        scope = replace(scope, sources=(source,))
    return relation, renamed(level.binding, scope, node.alias, node)


def is_expanded(binding: Binding, view: View) -> bool:
    """Whether a view is bound by its text: an ordinary one, or one without states that its transaction has not
    committed yet."""
    return not view.continuous or (view.derived and (binding.expands or view.created_lsn == 0))


def _is_within_materialized(binding: Binding) -> bool:
    """Whether what is bound is the text of a materialized view, which has rows of its own."""
    known = (binding.context.catalog.objects.get(oid) for oid in binding.views)
    return any(isinstance(item, View) and item.materialized for item in known)


def with_place(binding: Binding, scan: Scan, scope: Scope) -> tuple[Relation, Scope]:
    """A table's rows, with their places where the text speaks of these."""
    source = scope.sources[0]
    if not source.stored or not binding.speaks_of_places:
        return scan, scope
    relation, place = placed(binding, scan, source.stored)
    return relation, replace(scope, sources=(replace(source, place=place),))


def schema_of(binding: Binding, node: Any, found: CatalogObject) -> str:
    """The schema by which columns are qualified: a view's text has that of its creation."""
    return found.schema if binding.context.names is None else node.schemaname or ANY_SCHEMA


def _alias(node: Any) -> str | None:
    return node.alias.aliasname if node.alias is not None else None


_SCANS: Final[dict[type, Kind]] = {
    Table: "table",
    Stream: "stream",
    FileTable: "files",
    View: "view",
    SystemView: "system",
    Sequence: "system",
}


def scan_object(
    binding: Binding, item: CatalogObject, alias: str | None, nullable: bool, name: str | None = None
) -> tuple[Scan, Scope]:
    """All columns of a table, stream, continuous view or system view under fresh identities.

    Within a view's text these are the columns that it knows, as it calls them, and so is the relation's ``name``."""
    columns = tuple(
        binding.column(column.name, column.type, nullable or not column.not_null or isinstance(item, View | FileTable))
        for column in item.columns
    )
    names = tuple(column.name for column in item.columns)
    scan = Scan(item.oid, item.name, _SCANS[type(item)], columns, names)
    entries = tuple(
        Entry(
            label,
            ColumnRef(columns[index]),
            item.oid,
            index + 1,
            -1 if item.columns[index].is_computed else declared_typmod(item.columns[index].type),
            item.columns[index].not_null,
        )
        for label, index in labels_of(binding, item.oid, names)
    )
    by_name = dict(zip(names, columns, strict=True))
    keys = [key for key in item.keys if key.primary and not key.deferrable] if isinstance(item, Table) else []
    key = tuple(by_name[name] for name in keys[0].columns) if keys else ()
    schema = item.schema if alias is None else None
    called = item.name if name is None else name
    relation, oid = "" if alias is None else called, item.oid if _has_own_rows(item) else 0
    stored = columns if isinstance(item, Table) else ()
    source = Source(alias or called, entries, schema, key, relation, oid=oid, row=_row(item), stored=stored)
    return scan, Scope((source,), entries)


#: PostgreSQL's own tables have oids below, its views and information_schema's tables from here on.
_FIRST_VIEW: Final = 12_000


def _has_own_rows(item: CatalogObject) -> bool:
    """Whether rows belong to a relation, so that they have a tableoid: those of a view are others'."""
    return isinstance(item, Table) or (isinstance(item, SystemView) and item.oid < _FIRST_VIEW)


def _row(item: CatalogObject) -> int:
    """The oid of a relation that has a row type of its name; 0 for others."""
    return 0 if isinstance(item, SystemView | Sequence) else item.oid


def labels_of(binding: Binding, oid: int, names: tuple[str, ...]) -> list[tuple[str, int]]:
    """What columns are called where the statement stands, each with its place."""
    known = binding.context.reads.get(oid)
    if known is None:
        return [(name, place) for place, name in enumerate(names)]
    places = {name: place for place, name in enumerate(names)}
    return [(text, places[now]) for text, now in known if now in places]


@lru_cache(512)
def _parsed(definition: str) -> Raw:
    return parse(definition)[0]


@contextmanager
def in_view(binding: Binding, view: View | SystemView) -> Iterator[Any]:
    """The parse tree of an ordinary view's query, to be bound as it was when created, in the name of its owner, or
    (security_invoker) of the role that runs the statement.
    """
    context, reader, spoke = binding.context, binding.reader, binding.speaks_of_places
    binding.views.append(view.oid)
    binding.speaks_of_places = "ctid" in view.definition.lower()
    if isinstance(view, View) and view.reads_as_invoker:
        binding.reader = binding.caller
    elif view.schema != PG_TEMP:  # else its reader needs all
        owner = context.catalog.rights_of(view.oid).owner
        binding.reader = restricted(context.catalog, context.catalog.roles.name(owner))
    binding.context = as_created(context, view) if isinstance(view, View) else of_system(context)
    try:
        yield _parsed(view.definition).node
    finally:
        binding.context, binding.reader, binding.speaks_of_places = context, reader, spoke
        binding.views.pop()


def _expand(binding: Binding, view: View | SystemView) -> BoundQuery:
    """An ordinary view's query with fresh columns."""
    with in_view(binding, view) as node:
        return Level(binding).bind(node)


def _of_view(query: BoundQuery, view: View | SystemView) -> BoundQuery:
    """A view's columns are what its clients see, not those of the tables below it."""
    outputs = tuple(replace(item, table=view.oid, attribute=index + 1) for index, item in enumerate(query.outputs))
    return BoundQuery(query.relation, outputs)


def _known(binding: Binding, query: BoundQuery, view: View | SystemView) -> tuple[BoundQuery, tuple[str, ...]]:
    """The columns of a view that a text knows, and what it calls them: a view that is replaced may get more."""
    labels = labels_of(binding, view.oid, tuple(column.name for column in view.columns))
    names = tuple(name for name, _ in labels)
    if len(labels) == len(query.outputs):
        return query, names
    relation = query.relation
    columns = tuple((relation.columns[place], ColumnRef(relation.columns[place])) for _, place in labels)
    return BoundQuery(Project(relation, columns), tuple(query.outputs[place] for _, place in labels)), names


def _reference(level: Level, cte: InFrom, node: Any, nullable: bool) -> tuple[Relation, Scope]:
    binding = level.binding
    if isinstance(cte, Refused):
        raise SqlError(cte.sqlstate, cte.message, position=binding.position(node))
    if isinstance(cte, Itself):
        cte.places.append(binding.position(node))
        columns = tuple(binding.column(column.name, column.type) for column in cte.columns)
        outputs = (Output(item.name, item.type, typmod) for item, typmod in zip(columns, cte.typmods, strict=True))
        query = BoundQuery(Working(cte.name, columns, cte.columns), tuple(outputs))
        names = tuple(column.name for column in columns)
        relation, scope = derived(level, query, names, None, node.relname, node, nullable)
        return relation, renamed(binding, _with_hidden(scope, cte.hidden, node.alias), node.alias, node)
    elif isinstance(cte, Known):
        query, names = cte.query, cte.names
    elif isinstance(cte, Returned):
        query = read_returned(binding, cte)
        names = cte_names(binding, cte.node, query)
    else:
        query = stand_in(binding, cte) or read_shared(binding, cte) or bind_cte(binding, cte)
        names = cte_names(binding, cte.node, query)
    return derived(level, query, names, node.alias, node.relname, node, nullable)


def _with_hidden(scope: Scope, count: int, alias: Any) -> Scope:
    """An item of FROM by its alias, of whose columns the last are none of ``*``."""
    (source,) = scope.sources
    shown = source.entries[: len(source.entries) - count]
    hidden = source.entries[len(shown) :]
    name = source.name if alias is None else alias.aliasname
    return Scope((replace(source, name=name, entries=shown, hidden=hidden),), shown)


def _subselect(level: Level, node: Any, nullable: bool, beside: Scope) -> tuple[Relation, Scope]:
    inner = replace(level, outer=replace(beside, outer=level.outer)) if node.lateral else level
    before, level.binding.in_from = level.binding.in_from, True
    query = inner.bind(node.subquery)
    level.binding.in_from = before
    names = tuple(output.name for output in query.outputs)
    return derived(level, query, names, node.alias, "unnamed_subquery", node, nullable)

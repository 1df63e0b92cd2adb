"""Continuous views that read no stream: which ones there are, and REFRESH MATERIALIZED VIEW.

Owns: whether a view that asks for it (CREATE MATERIALIZED VIEW, WITH (maintained)) has a program of its own. Its rows
must depend on the rows of tables and of other continuous views alone, and its program must go on saying what its text
says, whatever is altered. All other views are ordinary ones, which are computed from their texts at each read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from catalog.objects import Index, View, is_temporary
from catalog.values.errors import SqlError
from catalog.values.identifiers import quote_name
from catalog.values.types import Enumeration
from planner.algebra.functions import DRAWN_FUNCTIONS, FUNCTIONS
from planner.algebra.nodes import Call, Relation, Scan
from planner.algebra.walk import walk
from planner.bind.binder import new_binding
from planner.bind.conversion.rows import refuse_rows
from planner.bind.definitions.types.enums import refuse_labels
from planner.bind.from_items.from_clause import in_view
from planner.bind.lookup.relations import require_named
from planner.bind.privileges import owns
from planner.bind.queries.select import bind_query
from planner.bind.state.environment import Binding
from planner.incremental.programs.labels import shown
from planner.statements.definitions import Redefine
from planner.statements.statement import CreateView, NoOperation, Query

#: The option that asks for a program.
MAINTAINED: Final = "maintained"
_REFRESH: Final = "REFRESH MATERIALIZED VIEW"
#: Functions of a row's place, for which all columns of its table count.
_OF_PLACES: Final = frozenset(("row_place", "row_version", "row_hash"))
_CHANGING: Final = frozenset(
    (*(name for name, function in FUNCTIONS.items() if function.volatility != "immutable"), *DRAWN_FUNCTIONS)
)


def changing_calls(relation: Relation) -> Iterator[Call]:
    """The calls whose values depend on the time or the role of the computation."""
    return (item for item in walk(relation) if isinstance(item, Call) and item.function in _CHANGING)


def is_over_stream(binding: Binding, query_node: Any) -> bool:
    """Whether a query reads a stream, itself or through ordinary views; False where it cannot be bound."""
    if not any(isinstance(item, View) and item.derived for item in binding.context.catalog.objects.values()):
        return False  # it makes no difference
    trial = new_binding(binding.context, binding.raw)
    trial.marks_rows = True
    try:
        bind_query(trial, query_node)
    except SqlError:
        return False
    return bool(trial.streams)


def wants_program(view: View) -> bool:
    """Whether a view asks to be a continuous one."""
    return view.materialized or dict(view.options).get(MAINTAINED) == "true"


def is_derivable(binding: Binding, view: View, query: Query) -> bool:
    """Whether a view over no stream can be a continuous one."""
    catalog = binding.context.catalog
    scans = [item for item in walk(query.relation) if isinstance(item, Scan)]
    return (
        bool(scans)
        and all(scan.kind in ("table", "view") for scan in scans)
        and not any(is_temporary(item) for item in (view, *(catalog.objects[oid] for oid in binding.depends_on)))
        and not view.reads_as_invoker
        and not query.volatile
        and next(changing_calls(query.relation), None) is None
        and not _may_change(binding, query.relation)
    )


def _may_change(binding: Binding, relation: Relation) -> bool:
    """Whether the text would mean something else when a function, a type or another column of a table is altered."""
    catalog = binding.context.catalog
    if binding.functions or not all(isinstance(catalog.declared(oid), Enumeration) for oid in binding.types.values()):
        return True
    if any(isinstance(item, Call) and item.function in _OF_PLACES for item in walk(relation)):
        return True
    try:
        refuse_rows(relation, None)
        refuse_labels(relation, None)
    except SqlError:
        return True
    return bool(shown((relation,)))


# --- REFRESH ---------------------------------------------------------------------------------------------------------


def bind_refresh(binding: Binding, node: Any) -> NoOperation | Redefine | CreateView:
    """REFRESH MATERIALIZED VIEW: these views are fresh whenever they are read, so that it fills one that was created
    WITH NO DATA, or empties one. An ordinary view that can be a continuous one becomes one."""
    found = require_named(binding, node.relation.relname, node.relation.schemaname)
    if not isinstance(found, View) or not (found.materialized or found.continuous or wants_program(found)):
        raise SqlError("42809", f'"{found.name}" is not a materialized view')
    if node.concurrent and node.skipData:
        raise SqlError("42601", "CONCURRENTLY and WITH NO DATA options cannot be used together")
    if binding.reader is not None and not owns(binding, found.oid, binding.reader):
        raise SqlError("42501", f"must be owner of materialized view {found.name}")
    if node.concurrent and not found.populated:
        message = "CONCURRENTLY cannot be used when the materialized view is not populated"
        raise SqlError("0A000", message)
    if node.concurrent and found.materialized and not any(map(_tells_rows_apart, found.indexes)):
        hint = "Create a unique index with no WHERE clause on one or more columns of the materialized view."
        name = f"{quote_name(found.schema)}.{quote_name(found.name)}"
        raise SqlError("55000", f'cannot refresh materialized view "{name}" concurrently', hint=hint)
    if found.keeps_rows:
        if node.skipData:
            instead = "Leave WITH NO DATA out: a view over streams has the rows that have arrived, and no others."
            raise SqlError("0A000", f"{_REFRESH} WITH NO DATA of a view over streams is not supported", hint=instead)
        return NoOperation(_REFRESH)
    if node.skipData:
        empty = replace(found, populated=False)
        return Redefine(_REFRESH, found, empty) if found.materialized and found.populated else NoOperation(_REFRESH)
    return _refreshed(binding, found)


def _refreshed(binding: Binding, view: View) -> NoOperation | Redefine | CreateView:
    below = (binding.context.catalog.objects.get(oid) for _, _, oid in view.names)
    for item in below:
        if not view.populated and isinstance(item, View) and not item.populated:
            raise not_populated(item.name)
    if not view.continuous:
        with in_view(binding, view) as query_node:
            query = bind_query(binding, query_node)
        if is_derivable(binding, view, query) and len(query.outputs) == len(view.columns):
            after = replace(view, continuous=True, derived=True, populated=True, created_lsn=0)
            return CreateView(after, query, refreshed=view)
    if view.populated:
        return NoOperation(_REFRESH)
    return Redefine(_REFRESH, view, replace(view, populated=True))


def not_populated(name: str) -> SqlError:
    """What a read of a materialized view raises that was created WITH NO DATA."""
    hint = "Use the REFRESH MATERIALIZED VIEW command."
    return SqlError("55000", f'materialized view "{name}" has not been populated', hint=hint)


def _tells_rows_apart(index: Index) -> bool:
    """Whether PostgreSQL compares rows by an index (is_usable_unique_index): a unique one of columns and all rows."""
    keys = index.parts[: len(index.parts) - index.included]
    names = {quote_name(name) for name in index.columns}
    return index.unique and index.predicate is None and all(part in names for part in keys)

"""CREATE OR REPLACE VIEW of an existing view.

Owns: what may change, and when a continuous view keeps its states. A new definition starts with the rows that are kept
of its streams, where all of them have a history; else it starts without rows, and needs WITH (restart = true). A view
that reads no stream takes any definition that an ordinary view takes. Two definitions are equal if their texts bind to
the same relation, whatever the names and the spelling; then the statement is ALTER VIEW ... SET.
"""

from __future__ import annotations

from msgspec.structs import replace

from catalog.objects import ColumnDefinition, Stream, View, as_plain
from catalog.values.errors import SqlError
from catalog.values.identifiers import quote_name
from planner.algebra.event_time import Keeping, Watermark
from planner.algebra.signature import signature
from planner.bind.definitions.dependents import above_replaced, bind_text
from planner.bind.definitions.relations.watermarks import keeping_of, watermarks_of
from planner.bind.definitions.view_definitions.derived_views import MAINTAINED
from planner.bind.definitions.view_definitions.view_options import START, changed_options, changes_query
from planner.bind.lookup.type_names import display
from planner.bind.state.environment import Binding
from planner.incremental.programs.zones import depends_on_zone
from planner.rules import optimise
from planner.statements.statement import AlterView, CreateView, Query


def replace_view(binding: Binding, created: CreateView, restarts: bool, position: int | None) -> CreateView | AlterView:
    """The statement for a view that exists: another one, or other options. Raises 42809, 42P16, 42P17 and 0A000."""
    view = created.view
    old = binding.context.catalog.objects[view.oid]
    if not isinstance(old, View) or old.materialized:
        raise SqlError("42809", f'"{old.name}" is not a view')
    # Whether the definitions are equal is a matter of their texts: both count as with the new options.
    known = bind_text(binding, replace(old, options=view.options), binding.context.catalog) if old.continuous else None
    is_other = changes_query(old.options, view.options)
    begins_anew = is_other and (restarts or _has_history(binding, view))
    if known is not None and not begins_anew and _is_same(old, known[0], view, created.query):
        query, keeping = (created.query, created.keeping) if is_other and old.keeps_rows else (None, None)
        altered = replace(old, options=view.options)
        return AlterView(old, altered, "CREATE VIEW", query, keeping, created.watermarks)
    _check_columns(old, view)
    above = above_replaced(binding, view)
    if not old.keeps_rows:
        if not (old.derived and view.derived and above):
            return replace(created, replaces=True, above=above)
        # Others go on reading it under its identity, under which storage has the program of before.
        notice = f'view "{view.name}" is computed at each read until REFRESH MATERIALIZED VIEW'
        return replace(created, view=as_plain(view), replaces=True, above=above, notices=(*created.notices, notice))
    if _has_history(binding, view):
        notice = f'view "{old.name}" starts again with the history of {_names(binding)}'
        return replace(created, replaces=True, above=above, notices=(*created.notices, notice))
    if not restarts:
        raise _would_be_lost(old, position)
    of = "" if known is None else f" of {_names(known[1])}"
    warning = f'view "{old.name}" starts again: its result of earlier rows{of} is lost'
    return replace(created, replaces=True, above=above, warnings=(*created.warnings, warning))


def bind_view(binding: Binding, view: View) -> tuple[Query, Keeping | None, dict[int, Watermark]]:
    """What a continuous view over streams shows by its text and its options, and the streams' watermarks. Raises 0A000
    and 55000 for options that its query cannot have."""
    bound = bind_text(binding, view, binding.context.catalog)
    assert bound is not None, "what a view reads stays as its text needs it"
    query, inner = bound
    return query, keeping_of(inner, dict(view.options), True), watermarks_of(inner)


def _names(binding: Binding) -> str:
    """The streams that a query reads."""
    return ", ".join(dict.fromkeys(quote_name(name) for name, _ in binding.streams))


def _has_history(binding: Binding, view: View) -> bool:
    """Whether a new definition starts with what is kept of all its streams."""
    found = (binding.context.catalog.objects.get(oid) for oid in view.depends_on)
    streams = [item for item in found if isinstance(item, Stream)]
    return bool(streams) and all(item.keeps_rows for item in streams) and dict(view.options).get(START) != "now"


def _is_same(old: View, old_query: Query, view: View, query: Query) -> bool:
    """Whether a continuous view has a definition already."""
    if not view.continuous or _shape(old) != _shape(view) or MAINTAINED in changed_options(old.options, view.options):
        return False
    # A text that is bound again marks the rows of outer joins, also where nothing reads the marks.
    if signature(optimise(old_query.relation))[0] != signature(optimise(query.relation))[0]:
        return False
    return _zone(old) == _zone(view) or not depends_on_zone(query.relation)


def _shape(view: View) -> list[tuple[str, str]]:
    return [(column.name, _shown_type(column)) for column in view.columns]


def _zone(view: View) -> str | None:
    return dict(view.settings).get("TimeZone")


def _would_be_lost(old: View, position: int | None) -> SqlError:
    return SqlError(
        "0A000",
        f'cannot replace continuous view "{old.name}" with another definition: its rows would be lost',
        "A stream without a history keeps no rows, so a view with another definition starts empty.",
        "Create a view with another name, or write WITH (restart = true) before AS to start again without the rows that"
        " have arrived.",
        position,
    )


def _check_columns(old: View, view: View) -> None:
    """The old view's columns must stay. Raises 42P16, and 42P17 for a view that reads itself."""
    if view.oid in view.depends_on:
        raise SqlError("42P17", f'infinite recursion detected in rules for relation "{view.name}"')
    if len(view.columns) < len(old.columns):
        raise SqlError("42P16", "cannot drop columns from view")
    for before, after in zip(old.columns, view.columns, strict=False):
        if before.name != after.name:
            message = f'cannot change name of view column "{before.name}" to "{after.name}"'
            raise SqlError("42P16", message, hint="Drop the view, and create it again.")
        old_type, new_type = _shown_type(before), _shown_type(after)
        if old_type != new_type:
            change = f"from {old_type} to {new_type}"
            raise SqlError("42P16", f'cannot change data type of view column "{before.name}" {change}')


def _shown_type(column: ColumnDefinition) -> str:
    """A column's type with what is declared of it: the digits of a computed numeric are ours and not the user's."""
    return display(column.type) if column.is_computed else str(column.type)

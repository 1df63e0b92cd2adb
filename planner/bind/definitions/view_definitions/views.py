"""CREATE VIEW, CREATE MATERIALIZED VIEW and ALTER VIEW.

Owns: whether a view is continuous (its query reads a stream: thesis 4.2.6; ``derived_views`` has the others), its
columns and options, and the error for functions whose value changes below a grouping over a stream.
``planner.incremental`` has the rules of 4.2.2 for the shape of its query.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from msgspec.structs import replace
from pglast.enums import AlterTableType, ObjectType, ViewCheckOption
from pglast.stream import RawStream

from catalog.catalog import Catalog
from catalog.objects import PG_TEMP, ColumnDefinition, View, as_plain, is_temporary
from catalog.values.errors import SqlError, unsupported
from catalog.values.times.precision import declared
from planner.algebra.nodes import Relation
from planner.algebra.reading_time import NOW, at_one_time, is_timed
from planner.bind.binder import new_binding
from planner.bind.changes.updatable_views import require_checkable
from planner.bind.conversion.rows import check_kept, refuse_rows
from planner.bind.definitions.named_objects import relation_words
from planner.bind.definitions.relations.table_as import bind_table_as
from planner.bind.definitions.relations.watermarks import keeping_of, keeps_windows, watermarks_of
from planner.bind.definitions.types.enums import refuse_labels
from planner.bind.definitions.view_definitions.derived_views import (
    changing_calls,
    is_derivable,
    is_over_stream,
    wants_program,
)
from planner.bind.definitions.view_definitions.replaced_views import bind_view, replace_view
from planner.bind.definitions.view_definitions.view_options import (
    CHECK,
    ON_ERROR,
    START,
    Options,
    changes_query,
    read_options,
    require_changeable,
    restarts,
    without_options,
)
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.relations import is_taken, look_up, require_object, settings_of, target_schema
from planner.bind.lookup.type_names import declared_typmod
from planner.bind.queries.select import bind_query
from planner.bind.scalars.select_lists import check_columns
from planner.bind.state.environment import Binding
from planner.incremental.programs.renaming import reads_of
from planner.parse.parser import text_after_as
from planner.statements.statement import AlterView, CreateTableAs, CreateView, Output, Query

_UNCHANGING: Final = "The rows of a continuous view depend on no role, and on the time by now() and CURRENT_DATE alone."


def bind_create_view(binding: Binding, node: Any) -> CreateView | AlterView:
    """CREATE [OR REPLACE] VIEW name [(columns)] [WITH (options)] AS query."""
    created = _create(binding, node.view, node.aliases, node.options, node.query, bool(node.replace), False)
    if isinstance(created, AlterView):
        _require_checkable(binding, created.view)
        return created
    view = created.view
    if node.withCheckOption != ViewCheckOption.NO_CHECK_OPTION:  # its words stand behind the query
        option = "local" if node.withCheckOption == ViewCheckOption.LOCAL_CHECK_OPTION else "cascaded"
        view = replace(view, definition=str(RawStream()(node.query)), options=(*view.options, (CHECK, option)))
    _require_checkable(binding, view)
    return replace(created, view=view)


def _require_checkable(binding: Binding, view: View) -> None:
    if CHECK not in dict(view.options):
        return
    if view.continuous:
        raise unsupported("WITH CHECK OPTION of a continuous view", "Leave it out: such views cannot be changed.")
    require_checkable(new_binding(binding.context), view)


def bind_create_as(binding: Binding, node: Any) -> CreateView | CreateTableAs:
    """CREATE MATERIALIZED VIEW, a continuous one where it can be; the statement's other kind is CREATE TABLE AS."""
    into = node.into
    if node.objtype != ObjectType.OBJECT_MATVIEW:
        return bind_table_as(binding, into, node.query, bool(node.if_not_exists))
    tolerated = bool(node.if_not_exists)
    created = _create(binding, into.rel, into.colNames, into.options, node.query, False, tolerated, True)
    assert isinstance(created, CreateView), "it replaces none"
    if binding.volatile and not created.view.continuous:
        instead = "Use CREATE TABLE AS: a materialized view is computed when it is read, so its rows would change."
        raise unsupported("a materialized view with a volatile function", instead, binding.position(into.rel))
    fresh = (f'materialized view "{into.rel.relname}" over streams is always fresh, WITH NO DATA is ignored',)
    keeps_rows = created.view.keeps_rows
    notices = (*created.notices, *(fresh if into.skipData and keeps_rows and not created.exists else ()))
    if created.view.schema == PG_TEMP:
        raise SqlError("0A000", "materialized views must not use temporary tables or views")
    view = replace(created.view, populated=keeps_rows or not into.skipData)
    return replace(created, view=view, notices=notices)


def _create(
    binding: Binding,
    name: Any,
    aliases: Any,
    options: Any,
    query_node: Any,
    replaces: bool,
    tolerated: bool,
    materialized: bool = False,
) -> CreateView | AlterView:
    given = read_options((), options, binding)
    binding.expands = is_over_stream(binding, query_node)
    binding.keeps_windows = keeps_windows(dict(given))
    if getattr(query_node, "intoClause", None) is not None:
        raise SqlError("0A000", "views must not contain SELECT INTO")
    query = bind_query(binding, query_node)
    if binding.parameters:
        raise SqlError("42P02", "there is no parameter $1")
    if query.locking is not None:
        raise unsupported(f"{query.locking.words} in a view", "Lock the rows in the query that reads it.")
    continuous = bool(binding.streams)
    schema, notices = _schema(binding, name, continuous)
    catalog = binding.context.catalog
    old = catalog.at(schema, name.relname)
    exists = is_taken(binding, name, schema, tolerated or replaces)
    if continuous:
        query = replace(query, relation=at_one_time(query.relation))
        _refuse_changing(binding, query.relation)
        refuse_labels(query.relation, binding.streams[0][1])
        refuse_rows(query.relation, binding.streams[0][1])
    columns = _columns(catalog, names_of(aliases), query)
    view = View(
        old.oid if old is not None and replaces else catalog.next_oid,
        name.relname,
        columns,
        _definition(binding, query_node),
        continuous,
        0,
        tuple(binding.depends_on),
        given,
        settings_of(binding.context),
        schema,
        names=tuple((*written, oid) for written, oid in binding.names.items()),
        types=tuple((*written, oid) for written, oid in binding.types.items()),
        functions=tuple(binding.functions),
        calls=tuple(binding.calls),
        reads=reads_of([catalog.objects[oid] for oid in dict.fromkeys(binding.names.values())]),
        materialized=materialized,
        timed=continuous and (binding.reads_time or is_timed(query.relation)),
    )
    if not continuous and wants_program(view) and is_derivable(binding, view, query):
        view = replace(view, continuous=True, derived=True)
    if START in dict(given) and not view.keeps_rows:
        raise unsupported("the option start of a view that reads no stream", "Leave it out: it shows all rows.")
    _require_rows(view)
    if not view.continuous and not materialized and wants_program(view):
        notices = (*notices, f'view "{view.name}" is computed at each read: its query cannot be maintained')
    keeping = keeping_of(binding, dict(view.options), continuous)
    position = min((place for _, place in binding.streams if place is not None), default=None)
    watermarks = watermarks_of(binding)
    created = CreateView(view, query, False, exists and not replaces, notices, position, keeping, watermarks=watermarks)
    if not (exists and replaces):
        return created
    return replace_view(binding, created, restarts(options), binding.position(name))


def _require_rows(view: View) -> None:
    """Raises 0A000 for a policy for rows of streams where there are none."""
    if ON_ERROR in dict(view.options) and not view.keeps_rows:
        instead = "Leave it out: it is for the rows of streams. Guard the expression by CASE, or NULLIF in a division."
        raise unsupported(f'{ON_ERROR} of view "{view.name}", which reads no stream itself,', instead)


def _definition(binding: Binding, query_node: Any) -> str:
    """A view's text; of a recursive one as the parser has completed it."""
    clause = getattr(query_node, "withClause", None)
    is_written = clause is None or not clause.recursive or (clause.location or 0) > 0
    return text_after_as(binding.raw) if is_written else str(RawStream()(query_node))


def _schema(binding: Binding, name: Any, continuous: bool) -> tuple[str, tuple[str, ...]]:
    """Where a view goes, with a notice: one over temporary relations is temporary. Raises 0A000 for continuous ones."""
    objects = binding.context.catalog.objects
    below = any(is_temporary(objects[oid]) for oid in binding.depends_on)
    schema = target_schema(binding, name)
    if continuous and (below or schema == PG_TEMP):
        raise unsupported(
            "a temporary continuous view", "Use permanent tables, and leave TEMPORARY out.", binding.position(name)
        )
    if not below or schema == PG_TEMP:
        return schema, ()
    if name.schemaname is not None:
        raise SqlError("42P16", "cannot create temporary relation in non-temporary schema")
    return PG_TEMP, (f'view "{name.relname}" will be a temporary view',)


def _columns(catalog: Catalog, names: tuple[str, ...], query: Query) -> tuple[ColumnDefinition, ...]:
    if len(names) > len(query.outputs):
        raise SqlError("42601", "CREATE VIEW specifies more column names than columns")
    given = names + tuple(output.name for output in query.outputs)[len(names) :]
    check_columns(given)
    columns = tuple(
        ColumnDefinition(
            name,
            declared(column.type, output.typmod),
            collation=_collation(catalog, output),
            is_computed=output.typmod == -1 != declared_typmod(column.type),
        )
        for name, column, output in zip(given, query.relation.columns, query.outputs, strict=True)
    )
    for column in columns:
        check_kept(catalog, column.name, column.type)
    return columns


def _collation(catalog: Catalog, output: Output) -> int:
    """The declared collation of the column that an output is; 0 where it is none, or an expression."""
    source = catalog.objects.get(output.table)
    return 0 if source is None or not output.attribute else source.columns[output.attribute - 1].collation


# --- ALTER VIEW -------------------------------------------------------------------------------------------------------


#: What is done to columns of tables, in PostgreSQL's words (alter_table_type_to_string).
_ACTIONS: Final = {
    AlterTableType.AT_AddColumn: "ADD COLUMN",
    AlterTableType.AT_DropColumn: "DROP COLUMN",
    AlterTableType.AT_SetNotNull: "ALTER COLUMN ... SET NOT NULL",
    AlterTableType.AT_DropNotNull: "ALTER COLUMN ... DROP NOT NULL",
    AlterTableType.AT_AlterColumnType: "ALTER COLUMN ... SET DATA TYPE",
    AlterTableType.AT_AddConstraint: "ADD CONSTRAINT",
    AlterTableType.AT_DropConstraint: "DROP CONSTRAINT",
}


def _refuse_action(view: View, command: Any) -> NoReturn:
    """Raises 42809 for what only tables have, 0A000 for what views have in PostgreSQL."""
    words = _ACTIONS.get(command.subtype)
    if words is None or view.materialized or view.continuous:
        raise unsupported("this form of ALTER VIEW", "Use SET or RESET (options), or create the view again.")
    message = f'ALTER action {words} cannot be performed on relation "{view.name}"'
    raise SqlError("42809", message, "This operation is not supported for views.")


def bind_alter_view(binding: Binding, node: Any) -> AlterView | None:
    """ALTER VIEW ... SET or RESET (options); None where a missing view is tolerated."""
    if node.missing_ok and look_up(binding, node.relation.relname, node.relation.schemaname) is None:
        return None
    view = require_object(binding, node.relation)
    if not isinstance(view, View):
        raise SqlError("42809", f'"{view.name}" is not a view')
    options = view.options
    for command in node.cmds:
        if command.subtype == AlterTableType.AT_SetRelOptions:
            options = read_options(options, command.def_, binding)
        elif command.subtype == AlterTableType.AT_ResetRelOptions:
            options = without_options(options, command.def_)
        else:
            _refuse_action(view, command)
        require_changeable(view.options, options, command.def_, binding)
    return _altered(binding, view, options, f"ALTER {relation_words(node.objtype)}")


def _altered(binding: Binding, before: View, options: Options, tag: str) -> AlterView:
    """A view with other options. Raises 0A000 for a query that cannot have them."""
    view = replace(before, options=options)
    _require_rows(view)
    if view.derived and view.reads_as_invoker:
        view = as_plain(view)  # what it shows depends on its reader
    _require_checkable(binding, view)
    if not changes_query(before.options, options):
        return AlterView(before, view, tag)
    if not view.keeps_rows:
        keeping_of(binding, dict(options), False)
        return AlterView(before, view, tag)
    query, keeping, watermarks = bind_view(binding, view)
    return AlterView(before, view, tag, query, keeping, watermarks)


# --- what may not stand in it ----------------------------------------------------------------------------------------


def _refuse_changing(binding: Binding, relation: Relation) -> None:
    """A maintained result depends on no role, and on the time of its reading by now() alone. Raises 0A000."""
    for item in (call for call in changing_calls(relation) if call.function != NOW):
        message = f"function {item.function}() in a continuous view"
        hint = "Call it in the query that reads the view, or put its value into a column of the stream."
        raise unsupported(message, hint, binding.origin(item)[0] or binding.streams[0][1], _UNCHANGING)

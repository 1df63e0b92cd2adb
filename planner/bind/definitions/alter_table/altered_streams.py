"""ALTER FOREIGN TABLE of a stream: columns that are added and dropped, defaults, and options.

Owns: which of these are possible, since the rows of a stream cannot be rewritten. Views keep their meaning. Log records
keep their layout (``catalog.objects.Stream``), so that records from before the change can be read after it.

https://www.postgresql.org/docs/15/sql-alterforeigntable.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace
from pglast.enums import AlterTableType, DefElemAction, DropBehavior

from catalog.objects import ColumnDefinition, Stream, with_scales
from catalog.values.errors import SqlError, unsupported
from catalog.values.scales import scale_name
from planner.algebra.nodes import Literal, Project, Values
from planner.bind.binder import bind_expression
from planner.bind.definitions.alter_table.alteration import needed
from planner.bind.definitions.dependents import broken_by, readers
from planner.bind.definitions.relations.columns import add_column, constrain_column, defaulting
from planner.bind.definitions.relations.definition_parts import Parts
from planner.bind.definitions.relations.tables import check_history, check_reading, stream_option
from planner.bind.definitions.relations.watermarks import bind_watermark, in_use, keeps_windows
from planner.bind.lookup.relations import describe
from planner.bind.state.environment import Binding
from planner.incremental.programs.renaming import follow_columns
from planner.rules.filters.fold_constants import fold_constants
from planner.scales.changes import keeping
from planner.scales.terms import of_literal
from planner.statements.definitions import Redefine

#: Options that say where a stream's rows are: these are what it has.
_FIXED: Final = ("source", "path", "format", "on_error")
#: Types of which rows from before a column may have its default.
_FILLED: Final = frozenset(
    (
        *("bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "bpchar"),
        *("date", "time", "timestamp", "timestamptz"),
    )
)


class _Change(Struct):
    """A stream on its way from one definition to the next."""

    binding: Binding
    before: Stream
    after: Stream
    notices: list[str] = field(default_factory=list)

    def column(self, name: str) -> ColumnDefinition:
        """A column as it is now. Raises 42703."""
        for column in self.after.columns:
            if column.name == name:
                return column
        raise SqlError("42703", f'column "{name}" of relation "{self.before.name}" does not exist')

    def put(self, column: ColumnDefinition) -> None:
        """A column of the same name otherwise."""
        columns = tuple(column if item.name == column.name else item for item in self.after.columns)
        self.after = replace(self.after, columns=columns)


def bind_alter_stream(binding: Binding, node: Any, stream: Stream, words: str) -> Redefine:
    """All actions of one statement, in PostgreSQL's order of passes."""
    change = _Change(binding, stream, stream)
    for command in sorted(node.cmds, key=lambda item: _ACTIONS[item.subtype][0] if item.subtype in _ACTIONS else 9):
        if command.subtype not in _ACTIONS:
            name = AlterTableType(command.subtype).name.removeprefix("AT_")
            instead = "Drop the stream and create it again."
            raise unsupported(f"ALTER {words} ({name}) of a stream", instead, binding.position(command.def_))
        _ACTIONS[command.subtype][1](change, command)
    catalog = binding.context.catalog
    left = [column.name for column in change.after.columns]
    following = ((view, follow_columns(view, stream.oid, left)) for view in readers(catalog, stream.oid))
    changes = tuple(pair for pair in following if pair[0] != pair[1])
    return Redefine(f"ALTER {words}", stream, change.after, changes, tuple(change.notices))


def _refuse_followed(change: _Change, what: str) -> None:
    if change.before.option("source") and not change.before.option("server"):  # another server's changes there
        raise unsupported(f"{what} of a stream of files", "Create another stream over the folder.")


def _layout(stream: Stream) -> tuple[tuple[ColumnDefinition, ...], tuple[Any, ...]]:
    return stream.layout or stream.stored, stream.fills or (None,) * len(stream.stored)


def _add(change: _Change, command: Any) -> None:
    """ADD COLUMN: rows from before have the default, where that is a constant, or NULL."""
    binding, node, stream = change.binding, command.def_, change.after
    _refuse_followed(change, "ADD COLUMN")
    if any(column.name == node.colname for column in stream.columns):
        message = f'column "{node.colname}" of relation "{stream.name}" already exists'
        if not command.missing_ok:
            raise SqlError("42701", message)
        change.notices.append(f"{message}, skipping")
        return
    parts = Parts(stream.name, list(stream.columns))
    add_column(binding, parts, node, True)
    constrain_column(binding, parts, node, True)
    added = parts.columns[-1]
    fill = _fill(binding, added)
    if added.not_null and fill is None:
        instead = "Give it a constant DEFAULT, or leave NOT NULL out."
        raise unsupported("a column of a stream that is added NOT NULL and has no constant default", instead)
    layout, fills = _layout(stream)
    stored = with_scales(keeping((added,)))
    filled = (fill, None if fill is None else of_literal(Literal(fill, added.type)).value)[: len(stored)]
    columns = (*stream.columns, stored[0])
    change.after = replace(stream, columns=columns, layout=(*layout, *stored), fills=(*fills, *filled))


def _fill(binding: Binding, column: ColumnDefinition) -> Any:
    """The value of a constant default; None where there is none of a plain type."""
    if column.default is None or column.type.name not in _FILLED:
        return None
    default = bind_expression(column.default, (), replace(binding.context, parameter_types=()), column.type)
    row = fold_constants(Project(Values((), ((),)), ((binding.column("fill", column.type), default),)))
    value = row.outputs[0][1] if isinstance(row, Project) else None
    if not isinstance(value, Literal):
        return None
    if isinstance(value.value, float) and column.type.category == "D":
        raise unsupported("an infinite date or timestamp in a stream", "Use NULL or a far date.")
    return value.value


def _drop(change: _Change, command: Any) -> None:
    """DROP COLUMN that nothing reads."""
    name, stream = command.name, change.after
    if command.missing_ok and all(column.name != name for column in stream.columns):
        change.notices.append(f'column "{name}" of relation "{stream.name}" does not exist, skipping')
        return
    gone = change.column(name)
    _refuse_followed(change, "DROP COLUMN")
    if len(stream.columns) == 1:
        raise unsupported("a stream without columns", "Drop the stream.")
    layout, fills = _layout(stream)
    gone_with = (name, scale_name(name)) if gone.keeps_scale else (name,)
    after = replace(
        stream,
        columns=tuple(column for column in stream.columns if column != gone),
        layout=tuple(_nameless(column) if column.name in gone_with else column for column in layout),
        fills=fills,
    )
    what = f"column {name} of {describe(change.binding, stream)}"
    lines = [f"{describe(change.binding, view)} depends on {what}" for view in broken_by(change.binding, after)]
    if stream.option("watermark"):
        try:
            bind_watermark(change.binding, stream.option("watermark"), after.columns)
        except SqlError:
            lines.append(f"the watermark of foreign table {stream.name} depends on {what}")
    if lines and command.behavior == DropBehavior.DROP_CASCADE:
        raise unsupported("CASCADE to what reads a stream's column", "Drop the views first.")
    if lines:
        raise needed(what, lines)
    change.after = after


def _nameless(column: ColumnDefinition) -> ColumnDefinition:
    return replace(column, name="", not_null=False, default=None, comment=None, keeps_scale=False)


def _default(change: _Change, command: Any) -> None:
    """SET DEFAULT and DROP DEFAULT, of rows to come."""
    known = change.column(command.name)
    if command.def_ is None:
        change.put(replace(known, default=None))
        return
    column = defaulting(change.binding, known, command.def_)
    if column.sequences:
        raise unsupported("a sequence as a stream's default", "Insert the values.")
    change.put(column)


def _set_not_null(change: _Change, command: Any) -> None:
    if not change.column(command.name).not_null:
        instead = "Rows with NULL may have arrived: filter them in the views, or create another stream."
        raise unsupported("SET NOT NULL of a stream's column", instead)


def _drop_not_null(change: _Change, command: Any) -> None:
    """Views rely on it: what is never NULL is counted as rows are."""
    known, stream = change.column(command.name), change.before
    if not known.not_null:
        return
    gone = replace(change.after, columns=tuple(item for item in change.after.columns if item != known))
    reading = [view for view in broken_by(change.binding, gone) if view.continuous]
    if reading:
        message = f"cannot alter foreign table {stream.name} because other objects depend on it"
        detail = f"continuous view {reading[0].name} depends on foreign table {stream.name}"
        raise SqlError("2BP01", message, detail, "Drop the view first, and create it again.")
    change.put(replace(known, not_null=False))


def _options(change: _Change, command: Any) -> None:
    """OPTIONS (ADD | SET | DROP ...)."""
    options = dict(change.after.options)
    for item in command.def_:
        name = item.defname
        if item.defaction == DefElemAction.DEFELEM_DROP or item.defaction == DefElemAction.DEFELEM_SET:
            if name not in options:
                raise SqlError("42704", f'option "{name}" not found')
        elif name in options:
            raise SqlError("42710", f'option "{name}" provided more than once')
        if name in _FIXED:
            raise unsupported(f"another {name} of a stream", "Create another stream.")
        if name == "watermark":
            _refuse_kept(change)
        if name == "history" and item.defaction != DefElemAction.DEFELEM_SET:
            change.after = replace(change.after, kept_since=-1)
        if item.defaction == DefElemAction.DEFELEM_DROP:
            del options[name]
            continue
        options[name] = stream_option(change.binding, item)[1]
        if name == "watermark":
            bind_watermark(change.binding, options[name], change.after.columns)
    check_reading(options)
    check_history(options)
    change.after = replace(change.after, options=tuple(options.items()))


def _refuse_kept(change: _Change) -> None:
    """A view that lets groups go does so by the watermark of its creation."""
    stream = change.before
    for view in readers(change.binding.context.catalog, stream.oid):
        if keeps_windows(dict(view.options)):
            raise in_use(stream, view)


def _nothing(change: _Change, command: Any) -> None:
    """What has no meaning here."""


_Action = Callable[[_Change, Any], None]
_ACTIONS: Final[dict[AlterTableType, tuple[int, _Action]]] = {
    AlterTableType.AT_DropColumn: (0, _drop),
    AlterTableType.AT_DropNotNull: (0, _drop_not_null),
    AlterTableType.AT_AddColumn: (2, _add),
    AlterTableType.AT_ColumnDefault: (3, _default),
    AlterTableType.AT_SetNotNull: (3, _set_not_null),
    AlterTableType.AT_GenericOptions: (6, _options),
    AlterTableType.AT_ChangeOwner: (6, _nothing),
    AlterTableType.AT_SetStatistics: (6, _nothing),
    AlterTableType.AT_SetStorage: (6, _nothing),
}

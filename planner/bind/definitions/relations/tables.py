"""CREATE TABLE and CREATE FOREIGN TABLE: definitions of tables and streams.

Owns: their clauses, and what a stream's definition may contain (thesis 4.2.6). ``columns`` and ``constraints`` are
beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from catalog.objects import PG_TEMP, ROW_POLICIES, FileTable, Stream, Table
from catalog.stream_history import history_bound
from catalog.values.errors import SqlError, unsupported
from catalog.values.nested_types import holds
from catalog.values.opaque import FORMED
from catalog.values.times.precision import is_fitted
from planner.bind.changes.copy_options import check_csv
from planner.bind.changes.generated_columns import check_actions
from planner.bind.definitions.relations.columns import add_column, check_generations, constrain_column, with_sequences
from planner.bind.definitions.relations.constraints import add_table_constraint, copy_keys, make_check, make_foreign_key
from planner.bind.definitions.relations.definition_parts import Parts
from planner.bind.definitions.relations.table_like import like
from planner.bind.definitions.relations.watermarks import bind_watermark
from planner.bind.lookup.relations import is_taken, on_commit, target_schema
from planner.bind.state.environment import Binding
from planner.statements.definitions import CreateStream, CreateTable

#: Servers whose foreign tables are streams; the second is PipelineDB's.
SERVERS: Final = ("stream", "pipelinedb")
#: The server whose foreign tables are files at rest.
FILES: Final = "files"
_FILE_OPTIONS: Final = ("path", "format", "header", "delimiter", "null", "partition", "version")
#: Types that a value in a folder's name may have.
_PARTITION_TYPES: Final = ("int2", "int4", "int8", "bool", "numeric", "text", "varchar", "date", "timestamp")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_STREAM_OPTIONS: Final = ("source", "path", "format", "header", "delimiter", "null", "watermark", "history", "on_error")


def bind_create_table(binding: Binding, node: Any) -> CreateTable:
    """CREATE TABLE. Storage parameters are accepted and do nothing."""
    _refuse_table_clauses(binding, node)
    schema = target_schema(binding, node.relation, placed=True)
    exists = is_taken(binding, node.relation, schema, node.if_not_exists)
    parts = _read(binding, node, stream=False)
    oid = binding.context.catalog.next_oid
    kept = on_commit(node.oncommit, schema)
    table = Table(oid, node.relation.relname, tuple(parts.columns), tuple(parts.keys), schema=schema, on_commit=kept)
    checks = (*parts.copied_checks, *(make_check(binding, parts, item) for item in parts.checks))
    used = check_generations(binding, parts)
    foreign = tuple(make_foreign_key(binding, parts, table, item) for item in parts.foreign)
    for reference in foreign:
        check_actions(table, reference, used)
    columns, sequences = with_sequences(binding, parts, table, table.oid + 1)
    table = replace(table, columns=columns, foreign_keys=foreign, checks=checks, indexes=tuple(parts.indexes))
    return CreateTable(table, exists, sequences)


def _refuse_table_clauses(binding: Binding, node: Any) -> None:
    position = binding.position(node.relation)
    if node.inhRelations or node.partspec is not None or node.partbound is not None:
        raise unsupported("table inheritance and partitioning", "Create one plain table.", position)
    if node.ofTypename is not None:
        raise unsupported("CREATE TABLE OF type", "List the columns.", position)


def _stream_schema(binding: Binding, node: Any) -> str:
    schema = target_schema(binding, node, placed=True)
    if schema == PG_TEMP:
        raise unsupported("a temporary foreign table", "Create it in another schema.", binding.position(node))
    return schema


def bind_create_stream(binding: Binding, node: Any) -> CreateStream:
    """CREATE FOREIGN TABLE ... SERVER stream or files."""
    base = node.base
    if node.servername == FILES:
        return _bind_create_files(binding, node)
    if node.servername not in SERVERS:
        hint = "Streams are foreign tables of the server named stream, files those of the server named files."
        raise SqlError("42704", f'server "{node.servername}" does not exist', hint=hint)
    schema = _stream_schema(binding, base.relation)
    exists = is_taken(binding, base.relation, schema, base.if_not_exists)
    name = base.relation.relname
    parts = _read(binding, base, stream=True)
    if not parts.columns:
        hint = "Give each stream at least one column."
        raise SqlError("42601", f'stream "{name}" has no columns', hint=hint, position=binding.position(base.relation))
    options = tuple(stream_option(binding, item) for item in node.options or ())
    check_reading(dict(options))
    check_history(dict(options))
    _require_lines(dict(options))
    if dict(options).get("source") == "files" and "path" not in dict(options):
        raise SqlError("HV00J", "option \"path\" is required where source is 'files'")
    if dict(options).get("source") == "files":
        _refuse_in_files(binding, parts, base.relation, "a stream of files")
    for item in node.options or ():
        if item.defname == "watermark":
            bind_watermark(binding, item.arg.sval, parts.columns, item)
    oid = binding.context.catalog.next_oid
    return CreateStream(Stream(oid, name, tuple(parts.columns), options, schema), exists)


def _bind_create_files(binding: Binding, node: Any) -> CreateStream:
    """CREATE FOREIGN TABLE ... SERVER files."""
    base = node.base
    schema = _stream_schema(binding, base.relation)
    exists = is_taken(binding, base.relation, schema, base.if_not_exists)
    parts = _read(binding, base, stream=True)
    if not parts.columns:
        hint = "List the columns to read from the files."
        position = binding.position(base.relation)
        raise SqlError("42601", f'foreign table "{parts.table}" has no columns', hint=hint, position=position)
    options = tuple(stream_option(binding, item, _FILE_OPTIONS) for item in node.options or ())
    check_reading(dict(options))
    if "path" not in dict(options):
        raise SqlError("HV00J", "path is required for files foreign tables")
    _refuse_in_files(binding, parts, base.relation, "a table of files")
    table = FileTable(binding.context.catalog.next_oid, base.relation.relname, tuple(parts.columns), options, schema)
    _check_partition(table)
    return CreateStream(table, exists)


def _check_partition(table: FileTable) -> None:
    """Raises 42703, 42601 or 0A000 where a table cannot be partitioned as it says, 22023 for a version of none."""
    is_delta = table.option("format") == "delta"
    if is_delta and table.partition:
        raise SqlError("42601", "a Delta table defines its own partitioning", hint="Leave option partition out.")
    if table.option("version") and not (is_delta and table.option("version").isdigit()):
        raise SqlError("22023", f'invalid value for option "version": "{table.option("version")}"')
    kinds = {column.name: column.type for column in table.columns}
    for name in table.partition:
        if name not in kinds:
            raise SqlError("42703", f'column "{name}" named in option "partition" does not exist')
        if kinds[name].name not in _PARTITION_TYPES:
            instead = f"Types of partition columns are {', '.join(_PARTITION_TYPES)}."
            raise unsupported(f"a partition column of type {kinds[name]}", instead)
    if set(table.partition) == set(kinds):
        raise SqlError("42601", f'foreign table "{table.name}" has no column that is not a partition column')


def _refuse_in_files(binding: Binding, parts: Parts, node: Any, where: str) -> None:
    """Types that files' readers do not know. Raises 0A000."""
    for column in parts.columns:
        if column.type.name == "interval":
            instead = "Use two timestamps, or a number of seconds."
            raise unsupported(f"an interval column in {where}", instead, binding.position(node))
        if is_fitted(column.type):
            instead = "Leave the precision out, and round in the views."
            raise unsupported(f"a column of type {column.type} in {where}", instead, binding.position(node))
        instead = "Use text, and cast it in the views."
        if holds(column.type, lambda kind: kind.name in FORMED):  # files have other texts than the written form
            raise unsupported(f"a column of type {column.type} in {where}", instead, binding.position(node))
        if column.type.enum is not None or column.type.row is not None:
            raise unsupported(f"a column of a user's type in {where}", instead, binding.position(node))


def _require_lines(options: Mapping[str, str]) -> None:
    """Raises 0A000 for a policy for lines of files where there are none."""
    if "on_error" in options and options.get("source") != "files":
        instead = "Leave it out: a row's error goes to the client that sends it. Views have an on_error of their own."
        raise unsupported("on_error of a stream that clients write", instead)
    if "on_error" in options and options.get("format", "parquet") == "parquet":
        instead = "Declare the columns as the files have them, and convert them in views, which have an on_error, too."
        raise unsupported("on_error of a stream of Parquet files", instead)


def check_reading(options: Mapping[str, str]) -> None:
    """Raises COPY's errors of options with which no CSV can be read. Of files, and of streams that follow a folder."""
    if options.get("header", "on").lower() not in ("true", "false", "on", "off", "yes", "no", "1", "0"):
        raise SqlError("42601", "header requires a Boolean value")
    check_csv({name: options[name] for name in ("delimiter", "null") if name in options})


def check_history(options: Mapping[str, str]) -> None:
    """Raises 0A000 for a history of rows that lie in a folder."""
    if "history" in options and "source" in options:
        instead = "Leave it out: a view of the stream has the files of its folder whenever it is created."
        raise unsupported("option history of a stream that follows a folder", instead)


def stream_option(binding: Binding, item: Any, known: tuple[str, ...] = _STREAM_OPTIONS) -> tuple[str, str]:
    """A stream's option and its value. Raises HV00D, 22023 and 0A000."""
    if item.defname in ("retention", "emit"):
        instead = f"Give it to the views of the stream: CREATE VIEW ... WITH ({item.defname} = ...)."
        raise unsupported(f"the stream option {item.defname}", instead, binding.position(item))
    if item.defname not in known:
        hint = f"Valid options in this context are: {', '.join(known)}"
        raise SqlError("HV00D", f'invalid option "{item.defname}"', hint=hint, position=binding.position(item))
    value = item.arg.sval
    if item.defname == "path" and (scheme := _SCHEME.match(value)):
        instead = "Give the absolute path of a folder that the server finds, such as one where the storage is mounted."
        raise unsupported(f'a path with the scheme "{scheme[0]}"', instead, binding.position(item))
    if item.defname == "source" and value != "files":
        raise SqlError("22023", f'invalid value for option "source": "{value}"', hint="The only source is files.")
    if item.defname == "history":
        history_bound(value)
    if item.defname == "on_error" and value not in ROW_POLICIES:
        hint = f"Valid values are {', '.join(ROW_POLICIES)}."
        raise SqlError("22023", f'invalid value for option "on_error": "{value}"', hint=hint)
    formats = ("parquet", "csv", "json", *(("delta",) if known is _FILE_OPTIONS else ()))
    if item.defname == "format" and value not in formats:
        hint = f"Formats are {', '.join(formats[:-1])} and {formats[-1]}."
        raise SqlError("22023", f'invalid value for option "format": "{value}"', hint=hint)
    return item.defname, value


def _read(binding: Binding, node: Any, stream: bool) -> Parts:
    parts = Parts(node.relation.relname)
    items = node.tableElts or ()
    for item in items:
        kind = type(item).__name__
        if kind == "TableLikeClause":
            _like(binding, parts, item, stream)
        if kind == "ColumnDef":
            add_column(binding, parts, item, stream)
    for item in items:
        if type(item).__name__ == "ColumnDef":
            constrain_column(binding, parts, item, stream)
    for item in (*items, *(node.constraints or ())):
        if type(item).__name__ == "Constraint":
            add_table_constraint(binding, parts, item, stream)
    copy_keys(parts)
    return parts


def _like(binding: Binding, parts: Parts, node: Any, stream: bool) -> None:
    if stream:
        raise SqlError("0A000", "LIKE is not supported for creating foreign tables")
    copied = like(binding, node)
    for column in copied.columns:
        if parts.column(column.name) is not None:
            raise SqlError("42701", f'column "{column.name}" specified more than once')
        parts.columns.append(column)
    parts.owned.update(copied.identities)
    parts.copied_checks += copied.checks
    parts.copied_keys += copied.keys
    parts.copied_indexes += copied.indexes

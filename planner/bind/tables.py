"""CREATE TABLE and CREATE FOREIGN TABLE -> definitions of tables and streams.

Owns: columns, constraints and PostgreSQL's names for them, and what a stream's definition may hold (thesis 4.2.6).
Expressions of DEFAULT and CHECK are kept as text, and bound here once to find their errors.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pglast.enums import ConstrType
from pglast.stream import RawStream

from catalog.errors import SqlError, duplicate_table, unsupported
from catalog.objects import Check, ColumnDefinition, ForeignKey, Stream, Table, UniqueKey
from catalog.types import BOOL, SqlType
from planner.bind.context import Binding
from planner.bind.generated import check_actions, check_generation
from planner.bind.sources import find_object
from planner.bind.table_like import like
from planner.bind.texts import bind_tree
from planner.bind.typenames import names_of, type_of
from planner.bind.types import display
from planner.bind.watermarks import bind_watermark
from planner.expression import Column, ColumnRef, Exists, InSubquery, Scalar, ScalarSubquery
from planner.statements import CreateStream, CreateTable
from planner.walk import walk

#: Servers whose foreign tables are streams; the second is PipelineDB's.
SERVERS: Final = ("stream", "pipelinedb")
_STREAM_OPTIONS: Final = ("source", "path", "format", "header", "delimiter", "null", "watermark")
#: Names of hidden columns.
_RESERVED: Final = ("__rowid", "__lsn", "__ordinal")


@dataclass(slots=True)
class _Parts:
    """What has been read of a definition so far."""

    table: str
    columns: list[ColumnDefinition] = field(default_factory=list)
    keys: list[UniqueKey] = field(default_factory=list)
    foreign: list[tuple[Any, tuple[str, ...]]] = field(default_factory=list)
    checks: list[tuple[str | None, Any, str]] = field(default_factory=list)
    generations: list[tuple[str, Any]] = field(default_factory=list)
    copied_checks: list[Check] = field(default_factory=list)
    copied_keys: list[UniqueKey] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def name(self, given: str | None, *words: str) -> str:
        """A constraint's name: the given one, or PostgreSQL's choice made unique."""
        if given is not None:
            if given in self.names:
                raise SqlError("42710", f'constraint "{given}" for relation "{self.table}" already exists')
            self.names.add(given)
            return given
        base = "_".join((self.table, *words))
        found = next(
            name
            for name in itertools.chain((base,), (f"{base}{n}" for n in itertools.count(1)))
            if name not in self.names
        )
        self.names.add(found)
        return found

    def column(self, name: str) -> ColumnDefinition | None:
        return next((column for column in self.columns if column.name == name), None)


def target_schema(binding: Binding, node: Any) -> str:
    """Where a new relation goes: the schema it names, or the first of the search path."""
    schema = node.schemaname or next(iter(binding.context.search_path), "public")
    if schema != "public":
        raise SqlError("3F000", f'schema "{schema}" does not exist', position=binding.position(node))
    if node.relpersistence == "t":
        raise unsupported("TEMPORARY", "Create an ordinary table and drop it.", binding.position(node))
    return str(schema)


def is_taken(binding: Binding, node: Any, schema: str, tolerated: bool) -> bool:
    """Whether the name is in use. Raises 42P07 unless IF NOT EXISTS tolerates that."""
    found = binding.context.catalog.find(node.relname, schema)
    if found is not None and not tolerated:
        raise duplicate_table(node.relname)
    return found is not None


def bind_create_table(binding: Binding, node: Any) -> CreateTable:
    """CREATE TABLE. Storage parameters are accepted and do nothing."""
    _refuse_table_clauses(binding, node)
    schema = target_schema(binding, node.relation)
    exists = is_taken(binding, node.relation, schema, node.if_not_exists)
    parts = _read(binding, node, stream=False)
    oid = binding.context.catalog.next_oid
    table = Table(oid, node.relation.relname, tuple(parts.columns), tuple(parts.keys), schema=schema)
    checks = (*parts.copied_checks, *(_check(binding, parts, item) for item in parts.checks))
    used = _check_generations(binding, parts)
    foreign = tuple(_foreign_key(binding, parts, table, item, columns) for item, columns in parts.foreign)
    for reference in foreign:
        check_actions(table, reference, used)
    return CreateTable(replace(table, foreign_keys=foreign, checks=checks), exists)


def _refuse_table_clauses(binding: Binding, node: Any) -> None:
    position = binding.position(node.relation)
    if node.inhRelations or node.partspec is not None or node.partbound is not None:
        raise unsupported("table inheritance and partitioning", "Create one plain table.", position)
    if node.ofTypename is not None:
        raise unsupported("CREATE TABLE OF type", "List the columns.", position)


def bind_create_stream(binding: Binding, node: Any) -> CreateStream:
    """CREATE FOREIGN TABLE ... SERVER stream."""
    base = node.base
    if node.servername not in SERVERS:
        hint = "Streams are foreign tables of the server named stream."
        raise SqlError("42704", f'server "{node.servername}" does not exist', hint=hint)
    schema = target_schema(binding, base.relation)
    exists = is_taken(binding, base.relation, schema, base.if_not_exists)
    name = base.relation.relname
    parts = _read(binding, base, stream=True)
    if not parts.columns:
        hint = "Give each stream at least one column."
        raise SqlError("42601", f'stream "{name}" has no columns', hint=hint, position=binding.position(base.relation))
    options = tuple(_stream_option(binding, item) for item in node.options or ())
    if dict(options).get("source") == "files" and "path" not in dict(options):
        raise SqlError("HV00J", "option \"path\" is required where source is 'files'")
    if dict(options).get("source") == "files" and any(column.type.name == "interval" for column in parts.columns):
        instead = "Use two timestamps, or a number of seconds."
        raise unsupported("an interval column in a stream of files", instead, binding.position(base.relation))
    for item in node.options or ():
        if item.defname == "watermark":
            bind_watermark(binding, item.arg.sval, parts.columns, item)
    oid = binding.context.catalog.next_oid
    return CreateStream(Stream(oid, name, tuple(parts.columns), options, schema), exists)


def _stream_option(binding: Binding, item: Any) -> tuple[str, str]:
    if item.defname in ("retention", "emit"):
        instead = f"Give it to the views of the stream: CREATE VIEW ... WITH ({item.defname} = ...)."
        raise unsupported(f"the stream option {item.defname}", instead, binding.position(item))
    if item.defname not in _STREAM_OPTIONS:
        hint = f"Valid options in this context are: {', '.join(_STREAM_OPTIONS)}"
        raise SqlError("HV00D", f'invalid option "{item.defname}"', hint=hint, position=binding.position(item))
    value = item.arg.sval
    if item.defname == "source" and value != "files":
        raise SqlError("22023", f'invalid value for option "source": "{value}"', hint="The only source is files.")
    if item.defname == "format" and value not in ("parquet", "csv", "json"):
        raise SqlError(
            "22023", f'invalid value for option "format": "{value}"', hint="Formats are parquet, csv and json."
        )
    return item.defname, value


# --- columns and constraints -----------------------------------------------------------------------------------------


def _read(binding: Binding, node: Any, stream: bool) -> _Parts:
    parts = _Parts(node.relation.relname)
    items = node.tableElts or ()
    for item in items:
        kind = type(item).__name__
        if kind == "TableLikeClause":
            _like(binding, parts, item, stream)
        if kind == "ColumnDef":
            _column(binding, parts, item, stream)
    for item in items:
        if type(item).__name__ == "ColumnDef":
            for constraint in item.constraints or ():
                _column_constraint(binding, parts, item, constraint, stream)
    for item in (*items, *(node.constraints or ())):
        if type(item).__name__ == "Constraint":
            _constraint(binding, parts, item, names_of(item.keys) or names_of(item.fk_attrs), stream)
    for key in parts.copied_keys:
        _copy_key(parts, key)
    return parts


def _like(binding: Binding, parts: _Parts, node: Any, stream: bool) -> None:
    if stream:
        raise SqlError("0A000", "LIKE is not supported for creating foreign tables")
    columns, checks, keys = like(binding, node)
    for column in columns:
        if parts.column(column.name) is not None:
            raise SqlError("42701", f'column "{column.name}" specified more than once')
        parts.columns.append(column)
    parts.copied_checks += checks
    parts.copied_keys += keys


def _copy_key(parts: _Parts, key: UniqueKey) -> None:
    """A key under a name of its own."""
    if key.primary and any(other.primary for other in parts.keys):
        raise SqlError("42P16", f'multiple primary keys for table "{parts.table}" are not allowed')
    words = ("pkey",) if key.primary else (*key.columns, "key")
    parts.keys.append(replace(key, name=parts.name(None, *words)))


def _column(binding: Binding, parts: _Parts, node: Any, stream: bool) -> None:
    name, position = node.colname, binding.position(node)
    if parts.column(name) is not None:
        raise SqlError("42701", f'column "{name}" specified more than once', position=position)
    if name in _RESERVED:
        raise SqlError("42939", f'column name "{name}" is reserved', position=position)
    if node.collClause is not None:
        raise unsupported("COLLATE", position=binding.position(node.collClause))
    kind = type_of(binding, node.typeName)
    if stream and kind.element is not None:
        instead = "Use one row for each element."
        raise unsupported("a stream's column of an array type", instead, binding.position(node.typeName))
    parts.columns.append(ColumnDefinition(name, kind))


def _column_constraint(binding: Binding, parts: _Parts, column: Any, node: Any, stream: bool) -> None:
    index = next(n for n, known in enumerate(parts.columns) if known.name == column.colname)
    known = parts.columns[index]
    match node.contype:
        case ConstrType.CONSTR_NOTNULL:
            parts.columns[index] = replace(known, not_null=True)
        case ConstrType.CONSTR_DEFAULT:
            if known.default is not None:
                message = f'multiple default values specified for column "{known.name}" of table "{parts.table}"'
                raise SqlError("42601", message, position=binding.position(node))
            text = RawStream()(node.raw_expr)
            _check_default(binding, known, node.raw_expr)
            parts.columns[index] = replace(known, default=text)
        case ConstrType.CONSTR_IDENTITY:
            raise unsupported("GENERATED AS IDENTITY", "Give the values yourself.", binding.position(node))
        case ConstrType.CONSTR_GENERATED:
            _generated(binding, parts, index, node, stream)
        case ConstrType.CONSTR_NULL:
            pass
        case _:
            _constraint(binding, parts, node, (column.colname,), stream)


def _generated(binding: Binding, parts: _Parts, index: int, node: Any, stream: bool) -> None:
    known, position = parts.columns[index], binding.position(node)
    if stream or node.generated_kind != "s":
        raise unsupported("a generated column that is not stored in a table", "Compute it in a view.", position)
    if known.generated is not None:
        message = f'multiple generation clauses specified for column "{known.name}" of table "{parts.table}"'
        raise SqlError("42601", message, position=position)
    parts.columns[index] = replace(known, generated=RawStream()(node.raw_expr))
    parts.generations.append((known.name, node))


def _check_generations(binding: Binding, parts: _Parts) -> frozenset[str]:
    """The columns that generated ones read."""
    used: frozenset[str] = frozenset()
    for name, node in parts.generations:
        column = parts.column(name)
        assert column is not None
        if column.default is not None:
            words = f'both default and generation expression specified for column "{name}" of table "{parts.table}"'
            raise SqlError("42601", words, position=binding.position(node))
        used |= check_generation(binding, parts.columns, column, node.raw_expr)
    return used


def _check_default(binding: Binding, column: ColumnDefinition, node: Any) -> None:
    try:
        scalar = bind_tree(binding, node, (), column.type)
    except SqlError as error:
        if error.sqlstate == "42703":
            message = "cannot use column reference in DEFAULT expression"
            raise SqlError("0A000", message, position=binding.start(node)) from None
        if error.sqlstate == "42804" and error.message.startswith("DEFAULT"):
            found = error.message.removeprefix("DEFAULT ").split(", not ")[0]
            message = f'column "{column.name}" is of type {display(column.type)} but default {found}'
            raise SqlError("42804", message, hint="You will need to rewrite or cast the expression.") from None
        raise
    _refuse_subquery(binding, scalar, node, "DEFAULT expression")


def _refuse_subquery(binding: Binding, scalar: Scalar, node: Any, where: str) -> None:
    if any(isinstance(item, ScalarSubquery | Exists | InSubquery) for item in walk(scalar)):
        raise SqlError("0A000", f"cannot use subquery in {where}", position=binding.start(node))


_IGNORED: Final = (ConstrType.CONSTR_ATTR_NOT_DEFERRABLE, ConstrType.CONSTR_ATTR_IMMEDIATE)


def _constraint(binding: Binding, parts: _Parts, node: Any, columns: tuple[str, ...], stream: bool) -> None:
    position = binding.position(node)
    if stream and node.contype not in _IGNORED:
        words = "only NOT NULL and DEFAULT constraints are supported on streams"
        raise SqlError("0A000", words, hint="Filter the rows in the views.", position=position)
    if node.deferrable or node.contype in (ConstrType.CONSTR_ATTR_DEFERRABLE, ConstrType.CONSTR_ATTR_DEFERRED):
        raise unsupported("DEFERRABLE", "Leave it out: constraints are checked by statement.", position)
    match node.contype:
        case ConstrType.CONSTR_PRIMARY | ConstrType.CONSTR_UNIQUE:
            _key(binding, parts, node, columns)
        case ConstrType.CONSTR_CHECK:
            parts.checks.append((node.conname, node, RawStream()(node.raw_expr)))
        case ConstrType.CONSTR_FOREIGN:
            parts.foreign.append((node, columns))
        case ConstrType.CONSTR_NOTNULL:
            _set_not_null(parts, columns)
        case ConstrType.CONSTR_EXCLUSION:
            raise unsupported("EXCLUDE", position=position)
        case kind if kind not in _IGNORED:
            raise unsupported("this constraint", position=position)


def _set_not_null(parts: _Parts, columns: tuple[str, ...]) -> None:
    parts.columns = [replace(column, not_null=True) if column.name in columns else column for column in parts.columns]


def _key(binding: Binding, parts: _Parts, node: Any, columns: tuple[str, ...]) -> None:
    primary = node.contype == ConstrType.CONSTR_PRIMARY
    position = binding.position(node)
    if node.nulls_not_distinct or node.without_overlaps:
        raise unsupported("NULLS NOT DISTINCT and WITHOUT OVERLAPS", position=position)
    for name in columns:
        column = parts.column(name)
        if column is None:
            raise SqlError("42703", f'column "{name}" named in key does not exist', position=position)
        if column.type.element is not None:
            raise unsupported("a key of an array type", "Use a key of scalar columns.", position)
        if column.type.name == "json":
            raise SqlError("42704", 'data type json has no default operator class for access method "btree"')
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        word = "primary key" if primary else "unique"
        raise SqlError("42701", f'column "{twice}" appears twice in {word} constraint', position=position)
    if primary:
        if any(key.primary for key in parts.keys):
            message = f'multiple primary keys for table "{parts.table}" are not allowed'
            raise SqlError("42P16", message, position=position)
        _set_not_null(parts, columns)
    name = parts.name(node.conname, "pkey") if primary else parts.name(node.conname, *columns, "key")
    parts.keys.append(UniqueKey(name, columns, primary))


def _check(binding: Binding, parts: _Parts, item: tuple[str | None, Any, str]) -> Check:
    given, node, text = item
    columns = [Column(-1 - index, column.name, column.type) for index, column in enumerate(parts.columns)]
    tree = node.raw_expr
    scalar = bind_tree(binding, tree, columns, None, "check constraint")
    if scalar.type not in (BOOL, SqlType("unknown")):
        message = f"argument of CHECK must be type boolean, not type {display(scalar.type)}"
        raise SqlError("42804", message, position=binding.start(tree))
    _refuse_subquery(binding, scalar, tree, "check constraint")
    used = sorted({part.column.name for part in walk(scalar) if isinstance(part, ColumnRef)})
    if given in parts.names:
        raise SqlError("42710", f'check constraint "{given}" already exists')
    return Check(parts.name(given, *(used if len(used) == 1 else ()), "check"), text)


def _foreign_key(binding: Binding, parts: _Parts, table: Table, node: Any, columns: tuple[str, ...]) -> ForeignKey:
    position = binding.position(node)
    if node.fk_matchtype not in ("s", "\0", None):
        raise unsupported("MATCH FULL and MATCH PARTIAL", "Leave MATCH out.", position)
    for name in columns:
        if parts.column(name) is None:
            raise SqlError(
                "42703", f'column "{name}" referenced in foreign key constraint does not exist', position=position
            )
    target = _referenced(binding, table, node)
    wanted = _referenced_columns(target, node, columns, position)
    given = parts.name(node.conname, *columns, "fkey")
    for name, other in zip(columns, wanted, strict=True):
        _check_partner(given, parts, target, name, other)
    return ForeignKey(given, columns, target.oid, wanted, node.fk_del_action or "a", node.fk_upd_action or "a")


def _referenced(binding: Binding, table: Table, node: Any) -> Table:
    if node.pktable.relname == table.name and node.pktable.schemaname in (None, table.schema):
        return table
    found = find_object(binding, node.pktable)
    if not isinstance(found, Table):
        raise SqlError(
            "42809", f'referenced relation "{found.name}" is not a table', position=binding.position(node.pktable)
        )
    return found


def _referenced_columns(target: Table, node: Any, columns: tuple[str, ...], position: int | None) -> tuple[str, ...]:
    wanted = names_of(node.pk_attrs)
    if not wanted:
        primary = next((key for key in target.keys if key.primary), None)
        if primary is None:
            message = f'there is no primary key for referenced table "{target.name}"'
            raise SqlError("42704", message, position=position)
        wanted = primary.columns
    if len(wanted) != len(columns):
        message = "number of referencing and referenced columns for foreign key disagree"
        raise SqlError("42830", message, position=position)
    known = {column.name for column in target.columns}
    for name in wanted:
        if name not in known:
            message = f'column "{name}" referenced in foreign key constraint does not exist'
            raise SqlError("42703", message, position=position)
    if not any(set(key.columns) == set(wanted) for key in target.keys):
        message = f'there is no unique constraint matching given keys for referenced table "{target.name}"'
        raise SqlError("42830", message, position=position)
    return wanted


def _check_partner(given: str, parts: _Parts, target: Table, name: str, other: str) -> None:
    column = parts.column(name)
    partner = next(item for item in target.columns if item.name == other)
    assert column is not None
    families = (("int2", "int4", "int8", "numeric"), ("text", "varchar", "bpchar", "name"))
    alike = any(column.type.name in family and partner.type.name in family for family in families)
    if column.type.name != partner.type.name and not alike:
        types = f"{display(column.type)} and {display(partner.type)}"
        detail = f'Key columns "{name}" and "{other}" are of incompatible types: {types}.'
        raise SqlError("42804", f'foreign key constraint "{given}" cannot be implemented', detail)

"""Columns and constraints of tables and streams, as CREATE TABLE and ALTER TABLE define them.

Owns: ``Parts``, what has been read of a definition so far, PostgreSQL's names for constraints, and the errors of each.
Expressions of DEFAULT and CHECK are kept as text, and bound here once to find their errors.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pglast.enums import ConstrType
from pglast.stream import RawStream

from catalog.errors import SqlError, unsupported
from catalog.objects import Check, ColumnDefinition, ForeignKey, Index, Sequence, Table, UniqueKey, is_temporary
from catalog.types import BOOL, SqlType
from planner.bind.context import Binding
from planner.bind.definitions.generated import check_generation
from planner.bind.definitions.sequences import SERIALS, call_of, numbered, own_sequence
from planner.bind.relations import require_object
from planner.bind.texts import bind_tree
from planner.bind.typenames import check_collation, names_of, type_of
from planner.bind.types import display
from planner.expression import Column, ColumnRef, Exists, InSubquery, Scalar, ScalarSubquery
from planner.walk import walk

#: Names of hidden columns.
_RESERVED: Final = ("__rowid", "__lsn", "__ordinal")


@dataclass(frozen=True, slots=True)
class Attributes:
    """[NOT] DEFERRABLE, INITIALLY DEFERRED or IMMEDIATE; None where it is not said."""

    deferrable: bool | None = None
    deferred: bool | None = None

    @property
    def is_deferrable(self) -> bool:
        """Also where only INITIALLY DEFERRED says it."""
        return bool(self.deferred) if self.deferrable is None else self.deferrable


@dataclass(slots=True)
class Parts:
    """What has been read of a definition so far. ``owned``: columns with a sequence, and its options or its model."""

    table: str
    columns: list[ColumnDefinition] = field(default_factory=list)
    keys: list[UniqueKey] = field(default_factory=list)
    foreign: list[tuple[Any, tuple[str, ...], Attributes]] = field(default_factory=list)
    checks: list[tuple[str | None, Any, str]] = field(default_factory=list)
    generations: list[tuple[str, Any]] = field(default_factory=list)
    copied_checks: list[Check] = field(default_factory=list)
    copied_keys: list[UniqueKey] = field(default_factory=list)
    copied_indexes: list[Index] = field(default_factory=list)
    indexes: list[Index] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    owned: dict[str, Any] = field(default_factory=dict)
    altered: bool = False

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


def add_column(binding: Binding, parts: Parts, node: Any, stream: bool) -> None:
    name, position = node.colname, binding.position(node)
    if parts.column(name) is not None:
        raise SqlError("42701", f'column "{name}" specified more than once', position=position)
    if name in _RESERVED:
        raise SqlError("42939", f'column name "{name}" is reserved', position=position)
    if node.collClause is not None:
        check_collation(binding, node.collClause)
    written = names_of(node.typeName.names)
    serial = SERIALS.get(written[0]) if len(written) == 1 else None
    if serial is not None and stream:
        raise unsupported("a serial column of a stream", "Give its values yourself.", binding.position(node.typeName))
    kind = serial or type_of(binding, node.typeName)
    if stream and kind.element is not None:
        instead = "Use one row for each element."
        raise unsupported("a stream's column of an array type", instead, binding.position(node.typeName))
    parts.columns.append(ColumnDefinition(name, kind, serial is not None))
    if serial is not None:
        parts.owned[name] = ()


#: Constraints that attributes may follow.
_WITH_ATTRIBUTES: Final = (
    *(ConstrType.CONSTR_PRIMARY, ConstrType.CONSTR_UNIQUE, ConstrType.CONSTR_EXCLUSION, ConstrType.CONSTR_FOREIGN),
)
_ATTRIBUTES: Final = {
    ConstrType.CONSTR_ATTR_DEFERRABLE: ("DEFERRABLE", True),
    ConstrType.CONSTR_ATTR_NOT_DEFERRABLE: ("NOT DEFERRABLE", False),
    ConstrType.CONSTR_ATTR_DEFERRED: ("INITIALLY DEFERRED", True),
    ConstrType.CONSTR_ATTR_IMMEDIATE: ("INITIALLY IMMEDIATE", False),
}


def constrain_column(binding: Binding, parts: Parts, column: Any, stream: bool) -> None:
    """A column's constraints, each with the attributes that follow it. Raises 42601 for one that follows none."""
    found: list[tuple[Any, Attributes]] = []
    for node in column.constraints or ():
        if node.contype not in _ATTRIBUTES:
            found.append((node, Attributes()))
            continue
        if not found or found[-1][0].contype not in _WITH_ATTRIBUTES:
            words = f"misplaced {_ATTRIBUTES[node.contype][0]} clause"
            raise SqlError("42601", words, position=binding.position(node))
        found[-1] = (found[-1][0], _and_attribute(binding, found[-1][1], node))
    for node, attributes in found:
        _constrain_column(binding, parts, column, node, attributes, stream)


def _and_attribute(binding: Binding, before: Attributes, node: Any) -> Attributes:
    word, value = _ATTRIBUTES[node.contype]
    if word.startswith("INITIALLY"):
        given, clauses, after = before.deferred, "INITIALLY IMMEDIATE/DEFERRED", replace(before, deferred=value)
    else:
        given, clauses, after = before.deferrable, "DEFERRABLE/NOT DEFERRABLE", replace(before, deferrable=value)
    if given is not None:
        raise SqlError("42601", f"multiple {clauses} clauses not allowed", position=binding.position(node))
    if after.deferrable is False and after.deferred:
        words = "constraint declared INITIALLY DEFERRED must be DEFERRABLE"
        raise SqlError("42601", words, position=binding.position(node))
    return after


def _constrain_column(
    binding: Binding, parts: Parts, column: Any, node: Any, attributes: Attributes, stream: bool
) -> None:
    index = next(n for n, known in enumerate(parts.columns) if known.name == column.colname)
    known = parts.columns[index]
    match node.contype:
        case ConstrType.CONSTR_NOTNULL:
            parts.columns[index] = replace(known, not_null=True)
        case ConstrType.CONSTR_DEFAULT:
            parts.columns[index] = with_default(binding, parts, known, node)
            if stream and parts.columns[index].sequences:
                raise unsupported("a sequence as a stream's default", "Give the values.", binding.position(node))
        case ConstrType.CONSTR_IDENTITY:
            _identity(binding, parts, index, node, stream)
        case ConstrType.CONSTR_GENERATED:
            _generated(binding, parts, index, node, stream)
        case ConstrType.CONSTR_NULL:
            pass
        case _:
            add_constraint(binding, parts, node, (column.colname,), attributes, stream)


def _generated(binding: Binding, parts: Parts, index: int, node: Any, stream: bool) -> None:
    known, position = parts.columns[index], binding.position(node)
    if stream or node.generated_kind != "s":
        raise unsupported("a generated column that is not stored in a table", "Compute it in a view.", position)
    if parts.altered:
        instead = "Create the table with it, or compute it in a view."
        raise unsupported("ALTER TABLE ... ADD COLUMN ... GENERATED ALWAYS AS", instead, position)
    if known.generated is not None:
        message = f'multiple generation clauses specified for column "{known.name}" of table "{parts.table}"'
        raise SqlError("42601", message, position=position)
    parts.columns[index] = replace(known, generated=RawStream()(node.raw_expr))
    parts.generations.append((known.name, node))


def check_generations(binding: Binding, parts: Parts) -> frozenset[str]:
    """The columns that generated ones read. Raises 42601 beside a default or an identity."""
    used: frozenset[str] = frozenset()
    for name, node in parts.generations:
        column = parts.column(name)
        assert column is not None
        other = "identity" if column.identity else "default"
        if column.default is not None or name in parts.owned:
            words = f'both {other} and generation expression specified for column "{name}" of table "{parts.table}"'
            is_serial = name in parts.owned and not column.identity
            raise SqlError("42601", words, position=None if is_serial else binding.position(node))
        used |= check_generation(binding, parts.columns, column, node.raw_expr)
    return used


def copy_keys(parts: Parts) -> None:
    """Keys and indexes of another table under names of their own."""
    for key in parts.copied_keys:
        if key.primary and any(other.primary for other in parts.keys):
            raise SqlError("42P16", f'multiple primary keys for table "{parts.table}" are not allowed')
        words = ("pkey",) if key.primary else (*key.columns, "idx" if key.index else "key")
        parts.keys.append(replace(key, name=parts.name(None, *words)))
    for index in parts.copied_indexes:
        parts.indexes.append(replace(index, name=parts.name(None, *(index.columns or ("expr",)), "idx")))


def with_default(binding: Binding, parts: Parts, known: ColumnDefinition, node: Any) -> ColumnDefinition:
    _refuse_second(binding, parts, known, node)
    check_default(binding, known, node.raw_expr)
    tree, sequences = numbered(binding, node.raw_expr)
    return replace(known, default=RawStream()(tree), sequences=sequences)


def _refuse_second(binding: Binding, parts: Parts, known: ColumnDefinition, node: Any) -> None:
    """One default, or one identity, of a column."""
    has_default = known.default is not None or known.name in parts.owned
    if known.identity and node.contype == ConstrType.CONSTR_IDENTITY:
        words = "multiple identity specifications"
    elif known.identity or (has_default and node.contype == ConstrType.CONSTR_IDENTITY):
        words = "both default and identity specified"
    elif has_default:
        words = "multiple default values specified"
    else:
        return
    message = f'{words} for column "{known.name}" of table "{parts.table}"'
    position = None if known.name in parts.owned and not known.identity else binding.position(node)
    raise SqlError("42601", message, position=position)


def _identity(binding: Binding, parts: Parts, index: int, node: Any, stream: bool) -> None:
    """GENERATED ALWAYS or BY DEFAULT AS IDENTITY [(options)]."""
    known = parts.columns[index]
    if stream:
        raise unsupported("an identity column of a stream", "Give its values yourself.", binding.position(node))
    _refuse_second(binding, parts, known, node)
    parts.owned[known.name] = node.options or ()
    parts.columns[index] = replace(known, not_null=True, identity=node.generated_when)


def check_default(binding: Binding, column: ColumnDefinition, node: Any) -> None:
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


def add_table_constraint(binding: Binding, parts: Parts, node: Any, stream: bool) -> None:
    """A constraint of its own, and not of a column."""
    attributes = Attributes(bool(node.deferrable), bool(node.initdeferred))
    add_constraint(binding, parts, node, names_of(node.keys) or names_of(node.fk_attrs), attributes, stream)


def add_constraint(
    binding: Binding, parts: Parts, node: Any, columns: tuple[str, ...], attributes: Attributes, stream: bool
) -> None:
    position = binding.position(node)
    if stream:
        words = "only NOT NULL and DEFAULT constraints are supported on streams"
        raise SqlError("0A000", words, hint="Filter the rows in the views.", position=position)
    if attributes.is_deferrable and node.contype != ConstrType.CONSTR_FOREIGN:
        raise unsupported("a DEFERRABLE key", "Leave it out: keys are checked by statement.", position)
    match node.contype:
        case ConstrType.CONSTR_PRIMARY | ConstrType.CONSTR_UNIQUE:
            _key(binding, parts, node, columns)
        case ConstrType.CONSTR_CHECK:
            parts.checks.append((node.conname, node, RawStream()(node.raw_expr)))
        case ConstrType.CONSTR_FOREIGN:
            parts.foreign.append((node, columns, attributes))
        case ConstrType.CONSTR_NOTNULL:
            _set_not_null(parts, columns)
        case ConstrType.CONSTR_EXCLUSION:
            raise unsupported("EXCLUDE", position=position)
        case _:
            raise unsupported("this constraint", position=position)


def _set_not_null(parts: Parts, columns: tuple[str, ...]) -> None:
    parts.columns = [replace(column, not_null=True) if column.name in columns else column for column in parts.columns]


def _key(binding: Binding, parts: Parts, node: Any, columns: tuple[str, ...]) -> None:
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
            raise SqlError("42P16", message, position=None if parts.altered else position)
        _set_not_null(parts, columns)
    name = parts.name(node.conname, "pkey") if primary else parts.name(node.conname, *columns, "key")
    parts.keys.append(UniqueKey(name, columns, primary))


def make_check(binding: Binding, parts: Parts, item: tuple[str | None, Any, str]) -> Check:
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


def make_foreign_key(
    binding: Binding, parts: Parts, table: Table, item: tuple[Any, tuple[str, ...], Attributes]
) -> ForeignKey:
    node, columns, attributes = item
    position = binding.position(node)
    if node.fk_matchtype not in ("s", "\0", None):
        raise unsupported("MATCH FULL and MATCH PARTIAL", "Leave MATCH out.", position)
    for name in columns:
        if parts.column(name) is None:
            raise SqlError(
                "42703", f'column "{name}" referenced in foreign key constraint does not exist', position=position
            )
    target = _referenced(binding, table, node)
    if is_temporary(target) != is_temporary(table):
        kind = "temporary" if is_temporary(table) else "permanent"
        message = f"constraints on {kind} tables may reference only {kind} tables"
        raise SqlError("42P16", message, position=None)
    wanted = _referenced_columns(target, node, columns, position)
    given = parts.name(node.conname, *columns, "fkey")
    for name, other in zip(columns, wanted, strict=True):
        _check_partner(given, parts, target, name, other)
    actions = (node.fk_del_action or "a", node.fk_upd_action or "a")
    waits = (attributes.is_deferrable, bool(attributes.deferred))
    return ForeignKey(given, columns, target.oid, wanted, *actions, *waits)


def _referenced(binding: Binding, table: Table, node: Any) -> Table:
    if node.pktable.relname == table.name and node.pktable.schemaname in (None, table.schema):
        return table
    found = require_object(binding, node.pktable)
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


def _check_partner(given: str, parts: Parts, target: Table, name: str, other: str) -> None:
    column = parts.column(name)
    partner = next(item for item in target.columns if item.name == other)
    assert column is not None
    families = (("int2", "int4", "int8", "numeric"), ("text", "varchar", "bpchar", "name"))
    alike = any(column.type.name in family and partner.type.name in family for family in families)
    if column.type.name != partner.type.name and not alike:
        types = f"{display(column.type)} and {display(partner.type)}"
        detail = f'Key columns "{name}" and "{other}" are of incompatible types: {types}.'
        raise SqlError("42804", f'foreign key constraint "{given}" cannot be implemented', detail)


def with_sequences(
    binding: Binding, parts: Parts, table: Table, first: int
) -> tuple[tuple[ColumnDefinition, ...], tuple[Sequence, ...]]:
    """The columns with the defaults of those that get a sequence of their own, and these, whose oids begin at
    ``first``."""
    columns: list[ColumnDefinition] = []
    sequences: list[Sequence] = []
    taken = {table.name}
    for column in parts.columns:
        if column.name in parts.owned:
            options = parts.owned[column.name]
            sequence = own_sequence(binding, table.name, table.schema, column, taken, options)
            oid = first + len(sequences)
            taken.add(sequence.name)
            sequences.append(replace(sequence, oid=oid, owner=(table.oid, column.name)))
            column = replace(column, not_null=True, default=call_of(oid), sequences=(oid,))
        columns.append(column)
    return tuple(columns), tuple(sequences)

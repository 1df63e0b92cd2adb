"""Constraints of tables, as CREATE TABLE and ALTER TABLE define them: keys, checks and foreign keys.

Owns: the errors of each. Expressions of CHECK are kept as text, and bound here once to find their errors.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace
from pglast.enums import ConstrType

from catalog.objects import Check, ColumnDefinition, ForeignKey, Table, UniqueKey, is_temporary
from catalog.values.errors import SqlError, unsupported
from catalog.values.scales import is_unconstrained
from catalog.values.types import BOOL, SqlType
from planner.algebra.nodes import ColumnRef, Exists, InSubquery, Scalar, ScalarSubquery
from planner.algebra.walk import walk
from planner.bind.changes.index_expressions import labels_of
from planner.bind.definitions.expression_texts import expression_text
from planner.bind.definitions.relations.definition_parts import Attributes, Parts
from planner.bind.definitions.relations.operator_classes import check_indexed
from planner.bind.lookup.columns import SYSTEM_COLUMNS
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.relations import require_object
from planner.bind.lookup.search_path import searched
from planner.bind.lookup.type_names import display
from planner.bind.scalars.stored_expressions import bind_tree, row_of, unqualified
from planner.bind.state.environment import Binding


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
    match node.contype:
        case ConstrType.CONSTR_PRIMARY | ConstrType.CONSTR_UNIQUE:
            _key(binding, parts, node, columns, attributes)
        case ConstrType.CONSTR_CHECK:
            parts.checks.append((node.conname, node))
        case ConstrType.CONSTR_FOREIGN:
            parts.foreign.append((node, columns, attributes))
        case ConstrType.CONSTR_NOTNULL:
            _set_not_null(parts, columns)
        case ConstrType.CONSTR_EXCLUSION:
            instead = "Insert with SELECT ... WHERE NOT EXISTS (SELECT ... the rows that it conflicts with)."
            raise unsupported("EXCLUDE", instead, position)
        case _:
            raise unsupported("this constraint", position=position)


def _set_not_null(parts: Parts, columns: tuple[str, ...]) -> None:
    parts.columns = [replace(column, not_null=True) if column.name in columns else column for column in parts.columns]


def _key(binding: Binding, parts: Parts, node: Any, columns: tuple[str, ...], attributes: Attributes) -> None:
    primary = node.contype == ConstrType.CONSTR_PRIMARY
    position = binding.position(node)
    if node.without_overlaps:
        raise unsupported("WITHOUT OVERLAPS", position=position)
    if node.nulls_not_distinct and attributes.is_deferrable:
        raise unsupported("NULLS NOT DISTINCT of a deferrable constraint", "Leave DEFERRABLE out.", position)
    for name in columns:
        column = parts.column(name)
        if column is None:
            raise SqlError("42703", f'column "{name}" named in key does not exist', position=position)
        if column.type.element is not None:
            raise unsupported("a key of an array type", "Use a key of scalar columns.", position)
        if column.type.row is not None:
            raise unsupported("a key of a composite type", "Use a key of scalar columns.", position)
        check_indexed(column.type, "btree")
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
    waits = (attributes.is_deferrable, bool(attributes.deferred))
    parts.keys.append(UniqueKey(name, columns, primary, False, *waits, nulls_alike=bool(node.nulls_not_distinct)))


def copy_keys(parts: Parts) -> None:
    """Keys and indexes of another table under names of their own."""
    for key in parts.copied_keys:
        if key.primary and any(other.primary for other in parts.keys):
            raise SqlError("42P16", f'multiple primary keys for table "{parts.table}" are not allowed')
        words = ("pkey",) if key.primary else (*key.columns, "idx" if key.index else "key")
        parts.keys.append(replace(key, name=parts.name(None, *words)))
    for index in parts.copied_indexes:
        parts.indexes.append(replace(index, name=parts.name(None, *labels_of(index.parts), "idx")))


def make_check(binding: Binding, parts: Parts, item: tuple[str | None, Any]) -> Check:
    """A CHECK over all columns. Raises 42804, 42710 and 0A000."""
    given, node = item
    columns = row_of(parts.columns)
    tree = unqualified(node.raw_expr, parts.table)
    scalar = bind_tree(binding, tree, columns, None, "check constraint")
    if scalar.type not in (BOOL, SqlType("unknown")):
        message = f"argument of CHECK must be type boolean, not type {display(scalar.type)}"
        raise SqlError("42804", message, position=binding.start(tree))
    refuse_subquery(binding, scalar, tree, "check constraint")
    used = sorted({part.column.name for part in walk(scalar) if isinstance(part, ColumnRef)})
    if given in parts.names:
        raise SqlError("42710", f'check constraint "{given}" already exists')
    return Check(parts.name(given, *(used if len(used) == 1 else ()), "check"), expression_text(binding, tree, columns))


def refuse_subquery(binding: Binding, scalar: Scalar, node: Any, where: str) -> None:
    if any(isinstance(item, ScalarSubquery | Exists | InSubquery) for item in walk(scalar)):
        raise SqlError("0A000", f"cannot use subquery in {where}", position=binding.start(node))


def make_foreign_key(
    binding: Binding, parts: Parts, table: Table, item: tuple[Any, tuple[str, ...], Attributes]
) -> ForeignKey:
    node, columns, attributes = item
    position = binding.position(node)
    is_full = node.fk_matchtype == "f"
    if is_full and attributes.is_deferrable and len(columns) > 1:
        raise unsupported("MATCH FULL of several columns in a deferrable constraint", "Leave DEFERRABLE out.", position)
    for name in columns:
        if name in SYSTEM_COLUMNS:
            raise SqlError("0A000", "system columns cannot be used in foreign keys")
        if parts.column(name) is None:
            raise SqlError("42703", f'column "{name}" referenced in foreign key constraint does not exist')
    target = _referenced(binding, table, node)
    if is_temporary(target) != is_temporary(table):
        kind = "temporary" if is_temporary(table) else "permanent"
        message = f"constraints on {kind} tables may reference only {kind} tables"
        raise SqlError("42P16", message)
    wanted = _referenced_columns(target, node, columns)
    given = parts.name(node.conname, *columns, "fkey")
    for name, other in zip(columns, wanted, strict=True):
        column, partner = parts.column(name), next(item for item in target.columns if item.name == other)
        assert column is not None
        check_partner(given, column, partner)
    actions = (node.fk_del_action or "a", node.fk_upd_action or "a")
    waits = (attributes.is_deferrable, bool(attributes.deferred))
    named = _delete_columns(parts, columns, names_of(node.fk_del_set_cols))
    if "d" in actions and any((column := parts.column(name)) and is_unconstrained(column.type) for name in columns):
        instead = "Declare its digits: numeric(p, s)."
        raise unsupported("SET DEFAULT of a foreign key of numeric without digits", instead, position)
    return ForeignKey(given, columns, target.oid, wanted, *actions, *waits, full=is_full, delete_columns=named)


def _delete_columns(parts: Parts, columns: tuple[str, ...], named: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that ON DELETE SET NULL and SET DEFAULT name. Raises 42703 and 42P10."""
    for name in named:
        if parts.column(name) is None:
            raise SqlError("42703", f'column "{name}" referenced in foreign key constraint does not exist')
        if name not in columns:
            message = f'column "{name}" referenced in ON DELETE SET action must be part of foreign key'
            raise SqlError("42P10", message)
    return tuple(dict.fromkeys(named))


def _refers_to_itself(binding: Binding, table: Table, node: Any) -> bool:
    """Whether the name behind REFERENCES finds the table that has the key, which the catalog may not have yet."""
    if node.pktable.relname != table.name:
        return False
    for schema in searched(binding, node.pktable.schemaname):
        if schema == table.schema:
            return True
        if binding.context.catalog.at(schema, table.name) is not None:
            return False
    return False


def _referenced(binding: Binding, table: Table, node: Any) -> Table:
    if _refers_to_itself(binding, table, node):
        return table
    found = require_object(binding, node.pktable)
    if not isinstance(found, Table):
        raise SqlError("42809", f'referenced relation "{found.name}" is not a table')
    return found


def _referenced_columns(target: Table, node: Any, columns: tuple[str, ...]) -> tuple[str, ...]:
    wanted = names_of(node.pk_attrs)
    if not wanted:
        primary = next((key for key in target.keys if key.primary), None)
        if primary is None:
            message = f'there is no primary key for referenced table "{target.name}"'
            raise SqlError("42704", message)
        wanted = primary.columns
    if len(wanted) != len(columns):
        message = "number of referencing and referenced columns for foreign key disagree"
        raise SqlError("42830", message)
    known = {column.name for column in target.columns}
    for name in wanted:
        if name in SYSTEM_COLUMNS:
            raise SqlError("0A000", "system columns cannot be used in foreign keys")
        if name not in known:
            message = f'column "{name}" referenced in foreign key constraint does not exist'
            raise SqlError("42703", message)
    keys = [key for key in target.keys if set(key.columns) == set(wanted)]
    if keys and all(key.deferrable for key in keys):
        message = f'cannot use a deferrable unique constraint for referenced table "{target.name}"'
        raise SqlError("55000", message)
    if not keys:
        message = f'there is no unique constraint matching given keys for referenced table "{target.name}"'
        raise SqlError("42830", message)
    return wanted


#: Types of a column and of the key that it refers to, which PostgreSQL compares in the key's type.
_WIDENED: Final = {(given, wide) for wide in ("float4", "float8") for given in ("int2", "int4", "int8", "numeric")} | {
    ("float4", "float8"),
    ("date", "timestamp"),
}


def check_partner(key: str, column: ColumnDefinition, partner: ColumnDefinition) -> None:
    """That a column of a foreign key and the one it refers to have types that are compared. Raises 42804, 0A000."""
    families = (("int2", "int4", "int8", "numeric"), ("text", "varchar", "bpchar", "name"))
    alike = any(column.type.name in family and partner.type.name in family for family in families)
    alike &= column.type.name != "numeric"  # which no integer of the referenced key is compared with
    if column.type.oid != partner.type.oid and not alike:
        if (column.type.name, partner.type.name) in _WIDENED:
            instead = f"Give the column the type {display(partner.type)}."
            raise unsupported(f"a foreign key of type {display(column.type)}", instead)
        types = f"{display(column.type)} and {display(partner.type)}"
        detail = f'Key columns "{column.name}" and "{partner.name}" are of incompatible types: {types}.'
        raise SqlError("42804", f'foreign key constraint "{key}" cannot be implemented', detail)

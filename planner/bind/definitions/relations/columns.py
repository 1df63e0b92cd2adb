"""Columns of tables and streams, as CREATE TABLE and ALTER TABLE define them, with the constraints behind each.

Owns: types, defaults, identities and generated values of columns, and the errors of each. Expressions of DEFAULT are
kept as text, and bound here once to find their errors.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Final

from msgspec.structs import replace
from pglast.enums import ConstrType

from catalog.objects import ColumnDefinition, Sequence, Table
from catalog.values.errors import SqlError, unsupported
from catalog.values.nested_texts import is_of_dimensions
from catalog.values.types import shaped
from planner.bind.changes.generated_columns import check_generation
from planner.bind.conversion.domains import is_constrained
from planner.bind.conversion.rows import check_kept
from planner.bind.definitions.expression_texts import expression_text, kept_text
from planner.bind.definitions.relations.constraints import add_constraint, refuse_subquery
from planner.bind.definitions.relations.definition_parts import Attributes, Parts
from planner.bind.definitions.sequences import SERIALS, call_of, numbered, own_sequence
from planner.bind.lookup.columns import SYSTEM_COLUMNS
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.type_names import check_collation, display, type_or_domain
from planner.bind.scalars.stored_expressions import bind_tree, row_of, unqualified
from planner.bind.state.environment import Binding

#: Names of hidden columns.
_RESERVED: Final = ("__rowid", "__lsn", "__ordinal")


def add_column(binding: Binding, parts: Parts, node: Any, stream: bool) -> None:
    name, position = node.colname, binding.position(node)
    if parts.column(name) is not None:
        raise SqlError("42701", f'column "{name}" specified more than once', position=position)
    if name in SYSTEM_COLUMNS:
        raise SqlError("42701", f'column name "{name}" conflicts with a system column name')
    if name in _RESERVED:
        raise SqlError("42939", f'column name "{name}" is reserved', position=position)
    written = names_of(node.typeName.names)
    serial = SERIALS.get(written[0]) if len(written) == 1 else None
    if serial is not None and stream:
        instead = "Insert its values."
        raise unsupported("a serial column of a foreign table", instead, binding.position(node.typeName))
    kind, domain = (serial, 0) if serial is not None else type_or_domain(binding, node.typeName)
    check_kept(binding.context.catalog, name, kind)
    collation = 0 if node.collClause is None else check_collation(binding, node.collClause, kind)
    if stream and kind.row is not None:
        instead = "Use a column for each of its fields."
        raise unsupported("a foreign table's column of a composite type", instead, binding.position(node.typeName))
    if stream and is_constrained(binding, domain):
        instead = "Use its base type, and filter the rows in the views."
        raise unsupported("a foreign table's column of a constrained domain", instead, binding.position(node.typeName))
    if stream and kind.element is not None:
        instead = "Use one row for each element."
        raise unsupported("a foreign table's column of an array type", instead, binding.position(node.typeName))
    parts.columns.append(ColumnDefinition(name, kind, serial is not None, domain=domain, collation=collation))
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


#: Constraints that say whether a column may be NULL.
_NULLABLE: Final = {
    ConstrType.CONSTR_NULL: True,
    ConstrType.CONSTR_NOTNULL: False,
    ConstrType.CONSTR_IDENTITY: False,
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
    _check_nullable(binding, parts, column)
    for node, attributes in found:
        _constrain_column(binding, parts, column, node, attributes, stream)


def _check_nullable(binding: Binding, parts: Parts, column: Any) -> None:
    """Raises 42601 for a column that is declared both NULL and NOT NULL, as an identity's is."""
    declared: set[bool] = set()
    for node in column.constraints or ():
        if node.contype in _NULLABLE:
            declared.add(_NULLABLE[node.contype])
        if len(declared) == 2:
            message = f'conflicting NULL/NOT NULL declarations for column "{column.colname}" of table "{parts.table}"'
            raise SqlError("42601", message, position=binding.position(node))


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
                raise unsupported("a sequence as a stream's default", "Insert the values.", binding.position(node))
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
    if known.generated is not None:
        message = f'multiple generation clauses specified for column "{known.name}" of table "{parts.table}"'
        raise SqlError("42601", message, position=position)
    parts.columns[index] = replace(known, generated=kept_text(binding, unqualified(node.raw_expr, parts.table)))
    parts.generations.append((known.name, node))


def check_generations(binding: Binding, parts: Parts) -> frozenset[str]:
    """The columns that generated ones read. Raises 42601 beside a default or an identity."""
    used: frozenset[str] = frozenset()
    for name, node in parts.generations:
        place = next(place for place, item in enumerate(parts.columns) if item.name == name)
        column = parts.columns[place]
        other = "identity" if column.identity else "default"
        if column.default is not None or name in parts.owned:
            words = f'both {other} and generation expression specified for column "{name}" of table "{parts.table}"'
            is_serial = name in parts.owned and not column.identity
            raise SqlError("42601", words, position=None if is_serial else binding.position(node))
        tree = unqualified(node.raw_expr, parts.table)
        with binding.without_positions() if parts.altered else nullcontext():
            used |= check_generation(binding, parts.columns, column, tree)
        text = expression_text(binding, tree, row_of(parts.columns), column.type)
        parts.columns[place] = replace(column, generated=text)
    return used


def with_default(binding: Binding, parts: Parts, known: ColumnDefinition, node: Any) -> ColumnDefinition:
    _refuse_second(binding, parts, known, node)
    try:
        return defaulting(binding, known, node.raw_expr)
    except SqlError as error:
        if known.type.name != "array" or known.type.element is None or not is_of_dimensions(error):
            raise
        return defaulting(binding, replace(known, type=shaped(known.type.element)), node.raw_expr)


def defaulting(binding: Binding, known: ColumnDefinition, node: Any) -> ColumnDefinition:
    """A column with a default; NULL is none, unless a domain or a length follows (AddRelationNewConstraints)."""
    check_default(binding, known, node)
    if type(node).__name__ == "A_Const" and node.isnull and not known.domain and known.type.typmod < 0:
        return replace(known, default=None, sequences=())
    tree, sequences = numbered(binding, node)
    return replace(known, default=expression_text(binding, tree, (), known.type), sequences=sequences)


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
        raise unsupported("an identity column of a stream", "Insert its values.", binding.position(node))
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
    refuse_subquery(binding, scalar, node, "DEFAULT expression")


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

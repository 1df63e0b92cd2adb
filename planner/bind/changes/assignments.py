"""Values that are assigned to columns: casts, defaults, and the SET lists of UPDATE, ON CONFLICT and MERGE.

Owns: the value of each column in its type, and the names of the row that changes. It does not know which statement
makes the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from catalog.objects import ColumnDefinition, Stream, Table
from catalog.values.errors import SqlError, unsupported
from catalog.values.nested_texts import is_of_dimensions
from catalog.values.types import SqlType, shaped
from planner.algebra.nodes import Cast, Column, ColumnRef, Literal, Project, Scalar, ScalarSubquery
from planner.bind.changes.column_parts import assign_part
from planner.bind.changes.generated_columns import refuse_updated
from planner.bind.changes.identity_columns import check_updated
from planner.bind.conversion.coercion import coerce
from planner.bind.conversion.domains import default_text, into_domain
from planner.bind.conversion.rows import is_star, row_items
from planner.bind.lookup.type_names import display
from planner.bind.scalars.select_lists import item_nodes
from planner.bind.scalars.stored_expressions import bind_stored
from planner.bind.state.environment import Binding, Environment, Scope, source_of
from planner.bind.state.from_names import Entry


def assign(env: Environment, scalar: Scalar, column: ColumnDefinition, node: Any) -> Scalar:
    """A value in its column's type. Raises 42804."""
    found = _coerced(env, scalar, column.type, node)
    if found is None:
        message = (
            f'column "{column.name}" is of type {display(column.type)} but expression is of type {display(scalar.type)}'
        )
        raise env.error_at("42804", message, node, hint="You will need to rewrite or cast the expression.")
    return into_domain(env.binding, found, column.domain, node)


def _coerced(env: Environment, scalar: Scalar, kind: SqlType, node: Any) -> Scalar | None:
    """A constant array that says dimensions is one where the column does not, until it is widened when it runs."""
    try:
        return coerce(env.binding, scalar, kind, "assignment", node)
    except SqlError as error:
        if kind.name != "array" or kind.element is None or not is_of_dimensions(error):
            raise
        found = coerce(env.binding, scalar, shaped(kind.element), "assignment", node)
        return None if found is None else Cast(found, kind)


def default_of(binding: Binding, column: ColumnDefinition) -> Scalar:
    """A column's DEFAULT, or that of its domain, or NULL."""
    text = default_text(binding, column)
    if text is None:
        return into_domain(binding, Literal(None, column.type), column.domain)
    value = bind_stored(binding.binder, text, (), replace(binding.context, parameter_types=()), column.type)
    return into_domain(binding, value, column.domain)


def assignments(env: Environment, target: Table, items: tuple[Any, ...], old: Sequence[Column]) -> dict[int, Scalar]:
    """The new values of a SET list by the columns' indexes; ``old`` is the row that changes."""
    names = [column.name for column in target.columns]
    found: dict[int, Scalar] = {}
    whole: set[int] = set()
    parts: set[int] = set()
    for item in items:
        if item.name not in names:
            raise env.error("42703", f'column "{item.name}" of relation "{target.name}" does not exist', item)
        index = names.index(item.name)
        if index in found and (index in whole or not item.indirection):
            raise env.error("42601", f'multiple assignments to same column "{item.name}"', None)
        if item.indirection:
            found[index] = assign_part(env, found.get(index, ColumnRef(old[index])), item)
            parts.add(index)
        else:
            whole.add(index)
            found[index] = _assigned(env, target.columns[index], item.val)
        if not _is_default(item.val):
            check_updated(target.columns[index])
            refuse_updated(target.columns[index])
    return {
        index: into_domain(env.binding, value, target.columns[index].domain) if index in parts else value
        for index, value in found.items()
    }


def _is_default(node: Any) -> bool:
    if type(node).__name__ == "MultiAssignRef" and type(node.source).__name__ == "RowExpr":
        values = node.source.args
        node = None if any(map(is_star, values)) else values[node.colno - 1]
    return type(node).__name__ == "SetToDefault"


def _assigned(env: Environment, column: ColumnDefinition, node: Any) -> Scalar:
    match type(node).__name__:
        case "SetToDefault":
            return default_of(env.binding, column)
        case "MultiAssignRef":
            return _one_of_several(env, column, node)
        case _:
            return assign(env, env.bind(node), column, node)


def _one_of_several(env: Environment, column: ColumnDefinition, node: Any) -> Scalar:
    """SET (columns) = ROW(...) or (SELECT ...): the part that is this column's."""
    source, place = node.source, node.colno - 1
    match type(source).__name__:
        case "RowExpr" if any(map(is_star, source.args)):
            items = row_items(env, source)
            if len(items) != node.ncolumns:
                raise env.error("42601", "number of columns does not match number of values", source)
            return assign(env, items[place][0], column, items[place][1])
        case "RowExpr":
            if len(source.args) != node.ncolumns:
                raise env.error("42601", "number of columns does not match number of values", source)
            return _assigned(env, column, source.args[place])
        case "SubLink" if source.testexpr is None and source.operName is None:
            return _one_of_subquery(env, column, node)
        case _:
            message = "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression"
            raise env.error_at("0A000", message, source)


def _one_of_subquery(env: Environment, column: ColumnDefinition, node: Any) -> Scalar:
    """The subquery is bound anew for each of its columns, so that each is a query of one column."""
    binding, source = env.binding, node.source
    before, binding.volatile = binding.volatile, False
    relation = env.nested(source.subselect).relation
    if len(relation.columns) != node.ncolumns:
        raise env.error("42601", "number of columns does not match number of values", source)
    if binding.volatile and node.ncolumns > 1:
        instead = "Assign the columns one by one."
        raise unsupported("a volatile function in SET (columns) = (SELECT ...)", instead, binding.position(source))
    binding.volatile |= before
    wanted = relation.columns[node.colno - 1]
    output = (binding.column(wanted.name, wanted.type), ColumnRef(wanted))
    place = item_nodes(source.subselect, node.ncolumns)[node.colno - 1] or source
    return assign(env, ScalarSubquery(Project(relation, (output,))), column, place)


def scope_of_target(target: Table | Stream, node: Any, entries: list[Entry]) -> Scope:
    """The changed relation's names: its own, or its alias."""
    alias = node.relation.alias
    named = source_of(target.name, entries, target.schema) if alias is None else source_of(alias.aliasname, entries)
    row = target.oid if all(entry.attribute for entry in entries) else 0
    stored = tuple(entry.scalar.column for entry in entries if isinstance(entry.scalar, ColumnRef))
    oid = target.oid if isinstance(target, Table) else 0
    source = replace(named.sources[0], row=row, oid=oid, stored=stored if oid else ())
    return replace(named, sources=(source,))

"""Functions in FROM: users' functions, those about the catalog and documents, and ROWS FROM.

Owns: which of them are queries of their own, and the names of their columns. A set is an array whose elements become
rows (``calls.set_functions``); an element that is a row becomes its fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

from msgspec.structs import replace

from catalog.values.errors import SqlError
from catalog.values.types import INT8, SqlType
from planner.algebra.functions import DRAWN_FUNCTIONS
from planner.algebra.nodes import Column, ColumnRef, Project, Relation, Scalar, Unnest, Values
from planner.bind.calls.families.arrays import array_of_rows
from planner.bind.calls.families.json_rows import bind_rows, is_of_rows
from planner.bind.calls.set_functions import FROM, SetColumn, bind_columns
from planner.bind.calls.system.catalog_calls import TABLE_NAMES, bind_table_call
from planner.bind.calls.user_functions import UserRows, bind_user_array, bind_user_rows
from planner.bind.conversion.rows import fields_of
from planner.bind.from_items.derived_tables import derived
from planner.bind.from_items.millstream_functions import is_own_call
from planner.bind.from_items.relation_changes import bind_changes
from planner.bind.from_items.resumed_queries import bind_resume
from planner.bind.from_items.stream_history import bind_history
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.output_names import output_name
from planner.bind.lookup.type_names import declared_typmod
from planner.bind.state.environment import Binding, Environment, Level, Scope
from planner.bind.state.from_names import BoundQuery
from planner.statements.statement import Output


def bind_functions(level: Level, node: Any, nullable: bool, beside: Scope) -> tuple[Relation, Scope]:
    """f(...) and ROWS FROM (f(...), ...) WITH ORDINALITY, which see the items to their left."""
    binding = level.binding
    if len(node.functions) == 1 and is_of_rows(node.functions[0][0]) and not node.ordinality:
        return _of_documents(level, node, nullable, beside)
    if wrong := node.coldeflist or [
        item for call, items in node.functions if not is_of_rows(call) for item in items or ()
    ]:
        message = 'a column definition list is only allowed for functions returning "record"'
        raise SqlError("42601", message, position=binding.position(wrong[0]))
    outer = replace(level, outer=replace(beside, outer=level.outer))
    env = Environment(binding, Scope(outer=outer.outer), FROM, outer)
    alone = len(node.functions) == 1 and not node.ordinality
    if alone and is_own_call(node.functions[0][0], "changes"):
        changes = bind_changes(env, node.functions[0][0], nullable)
        names = tuple(output.name for output in changes.outputs)
        return derived(level, changes, names, node.alias, "changes", node, nullable)
    if alone and is_own_call(node.functions[0][0], "history"):
        history = bind_history(env, node.functions[0][0], nullable)
        names = tuple(output.name for output in history.outputs)
        return derived(level, history, names, node.alias, "history", node, nullable)
    if alone and is_own_call(node.functions[0][0], "resume"):
        rest = bind_resume(env, node.functions[0][0])
        names = tuple(output.name for output in rest.outputs)
        return derived(level, rest, names, node.alias, "resume", node, nullable)
    if alone and (rows := bind_user_rows(env, node.functions[0][0])) is not None:
        return _of_user(level, rows, node, nullable)
    query = _of_one_row(env, node) or _about_catalog(env, node) if alone else None
    if query is not None:
        names = tuple(output.name for output in query.outputs)
        if len(names) == 1 and node.alias is not None:
            names = (node.alias.aliasname,)
        return derived(level, query, names, node.alias, names_of(node.functions[0][0].funcname)[-1], node, nullable)
    calls = [(item, definitions) for function, definitions in node.functions for item in _unnested(function)]
    found = [(output_name(call), _set_columns(env, call, definitions)) for call, definitions in calls]
    columns = [(item.name or name, item) for name, items in found for item in items]
    if len(columns) == 1 and not columns[0][1].fixed and node.alias is not None:
        columns = [(node.alias.aliasname, columns[0][1])]
    items = [(binding.column(name, _element(item.values)), item.values) for name, item in columns]
    number = binding.column("ordinality", INT8, False) if node.ordinality else None
    relation: Relation = Unnest(Values((), ((),)), tuple(items), number)
    apart = [column for column in relation.columns if column.type.row is not None]
    shown = _outputs(relation.columns)
    if apart:
        relation = _fields_apart(binding, relation, apart)
    names = tuple(output.name for output in shown)
    item, scope = derived(level, BoundQuery(relation, shown), names, node.alias, found[0][0], node, nullable)
    (source,) = scope.sources
    if apart and len(items) == 1 and number is None:
        scope = replace(scope, sources=(replace(source, kind=apart[0].type),))
    elif len(names) == 1:
        scope = replace(scope, sources=(replace(source, value=source.entries[0]),))
    return item, scope


def _of_user(level: Level, rows: UserRows, node: Any, nullable: bool) -> tuple[Relation, Scope]:
    """The rows of a user's function."""
    query = rows.query
    names = tuple(output.name for output in query.outputs)
    if node.alias is not None and not rows.named:
        names = (node.alias.aliasname,)
    name = names_of(node.functions[0][0].funcname)[-1]
    relation, scope = derived(level, query, names, node.alias, name, node, nullable)
    (source,) = scope.sources
    if rows.kind is not None:
        source = replace(source, kind=rows.kind)
    elif len(names) == 1:
        source = replace(source, value=source.entries[0])
    return relation, replace(scope, sources=(source,))


def _set_columns(env: Environment, node: Any, definitions: tuple[Any, ...] | None) -> tuple[SetColumn, ...]:
    """What a function beside others in FROM yields, as arrays; ``definitions`` are the columns of a document's rows."""
    if is_of_rows(node):
        query, kind = bind_rows(env, node, definitions)
        return (SetColumn(output_name(node), array_of_rows(env, query.relation, kind or query.row, node), True),)
    values = bind_user_array(env, node)
    return bind_columns(env, node) if values is None else (SetColumn(output_name(node), values),)


def _outputs(columns: tuple[Column, ...]) -> tuple[Output, ...]:
    """What clients see of them; of a declared row its fields as declared."""
    found: list[Output] = []
    for column in columns:
        row = column.type.row
        if row is None:
            found.append(Output(column.name, column.type))
        else:
            found += [Output(name, kind, declared_typmod(kind) if row.oid else -1) for name, kind in row.fields]
    return tuple(found)


def _fields_apart(binding: Binding, relation: Relation, rows: list[Column]) -> Relation:
    """Fields in the place of columns of rows."""
    outputs: list[tuple[Column, Scalar]] = []
    for column in relation.columns:
        if column in rows:
            fields = fields_of(ColumnRef(column))
            outputs += [(binding.column(name, value.type), value) for name, value in fields]
        else:
            outputs.append((binding.column(column.name, column.type), ColumnRef(column)))
    return Project(relation, tuple(outputs))


def _of_documents(level: Level, node: Any, nullable: bool, beside: Scope) -> tuple[Relation, Scope]:
    """The rows that a function makes of a document."""
    outer = replace(level, outer=replace(beside, outer=level.outer))
    env = Environment(level.binding, Scope(outer=outer.outer), FROM, outer)
    call, definitions = node.functions[0]
    query, kind = bind_rows(env, call, node.coldeflist or definitions)
    names = tuple(output.name for output in query.outputs)
    alias = None if node.alias is None or node.coldeflist else node.alias
    name = names_of(call.funcname)[-1] if node.alias is None else node.alias.aliasname
    relation, scope = derived(level, query, names, alias, name, node, nullable)
    return relation, replace(scope, sources=(replace(scope.sources[0], kind=kind),))


def _of_one_row(env: Environment, node: Any) -> BoundQuery | None:
    """The query that a function in FROM is that has an effect and one row: of no table, with the call in its list."""
    call = node.functions[0][0]
    if type(call).__name__ != "FuncCall" or names_of(call.funcname)[-1] not in DRAWN_FUNCTIONS:
        return None
    scalar = env.bind(call)
    column = env.binding.column(output_name(call), scalar.type)
    relation = Project(Values((), ((),)), ((column, scalar),))
    return BoundQuery(relation, (Output(column.name, scalar.type),))


def _about_catalog(env: Environment, node: Any) -> BoundQuery | None:
    """The query that a function in FROM about the catalog is."""
    call = node.functions[0][0]
    if type(call).__name__ != "FuncCall" or names_of(call.funcname)[-1] not in TABLE_NAMES:
        return None
    return bind_table_call(env, call)


def _element(values: Scalar) -> SqlType:
    assert values.type.element is not None
    return values.type.element


def _unnested(node: Any) -> Iterator[Any]:
    """unnest(a, b) in FROM is unnest(a) and unnest(b) side by side."""
    if type(node).__name__ != "FuncCall" or names_of(node.funcname)[-1] != "unnest" or len(node.args or ()) < 2:
        yield node
        return
    for item in node.args:
        single = copy(node)
        single.args = (item,)
        yield single

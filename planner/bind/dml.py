"""INSERT, UPDATE and DELETE -> statements over complete rows.

Owns: column lists, defaults, assignment casts, checks and RETURNING. An INSERT of plain VALUES keeps its rows beside
the relation, for the path without an engine. UPDATE ... FROM joins may yield a row more than once: the first counts
(PostgreSQL takes an arbitrary one); DELETE ... USING is a semi join and never does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

from catalog import objects
from catalog.errors import SqlError, unsupported
from catalog.objects import ColumnDefinition, Stream, SystemView, Table, View
from catalog.types import INT8
from planner.algebra import Filter, Join, Project, Relation, Scan, Values
from planner.bind.context import Binding
from planner.bind.environment import Environment
from planner.bind.expressions import bind_boolean, bind_scalar, text_if_unknown
from planner.bind.identity import check_updated, takes_given
from planner.bind.scope import Entry, Scope, source_of
from planner.bind.select import bind_select, check_widths, subquery_binder, with_ctes
from planner.bind.sources import Level, bind_from, find_object, scan_object
from planner.bind.targets import bind_targets
from planner.bind.texts import bind_expression
from planner.bind.typenames import declared_typmod
from planner.bind.types import coerce, display
from planner.expression import Cast, Column, ColumnRef, Literal, Parameter, Scalar
from planner.statements import Delete, Insert, Returning, Statement, Update

#: Source name of a table's row identity in a scan.
ROW_ID: Final = "__rowid"


def assign(env: Environment, scalar: Scalar, column: ColumnDefinition, node: Any) -> Scalar:
    """A value in its column's type. Raises 42804."""
    found = coerce(env.binding, scalar, column.type, "assignment", node)
    if found is None:
        message = (
            f'column "{column.name}" is of type {display(column.type)} but expression is of type {display(scalar.type)}'
        )
        raise env.error_at("42804", message, node, hint="You will need to rewrite or cast the expression.")
    return found


def default_of(binding: Binding, column: ColumnDefinition) -> Scalar:
    """A column's DEFAULT, or NULL."""
    if column.default is None:
        return Literal(None, column.type)
    return bind_expression(column.default, (), replace(binding.context, parameter_types=()), column.type)


def checks_of(binding: Binding, target: Table | Stream, row: Sequence[Column]) -> tuple[tuple[str, Scalar], ...]:
    """The target's CHECKs over a row's columns."""
    if isinstance(target, Stream):
        return ()
    named = [replace(column, name=definition.name) for column, definition in zip(row, target.columns, strict=True)]
    back = dict(zip(named, row, strict=True))
    context = replace(binding.context, parameter_types=())
    return tuple((check.name, bind_expression(check.expression, list(back), context)) for check in target.checks)


def writable(binding: Binding, node: Any, verb: str) -> Table | Stream:
    """The target of a change. Raises 42809 and 55000 for what cannot be written."""
    found = find_object(binding, node)
    if isinstance(found, View):
        detail = "Views that are maintained or computed take no changes."
        raise SqlError(
            "55000", f'cannot {verb} view "{found.name}"', detail, "Change the tables and streams that it reads."
        )
    if isinstance(found, SystemView):
        raise SqlError("42501", f"permission denied for view {found.name}")
    if isinstance(found, objects.Sequence):
        raise SqlError("42809", f'cannot change sequence "{found.name}"')
    return found


def _positions(binding: Binding, target: Table | Stream, items: tuple[Any, ...] | None) -> list[int]:
    """Indexes of the columns that an INSERT names."""
    if not items:
        return list(range(len(target.columns)))
    names = [column.name for column in target.columns]
    found: list[int] = []
    for item in items:
        if item.name not in names:
            message = f'column "{item.name}" of relation "{target.name}" does not exist'
            raise SqlError("42703", message, position=binding.position(item))
        if (index := names.index(item.name)) in found:
            message = f'column "{item.name}" specified more than once'
            raise SqlError("42701", message, position=binding.position(item))
        found.append(index)
    return found


# --- INSERT ----------------------------------------------------------------------------------------------------------


def bind_insert(binding: Binding, node: Any) -> Insert:
    """INSERT INTO target [(columns)] VALUES, SELECT or DEFAULT VALUES."""
    if node.onConflictClause is not None:
        instead = "Delete or update the rows first, or insert with SELECT ... WHERE NOT EXISTS."
        raise unsupported("ON CONFLICT", instead, binding.position(node.onConflictClause))
    target = writable(binding, node.relation, "insert into")
    level = Level(binding) if node.withClause is None else with_ctes(Level(binding), node.withClause)
    indexes = _positions(binding, target, node.cols)
    query = node.selectStmt
    row = _row_columns(binding, target)
    source = _plain_values(query)
    if source is not None:
        default = cache(lambda index: default_of(binding, target.columns[index]))
        env = Environment(binding, Scope(), "VALUES", subquery_binder(level))
        check_widths(env, source)
        rows = tuple(_value_row(env, target, indexes, cells, node, default) for cells in source)
        relation: Relation = Values(row, rows)
        literals = rows if all(_is_plain(item) for cells in rows for item in cells) else None
    else:
        relation, literals = _selected(level, target, indexes, node, row), None
        row = relation.columns
    returning = _returning(level, target, row, node)
    return Insert(target, relation, row, checks_of(binding, target, row), returning, literals)


def _row_columns(binding: Binding, target: Table | Stream) -> tuple[Column, ...]:
    return tuple(binding.column(column.name, column.type) for column in target.columns)


def _plain_values(query: Any) -> tuple[Any, ...] | None:
    """The rows of a bare VALUES; DEFAULT VALUES is one empty row."""
    if query is None:
        return ((),)
    clauses = (query.sortClause, query.limitCount, query.limitOffset, query.withClause)
    if query.valuesLists and not any(clauses):
        rows: tuple[Any, ...] = query.valuesLists
        return rows
    return None


def _is_plain(scalar: Scalar) -> bool:
    """Whether a value needs no engine: a literal, a parameter, or a parameter fitted to its column."""
    return isinstance(scalar, Literal | Parameter) or (
        isinstance(scalar, Cast) and isinstance(scalar.argument, Parameter)
    )


def _value_row(
    env: Environment,
    target: Table | Stream,
    indexes: list[int],
    cells: tuple[Any, ...],
    node: Any,
    default: Callable[[int], Scalar],
) -> tuple[Scalar, ...]:
    if cells or node.cols:
        _check_width(env, len(cells), indexes, node.cols, cells)
    values: dict[int, Scalar] = {}
    for index, cell in zip(indexes, cells, strict=False):
        if type(cell).__name__ != "SetToDefault":
            value = assign(env, bind_scalar(env, cell), target.columns[index], cell)
            if takes_given(target.columns, index, node.override):
                values[index] = value
    return tuple(values[index] if index in values else default(index) for index in range(len(target.columns)))


def _check_width(env: Environment, width: int, indexes: list[int], named: Any, nodes: Sequence[Any]) -> None:
    if width > len(indexes):
        raise env.error("42601", "INSERT has more expressions than target columns", nodes[len(indexes)])
    if named and width < len(indexes):
        raise env.error("42601", "INSERT has more target columns than expressions", named[width])


def _selected(level: Level, target: Table | Stream, indexes: list[int], node: Any, row: tuple[Column, ...]) -> Relation:
    """INSERT ... SELECT: the query's columns assigned to the target's, defaults for the rest."""
    binding = level.binding
    query = bind_select(level, node.selectStmt, resolve_unknown=False)
    if isinstance(target, Stream) and any(name == target.name for name, _ in binding.streams):
        message = f'INSERT INTO stream "{target.name}" reads the stream itself'
        raise SqlError(
            "0A000", message, hint="Read a continuous view over it.", position=binding.position(node.relation)
        )
    relation, env = query.relation, Environment(binding, Scope(), "INSERT", subquery_binder(level))
    nodes = [getattr(item, "val", None) for item in node.selectStmt.targetList or ()]
    places = nodes if len(nodes) == len(relation.columns) else [None] * len(relation.columns)
    _check_width(env, len(relation.columns), indexes, node.cols, places)
    scalars: list[Scalar] = [ColumnRef(column) for column in relation.columns]
    source = relation
    if isinstance(relation, Project):  # assign to the expressions themselves, so that literals are converted here
        scalars, source = [scalar for _, scalar in relation.outputs], relation.input
    values = {
        index: assign(env, scalar, target.columns[index], place)
        for index, scalar, place in zip(indexes, scalars, places, strict=False)
        if takes_given(target.columns, index, node.override)
    }
    outputs = tuple(
        (column, values[index] if index in values else default_of(binding, definition))
        for index, (column, definition) in enumerate(zip(row, target.columns, strict=True))
    )
    return Project(source, outputs)


# --- UPDATE and DELETE -----------------------------------------------------------------------------------------------


def _target_scan(binding: Binding, node: Any, verb: str) -> tuple[Table, Scan, Column, Scope]:
    """The target's scan with its row identity, and its columns by name."""
    target = writable(binding, node, verb)
    if isinstance(target, Stream):
        hint = "A stream is append-only."
        raise SqlError(
            "0A000", f'cannot {verb} foreign table "{target.name}"', hint=hint, position=binding.position(node)
        )
    alias = node.alias.aliasname if node.alias is not None else None
    scan, scope = scan_object(binding, target, alias, False)
    row_id = binding.column(ROW_ID, INT8, False)
    return target, replace(scan, columns=(*scan.columns, row_id), sources=(*scan.sources, ROW_ID)), row_id, scope


def bind_update(binding: Binding, node: Any) -> Update:
    """UPDATE target SET ... [FROM ...] [WHERE ...]."""
    level = Level(binding) if node.withClause is None else with_ctes(Level(binding), node.withClause)
    target, scan, row_id, scope = _target_scan(binding, node.relation, "update")
    relation, both = _joined(level, scan, scope, node.fromClause)
    env = Environment(binding, both, "UPDATE", subquery_binder(level))
    if node.whereClause is not None:
        relation = Filter(relation, bind_boolean(env.without_aggregates("WHERE"), node.whereClause, "WHERE"))
    assigned = _assignments(env, target, node.targetList)
    old = tuple(binding.column(column.name, column.type) for column in target.columns)
    new = tuple(binding.column(column.name, column.type) for column in target.columns)
    outputs: list[tuple[Column, Scalar]] = [(binding.column(ROW_ID, INT8, False), ColumnRef(row_id))]
    outputs += [(column, ColumnRef(source)) for column, source in zip(old, scan.columns, strict=False)]
    for index, (column, source) in enumerate(zip(new, scan.columns, strict=False)):
        outputs.append((column, assigned.get(index, ColumnRef(source))))
    returning = _returning(level, target, new, node)
    checks = checks_of(binding, target, new)
    return Update(target, Project(relation, tuple(outputs)), outputs[0][0], old, new, checks, returning)


def _joined(level: Level, scan: Scan, scope: Scope, items: Any) -> tuple[Relation, Scope]:
    if not items:
        return scan, scope
    other, other_scope = bind_from(level, items)
    return Join("inner", scan, other, None), _beside(level.binding, scope, other_scope, items[0])


def _assignments(env: Environment, target: Table, items: tuple[Any, ...]) -> dict[int, Scalar]:
    names = [column.name for column in target.columns]
    found: dict[int, Scalar] = {}
    for item in items:
        if item.name not in names:
            raise env.error("42703", f'column "{item.name}" of relation "{target.name}" does not exist', item)
        index = names.index(item.name)
        if index in found:
            raise env.error("42601", f'multiple assignments to same column "{item.name}"', item)
        if item.indirection:
            raise unsupported("assignment to a part of a column", position=env.binding.position(item))
        found[index] = _assigned(env, target.columns[index], item.val)
    return found


def _assigned(env: Environment, column: ColumnDefinition, node: Any) -> Scalar:
    if type(node).__name__ == "SetToDefault":
        return default_of(env.binding, column)
    if type(node).__name__ == "MultiAssignRef":
        if type(node.source).__name__ != "RowExpr":
            instead = "Assign the columns one by one."
            raise unsupported("SET (columns) = (subquery)", instead, env.binding.position(node.source))
        if len(node.source.args) != node.ncolumns:
            raise env.error("42601", "number of columns does not match number of values", node.source)
        return _assigned(env, column, node.source.args[node.colno - 1])
    value = assign(env, bind_scalar(env, node), column, node)
    check_updated(column)
    return value


def bind_delete(binding: Binding, node: Any) -> Delete:
    """DELETE FROM target [USING ...] [WHERE ...]."""
    level = Level(binding) if node.withClause is None else with_ctes(Level(binding), node.withClause)
    target, scan, row_id, scope = _target_scan(binding, node.relation, "delete from")
    relation: Relation = scan
    if node.usingClause:
        other, other_scope = bind_from(level, node.usingClause)
        env = Environment(
            binding, _beside(binding, scope, other_scope, node.usingClause[0]), "WHERE", subquery_binder(level)
        )
        predicate = bind_boolean(env, node.whereClause, "WHERE") if node.whereClause is not None else None
        relation = Join("semi", scan, other, predicate)
    elif node.whereClause is not None:
        env = Environment(binding, scope, "WHERE", subquery_binder(level))
        relation = Filter(relation, bind_boolean(env, node.whereClause, "WHERE"))
    old = tuple(binding.column(column.name, column.type) for column in target.columns)
    identity = binding.column(ROW_ID, INT8, False)
    outputs: list[tuple[Column, Scalar]] = [(identity, ColumnRef(row_id))]
    outputs += [(column, ColumnRef(source)) for column, source in zip(old, scan.columns, strict=False)]
    return Delete(target, Project(relation, tuple(outputs)), identity, old, _returning(level, target, old, node))


def _beside(binding: Binding, left: Scope, right: Scope, node: Any) -> Scope:
    """The target's names and those of FROM or USING."""
    name = left.sources[0].name
    if any(source.name == name for source in right.sources):
        raise SqlError("42712", f'table name "{name}" specified more than once', position=binding.position(node))
    return Scope(left.sources + right.sources, left.entries + right.entries)


# --- RETURNING -------------------------------------------------------------------------------------------------------


def _returning(level: Level, target: Table | Stream, row: tuple[Column, ...], node: Any) -> Returning | None:
    """RETURNING over the changed row."""
    clause = getattr(node, "returningClause", None)
    items = clause.exprs if clause is not None else getattr(node, "returningList", None)
    if not items:
        return None
    if clause is not None and clause.options:
        raise unsupported("RETURNING WITH (OLD, NEW)", "Leave WITH out.")
    alias = node.relation.alias.aliasname if node.relation.alias is not None else target.name
    entries = [
        Entry(definition.name, ColumnRef(column), target.oid, index + 1, declared_typmod(definition.type))
        for index, (definition, column) in enumerate(zip(target.columns, row, strict=True))
    ]
    scope = source_of(alias, entries)
    env = Environment(level.binding, scope, "RETURNING", subquery_binder(level))
    targets = [item.over(text_if_unknown(env, item.scalar, item.node)) for item in bind_targets(env, items)]
    columns = tuple((level.binding.column(item.name, item.scalar.type), item.scalar) for item in targets)
    return Returning(columns, tuple(item.output() for item in targets))


HANDLERS: Final[dict[str, Callable[[Binding, Any], Statement]]] = {
    "InsertStmt": bind_insert,
    "UpdateStmt": bind_update,
    "DeleteStmt": bind_delete,
}

"""INSERT, UPDATE and DELETE become statements over complete rows.

Owns: column lists, joins with FROM and USING, and checks. ``assignments`` has the values, ``returning`` RETURNING,
``on_conflict`` ON CONFLICT, ``with_changes`` such statements in WITH. An INSERT of plain VALUES keeps its rows beside
the relation, for the path without an engine. If UPDATE ... FROM joins a row more than once, the first match counts
(PostgreSQL takes an arbitrary one). DELETE ... USING is a semi join unless RETURNING reads columns of USING.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from msgspec.structs import replace
from pglast.enums import OnConflictAction

from catalog import objects
from catalog.objects import Stream, SystemView, Table, View
from catalog.values.errors import SqlError, unsupported
from catalog.values.types import INT8, SqlType
from planner.algebra.nodes import (
    ROW_ID,
    Cast,
    Column,
    ColumnRef,
    Filter,
    Join,
    Literal,
    Parameter,
    Project,
    Relation,
    Scalar,
    Scan,
    Unnest,
    Values,
)
from planner.algebra.walk import used_columns
from planner.bind.changes.assignments import assign, assignments, default_of
from planner.bind.changes.column_parts import with_part
from planner.bind.changes.current_of import is_current
from planner.bind.changes.generated_columns import generated_of, refuse_inserted
from planner.bind.changes.identity_columns import takes_given
from planner.bind.changes.on_conflict import bind_conflict
from planner.bind.changes.returning import Others, passed, refuse_drawn_twice, returning_of, shown_by
from planner.bind.changes.updatable_views import Through, through_view
from planner.bind.conversion.domains import into_domain
from planner.bind.from_items.from_clause import bind_from, scan_object, with_place
from planner.bind.lookup.relations import find_object
from planner.bind.queries.select import bind_select, check_widths
from planner.bind.queries.set_function_steps import steps
from planner.bind.scalars.expressions import bind_boolean
from planner.bind.scalars.stored_expressions import bind_stored
from planner.bind.state.collected_calls import Sets
from planner.bind.state.environment import Binding, Environment, Level, Scope
from planner.bind.with_queries.with_clause import with_ctes
from planner.statements.statement import Delete, Insert, Returning, Statement, Update

#: Why a foreign table of files takes no rows.
READ_ONLY: Final = "A foreign table of files is read-only."


def checks_of(binding: Binding, target: Table | Stream, row: Sequence[Column]) -> tuple[tuple[str, Scalar], ...]:
    """The target's CHECKs over a row's columns."""
    if isinstance(target, Stream):
        return ()
    named = [replace(column, name=definition.name) for column, definition in zip(row, target.columns, strict=True)]
    back = dict(zip(named, row, strict=True))
    context = replace(binding.context, parameter_types=())
    return tuple(
        (check.name, bind_stored(binding.binder, check.expression, list(back), context)) for check in target.checks
    )


def writable(binding: Binding, node: Any, verb: str) -> Table | Stream:
    """The target of a change. Raises 42809 and 55000 for what cannot be written."""
    found = find_object(binding, node)
    if isinstance(found, View) and found.materialized:
        raise SqlError("42809", f'cannot change materialized view "{found.name}"')
    if isinstance(found, View):
        detail = "Continuous views cannot be changed."
        raise SqlError(
            "55000", f'cannot {verb} view "{found.name}"', detail, "Change the tables and streams that it reads."
        )
    if isinstance(found, SystemView):
        raise SqlError("42501", f"permission denied for view {found.name}")
    if isinstance(found, objects.FileTable):
        raise SqlError("0A000", f'cannot {verb} foreign table "{found.name}"', hint=READ_ONLY)
    if isinstance(found, objects.Sequence):
        raise SqlError("42809", f'cannot change sequence "{found.name}"')
    require_columns(found)
    return found


def require_columns(target: Table | Stream) -> None:
    """Raises 0A000 for what can have no rows here."""
    if not target.columns:
        raise unsupported("rows of a table without columns", "Add a column first.")


def insert_positions(binding: Binding, target: Table | Stream, items: tuple[Any, ...] | None) -> list[int]:
    """Indexes of the columns that an INSERT names."""
    if not items:
        return list(range(len(target.columns)))
    names = [column.name for column in target.columns]
    found: list[int] = []
    whole: list[int] = []
    for item in items:
        if item.name not in names:
            message = f'column "{item.name}" of relation "{target.name}" does not exist'
            raise SqlError("42703", message, position=binding.position(item))
        index = names.index(item.name)
        if index in (whole if item.indirection else found):
            message = f'column "{item.name}" specified more than once'
            raise SqlError("42701", message, position=binding.position(item))
        found.append(index)
        whole += [] if item.indirection else [index]
    return found


def _level(around: Level, node: Any) -> Level:
    """A statement's level; ``around`` is what a statement in WITH sees of that clause."""
    return around if node.withClause is None else with_ctes(around, node.withClause)


# --- INSERT ----------------------------------------------------------------------------------------------------------


def bind_insert(binding: Binding, node: Any, level: Level | None = None) -> Insert:
    """INSERT INTO target [(columns)] VALUES, SELECT or DEFAULT VALUES."""
    changed = _updated(node)
    letters = "rw" if changed else "r" if node.onConflictClause or shown_by(node) else ""
    through = through_view(binding, node.relation, "insert into", letters)
    target = writable(binding, node.relation, "insert into") if through is None else through.table
    level = _level(level or Level(binding), node)
    indexes = insert_positions(binding, target, node.cols) if through is None else []
    source = _plain_values(node.selectStmt)
    query = bind_select(level, node.selectStmt, resolve_unknown=False) if source is None else None
    if through is not None:
        width = len(query.relation.columns) if query is not None else max(map(len, source or ()))
        indexes = through.indexes(binding, node.cols, width)
        names = [item.name for item in node.cols] if node.cols else through.names[:width]
        through.need(binding, node.relation.alias, "a", names, node.onConflictClause, *shown_by(node))
        if changed:
            through.need(binding, node.relation.alias, "w", [item.name for item in changed])
    binding.give(target.oid, "a", (target.columns[index].name for index in indexes))
    row = row_columns(binding, target)
    if query is not None:
        relation, literals = _selected(level, query.relation, target, indexes, node, row), None
        row = relation.columns
    else:
        default = cache(lambda index: default_of(binding, target.columns[index]))
        series = Sets()
        alone = len(source or ()) == 1  # and so a select list
        env = Environment(binding, Scope(), "VALUES", level, sets=series if alone else None)
        check_widths(env, source or ())
        rows = tuple(value_row(env, target, indexes, cells, node, node.cols, default) for cells in source or ())
        relation = _drawn(series.calls, row, rows[0]) if series.calls else Values(row, rows)
        literals = rows if not series.calls and all(_is_plain(item) for cells in rows for item in cells) else None
    conflict = bind_conflict(level, target, row, node, through)
    updated = None if conflict is None or conflict.update is None else binding.column("xmax", SqlType("xid"), False)
    returning = returning_of(level, target, row, node, through=through, updated=updated)
    if updated is not None and (returning is None or not _shows(returning, updated)):
        updated = None
    if not isinstance(relation, Values) or len(relation.rows) > 1:
        upsert = None if conflict is None else conflict.update
        refuse_drawn_twice(returning, relation, *(() if upsert is None else (value for _, value in upsert.assigned)))
    checks, generated = checks_of(binding, target, row), generated_of(binding, target, row)
    if through is not None:
        binding.through.add(row[0])
    of_views = () if through is None else through.checks(row)
    return Insert(target, relation, row, checks, returning, literals, conflict, generated, of_views, updated)


def _drawn(sets: list[tuple[Column, Scalar]], row: tuple[Column, ...], values: tuple[Scalar, ...]) -> Relation:
    """The rows of VALUES with one row that calls set-returning functions."""
    relation: Relation = Values((), ((),))
    for step in steps(sets):
        relation = Unnest(relation, step)
    return Project(relation, tuple(zip(row, values, strict=True)))


def _shows(returning: Returning, column: Column) -> bool:
    return any(column in used_columns(scalar) for _, scalar in returning.expressions)


def row_columns(binding: Binding, target: Table | Stream) -> tuple[Column, ...]:
    """New columns for a row of the target."""
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


def value_row(
    env: Environment,
    target: Table | Stream,
    indexes: list[int],
    cells: tuple[Any, ...],
    node: Any,
    named: Any,
    default: Callable[[int], Scalar],
) -> tuple[Scalar, ...]:
    """A complete row from the expressions for the ``named`` columns of an INSERT's ``node``."""
    if cells or named:
        _check_width(env, len(cells), indexes, named, cells)
    values: dict[int, Scalar] = {}
    for index, cell, item in zip(indexes, cells, named or (None,) * len(indexes), strict=False):
        if item is not None and item.indirection:
            known = values.get(index, Literal(None, target.columns[index].type))
            values[index] = with_part(env, known, item, cell)
        elif type(cell).__name__ != "SetToDefault":
            value = assign(env, env.bind(cell), target.columns[index], cell)
            refuse_inserted(target.columns[index])
            if takes_given(target.columns[index], node.override):
                values[index] = value
    _check_parts(env.binding, target, indexes, named, values)
    return tuple(values[index] if index in values else default(index) for index in range(len(target.columns)))


def _check_parts(
    binding: Binding, target: Table | Stream, indexes: list[int], named: Any, values: dict[int, Scalar]
) -> None:
    """What is put together of parts is checked once, as a whole."""
    for index in {index for index, item in zip(indexes, named or (), strict=False) if item.indirection}:
        values[index] = into_domain(binding, values[index], target.columns[index].domain)


def _check_width(env: Environment, width: int, indexes: list[int], named: Any, nodes: Sequence[Any]) -> None:
    if width > len(indexes):
        raise env.error("42601", "INSERT has more expressions than target columns", nodes[len(indexes)])
    if named and width < len(indexes):
        raise env.error("42601", "INSERT has more target columns than expressions", named[width])


def _selected(
    level: Level, relation: Relation, target: Table | Stream, indexes: list[int], node: Any, row: tuple[Column, ...]
) -> Relation:
    """INSERT ... SELECT: the query's columns assigned to the target's, defaults for the rest."""
    binding = level.binding
    if isinstance(target, Stream) and any(name == target.name for name, _ in binding.streams):
        message = f'INSERT INTO stream "{target.name}" reads the stream itself'
        raise SqlError(
            "0A000", message, hint="Read a continuous view over it.", position=binding.position(node.relation)
        )
    env = Environment(binding, Scope(), "INSERT", level)
    nodes = [getattr(item, "val", None) for item in node.selectStmt.targetList or ()]
    places = nodes if len(nodes) == len(relation.columns) else [None] * len(relation.columns)
    _check_width(env, len(relation.columns), indexes, node.cols, places)
    scalars: list[Scalar] = [ColumnRef(column) for column in relation.columns]
    source = relation
    if isinstance(relation, Project):  # assign to the expressions themselves, so that literals are converted here
        scalars, source = [scalar for _, scalar in relation.outputs], relation.input
    values: dict[int, Scalar] = {}
    for index, scalar, place, item in zip(indexes, scalars, places, node.cols or (None,) * len(indexes), strict=False):
        definition = target.columns[index]
        if item is not None and item.indirection:
            values[index] = with_part(env, values.get(index, Literal(None, definition.type)), item, place, scalar)
        elif takes_given(definition, node.override):
            values[index] = assign(env, scalar, definition, place)
    _check_parts(binding, target, indexes, node.cols, values)
    for index in values:
        refuse_inserted(target.columns[index])
    outputs = tuple(
        (column, values[index] if index in values else default_of(binding, definition))
        for index, (column, definition) in enumerate(zip(row, target.columns, strict=True))
    )
    return Project(source, outputs)


# --- UPDATE and DELETE -----------------------------------------------------------------------------------------------


def target_scan(
    binding: Binding, node: Any, verb: str, nullable: bool = False, through: Through | None = None
) -> tuple[Table, Scan, Column, Scope]:
    """The target's scan with its row identity, and its columns by name; ``nullable`` where it is joined optionally."""
    row_id = binding.column(ROW_ID, INT8, nullable)
    if through is not None:
        scan = replace(through.scan, columns=(*through.scan.columns, row_id), sources=(*through.scan.sources, ROW_ID))
        return through.table, scan, row_id, through.scope(through.scan.columns, node.alias)
    target = writable(binding, node, verb)
    if isinstance(target, Stream):
        hint = "A stream is append-only."
        raise SqlError(
            "0A000", f'cannot {verb} foreign table "{target.name}"', hint=hint, position=binding.position(node)
        )
    alias = node.alias.aliasname if node.alias is not None else None
    scan, scope = scan_object(binding, target, alias, nullable)
    return target, replace(scan, columns=(*scan.columns, row_id), sources=(*scan.sources, ROW_ID)), row_id, scope


def bind_update(binding: Binding, node: Any, level: Level | None = None) -> Update:
    """UPDATE target SET ... [FROM ...] [WHERE ...]."""
    level = _level(level or Level(binding), node)
    through = through_view(binding, node.relation, "update")
    target, scan, row_id, scope = target_scan(binding, node.relation, "update", through=through)
    relation, scope = with_place(binding, scan, scope) if through is None else (through.shown(scan), scope)
    other = _others(level, scope, node.fromClause)
    if other is not None:
        relation = Join("inner", relation, other.relation, None)
    env = Environment(binding, scope if other is None else other.beside(scope), "UPDATE", level)
    if node.whereClause is not None:
        relation = Filter(relation, _condition(env, node.whereClause, target, scan.columns, through))
    items = node.targetList
    if through is not None:
        items = through.assigned(binding, items)
        names = [item.name for item in node.targetList]
        through.need(binding, node.relation.alias, "w", names, node.whereClause, node.targetList, *shown_by(node))
    assigned = assignments(env, target, items, scan.columns)
    binding.give(target.oid, "w", (target.columns[index].name for index in assigned))
    old, new = row_columns(binding, target), row_columns(binding, target)
    if through is not None:
        binding.through.add(old[0])
    returning = returning_of(level, target, new, node, other, through)
    returning, beside = passed(binding, returning, other)
    outputs: list[tuple[Column, Scalar]] = [(binding.column(ROW_ID, INT8, False), ColumnRef(row_id))]
    outputs += [(column, ColumnRef(source)) for column, source in zip(old, scan.columns, strict=False)]
    for index, (column, source) in enumerate(zip(new, scan.columns, strict=False)):
        outputs.append((column, assigned.get(index, ColumnRef(source))))
    whole = Project(relation, (*outputs, *beside))
    refuse_drawn_twice(returning, whole)
    checks, generated = checks_of(binding, target, new), generated_of(binding, target, new)
    checks += () if through is None else through.checks(new)
    taken = tuple(column for column, _ in beside)
    return Update(target, whole, outputs[0][0], old, new, checks, returning, taken, generated)


def bind_delete(binding: Binding, node: Any, level: Level | None = None) -> Delete:
    """DELETE FROM target [USING ...] [WHERE ...]. What RETURNING takes from USING makes the semi join a join."""
    level = _level(level or Level(binding), node)
    through = through_view(binding, node.relation, "delete from")
    target, scan, row_id, scope = target_scan(binding, node.relation, "delete from", through=through)
    relation, scope = with_place(binding, scan, scope) if through is None else (through.shown(scan), scope)
    other = _others(level, scope, node.usingClause)
    env = Environment(binding, scope if other is None else other.beside(scope), "WHERE", level)
    predicate = None if node.whereClause is None else _condition(env, node.whereClause, target, scan.columns, through)
    old = row_columns(binding, target)
    if through is not None:
        through.need(binding, node.relation.alias, "d", (), node.whereClause, *shown_by(node))
        binding.through.add(old[0])
    returning, beside = passed(binding, returning_of(level, target, old, node, other, through), other)
    if other is not None:
        relation = Join("inner" if beside else "semi", relation, other.relation, predicate)
    elif predicate is not None:
        relation = Filter(relation, predicate)
    identity = binding.column(ROW_ID, INT8, False)
    outputs: list[tuple[Column, Scalar]] = [(identity, ColumnRef(row_id))]
    outputs += [(column, ColumnRef(source)) for column, source in zip(old, scan.columns, strict=False)]
    whole = Project(relation, (*outputs, *beside))
    return Delete(target, whole, identity, old, returning, tuple(column for column, _ in beside))


def _updated(node: Any) -> tuple[Any, ...]:
    """What an INSERT's ON CONFLICT DO UPDATE sets."""
    clause = node.onConflictClause
    if clause is None or clause.action != OnConflictAction.ONCONFLICT_UPDATE:
        return ()
    return tuple(clause.targetList)


def _condition(env: Environment, node: Any, target: Table, row: tuple[Column, ...], through: Through | None) -> Scalar:
    if type(node).__name__ == "CurrentOfExpr":
        if through is not None:
            raise SqlError("0A000", "WHERE CURRENT OF on a view is not implemented")
        return is_current(env.binding, target, row, node)
    return bind_boolean(env.without_aggregates("WHERE"), node, "WHERE")


def _others(level: Level, scope: Scope, items: Any) -> Others | None:
    if not items:
        return None
    other = Others(*bind_from(level, items))
    name = scope.sources[0].name
    if any(source.name == name for source in other.scope.sources):
        raise SqlError("42712", f'table name "{name}" specified more than once')
    return other


HANDLERS: Final[dict[str, Callable[..., Statement]]] = {
    "InsertStmt": bind_insert,
    "UpdateStmt": bind_update,
    "DeleteStmt": bind_delete,
}

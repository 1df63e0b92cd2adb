"""ON CONFLICT: the keys that detect a conflict, and what happens to the existing rows.

Owns: inference of the arbiters (42P10) and the names that DO UPDATE sees: the target's row and ``excluded``. See
https://www.postgresql.org/docs/15/sql-insert.html#SQL-ON-CONFLICT.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pglast import ast
from pglast.enums import OnConflictAction

from catalog.objects import Index, Stream, Table, UniqueKey, subject
from catalog.values.errors import SqlError, unsupported
from planner.algebra.construction import conjuncts, substitute
from planner.algebra.nodes import Column, ColumnRef, Scalar
from planner.algebra.walk import used_columns
from planner.bind.changes.assignments import assignments, scope_of_target
from planner.bind.changes.index_expressions import index_parts
from planner.bind.changes.updatable_views import EXCLUDED, Through
from planner.bind.scalars.expressions import bind_boolean
from planner.bind.state.environment import Environment, Level, Scope, source_of
from planner.bind.state.from_names import Entry
from planner.statements.statement import Conflict, Upsert


def bind_conflict(
    level: Level, target: Table | Stream, row: tuple[Column, ...], node: Any, through: Through | None = None
) -> Conflict | None:
    """An INSERT's ON CONFLICT clause over the proposed ``row``; ``through`` a view, whose names it has then."""
    clause, binding = node.onConflictClause, level.binding
    if clause is None:
        return None
    if isinstance(target, Stream):
        raise unsupported("ON CONFLICT on a stream", "Group the stream in a view.", binding.position(clause))
    updates = clause.action == OnConflictAction.ONCONFLICT_UPDATE
    if updates and clause.infer is None:
        message = "ON CONFLICT DO UPDATE requires inference specification or constraint name"
        hint = "For example, ON CONFLICT (column_name)."
        raise SqlError("42601", message, hint=hint, position=binding.position(clause))
    old = tuple(binding.column(column.name, column.type) for column in target.columns)
    alias = node.relation.alias
    scope = scope_of_target(target, node, _entries(old)) if through is None else through.scope(old, alias)
    env = Environment(binding, scope, "index predicates", level)
    keys = _keys(env, target, old, clause.infer, through)
    if updates and len(keys) > 1 and isinstance(keys[0], Index):
        raise unsupported(
            "ON CONFLICT DO UPDATE by several indexes of a part of the rows", "Keep one of these indexes."
        )
    if not updates:
        return Conflict(keys, None)
    excluded = source_of(EXCLUDED, _entries(row))
    items = clause.targetList
    if through is not None:
        excluded = through.scope(row, ast.Alias(aliasname=EXCLUDED))
        items = through.assigned(binding, items, "insert into")
    return Conflict(keys, _update(env, target, (old, row), excluded, items, clause))


def _entries(row: tuple[Column, ...]) -> list[Entry]:
    return [Entry(column.name, ColumnRef(column)) for column in row]


def _update(
    env: Environment, target: Table, rows: tuple[tuple[Column, ...], ...], excluded: Scope, items: Any, clause: Any
) -> Upsert:
    """DO UPDATE SET ``items`` [WHERE ...] over both rows, the table's and the proposed one."""
    old, _ = rows
    both = Scope(env.scope.sources + excluded.sources, env.scope.entries + excluded.entries)
    inner = Environment(env.binding, both, "UPDATE", env.level)
    assigned = assignments(inner, target, items, old)
    env.binding.give(target.oid, "w", (target.columns[index].name for index in assigned))
    predicate = None
    if clause.whereClause is not None:
        predicate = bind_boolean(inner.without_aggregates("WHERE"), clause.whereClause, "WHERE")
    _read(env, target, rows, (*assigned.values(), *(() if predicate is None else (predicate,))))
    outputs = tuple(
        (env.binding.column(column.name, column.type), assigned.get(index, ColumnRef(column)))
        for index, column in enumerate(old)
    )
    return Upsert(old, predicate, outputs)


def _read(env: Environment, target: Table, rows: tuple[tuple[Column, ...], ...], scalars: Iterable[Scalar]) -> None:
    """Notes which columns of the target need SELECT: those that are looked at, be it in the proposed row."""
    used = {column for scalar in scalars for column in used_columns(scalar)}
    pairs = (pair for row in rows for pair in zip(target.columns, row, strict=True))
    env.binding.give(target.oid, "r", (definition.name for definition, column in pairs if column in used))


# --- arbiters --------------------------------------------------------------------------------------------------------


def _inferred(env: Environment, infer: Any) -> tuple[frozenset[Scalar], frozenset[Scalar]]:
    """The parts of (parts [WHERE ...]) and what its predicate demands."""
    found: set[Scalar] = set()
    for item in infer.indexElems:
        if item.collation or item.opclass:
            raise unsupported("COLLATE and operator classes in ON CONFLICT", "Leave them out.")
        if item.name is not None:
            meant = {entry.scalar for entry in env.scope.entries if entry.name == item.name}
            if not meant:
                raise env.error("42703", f'column "{item.name}" does not exist', infer)
            found |= meant
        else:
            found.add(env.bind(item.expr))
    where = None if infer.whereClause is None else bind_boolean(env, infer.whereClause, "WHERE")
    return frozenset(found), frozenset(conjuncts(where))


def _keys(
    env: Environment, target: Table, old: tuple[Column, ...], infer: Any, through: Through | None
) -> tuple[UniqueKey | Index, ...]:
    """The arbiters. Raises 42P10, and 42704 or 42809 for a constraint that is none."""
    indexes = tuple(index for index in target.indexes if index.unique)
    if infer is None:
        return (*_never_waiting(target, target.keys), *indexes)
    if infer.conname is not None:
        if through is not None:
            raise SqlError("42704", f'constraint "{infer.conname}" for table "{through.view.name}" does not exist')
        key = _constraint(target, infer.conname)
        env.binding.give(target.oid, "r", key.columns)
        return _never_waiting(target, (key,))
    parts, demands = _inferred(env, infer)
    _read(env, target, (old,), parts | demands)
    row = {column.name: ColumnRef(column) for column in old}
    keys = tuple(key for key in target.keys if {row[name] for name in key.columns} == parts)
    if keys:
        return _never_waiting(target, keys)
    partial = False
    found: list[Index] = []
    for index in indexes:
        bound = index_parts(env.binding.binder, target, index)
        over: dict[Column, Scalar] = dict(zip(bound.row, row.values(), strict=True))
        if {substitute(part, over) for part in bound.parts} == parts:
            wanted = {substitute(item, over) for item in conjuncts(bound.predicate)}
            partial |= not wanted <= demands
            found += [index] if wanted <= demands else []
    if not found and partial and demands:
        raise unsupported("ON CONFLICT with another predicate than the index's", "Write the index's own predicate.")
    if not found:
        message = "there is no unique or exclusion constraint matching the ON CONFLICT specification"
        raise SqlError("42P10", message)
    whole = [index for index in found if index.predicate is None]
    return tuple(whole or found)


def _never_waiting(target: Table, keys: tuple[UniqueKey, ...]) -> tuple[UniqueKey, ...]:
    """Keys as arbiters. Raises 55000 where one is DEFERRABLE."""
    for key in keys:
        if key.deferrable:
            message = "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters"
            raise SqlError("55000", message, about=subject(target, constraint=key.name))
    return keys


def _constraint(target: Table, name: str) -> UniqueKey:
    for key in target.keys:
        if key.name == name:
            return key
    if name in {check.name for check in target.checks} | {key.name for key in target.foreign_keys}:
        raise SqlError("42809", "constraint in ON CONFLICT clause has no associated index")
    raise SqlError("42704", f'constraint "{name}" for table "{target.name}" does not exist')

"""MERGE: a join of source and target, and for each of its rows the first WHEN clause that applies.

Owns: the clauses' conditions, the names that each sees (NOT MATCHED: only the source), and their rows. The form is
PostgreSQL 15's, without RETURNING and WHEN NOT MATCHED BY SOURCE. See
https://www.postgresql.org/docs/15/sql-merge.html.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from pglast.enums import CmdType, MergeMatchKind

from catalog.objects import Stream, Table, View
from catalog.values.errors import SqlError, unsupported
from catalog.values.types import BOOL, INT4, INT8
from planner.algebra.nodes import ROW_ID, Call, Case, Column, ColumnRef, Join, Literal, Project, Scalar
from planner.algebra.walk import replace_columns, used_columns
from planner.bind.changes.assignments import assignments, default_of
from planner.bind.changes.dml import checks_of, insert_positions, row_columns, target_scan, value_row, writable
from planner.bind.changes.generated_columns import generated_of
from planner.bind.from_items.from_clause import bind_from, with_place
from planner.bind.lookup.relations import find_object
from planner.bind.scalars.expressions import bind_boolean
from planner.bind.state.environment import Binding, Environment, Level, Scope
from planner.bind.with_queries.with_clause import with_ctes
from planner.statements.statement import Merge, MergeAction, Statement

_MATCHED: Final = MergeMatchKind.MERGE_WHEN_MATCHED


def bind_merge(binding: Binding, node: Any) -> Merge:
    """MERGE INTO target USING source ON condition WHEN ..."""
    level = _level(binding, node)
    _refuse_later(binding, node)
    _check_reachable(node.mergeWhenClauses)
    found = find_object(binding, node.relation)
    if not isinstance(found, View):
        found = writable(binding, node.relation, "merge into")
    if isinstance(found, Stream | View):
        detail = f"This operation is not supported for {'views' if isinstance(found, View) else 'foreign tables'}."
        raise SqlError("0A000", f'cannot execute MERGE on relation "{found.name}"', detail)
    inserts = any(item.matchKind != _MATCHED for item in node.mergeWhenClauses)
    target, scan, row_id, scope = target_scan(binding, node.relation, "merge into", nullable=inserts)
    rows_of_target, scope = with_place(binding, scan, scope)
    source, source_scope = bind_from(level, (node.sourceRelation,))
    if any(item.name == scope.sources[0].name for item in source_scope.sources):
        detail = "The name is used both as MERGE target table and data source."
        raise SqlError("42712", f'name "{scope.sources[0].name}" specified more than once', detail)
    both = Scope(scope.sources + source_scope.sources, scope.entries + source_scope.entries)
    env = Environment(binding, both, "JOIN conditions", level)
    on = bind_boolean(env, node.joinCondition, "JOIN/ON")
    clauses = _Clauses(env, source_scope, target, scan.columns[: len(target.columns)])
    action = clauses.chosen(node.mergeWhenClauses, row_id)
    rows = [clauses.row(item) for item in node.mergeWhenClauses]
    clauses.looks_at(on, action)
    joined = Join("left" if inserts else "inner", source, rows_of_target, on)
    used = {column for row in rows for scalar in row for column in used_columns(scalar)}
    copies = {
        column: binding.column(column.name, column.type)
        for column in joined.columns
        if column in used or column in clauses.old
    }
    renamed: dict[Column, Scalar] = {column: ColumnRef(copy) for column, copy in copies.items()}
    new = row_columns(binding, target)
    actions = tuple(
        MergeAction(_KINDS[item.commandType], tuple(zip(new, (replace_columns(s, renamed) for s in row), strict=False)))
        for item, row in zip(node.mergeWhenClauses, rows, strict=True)
    )
    identity, choice = binding.column(ROW_ID, INT8), binding.column("action", INT4)
    outputs = ((identity, ColumnRef(row_id)), (choice, action), *((c, ColumnRef(s)) for s, c in copies.items()))
    old = tuple(copies[column] for column in clauses.old)
    checks, generated = checks_of(binding, target, new), generated_of(binding, target, new)
    return Merge(target, Project(joined, outputs), identity, choice, old, new, actions, checks, generated)


_KINDS: Final[dict[Any, Any]] = {
    CmdType.CMD_INSERT: "insert",
    CmdType.CMD_UPDATE: "update",
    CmdType.CMD_DELETE: "delete",
    CmdType.CMD_NOTHING: "nothing",
}


def _level(binding: Binding, node: Any) -> Level:
    if node.withClause is None:
        return Level(binding)
    if node.withClause.recursive:
        raise SqlError("0A000", "WITH RECURSIVE is not supported for MERGE statement")
    return with_ctes(Level(binding), node.withClause)


def _refuse_later(binding: Binding, node: Any) -> None:
    """What PostgreSQL has learnt after version 15."""
    if node.returningClause is not None:
        raise unsupported("MERGE ... RETURNING", "Read the rows with a SELECT.")
    if any(item.matchKind == MergeMatchKind.MERGE_WHEN_NOT_MATCHED_BY_SOURCE for item in node.mergeWhenClauses):
        raise unsupported("WHEN NOT MATCHED BY SOURCE", "Use an UPDATE or DELETE ... WHERE NOT EXISTS.")


def _check_reachable(clauses: tuple[Any, ...]) -> None:
    final: set[bool] = set()
    for item in clauses:
        if (item.matchKind == _MATCHED) in final:
            raise SqlError("42601", "unreachable WHEN clause specified after unconditional WHEN clause")
        if item.condition is None:
            final.add(item.matchKind == _MATCHED)


class _Clauses:
    """The WHEN clauses of one statement."""

    def __init__(self, env: Environment, source: Scope, target: Table, old: tuple[Column, ...]) -> None:
        self._env, self._source, self._target, self.old = env, source, target, old

    def looks_at(self, *scalars: Scalar) -> None:
        """Notes the target's columns that expressions are made of, on which one needs SELECT."""
        used = {column for scalar in scalars for column in used_columns(scalar)}
        names = [item.name for item, old in zip(self._target.columns, self.old, strict=True) if old in used]
        self._env.binding.give(self._target.oid, "r", names)

    def _within(self, clause: Any, name: str) -> Environment:
        scope = self._env.scope if clause.matchKind == _MATCHED else self._source
        return Environment(self._env.binding, scope, name, self._env.level)

    def chosen(self, clauses: tuple[Any, ...], row_id: Column) -> Scalar:
        """The index of the clause for a row; NULL where none holds. No condition of the other kind is evaluated."""
        kinds: dict[bool, list[tuple[Scalar, Scalar]]] = {True: [], False: []}
        for index, clause in enumerate(clauses):
            condition: Scalar = Literal(True, BOOL)
            if clause.condition is not None:
                condition = bind_boolean(self._within(clause, "MERGE WHEN conditions"), clause.condition, "WHEN")
            kinds[clause.matchKind == _MATCHED].append((condition, Literal(index, INT4)))
        none = Literal(None, INT4)
        matched, other = (Case(tuple(kinds[kind]), none, INT4) if kinds[kind] else none for kind in (True, False))
        is_matched = Call("is_not_null", (ColumnRef(row_id),), BOOL)
        return Case(((is_matched, matched),), other, INT4)

    def row(self, clause: Any) -> tuple[Scalar, ...]:
        """The new row of an UPDATE or INSERT."""
        binding, target = self._env.binding, self._target
        match clause.commandType:
            case CmdType.CMD_UPDATE:
                assigned = assignments(self._within(clause, "UPDATE"), target, clause.targetList, self.old)
                binding.give(target.oid, "w", (target.columns[index].name for index in assigned))
                self.looks_at(*assigned.values())
                return tuple(assigned.get(index, ColumnRef(column)) for index, column in enumerate(self.old))
            case CmdType.CMD_INSERT:
                indexes = insert_positions(binding, target, clause.targetList)
                env, cells = self._within(clause, "VALUES"), clause.values or ()
                binding.give(target.oid, "a", (target.columns[index].name for index in indexes[: len(cells)]))
                default = cache(lambda index: default_of(binding, target.columns[index]))
                return value_row(env, target, indexes, cells, clause, clause.targetList, default)
            case _:
                return ()


HANDLERS: Final[dict[str, Callable[[Binding, Any], Statement]]] = {"MergeStmt": bind_merge}

"""JOIN: ON, USING and NATURAL, and the side that may be filled with nulls.

Owns: the errors of join conditions, and the merged columns of USING. ``from_clause`` binds the two sides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace
from pglast.enums import JoinType

from catalog.values.errors import SqlError
from catalog.values.types import BOOL
from planner.algebra.nodes import Call, ColumnRef, Join, JoinKind, Literal, Project, Relation, Scalar
from planner.algebra.walk import is_dependent
from planner.bind.calls.operator_calls.operation import operate
from planner.bind.conversion.rows import sure_of
from planner.bind.from_items.item_scopes import beside_each_other, renamed
from planner.bind.lookup.dotted_names import names_of
from planner.bind.scalars.expressions import bind_boolean, unify
from planner.bind.state.environment import Binding, Environment, Level, Scope, source_of
from planner.bind.state.from_names import Entry, Source

#: Binds one side: its level, its node, whether a join may fill it with nulls, and what LATERAL sees.
BindItem = Callable[[Level, Any, bool, Scope], tuple[Relation, Scope]]

_KINDS: Mapping[Any, JoinKind] = {
    JoinType.JOIN_INNER: "inner",
    JoinType.JOIN_LEFT: "left",
    JoinType.JOIN_RIGHT: "right",
    JoinType.JOIN_FULL: "full",
}


def bind_join(level: Level, node: Any, nullable: bool, beside: Scope, bind_item: BindItem) -> tuple[Relation, Scope]:
    """One JOIN. Raises 42P10, 42702 and 42703."""
    kind = _KINDS[node.jointype]
    left, left_scope = bind_item(level, node.larg, nullable or kind in ("right", "full"), beside)
    visible = Scope(
        beside.sources + left_scope.sources, beside.entries + left_scope.entries
    )  # two of a name are ambiguous
    right, right_scope = bind_item(level, node.rarg, nullable or kind in ("left", "full"), visible)
    if kind in ("right", "full"):
        left, left_scope = _padded(level.binding, left, left_scope)
    if kind in ("left", "full"):
        right, right_scope = _padded(level.binding, right, right_scope)
    if kind in ("right", "full") and is_dependent(right, left):
        detail = "The combining JOIN type must be INNER or LEFT for a LATERAL reference."
        raise SqlError("42P10", "invalid LATERAL reference to the other side of a join", detail)
    both = replace(beside_each_other(left_scope, right_scope), outer=level.outer)
    env = Environment(level.binding, both, "JOIN conditions", level)
    predicate: Scalar | None = None
    entries = both.entries
    if node.isNatural or node.usingClause:
        names = names_of(node.usingClause) if node.usingClause else _common(left_scope, right_scope)
        predicate, entries = _using(env, kind, names, left_scope, right_scope, node)
    elif node.quals is not None:
        predicate = bind_boolean(env, node.quals, "JOIN/ON")
    scope = Scope(both.sources, entries)
    if node.join_using_alias is not None:
        shared = entries[: len(node.usingClause)]
        scope = replace(beside_each_other(scope, source_of(node.join_using_alias.aliasname, shared)), entries=entries)
    if node.alias is not None:
        scope = renamed(level.binding, Scope((Source(node.alias.aliasname, entries),), entries), node.alias, node)
    return Join(kind, left, right, predicate), scope


def _padded(binding: Binding, relation: Relation, scope: Scope) -> tuple[Relation, Scope]:
    """The side that a join fills up; where rows are marked, with a column that is never NULL before that."""
    sources = [replace(source, padded=True) for source in scope.sources]
    if binding.marks_rows and any(source.mark is None and sure_of(source) is None for source in sources):
        mark = binding.column("mark", BOOL)
        kept = tuple((column, ColumnRef(column)) for column in relation.columns)
        relation = Project(relation, (*kept, (mark, Literal(True, BOOL))))
        sources = [source if source.mark is not None else replace(source, mark=ColumnRef(mark)) for source in sources]
    return relation, replace(scope, sources=tuple(sources))


def _common(left: Scope, right: Scope) -> tuple[str, ...]:
    names = {entry.name for entry in right.entries}
    return tuple(dict.fromkeys(entry.name for entry in left.entries if entry.name in names))


def _using(
    env: Environment, kind: JoinKind, names: tuple[str, ...], left: Scope, right: Scope, node: Any
) -> tuple[Scalar | None, tuple[Entry, ...]]:
    """The equality of the named columns, and the merged columns in front of the others."""
    conditions: list[Scalar] = []
    merged: list[Entry] = []
    for name in names:
        first, second = _joined(env, left, name, "left", node), _joined(env, right, name, "right", node)
        merged.append(_merge(env, kind, first, second))
        conditions.append(operate(env, "=", first.scalar, second.scalar, node, (node, node)))
    rest = [entry for entry in (*left.entries, *right.entries) if entry.name not in names]
    predicate = (
        None
        if not conditions
        else conditions[0]
        if len(conditions) == 1
        else Call("and", tuple(conditions), conditions[0].type)
    )
    return predicate, (*merged, *rest)


def _joined(env: Environment, scope: Scope, name: str, side: str, node: Any) -> Entry:
    matches = [entry for entry in scope.entries if entry.name == name]
    if not matches:
        raise env.error("42703", f'column "{name}" specified in USING clause does not exist in {side} table', node)
    if len(matches) > 1:
        raise env.error("42702", f'common column name "{name}" appears more than once in {side} table', node)
    return matches[0]


def _merge(env: Environment, kind: JoinKind, first: Entry, second: Entry) -> Entry:
    left, right = unify(env, [first.scalar, second.scalar], "JOIN/USING", [None, None])
    if kind == "full":
        typmod = first.typmod if (first.typmod, left.type.name) == (second.typmod, right.type.name) else -1
        return Entry(first.name, Call("coalesce", (left, right), left.type), typmod=typmod)
    kept, scalar = (second, right) if kind == "right" else (first, left)
    return replace(kept, scalar=scalar) if scalar == kept.scalar else Entry(first.name, scalar)

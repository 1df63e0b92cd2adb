"""Whether a relation is well formed: what it uses is produced below it, and nothing is produced twice side by side.

The planner's own assertion, run by ``optimise`` over its result and by tests after each rule. A failure is a bug of
ours, never a user's error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from planner.algebra.nodes import (
    Column,
    Delta,
    Fixpoint,
    InSubquery,
    Join,
    Relation,
    ScalarSubquery,
    Scan,
    SetOperation,
    Snapshot,
    Values,
)
from planner.algebra.walk import RELATION_KINDS, Node, children, contains, inputs, is_relation, used_columns


def validate(relation: Relation, outer: frozenset[Column] = frozenset()) -> None:
    """Asserts that a relation is well formed; ``outer`` are the columns of enclosing queries that it may use."""
    stack: list[tuple[Node, frozenset[Column]]] = [(relation, outer)]
    while stack:
        node, scope = stack.pop()
        if is_relation(node):
            _check_shape(node)
            below = inputs(node)
            inner = scope.union(*(item.columns for item in below)) if below else scope
            stack.extend([(item, _scope(node, item, scope)) for item in below])
            expressions = [child for child in children(node) if not is_relation(child)]
        else:
            if isinstance(node, ScalarSubquery | InSubquery):
                assert len(node.relation.columns) == 1, "a subquery's value is one column"
            expressions, inner = children(node), scope
        for child in expressions:
            if contains(child, RELATION_KINDS):
                stack.append((child, inner))
            else:
                lost = used_columns(child) - inner
                assert not lost, f"{_names(lost)} is used where nothing below produces it"


def _scope(node: Relation, child: Relation, scope: frozenset[Column]) -> frozenset[Column]:
    """What an input may use: the right side of a join the left's columns."""
    if isinstance(node, Join) and child is node.right and node.kind in ("inner", "left"):
        return scope.union(node.left.columns)
    return scope


def _check_shape(node: Relation) -> None:
    columns = node.columns
    if len(set(columns)) < len(columns):
        twice = [column for column, count in Counter(columns).items() if count > 1]
        raise AssertionError(f"{type(node).__name__} produces {_names(twice)} twice")
    match node:
        case Scan() | Snapshot() | Delta():
            assert len(node.columns) == len(node.sources), "each column of a leaf has a source"
        case Values():
            assert all(len(row) == len(node.columns) for row in node.rows), "each row is as wide as the columns"
        case Join(left=left, right=right):
            shared = set(left.columns) & set(right.columns)
            assert not shared, f"both inputs of a join produce {_names(shared)}"
        case SetOperation(left=left, right=right):
            widths = {len(left.columns), len(right.columns), len(node.columns)}
            assert len(widths) == 1, "both inputs of a set operation are as wide as its columns"
        case Fixpoint(base=base, step=step):
            widths = {len(base.columns), len(step.columns), len(node.columns)}
            assert len(widths) == 1, "both inputs of a fixpoint are as wide as its columns"
        case _:
            pass


def _names(columns: Iterable[Column]) -> str:
    return ", ".join(sorted(f"{column.name}#{column.id}" for column in columns))

"""LIMIT and OFFSET by the numbers of rows: within each group of rows that share some values, or computed.

Limit(Sort(R, k), n, m)  =  Filter(Window(R, row_number() OVER (PARTITION BY p ORDER BY k)), m < number <= m + n)
"""

from __future__ import annotations

from collections.abc import Iterator

from catalog.values.types import BOOL, INT8, TEXT
from planner.algebra.construction import Fresh, filtered
from planner.algebra.nodes import (
    Call,
    Case,
    Cast,
    Column,
    ColumnRef,
    Limit,
    Literal,
    Project,
    Relation,
    Scalar,
    Sort,
    SortKey,
    Window,
    WindowCall,
)

_ZERO = Literal(0, INT8)


def number_rows(node: Limit, partition: tuple[Column, ...], fresh: Fresh) -> Relation:
    """The limit's rows of each partition, in their order, with their numbers beside them."""
    above: list[Project] = []
    relation = node.input
    while isinstance(relation, Project):
        above.append(relation)
        relation = relation.input
    if not isinstance(relation, Sort):
        above, relation = [], node.input
    keys = relation.keys if isinstance(relation, Sort) else ()
    number = fresh.column("row_number", INT8, False)
    call = WindowCall("row_number", (), INT8, tuple(map(ColumnRef, partition)), order_by=keys)
    chosen = filtered(Window(relation, ((number, call),)), _bounds(ColumnRef(number), node))
    found: Relation = Sort(chosen, (SortKey(ColumnRef(number)),))
    for project in reversed(above):
        found = Project(found, (*project.outputs, (number, ColumnRef(number))))
    return found


def _bounds(number: Scalar, node: Limit) -> Iterator[Scalar]:
    passed = number
    if node.offset is not None:
        skipped = Call("coalesce", (_checked(node.offset, "2201X", "OFFSET"), _ZERO), INT8)
        passed = Call("sub", (passed, skipped), INT8)
        yield Call("gt", (passed, _ZERO), BOOL)
    if node.count is not None:
        within = Call("le", (passed, _checked(node.count, "2201W", "LIMIT")), BOOL)
        yield Call("is_not_false", (within,), BOOL)  # NULL is no limit


def _checked(value: Scalar, state: str, clause: str) -> Scalar:
    """The number, or the error of one below zero; a constant was looked at when it was bound."""
    if is_constant(value):
        return value
    error = Call("error", (Literal(state, TEXT), Literal(f"{clause} must not be negative", TEXT)), INT8)
    return Case(((Call("lt", (value, _ZERO), BOOL), error),), value, INT8)


def is_constant(value: Scalar | None) -> bool:
    """Whether a value is a literal, perhaps below casts, or is not there."""
    while isinstance(value, Cast):
        value = value.argument
    return value is None or isinstance(value, Literal)

"""Scales through UNION, INTERSECT and EXCEPT, whose rows are compared without them.

Owns: what stands in a set operation's place where decimals differ. UNION ALL has the scales as further columns; where
equal rows are one, that one shows the most decimals of any. INTERSECT and EXCEPT are the left side's rows that the
right side has or has not: without ALL its groups, with ALL its rows by their numbers among equal ones, since a row is
there as often as on both sides at least, or as often as the left side has it more.
"""

from __future__ import annotations

from msgspec.structs import replace

from catalog.values.scales import scale_kind
from catalog.values.types import INT8
from planner.algebra.construction import conjunction, same_group
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Column,
    ColumnRef,
    Join,
    JoinKind,
    Project,
    Relation,
    Scalar,
    SetOperation,
    Window,
    WindowCall,
)
from planner.scales.columns import Scales
from planner.scales.nested import has_scales, in_place
from planner.scales.terms import differs

#: A column of a set operation, and the scales of both sides' that it is made of.
Varying = tuple[Column, Scalar, Scalar]


def combined(scales: Scales, node: SetOperation) -> Relation:
    """A set operation with its columns' scales."""
    whole = replace(node, left=scales.own(node.left), right=scales.own(node.right))
    found = [
        (column, scales.of_column(a), scales.of_column(b))
        for column, a, b in zip(node.columns, whole.left.columns, whole.right.columns, strict=True)
        if has_scales(column.type)
    ]
    varying = [item for item in found if item[1] != item[2] or differs(item[1])]
    for column, a, _ in found:
        scales.know(column, a)
    if node.kind == "union" and node.all:
        columns = (*node.columns, *(scales.beside(column) for column, _, _ in varying))
        return _union(scales, node, columns, varying) if varying else whole
    if not varying:
        return whole
    if node.kind == "union":
        return _distinct_union(scales, node, varying)
    if not any(differs(scale) for _, scale, _ in varying):
        return whole
    varying = [item for item in varying if differs(item[1])]
    return _numbered(scales, node, whole, varying) if node.all else _grouped(scales, node, whole, varying)


def _distinct_union(scales: Scales, node: SetOperation, varying: list[Varying]) -> Aggregate:
    rows = tuple(scales.new(column.name, column.type) for column in node.columns)
    beside = tuple(scales.new("scale", scale_kind(column.type)) for column, _, _ in varying)
    keys = tuple((column, ColumnRef(item)) for column, item in zip(node.columns, rows, strict=True))
    most = tuple(
        (scales.beside(column), AggregateCall("max", (ColumnRef(scale),), scale.type))
        for (column, _, _), scale in zip(varying, beside, strict=True)
    )
    return Aggregate(_union(scales, node, (*rows, *beside), varying), keys, most)


def _union(scales: Scales, node: SetOperation, columns: tuple[Column, ...], varying: list[Varying]) -> SetOperation:
    """All rows of both sides with the scales that differ."""
    left = scales.only(node.left, [in_place(scale, column.type) for column, scale, _ in varying])
    right = scales.only(node.right, [in_place(scale, column.type) for column, _, scale in varying])
    return replace(node, all=True, left=left, right=right, columns=columns)


def _grouped(scales: Scales, node: SetOperation, whole: SetOperation, varying: list[Varying]) -> Join:
    """INTERSECT and EXCEPT as the groups of the left side that the right side has, or has not."""
    keys = tuple((column, ColumnRef(item)) for column, item in zip(node.columns, whole.left.columns, strict=True))
    most = tuple((scales.beside(column), AggregateCall("max", (scale,), scale.type)) for column, scale, _ in varying)
    return _met(node, Aggregate(node.left, keys, most), whole.right, node.columns, whole.right.columns)


def _numbered(scales: Scales, node: SetOperation, whole: SetOperation, varying: list[Varying]) -> Relation:
    """INTERSECT ALL and EXCEPT ALL: the n-th of some equal rows has the right side's n-th for a partner, or none."""
    alike = tuple(ColumnRef(column) for column in whole.left.columns)
    most = tuple(
        (scales.beside(column), WindowCall("max", (scale,), scale.type, partition=alike))
        for column, scale, _ in varying
    )
    number, other = (scales.new("number", INT8) for _ in range(2))
    left = Window(node.left, ((number, _number(alike)), *most))
    right = Window(whole.right, ((other, _number(tuple(ColumnRef(item) for item in whole.right.columns))),))
    rows = _met(node, left, right, (*whole.left.columns, number), (*whole.right.columns, other))
    named = tuple((column, ColumnRef(item)) for column, item in zip(node.columns, whole.left.columns, strict=True))
    return Project(rows, (*named, *((column, ColumnRef(column)) for column, _ in most)))


def _number(alike: tuple[Scalar, ...]) -> WindowCall:
    return WindowCall("row_number", (), INT8, partition=alike)


def _met(
    node: SetOperation, left: Relation, right: Relation, ours: tuple[Column, ...], theirs: tuple[Column, ...]
) -> Join:
    """The left rows that have a partner of the same values, or for EXCEPT none."""
    pairs = (same_group(ColumnRef(column), ColumnRef(item)) for column, item in zip(ours, theirs, strict=True))
    kind: JoinKind = "semi" if node.kind == "intersect" else "anti"
    return Join(kind, left, right, conjunction(pairs))

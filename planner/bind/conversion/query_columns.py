"""Columns of a query in other types, as UNION and recursive queries need them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catalog.values.types import TEXT, SqlType
from planner.algebra.nodes import ColumnRef, Literal, Parameter, Project, Relation, Scalar, Values
from planner.bind.conversion.coercion import coerce
from planner.bind.state.environment import Binding


def retyped(binding: Binding, relation: Relation, types: Sequence[SqlType], nodes: Sequence[Any]) -> Relation:
    """A query's relation with its columns in other types, implicitly cast; literals are converted where they stand."""
    if all(column.type == kind for column, kind in zip(relation.columns, types, strict=True)):
        return relation
    if isinstance(relation, Values):
        rows = tuple(
            tuple(_as(binding, item, kind, None) for item, kind in zip(row, types, strict=True))
            for row in relation.rows
        )
        columns = (binding.column(column.name, kind) for column, kind in zip(relation.columns, types, strict=True))
        return Values(tuple(columns), rows)
    if isinstance(relation, Project):
        pairs = [(column, scalar) for column, scalar in relation.outputs]
        source = relation.input
    else:
        pairs = [(column, ColumnRef(column)) for column in relation.columns]
        source = relation
    outputs = tuple(
        (binding.column(column.name, kind, column.nullable), _as(binding, scalar, kind, node))
        for (column, scalar), kind, node in zip(pairs, types, nodes, strict=True)
    )
    return Project(source, outputs)


def _as(binding: Binding, scalar: Scalar, kind: SqlType, node: Any) -> Scalar:
    if scalar.type.name == "unknown" and not isinstance(scalar, Literal | Parameter):
        scalar = coerce(binding, scalar, TEXT) or scalar
    found = coerce(binding, scalar, kind, "implicit", node)
    assert found is not None, "common_kind chose a type that both sides coerce to"
    return found

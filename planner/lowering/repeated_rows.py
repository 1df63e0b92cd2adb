"""Literal rows whose cells are the same expressions of other parameters, as one projection of these.

    Values((f($1), g($2)), (f($3), g($4)), ...)  =  Project(Values(($1, $2), ($3, $4), ...), f(p1), g(p2))

The time to print and plan the projection does not grow with the rows, and the engine reads the parameters as Arrow
rows. Otherwise an INSERT of a thousand rows, as drivers and ORMs write it, has five thousand casts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count
from typing import Any, Final

from msgspec import Struct

from catalog.values.nested_types import holds
from catalog.values.scales import is_unconstrained
from planner.algebra.nodes import Call, Column, ColumnRef, Parameter, Project, Relation, Scalar, Snapshot, Values
from planner.algebra.walk import RELATION_KINDS, contains, kinds_of, transform, walk

#: With fewer rows, the statement is short enough unchanged.
_FEW: Final = 16
#: The name of the leaf with the parameters.
TRACE: Final = "parameters"
_PARAMETERS: Final = kinds_of(Parameter)


class Repeated(Struct, frozen=True):
    """``relation`` yields the rows, over a leaf with the values of ``parameters``."""

    relation: Relation
    parameters: Values


def repeated_rows(values: Values) -> Repeated | None:
    """The rows as a projection; None for few rows, and if the rows' expressions differ."""
    if len(values.rows) < _FEW or any(contains(cell, RELATION_KINDS) for cell in values.rows[0]):
        return None
    shapes, rows = [_opened(cell)[0] for cell in values.rows[0]], []
    for row in values.rows:
        cells = [_opened(cell) for cell in row]
        if [shape for shape, _ in cells] != shapes:
            return None
        rows.append(tuple(chain.from_iterable(found for _, found in cells)))
    ids = count(max((column.id for column in values.columns), default=0) + 1)
    columns = tuple(Column(next(ids), "parameter", item.type) for item in rows[0])
    if not columns or any(holds(cell.type, is_unconstrained) for shape in shapes for cell in _within(shape)):
        return None
    leaf = Snapshot(TRACE, columns, tuple(f"c{column.id}" for column in columns))
    rest = iter(columns)
    outputs = tuple((column, _closed(shape, rest)) for column, shape in zip(values.columns, shapes, strict=True))
    return Repeated(Project(leaf, outputs), Values(columns, tuple(rows)))


def _within(shape: Scalar) -> Iterator[Scalar]:
    """The parameters of an expression. As a column, a numeric of undeclared scale would lose the scale that it was
    written with."""
    return (node for node in walk(shape) if isinstance(node, Parameter) and node is not shape)


def _opened(cell: Scalar) -> tuple[Scalar, tuple[Scalar, ...]]:
    """A cell with placeholders for its parameters, and the parameters; how a parameter is written is part of the
    former."""
    if isinstance(cell, Call) and cell.function == "written_scale" and isinstance(cell.arguments[0], Parameter):
        return Parameter(0, cell.type), (cell,)
    found: list[Scalar] = []

    def change(node: Any) -> Any:
        if not isinstance(node, Parameter):
            return node
        found.append(node)
        return Parameter(len(found) - 1, node.type)

    shape: Scalar = transform(cell, change, _PARAMETERS)
    return shape, tuple(found)


def _closed(shape: Scalar, columns: Iterator[Column]) -> Scalar:
    """A cell's expression over columns, in the order in which its parameters were found."""
    result: Scalar = transform(
        shape, lambda node: ColumnRef(next(columns)) if isinstance(node, Parameter) else node, _PARAMETERS
    )
    return result

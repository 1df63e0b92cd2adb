"""What is known of the scales of a statement's columns while they are carried through its relations.

Owns: ``Scales``, which maps columns and expressions to their scales and hands out the columns that hold scales. It
knows no operator: ``groups`` and ``set_operations`` change one kind of node each, and ``relations`` walks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from catalog.values.scales import scale_kind, scale_name
from catalog.values.types import SqlType
from planner.algebra.identity import NodeMap
from planner.algebra.nodes import Column, ColumnRef, Project, Relation, Scalar, With
from planner.scales.terms import UNKNOWN, differs, of_type

NewColumn = Callable[[str, SqlType], Column]


class Scales:
    """Scales of one statement's columns; ``new`` makes columns that nothing refers to yet."""

    def __init__(self, new: NewColumn) -> None:
        self.new = new
        self._known: dict[Column, Scalar] = {}
        #: Columns that only say scales.
        self._added: set[Column] = set()
        #: Expressions' scales.
        self._scales = NodeMap[Scalar]()

    def beside(self, column: Column) -> Column:
        """A new column for the scale of another one."""
        found = self.extra(scale_name(column.name), scale_kind(column.type))
        self._known[column] = ColumnRef(found)
        return found

    def extra(self, name: str, kind: SqlType) -> Column:
        """A new column that tells something of scales."""
        found = self.new(name, kind)
        self._added.add(found)
        return found

    def know(self, column: Column, scale: Scalar) -> None:
        """The scale of a column that comes from outside."""
        self._known[column] = scale

    def told(self, column: Column, scale: Scalar) -> list[tuple[Column, Scalar]]:
        """The output that tells a column's scale where that differs from row to row; from now on it is known."""
        if differs(scale):
            return [(self.beside(column), scale)]
        self.know(column, scale)
        return []

    def of_column(self, column: Column) -> Scalar:
        """A column's scale."""
        return self._known.get(column) or of_type(column.type)

    def of(self, scalar: Scalar) -> Scalar:
        """The scale of an expression that ``scalar`` or ``relation`` has given."""
        if isinstance(scalar, ColumnRef):
            return self.of_column(scalar.column)
        return self._scales.of(scalar) or UNKNOWN

    def own(self, relation: Relation) -> Relation:
        """A relation without the columns that only say scales."""
        kept = tuple(column for column in relation.columns if column not in self._added)
        return relation if kept == relation.columns else projected(relation, kept)

    def only(self, relation: Relation, scales: Iterable[Scalar]) -> Relation:
        """A relation's own columns, and new ones beside them for some scales."""
        kept = (column for column in relation.columns if column not in self._added)
        return projected(relation, kept, [(self.new("scale", scale.type), scale) for scale in scales])


def over(relation: Relation, outputs: Iterable[tuple[Column, Scalar]]) -> Relation:
    """A projection of what a statement reads; definitions stay at the root."""
    if isinstance(relation, With):
        return replace(relation, body=over(relation.body, outputs))
    return Project(relation, tuple(outputs))


def projected(relation: Relation, columns: Iterable[Column], more: Iterable[tuple[Column, Scalar]] = ()) -> Relation:
    """A relation restricted to some columns, and more beside them."""
    return over(relation, (*((column, ColumnRef(column)) for column in columns), *more))

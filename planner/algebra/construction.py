"""Building blocks for trees that are made of others: fresh columns, conjunctions, projections, substitution.

Everything here is a pure function over the algebra except ``Fresh``, which hands out column identities. ``volatility``
and the questions about subqueries tell whether a rewrite may move or copy an expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import count
from typing import Any, Final

from msgspec.structs import replace

from catalog.values.types import BOOL, TEXT, SqlType
from planner.algebra.functions import COMPARISONS, FUNCTIONS
from planner.algebra.nodes import (
    Call,
    Cast,
    Column,
    ColumnRef,
    Exists,
    Filter,
    InSubquery,
    Literal,
    Project,
    Relation,
    Scalar,
    ScalarSubquery,
)
from planner.algebra.walk import (
    RELATIONS,
    SUBQUERY_KINDS,
    Node,
    children,
    contains,
    produced_columns,
    replace_columns,
    transform,
    used_columns,
    walk,
)

SUBQUERIES: Final = (ScalarSubquery, Exists, InSubquery)
#: What is the same of all values that are equal.
_COMPARING: Final = frozenset((*COMPARISONS, "is_distinct", "is_not_distinct", "is_null", "is_not_null"))
TRUE: Final = Literal(True, BOOL)
FALSE: Final = Literal(False, BOOL)


class Fresh:
    """Hands out columns whose ids are above all those of the relations that it was made for."""

    def __init__(self, *relations: Relation) -> None:
        self._relations = relations

    @cached_property
    def _ids(self) -> Iterator[int]:
        """Found when the first is asked for: most rules find nothing to change."""
        found = (produced_columns(relation) | used_columns(relation) for relation in self._relations)
        return count(max((column.id for columns in found for column in columns), default=0) + 1)

    def column(self, name: str, type_: SqlType, nullable: bool = True) -> Column:
        """A column that nothing refers to yet."""
        return Column(next(self._ids), name, type_, nullable)

    def copy(self, column: Column) -> Column:
        """A column like another, with an identity of its own."""
        return replace(column, id=next(self._ids))

    def rename(self, relation: Relation) -> tuple[Relation, dict[Column, Column]]:
        """The relation with new identities for all columns that it produces, and which became which."""
        mapping = {column: self.copy(column) for column in sorted(produced_columns(relation), key=lambda item: item.id)}
        return rename_columns(relation, mapping), mapping


def rename_columns(relation: Any, mapping: dict[Column, Column]) -> Any:
    """The tree with columns replaced by others where they are produced and where they are used."""

    def change(node: Node) -> Node:
        if isinstance(node, ColumnRef):
            return ColumnRef(mapping.get(node.column, node.column))
        if isinstance(node, RELATIONS):
            return replace(node, **{name: _renamed(getattr(node, name), mapping) for name in node.__struct_fields__})
        return node

    return transform(relation, change)


def _renamed(value: Any, mapping: dict[Column, Column]) -> Any:
    if isinstance(value, Column):
        return mapping.get(value, value)
    if isinstance(value, tuple):
        return tuple(_renamed(item, mapping) for item in value)
    return value


def conjuncts(predicate: Scalar | None) -> Iterator[Scalar]:
    """The parts of a predicate that must all be true, left to right; none of them is literally true."""
    stack = [] if predicate is None else [predicate]
    while stack:
        part = stack.pop()
        if isinstance(part, Call) and part.function == "and":
            stack.extend(reversed(part.arguments))
        elif part != TRUE:
            yield part


def same_group(left: Scalar, right: Scalar) -> Scalar:
    """That two values are in one group, as GROUP BY sees them: NULL beside NULL, and documents by their texts, although
    ``1`` and ``1.0`` are equal as jsonb. What joins groups with each other asks for this."""
    if "jsonb" in (left.type.name, right.type.name):
        left, right = Cast(left, TEXT), Cast(right, TEXT)
    return Call("is_not_distinct", (left, right), BOOL)


def conjunction(parts: Iterable[Scalar]) -> Scalar | None:
    """The parts joined by AND; None for no part."""
    items = tuple(parts)
    if len(items) <= 1:
        return items[0] if items else None
    return Call("and", items, BOOL)


def filtered(relation: Relation, parts: Iterable[Scalar]) -> Relation:
    """The relation's rows for which all parts are true."""
    predicate = conjunction(parts)
    return relation if predicate is None else Filter(relation, predicate)


def both(predicate: Scalar | None, parts: Iterable[Scalar]) -> Scalar | None:
    """A predicate and more parts."""
    return conjunction((*conjuncts(predicate), *parts))


def equality(left: Scalar, right: Scalar) -> Scalar:
    """left = right."""
    return Call("eq", (left, right), BOOL)


def keep_columns(relation: Relation, columns: tuple[Column, ...]) -> Relation:
    """The relation restricted to some of its columns, in that order, under their own identities."""
    if relation.columns == columns:
        return relation
    return Project(relation, tuple((column, ColumnRef(column)) for column in columns))


def keeps_columns(relation: Relation) -> bool:
    """Whether a relation is a projection that only drops or reorders columns."""
    return isinstance(relation, Project) and all(
        isinstance(value, ColumnRef) and value.column == column for column, value in relation.outputs
    )


def substitution(project: Project) -> dict[Column, Scalar]:
    """What each output column of a projection stands for."""
    return dict(project.outputs)


def substitute(scalar: Scalar, mapping: dict[Column, Scalar]) -> Scalar:
    """A scalar with references replaced, typed for what comes out."""
    result: Scalar = replace_columns(scalar, mapping)
    return result


def has_subquery(node: Node) -> bool:
    """Whether a relation is nested anywhere in a scalar."""
    return contains(node, SUBQUERY_KINDS)


def outermost_subqueries(scalar: Any) -> Iterator[Any]:
    """The subqueries of a scalar without those within them."""
    stack: list[Any] = [scalar]
    while stack:
        node = stack.pop()
        if isinstance(node, SUBQUERIES):
            yield node
        else:
            stack.extend(children(node))


def shown_columns(node: Node) -> set[Column]:
    """The columns in a tree that are used for more than comparisons."""
    found: set[Column] = set()
    stack: list[Node] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, ColumnRef):
            found.add(item.column)
        compares = isinstance(item, Call) and item.function in _COMPARING
        stack.extend(child for child in children(item) if not (compares and isinstance(child, ColumnRef)))
    return found


def volatility(node: Node) -> str:
    """The worst volatility of any function in the tree: immutable, stable or volatile."""
    found = {
        FUNCTIONS[item.function].volatility
        for item in walk(node)
        if isinstance(item, Call) and item.function in FUNCTIONS
    }
    return next((word for word in ("volatile", "stable") if word in found), "immutable")

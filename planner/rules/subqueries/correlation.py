"""Correlated predicates taken out of a subquery, so that it may become the right side of a join.

For a subquery R that uses columns of an enclosing row o, ``pull`` finds R' without such columns and predicates with
R(o) = Filter(R', predicates) as far as its columns go. Predicates pass operators upwards:

    Filter(R, c AND p)         c is taken, p stays
    Project(R, f)              columns that taken predicates use are passed on
    Aggregate(R, k, a)         taken equalities  x = y(o)  add x to the keys; anything else cannot pass
    Join                       from both sides when inner, from the left when left, semi or anti
    Sort                       gone, an order means nothing here

What cannot pass is refused: 0A000 with the reason, never another meaning.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from catalog.values.errors import SqlError, unsupported
from catalog.values.types import TEXT, SqlType
from planner.algebra.construction import Fresh, conjunction, conjuncts, equality, filtered, substitute
from planner.algebra.nodes import (
    Aggregate,
    Call,
    Column,
    ColumnRef,
    Filter,
    Fixpoint,
    Join,
    Limit,
    Literal,
    Project,
    Relation,
    Scalar,
    SetOperation,
    Sort,
    Values,
    Window,
)
from planner.algebra.walk import free_columns, inputs, transform, used_columns

_INSTEAD: Final = "Write the subquery as a join with a grouped subquery in FROM."

#: Operators that no correlated predicate passes.
_CLOSED: Final[dict[type, str]] = {
    Limit: "with LIMIT",
    SetOperation: "with UNION, INTERSECT or EXCEPT",
    Window: "with window functions",
    Fixpoint: "with WITH RECURSIVE",
}


class Pulled(Struct):
    """A subquery without the enclosing row's columns, and what must hold between its rows and that row."""

    relation: Relation
    predicates: list[Scalar]


def refuse(why: str) -> SqlError:
    """0A000 for a correlation that no rule takes out exactly."""
    return unsupported(f"a correlated subquery {why}", _INSTEAD)


def pull(relation: Relation, fresh: Fresh) -> Pulled:
    """The relation and the correlated predicates taken out of it. Raises 0A000."""
    outer = free_columns(relation)
    if not outer:
        return Pulled(relation, [])
    puller = _Puller(frozenset(outer), fresh)
    result: Relation = transform(relation, puller.change)
    if used_columns(result) & outer:
        raise refuse("that uses the outer query's columns elsewhere than in a WHERE clause")
    return Pulled(result, puller.taken)


def equal_parts(predicate: Scalar, outer: frozenset[Column]) -> tuple[Scalar, Scalar] | None:
    """(inner, outer) of an equality between an expression of the subquery and one of the enclosing row."""
    match predicate:
        case Call(function="eq", arguments=(left, right)):
            for inner, other in ((left, right), (right, left)):
                used_inner, used_other = used_columns(inner), used_columns(other)
                if used_inner and not used_inner & outer and used_other and used_other <= outer:
                    return inner, other
    return None


class _Puller(Struct):
    outer: frozenset[Column]
    fresh: Fresh
    taken: list[Scalar] = field(default_factory=list)

    def change(self, node: Any) -> Any:
        """One operator, its inputs done already."""
        match node:
            case Filter():
                parts = list(conjuncts(node.predicate))
                self.taken += [part for part in parts if used_columns(part) & self.outer]
                return filtered(node.input, (part for part in parts if not used_columns(part) & self.outer))
            case Project():
                passed = self._used() & set(node.input.columns) - set(node.columns)
                more = tuple((column, ColumnRef(column)) for column in sorted(passed, key=lambda item: item.id))
                return replace(node, outputs=(*node.outputs, *more))
            case Aggregate():
                return self._aggregate(node)
            case Join():
                return self._join(node)
            case Sort():
                return node.input if self.taken else node
            case Limit() | SetOperation() | Window() | Fixpoint() if self._touching(*inputs(node)):
                raise refuse(_CLOSED[type(node)])
            case _:
                return node

    def _used(self) -> set[Column]:
        return {column for part in self.taken for column in used_columns(part)} - self.outer

    def _touching(self, *relations: Relation) -> list[int]:
        """Places of taken predicates that come from below some relations, or may (they use no inner column)."""
        given = {column for relation in relations for column in relation.columns}
        used = [used_columns(part) - self.outer for part in self.taken]
        return [place for place, columns in enumerate(used) if columns & given or not columns]

    def _aggregate(self, node: Aggregate) -> Aggregate:
        """Equalities pass an aggregate that has keys (one without has a row even over no rows: see decorrelate)."""
        places = self._touching(node.input)
        if places and not node.keys:
            raise refuse("with an aggregate inside another subquery or join")
        keys = list(node.keys)
        for place in places:
            parts = equal_parts(self.taken[place], self.outer)
            if parts is None:
                raise refuse("with an aggregate and a comparison other than equality with the outer query")
            inner, other = parts
            column = self.fresh.column(name_of(inner), inner.type)
            keys.append((column, inner))
            self.taken[place] = equality(ColumnRef(column), other)
        return replace(node, keys=tuple(keys))

    def _join(self, node: Join) -> Join:
        parts = list(conjuncts(node.predicate))
        if node.kind == "inner":
            self.taken += [part for part in parts if used_columns(part) & self.outer]
            kept = conjunction(part for part in parts if not used_columns(part) & self.outer)
            return replace(node, predicate=kept)
        closed = node.left.columns if node.kind == "right" else node.right.columns
        if node.kind == "full":
            closed = node.columns
        if self._used() & set(closed):
            raise refuse("whose outer join, EXISTS or IN depends on the outer query")
        return node


def name_of(scalar: Scalar) -> str:
    """A name for a column of this value."""
    return scalar.column.name if isinstance(scalar, ColumnRef) else "key"


class SingleRow(Struct):
    """A subquery that is ``aggregate`` (without keys), then ``conditions`` (HAVING), then ``value``."""

    aggregate: Aggregate
    value: Scalar
    conditions: tuple[Scalar, ...]


def single_row(relation: Relation) -> SingleRow | None:
    """The parts of a one-column subquery over an aggregate without keys; None for any other."""
    value: Scalar = ColumnRef(relation.columns[0])
    conditions: tuple[Scalar, ...] = ()
    while True:
        match relation:
            case Project(outputs=outputs):
                mapping = dict(outputs)
                value = substitute(value, mapping)
                conditions = tuple(substitute(item, mapping) for item in conditions)
            case Filter(predicate=predicate):
                conditions = (*conjuncts(predicate), *conditions)
            case Sort():
                pass
            case Limit() if keeps_first_row(relation):
                pass
            case Aggregate(keys=()):
                return SingleRow(relation, value, conditions)
            case _:
                return None
        relation = relation.input


def keeps_first_row(limit: Limit) -> bool:
    """Whether a limit lets at least the first row through for sure."""
    first = limit.count is None or (
        isinstance(limit.count, Literal) and (limit.count.value is None or limit.count.value != 0)
    )
    return first and (limit.offset is None or (isinstance(limit.offset, Literal) and limit.offset.value in (None, 0)))


def without_top(relation: Relation) -> Relation:
    """A subquery of which only the existence of rows matters, without what leaves that alone."""
    while isinstance(relation, Project | Sort) or (isinstance(relation, Limit) and keeps_first_row(relation)):
        relation = relation.input
    return relation


def second_row(kind: SqlType) -> Call:
    """The error 21000 of a subquery of which one row is wanted, in the place of a value."""
    message = Literal("more than one row returned by a subquery used as an expression", TEXT)
    return Call("error", (Literal("21000", TEXT), message), kind)


def rows_at_most_one(relation: Relation) -> bool:
    """Whether a relation is known to have at most one row."""
    while True:
        match relation:
            case Project() | Filter() | Sort():
                relation = relation.input
            case Aggregate(keys=()):
                return True
            case Limit(count=Literal(value=int(value))) if value <= 1:
                return True
            case Limit():
                relation = relation.input
            case Values(rows=rows):
                return len(rows) <= 1
            case _:
                return False

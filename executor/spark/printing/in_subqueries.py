"""x IN (subquery) with three truth values: Spark has three where the condition is a filter's, and elsewhere only two.

Owns: ``three_valued``, which writes what Spark would get wrong as EXISTS, which is never NULL:

    x IN (S)    CASE WHEN EXISTS (S with s = x) THEN true
                     WHEN EXISTS (S with s IS NULL OR x IS NULL) THEN NULL
                     ELSE false END

A filter treats NULL as false, so IN stays under AND and OR there, and NOT IN stays as a conjunct, which Spark makes a
null-aware anti join. Every other context tells NULL from false.
"""

from __future__ import annotations

from catalog.values.types import BOOL
from planner.algebra.construction import conjunction, conjuncts
from planner.algebra.identity import NodeMap
from planner.algebra.nodes import Call, Case, ColumnRef, Exists, Filter, InSubquery, Literal, Relation, Scalar
from planner.algebra.walk import Node, transform


def three_valued(relation: Relation) -> Relation:
    """The relation with each IN that Spark would make false or true in place of NULL as EXISTS."""
    #: What each IN became, with what it was, for the filter above it.
    written = NodeMap[InSubquery]()

    def was(node: Scalar) -> Scalar:
        return written.of(node) or node

    def as_alternative(part: Scalar) -> Scalar:
        """A condition of which only truth matters."""
        if isinstance(part, Call) and part.function in ("and", "or"):
            return Call(part.function, tuple(as_alternative(item) for item in part.arguments), part.type)
        return was(part)

    def as_conjunct(part: Scalar) -> Scalar:
        if isinstance(part, Call) and part.function == "not":
            return Call("not", (was(part.arguments[0]),), part.type)
        return as_alternative(part)

    def change(node: Node) -> Node:
        if isinstance(node, InSubquery):
            found = _as_exists(node)
            written[found] = node
            return found
        if isinstance(node, Filter) and written:
            predicate = conjunction(as_conjunct(part) for part in conjuncts(node.predicate))
            assert predicate is not None
            return Filter(node.input, predicate)
        return node

    found: Relation = transform(relation, change)
    return found


def _as_exists(node: InSubquery) -> Case:
    item, value = ColumnRef(node.relation.columns[0]), node.argument
    nulls = Call("or", tuple(Call("is_null", (side,), BOOL) for side in (item, value)), BOOL)
    equal = Call("eq", (value, item), BOOL)
    branches = (
        (Exists(Filter(node.relation, equal)), Literal(True, BOOL)),
        (Exists(Filter(node.relation, nulls)), Literal(None, BOOL)),
    )
    return Case(branches, Literal(False, BOOL), BOOL)

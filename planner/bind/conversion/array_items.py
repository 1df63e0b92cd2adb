"""Elements of arrays, whatever the number of dimensions."""

from __future__ import annotations

from catalog.values.types import array
from planner.algebra.nodes import Call, Literal, Scalar


def is_shaped(scalar: Scalar) -> bool:
    """Whether an expression's value says its dimensions."""
    return scalar.type.name == "shaped"


def items_of(scalar: Scalar) -> Scalar:
    """The elements of an array of any dimensions as a list; any other expression is what it is."""
    if not is_shaped(scalar):
        return scalar
    assert scalar.type.element is not None
    kind = array(scalar.type.element)
    if isinstance(scalar, Literal):
        return Literal(scalar.value[0] if isinstance(scalar.value, tuple) else None, kind)
    return Call("shaped_items", (scalar,), kind)

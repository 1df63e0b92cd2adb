"""Values that are an error where a condition does not hold: calls of ``require``, which engines evaluate."""

from __future__ import annotations

from catalog.values.types import BOOL, TEXT, SqlType
from planner.algebra.nodes import Call, Literal, Scalar


def wrong_for(value: Scalar, kind: SqlType, sqlstate: str, message: str) -> Call:
    """NULL for NULL; any other value is an error."""
    return required(Call("is_null", (value,), BOOL), Literal(None, kind), sqlstate, message)


def required(condition: Scalar, value: Scalar, sqlstate: str, message: str) -> Call:
    """A value; an error where a condition is false."""
    return Call("require", (condition, value, Literal(f"!{sqlstate}!{message}", TEXT)), value.type)

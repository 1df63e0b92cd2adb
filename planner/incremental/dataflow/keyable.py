"""Which columns rows can be found by: those whose equal values have equal representations.

A document's spaces and an interval's months may differ between values that SQL calls equal. Rows are not found by
those.
"""

from __future__ import annotations

from typing import Final

from catalog.values.types import LARGE_QUOTIENT, QUOTIENT, SPREAD, SqlType
from planner.algebra.nodes import Cast, Scalar

_INTEGERS: Final = frozenset(("int2", "int4", "int8"))
_TEXTS: Final = frozenset(("text", "varchar", "bpchar"))  # a char is kept without the blanks at its end
_OTHERS: Final = frozenset(
    ("bool", "date", "timestamp", "timestamptz", "time", "uuid", "oid", "float4", "float8", "bytea")
)


def is_keyable(kind: SqlType) -> bool:
    """Whether rows are found by values of a type."""
    if kind.element is not None or kind.row is not None:
        return False
    if kind.name == "numeric":
        return kind.modifiers not in (QUOTIENT, LARGE_QUOTIENT, SPREAD)
    return kind.name in _INTEGERS | _TEXTS | _OTHERS


def are_comparable(left: SqlType, right: SqlType) -> bool:
    """Whether equal values of two types have equal representations."""
    if not (is_keyable(left) and is_keyable(right)):
        return False
    names = {left.name, right.name}
    return names <= _INTEGERS or names <= _TEXTS or left == right


def same_value(scalar: Scalar) -> Scalar:
    """An expression without the casts around it that change no value's representation: to a wider integer, and of a
    varchar to text."""
    while isinstance(scalar, Cast) and _is_kept(scalar.argument.type, scalar.type):
        scalar = scalar.argument
    return scalar


def _is_kept(source: SqlType, target: SqlType) -> bool:
    if source.name in _INTEGERS and target.name in _INTEGERS:
        return int(source.name[-1]) <= int(target.name[-1])
    return source.name in ("varchar", "text") and target.name == "text" and not target.modifiers

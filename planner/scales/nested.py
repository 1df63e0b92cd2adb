"""Types of values with scales (``catalog.values.scales``), also in arrays and rows, and of values as they show."""

from __future__ import annotations

from collections.abc import Callable

from catalog.values.scales import has_unconstrained, is_padded, scale_kind
from catalog.values.types import TEXT, SqlType, array, row, shaped
from planner.algebra.nodes import Literal, Scalar

#: Integers show no decimals.
INTEGERS = frozenset(("int2", "int4", "int8"))


def in_place(scale: Scalar, kind: SqlType) -> Scalar:
    """A scale beside others of a type's values: a NULL of their type for an array or a row that has none itself."""
    wanted = scale_kind(kind)
    return Literal(None, wanted) if isinstance(scale, Literal) and scale.type != wanted else scale


def shown_kind(kind: SqlType, text: SqlType = TEXT) -> SqlType:
    """The type of values as they show: ``text`` in the place of numerics, and TEXT in that of texts with blanks."""
    return _over(kind, lambda leaf: TEXT if is_padded(leaf) else text if leaf.name == "numeric" else leaf)


def given_kind(kind: SqlType) -> SqlType:
    """The type of values that come with their blanks."""
    return _over(kind, lambda leaf: TEXT if is_padded(leaf) else leaf)


def _over(kind: SqlType, change: Callable[[SqlType], SqlType]) -> SqlType:
    """A type with others in the place of those that it is made of."""
    if kind.name == "array" and kind.element is not None:
        return array(_over(kind.element, change))
    if kind.name == "shaped" and kind.element is not None:
        return shaped(_over(kind.element, change))
    if kind.row is not None:
        return row(kind.row.over(lambda each: _over(each, change)))
    return change(kind)


def written_kind(kind: SqlType) -> SqlType:
    """The type of a parameter whose values keep the decimals and blanks that they are written with."""
    return shown_kind(kind) if has_unconstrained(kind) else kind


def has_scales(kind: SqlType) -> bool:
    """Whether a type's values are numerics or texts with blanks of their own, or have some in them."""
    if kind.name in ("array", "shaped") and kind.element is not None:
        return has_scales(kind.element)
    if kind.row is not None:
        return any(has_scales(each) for _, each in kind.row.fields)
    return kind.name == "numeric" or is_padded(kind)

"""Scales of arrays and rows (``catalog.scales``) in expressions, and the types of values as they show."""

from __future__ import annotations

from catalog.scales import has_unconstrained, scale_kind
from catalog.types import TEXT, SqlType, array, row, shaped
from planner.expression import Literal, Scalar

#: Integers show no decimals.
INTEGERS = frozenset(("int2", "int4", "int8"))


def in_place(scale: Scalar, kind: SqlType) -> Scalar:
    """A scale beside others of a type's values: a NULL of their type for an array or a row that has none itself."""
    wanted = scale_kind(kind)
    return Literal(None, wanted) if isinstance(scale, Literal) and scale.type != wanted else scale


def shown_kind(kind: SqlType, text: SqlType = TEXT) -> SqlType:
    """The type of values as they show: ``text`` in the place of numerics."""
    if kind.name == "array" and kind.element is not None:
        return array(shown_kind(kind.element, text))
    if kind.name == "shaped" and kind.element is not None:
        return shaped(shown_kind(kind.element, text))
    if kind.row is not None:
        return row(kind.row.over(lambda each: shown_kind(each, text)))
    return text if kind.name == "numeric" else kind


def written_kind(kind: SqlType) -> SqlType:
    """The type of a parameter whose numerics keep the decimals that they are written with."""
    return shown_kind(kind) if has_unconstrained(kind) else kind


def has_scales(kind: SqlType) -> bool:
    """Whether a type's values are numerics, or have some in them."""
    if kind.name in ("array", "shaped") and kind.element is not None:
        return has_scales(kind.element)
    if kind.row is not None:
        return any(has_scales(each) for _, each in kind.row.fields)
    return kind.name == "numeric"

"""Scales of arrays and rows: of an array an array of those of its elements, of a row a row of those of its fields.

Owns: the types of such scales and of values as they show. Arrays are those of one dimension. A NULL in a scale's place
says that nobody knows, for all that would be below it, too.
"""

from __future__ import annotations

from catalog.types import INT4, TEXT, SqlType, array, record, row
from planner.expression import Literal, Scalar

#: Integers show no decimals.
INTEGERS = frozenset(("int2", "int4", "int8"))


def scale_kind(kind: SqlType) -> SqlType:
    """The type of the scales of a type's values."""
    if kind.name == "array" and kind.element is not None:
        return array(scale_kind(kind.element))
    if kind.row is not None:
        return record(*((name, scale_kind(each)) for name, each in kind.row.fields))
    return INT4


def in_place(scale: Scalar, kind: SqlType) -> Scalar:
    """A scale beside others of a type's values: a NULL of their type for an array or a row that has none itself."""
    wanted = scale_kind(kind)
    return Literal(None, wanted) if isinstance(scale, Literal) and wanted != INT4 else scale


def shown_kind(kind: SqlType, text: SqlType = TEXT) -> SqlType:
    """The type of values as they show: ``text`` in the place of numerics."""
    if kind.name == "array" and kind.element is not None:
        return array(shown_kind(kind.element, text))
    if kind.row is not None:
        return row(kind.row.over(lambda each: shown_kind(each, text)))
    return text if kind.name == "numeric" else kind


def has_scales(kind: SqlType) -> bool:
    """Whether a type's values are numerics, or have some in them."""
    if kind.name == "array" and kind.element is not None:
        return has_scales(kind.element)
    if kind.row is not None:
        return any(has_scales(each) for _, each in kind.row.fields)
    return kind.name == "numeric"

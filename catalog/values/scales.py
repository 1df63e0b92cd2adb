"""Which types' values have decimals or blanks of their own, and in what form their numbers stand beside them.

PostgreSQL's numeric without digits shows as many decimals as it was written with, and its bpchar without a length the
blanks at its end, though neither counts when values are compared. What is kept is the value without them; its scale is
how many decimals it shows, or characters with its blanks. A column of such values, or of arrays and rows that have some
in them, has a column of scales: an int4 beside a numeric or a bpchar, an array of them beside an array, a row of them
beside a row. A NULL in a scale's place means an unknown scale, also for everything nested below it.
"""

from __future__ import annotations

from catalog.values.nested_types import holds
from catalog.values.types import INT4, UNCONSTRAINED, SqlType, array, record, shaped


def scale_name(name: str) -> str:
    """What the column is called that stores how the values of another one show."""
    return f"__scale_{name}"


def scale_kind(kind: SqlType) -> SqlType:
    """The type of the scales of a type's values."""
    if kind.name == "array" and kind.element is not None:
        return array(scale_kind(kind.element))
    if kind.name == "shaped" and kind.element is not None:
        return shaped(scale_kind(kind.element))
    if kind.row is not None:
        return record(*((name, scale_kind(each)) for name, each in kind.row.fields))
    return INT4


def is_padded(kind: SqlType) -> bool:
    """Whether a type is bpchar without a length, so that each value has blanks of its own."""
    return kind.name == "bpchar" and not kind.modifiers


def is_unconstrained(kind: SqlType) -> bool:
    """Whether a type is that or numeric without digits, so that each value has decimals of its own."""
    return is_padded(kind) or (kind.name == "numeric" and kind.modifiers == UNCONSTRAINED)


def has_unconstrained(kind: SqlType) -> bool:
    """Whether that is true of a type or of what is in it."""
    return holds(kind, is_unconstrained)

"""Display scales: types whose values have their own number of decimals or trailing blanks, and the columns that hold
these numbers.

PostgreSQL's numeric of undeclared precision shows as many decimals as it was written with, and its bpchar of undeclared
length the blanks at its end, although neither counts in comparisons. Millstream stores the value without them; its
scale is the number of shown decimals, or of characters including blanks. A column of such values, or of arrays and rows
that contain some, has a column of scales: an int4 for a numeric or a bpchar, an array of them for an array, a row of
them for a row. NULL in place of a scale means an unknown scale, also for everything nested below it.
"""

from __future__ import annotations

from catalog.values.nested_types import holds
from catalog.values.types import INT4, UNCONSTRAINED, SqlType, array, record, shaped


def scale_name(name: str) -> str:
    """The name of the column that stores the display scales of another column."""
    return f"__scale_{name}"


def scale_kind(kind: SqlType) -> SqlType:
    """The type of the display scales of a type's values."""
    if kind.name == "array" and kind.element is not None:
        return array(scale_kind(kind.element))
    if kind.name == "shaped" and kind.element is not None:
        return shaped(scale_kind(kind.element))
    if kind.row is not None:
        return record(*((name, scale_kind(each)) for name, each in kind.row.fields))
    return INT4


def is_padded(kind: SqlType) -> bool:
    """Whether a type is bpchar without a length, whose values have their own trailing blanks."""
    return kind.name == "bpchar" and not kind.modifiers


def is_unconstrained(kind: SqlType) -> bool:
    """Whether a type is numeric without precision, or bpchar without a length, so that each value has its own scale."""
    return is_padded(kind) or (kind.name == "numeric" and kind.modifiers == UNCONSTRAINED)


def has_unconstrained(kind: SqlType) -> bool:
    """Whether ``is_unconstrained`` is true of a type or of a type within it."""
    return holds(kind, is_unconstrained)

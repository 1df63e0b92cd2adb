"""Scales as expressions: those that constants and types tell, and what is made of several.

A scale is an int4 expression over the same row as its value; a literal where it is one for all rows, and ``UNKNOWN``
where nothing tells it. What names a value again has none for what is volatile or has a subquery.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final, TypeGuard

from catalog.values.scales import scale_kind
from catalog.values.types import BOOL, INT4, SqlType
from planner.algebra.construction import has_subquery, volatility
from planner.algebra.nodes import Call, Case, Literal, Scalar
from planner.scales.nested import INTEGERS, has_scales, in_place

#: Nothing tells how many decimals a value shows.
UNKNOWN: Final = Literal(None, INT4)

#: Gives an operand its scale.
ScaleOf = Callable[[Scalar], Scalar]
Rule = Callable[[Call, ScaleOf], Scalar]


def is_number(kind: SqlType) -> bool:
    """Whether values of a type are numerics or become some without a loss."""
    return kind.name == "numeric" or kind.name in INTEGERS


def says_scale(kind: SqlType) -> bool:
    """Whether a type is of those whose values' scales others may come of: also character(n), which all have one."""
    return is_number(kind) or kind.name == "bpchar" or has_scales(kind)


def differs(scale: Scalar) -> bool:
    """Whether a scale is more than one number for all rows."""
    return not isinstance(scale, Literal) or isinstance(scale.value, tuple)


def constant(scale: int) -> Literal:
    """One scale for all rows."""
    return Literal(scale, INT4)


def of_type(kind: SqlType) -> Literal:
    """What a type alone tells."""
    if kind.name == "numeric":
        return UNKNOWN if kind.is_loose else constant(kind.scale)
    if kind.name == "bpchar" and kind.modifiers:
        return constant(kind.modifiers[0])
    return constant(0) if kind.name in INTEGERS else UNKNOWN


def of_literal(literal: Literal) -> Literal:
    """As many decimals as a number is written with."""
    exponent = literal.value.as_tuple().exponent if isinstance(literal.value, Decimal) else 0
    return constant(max(-exponent, 0) if isinstance(exponent, int) else 0)


def repeated(scale: Scalar, *again: Scalar) -> Scalar:
    """A scale that names values again, where that may be."""
    return UNKNOWN if any(volatility(item) == "volatile" or has_subquery(item) for item in again) else scale


def largest(*scales: Scalar) -> Scalar:
    """The largest of several scales."""
    items: dict[Scalar, None] = {}
    least = 0
    for scale in scales:
        parts = scale.arguments if isinstance(scale, Call) and scale.function == "greatest" else (scale,)
        for part in parts:
            if not isinstance(part, Literal):
                items[part] = None
            elif not isinstance(part.value, int):
                return UNKNOWN
            else:
                least = max(least, part.value)
    if not items:
        return constant(least)
    found = (*items, *([constant(least)] if least else []))
    return found[0] if len(found) == 1 else Call("greatest", found, INT4)


def chosen(kind: SqlType, conditions: Sequence[Scalar], scales: Sequence[Scalar]) -> Scalar:
    """The scale beside the first condition that holds, or the last one."""
    if all(scale == scales[0] for scale in scales):
        return scales[0]
    found = [in_place(scale, kind) for scale in scales]
    return repeated(Case(tuple(zip(conditions, found[:-1], strict=True)), found[-1], scale_kind(kind)), *conditions)


# -- rules for values of all types -----------------------------------------------------------------------------------


def first(call: Call, scales: ScaleOf) -> Scalar:
    """That of the first argument."""
    return scales(call.arguments[0])


def required(call: Call, scales: ScaleOf) -> Scalar:
    """That of the value beside a condition."""
    return scales(call.arguments[1])


def is_array_of_query(scalar: Scalar) -> TypeGuard[Call]:
    """Whether an expression is ARRAY(subquery), which is empty where that has no row."""
    return (
        isinstance(scalar, Call) and scalar.function == "coalesce" and scalar.arguments[1] == Literal((), scalar.type)
    )


def coalesced(call: Call, scales: ScaleOf) -> Scalar:
    """That of the first argument which is not NULL."""
    *some, _ = call.arguments
    if is_array_of_query(call):
        return scales(some[0])
    present = [Call("is_not_null", (item,), BOOL) for item in some]
    return chosen(call.type, present, [scales(item) for item in call.arguments])

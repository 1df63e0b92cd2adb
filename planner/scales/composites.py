"""Scales of constants, and of arrays and rows by the operands' of what makes them, changes them or takes them apart.

Owns: ``of_constant``, also for plain numbers, and ``RULES``, one for each operator or function of arrays and rows. The
scales of an array are an array, those of a row a row; NULL in their place is an unknown scale of all that is in the
value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from catalog.values.scales import is_padded, scale_kind
from catalog.values.types import BOOL, INT4, SqlType, array, record
from planner.algebra.nodes import Call, Case, Cast, Literal, Scalar
from planner.scales.nested import has_scales, in_place
from planner.scales.terms import (
    UNKNOWN,
    Rule,
    ScaleOf,
    coalesced,
    constant,
    differs,
    first,
    of_literal,
    of_type,
    repeated,
    required,
)

ARRAYS: Final = ("array", "shaped")


def of_constant(literal: Literal) -> Scalar:
    """A constant's scale as it is written, and in an array or a row those of each."""
    match literal.value:
        case None | Decimal():
            return of_literal(literal)
        case str() as text if is_padded(literal.type) and text.endswith(" "):
            return constant(len(text))
        case tuple() if has_scales(literal.type):
            return _of_nested_literal(literal)
        case _:
            return of_type(literal.type)


def _of_nested_literal(literal: Literal) -> Scalar:
    kind, values = literal.type, literal.value
    assert isinstance(values, tuple)
    if kind.row is not None:
        pairs = zip(values, kind.row.fields, strict=True)
        return _row([(Literal(item, each), of_constant(Literal(item, each))) for item, (_, each) in pairs])
    assert kind.element is not None
    items, shape = values if kind.name == "shaped" else (values, None)
    found = [of_constant(Literal(item, kind.element)) for item in items]
    if kind.name == "array":
        return _array(kind.element, found)
    scales = tuple(scale.value for scale in found if isinstance(scale, Literal))
    return Literal((scales, shape), scale_kind(kind)) if len(scales) == len(found) else UNKNOWN


def _array(kind: SqlType, scales: Sequence[Scalar]) -> Scalar:
    """An array's scales by those of its elements, which are of a type."""
    if all(scale == of_type(kind) for scale in scales):
        return UNKNOWN
    items = tuple(in_place(scale, kind) for scale in scales)
    if all(isinstance(item, Literal) and not isinstance(item.value, tuple) for item in items):
        return Literal(tuple(item.value for item in items if isinstance(item, Literal)), array(scale_kind(kind)))
    return Call("array", items, array(scale_kind(kind)))


def _of_array(call: Call, scales: ScaleOf) -> Scalar:
    assert call.type.element is not None
    return _array(call.type.element, list(map(scales, call.arguments)))


def _of_row(call: Call, scales: ScaleOf) -> Scalar:
    return _row([(item, scales(item) if has_scales(item.type) else UNKNOWN) for item in call.arguments])


def _row(fields_of: Sequence[tuple[Scalar, Scalar]]) -> Scalar:
    """A row's scales by its fields and theirs."""
    kinds, found = [item.type for item, _ in fields_of], [scale for _, scale in fields_of]
    if all(scale in (UNKNOWN, of_type(kind)) for scale, kind in zip(found, kinds, strict=True)):
        return UNKNOWN
    fields = tuple(in_place(scale, kind) for scale, kind in zip(found, kinds, strict=True))
    return Call("row", fields, record(*((f"f{place}", item.type) for place, item in enumerate(fields, 1))))


def taken(call: Call, scales: ScaleOf) -> Scalar:
    """An element, a part or a field: the same of the scales."""
    whole, *places = call.arguments
    scale = scales(whole)
    if scale == UNKNOWN:
        return of_type(call.type)
    return repeated(Call(call.function, (scale, *places), scale_kind(call.type)), *places)


def _joined(call: Call, scales: ScaleOf) -> Scalar:
    """Arrays and elements behind one another: all have scales, or none is known."""
    found = [
        Literal(None, scale_kind(item.type)) if item == Literal(None, item.type) else _told(item, scales)
        for item in call.arguments
    ]
    kinds = [item.type.element or item.type for item in call.arguments]
    if all(_says(kind, scale) for kind, scale in zip(kinds, found, strict=True)):
        return UNKNOWN
    return _unless_unknown(call, list(zip(call.arguments, found, strict=True)))


def _put(call: Call, scales: ScaleOf) -> Scalar:
    """An array with other elements: the same of the scales."""
    whole, given, *places = call.arguments
    found = [(item, in_place(_told(item, scales), item.type)) for item in (whole, given)]
    if all(isinstance(scale, Literal) for _, scale in found) and found[0][1] == UNKNOWN:
        return UNKNOWN
    return repeated(_unless_unknown(call, found, places), *places)


def _removed(call: Call, scales: ScaleOf) -> Scalar:
    """The scales at the places of what is left."""
    items, value = call.arguments
    scale = scales(items)
    if not differs(scale):
        return UNKNOWN
    return repeated(Call("scales_without", (scale, items, value), scale_kind(call.type)), items, value)


def _replaced(call: Call, scales: ScaleOf) -> Scalar:
    """The scales, except at the places of replaced elements."""
    items, old, new = call.arguments
    scale, given = _told(items, scales), _told(new, scales)
    if (
        not differs(scale)
        or given == UNKNOWN
        or (_says(items.type.element or items.type, scale) and _says(new.type, given))
    ):
        return UNKNOWN
    return repeated(Call("scales_with", (scale, items, old, given), scale_kind(call.type)), items, old)


def _unless_unknown(call: Call, parts: Sequence[tuple[Scalar, Scalar]], places: Sequence[Scalar] = ()) -> Scalar:
    """The function over the scales; NULL if the scales of a non-empty array are unknown."""
    if any(scale == UNKNOWN for _, scale in parts):
        return UNKNOWN
    whole = [(item, scale) for item, scale in parts if item.type.name in ARRAYS and not _is_made(scale)]
    lost = [
        Call("and", (Call("is_not_null", (item,), BOOL), Call("is_null", (scale,), BOOL)), BOOL)
        for item, scale in whole
    ]
    kind = scale_kind(call.type)
    found = Call(call.function, (*(scale for _, scale in parts), *places), kind)
    unless = Case(tuple((condition, Literal(None, kind)) for condition in lost), found, kind) if lost else found
    return repeated(unless, *(item for item, _ in whole))


def _is_made(scale: Scalar) -> bool:
    """Whether scales are there for certain."""
    while isinstance(scale, Cast):
        scale = scale.argument
    return scale.function == "array" if isinstance(scale, Call) else isinstance(scale, Literal) and differs(scale)


def _told(scalar: Scalar, scales: ScaleOf) -> Scalar:
    """An operand's scales, also where its type says them all."""
    scale = scales(scalar)
    while isinstance(scalar, Cast) and not scalar.explicit:
        scalar = scalar.argument
    match scalar:
        case Call(function="array", arguments=items) if scale == UNKNOWN:
            return Call("array", tuple(map(scales, items)), scale_kind(scalar.type))
        case Literal(value=tuple() as values) if scale == UNKNOWN:
            return Literal(tuple(of_literal(Literal(item, INT4)).value for item in values), scale_kind(scalar.type))
        case _:
            return scale


def _says(kind: SqlType, scale: Scalar) -> bool:
    """Whether a type of elements says a scale, or those in an array."""
    match scale:
        case Call(function="array", arguments=told):
            return all(item == of_type(kind) for item in told)
        case Literal(value=tuple() as values):
            return all(value == of_type(kind).value for value in values)
        case _:
            return scale == of_type(kind)


#: Functions and operators of arrays and rows; those that take one apart may give a numeric.
RULES: Final[Mapping[str, Rule]] = {
    "array": _of_array,
    "row": _of_row,
    **dict.fromkeys(("subscript", "slice", "trim_array", "field"), taken),
    **dict.fromkeys(("shaped_at", "shaped_slice", "shaped_items", "stacked", "gathered"), taken),
    **dict.fromkeys(("array_append", "array_prepend", "array_cat", "shaped_cat"), _joined),
    "array_remove": _removed,
    "array_replace": _replaced,
    "shaped_put": _put,
    "coalesce": coalesced,
    "nullif": first,
    "require": required,
}

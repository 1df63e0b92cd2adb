"""The decimals that an expression shows, by the display scales of its operands (numeric.c); a bpchar's characters.

Owns: ``scale_of``, one rule for each operator or function. A scale is an int4 expression over the same row; a literal
where it is one for all rows, and ``UNKNOWN`` where no rule tells it. A rule that names an operand's value again has
none for what is volatile or has a subquery.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final, TypeGuard

from catalog.values.scales import has_unconstrained, is_padded, scale_kind
from catalog.values.types import BOOL, INT4, TEXT, SqlType, array, record
from planner.algebra.construction import has_subquery, volatility
from planner.algebra.nodes import Call, Case, Cast, Literal, Parameter, Scalar
from planner.scales.nested import INTEGERS, has_scales, in_place, shown_kind

#: No rule tells how many decimals a value shows.
UNKNOWN: Final = Literal(None, INT4)
TEXTS: Final = frozenset(("text", "varchar", "bpchar", "name", "unknown"))
#: Functions of numerics whose decimals only their result tells.
TRANSCENDENTAL: Final = frozenset(("exp", "ln", "log", "power", "sqrt"))
_ARRAYS: Final = ("array", "shaped")

#: The scales of expressions that were seen before.
Scales = Callable[[Scalar], Scalar]
Rule = Callable[[Call, Scales], Scalar]


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


def scale_of(scalar: Scalar, scales: Scales) -> Scalar:
    """The decimals that an expression shows; ``scales`` knows its operands'."""
    match scalar:
        case Literal(value=None | Decimal()):
            return of_literal(scalar)
        case Parameter() if has_unconstrained(scalar.type):
            return Call("written_scale", (scalar,), scale_kind(scalar.type))
        case Literal(value=str() as text) if is_padded(scalar.type) and text.endswith(" "):
            return constant(len(text))
        case Literal(value=tuple()) if has_scales(scalar.type):
            return _of_nested_literal(scalar)
        case Cast():
            return _of_cast(scalar, scales)
        case Case():
            results = [scales(result) for _, result in scalar.branches]
            conditions = [condition for condition, _ in scalar.branches]
            return _chosen(scalar.type, conditions, [*results, scales(scalar.otherwise)])
        case Call() if scalar.type.name in ("numeric", "bpchar"):
            rule = _RULES.get(scalar.function)
            return of_type(scalar.type) if rule is None else rule(scalar, scales)
        case Call() if has_scales(scalar.type):
            rule = _OF_NESTED.get(scalar.function)
            return UNKNOWN if rule is None else rule(scalar, scales)
        case _:
            return of_type(scalar.type)


def of_literal(literal: Literal) -> Literal:
    """As many decimals as a number is written with."""
    exponent = literal.value.as_tuple().exponent if isinstance(literal.value, Decimal) else 0
    return constant(max(-exponent, 0) if isinstance(exponent, int) else 0)


def _of_cast(cast: Cast, scales: Scales) -> Scalar:
    """An implicit cast brings values together, and leaves each its decimals."""
    source, target = cast.argument.type, cast.type
    if is_shown(cast):
        kept = Call("written_scale", (cast.argument, Literal(None, target)), scale_kind(target))
        return _repeated(kept, cast.argument)
    if source.name in _ARRAYS and target.name in _ARRAYS:
        if (told := _declared(cast)) is not None:
            return told
        found = scales(cast.argument) if is_kept(source, target, cast.explicit) else UNKNOWN
        return found if source.name == target.name or found == UNKNOWN else Cast(found, scale_kind(target))
    if is_padded(target):
        return _of_padded(cast, scales)
    if target.name == "numeric" and is_number(source) and (target.is_loose or not cast.explicit):
        return scales(cast.argument)
    if target.name == "numeric" and source.name in TEXTS and not cast.explicit:  # a result that was shown before
        return _repeated(_shown(cast.argument), cast.argument)
    if target.name == "numeric" and target.is_loose and source.name in TEXTS:
        return _repeated(Call("written_scale", (cast.argument,), INT4), cast.argument)
    return of_type(target)


def is_shown(cast: Cast) -> bool:
    """Whether an array or a row was shown before: a result of a query that goes on elsewhere."""
    source, target = cast.argument.type, cast.type
    is_nested = source.name in _ARRAYS or source.row is not None
    return is_nested and not cast.explicit and source != target and source == shown_kind(target)


def _declared(cast: Cast) -> Scalar | None:
    """The scales of an array whose own type says them all and whose new one does not; None for every other."""
    element = cast.argument.type.element
    if element is None or not loses_digits(cast):
        return None
    return _repeated(
        Call("scales_alike", (cast.argument, constant(element.scale)), scale_kind(cast.type)), cast.argument
    )


def loses_digits(cast: Cast) -> bool:
    """Whether the elements' type of an array says how many decimals they show, and the new one does not."""
    element, wanted = cast.argument.type.element, cast.type.element
    if element is None or wanted is None or isinstance(cast.argument, Literal | Call):  # which tell more than types do
        return False
    return wanted.name == "numeric" and wanted.is_loose and not element.is_loose and element.name == "numeric"


def _of_padded(cast: Cast, scales: Scales) -> Scalar:
    """The characters of a text that becomes a bpchar; what is no text has no blanks at its end."""
    if cast.argument.type.name == "bpchar":
        return scales(cast.argument)
    if cast.argument.type.name not in TEXTS:
        return UNKNOWN
    if isinstance(cast.argument, Literal):
        return UNKNOWN if cast.argument.value is None else constant(len(str(cast.argument.value)))
    return _repeated(Call("char_length", (cast.argument,), INT4), cast.argument)


def _shown(text: Scalar) -> Scalar:
    """The decimals in a text that shows them all."""
    point = Call("position", (text, Literal(".", TEXT)), INT4)
    after = Call("sub", (Call("char_length", (text,), INT4), point), INT4)
    return Case(((Call("gt", (point, constant(0)), BOOL), after),), constant(0), INT4)


def _repeated(scale: Scalar, *again: Scalar) -> Scalar:
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


def _largest(call: Call, scales: Scales) -> Scalar:
    return largest(*map(scales, call.arguments))


def _first(call: Call, scales: Scales) -> Scalar:
    return scales(call.arguments[0])


def _of_result(call: Call, scales: Scales) -> Scalar:
    return constant(call.type.scale)


def _none(call: Call, scales: Scales) -> Scalar:
    return constant(0)


def _sum(call: Call, scales: Scales) -> Scalar:
    """A product's, as far as its type has decimals."""
    left, right = map(scales, call.arguments)
    match left, right:
        case Literal(value=int() as a), Literal(value=int() as b):
            return constant(min(a + b, call.type.scale))
        case (Literal(value=None), _) | (_, Literal(value=None)):
            return UNKNOWN
        case _:
            return Call("least", (Call("add", (left, right), INT4), constant(call.type.scale)), INT4)


def _quotient(call: Call, scales: Scales) -> Scalar:
    """select_div_scale: by both values and the larger scale; as many decimals as a quotient keeps."""
    left, right = call.arguments[:2]
    return quotient_scale(left, right, largest(scales(left), scales(right)))


def quotient_scale(left: Scalar, right: Scalar, least: Scalar) -> Scalar:
    """The scale of left / right, whose own scales are at most ``least``."""
    if least == UNKNOWN:
        return UNKNOWN
    return _repeated(Call("quotient_scale", (left, right, least), INT4), left, right)


def _transcendental(call: Call, scales: Scales) -> Scalar:
    """By the result's digits, of which there are 16 at least."""
    return _repeated(Call("transcendental_scale", call.arguments, INT4), *call.arguments)


def _trimmed(call: Call, scales: Scales) -> Scalar:
    return _repeated(Call("min_scale", call.arguments, INT4), *call.arguments)


def is_array_of_query(scalar: Scalar) -> TypeGuard[Call]:
    """Whether an expression is ARRAY(subquery), which is empty where that has no row."""
    return (
        isinstance(scalar, Call) and scalar.function == "coalesce" and scalar.arguments[1] == Literal((), scalar.type)
    )


def _coalesced(call: Call, scales: Scales) -> Scalar:
    *some, _ = call.arguments
    if is_array_of_query(call):
        return scales(some[0])
    present = [Call("is_not_null", (item,), BOOL) for item in some]
    return _chosen(call.type, present, [scales(item) for item in call.arguments])


def _extreme(call: Call, scales: Scales) -> Scalar:
    """Of the first argument that is the result."""
    *some, _ = call.arguments
    chosen = [Call("eq", (item, call), BOOL) for item in some]
    return _chosen(call.type, chosen, [scales(item) for item in call.arguments])


def _chosen(kind: SqlType, conditions: Sequence[Scalar], scales: Sequence[Scalar]) -> Scalar:
    """The scale beside the first condition that holds, or the last one."""
    if all(scale == scales[0] for scale in scales):
        return scales[0]
    found = [in_place(scale, kind) for scale in scales]
    chosen = Case(tuple(zip(conditions, found[:-1], strict=True)), found[-1], scale_kind(kind))
    return _repeated(chosen, *conditions)


def _required(call: Call, scales: Scales) -> Scalar:
    return scales(call.arguments[1])


def is_kept(source: SqlType, target: SqlType, explicit: bool) -> bool:
    """Whether a cast between arrays leaves their numerics the decimals that they have."""
    if source.element is None or target.element is None:
        return False
    if source.element == target.element:
        return True
    if source.element.name in _ARRAYS and target.element.name in _ARRAYS:
        return is_kept(source.element, target.element, explicit)
    return source.element.name == target.element.name == "numeric" and (target.element.is_loose or not explicit)


def _of_nested_literal(literal: Literal) -> Scalar:
    """Constants of an array or a row, each as it is written."""
    kind, values = literal.type, literal.value
    assert isinstance(values, tuple)
    if kind.row is not None:
        pairs = zip(values, kind.row.fields, strict=True)
        return _row([(Literal(item, each), scale_of(Literal(item, each), of_constant)) for item, (_, each) in pairs])
    assert kind.element is not None
    items, shape = values if kind.name == "shaped" else (values, None)
    found = [scale_of(Literal(item, kind.element), of_constant) for item in items]
    if kind.name == "array":
        return _array(kind.element, found)
    scales = tuple(scale.value for scale in found if isinstance(scale, Literal))
    return Literal((scales, shape), scale_kind(kind)) if len(scales) == len(found) else UNKNOWN


def of_constant(scalar: Scalar) -> Scalar:
    """What a constant's own scales are."""
    return scale_of(scalar, of_constant)


def _array(kind: SqlType, scales: Sequence[Scalar]) -> Scalar:
    """An array's scales by those of its elements, which are of a type."""
    if all(scale == of_type(kind) for scale in scales):
        return UNKNOWN
    items = tuple(in_place(scale, kind) for scale in scales)
    if all(isinstance(item, Literal) and not isinstance(item.value, tuple) for item in items):
        return Literal(tuple(item.value for item in items if isinstance(item, Literal)), array(scale_kind(kind)))
    return Call("array", items, array(scale_kind(kind)))


def _of_array(call: Call, scales: Scales) -> Scalar:
    assert call.type.element is not None
    return _array(call.type.element, list(map(scales, call.arguments)))


def _of_row(call: Call, scales: Scales) -> Scalar:
    return _row([(item, scales(item) if has_scales(item.type) else UNKNOWN) for item in call.arguments])


def _row(fields_of: Sequence[tuple[Scalar, Scalar]]) -> Scalar:
    """A row's scales by its fields and theirs."""
    kinds, found = [item.type for item, _ in fields_of], [scale for _, scale in fields_of]
    if all(scale in (UNKNOWN, of_type(kind)) for scale, kind in zip(found, kinds, strict=True)):
        return UNKNOWN
    fields = tuple(in_place(scale, kind) for scale, kind in zip(found, kinds, strict=True))
    return Call("row", fields, record(*((f"f{place}", item.type) for place, item in enumerate(fields, 1))))


def _taken(call: Call, scales: Scales) -> Scalar:
    """An element, a part or a field: the same of the scales."""
    whole, *places = call.arguments
    scale = scales(whole)
    if scale == UNKNOWN:
        return of_type(call.type)
    return _repeated(Call(call.function, (scale, *places), scale_kind(call.type)), *places)


def _joined(call: Call, scales: Scales) -> Scalar:
    """Arrays and elements behind one another: all have scales, or none is known."""
    found = [
        Literal(None, scale_kind(item.type)) if item == Literal(None, item.type) else _told(item, scales)
        for item in call.arguments
    ]
    kinds = [item.type.element or item.type for item in call.arguments]
    if all(_says(kind, scale) for kind, scale in zip(kinds, found, strict=True)):
        return UNKNOWN
    return _unless_unknown(call, list(zip(call.arguments, found, strict=True)))


def _put(call: Call, scales: Scales) -> Scalar:
    """An array with other elements: the same of the scales."""
    whole, given, *places = call.arguments
    found = [(item, in_place(_told(item, scales), item.type)) for item in (whole, given)]
    if all(isinstance(scale, Literal) for _, scale in found) and found[0][1] == UNKNOWN:
        return UNKNOWN
    return _repeated(_unless_unknown(call, found, places), *places)


def _removed(call: Call, scales: Scales) -> Scalar:
    """The scales at the places of what is left."""
    items, value = call.arguments
    scale = scales(items)
    if not differs(scale):
        return UNKNOWN
    return _repeated(Call("scales_without", (scale, items, value), scale_kind(call.type)), items, value)


def _replaced(call: Call, scales: Scales) -> Scalar:
    """The scales, except at the places of replaced elements."""
    items, old, new = call.arguments
    scale, given = _told(items, scales), _told(new, scales)
    if (
        not differs(scale)
        or given == UNKNOWN
        or (_says(items.type.element or items.type, scale) and _says(new.type, given))
    ):
        return UNKNOWN
    return _repeated(Call("scales_with", (scale, items, old, given), scale_kind(call.type)), items, old)


def _unless_unknown(call: Call, parts: Sequence[tuple[Scalar, Scalar]], places: Sequence[Scalar] = ()) -> Scalar:
    """The function over the scales; NULL if the scales of a non-empty array are unknown."""
    if any(scale == UNKNOWN for _, scale in parts):
        return UNKNOWN
    whole = [(item, scale) for item, scale in parts if item.type.name in _ARRAYS and not _is_made(scale)]
    lost = [
        Call("and", (Call("is_not_null", (item,), BOOL), Call("is_null", (scale,), BOOL)), BOOL)
        for item, scale in whole
    ]
    kind = scale_kind(call.type)
    found = Call(call.function, (*(scale for _, scale in parts), *places), kind)
    unless = Case(tuple((condition, Literal(None, kind)) for condition in lost), found, kind) if lost else found
    return _repeated(unless, *(item for item, _ in whole))


def _is_made(scale: Scalar) -> bool:
    """Whether scales are there for certain."""
    while isinstance(scale, Cast):
        scale = scale.argument
    return scale.function == "array" if isinstance(scale, Call) else isinstance(scale, Literal) and differs(scale)


def _told(scalar: Scalar, scales: Scales) -> Scalar:
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
_OF_NESTED: Final[Mapping[str, Rule]] = {
    "array": _of_array,
    "row": _of_row,
    **dict.fromkeys(("subscript", "slice", "trim_array", "field"), _taken),
    **dict.fromkeys(("shaped_at", "shaped_slice", "shaped_items", "stacked", "gathered"), _taken),
    **dict.fromkeys(("array_append", "array_prepend", "array_cat", "shaped_cat"), _joined),
    "array_remove": _removed,
    "array_replace": _replaced,
    "shaped_put": _put,
    "coalesce": _coalesced,
    "nullif": _first,
    "require": _required,
}
#: Functions and operators by canonical name.
_RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(("add", "sub", "mod", "gcd", "lcm"), _largest),
    "mul": _sum,
    **dict.fromkeys(("div", "div_scaled"), _quotient),
    **dict.fromkeys(("neg", "abs", "nullif"), _first),
    **dict.fromkeys(("round", "trunc"), _of_result),
    **dict.fromkeys(("ceil", "floor", "sign", "factorial", "whole_quotient"), _none),
    "trim_scale": _trimmed,
    "transcendental": _transcendental,
    "coalesce": _coalesced,
    **dict.fromkeys(("greatest", "least"), _extreme),
    "require": _required,
    **dict.fromkeys(("subscript", "field", "shaped_at", "percentile_disc_at"), _taken),
}

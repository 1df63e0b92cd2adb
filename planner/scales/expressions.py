"""The decimals that an expression shows, by the display scales of its operands (numeric.c); a bpchar's characters.

Owns: ``scale_of``, and one rule for each operator or function of numbers (arrays and rows: ``composites``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from catalog.values.scales import has_unconstrained, is_padded, scale_kind
from catalog.values.types import BOOL, INT4, TEXT, SqlType
from planner.algebra.nodes import Call, Case, Cast, Literal, Parameter, Scalar
from planner.scales import composites
from planner.scales.nested import has_scales, shown_kind
from planner.scales.terms import (
    UNKNOWN,
    Rule,
    ScaleOf,
    chosen,
    coalesced,
    constant,
    first,
    is_number,
    largest,
    of_type,
    repeated,
    required,
)

TEXTS: Final = frozenset(("text", "varchar", "bpchar", "name", "unknown"))
#: Functions of numerics whose decimals only their result tells.
TRANSCENDENTAL: Final = frozenset(("exp", "ln", "log", "power", "sqrt"))


def scale_of(scalar: Scalar, scales: ScaleOf) -> Scalar:
    """The decimals that an expression shows; ``scales`` knows its operands'."""
    match scalar:
        case Literal():
            return composites.of_constant(scalar)
        case Parameter() if has_unconstrained(scalar.type):
            return Call("written_scale", (scalar,), scale_kind(scalar.type))
        case Cast():
            return _of_cast(scalar, scales)
        case Case():
            results = [scales(result) for _, result in scalar.branches]
            conditions = [condition for condition, _ in scalar.branches]
            return chosen(scalar.type, conditions, [*results, scales(scalar.otherwise)])
        case Call() if scalar.type.name in ("numeric", "bpchar"):
            rule = _RULES.get(scalar.function)
            return of_type(scalar.type) if rule is None else rule(scalar, scales)
        case Call() if has_scales(scalar.type):
            rule = composites.RULES.get(scalar.function)
            return UNKNOWN if rule is None else rule(scalar, scales)
        case _:
            return of_type(scalar.type)


def _of_cast(cast: Cast, scales: ScaleOf) -> Scalar:
    """An implicit cast brings values together, and leaves each its decimals."""
    source, target = cast.argument.type, cast.type
    if _is_shown(cast):
        kept = Call("written_scale", (cast.argument, Literal(None, target)), scale_kind(target))
        return repeated(kept, cast.argument)
    if source.name in composites.ARRAYS and target.name in composites.ARRAYS:
        if (told := _declared(cast)) is not None:
            return told
        found = scales(cast.argument) if _is_kept(source, target, cast.explicit) else UNKNOWN
        return found if source.name == target.name or found == UNKNOWN else Cast(found, scale_kind(target))
    if is_padded(target):
        return _of_padded(cast, scales)
    if target.name == "numeric" and is_number(source) and (target.is_loose or not cast.explicit):
        return scales(cast.argument)
    if target.name == "numeric" and source.name in TEXTS and not cast.explicit:  # a result that was shown before
        return repeated(_shown(cast.argument), cast.argument)
    if target.name == "numeric" and target.is_loose and source.name in TEXTS:
        return repeated(Call("written_scale", (cast.argument,), INT4), cast.argument)
    return of_type(target)


def _is_shown(cast: Cast) -> bool:
    """Whether an array or a row was shown before: a result of a query that goes on elsewhere."""
    source, target = cast.argument.type, cast.type
    is_nested = source.name in composites.ARRAYS or source.row is not None
    return is_nested and not cast.explicit and source != target and source == shown_kind(target)


def _declared(cast: Cast) -> Scalar | None:
    """The scales of an array whose own type says them all and whose new one does not; None for every other."""
    element = cast.argument.type.element
    if element is None or not loses_digits(cast):
        return None
    return repeated(
        Call("scales_alike", (cast.argument, constant(element.scale)), scale_kind(cast.type)), cast.argument
    )


def _is_kept(source: SqlType, target: SqlType, explicit: bool) -> bool:
    """Whether a cast between arrays leaves their numerics the decimals that they have."""
    if source.element is None or target.element is None:
        return False
    if source.element == target.element:
        return True
    if source.element.name in composites.ARRAYS and target.element.name in composites.ARRAYS:
        return _is_kept(source.element, target.element, explicit)
    return source.element.name == target.element.name == "numeric" and (target.element.is_loose or not explicit)


def loses_digits(cast: Cast) -> bool:
    """Whether the elements' type of an array says how many decimals they show, and the new one does not."""
    element, wanted = cast.argument.type.element, cast.type.element
    if element is None or wanted is None or isinstance(cast.argument, Literal | Call):  # which tell more than types do
        return False
    return wanted.name == "numeric" and wanted.is_loose and not element.is_loose and element.name == "numeric"


def _of_padded(cast: Cast, scales: ScaleOf) -> Scalar:
    """The characters of a text that becomes a bpchar; what is no text has no blanks at its end."""
    if cast.argument.type.name == "bpchar":
        return scales(cast.argument)
    if cast.argument.type.name not in TEXTS:
        return UNKNOWN
    if isinstance(cast.argument, Literal):
        return UNKNOWN if cast.argument.value is None else constant(len(str(cast.argument.value)))
    return repeated(Call("char_length", (cast.argument,), INT4), cast.argument)


def _shown(text: Scalar) -> Scalar:
    """The decimals in a text that shows them all."""
    point = Call("position", (text, Literal(".", TEXT)), INT4)
    after = Call("sub", (Call("char_length", (text,), INT4), point), INT4)
    return Case(((Call("gt", (point, constant(0)), BOOL), after),), constant(0), INT4)


def _largest(call: Call, scales: ScaleOf) -> Scalar:
    return largest(*map(scales, call.arguments))


def _of_result(call: Call, scales: ScaleOf) -> Scalar:
    return constant(call.type.scale)


def _none(call: Call, scales: ScaleOf) -> Scalar:
    return constant(0)


def _sum(call: Call, scales: ScaleOf) -> Scalar:
    """A product's, as far as its type has decimals."""
    left, right = map(scales, call.arguments)
    match left, right:
        case Literal(value=int() as a), Literal(value=int() as b):
            return constant(min(a + b, call.type.scale))
        case (Literal(value=None), _) | (_, Literal(value=None)):
            return UNKNOWN
        case _:
            return Call("least", (Call("add", (left, right), INT4), constant(call.type.scale)), INT4)


def _quotient(call: Call, scales: ScaleOf) -> Scalar:
    """select_div_scale: by both values and the larger scale; as many decimals as a quotient keeps."""
    left, right = call.arguments[:2]
    return quotient_scale(left, right, largest(scales(left), scales(right)))


def quotient_scale(left: Scalar, right: Scalar, least: Scalar) -> Scalar:
    """The scale of left / right, whose own scales are at most ``least``."""
    if least == UNKNOWN:
        return UNKNOWN
    return repeated(Call("quotient_scale", (left, right, least), INT4), left, right)


def _transcendental(call: Call, scales: ScaleOf) -> Scalar:
    """By the result's digits, of which there are 16 at least."""
    return repeated(Call("transcendental_scale", call.arguments, INT4), *call.arguments)


def _trimmed(call: Call, scales: ScaleOf) -> Scalar:
    return repeated(Call("min_scale", call.arguments, INT4), *call.arguments)


def _extreme(call: Call, scales: ScaleOf) -> Scalar:
    """Of the first argument that is the result."""
    *some, _ = call.arguments
    equal = [Call("eq", (item, call), BOOL) for item in some]
    return chosen(call.type, equal, [scales(item) for item in call.arguments])


#: Functions and operators by canonical name.
_RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(("add", "sub", "mod", "gcd", "lcm"), _largest),
    "mul": _sum,
    **dict.fromkeys(("div", "div_scaled"), _quotient),
    **dict.fromkeys(("neg", "abs", "nullif"), first),
    **dict.fromkeys(("round", "trunc"), _of_result),
    **dict.fromkeys(("ceil", "floor", "sign", "factorial", "whole_quotient"), _none),
    "trim_scale": _trimmed,
    "transcendental": _transcendental,
    "coalesce": coalesced,
    **dict.fromkeys(("greatest", "least"), _extreme),
    "require": required,
    **dict.fromkeys(("subscript", "field", "shaped_at", "percentile_disc_at"), composites.taken),
}

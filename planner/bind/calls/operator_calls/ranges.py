"""Ranges and multiranges in expressions: constructors and functions.

Owns: the scalars that these become. ``operator_signatures`` lists the operators; ``planner.bind.conversion.literals``
reads text. Engines compare two ranges or two multiranges; an operator over one of each becomes one of these::

    range << multirange    range << span(multirange)            lower(multirange)    lower(span(multirange))
    range && multirange    multirange(range) && multirange      value <@ multirange  multirange @> value

https://www.postgresql.org/docs/15/functions-range.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from catalog.values.errors import SqlError
from catalog.values.multiranges import multirange_of
from catalog.values.multiranges import range_of as single_of
from catalog.values.ranges import made, read_flags, subtype_of
from catalog.values.types import MULTIRANGES, RANGES, TEXT, SqlType, array, by_name
from planner.algebra.nodes import Call, Literal, Scalar
from planner.bind.calls.overloading.call_forms import called
from planner.bind.calls.overloading.choice import choose, no_function
from planner.bind.calls.overloading.overloads import Overload, table
from planner.bind.calls.overloading.polymorphic import coerced, result
from planner.bind.conversion.coercion import array_of, coerce, coerced_implicitly
from planner.bind.conversion.resolution import TypeCall
from planner.bind.lookup.dotted_names import names_of
from planner.bind.state.environment import Environment

#: What only looks at where ranges begin and end, so that of a multirange's the first and the last count.
_OF_ENDS: Final = frozenset(
    (
        *(f"range_{name}" for name in ("before", "after", "overleft", "overright", "adjacent", "is_empty")),
        *(f"range_{name}" for name in ("lower", "upper", "lower_inc", "upper_inc", "lower_inf", "upper_inf")),
    )
)


def of_ranges(env: Environment, chosen: Overload, arguments: Sequence[Scalar], node: Any) -> Scalar:
    """A function of ranges or multiranges."""
    found = coerced(env, chosen, arguments, node.args)
    return of_spans(chosen.name, found, result(chosen, found))


def of_spans(function: str, arguments: Sequence[Scalar], kind: SqlType) -> Call:
    """A function over arguments of which some may be multiranges."""
    if not function.startswith("range_") or not any(item.type.name in MULTIRANGES for item in arguments):
        return Call(function, tuple(arguments), kind)
    if function in _OF_ENDS:
        return Call(function, tuple(map(_span, arguments)), kind)
    if "contained" in function:
        function, arguments = function.replace("contained", "contains"), arguments[::-1]
    return Call(f"multi{function}", tuple(map(_multirange, arguments)), kind)


def _span(scalar: Scalar) -> Scalar:
    """The range from a multirange's first bound to its last."""
    kind = scalar.type
    return Call("multirange_span", (scalar,), single_of(kind)) if kind.name in MULTIRANGES else scalar


def _multirange(scalar: Scalar) -> Scalar:
    kind = scalar.type
    return Call("multirange_of", (scalar,), multirange_of(kind)) if kind.name in RANGES else scalar


def multirange_make(env: Environment, arguments: list[Scalar], node: Any) -> Scalar:
    """A multirange's constructor: any number of ranges."""
    name = names_of(node.funcname)[-1]
    kind = by_name(name)
    known = table([Overload("multirange_make", (MULTIRANGES[name],) * len(arguments), name)])
    if isinstance(choose(env, name, arguments, node, known), TypeCall):
        return coerced_implicitly(env.binding, arguments[0], kind, node.args[0])
    single = single_of(kind)
    items = [
        coerced_implicitly(env.binding, item, single, place)
        for item, place in zip(arguments, node.args or (), strict=True)
    ]
    if len(items) == 1:
        return Call("multirange_of", (items[0],), kind)
    return Call("multirange_make", (array_of(items, single),), kind)


def multirange_of_array(env: Environment, name: str, items: Scalar, node: Any) -> Scalar:
    """The multirange of an array of ranges (``VARIADIC array``)."""
    kind = by_name(name)
    found = coerce(env.binding, items, array(single_of(kind)), "implicit", node.args[-1])
    if found is None:
        raise no_function(env, [items], node)
    return Call("multirange_make", (found,), kind)


def range_of(env: Environment, name: str, chosen: Overload, arguments: Sequence[Scalar], node: Any) -> Scalar:
    """A constructor: bounds, and which of them belong to the range, "[)" where it does not say."""
    kind = by_name(chosen.result)
    bound = subtype_of(kind)
    given = []
    for scalar, target, place in zip(arguments, (bound, bound, TEXT), node.args, strict=False):
        found = coerce(env.binding, scalar, target, "implicit", place)
        assert found is not None, "the constructor was chosen so that its arguments coerce"
        given.append(found)
    lower, upper, flags = (*given, Literal("[)", TEXT))[:3]
    if isinstance(lower, Literal) and isinstance(upper, Literal) and isinstance(flags, Literal):
        try:
            inclusive = read_flags(None if flags.value is None else str(flags.value))
            return Literal(made(kind, lower.value, upper.value, inclusive), kind)
        except SqlError:
            pass  # raised when a row is met
    return called(env, "range_make", [lower, upper, flags], kind, name, node)

"""Ranges in expressions: their constructors, and the functions that take them.

Owns: what these calls become. Operators are in ``operators``; text is read by ``planner.bind.literals``.
https://www.postgresql.org/docs/15/functions-range.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catalog.errors import SqlError
from catalog.ranges import made, read_flags, subtype_of
from catalog.types import TEXT, by_name
from planner.bind.calls.calling import called
from planner.bind.calls.overloads import Overload
from planner.bind.calls.polymorphic import coerced, result
from planner.bind.environment import Environment
from planner.bind.types import coerce
from planner.expression import Literal, Scalar


def of_ranges(env: Environment, name: str, chosen: Overload, arguments: Sequence[Scalar], node: Any) -> Scalar:
    """A function of ranges."""
    found = coerced(env, chosen, arguments, node.args)
    return called(env, chosen.name, found, result(chosen, found), name, node)


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

"""Functions of any number of arguments: each given, or all in one array (``VARIADIC array``).

Owns: ``num_nulls`` and ``num_nonnulls``, and what the functions of texts mean over an array.
https://www.postgresql.org/docs/15/functions-comparison.html#FUNCTIONS-COMPARISON-FUNC-TABLE
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, Final

from catalog.values.errors import unsupported
from catalog.values.types import BOOL, INT4, MULTIRANGES, TEXT
from planner.algebra.nodes import Call, Case, Literal, Scalar
from planner.bind.calls.families.text_functions import OF_TEXTS, most_asked
from planner.bind.calls.operator_calls.ranges import multirange_make, multirange_of_array
from planner.bind.calls.overloading.choice import no_function
from planner.bind.conversion.array_items import items_of
from planner.bind.conversion.coercion import coerce
from planner.bind.conversion.requirements import required
from planner.bind.state.environment import Environment

Bind = Callable[[Environment, list[Scalar], Any], Scalar]
#: Those that take an array, too.
OF_ARRAYS: Final = frozenset(("concat", "concat_ws", "format", "num_nulls", "num_nonnulls", *MULTIRANGES))


def _counting(test: str) -> Bind:
    """How many of the arguments pass a test."""

    def bind(env: Environment, arguments: list[Scalar], node: Any) -> Scalar:
        if not arguments:
            raise no_function(env, arguments, node)
        one, zero = Literal(1, INT4), Literal(0, INT4)
        counted: list[Scalar] = [Case(((Call(test, (item,), BOOL), one),), zero, INT4) for item in arguments]
        return reduce(lambda left, right: Call("add", (left, right), INT4), counted)

    return bind


VARIADIC: Final[dict[str, Bind]] = {
    **OF_TEXTS,
    "num_nulls": _counting("is_null"),
    "num_nonnulls": _counting("is_not_null"),
    **dict.fromkeys(MULTIRANGES, multirange_make),
}


def of_array(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    """``name(..., VARIADIC array)``; NULL for no array. Raises 42804 and 42883."""
    *before, given = arguments
    if len(before) != (name in ("concat_ws", "format")):
        raise no_function(env, arguments, node)
    items = items_of(given)
    if name in MULTIRANGES:
        return multirange_of_array(env, name, items, node)
    if items.type.element is None:
        raise env.error("42804", "VARIADIC argument must be an array", node.args[-1])
    if name == "format":
        return VARIADIC[name](env, [*before, *_elements(env, before[0], items, node)], node)
    if name.startswith("num_"):
        present = Call("array_remove", (items, Literal(None, items.type.element)), items.type)
        all_of, kept = (Call("cardinality", (value,), INT4) for value in (items, present))
        return kept if name == "num_nonnulls" else Call("sub", (all_of, kept), INT4)
    separator = coerce(env.binding, before[0], TEXT, "implicit", node.args[0]) if before else Literal("", TEXT)
    if separator is None:
        raise no_function(env, arguments, node)
    return Call("array_to_string", (items, separator), TEXT)


def _elements(env: Environment, pattern: Scalar, items: Scalar, node: Any) -> tuple[Scalar, ...]:
    """The elements that a pattern may ask for: those that the statement itself has, else each by its place."""
    element = items.type.element
    assert element is not None
    if isinstance(items, Call) and items.function == "array":
        return items.arguments
    if isinstance(items, Literal):
        values = items.value if isinstance(items.value, tuple) else ()
        return tuple(Literal(value, element) for value in values)
    if not isinstance(pattern, Literal):
        instead = "Write the pattern as a constant, or the array as ARRAY[...]."
        raise unsupported("format() with a computed pattern and VARIADIC array", instead, env.binding.position(node))
    count = Call("coalesce", (Call("cardinality", (items,), INT4), Literal(0, INT4)), INT4)
    return tuple(
        required(
            Call("ge", (count, Literal(place, INT4)), BOOL),
            Call("subscript", (items, Literal(place, INT4)), element),
            "22023",
            "too few arguments for format()",
        )
        for place in range(1, most_asked(str(pattern.value)) + 1)
    )

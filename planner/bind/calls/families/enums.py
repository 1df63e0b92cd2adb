"""enum_first, enum_last and enum_range: the labels of an enum as it is declared when the statement is bound.

Owns: their calls, which become constants under ``declared``. A continuous view may not contain one, since labels can be
added to the enum.

https://www.postgresql.org/docs/15/functions-enum.html
"""

from __future__ import annotations

from typing import Any, Final

from catalog.values.errors import unsupported
from catalog.values.types import array
from planner.algebra.nodes import Call, Literal, Scalar
from planner.bind.calls.overloading.choice import choose_overload
from planner.bind.calls.overloading.overloads import Table, signatures
from planner.bind.calls.overloading.polymorphic import coerced
from planner.bind.lookup.dotted_names import names_of
from planner.bind.state.environment import Environment

_SIGNATURES: Final = {
    "enum_first": "=: anyenum > anyenum",
    "enum_last": "=: anyenum > anyenum",
    "enum_range": "=: anyenum > anyarray; anyenum anyenum > anyarray",
}
FUNCTIONS: Final[dict[str, Table]] = {name: signatures(name, text) for name, text in _SIGNATURES.items()}


def bind_enum_function(env: Environment, node: Any) -> Scalar:
    """A call of one of ``FUNCTIONS``. Raises 55000 for an enum without labels."""
    name = names_of(node.funcname)[-1]
    arguments = [env.bind(item) for item in node.args or ()]
    chosen = choose_overload(env, name, arguments, node, FUNCTIONS[name])
    found = coerced(env, chosen, arguments, node.args or ())
    kind, places = found[0].type, found[0].type.enum.places if found[0].type.enum is not None else ()
    if name == "enum_range":
        return _declared(Literal(_within(env, places, found, node), array(kind)))
    if not places:
        raise env.error("55000", f"enum {kind} contains no values", None)
    return _declared(Literal(places[0 if name == "enum_first" else -1], kind))


def _declared(literal: Literal) -> Call:
    return Call("declared", (literal,), literal.type)


def _within(env: Environment, places: tuple[int, ...], bounds: list[Scalar], node: Any) -> tuple[int, ...]:
    """The places between two constants; NULL is no bound."""
    if len(bounds) < 2:
        return places
    values = []
    for bound in bounds:
        if not isinstance(bound, Literal):
            raise unsupported("enum_range() of computed bounds", "Give constants.", env.binding.position(node))
        values.append(bound.value)
    low, high = values
    return tuple(
        place
        for place in places
        if (not isinstance(low, int) or low <= place) and (not isinstance(high, int) or place <= high)
    )

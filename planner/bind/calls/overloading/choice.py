"""Which of Millstream's functions a call by name means, or PostgreSQL's error for it.

Owns: the messages of 42883 and 42725, and of 0A000 for functions that only PostgreSQL has. ``overloads`` makes the
choice.
"""

from __future__ import annotations

from typing import Any, Final

from catalog.values.errors import SqlError, unsupported
from catalog.values.types import is_known
from planner.algebra.nodes import Scalar
from planner.bind.calls.overloading.overloads import Beyond, Overload, Table, find_function
from planner.bind.conversion.resolution import Ambiguous, TypeCall
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.type_names import display
from planner.bind.state.environment import Environment

NO_MATCH: Final = "No function matches the given name and argument types. You might need to add explicit type casts."
_AMBIGUOUS: Final = "Could not choose a best candidate function. You might need to add explicit type casts."


def choose(env: Environment, name: str, arguments: list[Scalar], node: Any, known: Table) -> Overload | TypeCall:
    """The function, aggregate or window function of a call. Raises 42883, 42725 and 0A000."""
    try:
        found = find_function(name, tuple(item.type.oid for item in arguments), known)
    except Ambiguous:
        raise not_unique(env, arguments, node) from None
    if found is None or (isinstance(found, TypeCall) and not is_known(found.target)):
        raise no_function(env, arguments, node)
    if isinstance(found, Beyond):
        raise unsupported(found.words, position=env.binding.position(node))
    return found


def choose_overload(env: Environment, name: str, arguments: list[Scalar], node: Any, known: Table) -> Overload:
    """The overload of ``table`` that a call means, for a name that is not a type's."""
    found = choose(env, name, arguments, node, known)
    assert isinstance(found, Overload), name
    return found


def not_unique(env: Environment, arguments: list[Scalar], node: Any) -> SqlError:
    """42725 for a call."""
    return env.error("42725", f"function {_signature(arguments, node)} is not unique", node, hint=_AMBIGUOUS)


def no_function(env: Environment, arguments: list[Scalar], node: Any) -> SqlError:
    """42883 for a call."""
    return env.error("42883", f"function {_signature(arguments, node)} does not exist", node, hint=NO_MATCH)


def _signature(arguments: list[Scalar], node: Any) -> str:
    return f"{'.'.join(names_of(node.funcname))}({', '.join(display(item.type) for item in arguments)})"

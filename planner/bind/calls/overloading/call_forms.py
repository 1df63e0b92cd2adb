"""How a call of a canonical function is made.

Owns: ``Special``, the form of functions that need more than a signature, and ``called``, which notes calls that are not
immutable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pglast import ast

from catalog.values.types import SqlType
from planner.algebra.functions import FUNCTIONS
from planner.algebra.nodes import Call, Cast, Literal, Parameter, Scalar
from planner.algebra.walk import walk
from planner.bind.state.environment import Environment

#: (environment, PostgreSQL's name, arguments coerced as declared, parse node) -> the call's meaning.
Special = Callable[[Environment, str, list[Scalar], Any], Scalar]


def without_voids(node: Any, arguments: list[Scalar]) -> tuple[Any, list[Scalar]]:
    """A call without the parameters of type void, by which drivers mean a result: they are no arguments."""
    places = [place for place, item in enumerate(arguments) if not _is_void(item)]
    if len(places) == len(arguments):
        return node, arguments
    kept = tuple(node.args[place] for place in places)
    call = ast.FuncCall(funcname=node.funcname, args=kept, location=node.location)
    return call, [arguments[place] for place in places]


def bare_call(node: Any) -> Any:
    """A call without what belongs to aggregates and windows."""
    return ast.FuncCall(funcname=node.funcname, args=node.args, location=node.location)


def _is_void(scalar: Scalar) -> bool:
    return isinstance(scalar, Parameter) and scalar.type.name == "void"


def called(env: Environment, function: str, arguments: list[Scalar], kind: SqlType, name: str, node: Any) -> Call:
    """The call, of which the binding remembers if its value can differ between calls."""
    call = Call(function, tuple(arguments), kind)
    if FUNCTIONS[function].volatility != "immutable":
        env.binding.remember(call, node, name)
        env.binding.volatile |= FUNCTIONS[function].volatility == "volatile"
    return call


def is_fixed(scalar: Scalar) -> bool:
    """Whether an expression is the same for all rows: made of constants and parameters by immutable functions."""
    return all(
        FUNCTIONS[item.function].volatility == "immutable"
        if isinstance(item, Call)
        else isinstance(item, Literal | Parameter | Cast)
        for item in walk(scalar)
    )

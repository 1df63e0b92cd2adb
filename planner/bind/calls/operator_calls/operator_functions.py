"""Functions behind PostgreSQL's operators and casts, called by name: booleq(a, b), int4pl(a, b), float8(a).

Owns: the operator or cast that such a call means, by the columns of pg_operator and pg_cast that name functions.
PostgreSQL does not document these functions, but statements that other systems generate use them.
"""

from __future__ import annotations

from typing import Any

from catalog.postgres import PgProc, cast_behind, operator_behind
from catalog.values.types import by_oid, is_known
from planner.algebra.nodes import Scalar
from planner.bind.calls.operator_calls.operation import operate, prefix
from planner.bind.calls.overloading.overloads import Table, chosen_function
from planner.bind.conversion.coercion import coerce
from planner.bind.conversion.resolution import OF_RANGES, UNKNOWN, Ambiguous, polymorphic_types
from planner.bind.state.environment import Environment


def bind_behind(env: Environment, name: str, arguments: list[Scalar], node: Any, known: Table) -> Scalar | None:
    """The operator or cast that a call means; None where it is none, or among the functions that are ``known``.

    Raises 0A000 where Millstream has no such operator.
    """
    try:
        chosen = chosen_function(name, tuple(item.type.oid for item in arguments))
    except Ambiguous:
        return None
    if not isinstance(chosen, tuple) or chosen[1] in known or not 0 < len(arguments) <= 2:
        return None
    function, _ = chosen
    operands = _operands(env, function, arguments, node)
    if operands is None:
        return None
    operator = operator_behind(function.oid)
    if operator is not None and len(operands) == 2:
        return operate(env, operator.name, operands[0], operands[1], node, tuple(node.args))
    if operator is not None:
        return prefix(env, operator.name, operands[0], node, node.args[0])
    target = cast_behind(function)
    if target is None or len(operands) != 1 or not is_known(target):
        return None
    return coerce(env.binding, operands[0], by_oid(target), "explicit", node.args[0])


def _operands(env: Environment, function: PgProc, arguments: list[Scalar], node: Any) -> list[Scalar] | None:
    """The arguments in the types that the function declares, of which Millstream must have all; what is polymorphic is
    the operator's matter, but for literals."""
    if len(function.arguments) != len(arguments):
        return None
    meant = polymorphic_types([item.type.oid for item in arguments], function.arguments) or {}
    if not all(is_known(oid) or (oid in OF_RANGES and is_known(meant[oid])) for oid in function.arguments):
        return None
    found = [
        item
        if oid == item.type.oid or (oid in OF_RANGES and item.type.oid != UNKNOWN)
        else coerce(env.binding, item, by_oid(meant.get(oid, oid)), "implicit", place)
        for item, oid, place in zip(arguments, function.arguments, node.args, strict=True)
    ]
    operands = [item for item in found if item is not None]
    return operands if len(operands) == len(found) else None

"""pg_notify(channel, payload): a call for each row.

``executor.tables.statements.effect_calls`` makes the calls; no engine does.
"""

from __future__ import annotations

from typing import Any

from catalog.values.types import TEXT, SqlType
from planner.algebra.nodes import Call, Scalar
from planner.bind.conversion.coercion import coerce
from planner.bind.state.environment import Environment


def is_notify_call(name: str, count: int) -> bool:
    """Whether a function of this name and number of arguments is it."""
    return name == "pg_notify" and count == 2


def bind_notify_call(env: Environment, node: Any) -> Scalar:
    """A call, which makes its statement volatile."""
    arguments: list[Scalar] = []
    for item in node.args:
        scalar = env.bind(item)
        found = coerce(env.binding, scalar, TEXT, "implicit", item)
        if found is None:
            types = ", ".join(str(env.bind(each).type) for each in node.args)
            raise env.error("42883", f"function pg_notify({types}) does not exist", node)
        arguments.append(found)
    env.binding.volatile = True
    call = Call("pg_notify", tuple(arguments), SqlType("void"))
    env.binding.remember(call, node, "pg_notify")
    return call

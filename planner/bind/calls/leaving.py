"""millstream.suspend(pid), millstream.checkpoint(pid) and millstream.forget(query_id): what the session does itself."""

from __future__ import annotations

from typing import Any, Final

from catalog.system.naming import OWN_SCHEMA
from catalog.types import BOOL, INT4, TEXT, SqlType
from planner.bind.calls.calling import Bind
from planner.bind.environment import Environment
from planner.bind.types import coerce, display
from planner.expression import Call, Scalar

#: Canonical names, the argument's type and the result's.
_CALLS: Final[dict[str, tuple[str, SqlType, SqlType]]] = {
    "suspend": ("suspend_query", INT4, TEXT),
    "checkpoint": ("checkpoint_query", INT4, TEXT),
    "forget": ("forget_query", TEXT, BOOL),
}


def is_leaving_call(names: tuple[str, ...]) -> bool:
    """Whether a function is one of these, which no schema's path leads to."""
    return len(names) == 2 and names[0] == OWN_SCHEMA and names[1] in _CALLS


def bind_leaving_call(env: Environment, name: str, node: Any, bind: Bind) -> Scalar:
    """A call. Raises 42883."""
    canonical, kind, result = _CALLS[name]
    arguments = [bind(env, item) for item in node.args or ()]
    found = coerce(env.binding, arguments[0], kind, "implicit", node.args[0]) if len(arguments) == 1 else None
    if found is None:
        types = ", ".join(display(item.type) for item in arguments)
        raise env.error("42883", f"function {OWN_SCHEMA}.{name}({types}) does not exist", node)
    call = Call(canonical, (found,), result)
    env.binding.remember(call, node, name)
    return call

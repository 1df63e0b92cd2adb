"""millstream.suspend(pid or view), millstream.migrate(pid or view, server) and the like, which the session performs."""

from __future__ import annotations

from typing import Any, Final

from catalog.system.own_objects import OWN_SCHEMA
from catalog.values.types import BOOL, INT4, INT8, TEXT, SqlType
from planner.algebra.nodes import Call, Scalar
from planner.bind.conversion.coercion import coerce
from planner.bind.lookup.type_names import display
from planner.bind.state.environment import Environment

#: Canonical names, the arguments' types and the result's.
_CALLS: Final[dict[str, tuple[str, tuple[SqlType, ...], SqlType]]] = {
    "suspend": ("suspend_query", (INT4,), TEXT),
    "checkpoint": ("checkpoint_query", (INT4,), TEXT),
    "migrate": ("migrate_query", (INT4, TEXT), TEXT),
    "drain": ("drain_server", (TEXT,), INT8),
    "adopt": ("adopt_server", (TEXT,), INT8),
    "forget": ("forget_query", (TEXT,), BOOL),
    "resume": ("resume_view", (TEXT,), TEXT),
    "plan_svg": ("plan_svg", (TEXT,), TEXT),
}
#: The same of a view by its name, which is also what a literal without a type is taken for.
_OF_VIEWS: Final[dict[str, tuple[str, tuple[SqlType, ...], SqlType]]] = {
    "suspend": ("suspend_view", (TEXT,), TEXT),
    "checkpoint": ("checkpoint_view", (TEXT,), TEXT),
    "migrate": ("migrate_view", (TEXT, TEXT), TEXT),
}
_NAMES: Final = ("text", "varchar", "bpchar", "name", "unknown")


def is_leaving_call(names: tuple[str, ...]) -> bool:
    """Whether a function is one of these, which no schema's path leads to."""
    return len(names) == 2 and names[0] == OWN_SCHEMA and names[1] in _CALLS


def bind_leaving_call(env: Environment, name: str, node: Any) -> Scalar:
    """A call. Raises 42883."""
    nodes = node.args or ()
    arguments = [env.bind(item) for item in nodes]
    is_named = name in _OF_VIEWS and arguments and arguments[0].type.name in _NAMES
    canonical, kinds, result = (_OF_VIEWS if is_named else _CALLS)[name]
    found = [
        coerce(env.binding, argument, kind, "implicit", item)
        for argument, kind, item in zip(arguments, kinds, nodes, strict=False)
    ]
    known = tuple(item for item in found if item is not None)
    if not len(known) == len(kinds) == len(arguments):
        types = ", ".join(display(item.type) for item in arguments)
        raise env.error("42883", f"function {OWN_SCHEMA}.{name}({types}) does not exist", node)
    call = Call(canonical, known, result)
    env.binding.remember(call, node, name)
    return call

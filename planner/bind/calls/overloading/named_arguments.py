"""Arguments by name (``f(b => 1)``) become arguments by position.

Owns: the names of a call (42601), and for PostgreSQL's own functions the defaults between given arguments (42883).
``conversion.resolution`` tells which parameters the names mean; functions that read the names themselves are left
alone.

https://www.postgresql.org/docs/15/sql-syntax-calling-funcs.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pglast import ast

from catalog.postgres import functions
from catalog.values.errors import SqlError, unsupported
from planner.bind.calls.overloading.choice import NO_MATCH
from planner.bind.conversion.resolution import places_of
from planner.bind.lookup.dotted_names import names_of
from planner.bind.state.environment import Environment
from planner.parse.parser import parse

#: Functions of Millstream's own rules for names: any order, all may be left out.
_OWN: Final = ("make_interval",)
#: PostgreSQL's own defaults that may lie between given arguments, constants all, by the parameter's name.
_DEFAULTS: Final = {"vars": "'{}'", "create_if_missing": "true"}


def by_position(env: Environment, node: Any) -> Any:
    """A call of one of PostgreSQL's functions without named arguments. Raises 42601, 42883 and 0A000."""
    arguments: Sequence[Any] = node.args or ()
    name = names_of(node.funcname)[-1]
    labels = labels_of(env, node)
    if not labels or name in _OWN:
        return node
    first = len(arguments) - len(labels)
    given = dict(zip(labels, unlabelled(arguments[first:]), strict=True))
    for function in functions(name):
        places = places_of(function, first, labels)
        if places is not None:
            names = function.argument_names[first : max(places) + 1]
            return _called(node, (*arguments[:first], *(_value(env, node, given, item) for item in names)))
    shown = ", ".join(f"{item.name} => ..." if _is_named(item) else "..." for item in arguments)
    raise env.error("42883", f"function {name}({shown}) does not exist", node, hint=NO_MATCH)


def labels_of(env: Environment, node: Any) -> tuple[str, ...]:
    """The names of a call's last arguments, of which all behind the first named one have one. Raises 42601."""
    labels: list[str] = []
    for item in node.args or ():
        if _is_named(item):
            if item.name in labels:
                raise env.error("42601", f'argument name "{item.name}" used more than once', item)
            labels.append(item.name)
        elif labels:
            position = env.binding.start(item)
            raise SqlError("42601", "positional argument cannot follow named argument", position=position)
    return tuple(labels)


def unlabelled(arguments: Sequence[Any]) -> list[Any]:
    """Arguments as written, without their names."""
    return [item.arg if _is_named(item) else item for item in arguments]


def _is_named(item: Any) -> bool:
    return type(item).__name__ == "NamedArgExpr"


def _value(env: Environment, node: Any, given: dict[str, Any], name: str) -> Any:
    if name in given:
        return given[name]
    if name not in _DEFAULTS:
        instead = f'Give "{name}", too.'
        raise unsupported(f'a call that leaves out the argument "{name}"', instead, env.binding.position(node))
    return parse(f"SELECT {_DEFAULTS[name]}")[0].node.targetList[0].val


def _called(node: Any, arguments: Sequence[Any]) -> Any:
    """The same call with other arguments."""
    found = ast.FuncCall(funcname=node.funcname, args=tuple(arguments), location=node.location)
    for part in ("agg_within_group", "agg_star", "agg_distinct", "func_variadic", "agg_order", "agg_filter", "over"):
        setattr(found, part, getattr(node, part))
    return found

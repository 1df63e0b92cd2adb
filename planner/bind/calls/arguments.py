"""Arguments by name (``f(b => 1)``) -> the same call by position.

Owns: PostgreSQL's rule which parameter a name means, the defaults between given arguments, 42601 and 42883. Functions
that look at the names themselves are left alone.

https://www.postgresql.org/docs/15/sql-syntax-calling-funcs.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pglast import ast

from catalog.errors import SqlError, unsupported
from catalog.postgres import functions
from catalog.routines import named
from planner.bind.calls.choice import NO_MATCH
from planner.bind.environment import Environment
from planner.bind.typenames import names_of
from planner.parse import parse

#: Functions of Millstream's own rules for names: any order, all may be left out.
_OWN: Final = ("make_interval",)
#: PostgreSQL's defaults that may lie between given arguments, by the parameter's name.
_DEFAULTS: Final = {"vars": "'{}'", "create_if_missing": "true"}
#: (name, parameters, those that may be left out, their defaults as SQL text).
_Candidate = tuple[tuple[str, ...], int, tuple[str | None, ...]]


def by_position(env: Environment, node: Any) -> Any:
    """A call without named arguments. Raises 42601, 42883 and 0A000."""
    arguments: Sequence[Any] = node.args or ()
    first = next((place for place, item in enumerate(arguments) if _is_named(item)), None)
    name = names_of(node.funcname)[-1]
    if first is None or name in _OWN:
        return node
    given = _by_name(env, arguments[first:])
    for parameters, defaults, texts in _candidates(env, names_of(node.funcname)):
        order = _fit(parameters, len(parameters) - defaults, first, given)
        if order is not None:
            filled = [_value(env, node, given, texts, place, parameters[place]) for place in order]
            return _called(node, (*arguments[:first], *filled))
    shown = ", ".join(f"{item.name} => ..." if _is_named(item) else "..." for item in arguments)
    raise env.error("42883", f"function {name}({shown}) does not exist", node, hint=NO_MATCH)


def _is_named(item: Any) -> bool:
    return type(item).__name__ == "NamedArgExpr"


def _by_name(env: Environment, arguments: Sequence[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in arguments:
        position = env.binding.position(item) if _is_named(item) else env.binding.start(item)
        if not _is_named(item):
            raise SqlError("42601", "positional argument cannot follow named argument", position=position)
        if item.name in found:
            raise SqlError("42601", f'argument name "{item.name}" used more than once', position=position)
        found[item.name] = item.arg
    return found


def _candidates(env: Environment, names: tuple[str, ...]) -> Iterator[_Candidate]:
    """Users' functions, and PostgreSQL's own."""
    context = env.binding.context
    *schema, name = names
    for own in named(context.catalog.functions, name, tuple(schema[-1:]) or context.search_path):
        texts = tuple(item.default for item in own.arguments)
        yield tuple(item.name for item in own.arguments), own.proc.defaults, texts
    for item in functions(name):
        count = len(item.arguments)
        parameters = item.argument_names[:count]
        if len(parameters) == count:
            yield parameters, item.defaults, tuple(map(_DEFAULTS.get, parameters))


def _fit(parameters: Sequence[str], required: int, first: int, given: dict[str, Any]) -> list[int] | None:
    """The places from the first named argument to the last that is given; None where the call does not fit."""
    rest = parameters[first:]
    if not set(given) <= set(rest) or any(name not in given for name in parameters[first:required]):
        return None
    last = max(parameters.index(name, first) for name in given)
    return list(range(first, last + 1))


def _value(
    env: Environment, node: Any, given: dict[str, Any], texts: Sequence[str | None], place: int, name: str
) -> Any:
    if name in given:
        return given[name]
    default = texts[place]
    if default is None:
        instead = f'Give "{name}", too.'
        raise unsupported(f'a call that leaves out the argument "{name}"', instead, env.binding.position(node))
    return parse(f"SELECT {default}")[0].node.targetList[0].val


def _called(node: Any, arguments: Sequence[Any]) -> Any:
    """The same call with other arguments."""
    found = ast.FuncCall(funcname=node.funcname, args=tuple(arguments), location=node.location)
    for part in ("agg_within_group", "agg_star", "agg_distinct", "func_variadic", "agg_order", "agg_filter", "over"):
        setattr(found, part, getattr(node, part))
    return found

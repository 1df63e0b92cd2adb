"""Functions of regular expressions, of constant patterns whose match every engine finds alike.

Owns: their flags, and what each makes of a match. Which patterns those are is ``planner.patterns``.
"""

from __future__ import annotations

from typing import Any, Final

from catalog.errors import unsupported
from catalog.types import BOOL, INT4, TEXT, array
from planner.bind.calls.calling import Special
from planner.bind.environment import Environment
from planner.expression import Call, Literal, Scalar
from planner.patterns import Regex, read, rewrite

_SIMPLER: Final = "Use a constant pattern of characters, classes, quantifiers and groups without alternatives."


def _regex(env: Environment, name: str, pattern: Scalar, flags: str, node: Any) -> Regex:
    found = read(str(pattern.value), "i" in flags) if isinstance(pattern, Literal) else None
    if found is None or found.groups > 9:
        raise unsupported(f"{name}() with this pattern", _SIMPLER, env.binding.position(node))
    return found


def _flags(env: Environment, name: str, scalar: Scalar | None, allowed: str, node: Any) -> str:
    """The flags that a call gives. Raises 22023, and 0A000 for those that change what a pattern means."""
    if scalar is None:
        return ""
    if not isinstance(scalar, Literal):
        raise unsupported(f"{name}() with computed flags", position=env.binding.position(node))
    given = str(scalar.value)
    for letter in given:
        if letter not in "bceimnpqstwxg":
            raise env.error("22023", f'invalid regular expression option: "{letter}"', None)
        if letter == "g" and "g" not in allowed:
            raise env.error("22023", f'{name}() does not support the "global" option', None)
        if letter not in "cistg":
            raise unsupported(f"the regular expression option {letter}", position=env.binding.position(node))
    last = next((letter for letter in reversed(given) if letter in "ci"), "c")
    return "".join(letter for letter in "g" if letter in given) + ("i" if last == "i" else "")


def _options(flags: str) -> Literal:
    """RE2's: s lets a point be a newline, as it always is here."""
    return Literal("s" + flags, TEXT)


def _any_null(*scalars: Scalar) -> bool:
    return any(isinstance(item, Literal) and item.value is None for item in scalars)


def _replace(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    text, pattern, replacement, *rest = arguments
    if _any_null(*arguments):
        return Literal(None, TEXT)
    flags = _flags(env, name, rest[0] if rest else None, "gi", node)
    found = _regex(env, name, pattern, flags, node)
    if not isinstance(replacement, Literal):
        raise unsupported(f"{name}() with a computed replacement", "Give it as a constant.", env.binding.position(node))
    if found.is_empty and "g" in flags:
        raise unsupported(
            f"{name}() of every match of a pattern that matches nothing", position=env.binding.position(node)
        )
    new = Literal(rewrite(str(replacement.value), found.groups), TEXT)
    return Call("regex_replace", (text, Literal(found.text, TEXT), new, _options(flags)), TEXT)


def _like(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    text, pattern, *rest = arguments
    if _any_null(*arguments):
        return Literal(None, BOOL)
    flags = _flags(env, name, rest[0] if rest else None, "i", node)
    return Call("regex_imatch" if "i" in flags else "regex_match", (text, pattern), BOOL)


def _count(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    if _any_null(*arguments):
        return Literal(None, INT4)
    found = _regex(env, name, arguments[1], "", node)
    if found.is_empty:
        raise unsupported(f"{name}() of a pattern that matches nothing", position=env.binding.position(node))
    return Call("regex_count", (arguments[0], Literal(found.text, TEXT), _options("")), INT4)


def _substring(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    """The match; substring() gives the first group of a pattern that has one."""
    if _any_null(*arguments):
        return Literal(None, TEXT)
    found = _regex(env, name, arguments[1], "", node)
    group = Literal(1 if name == "substring" and found.groups else 0, INT4)
    return Call("regex_extract", (arguments[0], Literal(found.text, TEXT), group, _options("")), TEXT)


def _match(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    """The groups of the first match as an array, or the whole match."""
    text, pattern, *rest = arguments
    if _any_null(*arguments):
        return Literal(None, array(TEXT))
    flags = _flags(env, name, rest[0] if rest else None, "i", node)
    found = _regex(env, name, pattern, flags, node)
    groups = Literal(found.groups, INT4)
    return Call("regex_groups", (text, Literal(found.text, TEXT), groups, _options(flags)), array(TEXT))


REGEX_FUNCTIONS: Final[dict[str, Special]] = {
    "regex_replace": _replace,
    "regexp_like": _like,
    "regex_count": _count,
    "regex_extract": _substring,
    "regex_groups": _match,
}

"""Functions of regular expressions.

Owns: their arguments, and which constant patterns the engines' own functions may match, because every engine finds the
same match for them (``catalog.values.regex.backtracking``). All other patterns are matched as PostgreSQL does
(``catalog.values.regex.matching``), by calls with all arguments given: start and N at 1, no flags, the whole match.
"""

from __future__ import annotations

from typing import Any, Final

from catalog.values.regex.backtracking import BY_FLAG, Regex, read, rewrite, similar
from catalog.values.types import BOOL, INT4, TEXT, SqlType, array
from planner.algebra.nodes import Call, Literal, Scalar
from planner.bind.calls.overloading.call_forms import Special
from planner.bind.state.environment import Environment

_TEXTS: Final = array(TEXT)
#: The later arguments of each function: what stands for one that is not given.
_DEFAULTS: Final[dict[str, tuple[object, ...]]] = {
    "regexp_count": (1, ""),
    "regexp_instr": (1, 1, 0, "", 0),
    "regexp_like": ("",),
    "regexp_match": ("",),
    "regexp_substr": (1, 1, "", 0),
    "regexp_split_to_array": ("",),
}
_RESULTS: Final[dict[str, SqlType]] = {
    "regexp_count": INT4,
    "regexp_instr": INT4,
    "regexp_like": BOOL,
    "regexp_match": _TEXTS,
    "regexp_substr": TEXT,
    "regexp_split_to_array": _TEXTS,
}
_GROUPS: Final = 9


def exact(name: str, arguments: list[Scalar]) -> Scalar:
    """A call with all of its arguments."""
    defaults = _DEFAULTS[name]
    missing = defaults[len(arguments) - 2 :]
    rest = [Literal(item, TEXT if isinstance(item, str) else INT4) for item in missing if isinstance(item, str | int)]
    return Call(name, (*arguments, *rest), _RESULTS[name])


def _common(pattern: Scalar, flags: Scalar | None, allowed: str) -> tuple[Regex, str] | None:
    """The expression and flags (among the allowed) that every engine reads alike; None where one is not."""
    given = "" if flags is None else str(flags.value) if isinstance(flags, Literal) else "?"
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str) or set(given) - set(allowed):
        return None
    found = read(pattern.value, "i" in given)
    return None if found is None or found.groups > _GROUPS else (found, given)


def _options(flags: str) -> Literal:
    """RE2's: s lets a point be a newline, as it always is here."""
    return Literal("s" + flags, TEXT)


def _replace(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    text, pattern, replacement, *rest = arguments
    if (len(arguments) == 4 and rest[0].type == INT4) or len(arguments) > 4:
        by_flag = [Literal(BY_FLAG, INT4)] if len(rest) == 1 else []
        return Call("regexp_replace", (*arguments, *by_flag, *([Literal("", TEXT)] if len(rest) < 3 else [])), TEXT)
    flags = rest[0] if rest else None
    found = _common(pattern, flags, "gi")
    if found is not None and isinstance(replacement, Literal) and replacement.value is not None:
        regex, given = found
        if not (regex.is_empty and "g" in given):
            new = Literal(rewrite(str(replacement.value), regex.groups), TEXT)
            return Call("regex_replace", (text, Literal(regex.text, TEXT), new, _options(given)), TEXT)
    places = (Literal(1, INT4), Literal(BY_FLAG, INT4), flags if flags is not None else Literal("", TEXT))
    return Call("regexp_replace", (text, pattern, replacement, *places), TEXT)


def _like(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    flags = arguments[2] if len(arguments) > 2 else None
    if flags is None or (isinstance(flags, Literal) and flags.value in ("", "i")):
        match = "regex_imatch" if flags is not None and flags.value == "i" else "regex_match"
        return Call(match, (arguments[0], arguments[1]), BOOL)
    return exact("regexp_like", arguments)


def _count(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    found = _common(arguments[1], None, "") if len(arguments) == 2 else None
    if found is None or found[0].is_empty:
        return exact("regexp_count", arguments)
    return Call("regex_count", (arguments[0], Literal(found[0].text, TEXT), _options("")), INT4)


def _instr(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    return exact("regexp_instr", arguments)


def _substring(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    """The match; substring() gives the first group of a pattern that has one."""
    if len(arguments) == 3 and name == "substring":
        return Call("regexp_substring", (arguments[0], similar_pattern(arguments[1:])), TEXT)
    found = _common(arguments[1], None, "") if len(arguments) == 2 else None
    if found is None:
        if name == "substring":
            return Call("regexp_substring", (arguments[0], arguments[1]), TEXT)
        return exact("regexp_substr", arguments)
    group = Literal(1 if name == "substring" and found[0].groups else 0, INT4)
    return Call("regex_extract", (arguments[0], Literal(found[0].text, TEXT), group, _options("")), TEXT)


def similar_pattern(arguments: list[Scalar]) -> Scalar:
    """SIMILAR TO's pattern and escape character as a regular expression."""
    values = [item.value for item in arguments if isinstance(item, Literal)]
    if None in values:
        return Literal(None, TEXT)
    if len(values) < len(arguments):
        return Call("similar", (*arguments, *([Literal("\\", TEXT)] if len(arguments) == 1 else [])), TEXT)
    return Literal(similar(*map(str, values)), TEXT)


def _match(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    """The groups of the first match as an array, or the whole match."""
    found = _common(arguments[1], arguments[2] if len(arguments) > 2 else None, "i")
    if found is None:
        return exact("regexp_match", arguments)
    groups = Literal(found[0].groups, INT4)
    return Call("regex_groups", (arguments[0], Literal(found[0].text, TEXT), groups, _options(found[1])), _TEXTS)


REGEX_FUNCTIONS: Final[dict[str, Special]] = {
    "regexp_replace": _replace,
    "regexp_like": _like,
    "regexp_count": _count,
    "regexp_instr": _instr,
    "regexp_substr": _substring,
    "regexp_match": _match,
}

"""Which type becomes which: PostgreSQL's pg_cast for the types that Millstream stores.

Owns: the cast table with its levels, and the choice among overloaded operators and functions (func_select_candidate of
PostgreSQL's parse_func.c; https://www.postgresql.org/docs/15/typeconv-oper.html). Works on type names alone: modifiers
never decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from catalog.types import TYPES

Level = Literal["implicit", "assignment", "explicit"]
STRINGS: Final = frozenset(("text", "varchar", "bpchar", "name"))
NUMBERS: Final = frozenset(("int2", "int4", "int8", "numeric", "float4", "float8"))
#: Pseudo-types that an overload may ask for.
ANY: Final = "any"

_IMPLICIT: Final[dict[str, frozenset[str]]] = {
    "int2": frozenset(("int4", "int8", "numeric", "float4", "float8", "oid")),
    "int4": frozenset(("int8", "numeric", "float4", "float8", "oid")),
    "int8": frozenset(("numeric", "float4", "float8", "oid")),
    "numeric": frozenset(("float4", "float8")),
    "float4": frozenset(("float8",)),
    "date": frozenset(("timestamp", "timestamptz")),
    "timestamp": frozenset(("timestamptz",)),
    "time": frozenset(("interval",)),
    "bpchar": frozenset(("text", "varchar", "name")),
    "varchar": frozenset(("text", "bpchar", "name")),
    "text": frozenset(("varchar", "bpchar", "name")),
    "name": frozenset(("text",)),
}
_ASSIGNMENT: Final[dict[str, frozenset[str]]] = {
    "int4": frozenset(("int2",)),
    "int8": frozenset(("int2", "int4")),
    "numeric": frozenset(("int2", "int4", "int8")),
    "float4": frozenset(("int2", "int4", "int8", "numeric")),
    "float8": frozenset(("int2", "int4", "int8", "numeric", "float4")),
    "oid": frozenset(("int4", "int8")),
    "timestamp": frozenset(("date", "time")),
    "timestamptz": frozenset(("date", "time", "timestamp")),
    "interval": frozenset(("time",)),
    "name": frozenset(("varchar", "bpchar")),
    "json": frozenset(("jsonb",)),
    "jsonb": frozenset(("json",)),
}
_EXPLICIT: Final[dict[str, frozenset[str]]] = {
    "int4": frozenset(("bool",)),
    "bool": frozenset(("int4",)),
}


def can_cast(source: str, target: str, level: Level) -> bool:
    """Whether a value of one type may become another at a level; unknown becomes anything."""
    if source == target or source == "unknown" or target == ANY:
        return True
    if target in _IMPLICIT.get(source, ()):
        return True
    if level == "implicit":
        return False
    if target in _ASSIGNMENT.get(source, ()) or (target in ("text", "varchar", "bpchar") and source != "void"):
        return True
    if level == "assignment":
        return False
    return target in _EXPLICIT.get(source, ()) or source in STRINGS


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function or operator: argument and result types by name; ``name`` is canonical.

    ``result`` of "numeric" says that precision and scale follow from the arguments.
    """

    name: str
    arguments: tuple[str, ...]
    result: str


def _category(name: str) -> str:
    return "A" if name == "array" else TYPES[name].category


def _preferred(name: str) -> bool:
    return name in TYPES and TYPES[name].preferred


def choose(candidates: Sequence[Overload], arguments: Sequence[str]) -> Overload | list[Overload]:
    """The one overload that PostgreSQL would take, or those between which it could not decide (none: no match)."""
    fitting = [item for item in candidates if len(item.arguments) == len(arguments)]
    if exact := _exact(fitting, arguments):
        return exact
    left = [item for item in fitting if all(map(_implicit, arguments, item.arguments))]
    for narrow in (_most_exact, _most_preferred, _by_category, _by_known):
        if len(left) > 1:
            left = narrow(left, arguments)
    return left[0] if len(left) == 1 else left


def _implicit(source: str, target: str) -> bool:
    return can_cast(source, target, "implicit")


def _exact(candidates: Sequence[Overload], arguments: Sequence[str]) -> Overload | None:
    """An exact match; of two arguments, an unknown one is first assumed to be of the other's type."""
    wanted = [_based(name) for name in arguments]
    tries = [tuple(arguments), tuple(wanted)]
    if len(arguments) == 2 and "unknown" in arguments and tuple(arguments) != ("unknown", "unknown"):
        known = next(name for name in wanted if name != "unknown")
        tries = [(known, known)]
    for types in tries:
        for item in candidates:
            if item.arguments == types and "unknown" not in types:
                return item
    return None


def _based(name: str) -> str:
    """varchar has no operators of its own: it is text in another coat (binary-coercible)."""
    return "text" if name == "varchar" else name


def _best(candidates: list[Overload], score: dict[int, int]) -> list[Overload]:
    top = max(score.values())
    return [item for index, item in enumerate(candidates) if score[index] == top]


def _most_exact(candidates: list[Overload], arguments: Sequence[str]) -> list[Overload]:
    known = [(index, _based(name)) for index, name in enumerate(arguments) if name != "unknown"]
    score = {n: sum(item.arguments[index] == name for index, name in known) for n, item in enumerate(candidates)}
    return _best(candidates, score)


def _most_preferred(candidates: list[Overload], arguments: Sequence[str]) -> list[Overload]:
    def points(item: Overload) -> int:
        return sum(
            target == _based(source)
            or (_preferred(target) and source != "unknown" and _category(target) == _category(source))
            for source, target in zip(arguments, item.arguments, strict=True)
            if source != "unknown"
        )

    return _best(candidates, {index: points(item) for index, item in enumerate(candidates)})


def _by_category(candidates: list[Overload], arguments: Sequence[str]) -> list[Overload]:
    """Unknown arguments take the string category where some candidate accepts it, else the one that all agree on."""
    left = candidates
    for index, name in enumerate(arguments):
        if name != "unknown":
            continue
        categories = {_category(item.arguments[index]) for item in candidates if item.arguments[index] != ANY}
        chosen = "S" if "S" in categories else next(iter(categories)) if len(categories) == 1 else None
        if chosen is None:
            return candidates
        left = [item for item in left if item.arguments[index] == ANY or _category(item.arguments[index]) == chosen]
        if any(_preferred(item.arguments[index]) for item in left):
            left = [item for item in left if _preferred(item.arguments[index])]
    return left or candidates


def _by_known(candidates: list[Overload], arguments: Sequence[str]) -> list[Overload]:
    """If all known arguments are of one type, unknown ones are assumed to be of it."""
    known = {_based(name) for name in arguments if name != "unknown"}
    if len(known) != 1 or "unknown" not in arguments:
        return candidates
    (only,) = known
    fitting = [item for item in candidates if all(can_cast(only, target, "implicit") for target in item.arguments)]
    return fitting if len(fitting) == 1 else candidates

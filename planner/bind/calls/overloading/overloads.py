"""From the operator or function that PostgreSQL would choose to the entry of our lists that computes it.

Owns: ``Overload``, the form of the lists of operators, functions and aggregates, and the step from PostgreSQL's choice
(``planner.bind.conversion.resolution``, over oids) to an entry (over names). A choice without an entry is ``Beyond``:
the function exists, so the error is 0A000 and not 42883.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

from catalog.postgres import PgProc, type_row
from catalog.values.types import DISPLAY
from planner.bind.conversion.resolution import TypeCall, function_call, operator

#: Pseudo-types that an overload may ask for.
ANY: Final = "any"
ANY_SPAN: Final = ("anyrange", "anymultirange")
_CACHED: Final = 8192


class Overload(Struct, frozen=True):
    """One signature of a function or operator: argument and result types by pg_type.typname; ``name`` is canonical.

    ``result`` of "numeric" says that precision and scale follow from the arguments.
    """

    name: str
    arguments: tuple[str, ...]
    result: str


#: Overloads by the argument types that PostgreSQL declares.
Table = Mapping[tuple[str, ...], Overload]


class Beyond(Struct, frozen=True):
    """What PostgreSQL has and Millstream has not, in words for the error."""

    words: str


def table(overloads: Iterable[Overload]) -> Table:
    """Overloads by their arguments."""
    return {item.arguments: item for item in overloads}


def signatures(name: str, text: str) -> Table:
    """A table written as "canonical: arguments > result; ... | canonical: ..." with "=" for the name itself."""
    found = []
    for part in text.split("|"):
        canonical, _, rest = part.strip().partition(":")
        for signature in rest.split(";"):
            arguments, result = signature.split(">")
            found.append(Overload(name if canonical == "=" else canonical, tuple(arguments.split()), result.strip()))
    return table(found)


def type_name(oid: int) -> str:
    """pg_type.typname."""
    return type_row(oid).name


def _shown(oid: int) -> str:
    kind = type_row(oid)
    if kind.element and kind.category == "A":
        return f"{_shown(kind.element)}[]"
    return DISPLAY.get(kind.name, kind.name)


@lru_cache(_CACHED)
def chosen_operator(symbol: str, left: int, right: int) -> tuple[tuple[str, ...], Beyond] | None:
    """The operand types' names of the operator that PostgreSQL takes; ``left`` 0: prefix. None: 42883.

    Raises Ambiguous.
    """
    found = operator(symbol, left, right)
    if found is None:
        return None
    operands = tuple(oid for oid in (found.left, found.right) if oid)
    words = f"operator {' '.join(word for word in (_shown(found.left) if left else '', symbol, _shown(found.right)))}"
    return tuple(map(type_name, operands)), Beyond(words.replace("  ", " "))


def find_operator(symbol: str, left: int, right: int, known: Table) -> Overload | Beyond | None:
    """The overload for two operand types (``left`` 0: prefix); None: 42883. Raises Ambiguous."""
    found = chosen_operator(symbol, left, right)
    return None if found is None else known.get(found[0], found[1])


@lru_cache(_CACHED)
def chosen_function(name: str, arguments: tuple[int, ...]) -> tuple[PgProc, tuple[str, ...]] | TypeCall | None:
    """The function that PostgreSQL takes, and its arguments' types by name. Raises Ambiguous."""
    found = function_call(name, arguments)
    if found is None or isinstance(found, TypeCall):
        return found
    return found.function, tuple(map(type_name, found.arguments))


def find_function(name: str, arguments: tuple[int, ...], known: Table) -> Overload | Beyond | TypeCall | None:
    """The overload for argument types; None: 42883. Raises Ambiguous."""
    found = chosen_function(name, arguments)
    if found is None or isinstance(found, TypeCall):
        return found
    chosen, names = found
    words = f"function {name}({', '.join(map(_shown, chosen.arguments))})"
    return known.get(names, Beyond(words))

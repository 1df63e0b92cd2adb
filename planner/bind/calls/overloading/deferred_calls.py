"""Calls with a column or parameter where the binder needs a constant: formats, fields, zones, encodings.

Owns: ``CONSTANTS``, which arguments of a function the binder reads itself, and ``late``, the call that defers this to
run time. The engine then binds the call once for each value of these arguments (``planner.bind.binder.bind_values``),
and computes it over the rows that have the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from catalog.values.types import TEXT, SqlType
from planner.algebra.nodes import Call, Literal, Scalar

#: By PostgreSQL's name: the places of the arguments that are read when a call is bound.
CONSTANTS: Final[Mapping[str, tuple[int, ...]]] = {
    "to_char": (1,),
    "to_date": (1,),
    "to_timestamp": (1,),
    "date_part": (0,),
    "date_trunc": (0, 2),
    "timezone": (0,),
    "make_timestamptz": (6,),
    "encode": (1,),
    "decode": (1,),
    "format": (0,),
    "round": (1,),
    "trunc": (1,),
}
#: Those that are NULL where any argument is.
STRICT: Final = frozenset(CONSTANTS) - {"format"}


def places(name: str, count: int) -> tuple[int, ...]:
    """The places of a call with so many arguments."""
    return tuple(place for place in CONSTANTS.get(name, ()) if place < count)


def is_late(name: str, arguments: Sequence[Scalar]) -> bool:
    """Whether an argument that the binder reads is only known when the call runs."""
    return any(not isinstance(arguments[place], Literal) for place in places(name, len(arguments)))


def late(name: str, arguments: Sequence[Scalar], kind: SqlType) -> Scalar:
    """The call, put off; its arguments are coerced as its signature has them."""
    return Call("late", (Literal(name, TEXT), *arguments), kind)

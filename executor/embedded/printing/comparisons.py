"""Comparisons, in which integer arithmetic stays where it is.

DuckDB's optimiser moves constants to one side of a comparison: ``a + 1 > 4`` becomes ``a > 3``, and ``a * 3 <> 4`` is
true for every ``a``, so that neither overflows for any. It knows +, - and * by their names. Beside a constant they
are printed as the functions ``add``, ``subtract`` and ``multiply``, which compute and fail as they do.
"""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from executor.embedded.printing.composites.documents import ordered
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import INTEGERS
from executor.printing.nodes import Build, Expr, binary
from planner.algebra.nodes import Call, Cast, Scalar
from planner.algebra.walk import used_columns

_ARITHMETIC: Final = ("add", "sub", "mul", "neg")
_NAMES: Final[dict[type[Any], str]] = {exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply"}


def compared(kind: type[Any]) -> Build:
    """A comparison of two values in PostgreSQL's order."""

    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        return binary(kind, *(_side(node, place, printed) for place, printed in enumerate(arguments)))

    return build


def _side(node: Call, place: int, printed: Expr) -> Expr:
    scalar, other = node.arguments[place], node.arguments[1 - place]
    if not used_columns(other) and _is_movable(scalar):
        printed = _by_name(printed)
    return ordered(printed, scalar.type)


def _is_movable(scalar: Scalar) -> bool:
    """Whether an expression is integer arithmetic with a constant; a negation is a difference from 0."""
    while isinstance(scalar, Cast):
        scalar = scalar.argument
    if not isinstance(scalar, Call) or scalar.function not in _ARITHMETIC or scalar.type.name not in INTEGERS:
        return False
    return scalar.function == "neg" or any(not used_columns(item) for item in scalar.arguments)


def _by_name(printed: Expr) -> Expr:
    """Printed arithmetic, perhaps within casts, with a function's name in place of its sign."""
    name = _NAMES.get(type(printed))
    if name is not None:
        return exp.Anonymous(this=name, expressions=[printed.this, printed.expression])
    if isinstance(printed, exp.Paren | exp.Cast):
        found = printed.copy()
        found.set("this", _by_name(found.this))
        return found
    return printed

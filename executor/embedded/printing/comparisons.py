"""Comparisons, in which integer arithmetic stays where it is.

DuckDB's optimiser moves constants to one side of a comparison: ``a + 1 > 4`` becomes ``a > 3``, and ``a * 3 <> 4`` is
true for every ``a``, so that neither overflows for any. It knows +, - and * by their names. Beside a constant they
are printed as the functions ``add``, ``subtract`` and ``multiply``, which compute and fail as they do.

It also makes one range of two bounds of an expression, ``x >= 1 AND x < 5``, which it cannot compute of arrays and rows
(Invalid type for BETWEEN). Beside a constant these are printed with ``CASE WHEN x IS NULL THEN NULL ELSE 5 END``, which
is no constant to the optimiser.
"""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from executor.embedded.printing.composites.documents import ordered
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import INTEGERS
from executor.printing.nodes import Build, Expr, binary, case, operand
from planner.algebra.construction import has_subquery, volatility
from planner.algebra.nodes import Call, Cast, Scalar
from planner.algebra.walk import used_columns

_ARITHMETIC: Final = ("add", "sub", "mul", "neg")
_NAMES: Final[dict[type[Any], str]] = {exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply"}


def compared(kind: type[Any]) -> Build:
    """A comparison of two values in PostgreSQL's order."""

    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        return binary(kind, *(_side(node, place, printed) for place, printed in enumerate(arguments)))

    return build


def bounded(kind: type[Any]) -> Build:
    """A comparison that may be one bound of a range."""

    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        sides = [_side(node, place, printed) for place, printed in enumerate(arguments)]
        for place, scalar in enumerate(node.arguments):
            if _is_bound(scalar, node.arguments[1 - place]):
                is_null = exp.Is(this=operand(sides[1 - place].copy()), expression=exp.null())
                sides[place] = case([(is_null, exp.null())], sides[place])
        return binary(kind, *sides)

    return build


def _is_bound(scalar: Scalar, other: Scalar) -> bool:
    """Whether a constant array or row bounds an expression over columns, which may be computed twice."""
    is_nested = scalar.type.element is not None or scalar.type.row is not None
    if not is_nested or used_columns(scalar) or not used_columns(other):
        return False
    return not has_subquery(other) and volatility(other) != "volatile"


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

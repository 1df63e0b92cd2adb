"""Comparisons, which DuckDB's optimiser is to leave as they are.

DuckDB's optimiser moves constants to one side of a comparison: ``a + 1 > 4`` becomes ``a > 3``, and ``a * 3 <> 4`` is
true for every ``a``, so that neither overflows for any. It knows +, - and * by their names. Beside a constant they
are printed as the functions ``add``, ``subtract`` and ``multiply``, which compute and fail as they do.

Two conditions that compare a value with constants become one with BETWEEN, which DuckDB 2.0 does not evaluate for lists
and structs. Behind a cast a comparison of such values is no condition of that kind.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from executor.embedded.printing.composites.documents import ordered
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import INTEGERS
from executor.printing.nodes import Build, Expr, binary
from planner.algebra.nodes import Call, Cast, Scalar
from planner.algebra.walk import used_columns

_RANGES: Final = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_ARITHMETIC: Final = ("add", "sub", "mul", "neg")
_NAMES: Final[dict[type[Any], str]] = {exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply"}


def compared(kind: type[Any]) -> Build:
    """A comparison of two values in PostgreSQL's order."""

    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        found = binary(kind, *(_side(node, place, printed) for place, printed in enumerate(arguments)))
        return _behind_a_cast(found) if kind in _RANGES and _is_of_a_range(node) else found

    return build


def _is_of_a_range(node: Call) -> bool:
    """Whether a comparison could be one end of BETWEEN, of values that have parts."""
    is_nested = any(pa.types.is_nested(item.type.arrow) for item in node.arguments)
    return is_nested and not all(map(used_columns, node.arguments))


def _behind_a_cast(printed: Expr) -> Expr:
    number = exp.Cast(this=printed, to=exp.DataType.build("tinyint"))
    return exp.Cast(this=number, to=exp.DataType.build("boolean"))


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

"""Functions of doubles for Spark, right to the last digit or two, as PostgreSQL's are by the C library.

Owns: builders for queries alone (``query_dialect``): two engines may differ in the last bit, so no view keeps the
results. Arguments outside a function's domain and overflows raise PostgreSQL's errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from executor.printing.nodes import Build, Expr, function
from executor.spark.printing.functions.overflows import INFINITE, OVERFLOW, UNDERFLOW, raised
from executor.spark.printing.nodes import once, refuse
from planner.algebra.nodes import Call

_INPUT: Final = raised("22003", "input is out of range")
_OF_ZERO: Final = raised("2201E", "cannot take logarithm of zero")
_OF_NEGATIVE: Final = raised("2201E", "cannot take logarithm of a negative number")


def _of_doubles(pattern: str) -> Build:
    """A pattern over arguments that are all doubles."""

    def build(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
        if node.type.name != "float8" or any(item.type.name != "float8" for item in node.arguments):
            raise refuse(node)
        return once(dialect, arguments, node, pattern)

    return build


def _logarithm(name: str) -> str:
    return f"CASE WHEN {{0}} = 0D THEN {_OF_ZERO} WHEN {{0}} < 0D THEN {_OF_NEGATIVE} ELSE {name}({{0}}) END"


def _finite(name: str) -> str:
    """Of a finite number."""
    return f"CASE WHEN ABS({{0}}) = {INFINITE} THEN {_INPUT} ELSE {name}({{0}}) END"


def _within(name: str, condition: str) -> str:
    """Of a number of the domain; NaN is of every one."""
    return f"CASE WHEN NOT ISNAN({{0}}) AND NOT ({condition}) THEN {_INPUT} ELSE {name}({{0}}) END"


_EXP: Final = (
    f"CASE WHEN EXP({{0}}) = {INFINITE} AND {{0}} < {INFINITE} THEN {OVERFLOW}"
    f" WHEN EXP({{0}}) = 0D AND {{0}} > -{INFINITE} THEN {UNDERFLOW} ELSE EXP({{0}}) END"
)

_DEGREES: Final = (
    f"CASE WHEN ABS(DEGREES({{0}})) = {INFINITE} AND ABS({{0}}) < {INFINITE} THEN {OVERFLOW} ELSE DEGREES({{0}}) END"
)

FLOATS: Final[Mapping[str, Build]] = {
    "pi": lambda dialect, arguments, node: function("PI"),
    "exp": _of_doubles(_EXP),
    "ln": _of_doubles(_logarithm("LN")),
    "log": _of_doubles(_logarithm("LOG10")),
    "cbrt": _of_doubles("CBRT({0})"),
    "sin": _of_doubles(_finite("SIN")),
    "cos": _of_doubles(_finite("COS")),
    "tan": _of_doubles(_finite("TAN")),
    "asin": _of_doubles(_within("ASIN", "{0} BETWEEN -1D AND 1D")),
    "acos": _of_doubles(_within("ACOS", "{0} BETWEEN -1D AND 1D")),
    "acosh": _of_doubles(_within("ACOSH", "{0} >= 1D")),
    "atan": _of_doubles("ATAN({0})"),
    "atan2": _of_doubles("ATAN2({0}, {1})"),
    "sinh": _of_doubles("SINH({0})"),
    "cosh": _of_doubles("COSH({0})"),
    "tanh": _of_doubles("TANH({0})"),
    "degrees": _of_doubles(_DEGREES),
    "radians": _of_doubles("RADIANS({0})"),
}

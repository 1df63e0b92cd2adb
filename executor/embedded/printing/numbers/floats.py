"""Floating point numbers in DuckDB that raise 22003 where PostgreSQL does.

Owns: + - * / of floats over ``executor.printing.floats``, the casts between real and double precision, ``finite``,
which checks an aggregate's result, and doubles as integers (``planner.incremental.dataflow.float_sums``). The
operations that raise are macros (``float_macros``).
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from executor.embedded.functions.numbers.numeric_macros import let
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import macro
from executor.printing import floats
from executor.printing.nodes import Expr, binary
from planner.algebra.nodes import Call, Literal
from planner.incremental.dataflow.float_sums import TIERS

_TYPES: Final = {"float8": "DOUBLE", "float4": "FLOAT"}


class _Checker(floats.Checker):
    """The parts of a check in DuckDB's SQL."""

    def double(self, digits: str, kind: str) -> str:
        """A number with a cast."""
        return f"{digits}::{_TYPES[kind]}"

    def exact(self, name: str, left: str, right: str, are_short: bool) -> str:
        """A call of a macro."""
        if are_short:
            return f"ms_float_{name}({left}, {right})"
        return let(f"a: {left}, b: {right}", f"ms_float_{name}(v.a, v.b)")

    def bound(self, values: dict[str, str], body: str) -> str:
        """Values bound by a lambda."""
        return let(", ".join(f"{name}: {value}" for name, value in values.items()), body)

    def variable(self, name: str) -> str:
        """A field of the lambda's parameter."""
        return f"v.{name}"


_CHECKER: Final = _Checker()


def operation(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """x + y and the other operations."""
    return floats.checked(_CHECKER, printer, arguments, node)


def square(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """x * x, which may be infinite."""
    return binary(exp.Mul, arguments[0], arguments[0].copy())


def finite(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """An aggregate's result, checked with the largest absolute value of its arguments."""
    return macro("ms_float_finite", *arguments)


def units(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """The units of a double in a tier."""
    tier = node.arguments[1]
    assert isinstance(tier, Literal)
    assert isinstance(tier.value, int)
    least, bound, bits = TIERS[tier.value]
    return macro("ms_float_units", arguments[0], *(_power(exponent) for exponent in (least, bound, bits)))


def is_outside(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """Whether a double is in no tier."""
    return macro("ms_float_is_outside", arguments[0], _power(TIERS[0][0]), _power(TIERS[-1][1]))


def of_units(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """The double that sums of units are."""
    return macro("ms_float_of_units", *arguments, *(_power(-bits) for _, _, bits in TIERS))


def _power(exponent: int) -> Expr:
    """A power of two as a double."""
    return exp.Cast(this=exp.Literal.number(repr(2.0**exponent)), to=exp.DataType.build("DOUBLE"))

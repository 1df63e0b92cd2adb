"""Sums, products and quotients of floating point numbers that raise PostgreSQL's errors (float.c, float8_mul).

Owns: ``checked``, for both engines. No engine raises by itself, and a check of each operation's result would bind every
operand to a name. So a whole expression of operations is computed as written, and only its result is checked:

    CASE WHEN abs(a * b + c) <= 1e308 AND abs(a * b) >= 1e-300 THEN a * b + c ELSE add(mul(a, b), c) END

An intermediate infinity or NaN never becomes an ordinary number again, but a product that underflowed to zero can be
hidden by a sum. So every product that is summed, or is a divisor, is checked as well. NULL results come next, then
results with zeros: they are right if finite and if each product that is zero has a zero factor. In all other cases
(infinite values and NaN, overflow), ``exact`` computes the expression again, one operation at a time, and raises or
gives the right result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final

from msgspec import Struct, field
from sqlglot import exp

from executor.printing.nodes import Expr, operand
from planner.algebra.nodes import Call, ColumnRef, Literal, Scalar

SYMBOLS: Final = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
#: Absolute values that are neither overflow nor underflow.
_HIGHEST: Final = {"float8": "1e308", "float4": "1e38"}
_LOWEST: Final = {"float8": "1e-300", "float4": "1e-37"}
#: The most characters of an operand that is written out wherever it is needed, and of an expression that is merged with
#: its operand's.
_SHORT: Final = 80
_LONG: Final = 200
_META: Final = "floats"


class _Part(Struct, frozen=True):
    """An operand: its expression as written, the same computed one operation at a time, and the products that it sums.

    ``zeros`` are conditions under which its products are rightly zero; ``values`` are the expressions of the names in
    it.
    """

    raw: str
    exact: str
    products: tuple[str, ...] = ()
    zeros: tuple[str, ...] = ()
    is_product: bool = False
    values: dict[str, str] = field(default_factory=dict)


def quotient(left: str, right: str) -> str:
    """x / y for engines that raise for y = 0; PostgreSQL does not raise for x = NaN, whose quotient is NaN
    (float8_div)."""
    return f"({left} / CASE WHEN {right} = 0 AND ISNAN({left}) THEN {left} ELSE {right} END)"


class Checker(ABC):
    """The parts of a check that each engine writes in its own way."""

    @abstractmethod
    def double(self, digits: str, kind: str) -> str:
        """A constant of float4 or float8."""

    @abstractmethod
    def exact(self, name: str, left: str, right: str, are_short: bool) -> str:
        """One operation that raises PostgreSQL's errors; an operand that is not short is evaluated once."""

    @abstractmethod
    def bound(self, values: dict[str, str], body: str) -> str:
        """``body`` with values bound to the names that ``variable`` gives them."""

    @abstractmethod
    def variable(self, name: str) -> str:
        """The text of a bound name."""


def checked(checker: Checker, dialect: Any, arguments: list[Expr], node: Call) -> Expr:
    """A checked operation on two floats of the call's type."""
    values: dict[str, str] = {}
    left, right = (
        _part(checker, dialect, value, scalar, values) for value, scalar in zip(arguments, node.arguments, strict=True)
    )
    is_product = node.function in ("mul", "div")
    products = [*left.products, *right.products]
    # A zero product as a factor makes the product zero and so is still seen; as a term of a sum or as a divisor it is
    # not.
    products += [left.raw] if left.is_product and not is_product else []
    products += [right.raw] if right.is_product and node.function != "mul" else []
    are_short = all(isinstance(item, ColumnRef | Literal) for item in node.arguments)
    raw = f"({left.raw} {SYMBOLS[node.function]} {right.raw})"
    divisor = node.arguments[1]
    if node.function == "div" and not (isinstance(divisor, Literal) and divisor.value):
        raw = quotient(left.raw, right.raw)
    zeros = [*left.zeros, *right.zeros]
    if is_product:
        highest = checker.double(_HIGHEST[node.type.name], node.type.name)
        nothing = f"{left.raw} = 0 OR {right.raw} = 0"
        if node.function == "div":
            nothing = f"{left.raw} = 0 AND ABS({right.raw}) <= {highest}"
        zeros.append(f"({raw} <> 0 OR {nothing})")
    found = _Part(
        raw,
        checker.exact(node.function, left.exact, right.exact, are_short),
        tuple(products),
        tuple(zeros),
        is_product,
        values,
    )
    body = _asked(checker, found, node.type.name)
    result = exp.Paren(this=exp.Var(this=checker.bound(values, body) if values else body))
    result.meta[_META] = found
    return result


def _part(checker: Checker, dialect: Any, value: Expr, scalar: Scalar, values: dict[str, str]) -> _Part:
    """An operand; a long one is bound to a name, which is added to ``values``."""
    known = value.meta.get(_META) if isinstance(value, exp.Paren) else None
    if known is not None and len(known.raw) < _LONG and not (known.values and values):
        values.update(known.values)
        return known  # type: ignore[no-any-return]
    printed = dialect.generate(operand(value))
    if len(printed) <= _SHORT or isinstance(scalar, ColumnRef | Literal):
        return _Part(printed, printed)
    name = f"f{len(values)}"
    values[name] = printed
    return _Part(checker.variable(name), checker.variable(name))


def _asked(checker: Checker, part: _Part, kind: str) -> str:
    """The expression if its result is ordinary, else its exact evaluation."""
    highest, lowest = checker.double(_HIGHEST[kind], kind), checker.double(_LOWEST[kind], kind)
    size = f"ABS({part.raw})"
    conditions = [f"{size} BETWEEN {lowest} AND {highest}" if part.is_product else f"{size} <= {highest}"]
    conditions += [f"ABS({product}) >= {lowest}" for product in part.products]
    whens = [" AND ".join(conditions), f"{part.raw} IS NULL"]
    if part.zeros:
        whens.append(" AND ".join((f"{size} <= {highest}", *part.zeros)))
    branches = " ".join(f"WHEN {when} THEN {part.raw}" for when in whens)
    return f"CASE {branches} ELSE {part.exact} END"

"""Small builders of sqlglot nodes that every dialect uses: names, literals, operators with their parentheses.

Owns: the names of columns and leaves in engine SQL, and when an operand needs parentheses. Knows no dialect.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from sqlglot import exp

from catalog.values.errors import SqlError
from catalog.values.types import MAX_PRECISION
from planner.algebra.nodes import Call, Column, Delta, Scan, Snapshot

#: A node of sqlglot's tree. (sqlglot ships no types that mypy follows.)
Expr = Any
Build = Callable[[Any, list[Expr], Call], Expr]

#: Binary nodes that the generator prints without recursion when the same kind is on the left.
CHAINS: Final = (exp.And, exp.Or, exp.Add, exp.Mul, exp.Sub)
_COMPARISONS: Final = frozenset((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ))
#: Nodes that need no parentheses as an operand.
_ATOMS: Final = (
    exp.Column,
    exp.Literal,
    exp.Paren,
    exp.Anonymous,
    exp.Cast,
    exp.Subquery,
    exp.Var,
    exp.Boolean,
    exp.Parameter,
)


def column_name(column: Column) -> str:
    """A column's name in engine SQL and in an engine's results."""
    return f"c{column.id}"


def leaf_name(leaf: Scan | Snapshot | Delta) -> str:
    """The name under which an engine finds a leaf's rows."""
    match leaf:
        case Scan(kind="table"):
            return f"t{leaf.oid}"
        case Scan(kind="history"):
            return f"h{leaf.oid}"
        case Scan():
            return f"v{leaf.oid}"
        case Snapshot():
            return f"s_{leaf.trace}"
        case Delta():
            return f"d{leaf.oid}"


def quoted(name: str) -> str:
    """A name in SQL's double quotes."""
    return '"' + name.replace('"', '""') + '"'


def identifier(name: str) -> Expr:
    """A quoted name."""
    return exp.Identifier(this=name, quoted=True)


def reference(column: Column) -> Expr:
    """A reference to a column."""
    return exp.Column(this=identifier(column_name(column)))


def function(name: str, *arguments: Expr) -> Expr:
    """A call of an engine's function or macro."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def text(value: str) -> Expr:
    """A string literal."""
    return exp.Literal.string(value)


def digits(value: Decimal) -> str:
    """A numeric literal without an exponent. Raises 22003 for more digits than a numeric can hold."""
    exponent = value.as_tuple().exponent
    if value.adjusted() >= MAX_PRECISION or (isinstance(exponent, int) and exponent < -MAX_PRECISION):
        raise SqlError("22003", "value overflows numeric format", "At most 38 digits are kept.")
    return format(value, "f")


def number(value: int) -> Expr:
    """An integer literal."""
    literal = exp.Literal(this=str(abs(value)), is_string=False)
    return literal if value >= 0 else exp.Paren(this=exp.Neg(this=literal))


def condition(node: Expr) -> Expr:
    """The node as an operand of AND or OR; comparisons need no parentheses there."""
    return node if type(node) in _COMPARISONS else operand(node)


def operand(node: Expr) -> Expr:
    """The node, in parentheses unless it binds tightest."""
    return node if isinstance(node, _ATOMS) else exp.Paren(this=node)


def binary(kind: type[Any], left: Expr, right: Expr) -> Expr:
    """left OP right; a chain of one operator nests to the left, without parentheses."""
    logical = kind in (exp.And, exp.Or)
    wrap = condition if logical else operand
    keep = kind in CHAINS and type(left) is kind
    flat = logical and type(right) is kind
    return kind(this=left if keep else wrap(left), expression=right if flat else wrap(right))


def chain(kind: type[Any], items: list[Expr]) -> Expr:
    """items joined by one operator."""
    result = items[0]
    for item in items[1:]:
        result = binary(kind, result, item)
    return result


def case(branches: list[tuple[Expr, Expr]], otherwise: Expr | None) -> Expr:
    """CASE WHEN ... THEN ... ELSE ... END; without ELSE for None."""
    return exp.Paren(this=exp.Case(ifs=[exp.If(this=when, true=then) for when, then in branches], default=otherwise))

"""Constants of the grammar become literals.

Owns: the types of numbers as they are written (bigint where integer is too small, else numeric).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from catalog.values.errors import SqlError
from catalog.values.forms.bits import read_bits
from catalog.values.types import BIT, BOOL, INT4, INT8, MAX_PRECISION, NUMERIC, UNKNOWN, numeric
from planner.algebra.nodes import Literal, Scalar
from planner.bind.conversion.literals import unsigned_zero
from planner.bind.state.environment import Environment


def bind_constant(env: Environment, node: Any) -> Scalar:
    """A_Const."""
    if node.isnull:
        return Literal(None, UNKNOWN)
    value = node.val
    match type(value).__name__:
        case "Integer":
            return Literal(value.ival, INT4)
        case "Float":
            return number(value.fval)
        case "String":
            return Literal(value.sval, UNKNOWN)
        case "Boolean":
            return Literal(bool(value.boolval), BOOL)
        case _:
            return _bits(env, value.bsval, node)


def _bits(env: Environment, written: str, node: Any) -> Literal:
    """B'...' and X'...'."""
    try:
        return Literal(read_bits(written), BIT)
    except SqlError as error:
        error.position = env.binding.position(node)
        raise


def number(text: str) -> Literal:
    """A number with a point or exponent, or too large for integer: bigint where it fits, else numeric."""
    plain = text.replace("_", "")
    if plain.lower().lstrip("-").startswith(("0x", "0o", "0b")):
        plain = str(int(plain, 0))
    if plain.lstrip("-").isdigit() and -(1 << 63) <= int(plain) < 1 << 63:
        return Literal(int(plain), INT4 if -(1 << 31) <= int(plain) < 1 << 31 else INT8)
    value = unsigned_zero(Decimal(plain))
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    whole = max(value.adjusted() + 1, 1)
    if whole + scale > MAX_PRECISION:
        return Literal(value, NUMERIC)  # for a context that makes it a float; printers refuse it elsewhere
    if exponent > 0:
        value = Decimal(int(value))
    return Literal(value, numeric(whole + scale, scale))

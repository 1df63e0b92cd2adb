"""Operators applied to scalars: the overload is chosen, operands are coerced, the result has its type.

Owns: ``operate``, what ``a + b`` becomes, with PostgreSQL's errors (42883, 42725). Operands of one family (integers,
dates and timestamps) are coerced to the wider type here, so that printers never see a call over two types.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from catalog.values.errors import unsupported
from catalog.values.opaque import KEYED, check_equality, has_order, refuse_order
from catalog.values.types import BOOL, QUOTIENT, TEXT, SqlType, by_name, by_oid, is_known, numeric
from planner.algebra.nodes import Call, Cast, ColumnRef, Literal, Parameter, Scalar
from planner.algebra.walk import walk
from planner.bind.calls.operator_calls.array_shapes import call_of_shaped, opened
from planner.bind.calls.operator_calls.ranges import of_spans
from planner.bind.calls.overloading.operator_signatures import (
    COMPARISONS,
    MATCHES,
    NEGATED,
    ROWS,
    SETS,
    binary_operators,
    prefix_operators,
)
from planner.bind.calls.overloading.overloads import Beyond, Overload, find_operator, type_name
from planner.bind.calls.overloading.polymorphic import GATHERED, coerced, result
from planner.bind.conversion.array_items import is_shaped
from planner.bind.conversion.coercion import (
    STRINGS,
    blank_padded,
    coerce,
    common_type,
    numeric_result,
    target_type,
    wider,
    without_blanks,
    written_digits,
)
from planner.bind.conversion.resolution import Ambiguous, common
from planner.bind.conversion.row_types import check_alike
from planner.bind.lookup.type_names import display
from planner.bind.state.environment import Environment
from planner.lowering.orders import order_key

_ORDERS = ("lt", "le", "gt", "ge")
_CACHED: Final = 8192
NO_OPERATOR = "No operator matches the given name and argument types. You might need to add explicit type casts."
_AMBIGUOUS = "Could not choose a best candidate operator. You might need to add explicit type casts."


def operate(env: Environment, symbol: str, left: Scalar, right: Scalar, node: Any, nodes: tuple[Any, Any]) -> Scalar:
    """``left symbol right``."""
    if symbol in NEGATED:
        return Call("not", (operate(env, NEGATED[symbol], left, right, node, nodes),), BOOL)
    symbol = "<>" if symbol == "!=" else symbol
    overload = _choose(env, symbol, left, right, node)
    if _is_plain(overload, left.type.name, right.type.name):
        return _of_plain(env, symbol, overload, (left, right), node, nodes)
    if overload.arguments == ROWS:
        return _of_rows(env, overload, left, right, nodes)
    if overload.name in _ORDERS:
        refuse_order(left.type, "a comparison", lambda: env.binding.start(node))
    if overload.name in ("eq", "ne") and overload.arguments == ("anyarray", "anyarray"):
        check_equality(left.type, lambda: env.binding.start(node))
    if overload.name in SETS.values():
        check_equality(next((kind for side in (left, right) if (kind := side.type.element) is not None), left.type))
    if is_shaped(left) or is_shaped(right):
        found = _of_shaped(env, overload, left, right, nodes)
        if found is not None:
            return found
    if GATHERED.intersection(overload.arguments) or overload.arguments[1].startswith("_"):
        arguments = coerced(env, overload, (left, right), nodes)
        return of_spans(overload.name, arguments, result(overload, arguments))
    return _of_plain(env, symbol, overload, (left, right), node, nodes)


@lru_cache(_CACHED)
def _is_plain(overload: Overload, left: str, right: str) -> bool:
    """Whether nothing is to be checked or opened of operands of types of these names: true of most operators of numbers
    and texts."""
    if overload.arguments == ROWS or overload.name in SETS.values() or "shaped" in (left, right):
        return False
    if any(name.startswith("_") or name in GATHERED for name in overload.arguments):
        return False
    return overload.name not in _ORDERS or has_order(left)


def _of_plain(
    env: Environment, symbol: str, overload: Overload, sides: tuple[Scalar, Scalar], node: Any, nodes: tuple[Any, Any]
) -> Scalar:
    first, second = map(_operand, (env, env), sides, overload.arguments, nodes)
    return _result(env, symbol, overload, first, second, node)


def _of_shaped(
    env: Environment, overload: Overload, left: Scalar, right: Scalar, nodes: tuple[Any, Any]
) -> Call | None:
    """Arrays of any dimensions: compared with their shapes, joined, or as their elements; None for all else."""
    joined = call_of_shaped(env, overload, overload.name, (left, right), nodes)
    if joined is not None:
        return joined
    given = opened(overload.name, (left, right))
    if overload.name in COMPARISONS.values():
        kind = common_type([left.type, right.type], "ARRAY", lambda index: env.binding.start(nodes[index]))
        sides = [coerce(env.binding, side, kind, "implicit", node) for side, node in zip(given, nodes, strict=True)]
        return Call(overload.name, tuple(side for side in sides if side is not None), BOOL)
    if given == [left, right]:
        return None
    arguments = coerced(env, overload, given, nodes)
    return Call(overload.name, tuple(arguments), result(overload, arguments))


def _of_rows(env: Environment, overload: Overload, left: Scalar, right: Scalar, nodes: tuple[Any, Any]) -> Scalar:
    """Rows compared as values: field by field, where a NULL equals a NULL and is greater than all else."""
    kind = left.type if left.type.row is not None else right.type
    sides = []
    for scalar, node in ((left, nodes[0]), (right, nodes[1])):
        if (
            isinstance(scalar, Parameter) and scalar.type.name == "unknown"
        ):  # whose value is refused, as PostgreSQL does
            scalar = coerce(env.binding, scalar, kind, "implicit", node) or scalar
        if scalar.type.name == "unknown" and not (isinstance(scalar, Literal) and scalar.value is None):
            raise env.error("0A000", "input of anonymous composite types is not implemented", node)
        sides.append(Literal(None, kind) if scalar.type.name == "unknown" else scalar)
    check_alike(sides[0].type, sides[1].type, overload.name not in ("eq", "ne"))
    return Call(overload.name, tuple(sides), BOOL)


def _choose(env: Environment, symbol: str, left: Scalar, right: Scalar, node: Any) -> Overload:
    """The operator. Raises 42883, 42725, and 0A000 for what only PostgreSQL has."""
    try:
        overload = find_operator(symbol, left.type.oid, right.type.oid, binary_operators(symbol))
    except Ambiguous:
        words = f"{display(left.type)} {symbol} {display(right.type)}"
        raise env.error("42725", f"operator is not unique: {words}", node, hint=_AMBIGUOUS) from None
    if overload is None:
        words = f"{display(left.type)} {symbol} {display(right.type)}"
        raise env.error("42883", f"operator does not exist: {words}", node, hint=NO_OPERATOR)
    if isinstance(overload, Beyond):
        raise unsupported(overload.words, position=env.binding.position(node))
    return overload


def operand_types(env: Environment, symbol: str, left: Scalar, right: Scalar, node: Any) -> tuple[str, ...]:
    """The names of the types that an operator takes, before both are brought to the wider one."""
    return _choose(env, symbol, left, right, node).arguments


def _operand(env: Environment, scalar: Scalar, name: str, node: Any) -> Scalar:
    if name == "anynonarray":  # the other side of || is text, and this one is written as text
        return coerce(env.binding, scalar, TEXT, "explicit", node) or scalar
    kind = _operand_type(scalar, name)
    found = coerce(env.binding, scalar, kind, "implicit", node)
    assert found is not None, "the overload was chosen so that its operands coerce"
    return found


def _operand_type(scalar: Scalar, name: str) -> SqlType:
    """A literal number needs only its own digits as a numeric; a string keeps varchar(n) where text is wanted."""
    if name == "numeric" and isinstance(scalar, Literal) and isinstance(scalar.value, int):
        return numeric(len(str(abs(scalar.value))), 0)
    if name == "text" and scalar.type.name == "varchar":
        return scalar.type
    if name == "numeric" and isinstance(scalar, Literal) and isinstance(scalar.value, str):
        return written_digits(scalar.value)
    return target_type(name, scalar.type)


def _result(env: Environment, symbol: str, overload: Overload, left: Scalar, right: Scalar, node: Any) -> Scalar:
    if overload.name == "power" and overload.result == "numeric":
        return Call("power", (left, right), SqlType("numeric", QUOTIENT))
    if overload.name == "lsn_distance":
        return Call(overload.name, (left, right), numeric(20, 0))
    if overload.name.startswith("shift_"):
        return Call(overload.name, (left, right), left.type)
    if overload.name in _ORDERS and left.type.name in KEYED:
        return Call(overload.name, (order_key(left), order_key(right)), BOOL)
    if symbol in COMPARISONS:
        return Call(overload.name, _same_width(without_blanks(left), without_blanks(right)), BOOL)
    if overload.result == "numeric":
        return Call(overload.name, (left, right), numeric_result(overload.name, left.type, right.type))
    if symbol in MATCHES:
        left = blank_padded(left)
    kind = by_name(overload.result)
    if kind.category == "N" and kind.name != "money" and left.type.category == right.type.category == "N":
        left, right = _widened(left, kind), _widened(right, kind)
    if left.type.name == "date" and kind.name == "timestamp":
        left = _widened(left, kind)
    if right.type.name == "date" and kind.name == "timestamp":
        right = _widened(right, kind)
    return Call(overload.name, (left, right), kind)


def _same_width(left: Scalar, right: Scalar) -> tuple[Scalar, Scalar]:
    kind = wider(left.type, right.type)
    if kind.name in STRINGS or left.type.name == right.type.name:
        return left, right
    return _widened(left, kind), _widened(right, kind)


def _widened(scalar: Scalar, kind: SqlType) -> Scalar:
    if scalar.type.name == kind.name:
        return scalar
    if isinstance(scalar, Literal) and isinstance(scalar.value, int) and kind.name in ("int2", "int4", "int8"):
        return Literal(scalar.value, kind)
    return Cast(scalar, kind)


def prefix(env: Environment, symbol: str, argument: Scalar, node: Any, argument_node: Any) -> Scalar:
    """``symbol argument``: minus and plus."""
    words = f"{symbol} {display(argument.type)}"
    try:
        found = find_operator(symbol, 0, argument.type.oid, prefix_operators(symbol))
    except Ambiguous:
        raise env.error("42725", f"operator is not unique: {words}", node, hint=_AMBIGUOUS) from None
    if found is None:
        hint = "No operator matches the given name and argument type. You might need to add an explicit type cast."
        raise env.error("42883", f"operator does not exist: {words}", node, hint=hint)
    if isinstance(found, Beyond):
        raise unsupported(found.words, position=env.binding.position(node))
    operand = _operand(env, argument, found.arguments[0], argument_node)
    return operand if not found.name else Call(found.name, (operand,), operand.type)


def compare(env: Environment, symbol: str, left: Scalar, right: Scalar, node: Any) -> tuple[Scalar, Scalar]:
    """Both sides as the operator compares them."""
    found = operate(
        env, symbol, left, right, node, (node.lexpr, node.rexpr) if hasattr(node, "lexpr") else (node, node)
    )
    while isinstance(found, Call) and found.function == "not":
        found = found.arguments[0]
    assert isinstance(found, Call)
    return found.arguments[0], found.arguments[1]


def any_of(env: Environment, value: Scalar, items: list[Scalar], node: Any) -> Scalar:
    """``value IN (items)``: one call where all comparisons see the value in one type, else those comparisons."""
    nodes = list(node.rexpr) if isinstance(getattr(node, "rexpr", None), tuple) else [node] * len(items)
    left_node = getattr(node, "lexpr", node)
    items = _alike(env, value, items, nodes)
    found = [operate(env, "=", value, item, node, (left_node, place)) for item, place in zip(items, nodes, strict=True)]
    calls = [item for item in found if isinstance(item, Call)]
    if all(call.arguments[0] == calls[0].arguments[0] for call in calls):
        return Call("in", (calls[0].arguments[0], *(call.arguments[1] for call in calls)), BOOL)
    return calls[0] if len(calls) == 1 else Call("or", tuple(calls), BOOL)


def _alike(env: Environment, value: Scalar, items: list[Scalar], nodes: list[Any]) -> list[Scalar]:
    """Items without columns take the type common to them and the value, if there is one (transformAExprIn)."""
    plain = [not any(isinstance(part, ColumnRef) for part in walk(item)) for item in items]
    kinds = [value.type.oid, *(item.type.oid for item, is_plain in zip(items, plain, strict=True) if is_plain)]
    target = common(kinds) if len(kinds) > 2 else None
    if target is None or not is_known(target) or by_oid(target).element is not None:
        return items
    found = []
    for item, is_plain, place in zip(items, plain, nodes, strict=True):
        same = _operand(env, item, type_name(target), place) if is_plain and item.type.oid != target else item
        found.append(same)
    return found

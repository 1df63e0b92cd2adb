"""Items of documents in paths: their context, methods, arithmetic and comparisons.

Owns: methods, arithmetic with numeric's digits, and comparisons. Items are values of
``catalog.values.json_documents.parse``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from math import isfinite
from typing import Any, Final

from msgspec import Struct

from catalog.values.errors import SqlError
from catalog.values.json_documents import Number, number
from catalog.values.jsonpath.datetimes import Moment, order, read_moment
from catalog.values.jsonpath.errors import PathError
from catalog.values.jsonpath.nodes import Method, Path

Items = Iterator[Any]
#: More digits than any numeric has, before and after the point.
_EXACT: Final = Context(prec=200_000)


class At(Struct, frozen=True):
    """The context of an expression: the document, the filter's item, and the array of a subscript.

    With ``loose``, steps that cannot be taken find nothing instead of raising: below ``.**``, also in a strict path.
    ``zone`` is the session's, or empty if dates and times without a zone must not be compared with those that have one.
    """

    path: Path
    document: Any
    variables: dict[str, Any]
    current: Any
    size: int = 0
    loose: bool = False
    zone: str = ""

    @property
    def lax(self) -> bool:
        """Whether arrays are unwrapped and single items wrapped."""
        return not self.path.strict


# --- methods ---------------------------------------------------------------------------------------------------------


def kind_of(item: Any) -> str:
    """An item's type, as .type() returns it."""
    if isinstance(item, Number):
        return "number"
    if item is None:
        return "null"
    if isinstance(item, Moment):
        return item.name
    return {bool: "boolean", str: "string", list: "array", dict: "object"}[type(item)]


def _type(at: At, item: Any, step: Method) -> Items:
    yield kind_of(item)


def _size(at: At, item: Any, step: Method) -> Items:
    if isinstance(item, list):
        yield Number(len(item))
    elif at.lax:
        yield Number(1)
    elif not at.loose:
        raise PathError("22039", "jsonpath item method .size() can only be applied to an array")


def _numeric(name: str, compute: Callable[[Decimal], Decimal]) -> Callable[[At, Any, Method], Items]:
    def method(at: At, item: Any, step: Method) -> Items:
        if not isinstance(item, Number):
            raise PathError("22036", f"jsonpath item method .{name}() can only be applied to a numeric value")
        with localcontext(_EXACT):
            yield number(compute(Decimal(item)))

    return method


def _double(at: At, item: Any, step: Method) -> Items:
    if not isinstance(item, str):
        message = "jsonpath item method .double() can only be applied to a string or numeric value"
        raise PathError("22036", message)
    try:
        value = float(item) if "_" not in item else float("nan")
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        of_number = isinstance(item, Number)
        words = "is out of range for type double precision"
        if not of_number:
            words = "is not a valid representation of a double precision number"
        kind = "numeric" if of_number else "string"
        raise PathError("22036", f"{kind} argument of jsonpath item method .double() {words}")
    yield item if isinstance(item, Number) else number(Decimal(f"{value:.15g}"))


def _pairs(at: At, item: Any, step: Method) -> Items:
    if not isinstance(item, dict):
        raise PathError("2203C", "jsonpath item method .keyvalue() can only be applied to an object")
    if item is not at.document:  # its id would depend on its offset in jsonb's bytes
        raise SqlError("0A000", "keyvalue() below the top of a document is not supported", hint="Use jsonb_each().")
    for key, value in item.items():
        yield {"id": Number("0"), "key": key, "value": value}


def _moment(at: At, item: Any, step: Method) -> Items:
    if not is_text(item):
        raise PathError("22031", "jsonpath item method .datetime() can only be applied to a string")
    yield read_moment(item, step.template)


#: For each method, the items that it returns for an item.
METHODS: Final[dict[str, Callable[[At, Any, Method], Items]]] = {
    "type": _type,
    "size": _size,
    "abs": _numeric("abs", abs),
    "floor": _numeric("floor", lambda value: value.to_integral_value(ROUND_FLOOR)),
    "ceiling": _numeric("ceiling", lambda value: value.to_integral_value(ROUND_CEILING)),
    "double": _double,
    "keyvalue": _pairs,
    "datetime": _moment,
}


# --- numbers ---------------------------------------------------------------------------------------------------------


def computed(symbol: str, left: Decimal, right: Decimal) -> Number:
    """``left symbol right`` for numerics. Raises PathError."""
    with localcontext(_EXACT):
        match symbol:
            case "+":
                return number(left + right)
            case "-":
                return number(left - right)
            case "*":
                return number(left * right)
        if not right:
            raise PathError("22012", "division by zero")
        if symbol == "/":
            return number(_quotient(left, right))
        return number(left % right)


def _quotient(left: Decimal, right: Decimal) -> Decimal:
    """A quotient with at least 16 significant digits (numeric.c, select_div_scale)."""
    (weight, first), (other, second) = _leading(left), _leading(right)
    weight = weight - other - (first <= second)
    scale = max(16 - 4 * weight, *(-int(item.as_tuple().exponent) for item in (left, right)), 0)
    scale = min(scale, 1000)
    whole, rest = divmod(abs(left).scaleb(scale), abs(right))
    found = (whole + (2 * rest >= abs(right))).scaleb(-scale)
    return found if left.is_signed() == right.is_signed() else -found


def _leading(value: Decimal) -> tuple[int, int]:
    """The place and the value of the first base-10,000 digit of a number."""
    if not value:
        return 0, 0
    weight = value.adjusted() // 4
    return weight, int(abs(value).scaleb(-4 * weight))


def is_text(item: Any) -> bool:
    """Whether an item is a string."""
    return isinstance(item, str) and not isinstance(item, Number)


def starts_with(whole: Any, initial: Any) -> bool | None:
    """Whether a string begins with another; None for other items."""
    return whole.startswith(initial) if is_text(whole) and is_text(initial) else None


_COMPARISONS: Final[dict[str, Callable[[int, int], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compared(at: At, symbol: str, left: Any, right: Any) -> bool | None:
    """The comparison of two items; None for arrays, objects, and items of different types other than null. Raises 0A000
    for two times of which only one has a zone."""
    if isinstance(left, Moment) and isinstance(right, Moment):
        found = order(left, right, at.zone)
        return None if found is None else _COMPARISONS[symbol](found, 0)
    kind = kind_of(left)
    if kind != kind_of(right):
        return symbol == "!=" if left is None or right is None else None
    if kind in ("array", "object"):
        return None
    return _COMPARISONS[symbol](_order(kind, left, right), 0)


def _order(kind: str, left: Any, right: Any) -> int:
    if kind == "null":
        return 0
    if kind == "number":
        left, right = Decimal(left), Decimal(right)
    return int(left > right) - int(left < right)  # strings compare by code points (compareStrings)

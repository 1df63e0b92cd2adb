"""Evaluates a path on a document, item by item (jsonpath_exec.c).

Owns: lax and strict paths, three-valued conditions, and both kinds of errors: ``silent`` suppresses a ``PathError``, an
``SqlError`` is always raised. Items are values of ``catalog.values.json_documents.parse``.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from catalog.values.errors import SqlError
from catalog.values.json_documents import Number, number
from catalog.values.jsonpath.errors import PathError
from catalog.values.jsonpath.items import METHODS, At, Items, compared, computed, is_text, starts_with
from catalog.values.jsonpath.nodes import (
    LAST,
    PREDICATES,
    Arithmetic,
    Both,
    Chain,
    Comparison,
    Constant,
    Current,
    Descendants,
    Elements,
    Exists,
    Field,
    Fields,
    Filter,
    IsUnknown,
    Last,
    LikeRegex,
    Method,
    Not,
    Path,
    Root,
    Sign,
    StartsWith,
    Step,
    Subscripts,
    Variable,
)
from catalog.values.jsonpath.syntax import regex_flags
from catalog.values.regex.matching import find
from catalog.values.regex.syntax import parse as parse_pattern


def found(path: Path, document: Any, variables: Any, zone: str = "") -> Items:
    """A path's items. Raises PathError, 22023, 42704, and 0A000 if times need a ``zone``."""
    yield from _items(_at(path, document, variables, zone), path.root)


def finds(path: Path, document: Any, variables: Any, zone: str = "") -> bool:
    """Whether a path has an item. Raises the errors of ``found``."""
    return _any(_at(path, document, variables, zone), path.root)


def _at(path: Path, document: Any, variables: Any, zone: str) -> At:
    if not isinstance(variables, dict):
        detail = 'Jsonpath parameters should be encoded as key-value pairs of "vars" object.'
        raise SqlError("22023", '"vars" argument is not an object', detail)
    return At(path, document, variables, document, loose=not path.strict, zone=zone)


def _any(at: At, node: Any) -> bool:
    """Whether a path has items. A lax path is evaluated up to its first item, and skips a sign's type check if the
    items are not used (executeUnaryArithmExpr)."""
    if not at.lax:
        return bool(list(_items(at, node)))
    if isinstance(node, Sign):
        return any(isinstance(item, Number) for item in _unwrapped(at, node.operand))
    return any(True for _ in _items(at, node))


def _items(at: At, node: Any) -> Items:
    match node:
        case Root():
            yield at.document
        case Current():
            yield at.current
        case Constant(value=value):
            yield value
        case Last():
            yield Number(at.size - 1)
        case Variable(name=name):
            if name not in at.variables:
                raise SqlError("42704", f'could not find jsonpath variable "{name}"')
            yield at.variables[name]
        case Chain(base=base, steps=steps):
            yield from _walked(at, _items(at, base), steps)
        case Arithmetic():
            yield computed(node.symbol, _operand(at, node, "left"), _operand(at, node, "right"))
        case Sign(symbol=symbol, operand=operand):
            for item in _unwrapped(at, operand):
                if not isinstance(item, Number):
                    raise PathError("2203B", f"operand of unary jsonpath operator {symbol} is not a numeric value")
                yield item if symbol == "+" else number(-Decimal(item))
        case _:
            assert isinstance(node, PREDICATES)
            yield _holds(at, node)


def _unwrapped(at: At, node: Any) -> Items:
    """Items; in a lax path, the elements of arrays instead of the arrays."""
    for item in _items(at, node):
        if at.lax and isinstance(item, list):
            yield from item
        else:
            yield item


# --- steps -----------------------------------------------------------------------------------------------------------


def _walked(at: At, items: Items, steps: tuple[Step, ...]) -> Items:
    if not steps:
        yield from items
        return
    step, rest = steps[0], steps[1:]
    for item in items:
        below = replace(at, loose=True) if isinstance(step, Descendants) else at
        yield from _walked(below, _stepped(at, item, step), rest)


def _stepped(at: At, item: Any, step: Step) -> Items:
    """The result of one step from an item; in a lax path, from an array's elements, unless the step applies to
    arrays."""
    if at.lax and isinstance(item, list) and _is_of_elements(step):
        for element in item:
            yield from _from(at, element, step)
    else:
        yield from _from(at, item, step)


def _is_of_elements(step: Step) -> bool:
    return isinstance(step, Field | Fields | Filter) or (isinstance(step, Method) and step.name not in ("type", "size"))


def _from(at: At, item: Any, step: Step) -> Items:
    match step:
        case Field(name=name):
            yield from _field(at, item, name)
        case Fields():
            if isinstance(item, dict):
                yield from item.values()
            elif not at.loose:
                raise PathError("2203C", "jsonpath wildcard member accessor can only be applied to an object")
        case Elements():
            if isinstance(item, list):
                yield from item
            elif at.lax:
                yield item
            elif not at.loose:
                raise PathError("22039", "jsonpath wildcard array accessor can only be applied to an array")
        case Subscripts():
            yield from _subscripted(at, item, step)
        case Descendants(first=first, last=last):
            yield from _descendants(item, 0, first, last)
        case Method(name=name):
            yield from METHODS[name](at, item, step)
        case Filter(condition=condition):
            if _holds(replace(at, current=item), condition) is True:
                yield item


def _field(at: At, item: Any, name: str) -> Items:
    if isinstance(item, dict):
        if name in item:
            yield item[name]
        elif not at.loose:
            raise PathError("2203A", f'JSON object does not contain key "{name}"')
    elif not at.loose:
        raise PathError("2203A", "jsonpath member accessor can only be applied to an object")


def _subscripted(at: At, item: Any, step: Subscripts) -> Items:
    if not isinstance(item, list):
        if not at.lax:
            if at.loose:
                return
            raise PathError("22039", "jsonpath array accessor can only be applied to an array")
        item = [item]
    inside = replace(at, size=len(item))
    for low, high in step.ranges:
        first = _index(inside, low)
        last = first if high is None else _index(inside, high)
        if not at.loose and (first < 0 or first > last or last >= len(item)):
            raise PathError("22033", "jsonpath array subscript is out of bounds")
        yield from item[max(first, 0) : last + 1] if last >= 0 else ()


def _index(at: At, node: Any) -> int:
    items = list(_items(at, node))
    if len(items) != 1 or not isinstance(items[0], Number):
        raise PathError("22033", "jsonpath array subscript is not a single numeric value")
    value = int(Decimal(items[0]))
    if not -(2**31) <= value < 2**31:
        raise PathError("22033", "jsonpath array subscript is out of integer range")
    return value


def _descendants(item: Any, level: int, first: int, last: int) -> Items:
    """Depth first, each item before its descendants; ``.**{last}`` are the leaves."""
    parts = list(item.values()) if isinstance(item, dict) else item if isinstance(item, list) else []
    if level >= first != LAST or (first == LAST and not isinstance(item, dict | list)):
        yield item
    if last == LAST or level < last:
        for part in parts:
            yield from _descendants(part, level + 1, first, last)


def _operand(at: At, node: Arithmetic, side: str) -> Decimal:
    items = list(_unwrapped(at, getattr(node, side)))
    if len(items) != 1 or not isinstance(items[0], Number):
        message = f"{side} operand of jsonpath operator {node.symbol} is not a single numeric value"
        raise PathError("22038", message)
    return Decimal(items[0])


# --- conditions ------------------------------------------------------------------------------------------------------


def _holds(at: At, node: Any) -> bool | None:
    """The value of a condition: true, false, or None for unknown."""
    match node:
        case Both(symbol=symbol, left=left, right=right):
            decides = symbol == "||"
            first = _holds(at, left)
            if first is decides:
                return decides
            second = _holds(at, right)
            return first if second is (not decides) else second
        case Not(operand=operand):
            value = _holds(at, operand)
            return None if value is None else not value
        case IsUnknown(operand=operand):
            return _holds(at, operand) is None
        case Exists(operand=operand):
            return _exists(at, operand)
        case Comparison(symbol=symbol, left=left, right=right):
            return _any_pair(at, left, lambda: _unwrapped(at, right), lambda a, b: compared(at, symbol, a, b))
        case StartsWith(operand=operand, prefix=prefix):
            return _any_pair(at, operand, lambda: _items(at, prefix), starts_with)
        case LikeRegex(operand=operand, pattern=pattern, flags=flags):
            regex = parse_pattern(pattern, regex_flags(flags))
            return _any_pair(
                at, operand, lambda: iter((None,)), lambda a, _: find(regex, a) is not None if is_text(a) else None
            )
    raise AssertionError(node)


def _exists(at: At, node: Any) -> bool | None:
    try:
        return _any(at, node)
    except PathError:
        return None


def _any_pair(at: At, left: Any, right: Callable[[], Items], test: Callable[[Any, Any], bool | None]) -> bool | None:
    """Whether a comparison is true for a pair of items. A lax path stops at the first such pair; a strict one checks
    all."""
    try:
        lefts, rights = list(_unwrapped(at, left)), list(right())
    except PathError:
        return None
    unknown = true = False
    for one in lefts:
        for other in rights:
            value = test(one, other)
            if value is None:
                if not at.lax:
                    return None
                unknown = True
            elif value:
                if at.lax:
                    return True
                true = True
    return True if true else None if unknown else False

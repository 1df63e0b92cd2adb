"""Window functions in Spark SQL, for queries: a view's windows are in its final relation, which Spark never runs.

Owns: which of PostgreSQL's frames and arguments Spark supports. Frames have constant offsets, in RANGE over numbers and
over times with a distance that does not depend on months; EXCLUDE is not supported. Frames of GROUPS with offsets come
as frames of RANGE (``planner/lowering``). Anything else is refused by name.
"""

from __future__ import annotations

from decimal import Decimal
from math import isfinite
from typing import Any, Final

from sqlglot import exp

from catalog.values.errors import unsupported
from catalog.values.types import SqlType
from executor.printing.nodes import Expr, function
from executor.spark.printing.nodes import cast
from planner.algebra.functions import RANKING_FUNCTIONS, WINDOW_FUNCTIONS
from planner.algebra.nodes import Cast, Literal, Scalar, WindowCall

#: Functions whose argument i must be a constant of at least so much, and the error of one that is not positive.
_CONSTANTS: Final = {"ntile": (0, 1), "nth_value": (1, 1), "lag": (1, -(2**31) + 1), "lead": (1, -(2**31) + 1)}
_WRONG: Final = {
    "ntile": "22014:argument of ntile must be greater than zero",
    "nth_value": "22016:argument of nth_value must be greater than zero",
}
_OFFSET: Final = "an offset in a window's frame"
_TIMES: Final = ("date", "timestamp", "timestamptz")
#: Moments and distances in microseconds, and a day.
_MICROSECONDS: Final = "DECIMAL(20,0)"
_DAY: Final = 86_400_000_000


def framed(node: WindowCall, over: Expr) -> Expr:
    """``over`` as Spark takes it: an order where the function wants one, and no frame where it is the partition."""
    if node.function in RANKING_FUNCTIONS:
        if not node.order_by:
            over.set("order", exp.Order(expressions=[exp.Ordered(this=exp.Var(this="CAST(NULL AS INT)"))]))
        return over
    if node.exclude != "no_others":
        raise unsupported(f"EXCLUDE {node.exclude.replace('_', ' ').upper()} in a window's frame")
    spec = over.args["spec"]
    if node.mode == "range" and node.offsets:
        _by_distance(node, over)
    elif node.offsets:
        _offsets(node, spec, [str(_rows(offset)) for offset in node.offsets])
    if node.mode == "groups":  # between peers and ends it is what RANGE is
        spec.set("kind", "RANGE")
    if node.mode != "rows" and not node.order_by:  # all rows are peers
        over.set("spec", None)
    return over


def _offsets(node: WindowCall, spec: Expr, printed: list[str]) -> None:
    rest = iter(printed)
    for side, bound in (("start", node.start), ("end", node.end)):
        if bound in ("preceding", "following"):
            spec.set(side, exp.Var(this=next(rest)))


def _rows(offset: Scalar) -> int:
    found = _whole(_constant(offset, _OFFSET), _OFFSET)
    if not 0 <= found < 1 << 31:
        raise unsupported(f"{_OFFSET} that is negative or beyond an integer")
    return found


def _by_distance(node: WindowCall, over: Expr) -> None:
    """RANGE with offsets: the key as a number in which no sum overflows, and the offsets of its type."""
    key = over.args["order"].expressions[0]
    kind = node.order_by[0].expression.type
    offsets = [_constant(offset, _OFFSET) for offset in node.offsets]
    if kind.name in _TIMES:
        target = _MICROSECONDS
        moment = key.this if kind.name == "timestamptz" else cast(key.this, "TIMESTAMP")
        key.set("this", cast(function("UNIX_MICROS", moment), target))
        distances: list[Any] = [_microseconds(value) for value in offsets]
    elif kind.name in ("float4", "float8"):
        target = "DOUBLE"
        key.set("this", cast(key.this, target))
        distances = [_number(value) for value in offsets]
    else:
        scale = max(_scale(kind), *(_decimals(value) for value in offsets))
        target = f"DECIMAL(38,{scale})"
        key.set("this", cast(key.this, target))
        distances = [_number(value) for value in offsets]
    _offsets(node, over.args["spec"], [f"CAST('{item}' AS {target})" for item in distances])


def _scale(kind: SqlType) -> int:
    if kind.name in ("int2", "int4", "int8"):
        return 0
    if kind.name == "numeric" and kind.precision < 38:
        return kind.scale
    raise unsupported(f"RANGE with an offset over {kind} in a window's frame")


def _decimals(value: object) -> int:
    exponent = Decimal(str(value)).as_tuple().exponent if isinstance(value, Decimal) else 0
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _number(value: object) -> str:
    if isinstance(value, int | float | Decimal) and isfinite(value) and value >= 0:
        return format(Decimal(str(value)), "f")
    raise unsupported(f"{_OFFSET} that is negative or not finite")


def _microseconds(value: object) -> int:
    if not isinstance(value, tuple):
        raise unsupported(f"{_OFFSET} that is no interval")
    months, days, rest = value
    found = int(days) * _DAY + int(rest)
    if months or found < 0 or int(days) < 0:
        raise unsupported(f"{_OFFSET} of months, or that is negative")
    return found


def _constant(value: Scalar, what: str) -> object:
    while isinstance(value, Cast):
        value = value.argument
    if not isinstance(value, Literal) or value.value is None:
        raise unsupported(f"{what} that is not constant")
    return value.value


def _whole(value: object, what: str) -> int:
    if not isinstance(value, int):
        raise unsupported(f"{what} that is not constant")
    return value


def _is_null(value: Scalar) -> bool:
    while isinstance(value, Cast):
        value = value.argument
    return isinstance(value, Literal) and value.value is None


def call(node: WindowCall, arguments: list[Expr], over: Expr, kind: str) -> Expr:
    """A function that exists only over a window; ``kind`` is its type in Spark."""
    if node.function not in WINDOW_FUNCTIONS:
        raise unsupported(f"window function {node.function}")
    if node.function in _CONSTANTS:
        place, least = _CONSTANTS[node.function]
        if place < len(node.arguments):
            if _is_null(node.arguments[place]):
                return cast(exp.null(), kind)
            what = f"an argument of {node.function}"
            found = _whole(_constant(node.arguments[place], what), what)
            if found < least and node.function in _WRONG:
                return cast(exp.Var(this=f"RAISE_ERROR('{_WRONG[node.function]}')"), kind)
            if not least <= found < 1 << 31:
                raise unsupported(f"{node.function} with the argument {found}")
            arguments[place] = exp.Var(this=str(found))
    over.set("this", function(node.function.upper(), *arguments))
    return over

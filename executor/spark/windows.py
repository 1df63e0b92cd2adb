"""Window functions in Spark's SQL, for queries (a view's windows are in its final relation, which Spark never runs).

Owns: which of PostgreSQL's frames and arguments Spark has. Frames in ROWS have constant offsets; RANGE and GROUPS go
from the partition's ends to the row's peers; nothing is excluded. Anything else is refused by name.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from catalog.errors import unsupported
from executor.nodes import Expr, function
from planner.expression import Cast, Literal, Scalar, WindowCall
from planner.functions import RANKING_FUNCTIONS, WINDOW_FUNCTIONS

#: Functions whose argument i must be a constant of at least so much.
_CONSTANTS: Final = {"ntile": (0, 1), "nth_value": (1, 1), "lag": (1, -(2**31) + 1), "lead": (1, -(2**31) + 1)}
_OFFSET: Final = "an offset in a window's frame"


def framed(node: WindowCall, over: Expr) -> Expr:
    """``over`` as Spark takes it: an order where the function wants one, and no frame where it is the partition."""
    if node.function in RANKING_FUNCTIONS:
        if not node.order_by:
            over.set("order", exp.Order(expressions=[exp.Ordered(this=exp.Var(this="CAST(NULL AS INT)"))]))
        return over
    _require_frame(node)
    spec = over.args["spec"]
    offsets = iter(node.offsets)
    for side, bound in (("start", node.start), ("end", node.end)):
        if bound in ("preceding", "following"):
            spec.set(side, exp.Var(this=str(_constant(next(offsets), _OFFSET))))
    if node.mode == "groups":  # between peers and ends it is what RANGE is
        spec.set("kind", "RANGE")
    if node.mode != "rows" and not node.order_by:  # all rows are peers
        over.set("spec", None)
    return over


def _require_frame(node: WindowCall) -> None:
    if node.exclude != "no_others":
        raise unsupported(f"EXCLUDE {node.exclude.replace('_', ' ').upper()} in a window's frame")
    if node.offsets and node.mode != "rows":
        raise unsupported(f"{node.mode.upper()} with an offset in a window's frame")
    for offset in node.offsets:
        if not 0 <= _constant(offset, _OFFSET) < 1 << 31:
            raise unsupported(f"{_OFFSET} that is negative or beyond an integer")


def _constant(value: Scalar, what: str) -> int:
    while isinstance(value, Cast):
        value = value.argument
    if not isinstance(value, Literal) or not isinstance(value.value, int):
        raise unsupported(f"{what} that is not constant")
    return value.value


def call(node: WindowCall, arguments: list[Expr], over: Expr) -> Expr:
    """A function that exists only over a window."""
    if node.function not in WINDOW_FUNCTIONS:
        raise unsupported(f"window function {node.function}")
    if node.function in _CONSTANTS:
        place, least = _CONSTANTS[node.function]
        if place < len(node.arguments):
            found = _constant(node.arguments[place], f"an argument of {node.function}")
            if not least <= found < 1 << 31:
                raise unsupported(f"{node.function} with the argument {found}")
            arguments[place] = exp.Var(this=str(found))
    over.set("this", function(node.function.upper(), *arguments))
    return over

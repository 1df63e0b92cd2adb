"""Constant expressions become literals, where the value is exactly what an engine would compute.

    p AND true = p      p AND false = false      p OR false = p      p OR true = true
    not(true) = false   NULL op x = NULL for strict op   CASE WHEN true THEN a ... = a
    1 + 2 = 3 within the type's range; numerics where scale and precision of the result hold the value
    date '1998-12-01' - interval '90' day = timestamp '1998-09-02 00:00:00'

Division, floats, text functions and time zones stay: their exact results are the engines' business. An expression that
would raise (out of range) stays too, so that it raises when it is run.
"""

from __future__ import annotations

import calendar
import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final

from catalog.values.integers import ARITHMETIC, LIMITS, fits
from catalog.values.types import DATE, MAX_PRECISION, TIMESTAMP, SqlType
from planner.algebra.construction import FALSE, TRUE
from planner.algebra.functions import COMPARISONS
from planner.algebra.nodes import Call, Case, Cast, Literal, Scalar
from planner.algebra.nulls import STRICT
from planner.algebra.walk import kinds_of
from planner.rules.node_rule import node_rule

_EXACT: Final = Context(prec=4 * MAX_PRECISION, traps=[InvalidOperation])


@node_rule(kinds_of(Literal), Call, Case, Cast)
def fold_constants(node: Any) -> Any:
    """The relation with constant parts of its expressions computed."""
    return _FOLDED[type(node)](node)


def _call(node: Call) -> Scalar:
    literals = [item for item in node.arguments if type(item) is Literal]
    if not literals:
        return node
    function = node.function
    if function in ("and", "or"):
        return _logic(node)
    value = literals[0].value
    if function == "not" and isinstance(value, bool):
        return FALSE if value else TRUE
    if function in ("is_null", "is_not_null"):
        return TRUE if (value is None) == (function == "is_null") else FALSE
    if function in STRICT:
        if any(item.value is None for item in literals):
            return Literal(None, node.type)
        return _computed(node)
    return node


def _cast(node: Cast) -> Scalar:
    match node:
        case Cast(argument=Literal(value=dt.date() as value, type=kind), type=target) if (kind, target) == (
            DATE,
            TIMESTAMP,
        ):
            return Literal(dt.datetime(value.year, value.month, value.day), TIMESTAMP)
        case _:
            return node


def _logic(node: Call) -> Scalar:
    """AND and OR over the parts that are not constant; a NULL literal stays (it is not false)."""
    neutral, absorbing = (TRUE, FALSE) if node.function == "and" else (FALSE, TRUE)
    if absorbing in node.arguments:
        return absorbing
    rest = tuple(item for item in node.arguments if item != neutral)
    if len(rest) == len(node.arguments):
        return node
    return Call(node.function, rest, node.type) if len(rest) > 1 else (rest[0] if rest else neutral)


def _case(node: Case) -> Scalar:
    branches = tuple(
        (when, then) for when, then in node.branches if not (isinstance(when, Literal) and when.value in (False, None))
    )
    if branches and branches[0][0] == TRUE:
        return branches[0][1]
    if not branches:
        return node.otherwise
    return node if branches == node.branches else Case(branches, node.otherwise, node.type)


_FOLDED: Final[Mapping[type, Callable[[Any], Scalar]]] = {Call: _call, Case: _case, Cast: _cast}


def _computed(node: Call) -> Scalar:
    """The literal of a call over two literals of exact types, or the call itself."""
    match node.arguments:
        case (Literal(value=dt.datetime() as moment), Literal(value=tuple() as interval)) if node.type == TIMESTAMP:
            sign = {"add": 1, "sub": -1}[node.function]
            shifted = _shifted(moment, *(sign * part for part in interval))
            return node if shifted is None else Literal(shifted, TIMESTAMP)
        case (Literal(value=int() | Decimal() as left), Literal(value=int() | Decimal() as right)):
            pass
        case _:
            return node
    if (
        isinstance(left, bool)
        or isinstance(right, bool)
        or not (Decimal(left).is_finite() and Decimal(right).is_finite())
    ):
        return node
    if node.function in COMPARISONS:
        return TRUE if COMPARISONS[node.function](left, right) else FALSE
    if node.function not in ARITHMETIC:
        return node
    if node.type.name in LIMITS and isinstance(left, int) and isinstance(right, int):
        value = ARITHMETIC[node.function](left, right)
        return Literal(value, node.type) if fits(value, node.type.name) else node
    if node.type.name == "numeric":
        return _numeric(node, Decimal(left), Decimal(right))
    return node


def _shifted(moment: dt.datetime, months: int, days: int, micros: int) -> dt.datetime | None:
    """timestamp + interval as PostgreSQL adds: months first, cut to the month's last day, then days, then the rest."""
    month = moment.year * 12 + moment.month - 1 + months
    year, month = month // 12, month % 12 + 1
    if not dt.MINYEAR <= year <= dt.MAXYEAR:
        return None
    day = min(moment.day, calendar.monthrange(year, month)[1])
    try:
        return moment.replace(year=year, month=month, day=day) + dt.timedelta(days=days, microseconds=micros)
    except OverflowError:
        return None


def _numeric(node: Call, left: Decimal, right: Decimal) -> Scalar:
    operation = {"add": _EXACT.add, "sub": _EXACT.subtract, "mul": _EXACT.multiply}[node.function]
    value = _fitted(operation(left, right), node.type)
    return node if value is None else Literal(value, node.type)


def _fitted(value: Decimal, sql_type: SqlType) -> Decimal | None:
    """The value at the type's scale; None where digits would be lost."""
    context = Context(prec=sql_type.precision, traps=[Inexact, InvalidOperation])
    try:
        return value.quantize(Decimal(1).scaleb(-sql_type.scale), context=context)
    except (Inexact, InvalidOperation):
        return None

"""d::timestamp < t  =  d < t::date   for a date d and a constant timestamp t; so too for the other comparisons.

PostgreSQL makes a timestamp of ``date '1998-12-01' - interval '90' day``, and so of the date column compared with
it. As dates, both engines compare without converting each row, and skip blocks of files by their statistics.
``<`` becomes ``<=`` and ``>=`` becomes ``>`` where t is within a day:

    d::timestamp >= '1998-09-02 12:00'   =   d > '1998-09-02'
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from catalog.values.types import BOOL, DATE, TIMESTAMP
from planner.algebra.nodes import Call, Cast, Literal, Scalar
from planner.algebra.walk import kinds_of
from planner.rules.node_rule import node_rule

#: The comparison with the day instead: where t is its first instant, and where it is later.
_AT_MIDNIGHT: Final = {"lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "eq": "eq", "ne": "ne"}
_WITHIN_DAY: Final = {"lt": "le", "le": "le", "gt": "gt", "ge": "gt"}
_MIRRORED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


@node_rule(kinds_of(Cast), Call)
def compare_dates(node: Any) -> Any:
    """Comparisons of dates with constant timestamps as comparisons of dates."""
    match node:
        case Call(function=function, arguments=(Literal() as constant, Cast() as other)) if function in _MIRRORED:
            return _as_dates(_MIRRORED[function], other, constant) or node
        case Call(function=function, arguments=(Cast() as other, Literal() as constant)) if function in _MIRRORED:
            return _as_dates(function, other, constant) or node
        case _:
            return node


def _as_dates(function: str, other: Cast, constant: Literal) -> Scalar | None:
    value = constant.value
    if other.type != TIMESTAMP or other.argument.type != DATE or not isinstance(value, dt.datetime):
        return None
    day = (_AT_MIDNIGHT if value.time() == dt.time() else _WITHIN_DAY).get(function)
    return None if day is None else Call(day, (other.argument, Literal(value.date(), DATE)), BOOL)

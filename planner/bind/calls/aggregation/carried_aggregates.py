"""Aggregates of types whose values are carried by another type, computed over the carrier.

    sum(money)        money_of_cents(sum(money_cents(x)))
    max(inet)         net_ordered(max(net_order(x)))         likewise min, and of the other types of ``KEYED``

Owns: the conversion before the aggregate and the one after it. The aggregate in between is one of the engine's own, so
that streams are maintained with it, too.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from catalog.values.opaque import KEYED
from catalog.values.types import INT8, TEXT, SqlType, numeric
from planner.algebra.nodes import AggregateCall, Call, Scalar, WindowCall
from planner.lowering.orders import order_key

_Aggregate = TypeVar("_Aggregate", AggregateCall, WindowCall)


def over_carriers(call: _Aggregate) -> _Aggregate:
    """The call over what carries its values."""
    if call.function == "sum" and call.type.name == "money":
        return replace(call, arguments=(Call("money_cents", call.arguments, INT8),), type=numeric(38, 0))
    if call.function in ("min", "max") and call.type.name in KEYED:
        return replace(call, arguments=(order_key(call.arguments[0]),), type=TEXT)
    return call


def of_carriers(found: Scalar, kind: SqlType) -> Scalar:
    """The result of a call over carriers, as a value of the call's type."""
    if found.type == kind:
        return found
    name = "money_of_cents" if kind.name == "money" else f"{KEYED[kind.name]}_ordered"
    return Call(name, (found,), kind)

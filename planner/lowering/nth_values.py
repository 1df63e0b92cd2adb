"""nth_value with a computed number, for an engine that accepts constants only.

nth_value(x, n)    the element n of array_agg(x) over the same frame, an error where n is below one
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from catalog.values.types import array
from planner.algebra.construction import Fresh
from planner.algebra.nodes import Call, Column, ColumnRef, Project, Scalar, Window, WindowCall
from planner.lowering.aggregates import Calls
from planner.rules.row_order.compute_ntile import checked
from planner.rules.row_order.number_rows import is_constant


def nth_values(node: Any, fresh: Fresh) -> Any:
    """A window without its nth_value calls by computed numbers, and the values of these above it."""
    if not isinstance(node, Window) or not any(_is_computed(call) for _, call in node.calls):
        return node
    made = Calls(fresh)
    kept: list[tuple[Column, WindowCall]] = []
    outputs: list[tuple[Column, Scalar]] = []
    for column, call in node.calls:
        if _is_computed(call):
            outputs.append((column, _element(call, made)))
        else:
            kept.append((column, call))
            outputs.append((column, ColumnRef(column)))
    passed = ((column, ColumnRef(column)) for column in node.input.columns)
    return Project(replace(node, calls=(*kept, *made.pairs)), (*passed, *outputs))


def _is_computed(call: WindowCall) -> bool:
    return call.function == "nth_value" and not is_constant(call.arguments[1])


def _element(call: WindowCall, made: Calls) -> Scalar:
    value, number = call.arguments
    gathered = replace(call, function="array_agg", arguments=(value,), type=array(call.type))
    values = ColumnRef(made.column("values", gathered))
    return checked(call, number, Call("subscript", (values, number), call.type))

"""Filter(R, x = ANY (a) AND p)  =  Filter(R, a has x AND p);  so too in the predicate of an inner or semi join.

Where NULL is as good as false, the engine's own look-up in a list serves, which it can use to skip blocks of a table.
Anywhere else the difference counts:

    SELECT 2 = ANY (ARRAY[1, NULL])      -- NULL, though the array does not have it
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from planner.algebra.construction import conjunction, conjuncts
from planner.algebra.nodes import Call, Filter, Join, Literal, Scalar
from planner.algebra.walk import calls_of
from planner.rules.node_rule import node_rule


@node_rule(calls_of("any"), Filter, Join)
def look_up_arrays(node: Any) -> Any:
    """The relation with tests for equality with any element of an array as look-ups."""
    match node:
        case Filter(predicate=predicate) | Join(kind="inner" | "semi", predicate=predicate) if predicate is not None:
            parts = list(conjuncts(predicate))
            changed = list(map(_look_up, parts))
            if changed == parts:
                return node
            return replace(node, predicate=conjunction(changed))  # no part is lost
        case _:
            return node


def _look_up(part: Scalar) -> Scalar:
    match part:
        case Call(function="any", arguments=(Literal(value="eq"), value, items)):
            return Call("array_has", (value, items), part.type)
        case _:
            return part

"""What is computed a second time for some of its columns: less of it, and only where that gives the same rows.

Owns: ``narrowed``, which leaves out what does not matter to the distinct values of some columns, and
``require_repeatable``: what takes some of equal rows, or adds floating point numbers up in any order, may give others.
"""

from __future__ import annotations

from typing import Final

from planner.algebra.construction import filtered, volatility
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Column,
    ColumnRef,
    Delta,
    Filter,
    Join,
    Limit,
    Project,
    Relation,
    Scalar,
    Scan,
    Sort,
    Window,
    WindowCall,
)
from planner.algebra.walk import inputs, used_columns, walk
from planner.rules.subqueries.correlation import refuse

#: Aggregates that do not depend on the order of their input, for all types.
_UNORDERED: Final = frozenset(("count", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"))
#: Window functions that give peers equal values.
_OF_PEERS: Final = _UNORDERED | {"rank", "dense_rank", "percent_rank", "cume_dist"}
#: Aggregates that show the order of their input, or what comes first in it.
_GATHERING: Final = frozenset(
    (
        "string_agg",
        "array_agg",
        "json_agg",
        "jsonb_agg",
        "json_object_agg",
        "jsonb_object_agg",
        "mode",
        "min_by",
        "max_by",
    )
)
_FLOATS: Final = frozenset(("float4", "float8"))


def narrowed(relation: Relation, needed: set[Column]) -> Relation:
    """A relation with the same distinct tuples of some columns, made of less."""
    above: list[Scalar] = []
    while True:
        match relation:
            case Sort():
                pass
            case Filter():
                above.append(relation.predicate)
                needed = needed | used_columns(relation.predicate)
            case Window() if needed <= set(relation.input.columns):
                pass
            case Project() if all(value == ColumnRef(column) for column, value in relation.outputs if column in needed):
                pass
            case Join(kind="left") if needed <= set(relation.left.columns):
                relation = relation.left
                continue
            case _:
                return filtered(relation, reversed(above))
        relation = relation.input


def require_repeatable(relation: Relation) -> None:
    """Raises 0A000 for a relation that may have other rows when it is computed again."""
    if volatility(relation) == "volatile":
        raise refuse("beside a volatile function")
    stack = [relation]
    while stack:
        node = stack.pop()
        if isinstance(node, Delta) or (isinstance(node, Scan) and node.arrives):
            raise refuse("of a stream's rows")
        stack.extend(() if isinstance(node, Aggregate) else inputs(node))
    for item in walk(relation):
        match item:
            case Limit():
                raise refuse("over a limit's rows")
            case WindowCall() if item.function not in _OF_PEERS or item.mode == "rows":
                raise refuse("over a window's rows")
            case AggregateCall() if item.function not in _UNORDERED and not _is_exact(item):
                raise refuse("over an aggregate that depends on the order of its input")
            case _:
                pass


def _is_exact(call: AggregateCall) -> bool:
    """Whether an aggregate gives the same for its rows in any order."""
    kinds = {call.type.name, *(item.type.name for item in call.arguments)}
    return bool(call.arguments) and not call.order_by and call.function not in _GATHERING and kinds.isdisjoint(_FLOATS)

"""Groupings that a unique key makes needless: each of their groups has one row.

    G(R; k, ..; count(*), min(x))  =  R with 1 for count(*) and x for min(x)        k is a unique key of R without NULLs

So is DISTINCT over columns with such a key, and a subquery that finds a row by its key, which without the rule counts
the rows of each key. No groups are kept then, and a change of R goes through as it is.

Guard: the aggregates are count, min, max, and those of booleans, and sums of small integers, of which the value of one
row is known. A key column of the grouping that may be NULL is none of the unique key: two NULLs are one group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from catalog.values.types import BOOL, INT8
from planner.algebra.construction import conjunction, has_subquery
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Case,
    Cast,
    ColumnRef,
    Literal,
    Project,
    Relation,
    Scalar,
)
from planner.algebra.nulls import never_null
from planner.algebra.walk import kinds_of, transform_relations
from planner.incremental.dataflow.facts import Simpler, Tables, is_key

_GROUPINGS: Final = kinds_of(Aggregate)

#: Aggregates whose value over one row is its argument.
_OF_ONE: Final = frozenset(("min", "max", "bool_and", "bool_or"))
#: Arguments of sums that are as wide as they are over many rows, by the type of the sum.
_ADDED: Final[Mapping[str, tuple[str, ...]]] = {"int8": ("int2", "int4")}


def without_known_groups(relation: Relation, tables: Tables) -> Simpler | None:
    """The relation without such groupings; None where it has none."""
    left_out: list[str] = []

    def change(node: Any) -> Any:
        found = one_row_each(node, tables) if isinstance(node, Aggregate) else None
        if found is None:
            return node
        names = ", ".join(column.name for column, _ in node.keys)
        left_out.append(f"grouping by {names}: each group has one row by a unique key")
        return found

    changed = transform_relations(relation, change, _GROUPINGS)
    return Simpler(changed, tuple(left_out)) if left_out else None


def one_row_each(node: Aggregate, tables: Tables) -> Project | None:
    """The grouping as a projection; None where the guard does not hold."""
    if any(has_subquery(value) for _, value in (*node.keys, *node.aggregates)):
        return None
    sure = never_null(node.input)
    known = [value.column for _, value in node.keys if isinstance(value, ColumnRef) and value.column in sure]
    values = [_value(call) for _, call in node.aggregates]
    if not known or not is_key(tables, node.input, known):
        return None
    outputs = [(column, value) for (column, _), value in zip(node.aggregates, values, strict=True) if value is not None]
    return None if len(outputs) < len(values) else Project(node.input, (*node.keys, *outputs))


def _value(call: AggregateCall) -> Scalar | None:
    """An aggregate's value over one row; None where that is not known."""
    asked = [] if call.filter is None else [call.filter]
    match call:
        case AggregateCall(function="count", arguments=arguments) if len(arguments) <= 1:
            asked += [Call("is_not_null", (item,), BOOL) for item in arguments]
            one, none = Literal(1, INT8), Literal(0, INT8)
            condition = conjunction(asked)
            return one if condition is None else Case(((condition, one),), none, INT8)
        case AggregateCall(function=function, arguments=(argument,)):
            value = _one(function, argument, call)
        case _:
            return None
    if value is None or not asked:
        return value
    return Case(((asked[0], value),), Literal(None, call.type), call.type)


def _one(function: str, argument: Scalar, call: AggregateCall) -> Scalar | None:
    if function in _OF_ONE and argument.type == call.type:
        return argument
    if function == "sum" and argument.type.name in _ADDED.get(call.type.name, ()):
        return Cast(argument, call.type)
    return None

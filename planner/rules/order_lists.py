"""Aggregates that list the rows of an ordered query list them in its order, wherever it goes.

    Aggregate(Sort(R, k), array_agg(x))                =  Aggregate(Sort(R, k), array_agg(x ORDER BY k))
    Aggregate(Project(Sort(R, k), x), array_agg(x))    =  Aggregate(Project(Sort(R, k), x, k), array_agg(x ORDER BY k))

So too through Filter, Limit and Unnest, whose places come last. A join keeps no order, so this comes before subqueries
become joins.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from catalog.types import INT8
from planner.algebra import Aggregate, Filter, Limit, Project, Relation, Sort, SortKey, Unnest
from planner.expression import AggregateCall, ColumnRef
from planner.rules.support import Fresh
from planner.walk import transform

#: Aggregates whose result depends on the order of their input.
LISTS: Final = frozenset(
    ("string_agg", "array_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg"),
)


def takes_order(call: AggregateCall) -> bool:
    """Whether an aggregate has the order of its input."""
    return call.function in LISTS and not call.order_by and not call.distinct


def order_lists(relation: Relation) -> Relation:
    """The relation with such orders written into the aggregates."""
    fresh = Fresh(relation)

    def change(node: Any) -> Any:
        if not isinstance(node, Aggregate) or not any(takes_order(call) for _, call in node.aggregates):
            return node
        found = _ordered(node.input, fresh)
        if found is None:
            return node
        source, keys = found
        calls = (
            (column, replace(call, order_by=keys) if takes_order(call) else call) for column, call in node.aggregates
        )
        return replace(node, input=source, aggregates=tuple(calls))

    result: Relation = transform(relation, change)
    return result


def _ordered(relation: Relation, fresh: Fresh) -> tuple[Relation, tuple[SortKey, ...]] | None:
    """The relation, with more columns perhaps, and the keys over them that it is in the order of."""
    match relation:
        case Sort():
            return relation, relation.keys
        case Filter() | Limit():
            found = _ordered(relation.input, fresh)
            return None if found is None else (replace(relation, input=found[0]), found[1])
        case Project():
            found = _ordered(relation.input, fresh)
            if found is None:
                return None
            source, keys = found
            columns = [fresh.column("key", key.expression.type) for key in keys]
            shown = tuple((column, key.expression) for column, key in zip(columns, keys, strict=True))
            above = (replace(key, expression=ColumnRef(column)) for column, key in zip(columns, keys, strict=True))
            return Project(source, (*relation.outputs, *shown)), tuple(above)
        case Unnest():
            found = _ordered(relation.input, fresh)
            if found is None:
                return None
            place = relation.ordinality or fresh.column("place", INT8, False)
            return replace(relation, input=found[0], ordinality=place), (*found[1], SortKey(ColumnRef(place)))
        case _:
            return None

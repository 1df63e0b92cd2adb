"""Aggregates that list the rows of an ordered query list them in its order, wherever an engine has its rows.

    Aggregate(Sort(R, k), array_agg(x))                =  Aggregate(R, array_agg(x ORDER BY k))
    Aggregate(Project(Sort(R, k), x), array_agg(x))    =  Aggregate(Project(R, x, k), array_agg(x ORDER BY k))

So too through Filter, Limit, Unnest, whose places come last, windows over all rows as they come, copies of each row
(for grouping sets), and references to a definition of WITH. The sort stays where something else may see it: below a
limit, such a window, a volatile call, and in a definition. Engines promise no order of a subquery's rows (one that
computes in parallel has none), and a join keeps none, so this comes before subqueries become joins.
"""

from __future__ import annotations

from typing import Any, Final, TypeGuard

from msgspec.structs import replace

from catalog.values.types import INT8
from planner.algebra.construction import Fresh, volatility
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Column,
    ColumnRef,
    Filter,
    Join,
    Limit,
    Project,
    Relation,
    Snapshot,
    Sort,
    SortKey,
    Unnest,
    Values,
    Window,
    With,
)
from planner.algebra.walk import calls_of, children, contains, kinds_of, transform_relations

#: Aggregates whose result depends on the order of their input.
LISTS: Final = frozenset(
    ("string_agg", "array_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg"),
)
_Found = tuple[Relation, tuple[SortKey, ...]]


def order_lists(relation: Relation) -> Relation:
    """The relation with such orders written into the aggregates."""
    if not contains(relation, calls_of(*LISTS)):
        return relation
    orders = _Orders(relation)
    if not isinstance(relation, With):
        return transform_relations(relation, orders.change, kinds_of(Aggregate))
    for name, definition in relation.definitions:
        orders.known[name] = transform_relations(definition, orders.change, kinds_of(Aggregate))
    body = transform_relations(relation.body, orders.change, kinds_of(Aggregate))
    definitions = tuple(orders.known.items())
    same = body is relation.body and all(
        new is old for (_, new), (_, old) in zip(definitions, relation.definitions, strict=True)
    )
    return relation if same else With(definitions, body)


def _takes_order(call: AggregateCall) -> bool:
    """Whether an aggregate has the order of its input."""
    return call.function in LISTS and not call.order_by and not call.distinct


def _copies(relation: Relation) -> TypeGuard[Join]:
    """Whether each row of an input comes as often as literal rows say: for grouping sets, windows that overlap."""
    return isinstance(relation, Join) and relation.kind == "inner" and isinstance(relation.right, Values)


class _Orders:
    """The orders of one plan's relations; ``known`` are its definitions, with the columns that theirs are by."""

    def __init__(self, relation: Relation) -> None:
        self._fresh = Fresh(relation)
        self.known: dict[str, Relation] = {}
        self._keys: dict[str, tuple[SortKey, ...]] = {}

    def change(self, node: Any) -> Any:
        """An aggregate of an ordered relation with its order; any other node as it is."""
        if not isinstance(node, Aggregate) or not any(_takes_order(call) for _, call in node.aggregates):
            return node
        found = self._ordered(node.input)
        if found is None:
            return node
        source, keys = found
        calls = (
            (column, replace(call, order_by=keys) if _takes_order(call) else call) for column, call in node.aggregates
        )
        return replace(node, input=source, aggregates=tuple(calls))

    def _ordered(self, relation: Relation) -> _Found | None:
        """The relation's rows in any order, with more columns perhaps, and the keys over them that it is ordered by."""
        above: list[Relation] = []
        while isinstance(relation, Filter | Limit | Project | Unnest | Window) or _copies(relation):
            above.append(relation)
            relation = relation.left if isinstance(relation, Join) else relation.input
        found = self._source(relation)
        for node in reversed(above):
            found = None if found is None else self._passed(node, found)
        return found

    def _source(self, relation: Relation) -> _Found | None:
        """What rows come in an order, the lowest that can."""
        match relation:
            case Sort(input=source, keys=keys) if all(isinstance(key.expression, ColumnRef) for key in keys):
                return source, keys
            case Sort(input=source, keys=keys):  # an engine may not take any expression as an aggregate's key
                return self._with_keys(source, source.columns, keys)
            case Snapshot(trace=name) if name in self.known:
                return self._reference(relation)
            case _:
                return None

    def _passed(self, node: Relation, found: _Found) -> _Found | None:
        """What a relation above hands on of an order."""
        source, keys = found
        if isinstance(node, Limit | Window) or any(volatility(item) == "volatile" for item in children(node)[1:]):
            source = Sort(source, keys)
        match node:
            case Filter() | Limit():
                return replace(node, input=source), keys
            case Join():
                return replace(node, left=source), keys
            case Project():
                outputs, above = self._shown(keys)
                return Project(source, (*node.outputs, *outputs)), above
            case Unnest():
                place = node.ordinality or self._fresh.column("place", INT8, False)
                return replace(node, input=source, ordinality=place), (*keys, SortKey(ColumnRef(place)))
            case Window() if not any(call.order_by or call.partition for _, call in node.calls):
                return replace(node, input=source), keys
            case _:
                return None

    def _with_keys(self, source: Relation, columns: tuple[Column, ...], keys: tuple[SortKey, ...]) -> _Found:
        """Columns of a relation beside its keys, made columns too."""
        outputs, above = self._shown(keys)
        return Project(source, (*((column, ColumnRef(column)) for column in columns), *outputs)), above

    def _shown(self, keys: tuple[SortKey, ...]) -> tuple[tuple[tuple[Column, Any], ...], tuple[SortKey, ...]]:
        """Outputs that keep keys, and the keys over these."""
        outputs = tuple((self._fresh.column("key", key.expression.type), key.expression) for key in keys)
        above = (replace(key, expression=ColumnRef(column)) for key, (column, _) in zip(keys, outputs, strict=True))
        return outputs, tuple(above)

    def _reference(self, node: Snapshot) -> _Found | None:
        """A definition's rows with the keys of its order, which it shows once they are read."""
        name = node.trace
        if name not in self._keys:
            found = self._ordered(self.known[name])
            if found is not None:
                columns = self.known[name].columns
                self.known[name], self._keys[name] = self._with_keys(Sort(*found), columns, found[1])
        if name not in self._keys:
            return None
        below = self.known[name].columns[-len(self._keys[name]) :]
        own = tuple(map(self._fresh.copy, below))
        keys = (replace(key, expression=ColumnRef(column)) for key, column in zip(self._keys[name], own, strict=True))
        sources = (*node.sources, *(f"c{column.id}" for column in below))
        return Snapshot(name, (*node.columns, *own), sources), tuple(keys)

"""A grouping's rows, read back from its states.

    keyed        Project(Snapshot(main), keys and finalised aggregates)
    one group    Project(Aggregate(Snapshot(main), (), merges), finalised aggregates)
    children     ... left join Aggregate(Snapshot(child), keys, call) on keys that are not distinct

A snapshot of a keyed state is merged by key already. Without keys it has one row or none, and the aggregate makes it
one: count 0, other aggregates NULL. The main state has every group, so that one without values in a child is there too.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import reduce
from itertools import chain

from planner.algebra.construction import Fresh, conjunction, same_group
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Column,
    ColumnRef,
    Join,
    Literal,
    Project,
    Relation,
    Scalar,
    SetOperation,
    Snapshot,
    SortKey,
)
from planner.algebra.signature import key_of
from planner.algebra.walk import descend
from planner.incremental.methods.split.groupings import Grouping, Source, Values
from planner.incremental.names import stored_name


def read(grouping: Grouping, fresh: Fresh) -> Relation:
    """The grouping's rows under its own columns; leaves get new columns each time."""
    reader = _Reader(grouping, fresh)
    return reader.relation()


class _Reader:
    def __init__(self, grouping: Grouping, fresh: Fresh) -> None:
        self._grouping = grouping
        self._fresh = fresh
        self._width = len(grouping.aggregate.keys)

    def relation(self) -> Relation:
        """Main, its children beside it, and the finalisers above."""
        relations: list[Relation] = []
        keys: tuple[Column, ...] = ()
        results: dict[Column, Scalar] = {}
        if self._grouping.sources:
            main = self._main(results)
            keys = main.columns[: self._width]
            relations.append(main)
        for values in self._grouping.children:
            relations.append(self._child(values, results))
        joined = reduce(lambda left, right: self._beside(left, right, keys), relations)
        aggregate = self._grouping.aggregate
        key_outputs = ((column, ColumnRef(key)) for (column, _), key in zip(aggregate.keys, keys, strict=True))
        outputs = ((column, results[column]) for column, _ in aggregate.aggregates)
        return Project(joined, tuple(chain(key_outputs, outputs)))

    def _main(self, results: dict[Column, Scalar]) -> Relation:
        """One row per group with merged state columns; the split aggregates' results over them."""
        main = self._grouping.main
        relation = self._snapshot(self._grouping.sources)
        if not self._width or len(self._grouping.sources) > 1:
            keys, columns = relation.columns[: self._width], relation.columns[self._width :]
            merges = tuple(
                (self._fresh.copy(column), item.merge(column)) for item, column in zip(main, columns, strict=True)
            )
            relation = Aggregate(relation, self._copied(keys), merges)
        merged = {
            item.key: self._count_or(item.fill, ColumnRef(column))
            for item, column in zip(main, relation.columns[self._width :], strict=True)
        }
        for column, part in self._grouping.splits.items():
            results[column] = part.finalise([merged[item.key] for item in part.columns])
        return relation

    def _count_or(self, fill: AggregateCall, value: Scalar) -> Scalar:
        """A merged count: the sum over no state is NULL, and a count is 0 then."""
        if fill.function != "count" or self._width:
            return value
        return Call("coalesce", (value, Literal(0, value.type)), value.type)

    def _child(self, values: Values, results: dict[Column, Scalar]) -> Relation:
        """The aggregates over a child state, by group."""
        relation = self._snapshot(values.sources)
        if not values.child.collects and len(values.sources) > 1:
            relation = Aggregate(relation, self._copied(relation.columns), ())
        stored = relation.columns[self._width :]
        places: dict[Hashable, Scalar] = {
            key_of(value): ColumnRef(column) for value, column in zip(values.child.values, stored, strict=False)
        }
        arrival = [SortKey(ColumnRef(column)) for column in stored[len(places) :]]
        calls: list[tuple[Column, AggregateCall]] = []
        for column, call in values.calls:
            own = self._fresh.copy(column)
            calls.append((own, self._over(call, places, arrival if values.child.collects else [])))
            reference: Scalar = ColumnRef(own)
            counts = call.function == "count" and self._width
            results[column] = Call("coalesce", (reference, Literal(0, own.type)), own.type) if counts else reference
        return Aggregate(relation, self._copied(relation.columns[: self._width]), tuple(calls))

    def _over(self, call: AggregateCall, places: dict[Hashable, Scalar], arrival: list[SortKey]) -> AggregateCall:
        """The call over stored values; those collected come in the user's order, then as they arrived."""

        def stored(item: Scalar) -> Scalar:
            found: Scalar = descend(item, lambda part: places.get(key_of(part), part))
            return found

        arguments = tuple(map(stored, call.arguments))
        order = tuple(SortKey(stored(key.expression), key.descending, key.nulls_first) for key in call.order_by)
        return AggregateCall(call.function, arguments, call.type, order_by=(*order, *arrival))

    def _snapshot(self, sources: tuple[Source, ...]) -> Relation:
        """All rows of a state, whose arms have one trace each."""
        relations = [self._rows(item) for item in sources]

        def union(left: Relation, right: Relation) -> Relation:
            return SetOperation("union", True, left, right, tuple(map(self._fresh.copy, left.columns)))

        return reduce(union, relations)

    def _rows(self, source: Source) -> Relation:
        if source.computed is not None:
            return self._fresh.rename(source.computed)[0]
        columns = tuple(map(self._fresh.copy, source.columns))
        return Snapshot(source.trace, columns, tuple(map(stored_name, source.columns)))

    def _copied(self, columns: tuple[Column, ...]) -> tuple[tuple[Column, Scalar], ...]:
        return tuple((self._fresh.copy(column), ColumnRef(column)) for column in columns)

    def _beside(self, left: Relation, right: Relation, keys: tuple[Column, ...]) -> Relation:
        """A child's results beside the groups; without keys both have exactly one row."""
        if not self._width:
            return Join("inner", left, right, None)
        pairs = zip(keys, right.columns[: self._width], strict=True)
        same = (same_group(ColumnRef(key), ColumnRef(other)) for key, other in pairs)
        return Join("left", left, right, conjunction(same))

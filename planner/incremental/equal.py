"""Equal subtrees, whatever their columns are called.

Owns ``signature``: two relations have the same one exactly when a renaming of the columns that they produce makes them
equal. (A CTE that is read twice is bound twice, with columns of its own each time.)
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields, replace
from typing import Any

from planner.algebra import Aggregate, Project, Relation
from planner.expression import Column, ColumnRef
from planner.pipelines import Kinds, is_grouping
from planner.rules.support import Fresh, rename_columns
from planner.walk import NODES, RELATIONS, Node, transform, walk


def signature(relation: Relation) -> tuple[Hashable, tuple[Column, ...]]:
    """What a relation is but for its columns' identities, and those columns in order of appearance."""
    numbers: dict[Column, int] = {}
    for node in walk(relation):
        if isinstance(node, RELATIONS):
            for column in node.columns:
                numbers.setdefault(column, len(numbers))
    return tuple(_entry(node, numbers) for node in walk(relation)), tuple(numbers)


def _entry(node: Node, numbers: dict[Column, int]) -> tuple[Hashable, ...]:
    return type(node).__name__, *(_plain(getattr(node, item.name), numbers) for item in fields(node))


def _plain(value: Any, numbers: dict[Column, int]) -> Hashable:
    """A field's value with columns as numbers and nodes left out (they follow, parents first)."""
    if isinstance(value, Column):
        return (numbers.get(value, ("free", value.id)), value.type)
    if isinstance(value, NODES):
        return "node"
    if isinstance(value, tuple):
        return tuple(_plain(item, numbers) for item in value)
    return type(value).__name__, value if isinstance(value, Hashable) else repr(value)


@dataclass(slots=True)
class _Shared:
    """Groupings with the same input and keys: the first of them, with the aggregates of all."""

    first: Aggregate
    columns: tuple[Column, ...]  # of the first, in order of appearance
    members: list[tuple[Aggregate, dict[Column, Column]]]  # the others, with what their columns are in the first


def share_groupings(relation: Relation) -> Relation:
    """The plan with each grouping of a stream that it computes several times written alike, columns included.

    The first one gets the aggregates of all; in the others' places stand projections of it under their own columns.
    To be run before columns are pruned, which makes equal subtrees differ."""
    kinds = Kinds()
    found: dict[Hashable, _Shared] = {}
    for node in walk(relation):
        if is_grouping(node, kinds):
            assert isinstance(node, Aggregate)
            key, columns = signature(replace(node, aggregates=()))
            shared = found.setdefault(key, _Shared(node, columns, []))
            if shared.first is not node:
                shared.members.append((node, dict(zip(columns, shared.columns, strict=True))))
    replacements: dict[int, Relation] = {}
    fresh = Fresh(relation)
    for shared in found.values():
        if shared.members:
            replacements.update(_merged(shared, fresh))
    result: Relation = transform(relation, lambda node: replacements.get(id(node), node))
    return result


def _merged(shared: _Shared, fresh: Fresh) -> dict[int, Relation]:
    """What stands in the place of each member, by the member's id."""
    calls = {call: column for column, call in reversed(shared.first.aggregates)}
    aggregates = list(shared.first.aggregates)
    outputs: list[tuple[Aggregate, list[tuple[Column, Column]]]] = []
    for member, mapping in shared.members:
        pairs = [(column, mapping[column]) for column, _ in member.keys]
        for column, call in member.aggregates:
            own = rename_columns(call, mapping)
            if own not in calls:
                calls[own] = fresh.copy(column)
                aggregates.append((calls[own], own))
            pairs.append((column, calls[own]))
        outputs.append((member, pairs))
    merged = replace(shared.first, aggregates=tuple(aggregates))
    result: dict[int, Relation] = {
        id(shared.first): _under(shared.first, merged, [(c, c) for c in shared.first.columns])
    }
    result.update((id(member), _under(member, merged, pairs)) for member, pairs in outputs)
    return result


def _under(member: Aggregate, merged: Aggregate, pairs: list[tuple[Column, Column]]) -> Relation:
    assert tuple(column for column, _ in pairs) == member.columns
    if member.columns == merged.columns:
        return merged
    return Project(merged, tuple((column, ColumnRef(source)) for column, source in pairs))

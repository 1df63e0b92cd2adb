"""A grouping that a plan computes several times, written once.

A CTE that is read twice is bound twice (TPC-H query 15), and both must read one state.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from planner.algebra.construction import Fresh, rename_columns
from planner.algebra.identity import NodeMap, replaced
from planner.algebra.nodes import Aggregate, Column, ColumnRef, Project, Relation
from planner.algebra.signature import key_of, signature
from planner.algebra.walk import descend, walk
from planner.incremental.properties import Kinds, is_grouping


class _Shared(Struct):
    """Groupings with the same input and keys: the first of them, with the aggregates of all."""

    first: Aggregate
    columns: tuple[Column, ...]  # of the first, in order of appearance
    members: list[tuple[Aggregate, dict[Column, Column]]]  # the others, with what their columns are in the first


def share_groupings(relation: Relation) -> Relation:
    """The plan with each grouping of a stream that it computes several times written alike, columns included.

    The first one gets the aggregates of all; in the others' places stand projections of it under their own columns.
    Outer groupings are replaced before those within them: a grouping that is read below another one would otherwise
    leave two copies of the outer one, alike but for the inner one's columns. To be run before columns are pruned, which
    makes equal subtrees differ.
    """
    kinds = Kinds()
    found: dict[Hashable, _Shared] = {}
    for node in walk(relation):
        if is_grouping(node, kinds):
            assert isinstance(node, Aggregate)
            key, columns = signature(replace(node, aggregates=()))
            shared = found.setdefault(key, _Shared(node, columns, []))
            if shared.first is not node:
                shared.members.append((node, dict(zip(columns, shared.columns, strict=True))))
    replacements = NodeMap[Relation]()
    fresh = Fresh(relation)
    for shared in found.values():
        if shared.members:
            for member, merged in _merged(shared, fresh):
                replacements[member] = merged
    result: Relation = descend(relation, lambda node: replaced(replacements, node))
    return result


def _merged(shared: _Shared, fresh: Fresh) -> Iterator[tuple[Relation, Relation]]:
    """Each member, and what stands in its place."""
    calls = {key_of(call): column for column, call in reversed(shared.first.aggregates)}
    aggregates = list(shared.first.aggregates)
    outputs: list[tuple[Aggregate, list[tuple[Column, Column]]]] = []
    for member, mapping in shared.members:
        pairs = [(column, mapping[column]) for column, _ in member.keys]
        for column, call in member.aggregates:
            own = rename_columns(call, mapping)
            key = key_of(own)
            if key not in calls:
                calls[key] = fresh.copy(column)
                aggregates.append((calls[key], own))
            pairs.append((column, calls[key]))
        outputs.append((member, pairs))
    merged = replace(shared.first, aggregates=tuple(aggregates))
    yield shared.first, _under(shared.first, merged, [(c, c) for c in shared.first.columns])
    for member, pairs in outputs:
        yield member, _under(member, merged, pairs)


def _under(member: Aggregate, merged: Aggregate, pairs: list[tuple[Column, Column]]) -> Relation:
    assert tuple(column for column, _ in pairs) == member.columns
    if member.columns == merged.columns:
        return merged
    return Project(merged, tuple((column, ColumnRef(source)) for column, source in pairs))

"""Project(R, f) = Project(R, f without outputs that nobody uses); so too for leaves, literal rows, aggregates
and windows.

A column's identity is unique, so it is needed exactly when some expression refers to it, or when a place that goes by
position (the root, a set operation, a subquery's value) holds it. Rounds go on until nothing more falls away.
Keys of an aggregate stay, for they decide its rows. A leaf keeps one column at least, for engines have no rows without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from planner.algebra import (
    Aggregate,
    Delta,
    Fixpoint,
    Project,
    Relation,
    Scan,
    SetOperation,
    Snapshot,
    Unnest,
    Values,
    Window,
    With,
)
from planner.expression import Column, ColumnRef, InSubquery, ScalarSubquery
from planner.walk import transform_relations, walk


def prune_columns(relation: Relation) -> Relation:
    """The relation without columns that are computed or read for nothing."""
    while True:
        needed = _needed(relation)
        pruned = transform_relations(relation, partial(_prune, needed))
        if pruned is relation:
            return relation
        relation = pruned


def _needed(relation: Relation) -> set[Column]:
    needed = set(relation.columns)
    for node in walk(relation):
        if isinstance(node, ColumnRef):
            needed.add(node.column)
        elif (inputs := _BY_POSITION.get(type(node))) is not None:
            for below in inputs(node):
                needed.update(below.columns)
    return needed


#: The inputs of nodes that go by their columns' places.
_BY_POSITION: Final[Mapping[type[Any], Callable[[Any], tuple[Relation, ...]]]] = {
    SetOperation: lambda node: (node.left, node.right),
    Fixpoint: lambda node: (node.base, node.step),
    With: lambda node: tuple(below for _, below in node.definitions),
    ScalarSubquery: lambda node: (node.relation,),
    InSubquery: lambda node: (node.relation,),
}


def _prune(needed: set[Column], node: Any) -> Any:
    match node:
        case Project(outputs=outputs):
            kept = tuple(item for item in outputs if item[0] in needed) or outputs[:1]
            return node if kept == outputs else replace(node, outputs=kept)
        case Aggregate(keys=keys, aggregates=aggregates):
            used = tuple(item for item in aggregates if item[0] in needed)
            used = used if used or keys else aggregates[:1]
            return node if used == aggregates else replace(node, aggregates=used)
        case Window(calls=calls):
            left = tuple(item for item in calls if item[0] in needed)
            return node if left == calls else replace(node, calls=left) if left else node.input
        case Unnest(ordinality=number) if number is not None and number not in needed:
            return replace(node, ordinality=None)
        case Scan() | Snapshot() | Delta():
            pairs = list(zip(node.columns, node.sources, strict=True))
            kept_pairs = [pair for pair in pairs if pair[0] in needed] or pairs[:1]
            if kept_pairs == pairs:
                return node
            columns, sources = zip(*kept_pairs, strict=True)
            return replace(node, columns=columns, sources=sources)
        case Values(columns=columns, rows=rows) if not set(columns) <= needed:
            places = [place for place, column in enumerate(columns) if column in needed] or [0]
            if len(places) == len(columns):
                return node  # its only column counts its rows
            return Values(
                tuple(columns[place] for place in places), tuple(tuple(row[place] for place in places) for row in rows)
            )
        case _:
            return node

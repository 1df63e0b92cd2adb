"""Project(R, f) = Project(R, f without unused outputs); so too for leaves, literal rows, aggregates and windows.

A column's identity is unique, so it is needed exactly when some expression refers to it, or when a place that goes by
position (the root, a set operation, a subquery's value) holds it. Rounds go on until nothing more falls away.
Keys of an aggregate stay, for they decide its rows. A leaf keeps one column at least, for engines have no rows without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from planner.algebra.nodes import (
    Aggregate,
    Column,
    Delta,
    Project,
    Relation,
    Scan,
    Snapshot,
    Unnest,
    Values,
    Window,
    With,
)
from planner.algebra.walk import (
    BY_POSITION,
    Node,
    children,
    find,
    is_relation,
    kinds_of,
    transform_relations,
    used_columns,
)


def prune_columns(relation: Relation) -> Relation:
    """The relation without columns that are computed or read for nothing."""
    while True:
        pruning = _Pruning(needed_columns(relation))
        pruned = transform_relations(relation, pruning.change)
        if pruned is relation or not pruning.freed:
            return pruned
        relation = pruned


def needed_columns(relation: Relation) -> set[Column]:
    """The columns of a relation, and all that its parts use."""
    needed = set(relation.columns)
    stack: list[Node] = [relation]
    while stack:
        for child in children(stack.pop()):
            if is_relation(child):
                stack.append(child)
            else:
                needed |= used_columns(child)
    for node in find(relation, _POSITIONAL):
        needed.update(*(below.columns for below in _by_position(node)))
    return needed


def _by_position(node: Any) -> tuple[Relation, ...]:
    """The inputs of which a node takes all columns, by their places."""
    if isinstance(node, With):
        return tuple(below for _, below in node.definitions)
    return tuple(getattr(node, name) for name in BY_POSITION[type(node)])


_POSITIONAL: Final = kinds_of(With, *BY_POSITION)


class _Pruning:
    """One round: ``freed`` says whether anything fell away that used columns itself."""

    def __init__(self, needed: set[Column]) -> None:
        self._needed = needed
        self.freed = False

    def change(self, node: Any) -> Any:
        """A relation without unused columns; its inputs are done already."""
        prune = _PRUNED.get(type(node))
        pruned = node if prune is None else prune(node, self._needed)
        self.freed |= pruned is not node and type(node) not in _LEAVES
        return pruned


def _project(node: Project, needed: set[Column]) -> Relation:
    kept = tuple([item for item in node.outputs if item[0] in needed]) or node.outputs[:1]
    return node if len(kept) == len(node.outputs) else replace(node, outputs=kept)


def _aggregate(node: Aggregate, needed: set[Column]) -> Relation:
    used = tuple([item for item in node.aggregates if item[0] in needed])
    used = used if used or node.keys else node.aggregates[:1]
    return node if len(used) == len(node.aggregates) else replace(node, aggregates=used)


def _window(node: Window, needed: set[Column]) -> Relation:
    left = tuple([item for item in node.calls if item[0] in needed])
    return node if len(left) == len(node.calls) else replace(node, calls=left) if left else node.input


def _unnest(node: Unnest, needed: set[Column]) -> Relation:
    return node if node.ordinality is None or node.ordinality in needed else replace(node, ordinality=None)


def _leaf(node: Scan | Snapshot | Delta, needed: set[Column]) -> Relation:
    places = _places(node.columns, needed)
    if len(places) == len(node.columns):
        return node
    columns, sources = (tuple([items[place] for place in places]) for items in (node.columns, node.sources))
    return replace(node, columns=columns, sources=sources)


def _values(node: Values, needed: set[Column]) -> Relation:
    places = _places(node.columns, needed)
    if len(places) == len(node.columns):  # perhaps its only column counts its rows
        return node
    return Values(
        tuple([node.columns[place] for place in places]),
        tuple(tuple([row[place] for place in places]) for row in node.rows),
    )


def _places(columns: tuple[Column, ...], needed: set[Column]) -> list[int]:
    """The places of the columns that stay, of which one does."""
    return [place for place, column in enumerate(columns) if column in needed] or [0][: len(columns)]


_LEAVES: Final = frozenset((Scan, Snapshot, Delta))
_PRUNED: Final[Mapping[type[Any], Callable[[Any, set[Column]], Relation]]] = {
    Project: _project,
    Aggregate: _aggregate,
    Window: _window,
    Unnest: _unnest,
    Values: _values,
    **dict.fromkeys(_LEAVES, _leaf),
}

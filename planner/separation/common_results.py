"""What a plan computes at several places, computed once: there they read one result, a WITH query's.

Owns: which relations are equal though each reads only the columns that it needs (``compute_once``). An engine that gets
the whole plan finds out by itself; one that gets it pipeline by pipeline sees one place at a time.

    Join                              With
      Group ps_partkey                  Once: shared1    Join partsupp, supplier (ps_partkey, ps_cost)
        Join partsupp, supplier         Join
      Aggregate sum(ps_cost)              Group ps_partkey
        Join partsupp, supplier             Snapshot of shared1
                                          Aggregate sum(ps_cost)
                                            Snapshot of shared1

Leaves are compared as if each had all columns that the plan reads of its relation, and groupings as if each had all
aggregates that the plan computes of the same groups; the result has those that one of the places needs. Projections are
compared as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from planner.algebra.construction import Fresh, has_subquery, keep_columns, rename_columns
from planner.algebra.identity import NodeMap, replaced
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Column,
    Fixpoint,
    InSubquery,
    Relation,
    ScalarSubquery,
    Scan,
    SetOperation,
    Snapshot,
    Sort,
    With,
)
from planner.algebra.signature import entries, signature
from planner.algebra.walk import children, descend, is_relation, transform, walk
from planner.incremental.names import Names, stored_name
from planner.rules.projections.prune_columns import prune_columns
from planner.separation.cuts import is_bare, is_closed, taken_names


def compute_once(whole: Relation, is_worth_it: Callable[[Relation], bool]) -> Relation:
    """An equal plan in which relations that are worth it, the largest first, are computed once."""
    while (group := _largest(whole, is_worth_it)) is not None:
        whole = _shared(whole, group)
    return whole


class _Place(Struct, frozen=True):
    """A relation of a plan, and the same one with all columns of its leaves, which are listed as they appear."""

    relation: Relation
    wide: Relation
    columns: tuple[Column, ...]


def _largest(whole: Relation, is_worth_it: Callable[[Relation], bool]) -> list[_Place] | None:
    """The places of the first relation from above that is computed at several and worth it."""
    alike = _alike(whole)
    widening = _Widening(whole, alike)
    for nodes in alike:
        groups: dict[Hashable, list[_Place]] = {}
        for node in nodes:
            if is_closed(node):
                wide = widening.widened(node)
                key, columns = signature(wide)
                groups.setdefault(key, []).append(_Place(node, wide, columns))
        for group in groups.values():
            if len(group) > 1 and is_worth_it(_definition(group)):
                return group
    return None


def _alike(whole: Relation) -> list[list[Relation]]:
    """Several relations each that may be equal, by what is cheap to tell; the largest first."""
    outlines = NodeMap[int]()
    nodes = list(walk(whole))
    for node in reversed(nodes):  # children first
        own = _leaf(node) if isinstance(node, Scan | Snapshot) else type(node)
        below = _without_aggregates(node) if isinstance(node, Aggregate) else node
        outlines[node] = hash((own, *(outlines[child] for child in children(below))))
    found: dict[int, list[Relation]] = {}
    for node in nodes:
        if is_relation(node) and not isinstance(node, With | Sort) and not is_bare(node):
            found.setdefault(outlines[node], []).append(node)
    return [group for group in found.values() if len(group) > 1]


def _without_aggregates(node: Aggregate) -> Aggregate:
    return Aggregate(node.input, node.keys, ())


def _leaf(node: Scan | Snapshot) -> Hashable:
    """What a leaf's columns are of."""
    return (node.kind, node.oid, node.name) if isinstance(node, Scan) else node.trace


class _Groups(Struct, frozen=True):
    """What a plan computes of the same groups: its aggregates by what they are, over one place's columns."""

    columns: tuple[Column, ...]
    aggregates: dict[Hashable, tuple[Column, AggregateCall]]


class _Widening:
    """The leaves of a plan with all columns that it reads of what they stand for, and its groupings with all aggregates
    of the same groups."""

    def __init__(self, whole: Relation, alike: Iterable[list[Relation]]) -> None:
        self._fresh = Fresh(whole)
        self._read: dict[Hashable, dict[str, Column]] = {}
        self._groups: dict[Hashable, _Groups] = {}
        self._added: set[Column] = set()
        places = NodeMap[int]()
        for place, node in enumerate(walk(whole)):
            places[node] = place
            if isinstance(node, Scan | Snapshot):
                self._read.setdefault(_leaf(node), {}).update(zip(node.sources, node.columns, strict=True))
        # Groupings below others come first: below the last of several equal ones there is one that is later still.
        for nodes in sorted(alike, key=lambda nodes: places[nodes[-1]], reverse=True):
            for node in nodes:
                if isinstance(node, Aggregate) and is_closed(node) and not any(map(has_subquery, children(node)[1:])):
                    self._gather(node)

    def _gather(self, node: Aggregate) -> None:
        bare, columns = signature(_without_aggregates(self._input_widened(node)))
        groups = self._groups.setdefault(bare, _Groups(columns, {}))
        numbers = {column: number for number, column in enumerate(columns)}
        here = dict(zip(columns, groups.columns, strict=True))
        for column, call in node.aggregates:
            groups.aggregates.setdefault(entries(call, numbers), (column, rename_columns(call, here)))

    def _input_widened(self, node: Aggregate) -> Aggregate:
        return replace(node, input=self.widened(node.input))

    def widened(self, relation: Relation) -> Relation:
        """A relation whose leaves and groupings have all columns, in one order, as far as nothing that goes by columns'
        places is above them."""
        found: Relation = transform(relation, self._change)
        return found

    def _change(self, node: Any) -> Any:
        match node:
            case Scan() | Snapshot():
                return self._wide(node)
            case Aggregate():
                return self._with_all_aggregates(node)
            case SetOperation(left=left, right=right):
                return replace(node, left=self._kept(left), right=self._kept(right))
            case Fixpoint(base=base, step=step):
                return replace(node, base=self._kept(base), step=self._kept(step))
            case ScalarSubquery(relation=below) | InSubquery(relation=below):
                return replace(node, relation=self._kept(below))
            case _:
                return node

    def _wide(self, node: Scan | Snapshot) -> Scan | Snapshot:
        own: dict[str, Column] = {}
        for source, column in zip(node.sources, node.columns, strict=True):
            if own.setdefault(source, column) is not column:
                return node  # a column that is read twice has two places
        columns = []
        for source, column in sorted(self._read[_leaf(node)].items()):
            if source not in own:
                own[source] = self._fresh.copy(column)
                self._added.add(own[source])
            columns.append((source, own[source]))
        return replace(node, columns=tuple(item for _, item in columns), sources=tuple(item for item, _ in columns))

    def _with_all_aggregates(self, node: Aggregate) -> Aggregate:
        bare, columns = signature(_without_aggregates(node))
        groups = self._groups.get(bare)
        if groups is None:
            return node
        numbers = {column: number for number, column in enumerate(columns)}
        own = {entries(call, numbers): column for column, call in node.aggregates}
        if len(own) < len(node.aggregates) or not own.keys() <= groups.aggregates.keys():
            return node  # an aggregate that is computed twice has two places
        here, found = dict(zip(groups.columns, columns, strict=True)), []
        for what, (column, call) in groups.aggregates.items():
            if what not in own:
                own[what] = self._fresh.copy(column)
                self._added.add(own[what])
            found.append((own[what], rename_columns(call, here)))
        return replace(node, aggregates=tuple(found))

    def _kept(self, relation: Relation) -> Relation:
        return keep_columns(relation, tuple(column for column in relation.columns if column not in self._added))


def _definition(group: list[_Place]) -> Relation:
    """The first place's relation with the columns that one of the places has."""
    first = group[0]
    names = {stored_name(column) for place in group for column in _in_first(place, first).values()}
    return _narrowed(first.wide, names)


def _in_first(place: _Place, first: _Place) -> dict[Column, Column]:
    """What a place's columns are called at the first one."""
    names = dict(zip(place.columns, first.columns, strict=True))
    return {column: names[column] for column in place.relation.columns}


def _shared(whole: Relation, group: list[_Place]) -> Relation:
    """A plan that computes a group's relation once, before the first query of WITH that reads it."""
    fresh, names = Fresh(whole, *(place.wide for place in group)), Names()
    for taken in taken_names(whole):
        names.unique(taken)
    definition, renamed = fresh.rename(_definition(group))
    name = names.unique("shared")
    read = NodeMap[Relation]()
    for place in group:
        inner = _in_first(place, group[0])
        sources = tuple(stored_name(renamed[inner[column]]) for column in place.relation.columns)
        read[place.relation] = Snapshot(name, place.relation.columns, sources)
    known, body = (whole.definitions, whole.body) if isinstance(whole, With) else ((), whole)
    changed = descend(With(known, body), lambda node: replaced(read, node))
    pruned: Relation = prune_columns(changed)
    assert isinstance(pruned, With)
    first = next((at for at, (_, item) in enumerate(pruned.definitions) if _reads(item, name)), len(known))
    before, behind = pruned.definitions[:first], pruned.definitions[first:]
    return With((*before, (name, _narrowed(definition, _reads(pruned, name))), *behind), pruned.body)


def _reads(relation: Relation, name: str) -> set[str]:
    """The columns of a result that a relation reads."""
    return {
        item for node in walk(relation) if isinstance(node, Snapshot) and node.trace == name for item in node.sources
    }


def _narrowed(relation: Relation, read: set[str]) -> Relation:
    """A relation with these of its columns alone."""
    return prune_columns(keep_columns(relation, tuple(item for item in relation.columns if stored_name(item) in read)))

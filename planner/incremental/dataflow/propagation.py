"""Delta propagation: filters, projections and joins of the rows that changed (Tempura, section 4.1, IM-1; DBToaster,
section 3.1, delta queries).

A region is a tree of these operators over the leaves L1 .. Ln. With L' for a leaf after its change::

    d(Q) = sum over i of  Q(L1', .., L(i-1)', dLi, L(i+1), .., Ln)            Q is linear in Li

A leaf is linear unless it is the right side of a left, semi or anti join, where a row that comes may take another one
away. Such a leaf is restricted to the keys K that changed, and so is the left side that it meets::

    d(Q) = Q(.., Li' where key in K, ..) - Q(.., Li where key in K, ..)

or, where its keys are counted, has two terms that are linear (``counted_partners``).

A leaf of constants has no term, so that no rows are kept for its sake.

The rows of the other leaves are fetched by the join's equalities, outwards from the changed leaf, so that the work
grows with the change: a superset of the rows that join is enough, since the predicates are evaluated again. The right
side of a left join lacks the rows for which the join has NULL, so that it finds no rows of others by an expression that
has a value then: ``a LEFT JOIN b ON .. JOIN c ON c.x = coalesce(b.y, 0)``.

Guard: the right side of a left, semi or anti join meets one leaf on its left by an equality. A join whose right side
uses the left's columns (LATERAL) is not taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.types import BOOL, INT8
from planner.algebra.construction import TRUE, conjuncts, has_subquery
from planner.algebra.nodes import Call, Column, ColumnRef, Filter, Join, Project, Relation, Scalar, Snapshot, Unnest
from planner.algebra.nulls import null_with
from planner.algebra.walk import RELATION_KINDS, is_dependent, replace_columns, transform, used_columns, walk
from planner.incremental.dataflow import counted_partners
from planner.incremental.dataflow.building import Building, Counted, NotMaintained, with_columns
from planner.incremental.dataflow.graph import (
    Fetch,
    Propagated,
    Term,
    change_trace,
    leaf,
    names_of,
    references,
)
from planner.incremental.dataflow.keyable import are_comparable

_KEEPING_LEFT: Final = ("left", "semi", "anti")
_EQUALITIES: Final = ("eq", "is_not_distinct")


class _Pair(Struct, frozen=True):
    """An equality of columns of two leaves. ``within`` is the leaf that is the right side of the left, semi or anti
    join to whose predicate it belongs; ``strict`` are the columns that make it untrue where their leaf has no row."""

    left: Column
    right: Column
    within: int | None
    strict: frozenset[Column]


def is_region(node: Relation) -> bool:
    """Whether an operator may stand in a region."""
    match node:
        case Filter():
            return not has_subquery(node.predicate)
        case Project():
            return not any(has_subquery(value) for _, value in node.outputs)
        case Unnest():
            return not any(has_subquery(value) for _, value in node.items)
        case Join(kind="inner" | "left" | "semi" | "anti"):
            plain = node.predicate is None or not has_subquery(node.predicate)
            return plain and not is_dependent(node.right, node.left)
        case _:
            return False


def folded(building: Building, node: Relation) -> Relation:
    """A join of a region with each side that has one leaf, and the right side of a join that keeps the left's rows, as
    a node of its own: their filters and projections come before the join's."""
    if not isinstance(node, Join):
        return node
    left, right = node.left, node.right
    if (
        len(building.leaves(left)) == 1
        or (node.kind in _KEEPING_LEFT and not _meets_directly(node))
        or (_needs_all_of(node, left))
    ):
        left = propagated(building, left)
    if len(building.leaves(right)) == 1 or node.kind in _KEEPING_LEFT or _needs_all_of(node, right):
        right = propagated(building, right)
    return node if left is node.left and right is node.right else replace(node, left=left, right=right)


def _meets_directly(node: Join) -> bool:
    """Whether the right side of a join that keeps the left's rows meets a leaf that is no such side itself, so that the
    rows that it meets are found from its own. Raises NotMaintained where it meets none by an equality."""
    below = _origins(node.left)
    outer = {column for item in walk(node.left) if _keeps_left(item) for column in item.right.columns}
    met = [side for side in _met(node) if used_columns(side)]
    if not met:
        raise NotMaintained("the right side of an outer, semi or anti join meets no column by an equality")
    return any(outer.isdisjoint(used_columns(replace_columns(side, below))) for side in met)


def _needs_all_of(node: Join, side: Relation) -> bool:
    """Whether a join asks for an equality with an expression that has a value where a left join of this side has NULL
    for its right side, which then is no leaf from which rows are found."""
    below, own = _origins(side), frozenset(side.columns)
    outer = {column for item in walk(side) if _keeps_left(item) for column in item.right.columns}
    for part in conjuncts(node.predicate) if outer else ():
        if isinstance(part, Call) and part.function in _EQUALITIES:
            for argument in part.arguments:
                value = replace_columns(argument, below)
                meets = used_columns(argument) <= own and not outer.isdisjoint(used_columns(value))
                if meets and not _is_strict(part, value):
                    return True
    return False


def _is_strict(equality: Call, side: Scalar) -> bool:
    """Whether an equality is not true where all columns of one of its sides are NULL."""
    return equality.function == "eq" and bool(null_with(side))


def _met(node: Join) -> Iterator[Scalar]:
    """What the right side's columns are equal to on the left."""
    left, right = set(node.left.columns), set(node.right.columns)
    for part in conjuncts(node.predicate):
        if (
            isinstance(part, Call)
            and part.function in _EQUALITIES
            and are_comparable(*(a.type for a in part.arguments))
        ):
            one, other = part.arguments
            for here, there in ((one, other), (other, one)):
                if used_columns(here) <= left and used_columns(there) and used_columns(there) <= right:
                    yield here


def _keeps_left(node: Any) -> TypeGuard[Join]:
    return isinstance(node, Join) and node.kind in _KEEPING_LEFT


def propagated(building: Building, region: Relation) -> Snapshot:
    """The leaf that stands for a region's rows, which have a column at least. Raises NotMaintained."""
    if not region.columns:
        region = Project(region, ((building.fresh.column("present", BOOL, False), TRUE),))
    if isinstance(region, Snapshot):
        return region
    columns, definition = region.columns, building.expanded(region)
    if _is_renaming(region) and building.node_of(region.input) is not None:
        return building.renamed(columns, definition, region)
    wider, pairs = _computed_keys(building, region, list(_equalities_in(building, region)))
    wider = with_columns(wider, columns)
    terms = tuple(_Terms(building, wider, pairs).all())
    return building.add(Propagated(building.next_id(), columns, definition, terms), wider)


def _is_renaming(region: Relation) -> TypeGuard[Project]:
    """Whether a region has all columns of its input, in order, by other names."""
    if not isinstance(region, Project):
        return False
    return tuple(value for _, value in region.outputs) == tuple(map(ColumnRef, region.input.columns))


# -- equalities -------------------------------------------------------------------------------------------------------


class _Equality(Struct, frozen=True):
    """An equality of two expressions over one leaf each."""

    left: Scalar
    right: Scalar
    within: int | None
    is_left_strict: bool
    is_right_strict: bool


def _equalities_in(building: Building, region: Relation) -> Iterator[_Equality]:
    """The equalities between expressions of two leaves that the region's predicates ask for, in the leaves' columns."""
    below = _origins(region)
    for node in walk(region):
        if not isinstance(node, Filter | Join):
            continue
        within = None
        if _keeps_left(node):
            within = building.node_of(node.right)
        for part in conjuncts(node.predicate):
            if isinstance(part, Call) and part.function in _EQUALITIES:
                left, right = (replace_columns(side, below) for side in part.arguments)
                if are_comparable(left.type, right.type):
                    yield _Equality(left, right, within, _is_strict(part, left), _is_strict(part, right))


def _origins(region: Relation) -> dict[Column, Scalar]:
    """What the region's projections compute, in columns of the leaves."""
    found: dict[Column, Scalar] = {}
    for node in reversed(list(walk(region))):
        if isinstance(node, Project):
            found |= {column: replace_columns(value, found) for column, value in node.outputs}
    return found


def _computed_keys(
    building: Building, region: Relation, equalities: Sequence[_Equality]
) -> tuple[Relation, list[_Pair]]:
    """The region over leaves that have each side of its equalities as a column, and the equalities of columns."""
    owners = {column: item for item in building.leaves(region) for column in item.columns}
    added: dict[str, dict[Scalar, Column]] = {}
    found: list[tuple[Column, Column, int | None, frozenset[Column]]] = []
    for item in equalities:
        sides = [_side(building, side, owners, added) for side in (item.left, item.right)]
        left, right = sides
        if left is None or right is None or owners[left] is owners[right]:
            continue
        are_strict = ((left, item.is_left_strict), (right, item.is_right_strict))
        strict = frozenset(column for column, is_strict in are_strict if is_strict)
        found.append((left, right, item.within, strict))
    wanted = [item for item in building.leaves(region) if item.trace in added]
    wider = {item.trace: _widened(building, item, added[item.trace]) for item in wanted}
    moved = {building.node_of(old): building.node_of(wider[old.trace]) for old in wanted}
    changed = transform(region, lambda node: wider.get(node.trace, node) if isinstance(node, Snapshot) else node)
    pairs = [_Pair(left, right, moved.get(within, within), strict) for left, right, within, strict in found]
    return changed, pairs


def _side(
    building: Building, side: Scalar, owners: dict[Column, Snapshot], added: dict[str, dict[Scalar, Column]]
) -> Column | None:
    """The column of a leaf that an expression is; None where it is of no leaf, or of several."""
    if isinstance(side, ColumnRef):
        return side.column if side.column in owners else None
    leaves = {owners[column].trace: owners[column] for column in used_columns(side) if column in owners}
    if len(leaves) != 1 or not used_columns(side) <= owners.keys():
        return None
    ((trace, owner),) = leaves.items()
    known = added.setdefault(trace, {})
    if side not in known:
        known[side] = building.fresh.column("key", side.type)
        owners[known[side]] = owner
    return known[side]


def _widened(building: Building, below: Snapshot, keys: dict[Scalar, Column]) -> Snapshot:
    computed = tuple((column, value) for value, column in keys.items())
    return propagated(building, Project(below, (*references(below.columns), *computed)))


# -- terms ------------------------------------------------------------------------------------------------------------


class _Terms:
    """The terms of one region."""

    def __init__(self, building: Building, region: Relation, pairs: Sequence[_Pair]) -> None:
        self._building = building
        self._region = region
        self._leaves = {building.node(item): item for item in building.leaves(region)}
        keeping = {building.node(node.right): node for node in walk(region) if _keeps_left(node)}
        self._rights = keeping.keys()
        #: Left joins whose keys are counted, by the leaf on the right.
        self._counted = {
            right: (node, building.counted[node.predicate])
            for right, node in keeping.items()
            if node.kind == "left" and node.predicate in building.counted
        }
        owners = {column: node for node, item in self._leaves.items() for column in item.columns}
        #: By two nodes, the columns of both that are equal where their rows meet.
        self._equal: dict[tuple[int, int], list[tuple[Column, Column]]] = {}
        for pair in pairs:
            left, right = owners[pair.left], owners[pair.right]
            self._add(left, right, pair.left, pair.right, pair)
            self._add(right, left, pair.right, pair.left, pair)

    def _add(self, at: int, to: int, known: Column, wanted: Column, pair: _Pair) -> None:
        within = pair.within
        if within not in (None, at, to):  # it chooses partners, and no rows of these two leaves
            return
        if to in self._rights and within != to:  # what is fetched of it must be all that its left side meets
            return
        if within != at and at in self._rights and known not in pair.strict:  # a row that is not there meets rows
            return
        if within == at:
            at = ~at  # for the term of the right side itself alone
        self._equal.setdefault((at, to), []).append((known, wanted))

    def all(self) -> Iterator[Term]:
        """One term for each leaf that may change, two for one whose keys are counted."""
        changing = [node for node in self._leaves if not self._building.never_changes(node)]
        for node in changing or self._leaves:
            if node in self._counted:
                yield from self._of_counted(node, *self._counted[node])
            else:
                yield self._term(node)

    def _term(self, node: int) -> Term:
        if node not in self._rights:
            weight = self._building.weight(node)
            relation = with_weight(self._building, self._region, self._leaves[node], weight)
            return Term(node, relation, tuple(self._fetches(node, [])), weight=weight)
        reached, met = self._met_by(node)
        own = names_of(column for column, _ in met)
        first = Fetch(reached, names_of(column for _, column in met), node, own)
        return Term(node, self._region, (first, *self._fetches(node, [reached])), own)

    def _met_by(self, node: int) -> tuple[int, list[tuple[Column, Column]]]:
        """The leaf from whose rows the right side of a join chooses, and the columns of both that are equal."""
        found = [(at, to) for at, to in self._equal if at == ~node]
        if not found:
            raise NotMaintained("the right side of an outer, semi or anti join meets no column by an equality")
        edge = max(found, key=lambda item: len(self._equal[item]))
        return edge[1], self._equal[edge]

    def _of_counted(self, node: int, join: Join, keys: Counted) -> Iterator[Term]:
        """The terms of a left join's right side, and of its keys, beside whose rows there are none of the right
        side."""
        building = self._building
        reached, met = self._met_by(node)
        wanted = names_of(column for _, column in met)
        others = tuple(self._fetches(node, [reached]))
        weight = building.weight(node)
        joined = with_weight(building, counted_partners.joined(self._region, join), self._leaves[node], weight)
        first = Fetch(reached, wanted, node, names_of(column for column, _ in met))
        yield Term(node, joined, (first, *others), weight=weight)
        counting, weight = building.node(keys.leaf), building.weight(building.node(keys.leaf))
        alone = with_weight(building, counted_partners.alone(self._region, join, keys), keys.leaf, weight)
        less = (building.fresh.column("weight", INT8, False), Call("neg", (ColumnRef(weight),), INT8))
        counted = dict(zip(keys.columns, keys.leaf.columns, strict=True))
        first = Fetch(reached, wanted, counting, names_of(counted[column] for column, _ in met))
        none = tuple(replace(fetch, by=None) if fetch.by == node else fetch for fetch in others)
        yield Term(counting, Project(alone, (*references(self._region.columns), less)), (first, *none), weight=weight)

    def _fetches(self, changed: int, known: list[int]) -> Iterator[Fetch]:
        """How the rows of the other leaves are found, from those that are known on."""
        at_hand = [changed, *known]
        missing = [node for node in self._leaves if node not in at_hand]
        while missing:
            edges = [(at, to) for at, to in self._equal if at in at_hand and to in missing]
            if edges:
                edge = max(edges, key=lambda item: len(self._equal[item]))
                met = self._equal[edge]
                yield Fetch(edge[1], names_of(c for _, c in met), edge[0], names_of(c for c, _ in met))
                reached = edge[1]
            else:
                reached = next((node for node in missing if node not in self._rights), missing[0])
                yield Fetch(reached, (), changed, ())
            at_hand.append(reached)
            missing.remove(reached)


def with_weight(building: Building, region: Relation, below: Snapshot, weight: Column) -> Relation:
    """The region over changed rows of a leaf, with their weight as its last column."""
    changed = leaf(change_trace(building.scope, building.node(below)), (*below.columns, weight))

    def change(node: Any) -> Any:
        if isinstance(node, Snapshot) and node.trace == below.trace:
            return changed
        if isinstance(node, Project) and weight in node.input.columns:
            return Project(node.input, (*node.outputs, (weight, ColumnRef(weight))))
        return node

    found: Relation = transform(region, change, RELATION_KINDS)
    return with_columns(found, (*region.columns, weight))

"""Joins that facts make needless: a row's partner is there by a foreign key, or is one at most by a unique key.

    L join S on f = k and p   =  L where f is not null and p'         k := f, and p' is p with f for k
    L left join S on f = k    =  L                                    k := f, NULL for a constant where f is
    L left join R on k = e    =  L                                    no column of R is used
    L semi S on f = k and p   =  L where f is not null and p'
    L anti S on f = k and p   =  L where (f is not null and p') is not true

A change of S then changes nothing, no row of S is kept, and none of L for the sake of S.

Guard of the rules with S, a table of which only the columns k are used: f is a foreign key with the key k, or both are
the same columns of one table, which are unique but for semi- and anti-joins. Values of f stand for those of k
(``facts.can_stand_for``).

Guard of the rule with R: a unique key of R is among the columns k, or rows count once above (DISTINCT, EXISTS). No
predicate that goes, or is asked of other rows, may raise.

Facts hold of committed rows (``dataflow.facts``), and a transaction's own changes are never followed by a dataflow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.types import BOOL
from planner.algebra.construction import FALSE, conjunction, conjuncts, has_subquery
from planner.algebra.failures import may_raise
from planner.algebra.identity import NodeMap, NodeSet
from planner.algebra.nodes import (
    Aggregate,
    Call,
    Case,
    Cast,
    Column,
    ColumnRef,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    Scalar,
    Scan,
    SetOperation,
    With,
)
from planner.algebra.nulls import never_null, null_with
from planner.algebra.walk import (
    BY_POSITION,
    children,
    contains,
    descend_relations,
    find,
    is_relation,
    kinds_of,
    replace_columns,
    transform_relations,
    used_columns,
)
from planner.incremental.dataflow.facts import (
    Origin,
    Simpler,
    Tables,
    can_stand_for,
    is_key,
    is_unique,
    origin,
    partner,
)
from planner.incremental.dataflow.graph import references
from planner.incremental.dataflow.keyable import is_keyable, same_value
from planner.incremental.dataflow.rewrites.join_regions import Beside, is_root, region_of
from planner.rules.joins.join_graph import Part, members

_JOINS: Final = kinds_of(Join)
_SCANS: Final = kinds_of(Scan)
_REFERENCES: Final = kinds_of(ColumnRef)
_POSITIONAL: Final = kinds_of(With, *BY_POSITION)
#: Aggregates of which equal rows count once.
_OF_VALUES: Final = frozenset(("min", "max", "bool_and", "bool_or", "bit_and", "bit_or"))


#: Ways of finding a row by predicates of which more than one compare the same column, that are tried.
_MOST: Final = 16


def without_known_partners(relation: Relation, tables: Tables) -> Simpler | None:
    """The relation without the joins that facts make needless; None where it has none."""
    return _simpler(transform_relations(relation, _mirrored, _JOINS), tables) if contains(relation, _JOINS) else None


def _mirrored(node: Any) -> Any:
    """A right join as a left one."""
    if not isinstance(node, Join) or node.kind != "right":
        return node
    return Project(Join("left", node.right, node.left, node.predicate), references(node.columns))


def _simpler(relation: Relation, tables: Tables) -> Simpler | None:
    """The relation with each region as rules leave it; None where all stay what they are."""
    uses = _Uses(relation)
    made, left_out = NodeMap[Relation](), list[str]()
    for root, counts_once in _together(_regions(relation)):
        known = _Known(root, uses, tables, counts_once)
        while not known.is_fixed and (reason := next(filter(None, (rule(known) for rule in RULES)), None)):
            left_out.append(reason)
            made[root] = known.relation
    if not left_out:
        return None
    return Simpler(descend_relations(relation, lambda node: made.of(node) or node), tuple(left_out))


# -- regions, and what is used of them ---------------------------------------------------------------------------------


class _Uses:
    """How often the expressions of a relation use each column, and the columns that are used by their places."""

    def __init__(self, relation: Relation) -> None:
        self._counts = Counter(item.column for item in find(relation, _REFERENCES))
        self._placed = set(relation.columns)
        for node in find(relation, _POSITIONAL):
            below = (item for _, item in node.definitions) if isinstance(node, With) else _sides(node)
            self._placed.update(*(item.columns for item in below))

    def above(self, root: Relation) -> frozenset[Column]:
        """The columns of a region that are used outside of it, and of what is below it."""
        own = Counter(item.column for item in find(root, _REFERENCES))
        return frozenset(
            column for column in root.columns if column in self._placed or self._counts[column] > own[column]
        )


def _sides(node: Any) -> tuple[Relation, ...]:
    return tuple(getattr(node, name) for name in BY_POSITION[type(node)])


def _together(regions: Iterable[tuple[Relation, bool]]) -> Iterator[tuple[Relation, bool]]:
    """Each region once: of one that stands in several places, equal rows count once where they do in all of them."""
    found, once = list[Relation](), NodeMap[bool]()
    for root, counts_once in regions:
        if root not in once:
            found.append(root)
        once[root] = counts_once and once.of(root) is not False
    return ((root, once[root]) for root in found)


def _regions(relation: Relation) -> Iterator[tuple[Relation, bool]]:
    """The regions of joins, outer ones first, each with whether equal rows of it count once."""
    stack = [(relation, False)]
    while stack:
        node, counts_once = stack.pop()
        if not is_root(node):
            below = _counts_once(node, counts_once)
            stack.extend((item, below) for item in children(node) if is_relation(item))
            continue
        yield node, counts_once
        region = region_of(node)
        sides = ((item.join.right, counts_once or item.join.kind != "left") for item in region.beside)
        stack.extend((region.leaves[place], counts_once) for place in region.inner)
        stack.extend(sides)


def _counts_once(node: Any, above: bool) -> bool:
    """Whether equal rows of a node's inputs count once, where those of the node do or do not."""
    match node:
        case Aggregate(aggregates=aggregates):
            return all(call.distinct or call.function in _OF_VALUES for _, call in aggregates)
        case SetOperation(all=False):
            return True
        case Filter() | Project() | SetOperation(kind="union"):
            return above
        case _:
            return False


class _Known:
    """A region while joins are taken out of it, and what is known of it."""

    def __init__(self, root: Relation, uses: _Uses, tables: Tables, counts_once: bool) -> None:
        self.region = region_of(root)
        self.tables = tables
        self.counts_once = counts_once
        wanted = uses.above(root)
        #: The columns that are used of the region, over those of its leaves.
        self._outputs: dict[Column, Scalar] = {
            column: self.region.inlined(ColumnRef(column)) for column in root.columns if column in wanted
        }
        #: Of the leaves whose rows are never padded by NULLs.
        self._never_null = frozenset[Column]().union(
            *(never_null(self.region.leaves[place]) for place in self.region.inner)
        )

    @property
    def relation(self) -> Relation:
        """What stands in the place of the region, with the columns that are used of it."""
        rows = self.region.joined()
        return Project(rows, tuple(self._outputs.items())) if self._outputs else rows

    @property
    def may_raise(self) -> bool:
        """Whether a predicate may raise, so that it must be asked of no other rows."""
        return any(map(may_raise, self._predicates()))

    @property
    def is_fixed(self) -> bool:
        """Whether a predicate that may raise stands above a semi- or anti-join, which others may then not pass."""
        return self.may_raise and any(item.place is None for item in self.region.beside)

    def is_inner(self, column: Column) -> bool:
        """Whether a column is of a leaf that is joined by an inner join."""
        return any(self.region.owners[column] >> place & 1 for place in self.region.inner)

    def references(self, place: int) -> int:
        """How many foreign keys the table of a leaf has: what it references may be left out only while it is there."""
        found = _table(self.region.leaves[place])
        table = None if found is None else self.tables.get(found.scan.oid)
        return 0 if table is None else len(table.foreign_keys)

    def used(self, but: Sequence[Part | Beside]) -> set[Column]:
        """The columns of leaves that outputs and predicates use, but for those of some parts or joins."""
        return set[Column]().union(*map(used_columns, (*self._outputs.values(), *self._predicates(but))))

    def not_null(self, columns: Sequence[Column]) -> list[Scalar]:
        """Asks for values in some columns that may have none."""
        asked = (column for column in columns if column not in self._never_null)
        return [Call("is_not_null", (ColumnRef(column),), BOOL) for column in dict.fromkeys(asked)]

    def origin(self, column: Column) -> Origin | None:
        """Where the values of a leaf's column come from."""
        owner = self.region.owners.get(column, 0)
        return origin(self.region.leaves[members(owner)[0]], column) if owner else None

    def ask(self, parts: Sequence[Scalar]) -> None:
        """Asks more of the region's rows."""
        self.region.parts += [Part(part, self._leaves(part)) for part in parts]

    def leave_out(self, item: Beside) -> None:
        """Takes a join beside the region's rows away."""
        self.region.beside = [other for other in self.region.beside if other is not item]

    def stand_for(self, values: Mapping[Column, Scalar], place: int) -> None:
        """Puts values in the places of a leaf's columns, which is joined no more."""
        region, gone = self.region, 1 << place

        def moved(predicate: Scalar, leaves: int) -> tuple[Scalar, int]:
            found = replace_columns(predicate, {**values})
            return found, leaves & ~gone | self._leaves(found)

        region.inner = [other for other in region.inner if other != place]
        region.parts = [Part(*moved(part.predicate, part.leaves)) for part in region.parts]
        for number, item in enumerate(region.beside):
            found, needs = moved(item.predicate, item.needs)
            own = 0 if item.place is None else 1 << item.place
            region.beside[number] = replace(item, predicate=found, needs=needs & ~own)
        self._outputs = {column: replace_columns(value, {**values}) for column, value in self._outputs.items()}

    def _predicates(self, but: Sequence[Part | Beside] = ()) -> Iterator[Scalar]:
        left_out = NodeSet(but)
        yield from (part.predicate for part in self.region.parts if part not in left_out)
        yield from (item.predicate for item in self.region.beside if item not in left_out)

    def _leaves(self, predicate: Scalar) -> int:
        found = 0
        for column in used_columns(predicate):
            found |= self.region.owners.get(column, 0)
        return found


# -- partners ----------------------------------------------------------------------------------------------------------


class _Table(Struct, frozen=True):
    """A relation that has all rows of a table of which ``predicates`` are true, with ``values`` over its columns."""

    scan: Scan
    values: Mapping[Column, Scalar]
    predicates: tuple[Scalar, ...]


def _table(relation: Relation) -> _Table | None:
    """What a relation has of one table; None where it is something else."""
    operators = list[Filter | Project]()
    below = relation
    while isinstance(below, Filter | Project):
        operators.append(below)
        below = below.input
    if not isinstance(below, Scan) or below.kind != "table":
        return None
    values: dict[Column, Scalar] = {column: ColumnRef(column) for column in below.columns}
    predicates = list[Scalar]()
    for node in reversed(operators):
        if isinstance(node, Project):
            values = {column: replace_columns(value, values) for column, value in node.outputs}
        else:
            predicates += conjuncts(replace_columns(node.predicate, values))
    expressions = [*values.values(), *predicates]
    if any(has_subquery(item) or may_raise(item) for item in expressions):
        return None
    return _Table(below, values, tuple(predicates))


class _Partner(Struct, frozen=True):
    """The row of a table that each row has whose columns ``of`` are not NULL: the ``values`` of the relation's columns
    in it, what else is ``asked`` of it, and the ``reason`` why it is there."""

    of: tuple[Column, ...]
    values: Mapping[Column, Scalar]
    asked: tuple[Scalar, ...]
    reason: str


class _Pair(Struct, frozen=True):
    """A column of a leaf, and the ``key`` of a table that a predicate compares it with."""

    own: Column
    key: Column
    part: Scalar


def _partner(
    known: _Known, side: Relation, parts: Sequence[Scalar], outside: set[Column], is_one: bool
) -> _Partner | None:
    """The partner that predicates find on a side, of which other expressions use some columns ``outside``; ``is_one``
    where it must be no more than one."""
    table = _table(side)
    if table is None or any(map(may_raise, parts)):
        return None
    pairs: dict[Column, list[_Pair]] = {}
    for part in parts:
        found = _pair(known, table, part)
        if found is not None:
            pairs.setdefault(found.key, []).append(found)
    for chosen in islice(product(*pairs.values()), _MOST) if pairs else ():
        rest = [part for part in parts if not any(part is item.part for item in chosen)]
        used = outside.union(*map(used_columns, rest))
        shown = (value for column, value in table.values.items() if column in used)
        needed = set[Column]().union(*map(used_columns, (*shown, *table.predicates)))
        why = _reason(known, table, chosen, is_one) if needed <= pairs.keys() else None
        if why is not None:
            equal: dict[Column, Scalar] = {item.key: _as(ColumnRef(item.own), item.key) for item in chosen}
            values = {column: replace_columns(value, equal) for column, value in table.values.items()}
            asked = tuple(replace_columns(part, equal) for part in table.predicates)
            others = tuple(replace_columns(part, values) for part in rest)
            of = tuple(item.own for item in chosen)
            return _Partner(of, values, (*asked, *others), f"join with table {table.scan.name}: {why}")
    return None


def _reason(known: _Known, table: _Table, pairs: Sequence[_Pair], is_one: bool) -> str | None:
    """Why the table has a row for each row whose columns have values, and no more than one; None where it may have
    none."""
    names = dict(zip(table.scan.columns, table.scan.sources, strict=True))
    origins = [origin for item in pairs if (origin := known.origin(item.own)) is not None]
    if len(origins) < len(pairs) or any(item.scan is not origins[0].scan for item in origins):
        return None
    keys = [names[item.key] for item in pairs]
    if is_one and not is_unique(known.tables, table.scan.oid, keys):
        return None
    return partner(known.tables, origins[0].scan, [item.source for item in origins], table.scan, keys)


def _as(value: ColumnRef, column: Column) -> Scalar:
    """A value of a foreign key as the key's."""
    return value if value.type == column.type else Cast(value, column.type)


def _pair(known: _Known, table: _Table, part: Scalar) -> _Pair | None:
    """What an equality of a leaf's column with a table's compares."""
    if not isinstance(part, Call) or part.function != "eq":
        return None
    for one, other in (part.arguments, part.arguments[::-1]):
        own, shown = same_value(one), same_value(other)
        key = same_value(table.values.get(shown.column, part)) if isinstance(shown, ColumnRef) else None
        if isinstance(own, ColumnRef) and own.column not in table.values and isinstance(key, ColumnRef):
            return _Pair(own.column, key.column, part) if can_stand_for(own.type, key.type) else None
    return None


# -- rules -------------------------------------------------------------------------------------------------------------


def inner_partner(known: _Known) -> str | None:
    """Leaves out an inner join with a table in which each row has one partner."""
    region = known.region
    for place in sorted(region.inner, key=known.references):
        parts = [part for part in region.parts if part.leaves >> place & 1]
        outside = known.used(parts)
        found = _partner(known, region.leaves[place], [part.predicate for part in parts], outside, True)
        if found is None or not all(map(known.is_inner, found.of)):
            continue
        asked = [*known.not_null(found.of), *found.asked]
        if not (asked and known.may_raise):
            gone = NodeSet(parts)
            region.parts = [part for part in region.parts if part not in gone]
            known.stand_for(found.values, place)
            known.ask(asked)
            return found.reason
    return None


def outer_partner(known: _Known) -> str | None:
    """Leaves out a left join with a table in which each row has one partner, of which only the key is used."""
    for item in known.region.beside:
        if item.place is None:
            continue
        found = _partner(known, item.join.right, list(conjuncts(item.predicate)), known.used((item,)), True)
        if found is not None and not found.asked and (len(found.of) == 1 or not known.not_null(found.of)):
            known.leave_out(item)
            known.stand_for(_of_partner(found, known.not_null(found.of)), item.place)
            return found.reason
    return None


def _of_partner(found: _Partner, asked: Sequence[Scalar]) -> dict[Column, Scalar]:
    """The values of a left join's right side: NULL where there is no partner, of which conditions ask."""
    if not asked:
        return dict(found.values)
    (own,), (condition,) = found.of, asked

    def padded(value: Scalar) -> Scalar:
        if own in null_with(value):
            return value
        return Case(((condition, value),), Literal(None, value.type), value.type)

    return {column: padded(value) for column, value in found.values.items()}


def unused_partner(known: _Known) -> str | None:
    """Leaves out a left join of whose right side no column is used, and at most one row is met, or any number may
    be."""
    for item in known.region.beside:
        right = item.join.right
        if item.place is None or not known.used((item,)).isdisjoint(right.columns) or may_raise(item.predicate):
            continue
        if not known.counts_once and not is_key(known.tables, right, _equal_columns(item.predicate, right)):
            continue
        known.leave_out(item)
        known.stand_for({}, item.place)
        names = ", ".join(dict.fromkeys(scan.name for scan in find(right, _SCANS))) or "other rows"
        why = "equal rows count once" if known.counts_once else "its key finds one row at most"
        return f"left join with {names}: no column of it is used, and {why}"
    return None


def asked_partner(known: _Known) -> str | None:
    """Leaves out a semi-join with a table in which each row has a partner, and an anti-join with one."""
    for item in known.region.beside:
        found = None
        if item.place is None:
            found = _partner(known, item.join.right, list(conjuncts(item.predicate)), set(), False)
        if found is not None:
            asked: list[Scalar] = [*known.not_null(found.of), *found.asked]
            if item.join.kind == "anti":
                whole = conjunction(asked)
                asked = [FALSE if whole is None else Call("is_not_true", (whole,), BOOL)]
            known.leave_out(item)
            known.ask(asked)
            return found.reason
    return None


#: The rules, in the order in which they are tried.
RULES: Final[tuple[Callable[[_Known], str | None], ...]] = (
    inner_partner,
    outer_partner,
    unused_partner,
    asked_partner,
)


def _equal_columns(predicate: Scalar, side: Relation) -> list[Column]:
    """The columns of a side that must equal a value of the other one."""
    own, found = set(side.columns), list[Column]()
    for part in conjuncts(predicate):
        if isinstance(part, Call) and part.function == "eq":
            for one, other in (part.arguments, part.arguments[::-1]):
                key = same_value(one)
                if isinstance(key, ColumnRef) and key.column in own and own.isdisjoint(used_columns(other)):
                    found += [key.column] if is_keyable(key.type) else []
    return found

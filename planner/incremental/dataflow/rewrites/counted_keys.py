"""Joins that ask whether a row has partners, by keys that are counted (DBToaster, section 3.2.2, Exists of a sum;
Tempura, section 4.2, equation 3, the positive and the negative part of a left join).

    L semi R on j and l and r  =  L semi D on j and l           D = the values of j in R where r, each once
    L anti R on j and l and r  =  L anti D on j and l

    L semi R on j and r and c  =  L semi E on v                 E = the values v of L join R on j and r and c, each once
    L anti R on j and r and c  =  L anti E on v

D is a grouping as any other, which counts the rows of R with each key. A change of R changes D where the first row with
a key comes, or the last one goes, and so do the rows of L that are met: without D, all rows of R with the key are met
twice, as they were and as they are. E counts pairs: the values v that j and c compare in L, each once, with their
partners. A changed row of R meets these values of its key, and one of L all partners of new values. What remains of a
left join is ``dataflow.counted_partners``.

Guard of soundness: j are equalities between expressions over L and over R, c are comparisons of such; l is about L
alone, r about R alone. Guard of cost: no unique key of R is among the columns of j, since D would be R. E, which costs
two nodes more, and the counted keys of a left join need some rows of R for each key (``Rewriting.partners``), unless
they are forced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final

from msgspec import Struct

from catalog.values.types import BOOL
from planner.algebra.construction import Fresh, conjunction, conjuncts, filtered, has_subquery
from planner.algebra.failures import may_raise
from planner.algebra.nodes import (
    Aggregate,
    Call,
    Column,
    ColumnRef,
    Filter,
    Join,
    Project,
    Relation,
    Scalar,
    Scan,
    SetOperation,
    Working,
)
from planner.algebra.walk import (
    contains,
    find,
    is_dependent,
    kinds_of,
    replace_columns,
    transform_relations,
    used_columns,
)
from planner.incremental.dataflow.keyable import are_comparable, is_keyable
from planner.incremental.dataflow.rewrites.rewriting import Sized
from planner.rules.joins.cardinality import Cardinality

_JOINS: Final = kinds_of(Join)
_WORKING: Final = kinds_of(Working)
_ASKING: Final = ("semi", "anti", "left")
_EQUALITIES: Final = ("eq", "is_not_distinct")
#: Comparisons by the names that they have with their sides exchanged.
_COMPARISONS: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "ne": "ne", "is_distinct": "is_distinct"}


class Comparison(Struct, frozen=True):
    """A comparison of an expression over the left side with one over the right side."""

    function: str
    left: Scalar
    right: Scalar


class Asked(Struct, frozen=True):
    """What a join asks of its sides: the ``equalities``, what else is ``compared``, and the conditions about ``left``
    rows alone and about ``right`` ones."""

    equalities: tuple[Comparison, ...]
    compared: tuple[Comparison, ...]
    left: tuple[Scalar, ...]
    right: tuple[Scalar, ...]


def asks_for_partners(relation: Relation) -> bool:
    """Whether a relation has a join that may be one of these."""
    return any(join.kind in _ASKING for join in find(relation, _JOINS))


def with_counted_keys(relation: Relation, sized: Sized) -> Relation:
    """The relation whose semi- and anti-joins ask for counted keys where the guards hold; ``sized`` tells the keys of
    tables."""
    partners = sized.rewriting.partners
    if partners is None or not asks_for_partners(relation):
        return relation
    counting = _Counting(relation, sized, partners)
    found: Relation = transform_relations(relation, counting.change, _JOINS)
    return found


def counted_joins(relation: Relation, sized: Sized) -> frozenset[Scalar]:
    """The predicates of the left joins that count the keys of their right sides."""
    partners = sized.rewriting.partners
    if partners is None or not asks_for_partners(relation):
        return frozenset()
    counting = _Counting(relation, sized, partners)
    return frozenset(
        join.predicate
        for join in find(relation, _JOINS)
        if join.kind == "left" and join.predicate is not None and counting.is_counted(join)
    )


class _Counting:
    """The joins of one relation, inner ones first."""

    def __init__(self, relation: Relation, sized: Sized, partners: float) -> None:
        self._fresh = Fresh(relation)
        self._sized, self._partners = sized, partners
        self._cardinality = Cardinality(relation, sized.statistics)

    def change(self, node: Any) -> Any:
        """What stands in the place of a node."""
        if not isinstance(node, Join) or node.kind not in ("semi", "anti"):
            return node
        found = self._asked(node)
        if found is None:
            return node
        if not found.compared:
            return self._by_keys(node, found)
        return self._by_values(node, found) if self._has_many(node, found) else node

    def is_counted(self, node: Join) -> bool:
        """Whether a left join counts the keys of its right side."""
        found = self._asked(node)
        return found is not None and not found.compared and self._has_many(node, found)

    def _asked(self, node: Join) -> Asked | None:
        """What a join asks whose partners may be counted."""
        found = None if contains(node, _WORKING) else asked(node)
        return (
            None if found is None or self._is_unique(node.right, [item.right for item in found.equalities]) else found
        )

    def _has_many(self, node: Join, found: Asked) -> bool:
        """Whether there are many partners for each key, as far as that is known, or shall be taken for many."""
        if self._sized.rewriting.is_forced:
            return True
        distinct = [self._cardinality.distinct(item.right) for item in found.equalities]
        known = [count for count in distinct if count is not None]
        return len(known) == len(distinct) and self._partners * prod(known) <= self._cardinality.rows(node.right)

    def _is_unique(self, relation: Relation, values: Sequence[Scalar]) -> bool:
        """Whether no two rows have the same values, or few may have, as of first rows, or a view and a state, of which
        nothing is known."""
        columns = {value.column for value in values if isinstance(value, ColumnRef)}
        while isinstance(relation, Filter | Project):
            if isinstance(relation, Project):
                of = dict(relation.outputs)
                columns = {value.column for column in columns if isinstance(value := of[column], ColumnRef)}
            relation = relation.input
        match relation:
            case Aggregate():
                return all(column in columns for column, _ in relation.keys)
            case Scan():
                known = self._sized.statistics.get(relation.oid)
                names = {
                    name for column, name in zip(relation.columns, relation.sources, strict=True) if column in columns
                }
                return known is None or any(key <= names for key in known.keys)
            case Join() | SetOperation(all=True):
                return False
            case _:
                return True

    def _by_keys(self, node: Join, asked: Asked) -> Join:
        """The rows of the left side whose keys are among those of the right side, or are not."""
        rows, keys = self._side(node.right, asked.right, [item.right for item in asked.equalities])
        return self._among(node, asked, self._distinct(rows, keys), asked.equalities)

    def _by_values(self, node: Join, asked: Asked) -> Join:
        """The rows of the left side whose values are among those that have partners, or are not."""
        pairs = (*asked.equalities, *asked.compared)
        left = self._distinct(*self._side(node.left, (), [item.left for item in pairs]))
        right, theirs = self._side(node.right, asked.right, [item.right for item in pairs])
        met = conjunction(
            Call(item.function, (ColumnRef(ours), ColumnRef(other)), BOOL)
            for item, ours, other in zip(pairs, left.columns, theirs, strict=True)
        )
        found = self._distinct(Join("inner", left, right, met), left.columns)
        same = [Comparison("is_not_distinct", item.left, item.right) for item in asked.compared]
        return self._among(node, asked, found, (*asked.equalities, *same))

    def _side(
        self, side: Relation, conditions: Sequence[Scalar], values: Sequence[Scalar]
    ) -> tuple[Relation, tuple[Column, ...]]:
        """The rows of a side of which some conditions hold, with fresh columns for some values alone."""
        rows, mapping = self._fresh.rename(side)
        outputs = tuple((self._fresh.column("key", value.type), _renamed(value, mapping)) for value in values)
        rows = filtered(rows, [_renamed(condition, mapping) for condition in conditions])
        return Project(rows, outputs), tuple(column for column, _ in outputs)

    def _distinct(self, rows: Relation, columns: Sequence[Column]) -> Aggregate:
        """The different values of some columns."""
        return Aggregate(rows, tuple((self._fresh.copy(column), ColumnRef(column)) for column in columns), ())

    def _among(self, node: Join, asked: Asked, found: Aggregate, pairs: Sequence[Comparison]) -> Join:
        """The join that asks for values that have been found."""
        equal = (
            Call(item.function, (item.left, ColumnRef(column)), BOOL)
            for item, column in zip(pairs, found.columns, strict=True)
        )
        return Join(node.kind, node.left, found, conjunction((*asked.left, *equal)))


def _renamed(scalar: Scalar, mapping: Mapping[Column, Column]) -> Scalar:
    found: Scalar = replace_columns(scalar, {column: ColumnRef(other) for column, other in mapping.items()})
    return found


def asked(node: Join) -> Asked | None:
    """What a join asks; None where it compares both sides otherwise, or by no equality."""
    if node.predicate is None or has_subquery(node.predicate) or is_dependent(node.right, node.left):
        return None
    left, right = set(node.left.columns), set(node.right.columns)
    equalities, compared = list[Comparison](), list[Comparison]()
    about: tuple[list[Scalar], list[Scalar]] = ([], [])
    for part in conjuncts(node.predicate):
        found = _comparison(part, left, right)
        if found is not None:
            (equalities if found.function in _EQUALITIES else compared).append(found)
        elif used_columns(part) <= right:
            about[1].append(part)
        elif used_columns(part) <= left:
            about[0].append(part)
        else:
            return None
    return Asked(tuple(equalities), tuple(compared), *map(tuple, about)) if equalities else None


def _comparison(part: Scalar, left: set[Column], right: set[Column]) -> Comparison | None:
    """A comparison of both sides by values that may be keys."""
    if not isinstance(part, Call) or part.function not in (*_EQUALITIES, *_COMPARISONS):
        return None
    one, other = part.arguments
    is_equality = part.function in _EQUALITIES
    if not is_equality and may_raise(part):  # more rows are compared than those that meet
        return None
    if not (are_comparable(one.type, other.type) if is_equality else is_keyable(one.type) and is_keyable(other.type)):
        return None
    if used_columns(one) and used_columns(other):
        if used_columns(one) <= left and used_columns(other) <= right:
            return Comparison(part.function, one, other)
        if used_columns(other) <= left and used_columns(one) <= right:
            return Comparison(_COMPARISONS.get(part.function, part.function), other, one)
    return None

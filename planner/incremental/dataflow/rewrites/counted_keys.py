"""Joins that ask whether a row has partners, by keys that are counted (DBToaster, section 3.2.2, Exists of a sum;
Tempura, section 4.2, equation 3, the positive and the negative part of a left join).

    L semi R on j and c  =  L semi D on j                             D = the values of j in R where c, each once
    L anti R on j and c  =  L anti D on j
    L left R on j and c  =  (L join R on j and c)  +  (L anti D on j) with NULL for R's columns

D is a grouping as any other, which counts the rows of R with each key. A change of R changes D where the first row with
a key comes, or the last one goes, and so do the rows of L that are met: without D, all rows of R with the key are met
twice, as they were and as they are. Of a left join, the joined rows follow each change of either side alone. Tempura
computes the negative part when all rows are there; here it follows changes as well.

Guard of soundness: j are equalities between expressions over L and over R, c is about R alone. Guard of cost: no unique
key of R is among the columns of j, since D would be R. A left join, which D costs one node more, has ``PARTNERS`` rows
of R for each key, and stands below no other join, which would find the rows of both parts by keys, and so keep them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, Final

from msgspec import Struct

from planner.algebra.construction import Fresh, conjunction, conjuncts, filtered, has_subquery
from planner.algebra.nodes import (
    Aggregate,
    Call,
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
    Unnest,
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
from planner.incremental.dataflow.keyable import are_comparable
from planner.rules.joins.cardinality import Cardinality
from planner.statistics import Statistics

#: Rows for each key on the right side of a left join, on average, from which on it is split.
PARTNERS: Final = 8

_JOINS: Final = kinds_of(Join)
_WORKING: Final = kinds_of(Working)
_ASKING: Final = ("semi", "anti", "left")
_EQUALITIES: Final = ("eq", "is_not_distinct")


class _Equality(Struct, frozen=True):
    """An equality of an expression over the left side with one over the right side."""

    function: str
    left: Scalar
    right: Scalar


class _Asked(Struct, frozen=True):
    """What a join asks of the right side's rows: the equalities, and the conditions about them alone."""

    equalities: Sequence[_Equality]
    own: Sequence[Scalar]


def asks_for_partners(relation: Relation) -> bool:
    """Whether a relation has a join that may be one of these."""
    return any(join.kind in _ASKING for join in find(relation, _JOINS))


def with_counted_keys(relation: Relation, statistics: Statistics) -> Relation:
    """The relation whose joins ask for counted keys where the guards hold; ``statistics`` tell the keys of tables."""
    if not asks_for_partners(relation):
        return relation
    counting = _Counting(relation, statistics)
    found: Relation = transform_relations(relation, counting.change, _JOINS)
    return found


class _Counting:
    """The joins of one relation, inner ones first."""

    def __init__(self, relation: Relation, statistics: Statistics) -> None:
        self._fresh = Fresh(relation)
        self._statistics = statistics
        self._cardinality = Cardinality(relation, statistics)
        #: The columns of joins below others.
        self._below = {below.columns for join in find(relation, _JOINS) for below in _joins_below(join)}

    def change(self, node: Any) -> Any:
        """What stands in the place of a node."""
        if not isinstance(node, Join) or node.kind not in _ASKING or contains(node, _WORKING):
            return node
        asked = _asked(node)
        keys = () if asked is None else [item.right for item in asked.equalities]
        if asked is None or self._is_unique(node.right, keys):
            return node
        if node.kind != "left":
            return self._partners(node.left, node, asked, {})
        return self._parts(node, asked) if self._has_many(node, keys) else node

    def _has_many(self, node: Join, keys: Sequence[Scalar]) -> bool:
        """Whether a left join that stands below no other has many partners for each key, as far as that is known."""
        distinct = [self._cardinality.distinct(key) for key in keys]
        known = [count for count in distinct if count is not None]
        is_known = len(known) == len(distinct) and node.columns not in self._below
        return is_known and PARTNERS * prod(known) <= self._cardinality.rows(node.right)

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
                known = self._statistics.get(relation.oid)
                names = {
                    name for column, name in zip(relation.columns, relation.sources, strict=True) if column in columns
                }
                return known is None or any(key <= names for key in known.keys)
            case Join() | SetOperation(all=True):
                return False
            case _:
                return True

    def _partners(self, left: Relation, node: Join, asked: _Asked, renamed: Mapping[Column, Column]) -> Join:
        """The rows of the left side that have partners, or have none; its columns may be ``renamed``."""
        right, mapping = self._fresh.rename(node.right)
        values = [(item, _renamed(item.right, mapping)) for item in asked.equalities]
        below = [(self._fresh.column("key", value.type), value) for _, value in values]
        rows = filtered(right, [_renamed(condition, mapping) for condition in asked.own])
        keys = tuple((self._fresh.copy(column), ColumnRef(column)) for column, _ in below)
        counted = Aggregate(Project(rows, tuple(below)), keys, ())
        equal = (
            Call(item.function, (_renamed(item.left, renamed), ColumnRef(key)), node.predicate.type)
            for (item, _), (key, _) in zip(values, keys, strict=True)
            if node.predicate is not None
        )
        return Join("semi" if node.kind == "semi" else "anti", left, counted, conjunction(equal))

    def _parts(self, node: Join, asked: _Asked) -> SetOperation:
        """A left join as the sum of the joined rows and of those without partners."""
        joined, _ = self._fresh.rename(Join("inner", node.left, node.right, node.predicate))
        left, mapping = self._fresh.rename(node.left)
        alone = self._partners(left, node, asked, mapping)
        outputs: list[tuple[Column, Scalar]] = [
            (self._fresh.copy(column), ColumnRef(mapping[column])) for column in node.left.columns
        ]
        outputs += [(self._fresh.copy(column), Literal(None, column.type)) for column in node.right.columns]
        return SetOperation("union", True, joined, Project(alone, tuple(outputs)), node.columns)


def _renamed(scalar: Scalar, mapping: Mapping[Column, Column]) -> Scalar:
    found: Scalar = replace_columns(scalar, {column: ColumnRef(other) for column, other in mapping.items()})
    return found


def _joins_below(join: Join) -> Iterator[Join]:
    """The joins that a join reads, but for filters and projections between them."""
    for side in (join.left, join.right):
        while isinstance(side, Filter | Project | Unnest):
            side = side.input
        if isinstance(side, Join):
            yield side


def _asked(node: Join) -> _Asked | None:
    """What a join asks; None where it compares both sides otherwise, or by no equality."""
    if node.predicate is None or has_subquery(node.predicate) or is_dependent(node.right, node.left):
        return None
    left, right = set(node.left.columns), set(node.right.columns)
    equalities, own = list[_Equality](), list[Scalar]()
    for part in conjuncts(node.predicate):
        found = _equality(part, left, right)
        if found is not None:
            equalities.append(found)
        elif used_columns(part) <= right:
            own.append(part)
        else:
            return None
    return _Asked(equalities, own) if equalities else None


def _equality(part: Scalar, left: set[Column], right: set[Column]) -> _Equality | None:
    if not isinstance(part, Call) or part.function not in _EQUALITIES:
        return None
    if not are_comparable(*(argument.type for argument in part.arguments)):
        return None
    for here, there in (part.arguments, part.arguments[::-1]):
        if used_columns(here) and used_columns(here) <= left and used_columns(there) and used_columns(there) <= right:
            return _Equality(part.function, here, there)
    return None

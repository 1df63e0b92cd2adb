"""Left joins whose right side has many rows for each key, which is counted (Tempura, section 4.2, equation 3: the
positive and the negative part of a left join).

    L left R on j and l and r  =  (L join R on j and l and r)  +  (L anti D on j and l) with NULL for R's columns

with D the values of j in R where r, each once, which a grouping counts. A row of L meets one row of D at most, so that
both parts are linear in R and in D, and so is any region Q above::

    d(Q) by R, D  =  Q(.., L join dR on j and l and r, ..)  -  Q(.., (L join dD on j and l) with NULL, ..)

A changed row of R meets the rows of L with its key, and none of R. Unlike in Tempura both parts stay one join, which
a change of L meets as before, and D is kept beside it.

Guard of soundness: j are equalities between expressions over L and over R, l is about L alone, r about R alone. Guard
of cost: as of ``rewrites.counted_keys``, which chooses the joins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from catalog.values.types import BOOL
from planner.algebra.construction import conjunction, filtered
from planner.algebra.nodes import Aggregate, Call, ColumnRef, Join, Literal, Project, Relation, Snapshot
from planner.algebra.walk import RELATION_KINDS, transform
from planner.incremental.dataflow.building import Building, Counted, with_keys
from planner.incremental.dataflow.graph import references
from planner.incremental.dataflow.rewrites.counted_keys import asked


def counted(
    building: Building, node: Join, grouped: Callable[[Aggregate], Relation], closed: Callable[[Relation], Snapshot]
) -> Join:
    """A left join whose right side has its keys as columns, and these counted."""
    found = asked(node)
    assert found is not None
    assert not found.compared
    right, columns = with_keys(building, node.right, [item.right for item in found.equalities])
    below = closed(right)
    equal = (
        Call(item.function, (item.left, ColumnRef(column)), BOOL)
        for item, column in zip(found.equalities, columns, strict=True)
    )
    join = replace(node, right=below, predicate=conjunction((*found.left, *equal, *found.right)))
    keys = tuple((building.fresh.copy(column), ColumnRef(column)) for column in columns)
    leaf = closed(grouped(Aggregate(filtered(below, list(found.right)), keys, ())))
    have = (
        Call(item.function, (item.left, ColumnRef(key)), BOOL)
        for item, (key, _) in zip(found.equalities, keys, strict=True)
    )
    have_keys = conjunction((*found.left, *have))
    assert join.predicate is not None and have_keys is not None
    building.counted[join.predicate] = Counted(leaf, tuple(columns), have_keys)
    return join


def joined(region: Relation, join: Join) -> Relation:
    """A region's rows that are made of joined ones of a left join in it."""
    return _with(region, join, replace(join, kind="inner"))


def alone(region: Relation, join: Join, keys: Counted) -> Relation:
    """A region's rows that are made of those of a left join in it which have keys, with NULL for partners."""
    have = Join("inner", join.left, keys.leaf, keys.predicate)
    none = tuple((column, Literal(None, column.type)) for column in join.right.columns)
    return _with(region, join, Project(have, (*references(join.left.columns), *none)))


def _with(region: Relation, join: Join, instead: Relation) -> Relation:
    def change(node: Any) -> Any:
        return instead if node is join else node

    found: Relation = transform(region, change, RELATION_KINDS)
    return found

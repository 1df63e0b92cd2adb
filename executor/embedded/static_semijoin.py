"""Restricts a view's static inputs to the rows that a few rows of the stream can join, so that an engine need not hash
all of them.

The static side of a join was computed when the view was created and may have millions of rows; a join hashes all of it
for a thousand rows of the stream. With the order of its key, which is found once, the rows with a partner are a look-up
away. The look-up is a semijoin of the static side with the delta, after which the join gives equal rows:

    delta d JOIN static s ON d.k = s.k AND p
    =  d JOIN (SELECT * FROM s WHERE k IN (SELECT k FROM d)) s ON d.k = s.k AND p

This holds for every kind of join that keeps no row of its right side without a partner: inner, left, semi, anti. Owns:
which inputs of a statement these are, and the order of their keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from executor.printing.nodes import leaf_name
from planner.algebra.construction import conjuncts
from planner.algebra.nodes import Call, Cast, Column, ColumnRef, Delta, Join, Relation, Scalar, Snapshot
from planner.algebra.walk import walk

#: The most rows of a static input that is hashed in less time than restricting it takes.
_LITTLE: Final = 4096
_KEPT: Final = ("inner", "left", "semi", "anti")
#: From narrow to wide.
_INTEGERS: Final = ("int2", "int4", "int8")

_Integers = npt.NDArray[np.int64]


class Reduction:
    """One static input of a statement: ``leaf`` is its engine name; its column ``key`` equals ``source`` of the changes
    of the relation ``oid``. Used by any thread."""

    def __init__(self, leaf: str, key: str, oid: int, source: str) -> None:
        self.leaf = leaf
        self.oid = oid
        self._key = key
        self._source = source
        self._last: pa.Table | None = None
        self._order: tuple[pa.Table, _Integers, _Integers] | None = None

    def reduced(self, static: pa.Table, delta: pa.Table) -> pa.Table:
        """The static rows that join with a delta's rows, in their order; all rows if restricting saves nothing."""
        if static.num_rows <= max(_LITTLE, delta.num_rows) or static.column(self._key).null_count:
            return static
        again, self._last = self._last is static, static
        if not again:  # sorting the keys takes longer than hashing them once
            return static
        keys, rows = self._ordered(static)
        wanted = np.unique(delta.column(self._source).drop_null().to_numpy())
        first, end = np.searchsorted(keys, wanted), np.searchsorted(keys, wanted, side="right")
        counts = end - first
        places = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        return static.take(pa.array(np.sort(rows[places])))

    def _ordered(self, static: pa.Table) -> tuple[_Integers, _Integers]:
        """The keys in ascending order, and the row of each."""
        known = self._order
        if known is None or known[0] is not static:
            values = static.column(self._key).to_numpy()
            rows = np.argsort(values, kind="stable")
            known = self._order = (static, values[rows], rows)
        return known[1:]


def reductions_of(relation: Relation) -> tuple[Reduction, ...]:
    """The static inputs of a statement that can be restricted."""
    uses = Counter(item.trace for item in walk(relation) if isinstance(item, Snapshot))
    sources = {
        column: (item.oid, source)
        for item in walk(relation)
        if isinstance(item, Delta)
        for column, source in zip(item.columns, item.sources, strict=True)
    }
    joins = [item for item in walk(relation) if isinstance(item, Join) and item.kind in _KEPT]
    found = (_reduction(join, sources) for join in joins)
    return tuple(item for item, trace in (each for each in found if each is not None) if uses[trace] == 1)


def _reduction(join: Join, sources: dict[Column, tuple[int, str]]) -> tuple[Reduction, str] | None:
    """How a join's static side is restricted, and its trace."""
    for static in (join.right, join.left) if join.kind == "inner" else (join.right,):
        if isinstance(static, Snapshot):
            keys = dict(zip(static.columns, static.sources, strict=True))
            for left, right in _equal(join.predicate):
                for own, other in ((left, right), (right, left)):
                    if own in keys and other in sources:
                        return Reduction(leaf_name(static), keys[own], *sources[other]), static.trace
    return None


def _equal(predicate: Scalar | None) -> Iterator[tuple[Column, Column]]:
    """Pairs of integer columns whose equality a predicate requires."""
    for item in conjuncts(predicate):
        if isinstance(item, Call) and item.function == "eq":
            left, right = map(_column, item.arguments)
            if left is not None and right is not None:
                yield left, right


def _column(scalar: Scalar) -> Column | None:
    """The integer column that an expression passes on, possibly as a wider type."""
    if isinstance(scalar, Cast) and scalar.type.name in _INTEGERS:
        found = _column(scalar.argument)
        widens = found is not None and _INTEGERS.index(found.type.name) <= _INTEGERS.index(scalar.type.name)
        return found if widens else None
    return scalar.column if isinstance(scalar, ColumnRef) and scalar.type.name in _INTEGERS else None

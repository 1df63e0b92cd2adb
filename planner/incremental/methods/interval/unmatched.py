"""Rows without partners in outer interval joins, and rows with partners in semi joins.

    A left join B on p     =  J union all (U x NULLs)          J: the joined rows (``joins``)
    A anti join B on p     =  U
    A semi join B on p     =  S

    U        =  F union all P       F: rows that will have no partner, a stream;  P: rows that may yet have one
    M       +=  (A semi join dB)  +  (dA semi join B)  +  (dA semi join dB)              by the columns that p compares
    P        =  A, where B's watermark has not passed the time up to which a row can be joined, anti join M
    dF       =  A, of which that has passed the time in this delta, anti join M anti join dB on p
              + dA, of which it has passed the time, or that have none, anti join B on p anti join dB on p
    dS       =  (A anti join M) semi join dB  +  dA semi join B  +  (dA anti join B) semi join dB

U is the positive and the negative part of an outer join in one (Tempura, section 4.2): a row of P goes where its first
partner puts it into M, and where the watermark passes its time it goes over to F. Both are seen at a read, since P is
computed from the states as they are, and F and J only grow. Whether a row has a partner depends on the columns that p
compares alone, so that M tells it for equal rows at once. Rows leave M as they leave A, by the same watermark: what has
left either is in J or F. So U at an LSN is the same however the log is cut into deltas. Guard: p does not tell equal
values apart (``tell_equals_apart``), such as the texts of two intervals. A row comes into S with its
first partner, and stays: rows of S only come, as those of J and F do.

A row without a time meets no condition on it, and is in F as soon as it comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from catalog.values.equality import equals_are_one
from catalog.values.types import BOOL
from planner.algebra.construction import Fresh, conjunction, filtered, keep_columns, rename_columns
from planner.algebra.event_time import later
from planner.algebra.functions import COMPARISONS
from planner.algebra.nodes import (
    Aggregate,
    Call,
    Column,
    ColumnRef,
    Join,
    Literal,
    Project,
    Relation,
    Scalar,
    Snapshot,
)
from planner.algebra.walk import find, kinds_of
from planner.incremental.names import stored_name

_TRUE: Final = Literal(True, BOOL)
_FALSE: Final = Literal(False, BOOL)
_REFERENCES: Final = kinds_of(ColumnRef)
#: Functions that give equal arguments equal results, whatever these look like.
_COMPARING: Final = frozenset(
    (
        *(*COMPARISONS, "is_distinct", "is_not_distinct", "is_null", "is_not_null", "in"),
        *("and", "or", "not", "is_true", "is_not_true", "is_false", "is_not_false"),
    )
)


def tell_equals_apart(parts: Iterable[Scalar]) -> bool:
    """Whether conditions may have other values for equal ones: they do more than compare values whose equals may look
    different, such as intervals, documents and doubles."""
    return any(_tells_apart(operand) for part in parts for operand in _computed(part))


def _computed(part: Scalar) -> Iterator[Scalar]:
    """What a condition is computed of, but for columns that it just compares."""
    stack = [part]
    while stack:
        operand = stack.pop()
        if isinstance(operand, Call) and operand.function in _COMPARING:
            stack += operand.arguments
        elif not isinstance(operand, ColumnRef):
            yield operand


def _tells_apart(operand: Scalar) -> bool:
    kinds = [item.type for item in find(operand, _REFERENCES)]
    is_number = operand.type.name == "numeric"  # which has the same value of equal numbers
    return not all(equals_are_one(kind) or (is_number and kind.name == "numeric") for kind in kinds)


class Alone(Struct, frozen=True):
    """What an outer or semi join needs of a side whose rows it has: F as stream ``oid`` and S as stream ``met``, whose
    columns are called by their places, and M as state ``matched``, ``columns`` by those of the side's part."""

    oid: int
    met: int
    matched: str
    columns: Mapping[Column, Column]


class Rows(Struct, frozen=True):
    """A relation with rows of one side; ``columns`` by those of the side's part."""

    relation: Relation
    columns: Mapping[Column, Column]

    def renamed(self, scalar: Scalar | None) -> Scalar | None:
        """A scalar over the part's columns over these."""
        found: Scalar | None = rename_columns(scalar, dict(self.columns))
        return found


class Passing(Struct, frozen=True):
    """When a row can be joined no more: once the latest time of the other side's stream is ``age`` microseconds after
    the row's ``time``, a column of the side's part."""

    time: Column
    age: int

    def is_open(self, rows: Rows, latest: Column) -> tuple[Scalar, ...]:
        """Conditions on a row that has not passed beside the latest time."""
        time = ColumnRef(rows.columns[self.time])
        open_still = Call("gt", (later(time, self.age), ColumnRef(latest)), BOOL)
        return Call("is_not_null", (time,), BOOL), Call("coalesce", (open_still, _TRUE), BOOL)

    def has_passed(self, rows: Rows, latest: Scalar) -> Scalar:
        """The condition on a row that has, with a time."""
        passed = Call("le", (later(ColumnRef(rows.columns[self.time]), self.age), latest), BOOL)
        return Call("coalesce", (passed, _FALSE), BOOL)


def unmatched_so_far(rows: Rows, alone: Alone, latest: Aggregate, passing: Passing, fresh: Fresh) -> Relation:
    """P, of the rows that a side has in its state, under their columns; ``latest`` is the latest time of the other
    stream."""
    mark = fresh.copy(latest.columns[0])
    beside = Join("inner", rows.relation, Project(latest, ((mark, ColumnRef(latest.columns[0])),)), None)
    shown = keep_columns(filtered(beside, passing.is_open(rows, mark)), rows.relation.columns)
    return without_known(Rows(shown, rows.columns), alone, fresh)


def without_known(rows: Rows, alone: Alone, fresh: Fresh) -> Relation:
    """The rows that no partner is known of."""
    copies = {part: fresh.copy(column) for part, column in alone.columns.items()}
    matched = Snapshot(alone.matched, tuple(copies.values()), tuple(map(stored_name, alone.columns.values())))
    same = (
        Call("is_not_distinct", (ColumnRef(rows.columns[part]), ColumnRef(column)), BOOL)
        for part, column in copies.items()
    )
    return Join("anti", rows.relation, matched, conjunction(same))


def with_partner(rows: Rows, others: Rows, predicate: Scalar, alone: Alone) -> Relation:
    """What M gets of the rows that have a partner among others."""
    met = Join("semi", rows.relation, others.relation, _over(rows, others, predicate))
    return Aggregate(met, tuple((column, ColumnRef(rows.columns[part])) for part, column in alone.columns.items()), ())


def among_partners(rows: Rows, others: Rows, predicate: Scalar) -> Rows:
    """The rows that have a partner among others."""
    return Rows(Join("semi", rows.relation, others.relation, _over(rows, others, predicate)), rows.columns)


def without_partner(rows: Rows, others: Rows, predicate: Scalar) -> Rows:
    """The rows that have no partner among others."""
    return Rows(Join("anti", rows.relation, others.relation, _over(rows, others, predicate)), rows.columns)


def _over(rows: Rows, others: Rows, predicate: Scalar) -> Scalar:
    found: Scalar = rename_columns(predicate, {**rows.columns, **others.columns})
    return found


def passing_now(rows: Rows, passing: Passing, before: Aggregate, delta: Aggregate) -> Rows:
    """Of rows of before a delta those that pass with it; ``before`` and ``delta`` have the latest time of the other
    stream before it and in it."""
    beside = Join("inner", Join("inner", rows.relation, before, None), delta, None)
    parts = (*passing.is_open(rows, before.columns[0]), passing.has_passed(rows, ColumnRef(delta.columns[0])))
    return Rows(keep_columns(filtered(beside, parts), rows.relation.columns), rows.columns)


def passed_already(rows: Rows, passing: Passing, before: Aggregate, delta: Aggregate) -> Rows:
    """Of rows that come with a delta those that have passed at its end, or that have no time."""
    beside = Join("left", Join("inner", rows.relation, before, None), delta, None)
    (one,), (other,) = before.columns, delta.columns
    latest = Call("greatest", (ColumnRef(one), ColumnRef(other)), one.type)
    timeless = Call("is_null", (ColumnRef(rows.columns[passing.time]),), BOOL)
    either = Call("or", (timeless, passing.has_passed(rows, latest)), BOOL)
    return Rows(keep_columns(filtered(beside, (either,)), rows.relation.columns), rows.columns)

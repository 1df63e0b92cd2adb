"""Conditions that hold for all rows of a state that has lost those which are done with (``Expiry``).

    Filter(S x latest, coalesce(time + age > latest, true))     =  S        S: the rows whose time lies less than age
                                                                            before the latest, and all before there is
                                                                            one
    Filter(S x latest, time + age > latest)                     =  S        the times are of the stream of the latest

A state's rows that are done with stay in it until runs are merged, so that its view asks which those are. A dataflow
takes them out of what it has of the state at the LSN at which they are done with: the state's losses are part of its
delta. Then the condition need not be asked, nor need each change of the latest time meet all rows.

Guard: the time is a column of the state itself, of each row that the condition is asked about, and the condition's age
is at least the state's. ``latest`` is one row, and nothing else reads it. Without ``coalesce``, no row with a time may
be there before there is a latest one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from planner.algebra.construction import conjunction, conjuncts, filtered
from planner.algebra.event_time import microseconds
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Column,
    ColumnRef,
    Delta,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    Scalar,
    Snapshot,
)
from planner.algebra.walk import descend, find, kinds_of, transform_relations
from planner.incremental.names import stored_name
from planner.incremental.programs.program import Expiry, Program
from planner.rules.projections.prune_columns import needed_columns, prune_columns

_DELTAS: Final = kinds_of(Delta)
_JOINS: Final = kinds_of(Join)


def without_expired(relation: Relation, program: Program) -> Relation:
    """A program's final relation over states that have lost their rows as soon as these are done with."""
    bounded = {item.state: item for item in program.expiries if item.is_by_times}
    if not bounded:
        return relation
    found: Relation = transform_relations(relation, _Holding(bounded, program).change)
    return relation if found is relation else _without_unread(prune_columns(found))


class _Time(Struct, frozen=True):
    """A column that has the time by which the rows of ``state`` leave it."""

    state: str


class _Latest(Struct, frozen=True):
    """A column of the one row with the greatest value of a state's column."""

    state: str
    column: str


_Meanings = Mapping[Column, _Time | _Latest]


class _Holding:
    """Takes such conditions out of one relation."""

    def __init__(self, bounded: Mapping[str, Expiry], program: Program) -> None:
        self._bounded = bounded
        self._program = program

    def change(self, node: Any) -> Any:
        """A filter or an inner join without them."""
        match node:
            case Filter():
                meanings = self._meanings(node.input)
                kept = [part for part in conjuncts(node.predicate) if not self._holds(part, meanings)]
                return node if len(kept) == len([*conjuncts(node.predicate)]) else filtered(node.input, kept)
            case Join(kind="inner", predicate=predicate) if predicate is not None:
                meanings = self._meanings(node)
                kept = [part for part in conjuncts(predicate) if not self._holds(part, meanings)]
                is_same = len(kept) == len([*conjuncts(predicate)])
                return node if is_same else replace(node, predicate=conjunction(kept))
            case _:
                return node

    def _holds(self, part: Scalar, meanings: _Meanings) -> bool:
        """Whether a condition holds for all rows."""
        match part:
            case Call(function="coalesce", arguments=(Call() as compared, Literal(value=True))):
                return self._is_open(compared, meanings, is_missing=True)
            case Call():
                return self._is_open(part, meanings, is_missing=False)
            case _:
                return False

    def _is_open(self, part: Call, meanings: _Meanings, *, is_missing: bool) -> bool:
        """Whether a comparison holds; ``is_missing``: it also counts before there is a latest time."""
        match part:
            case Call(
                function="gt",
                arguments=(
                    Call(function="add", arguments=(ColumnRef(column=time), Literal(value=(0, _, _)) as age)),
                    ColumnRef(column=latest),
                ),
            ):
                of, mark = meanings.get(time), meanings.get(latest)
            case _:
                return False
        if not isinstance(of, _Time) or not isinstance(mark, _Latest):
            return False
        expiry = self._bounded[of.state]
        (first, *also) = expiry.marks
        is_by_it = not also and (first.watermark, stored_name(first.latest)) == (mark.state, mark.column)
        is_seen = is_missing or self._is_of_one_stream(of.state, mark.state)
        return is_by_it and is_seen and microseconds(age) >= first.age

    def _is_of_one_stream(self, state: str, mark: str) -> bool:
        """Whether a state and the latest time are of one stream alone, so that where a row is there is a time."""
        read = [self._inputs(name) for name in (state, mark)]
        return read[0] == read[1] and len(read[0]) == 1

    def _inputs(self, state: str) -> set[int]:
        statements = (item for path in self._program.paths for item in path.statements if item.target == state)
        return {node.oid for item in statements for node in find(item.relation, _DELTAS)}

    def _meanings(self, relation: Relation) -> dict[Column, _Time | _Latest]:
        """What is known of the columns of a relation, for each of whose rows there is one of what they come from."""
        match relation:
            case Snapshot():
                return self._of_state(relation)
            case Filter():
                return self._meanings(relation.input)
            case Project():
                below = self._meanings(relation.input)
                return {
                    column: below[value.column]
                    for column, value in relation.outputs
                    if isinstance(value, ColumnRef) and value.column in below
                }
            case Join(kind="inner"):
                return self._meanings(relation.left) | self._meanings(relation.right)
            case Join(kind="left" | "semi" | "anti"):
                return self._meanings(relation.left)
            case Aggregate(keys=(), input=Snapshot() as leaf):
                return dict(_latest(relation, leaf))
            case _:
                return {}

    def _of_state(self, leaf: Snapshot) -> dict[Column, _Time | _Latest]:
        expiry = self._bounded.get(leaf.trace)
        if expiry is None:
            return {}
        pairs = zip(leaf.columns, leaf.sources, strict=True)
        return {column: _Time(leaf.trace) for column, source in pairs if source == stored_name(expiry.column)}


def _latest(relation: Aggregate, leaf: Snapshot) -> Iterable[tuple[Column, _Latest]]:
    sources = dict(zip(leaf.columns, leaf.sources, strict=True))
    for column, call in relation.aggregates:
        match call:
            case AggregateCall(function="max", arguments=(ColumnRef(column=below),), filter=None):
                yield column, _Latest(leaf.trace, sources[below])
            case _:
                pass


def _without_unread(relation: Relation) -> Relation:
    """The relation without cross joins with one row of which nothing is read."""
    used = needed_columns(relation)

    def change(node: Any) -> Any:
        while isinstance(node, Join) and node.kind == "inner" and node.predicate is None:
            if _is_one_row(node.right) and used.isdisjoint(node.right.columns):
                node = node.left
            elif _is_one_row(node.left) and used.isdisjoint(node.left.columns):
                node = node.right
            else:
                break
        return node

    found: Relation = descend(relation, change, _JOINS)
    return found


def _is_one_row(relation: Relation) -> bool:
    while isinstance(relation, Project):
        relation = relation.input
    return isinstance(relation, Aggregate) and not relation.keys

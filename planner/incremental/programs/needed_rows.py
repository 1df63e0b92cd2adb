"""Which rows of a state a statement needs: those that its delta's rows can meet.

    S join D on S.k = D.k                         rows of S whose k is one of D's               (``Sought``)
    D anti join S on S.k = D.k, D semi join S     likewise
    T anti join S on S.k = T.k                    rows whose k is one of those that it needs of state T
    Filter(S, time + c <= max(D.ts))              rows whose time is up to that, behind what the   (``Passed``)
                                                  latest time before the delta has passed

A condition counts for a row of S where the row makes no difference to the result unless it holds: of filters and inner
joins above it, of a semi join on both sides, and of an anti or left join on the right side. Whatever else a statement
asks, it asks of these rows again: they may be too many, never too few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from catalog.values.equality import equals_are_one
from planner.algebra.construction import conjuncts
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
from planner.algebra.walk import children, is_relation, walk


class Leaf(Struct, frozen=True):
    """A column of the changes of an input, by its oid, or of a state, by its name."""

    of: int | str
    source: str


class Sought(Struct, frozen=True):
    """Rows whose ``column`` has a value that ``among`` has, or NULL."""

    column: str
    among: Leaf


class Passed(Struct, frozen=True):
    """Rows whose ``column``, a time, is at least ``age`` microseconds before the latest value of ``upto``, and less
    than ``known`` before that of ``behind``, if it has one."""

    column: str
    upto: Leaf
    age: int
    behind: Leaf
    known: int


Need = Sought | Passed
#: By state, what is needed of it for each place where it is read; None for all rows.
Needs = Mapping[str, tuple[Need, ...] | None]


def needs_of(relations: Iterable[Relation]) -> Needs:
    """What some statements' relations need of the states that they read."""
    found: dict[str, tuple[Need, ...] | None] = {}
    for relation in relations:
        meanings = _Meanings(relation)
        for leaf, facts in _leaves(relation, ()):
            need = meanings.need(leaf, facts)
            known = found.get(leaf.trace, ())
            found[leaf.trace] = None if need is None or known is None else (*known, need)
    return found


def _leaves(root: Relation, facts: tuple[Scalar, ...]) -> Iterator[tuple[Snapshot, tuple[Scalar, ...]]]:
    """The places where states are read, each with the conditions that count for its rows."""
    stack = [(root, facts)]
    while stack:
        node, known = stack.pop()
        match node:
            case Snapshot():
                yield node, known
            case Filter():
                stack.append((node.input, (*known, *conjuncts(node.predicate))))
            case Project():
                stack.append((node.input, known))
            case Join(kind="inner" | "semi"):
                more = (*known, *conjuncts(node.predicate))
                stack += [(node.left, more), (node.right, more)]
            case Join(kind="anti"):
                stack += [(node.left, known), (node.right, (*known, *conjuncts(node.predicate)))]
            case Join(kind="left"):
                stack += [(node.left, known), (node.right, tuple(conjuncts(node.predicate)))]
            case _:
                stack += [(item, ()) for item in children(node) if is_relation(item)]


class _Meanings:
    """What the columns of one statement are."""

    def __init__(self, relation: Relation) -> None:
        self._values: dict[Column, Scalar] = {}
        self._leaves: dict[Column, Leaf] = {}
        #: Columns with the greatest value of a leaf's.
        self._greatest: dict[Column, Leaf] = {}
        nodes = [*walk(relation)]
        for node in reversed(nodes):
            match node:
                case Project(outputs=outputs):
                    self._values |= {column: value for column, value in outputs if value != ColumnRef(column)}
                case Delta(oid=of) | Snapshot(trace=of):
                    self._leaves |= {
                        column: Leaf(of, source) for column, source in zip(node.columns, node.sources, strict=True)
                    }
                case _:
                    pass
        for node in reversed(nodes):
            if isinstance(node, Aggregate) and not node.keys:
                self._greatest |= dict(self._tops(node))

    def _tops(self, node: Aggregate) -> Iterator[tuple[Column, Leaf]]:
        for column, call in node.aggregates:
            match call:
                case AggregateCall(function="max", arguments=(ColumnRef() as value,), filter=None):
                    leaf = self._leaf(value)
                    if leaf is not None and isinstance(node.input, Delta | Snapshot):
                        yield column, leaf
                case _:
                    pass

    def _resolved(self, value: Scalar) -> Scalar:
        while isinstance(value, ColumnRef) and value.column in self._values:
            value = self._values[value.column]
        return value

    def _leaf(self, value: Scalar) -> Leaf | None:
        found = self._resolved(value)
        return self._leaves.get(found.column) if isinstance(found, ColumnRef) else None

    def _own(self, value: Scalar, leaf: Snapshot) -> str | None:
        """What a leaf calls a column of it."""
        found = self._resolved(value)
        if not isinstance(found, ColumnRef) or found.column not in leaf.columns:
            return None
        return leaf.sources[leaf.columns.index(found.column)]

    def need(self, leaf: Snapshot, facts: Iterable[Scalar]) -> Need | None:
        """What is needed of a leaf where some conditions count for its rows; None for all rows. Rather by the changes
        of an input than by another state."""
        conditions = tuple(facts)
        sought = [item for part in conditions if (item := self._sought(part, leaf)) is not None]
        by_delta = [item for item in sought if isinstance(item.among.of, int)]
        return next(iter(by_delta), None) or self._passed(conditions, leaf) or next(iter(sought), None)

    def _sought(self, part: Scalar, leaf: Snapshot) -> Sought | None:
        match part:
            case Call(function="eq" | "is_not_distinct", arguments=(ColumnRef() as one, ColumnRef() as other)):
                for here, there in ((one, other), (other, one)):
                    own, among = self._own(here, leaf), self._leaf(there)
                    alike = here.type == there.type and equals_are_one(here.type)
                    if own is not None and among is not None and alike and self._own(there, leaf) is None:
                        return Sought(own, among)
            case _:
                pass
        return None

    def _passed(self, facts: tuple[Scalar, ...], leaf: Snapshot) -> Passed | None:
        ends = [item for part in facts if (item := self._compared(part, leaf, "le", value=False)) is not None]
        starts = [item for part in facts if (item := self._compared(part, leaf, "gt", value=True)) is not None]
        for column, upto, age in ends:
            for other, behind, known in starts:
                if column == other and isinstance(upto.of, int) and isinstance(behind.of, str):
                    return Passed(column, upto, age, behind, known)
        return None

    def _compared(self, part: Scalar, leaf: Snapshot, function: str, *, value: bool) -> tuple[str, Leaf, int] | None:
        """A leaf's column that a condition compares with the greatest value of another one, so much later; where that
        is NULL it counts as the ``value``."""
        match part:
            case Call(
                function="coalesce",
                arguments=(
                    Call(
                        function=called,
                        arguments=(
                            Call(function="add", arguments=(time, Literal(value=(0, _, _)) as age)),
                            ColumnRef() as latest,
                        ),
                    ),
                    Literal(value=missing),
                ),
            ) if called == function and missing is value:
                own, top = self._own(time, leaf), self._resolved(latest)
                greatest = self._greatest.get(top.column) if isinstance(top, ColumnRef) else None
                return None if own is None or greatest is None else (own, greatest, microseconds(age))
            case _:
                return None

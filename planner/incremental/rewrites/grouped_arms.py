"""A grouping over UNION ALL as one of groupings over each arm, so that tables may be read below each (``live_tables``).

    Aggregate(P(A union all B), k, a)
        =  Project(Aggregate(Aggregate(P(A), k, s) union all Aggregate(P(B), k, s), k, m), f)

s are the state columns of a, m merges them, and f makes a of them. Where the state of an aggregate is not a few columns
(DISTINCT, ordered ones), the arms are grouped by all columns that k and a use, and counted: each group then stands for
as many rows (``pushed_calls``). A table on the outer side of a join with a stream makes such arms (``prepare``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec.structs import replace

from catalog.values.types import INT8, TEXT, array
from planner.algebra.construction import Fresh
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Cast,
    Column,
    ColumnRef,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    Scalar,
    SetOperation,
    Unnest,
)
from planner.algebra.nulls import never_null
from planner.algebra.partial_aggregates import Split, merge_of, split
from planner.algebra.walk import Node, replace_columns, used_columns
from planner.incremental.properties import Kinds
from planner.incremental.rewrites.pushed_calls import PushedCalls
from planner.lowering.outer_values import has_equal_values

#: What becomes of one arm's grouping.
ChangeArm = Callable[[Aggregate], Relation]


def streamward(node: Relation, kinds: Kinds) -> Relation:
    """The input of an operator of a stream's pipeline that contains the stream."""
    match node:
        case Join():
            return node.left if kinds.of(node.left) == "stream" else node.right
        case Filter() | Project() | Unnest():
            return node.input
        case _:
            raise AssertionError(f"{type(node).__name__} in a stream pipeline")


def grouped_arms(node: Aggregate, kinds: Kinds, fresh: Fresh, change: ChangeArm) -> Project:
    """The grouping over groupings of its arms, which ``change`` makes. Raises TablesStayFrozen."""
    known = never_null(node.input)
    splits = [split(call, known) for _, call in node.aggregates]
    whole = [item for item in splits if isinstance(item, Split)]
    arms = _Arms(_arms(node.input, kinds), fresh, change)
    return _merged(node, whole, arms, fresh) if len(whole) == len(splits) else _counted(node, known, arms, fresh)


def _arms(relation: Relation, kinds: Kinds) -> list[Relation]:
    """The relation over either input of the first UNION ALL on the stream's way down."""
    above: list[Relation] = []
    below = relation
    while not isinstance(below, SetOperation):
        above.append(below)
        below = streamward(below, kinds)
    found: list[Relation] = []
    for side in (below.left, below.right):
        pairs = zip(below.columns, side.columns, strict=True)
        arm: Relation = Project(side, tuple((column, ColumnRef(own)) for column, own in pairs))
        for operator in reversed(above):
            arm = _over(operator, arm, kinds)
        found.append(arm)
    return found


def _over(node: Any, below: Relation, kinds: Kinds) -> Relation:
    """An operator over another stream side."""
    place = "input"
    if isinstance(node, Join):
        place = "left" if kinds.of(node.left) == "stream" else "right"
    found: Relation = replace(node, **{place: below})
    return found


class _Arms:
    """The arms of one UNION ALL."""

    def __init__(self, arms: Sequence[Relation], fresh: Fresh, change: ChangeArm) -> None:
        self._arms = arms
        self._fresh = fresh
        self._change = change

    def grouped(
        self, keys: tuple[tuple[Column, Scalar], ...], calls: tuple[tuple[Column, AggregateCall], ...]
    ) -> SetOperation:
        """The groups of all arms, under new columns for the keys and calls."""
        first, second = (self._grouped(Aggregate(arm, keys, calls)) for arm in self._arms)
        columns = tuple(self._fresh.copy(column) for column, _ in (*keys, *calls))
        return SetOperation("union", True, first, second, columns)

    def _grouped(self, node: Aggregate) -> Relation:
        """One arm's groups. What both arms have above the union gets columns of its own."""
        renamed, _ = self._fresh.rename(node)
        assert isinstance(renamed, Aggregate)
        return self._change(renamed)


def _merged(node: Aggregate, splits: Sequence[Split], arms: _Arms, fresh: Fresh) -> Project:
    """The grouping over arms that have the state columns of its aggregates."""
    fills = {item.key: (fresh.column(item.name, item.fill.type), item.fill) for part in splits for item in part.columns}
    below = arms.grouped(node.keys, tuple(fills.values()))
    keys, states = below.columns[: len(node.keys)], below.columns[len(node.keys) :]
    merges = {
        key: (fresh.copy(column), merge_of(fill, column))
        for (key, (_, fill)), column in zip(fills.items(), states, strict=True)
    }
    outer = Aggregate(below, tuple((fresh.copy(key), ColumnRef(key)) for key in keys), tuple(merges.values()))
    results = (part.finalise([ColumnRef(merges[item.key][0]) for item in part.columns]) for part in splits)
    return _named(node, outer, results)


def _counted(node: Aggregate, known: frozenset[Column], arms: _Arms, fresh: Fresh) -> Project:
    """The grouping over arms that say how often they have a row of the columns that it uses."""
    parts: list[Node] = [*(value for _, value in node.keys), *(call for _, call in node.aggregates)]
    used = frozenset(chain.from_iterable(map(used_columns, parts)))
    columns = [column for column in node.input.columns if column in used]
    values: list[tuple[Column, Scalar]] = [(fresh.copy(column), ColumnRef(column)) for column in columns]
    shown = [Cast(ColumnRef(column), TEXT) for column in columns if has_equal_values(column.type)]
    values += [(fresh.column("shown", TEXT), text) for text in shown]
    count = (fresh.column("rows", INT8, False), AggregateCall("count", (), INT8))
    below: Relation = arms.grouped(tuple(values), (count,))
    found = dict(zip(columns, map(ColumnRef, below.columns), strict=False))
    counted = _Counted(found, ColumnRef(below.columns[-1]))
    calls = PushedCalls(counted, known, fresh, bool(node.keys))
    results = [calls.result(call) for _, call in node.aggregates]
    keys = tuple((fresh.copy(column), counted.raised(value)) for column, value in node.keys)
    if calls.copy is not None:
        places = Call("series", (Literal(1, INT8), counted.rows, Literal(1, INT8)), array(INT8))
        below = Unnest(below, ((calls.copy, places),))
    return _named(node, Aggregate(below, keys, calls.all()), results)


def _named(node: Aggregate, outer: Aggregate, results: Any) -> Project:
    """The rows under the columns of the grouping that they are those of."""
    keys = zip((column for column, _ in node.keys), (ColumnRef(key) for key, _ in outer.keys), strict=True)
    return Project(outer, (*keys, *zip((column for column, _ in node.aggregates), results, strict=True)))


class _Counted:
    """Distinct rows of the columns that a grouping uses, with how often each is there."""

    def __init__(self, columns: Mapping[Column, Scalar], rows: ColumnRef) -> None:
        self._columns = dict(columns)
        self.rows = rows

    def is_safe(self, node: Node) -> bool:
        """All is computed of the rows."""
        return False

    def raised(self, node: Any) -> Any:
        """An expression over the rows."""
        return replace_columns(node, self._columns)

    def state(self, name: str, fill: AggregateCall) -> Column:
        """The number of rows, which is the only aggregate."""
        assert fill == AggregateCall("count", (), INT8), name
        return self.rows.column

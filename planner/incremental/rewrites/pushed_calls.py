"""Aggregates over joins, made of what a grouping below the joins has kept (``pushed_groupings``).

Each group of the inner grouping stands for ``rows`` rows. An aggregate is taken apart into plain ones
(``planner.algebra.partial_aggregates``), and for each of these the first way that fits is taken:

    of the source's row alone     its state column, merged          sum(x)      sum(state of x)
    nothing counts twice          itself                            max(y)      max(y)
    a count                       the sum of rows                   count(y)    sum(rows) where y is not null
    an exact sum                  the sum of products               sum(y)      sum(y * rows)
      of products                 the sum of their totals           sum(x * y)  sum(state of x * y)
    any other                     over each row of rows copies      corr(x, y)  corr(x, y)

Totals of products (``pushed_sums``) are added up where that is asked for: live tables keep the states that they have.
Parts of FILTER about the stream's row alone are asked below, where the state column is filled. Copies are numbered: the
other ways take the first of them. What depends on the order in which rows arrive cannot be computed so.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.types import BOOL, INT8, numeric
from planner.algebra.construction import Fresh, both, conjunction, conjuncts
from planner.algebra.nodes import AggregateCall, Call, Cast, Column, ColumnRef, Literal, Scalar
from planner.algebra.nulls import is_never_null, presence
from planner.algebra.partial_aggregates import COLLECTING, IDEMPOTENT, Child, merge_of, split
from planner.algebra.signature import key_of
from planner.algebra.walk import Node, transform
from planner.incremental.rewrites.inner_groupings import InnerGrouping
from planner.incremental.rewrites.pushed_sums import group_total

_EXACT: Final = ("int8", "numeric")
_NUMBERS: Final = ("int2", "int4", "int8", "numeric")


class Obstacle(Struct, frozen=True):
    """What keeps tables below a grouping from being read as they are, and what to write instead."""

    construct: str
    instead: str


class TablesStayFrozen(Exception):
    """A grouping that stays above its joins with tables."""

    def __init__(self, obstacle: Obstacle) -> None:
        super().__init__(obstacle.construct)
        self.obstacle = obstacle


class Groups(Protocol):
    """The groups over which the aggregates are computed."""

    @property
    def rows(self) -> ColumnRef:
        """How many rows a group stands for."""
        ...

    def is_safe(self, node: Node) -> bool:
        """Whether an expression may be computed before the groups are made."""
        ...

    def raised(self, node: Any) -> Any:
        """An expression over the rows as one over the groups."""
        ...

    def state(self, name: str, fill: AggregateCall) -> Column:
        """The column that an aggregate over a group's rows fills."""
        ...


class PushedCalls:
    """The aggregates of one grouping over the inner one's groups; ``copy`` numbers copies, where some are needed."""

    def __init__(
        self,
        inner: Groups,
        known: frozenset[Column],
        fresh: Fresh,
        is_keyed: bool,
        products: InnerGrouping | None = None,
    ) -> None:
        """``known`` are columns that are never NULL. Without keys there is a group even where there are no rows.
        ``products`` is the inner grouping where it is to have counts and sums alone, those of products among them."""
        self._inner = inner
        self._products = products
        self._known = known
        self._fresh = fresh
        self._is_keyed = is_keyed
        #: By what they are, and whether over all copies; equal ones once.
        self._calls: dict[Hashable, tuple[Column, AggregateCall]] = {}
        self._of_copies: set[Column] = set()
        self.copy: Column | None = None

    def result(self, call: AggregateCall) -> Scalar:
        """An aggregate's result over those of ``all``. Raises TablesStayFrozen."""
        if call.function in COLLECTING and not call.order_by and not call.distinct:
            construct = f"{call.function}() without ORDER BY over rows that are joined with a table"
            raise TablesStayFrozen(Obstacle(construct, f"Write {call.function}(... ORDER BY ...)."))
        part = split(call, self._known)
        if isinstance(part, Child):
            return self._added(call.function, self._raised(call)) if call.distinct else self._of_each_row(call)
        values = [self._plain(item.name, item.fill) for item in part.columns]
        found = [value for value in values if value is not None]
        return part.finalise(found) if len(found) == len(values) else self._of_each_row(call)

    def all(self) -> tuple[tuple[Column, AggregateCall], ...]:
        """The aggregates over the joined groups, or over copies of them."""
        calls = tuple(self._calls.values())
        if self.copy is None:
            return calls
        first = Call("eq", (ColumnRef(self.copy), Literal(1, INT8)), BOOL)
        return tuple(
            (column, call if column in self._of_copies else replace(call, filter=both(call.filter, (first,))))
            for column, call in calls
        )

    def _raised(self, call: AggregateCall) -> AggregateCall:
        if self._products is not None:  # whether a value is there is a smaller key than the value
            call = transform(call, self._asked_of_parts)
            call = replace(call, filter=conjunction(conjuncts(call.filter)))
        found: AggregateCall = self._inner.raised(call)
        return found

    def _asked_of_parts(self, node: Any) -> Any:
        if isinstance(node, Call) and node.function == "is_not_null":
            return presence(node.arguments[0], self._known)
        return node

    def _added(self, name: str, call: AggregateCall, of_copies: bool = False) -> ColumnRef:
        key = key_of(call), of_copies
        if key not in self._calls:
            self._calls[key] = (self._fresh.column(name, call.type), call)
            if of_copies:
                self._of_copies.add(self._calls[key][0])
        return ColumnRef(self._calls[key][0])

    def _of_each_row(self, call: AggregateCall) -> Scalar:
        """An aggregate over as many copies of each group as it has rows."""
        self.copy = self.copy or self._fresh.column("copy", INT8, False)
        return self._added(call.function, self._raised(call), of_copies=True)

    def _plain(self, name: str, fill: AggregateCall) -> Scalar | None:
        """A plain aggregate; None where only copies will do."""
        if fill.function in IDEMPOTENT and self._products is not None:
            return self._added(name, self._raised(fill))
        if all(map(self._inner.is_safe, fill.arguments)):
            return self._merged(name, fill)
        if fill.function in IDEMPOTENT:
            return self._added(name, self._raised(fill))
        if fill.function == "count":
            return self._count(name, fill)
        if fill.function == "sum" and fill.arguments[0].type.name in _NUMBERS and fill.type.name in _EXACT:
            return self._product(name, fill)
        return None

    def _merged(self, name: str, fill: AggregateCall) -> Scalar:
        """A state column's values, merged: those where the part of the filter about tables holds."""
        below = [part for part in conjuncts(fill.filter) if self._inner.is_safe(part)]
        above = [part for part in conjuncts(fill.filter) if part not in below]
        column = self._inner.state(name, replace(fill, filter=conjunction(below)))
        call = self._raised(replace(merge_of(fill, column), filter=conjunction(above)))
        return self._number(name, call) if fill.function == "count" else self._added(name, call)

    def _count(self, name: str, fill: AggregateCall) -> Scalar:
        present = (Call("is_not_null", (item,), BOOL) for item in fill.arguments)
        only = both(fill.filter, (part for part in present if not is_never_null(part.arguments[0], self._known)))
        counted = AggregateCall("sum", (self._inner.rows,), INT8, filter=only)
        return self._number(name, self._raised(counted))

    def _product(self, name: str, fill: AggregateCall) -> Scalar:
        """The sum of values as often as they are there, without loss."""
        kind = numeric(38, fill.type.scale if fill.type.name == "numeric" else 0)
        times = None if self._products is None else group_total(self._products, fill.arguments[0], kind)
        if times is None:
            value = Cast(self._inner.raised(fill.arguments[0]), kind)
            times = Call("mul", (value, Cast(self._inner.rows, numeric(19, 0))), kind)
        total = self._added(name, self._raised(AggregateCall("sum", (times,), kind, filter=fill.filter)))
        return total if kind == fill.type else Cast(total, fill.type, explicit=True)

    def _number(self, name: str, call: AggregateCall) -> Scalar:
        """A sum of counts; over no group it is NULL, where a count is 0."""
        found = self._added(name, call)
        return found if self._is_keyed and call.filter is None else Call("coalesce", (found, Literal(0, INT8)), INT8)

"""Sums and averages of doubles that can be taken back: exact sums of integers.

``retraction`` adds up states and takes them back (Tempura, section 3.2: a merge by attributes), which leaves errors
where a sum is rounded. With T the tiers, of which tier t has the doubles of a size from 2^l to 2^u and counts in units
of 2^-b::

    sum(x)  =  sum over t of sum(units(x, t)) * 2^-b(t)   +   sum(x) of the x in no tier
    avg(x)  =  sum(x) / count(x)

All 53 bits of a double in a tier are units (l - 52 >= -b), so that units are added and taken back without an error, and
16 million of them stay within 38 digits (u + b + 24 <= 126). The result has the error of three roundings, however many
rows came and went; a sum of doubles one after the other has more. Doubles in no tier are below 10^-22, above 10^23,
infinite or NaN. They are few as a rule: their sum is computed anew of the rows of the touched groups.

Whether a sum has left the range of doubles is told by the greatest size among its values, of which it matters only
whether that is finite, and so can be counted (``with_counted_checks``)::

    finite(s, max(|x|))  =  finite(s, infinite if count(|x| >= infinite) > 0, else 0)

Guard: the grouping's keys are found by equality of their representations (``keyable``), and its other aggregates are
maintained by parts as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.types import BOOL, FLOAT8, INT8, numeric
from planner.algebra.construction import Fresh
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    ColumnRef,
    Literal,
    Project,
    Relation,
    Scalar,
    Window,
    WindowCall,
)
from planner.algebra.signature import key_of
from planner.algebra.walk import find, kinds_of, transform
from planner.incremental.dataflow.keyable import is_keyable

#: By tier, the powers of two: the least size, the first one beyond, and how many units are 1.
TIERS: Final = ((-73, -23, 125), (-23, 27, 75), (27, 77, 25))
#: The units of a double in a tier, 0 where it is in another one. NULL where it is NULL.
UNITS: Final = "float_units"
_WHOLE: Final = numeric(38, 0)
_FLOATS: Final = ("float4", "float8")
_CALLING: Final = kinds_of(Aggregate, Window)
_CALLS: Final = kinds_of(Call)
_REFERENCES: Final = kinds_of(ColumnRef)
_INFINITE: Final = Literal(math.inf, FLOAT8)


def is_float_sum(call: AggregateCall) -> bool:
    """Whether an aggregate is a sum or an average of doubles of all rows."""
    plain = not call.distinct and not call.order_by
    return plain and call.function in ("sum", "avg") and call.arguments[0].type.name in _FLOATS


def may_be_exact(node: Aggregate) -> bool:
    """The guard, of the grouping's keys."""
    return all(is_keyable(value.type) for _, value in node.keys)


class _Parts(Struct, frozen=True):
    """What sums and averages of one value are made of."""

    value: Scalar
    only: Scalar | None
    units: tuple[Column, ...]
    count: Column
    other: Column

    @property
    def outside(self) -> Scalar:
        """Whether a row's double is in no tier, and counts."""
        return _both(self.only, Call("float_is_outside", (self.value,), BOOL))

    @property
    def retractable(self) -> Iterator[tuple[Column, AggregateCall]]:
        """The aggregates that can be taken back."""
        for tier, column in enumerate(self.units):
            in_tier = Call(UNITS, (self.value, Literal(tier, INT8)), _WHOLE)
            yield column, AggregateCall("sum", (in_tier,), _WHOLE, filter=self.only)
        yield self.count, AggregateCall("count", (self.value,), INT8, filter=self.only)


class FloatSums:
    """The sums and averages of doubles of one grouping."""

    def __init__(self, fresh: Fresh, calls: Iterable[tuple[Column, AggregateCall]]) -> None:
        self._fresh = fresh
        self._parts: dict[Hashable, _Parts] = {}
        #: The aggregates' values, by their columns, over the columns of the parts.
        self.results = {column: self._result(call) for column, call in calls if is_float_sum(call)}

    @property
    def retractable(self) -> tuple[tuple[Column, AggregateCall], ...]:
        """The aggregates that can be taken back."""
        return tuple(item for parts in self._parts.values() for item in parts.retractable)

    @property
    def outside(self) -> Scalar:
        """Whether a row has a double in no tier."""
        found = tuple(parts.outside for parts in self._parts.values())
        return found[0] if len(found) == 1 else Call("or", found, BOOL)

    @property
    def others(self) -> tuple[tuple[Column, AggregateCall], ...]:
        """The sums of the doubles in no tier."""
        return tuple(
            (parts.other, AggregateCall("sum", (parts.value,), FLOAT8, filter=parts.outside))
            for parts in self._parts.values()
        )

    def _result(self, call: AggregateCall) -> Scalar:
        parts = self._of(call)
        exact = Call("float_of_units", tuple(map(ColumnRef, parts.units)), FLOAT8)
        both: Scalar = Call("coalesce", (Call("add", (exact, ColumnRef(parts.other)), FLOAT8), exact), FLOAT8)
        if call.function == "avg":
            both = Call("div", (both, Cast(ColumnRef(parts.count), FLOAT8)), FLOAT8)
        return both if call.type == FLOAT8 else Cast(both, call.type)

    def _of(self, call: AggregateCall) -> _Parts:
        (value,) = call.arguments
        key = (key_of(value), None if call.filter is None else key_of(call.filter))
        if key not in self._parts:
            column = self._fresh.column
            units = tuple(column("units", _WHOLE) for _ in TIERS)
            double = value if value.type == FLOAT8 else Cast(value, FLOAT8)
            self._parts[key] = _Parts(double, call.filter, units, column("count", INT8, False), column("other", FLOAT8))
        return self._parts[key]


def _both(only: Scalar | None, condition: Scalar) -> Scalar:
    return condition if only is None else Call("and", (only, condition), BOOL)


def with_counted_checks(relation: Relation) -> Relation:
    """The relation whose sums of doubles are checked by counts of those that are not finite."""
    fresh = Fresh(relation)
    used = Counter(node.column for node in find(relation, _REFERENCES))
    checks = (call.arguments[1] for call in find(relation, _CALLS) if call.function == "finite")
    checking = Counter(size.column for size in checks if isinstance(size, ColumnRef))
    sizes = {column for column, times in checking.items() if times == used[column]}

    def change(node: Any) -> Any:
        calls = _calls_of(node)
        counts = {
            column: fresh.column("infinite", INT8, False)
            for column, call in calls
            if column in sizes and call.function == "max"
        }
        if not counts:
            return node
        counted = tuple(
            (counts[column], _count(call)) if column in counts else (column, call) for column, call in calls
        )
        outputs = (
            (column, _size(counts[column]) if column in counts else ColumnRef(column)) for column in node.columns
        )
        changed = {"aggregates" if isinstance(node, Aggregate) else "calls": counted}
        return Project(replace(node, **changed), tuple(outputs))

    changed: Relation = transform(relation, change, _CALLING)
    return changed


def _calls_of(node: Any) -> tuple[tuple[Column, AggregateCall | WindowCall], ...]:
    """The aggregates of a grouping, or the functions of windows."""
    return node.aggregates if isinstance(node, Aggregate) else node.calls if isinstance(node, Window) else ()


def _count(greatest: AggregateCall | WindowCall) -> AggregateCall | WindowCall:
    """How many of the values of which one is the greatest are not finite."""
    is_infinite = Call("ge", (greatest.arguments[0], _INFINITE), BOOL)
    only = _both(greatest.filter, is_infinite)
    return replace(greatest, function="count", arguments=(), type=INT8, filter=only)


def _size(count: Column) -> Scalar:
    """A size that is finite where the greatest one is."""
    is_there = Call("gt", (ColumnRef(count), Literal(0, INT8)), BOOL)
    return Case(((is_there, _INFINITE),), Literal(0.0, FLOAT8), FLOAT8)

"""How long the collected rows of a stream matter to a view that compares their time with ``now()``.

    Filter(rows, time > now() - age)      a row whose time lies age and a day before the clock is in no result any more

The clock only goes forward, so such rows may leave the state (``Expiry`` by the clock). The day is for transactions
that have begun earlier, whose ``now()`` is older, and for times without a time zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from planner.algebra.construction import conjuncts
from planner.algebra.nodes import Call, Cast, Column, ColumnRef, Filter, Literal, Relation, Scalar, Snapshot
from planner.algebra.reading_time import NOW
from planner.algebra.walk import find, kinds_of
from planner.incremental.names import stored_name
from planner.incremental.programs.program import Expiry, State

_DAY: Final = 86_400_000_000
#: What is added to each age, in microseconds.
MARGIN: Final = _DAY
_MONTH: Final = 31 * _DAY
_FILTERS: Final = kinds_of(Filter)
_LEAVES: Final = kinds_of(Snapshot)
_MIRRORED: Final = {"lt": "gt", "le": "ge"}
_TIMES: Final = ("timestamp", "timestamptz")


def clock_expiries(final: Relation, states: Iterable[State]) -> Iterator[Expiry]:
    """What leaves states that the final relation reads only where their times are compared with ``now()``."""
    leaves: dict[str, int] = {}
    for leaf in find(final, _LEAVES):
        leaves[leaf.trace] = leaves.get(leaf.trace, 0) + 1
    bounds: dict[str, list[tuple[str, int]]] = {}
    for node in find(final, _FILTERS):
        if isinstance(node.input, Snapshot):
            found = min(_bounds(node, node.input), key=lambda item: item[1], default=None)
            if found is not None:
                bounds.setdefault(node.input.trace, []).append(found)
    for state in states:
        own = bounds.get(state.name, [])
        if own and len(own) == leaves[state.name] and len({name for name, _ in own}) == 1:
            column = next(item for item in state.columns if stored_name(item) == own[0][0])
            yield Expiry(state.name, column, "", column, max(age for _, age in own) + MARGIN)


def _bounds(node: Filter, leaf: Snapshot) -> Iterator[tuple[str, int]]:
    """Stored names of times and the ages, in microseconds, which a filter's rows have not reached."""
    sources = dict(zip(leaf.columns, leaf.sources, strict=True))
    for part in conjuncts(node.predicate):
        if isinstance(part, Call) and len(part.arguments) == 2:
            one, other = part.arguments
            if part.function in _MIRRORED:
                one, other = other, one
            if _MIRRORED.get(part.function, part.function) in ("gt", "ge"):
                column, ahead, behind = _column(one), _shift(one, "add"), _shift(other, "sub")
                if column in sources and ahead is not None and behind is not None and _is_now(other):
                    yield sources[column], ahead + behind


def _column(scalar: Scalar) -> Column | None:
    """The column of a time, perhaps of one with an interval added."""
    base = _base(scalar)
    return base.column if isinstance(base, ColumnRef) and base.column.type.name in _TIMES else None


def _is_now(scalar: Scalar) -> bool:
    base = _base(scalar)
    return isinstance(base, Call) and base.function == NOW


def _base(scalar: Scalar) -> Scalar:
    """What an interval is added to or taken from, without conversions between times."""
    while True:
        match scalar:
            case Cast(argument=argument, type=kind) if kind.name in _TIMES:
                scalar = argument
            case Call(function="add" | "sub", arguments=(argument, Literal(value=(_, _, _)))):
                scalar = argument
            case _:
                return scalar


def _shift(scalar: Scalar, function: str) -> int | None:
    """By how many microseconds at most a time is later (add) or earlier (sub) than its base; None for the reverse."""
    found = 0
    while True:
        match scalar:
            case Cast(argument=argument, type=kind) if kind.name in _TIMES:
                scalar = argument
            case Call(function=called, arguments=(argument, Literal(value=(int(months), int(days), int(micros))))):
                if called != function or min(months, days, micros) < 0:
                    return None
                found += months * _MONTH + days * _DAY + micros
                scalar = argument
            case _:
                return found

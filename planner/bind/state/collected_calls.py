"""Calls that a query computes beside its select list, collected while the query's expressions are bound.

Owns: ``Groups`` (aggregates), ``Windows`` (window functions) and ``Sets`` (set-returning functions) of one query level;
equal calls are computed once.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from msgspec import Struct, field

from catalog.values.errors import SqlError
from planner.algebra.nodes import AggregateCall, Column, Scalar, WindowCall
from planner.bind.state.bind_state import BindState

#: The call that GROUPING() is until its query's groups are known.
GROUPING: Final = "grouping"
#: Calls of one query, each of which is compared with those before it.
_CALLS: Final = 5000
_Computed = TypeVar("_Computed", bound=AggregateCall | WindowCall)


def _column_of(known: list[tuple[Column, _Computed]], binding: BindState, name: str, call: _Computed) -> Column:
    """The column of a call, the same for an equal one. Raises 54001 for more calls than can be compared with each."""
    found = next((column for column, other in known if other == call), None)
    if found is None:
        if len(known) == _CALLS:
            raise SqlError("54001", f"query computes more than {_CALLS} aggregates or window functions")
        found = binding.column(name, call.type)
        known.append((found, call))
    return found


class Groups(Struct):
    """The aggregates that one query level computes, equal ones once."""

    aggregates: list[tuple[Column, AggregateCall]] = field(default_factory=list)
    #: Whether there is an aggregate or GROUPING(): the query is one over groups then.
    is_used: bool = False
    #: What all rows of a group must have in common, since an aggregate takes it as if it were the group's.
    direct: list[Scalar] = field(default_factory=list)

    def add(self, binding: BindState, name: str, call: AggregateCall) -> Column:
        """The column of an aggregate's result."""
        self.is_used = True
        return _column_of(self.aggregates, binding, name, call)


class Windows(Struct):
    """The window calls that one query level computes, equal ones once, and the definitions of its WINDOW clause."""

    definitions: dict[str, Any] = field(default_factory=dict)
    calls: list[tuple[Column, WindowCall]] = field(default_factory=list)

    def add(self, binding: BindState, name: str, call: WindowCall) -> Column:
        """The column of a call's result."""
        return _column_of(self.calls, binding, name, call)


class Sets(Struct):
    """The set-returning calls of one query level's select list, as arrays, equal ones once."""

    calls: list[tuple[Column, Scalar]] = field(default_factory=list)

    def add(self, binding: BindState, name: str, values: Scalar) -> Column:
        """The column of an array's elements."""
        for column, known in self.calls:
            if known == values:
                return column
        assert values.type.element is not None
        column = binding.column(name, values.type.element)
        self.calls.append((column, values))
        return column

"""Where an expression stands: its scope, its clause, and what that clause allows.

Owns: ``Environment``, handed down through the binding of one expression. ``Groups`` collects the aggregates of one
query level while its expressions are bound, ``Windows`` its window calls, ``Sets`` its set-returning
calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from catalog.values.errors import SqlError
from planner.algebra.scalars import AggregateCall, Column, Scalar, WindowCall
from planner.bind.state.context import Binding
from planner.bind.state.levels import BoundQuery
from planner.bind.state.scope import Scope

#: The call that GROUPING() is until its query's groups are known.
GROUPING: Final = "grouping"
#: Calls of one query, each of which is compared with those before it.
_CALLS: Final = 5000
_Computed = TypeVar("_Computed", bound=AggregateCall | WindowCall)


def _column_of(known: list[tuple[Column, _Computed]], binding: Binding, name: str, call: _Computed) -> Column:
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

    def add(self, binding: Binding, name: str, call: AggregateCall) -> Column:
        """The column of an aggregate's result."""
        self.is_used = True
        return _column_of(self.aggregates, binding, name, call)


class Windows(Struct):
    """The window calls that one query level computes, equal ones once, and the definitions of its WINDOW clause."""

    definitions: dict[str, Any] = field(default_factory=dict)
    calls: list[tuple[Column, WindowCall]] = field(default_factory=list)

    def add(self, binding: Binding, name: str, call: WindowCall) -> Column:
        """The column of a call's result."""
        return _column_of(self.calls, binding, name, call)


class Sets(Struct):
    """The set-returning calls of one query level's select list, as arrays, equal ones once."""

    calls: list[tuple[Column, Scalar]] = field(default_factory=list)

    def add(self, binding: Binding, name: str, values: Scalar) -> Column:
        """The column of an array's elements."""
        for column, known in self.calls:
            if known == values:
                return column
        assert values.type.element is not None
        column = binding.column(name, values.type.element)
        self.calls.append((column, values))
        return column


class Environment(Struct, frozen=True):
    """What binding an expression needs to know.

    ``subquery`` binds a nested SELECT with this scope around it. ``groups`` is None where aggregates are not allowed,
    ``windows`` where window functions, ``sets`` where set-returning functions are not; ``clause`` is then the name that
    the error gives.
    """

    binding: Binding
    scope: Scope
    clause: str
    subquery: Callable[[Any, Scope], BoundQuery]
    groups: Groups | None = None
    in_aggregate: bool = False
    windows: Windows | None = None
    in_window: bool = False
    sets: Sets | None = None

    def nested(self, node: Any) -> BoundQuery:
        """A subquery that stands here."""
        return self.subquery(node, replace(self.scope, host=self))

    def without_aggregates(self, clause: str) -> Environment:
        """The same place in a clause that allows neither aggregates nor window functions."""
        return replace(self, clause=clause, groups=None, windows=None, sets=None)

    def without_sets(self, clause: str) -> Environment:
        """A part of an expression that allows no set-returning functions."""
        return self if self.sets is None else replace(self, clause=clause, sets=None)

    def inside_window(self) -> Environment:
        """The arguments and the definition of a window call."""
        return replace(self, in_window=True)

    def inside_aggregate(self) -> Environment:
        """The arguments of an aggregate."""
        return replace(self, in_aggregate=True)

    def error(
        self, sqlstate: str, message: str, node: Any, hint: str | None = None, detail: str | None = None
    ) -> SqlError:
        """An error at a parse node's place."""
        return SqlError(sqlstate, message, detail, hint, self.binding.position(node))

    def error_at(self, sqlstate: str, message: str, node: Any, hint: str | None = None) -> SqlError:
        """An error about a whole expression: at its first character."""
        return SqlError(sqlstate, message, hint=hint, position=self.binding.start(node))

"""Where an expression or a query stands, and the functions that bind what stands inside of it.

Expressions contain queries, queries contain expressions, and both contain calls. The modules for these do not import
each other: each hands an ``Environment`` or a ``Level`` down, whose ``bind`` leads to the ``Binder``, the visible list
of the functions that all of them need. ``planner.bind.binder`` has the only one.

Owns: ``Binder``, ``Binding``, ``Scope`` (the names of one query level, with the enclosing levels behind it), ``Level``
and ``Environment``. These types refer to each other, so they are in one module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from catalog.values.errors import SqlError
from catalog.values.types import SqlType
from planner.algebra.nodes import Column, Scalar
from planner.bind.state.bind_state import BindState
from planner.bind.state.collected_calls import Groups, Sets, Windows
from planner.bind.state.context import Context
from planner.bind.state.from_names import ANY_SCHEMA, BoundQuery, Entry, Source
from planner.bind.state.with_names import Itself, Known, Refused, Returned, Visible
from planner.parse.parser import Raw


class Binder(Struct, frozen=True):
    """The parts of the grammar that contain each other."""

    #: A parse node of an expression.
    expression: Callable[[Environment, Any], Scalar]
    #: A SELECT, VALUES or set operation; False leaves bare strings, NULLs and parameters of type unknown.
    query: Callable[[Level, Any, bool], BoundQuery]
    #: INSERT, UPDATE or DELETE in WITH: the clause, and the item of it.
    change: Callable[[Level, Any, Any], Returned | Refused]
    #: A WITH clause: the level that it makes.
    with_clause: Callable[[Level, Any], Level]
    #: An expression, explicitly cast to a type; None where there is no such cast.
    cast: Callable[[Binding, Scalar, SqlType], Scalar | None]


class Binding(BindState):
    """The state of binding one statement, and the functions that bind its parts."""

    def __init__(self, raw: Raw, context: Context, binder: Binder) -> None:
        super().__init__(raw, context)
        self.binder = binder


class Scope(Struct, frozen=True, eq=False, dict=True):
    """One query level: ``entries`` are visible without a qualifier and make up ``*``, ``sources`` are qualifiers.

    Around a subquery, ``host`` is where that stands.
    """

    sources: tuple[Source, ...] = ()
    entries: tuple[Entry, ...] = ()
    outer: Scope | None = None
    host: Environment | None = None

    @cached_property
    def named(self) -> Mapping[str, list[Entry]]:
        """The visible columns by name."""
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.name, []).append(entry)
        return found

    def levels(self) -> Iterable[Scope]:
        """This level and those around it, inside out."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def source(self, name: str, schema: str | None = None, position: int | None = None) -> Source | None:
        """The item of FROM of this level that a qualifier names. Raises 42P09 where there are two."""
        fitting = (schema, ANY_SCHEMA)
        found = [item for item in self.sources if item.name == name and (schema is None or item.schema in fitting)]
        if len(found) > 1:
            raise SqlError("42P09", f'table reference "{name}" is ambiguous', position=position)
        return found[0] if found else None


def source_of(name: str, entries: Iterable[Entry], schema: str | None = None, key: tuple[Column, ...] = ()) -> Scope:
    """The scope of one item of FROM."""
    listed = tuple(entries)
    return Scope((Source(name, listed, schema, key),), listed)


class Cte(Struct, frozen=True):
    """A WITH query: bound anew for each reference, with what was visible where it was written, unless it is shared.

    ``references`` are about those in its statement.
    """

    node: Any
    level: Level
    recursive: bool = False
    references: int = 1


class Level(Struct, frozen=True):
    """Where a query stands: the scope around it and the CTEs that it sees."""

    binding: Binding
    outer: Scope | None = None
    ctes: Visible[InFrom] = field(default_factory=lambda: Visible())

    def bind(self, node: Any, resolve_unknown: bool = True) -> BoundQuery:
        """A query that stands here.

        Without ``resolve_unknown``, columns of bare strings, NULLs and parameters stay of type unknown.
        """
        return self.binding.binder.query(self, node, resolve_unknown)


#: What a name of WITH means.
InFrom = Cte | Itself | Returned | Refused | Known


class Environment(Struct, frozen=True):
    """What binding an expression needs to know.

    ``level`` is the query that the expression stands in. ``groups`` is None where aggregates are not allowed,
    ``windows`` where window functions, ``sets`` where set-returning functions are not; ``clause`` is then the name that
    the error gives.
    """

    binding: Binding
    scope: Scope
    clause: str
    level: Level
    groups: Groups | None = None
    in_aggregate: bool = False
    windows: Windows | None = None
    in_window: bool = False
    sets: Sets | None = None

    def bind(self, node: Any) -> Scalar:
        """The scalar that an expression means here. Strings, NULL and parameters may come back of type unknown."""
        return self.binding.binder.expression(self, node)

    def nested(self, node: Any) -> BoundQuery:
        """A subquery that stands here."""
        return replace(self.level, outer=replace(self.scope, host=self)).bind(node)

    def without_aggregates(self, clause: str) -> Environment:
        """This place in a clause that allows neither aggregates nor window functions."""
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

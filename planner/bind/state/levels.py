"""What a query sees from where it stands, and what is known of a query in FROM once it is bound.

Owns: ``Level`` and the kinds of names in WITH, ``BoundQuery``, and what items of FROM are called beside each other.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from catalog.values.errors import SqlError
from catalog.values.types import SqlType, record
from planner.algebra.relations import Relation
from planner.algebra.scalars import Column
from planner.bind.lookup.type_names import names_of
from planner.bind.state.context import Binding
from planner.bind.state.scope import Scope, Source
from planner.bind.state.with_names import Visible
from planner.statements.statement import Output, Returning


class Cte(Struct, frozen=True):
    """A WITH query: bound anew for each reference, with what was visible where it was written, unless it is shared.

    ``references`` are about those in its statement.
    """

    node: Any
    level: Level
    recursive: bool = False
    references: int = 1


class Itself(Struct, frozen=True):
    """A recursive query's own name in its step: the rows that came last in the fixpoint ``name``.

    Of its columns the last ``hidden`` are none of ``*``; ``typmods`` are their modifiers.
    """

    name: str
    columns: tuple[Column, ...]
    places: list[int | None]
    hidden: int = 0
    typmods: tuple[int, ...] = ()


class Returned(Struct, frozen=True):
    """A WITH query that changes rows, computed once: its rows are the leaf's."""

    node: Any
    leaf: str
    returning: Returning


class Refused(Struct, frozen=True):
    """A name that stands where it must not."""

    sqlstate: str
    message: str


class Known(Struct, frozen=True):
    """A query that is bound already and stands once in FROM, with its columns' names."""

    query: BoundQuery
    names: tuple[str, ...]


class Level(Struct, frozen=True):
    """Where a query stands: the scope around it and the CTEs that it sees."""

    binding: Binding
    outer: Scope | None = None
    ctes: Visible[InFrom] = field(default_factory=lambda: Visible())


#: What a name of WITH means.
InFrom = Cte | Itself | Returned | Refused | Known


class BoundQuery(Struct, frozen=True):
    """A query's relation, whose columns are described by ``outputs`` position by position."""

    relation: Relation
    outputs: tuple[Output, ...]

    @property
    def row(self) -> SqlType:
        """The type of its rows, of the columns that clients see."""
        columns = zip(self.outputs, self.relation.columns, strict=True)
        return record(*((output.name, column.type) for output, column in columns))


def subqueries_of(level: Level) -> Any:
    """What expressions outside of a SELECT's own clauses bind their subqueries with."""
    from planner.bind.queries.select import subquery_binder  # queries and FROM contain each other

    return subquery_binder(level)


def beside_each_other(left: Scope, right: Scope) -> Scope:
    """Two items of FROM. Raises 42712 where both have one name."""
    for source in right.sources:
        if source.name and any(_in_the_way(source, other) for other in left.sources):
            raise SqlError("42712", f'table name "{source.name}" specified more than once')
    return Scope(left.sources + right.sources, left.entries + right.entries)


def _in_the_way(one: Source, other: Source) -> bool:
    """Two relations of different schemas may have one name beside each other."""
    apart = one.schema is not None and other.schema is not None and one.schema != other.schema
    return one.name == other.name and not apart


def renamed(binding: Binding, scope: Scope, alias: Any, node: Any) -> Scope:
    """Column aliases: FROM t AS a (x, y)."""
    if alias is None or not alias.colnames:
        return scope
    (source,) = scope.sources
    names = names_of(alias.colnames)
    if len(names) > len(source.entries):
        count = f"{len(source.entries)} columns available but {len(names)} columns specified"
        raise SqlError("42P10", f'table "{source.name}" has {count}', position=binding.position(node))
    entries = tuple(
        replace(entry, name=names[index]) if index < len(names) else entry for index, entry in enumerate(source.entries)
    )
    return Scope((replace(source, entries=entries),), entries)

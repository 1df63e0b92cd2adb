"""The names of WITH that a query sees, and what they mean.

Owns: ``Visible`` and ``Clause``, which find a name's meaning (a query to the binder, columns to ``deparsing``), and the
meanings other than a plain query (``state.environment.Cte``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from msgspec import Struct

from planner.algebra.nodes import Column
from planner.bind.state.from_names import BoundQuery
from planner.statements.statement import Returning

Meaning = TypeVar("Meaning")


class Visible(Generic[Meaning]):
    """The names of a clause that were bound when this was made, then those around the clause; none without a clause.

    All queries of a clause share its dictionary, so that tens of thousands of them take memory in proportion.
    """

    def __init__(self, clause: Clause[Meaning] | None = None) -> None:
        self._clause = clause
        self._count = 0 if clause is None else len(clause.bound)

    def get(self, name: str) -> Meaning | None:
        """What a name means."""
        level = self
        while (clause := level._clause) is not None:
            if clause.places.get(name, level._count) < level._count:
                return clause.bound[name]
            level = clause.around
        return None

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def is_later(self, name: str) -> bool:
        """Whether a clause has the name further on."""
        level = self
        while (clause := level._clause) is not None:
            if clause.places.get(name, -1) >= level._count:
                return True
            level = clause.around
        return False

    def also(self, name: str, meaning: Meaning) -> Visible[Meaning]:
        """These, and one name more."""
        clause = Clause(self, (name,))
        clause.bind(name, meaning)
        return Visible(clause)


class Clause(Generic[Meaning]):
    """A WITH whose names are bound one after the other; ``places`` are all of them."""

    def __init__(self, around: Visible[Meaning], names: Iterable[str]) -> None:
        self.around = around
        self.places = {name: place for place, name in enumerate(names)}
        self.bound: dict[str, Meaning] = {}

    def bind(self, name: str, meaning: Meaning) -> None:
        """The next of the names means something."""
        assert self.places[name] == len(self.bound)
        self.bound[name] = meaning


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

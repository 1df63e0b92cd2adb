"""What is remembered while one statement is bound.

Owns: ``BindState``, the one mutable object of a bind: types of parameters as they are inferred, what the statement
depends on and which privileges it needs, and where in the text its nodes stand. Functions that only look names up take
a ``BindState``; ``state.environment.Binding`` adds the functions that bind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from catalog.values.errors import SqlError
from catalog.values.types import TEXT, SqlType
from planner.algebra.nodes import Column, Relation, Scalar
from planner.bind.state.context import Context, restricted
from planner.parse.parser import Raw, literal_positions
from planner.statements.statement import Delete, Insert, Locking, Output, Update

#: Relations in FROM of one statement, inlined CTEs and views counted each time they are named.
_RELATIONS: Final = 5000


class Origin(Struct):
    """Where a node stands in the text; holds the node, so that its identity stays its own."""

    node: Scalar
    location: int | None
    name: str


class Shared(Struct, frozen=True):
    """A WITH query that is computed once, and the name under which it is read."""

    node: Any
    name: str
    relation: Relation
    outputs: tuple[Output, ...]


class Need(Struct):
    """A role needs privileges on a relation, or on all columns of it that the statement uses (of none, on any).

    ``columns`` are what the relation's are called there, in order. None: those that a change gives, if it does, and
    where it does not or ``whole`` only the whole relation's privileges count.
    """

    oid: int
    letters: str
    role: int
    columns: tuple[Column, ...] | None = None
    whole: bool = False


class BindState:
    """What binding one statement has found so far."""

    def __init__(self, raw: Raw, context: Context) -> None:
        self.raw = raw
        self.context = context
        # What a client declared of an enum may be older than the catalog.
        declared = context.parameter_types
        self.parameters = [None if kind is None else context.catalog.type_of(kind.oid) or kind for kind in declared]
        self.depends_on: dict[int, None] = {}
        self.reader = restricted(context.catalog, context.role)  # the reading role, if it is not a superuser
        self.caller = self.reader  # the role that runs the statement, also where a view is read in its owner's name
        self.needs: list[Need] = []
        self.given: dict[tuple[int, str], frozenset[str]] = {}  # columns of changed tables, by table and letter
        self.names: dict[tuple[str, str], int] = {}  # relations by name as written
        self.types: dict[tuple[str, str], int] = {}  # users' types by name as written
        self.streams: list[tuple[str, int | None]] = []  # streams read directly, with their places
        self.through: set[Column] = set()  # the first columns of rows that are changed through views
        self.volatile = False
        self.reads_time = False  # whether it reads continuous views whose rows depend on when they are read
        self.expands = False  # whether derived views are bound by their texts: a view over a stream may freeze tables
        self.unpopulated: list[str] = []  # materialized views WITH NO DATA that are read
        self.speaks_of_places = "ctid" in raw.text.lower()  # whether rows of tables need theirs
        self.locking: Locking | None = None
        self.into: Any = None  # the INTO that makes a SELECT a statement that creates a table
        self.modifications: list[tuple[str, Insert | Update | Delete]] = []  # WITH queries that change rows
        #: What of the text is read unlike as usual, in words, and where.
        self.restyled: list[tuple[str, int | None]] = []
        self.search_path = context.search_path  # the session's, wherever a view's text has another
        self.reading = context.reading  # likewise
        self.bodies: list[tuple[Scalar, ...]] = []  # arguments of the functions whose bodies are being bound
        self.functions: dict[int, None] = {}  # users' functions that are called
        self.calls: dict[tuple[str, str, int], None] = {}  # those that the text itself calls, by name as written
        self.inlining: list[int] = []  # oids of those whose bodies are being bound
        self.in_from = False  # a subquery in FROM is being bound
        self.views: list[int] = []  # oids of the views whose definitions are being bound
        self._origins: dict[int, Origin] = {}
        self._names: dict[int, tuple[Scalar, Callable[[], Scalar]]] = {}
        self._relations = 0
        self._open: dict[int, int | None] = {}  # parameters that stand untyped, and where
        self._references: dict[int, int] = {}
        self.modifiers: dict[int, tuple[Any, int]] = {}  # of subqueries with one column, by the nodes' identity
        self.keeps_windows = False  # whether a view with a retention or emit = 'final' is being bound
        self.marks_rows = False  # whether outer joins say which rows they have filled up
        self.shares = False  # whether WITH queries that are read several times may be computed once
        self.shared: dict[int, Shared | None] = {}  # those, by the identity of their nodes; None: computed for each
        self.checked: dict[int, tuple[Any, tuple[Column, ...], tuple[Output, ...]]] = {}  # WITH queries, likewise
        self.checks = False  # whether a WITH query is being bound for its errors and parameters only

    def need(self, oid: int, letters: str = "r") -> Need:
        """Notes that the reader needs privileges on a relation (by default SELECT)."""
        found = Need(oid, letters, self.reader or 0)
        if self.reader is not None:
            self.needs.append(found)
        return found

    def give(self, oid: int, letter: str, names: Iterable[str]) -> None:
        """A change inserts (a), updates (w) or looks at (r) these columns of a table."""
        self.given[oid, letter] = self.given.get((oid, letter), frozenset()) | frozenset(names)

    def column(self, name: str, kind: SqlType, nullable: bool = True) -> Column:
        """A new column."""
        return Column(next(self.context.ids), name, kind, nullable)

    def position(self, node: Any) -> int | None:
        """The 1-based position that an error about a parse node reports; None inside a view's definition."""
        if node is None or self.views:
            return None
        location = getattr(node, "location", None)
        if location is not None:
            return int(location) + 1
        if type(node).__name__ == "A_Const":
            return self._constants.get(id(node))
        argument = getattr(node, "arg", None)
        return self.position(argument) if argument is not None else None

    @cached_property
    def _constants(self) -> dict[int, int]:
        """Where the statement's constants stand, by identity."""
        return literal_positions(self.raw)

    def start(self, node: Any) -> int | None:
        """The 1-based position where an expression begins (exprLocation): its own or its leftmost operand's."""
        found: list[int] = []
        while node is not None:
            position = self.position(node)
            if position is not None:
                found.append(position)
            names = () if type(node).__name__ == "CaseExpr" else ("lexpr", "arg", "args", "testexpr")
            below = next((getattr(node, name) for name in names if getattr(node, name, None) is not None), None)
            node = below[0] if isinstance(below, tuple) else below
        return min(found, default=None)

    @contextmanager
    def without_positions(self) -> Iterator[None]:
        """Errors in here have no place in the statement."""
        self.views.append(0)
        try:
            yield
        finally:
            self.views.pop()

    def remember(self, scalar: Scalar, node: Any, name: str = "") -> None:
        """Notes where a scalar was written, for errors that are found later."""
        location = None if self.views else getattr(node, "location", None)
        self._origins[id(scalar)] = Origin(scalar, location, name)

    def origin(self, scalar: Scalar) -> tuple[int | None, str]:
        """The 1-based position and the written name of a scalar that ``remember`` was told of."""
        found = self._origins.get(id(scalar))
        if found is None:
            return None, ""
        return (None if found.location is None else found.location + 1), found.name

    def remember_name(self, text: Scalar, oid: Callable[[], Scalar]) -> None:
        """Notes that a text names a relation, and what its oid is, for a cast that would look for it by that name."""
        self._names[id(text)] = text, oid

    def relation_named(self, text: Scalar) -> Scalar | None:
        """The oid of the relation that ``remember_name`` was told a text names."""
        found = self._names.get(id(text))
        return None if found is None else found[1]()

    def count_relation(self) -> None:
        """Bounds what inlining CTEs and views may multiply. Raises 54001."""
        self._relations += 1
        if self._relations > _RELATIONS:
            raise SqlError(
                "54001", f"statement reads more than {_RELATIONS} relations once views and CTEs are expanded"
            )

    def memory(self) -> tuple[list[tuple[str, int | None]], dict[int, None], bool, int]:
        """What ``restore`` takes back: what was read so far."""
        return list(self.streams), dict(self.depends_on), self.volatile, self._relations

    def restore(self, memory: tuple[list[tuple[str, int | None]], dict[int, None], bool, int]) -> None:
        """Forgets what was bound only to be checked."""
        self.streams, self.depends_on, self.volatile, self._relations = memory

    def count_reference(self, node: Any) -> int:
        """How often a WITH query has been bound so far, this time included."""
        self._references[id(node)] = self._references.get(id(node), 0) + 1
        return self._references[id(node)]

    def forget_reference(self, node: Any) -> None:
        """The last binding of a WITH query was only a check."""
        self._references[id(node)] = 0

    def set_parameter(self, index: int, kind: SqlType, node: Any = None) -> None:
        """Fixes the type of $index+1 by its first use."""
        self._grow(index)
        self.parameters[index] = kind

    def parameter(self, index: int) -> SqlType | None:
        """The type of $index+1 as far as known."""
        self._grow(index)
        return self.parameters[index]

    def leave_open(self, index: int, node: Any) -> None:
        """$index+1 stands where any type does, and no use before this one has fixed its."""
        self._grow(index)
        self._open.setdefault(index, self.position(node))

    def _grow(self, index: int) -> None:
        while len(self.parameters) <= index:
            self.parameters.append(None)

    def finished_parameters(self) -> tuple[SqlType, ...]:
        """All parameters' types. Raises 42P18 for one that nothing determined, 42P08 for one that came too late."""
        for index, kind in enumerate(self.parameters):
            message = f"could not determine data type of parameter ${index + 1}"
            if kind is None:
                raise SqlError("42P18", message)
            if index in self._open:
                raise SqlError("42P08", message, position=self._open[index])
        return tuple(kind or TEXT for kind in self.parameters)

"""From SQL text to plans, each made once: parsing, binding, and the caches between them and the sessions.

Owns: ``Plan`` (a bound statement and what the server must know of it), the plan cache, and the sharing of plans among
texts that differ only in value literals. A plan is good for one catalog object: whoever has another binds again, but
for statements about rows, where what binding looked at is the same there (``catalog.read_set``). Knows nothing of
messages. Calls are pure and may be made from any thread.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.read_set import Look, Seen
from catalog.values.errors import SqlError
from catalog.values.interval_fields import FULL_RANGE
from catalog.values.nested_types import holds
from catalog.values.scales import is_padded
from catalog.values.times.styles import USUAL, Reading
from catalog.values.types import NAMED_OIDS, UNKNOWN, SqlType
from planner.algebra.functions import SESSION_FUNCTIONS, SESSION_VALUES
from planner.algebra.nodes import Call, Cast, Literal, Parameter, Scan, Value
from planner.algebra.walk import by_class, find, kinds_of, walk
from planner.bind import Context, bind
from planner.bind.state.context import Separated, none_separated
from planner.cancellation import leave
from planner.parse.lengths import LIMIT
from planner.parse.literals import Parameteriser
from planner.parse.parser import Raw, parse
from planner.scales.nested import given_kind
from planner.statements.statement import Delete, Insert, Query, RowStatement, Statement, Update
from planner.statements.walk import rewrite, roots
from server.plans.output_styles import PLAIN, Styled, styled
from server.settings.settings import Settings

_PLANS: Final = 4096
#: Queries whose calls of the session are values.
_FILLED: Final = 512
#: Texts longer than this are planned without being remembered.
_LONGEST: Final = 16 << 10
#: Session functions whose result stays the same as long as settings and catalog do.
_STEADY: Final = frozenset(("current_user", "session_user", "current_database", "current_schema", "version"))
#: Those whose result is often that of the last time.
_REPEATED: Final = _STEADY | {"current_setting", "pg_postmaster_start_time"}

_CASTS: Final = kinds_of(Cast)

_serials = itertools.count(1)
_Value = TypeVar("_Value")


class Bounded(Generic[_Value]):
    """A dict that forgets its oldest entries; safe to use from several threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: dict[Hashable, _Value] = {}

    def get(self, key: Hashable) -> _Value | None:
        """What was put, if it is still there."""
        return self._items.get(key)

    def put(self, key: Hashable, value: _Value) -> None:
        """Remembers."""
        if len(self._items) >= self._limit:
            for oldest in list(itertools.islice(self._items, self._limit // 8)):
                self._items.pop(oldest, None)
        self._items[key] = value


class Filled(Struct, frozen=True, eq=False):
    """A statement in which calls of the session's functions are parameters, behind those that it has; with their names
    and arguments."""

    statement: Statement
    calls: tuple[tuple[str, tuple[Value, ...]], ...]


class Plan(Struct, frozen=True, eq=False):
    """A bound statement. ``types`` are its parameters'; ``reads`` the oids that its result depends on.

    ``repeatable``: the same parameters give the same rows while ``reads`` do not change. ``styled`` is what an engine
    does in one style only. ``seen`` is what it depends on of the catalog, where that is known.
    """

    serial: int
    raw: Raw
    statement: Statement
    types: tuple[SqlType, ...]
    catalog: Catalog
    search_path: tuple[str, ...]
    role: str
    reads: tuple[int, ...]
    repeatable: bool
    #: The functions of the session that it calls.
    calls: frozenset[str]
    styled: Styled = PLAIN
    seen: Seen | None = None
    #: The same statement each time, of one that changes rows and calls the session for mere values.
    filled: Filled | None = None
    #: Which parameters' blanks at the end are shown or kept.
    padded: frozenset[int] = frozenset()

    def over(self, catalog: Catalog) -> Plan | None:
        """The plan for another version of the catalog; None where it may be another."""
        if self.catalog is catalog:
            return self
        if self.seen is None or not self.seen.holds(catalog):
            return None
        return replace(self, serial=next(_serials), catalog=catalog, seen=self.seen.within(catalog))

    @property
    def given(self) -> tuple[SqlType, ...]:
        """The types of which parameters' values are as they come: texts where their blanks count."""
        if not self.padded:
            return self.types
        return tuple(given_kind(kind) if place in self.padded else kind for place, kind in enumerate(self.types))

    @property
    def calls_session(self) -> bool:
        """Whether it calls functions of the session, and becomes another statement each time."""
        return bool(self.calls)

    def suits(self, catalog: Catalog, settings: Settings) -> bool:
        """Whether names still mean what they meant to it, and the role is the one that may do what it does."""
        return self.catalog is catalog and (self.search_path, self.role) == settings.place


class Shared(Struct, frozen=True):
    """A plan of a text without its value literals, and these."""

    plan: Plan
    literals: tuple[Literal, ...]


class Surroundings(Struct, frozen=True):
    """What besides the text decides what a statement means."""

    catalog: Catalog
    search_path: tuple[str, ...]
    time_zone: str
    role: str
    session_role: str
    database: str
    own: str = ""  # tells the relations that only the session sees
    separated: Separated = none_separated
    checks_bodies: bool = True  # check_function_bodies
    reading: Reading = USUAL

    @property
    def key(self) -> tuple[Hashable, ...]:
        """Part of the key of a plan."""
        names = (self.search_path, self.role, self.session_role, self.database, self.own)
        return (*names, self.time_zone, self.reading, self.checks_bodies)

    def context(self, catalog: Catalog | None = None, types: tuple[SqlType | None, ...] = ()) -> Context:
        """What statements are bound against, with the types that parameters were declared with. ``catalog`` answers in
        the place of its own."""
        place = self.search_path, types, self.time_zone
        roles = self.role, self.session_role
        return Context(
            *(catalog or self.catalog, *place, *roles, self.database, self.separated),
            checks_bodies=self.checks_bodies,
            reading=self.reading,
        )


def surroundings(
    catalog: Catalog, settings: Settings, database: str, separated: Separated = none_separated
) -> Surroundings:
    """A session's."""
    roles = settings.role, settings.value("session_authorization")
    place = settings.search_path(), settings.value("TimeZone")
    checks_bodies = settings.is_on("check_function_bodies")
    return Surroundings(catalog, *place, *roles, database, settings.own, separated, checks_bodies, settings.reading)


class PlanCache:
    """Parsed texts, of ``limit`` characters at most, and plans of all sessions."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._texts: Bounded[tuple[Raw, ...]] = Bounded(_PLANS)
        self._plans: Bounded[Plan] = Bounded(_PLANS)
        self._unshared: Bounded[bool] = Bounded(_PLANS)
        self._filled: Bounded[tuple[Statement, Statement]] = Bounded(_FILLED)
        self._parameterise = Parameteriser()

    def parsed(self, text: str) -> tuple[Raw, ...] | None:
        """The statements of a text seen before."""
        return self._texts.get(text)

    def parse(self, text: str) -> tuple[Raw, ...]:
        """The statements of a text. Raises 42601 and 54000."""
        known = self._texts.get(text)
        if known is None:
            known = parse(text, self._limit)
            if len(text) <= _LONGEST:
                self._texts.put(text, known)
        return known

    def planned(self, raw: Raw, types: tuple[SqlType | None, ...], around: Surroundings) -> Plan | None:
        """The plan of a statement that was bound before under the same circumstances."""
        return self._current((raw.text, raw.offset, types, around.key), around.catalog)

    def _current(self, key: Hashable, catalog: Catalog) -> Plan | None:
        """What was planned under a key, where it is still good."""
        known = self._plans.get(key)
        plan = None if known is None else known.over(catalog)
        if plan is not None and plan is not known:
            self._plans.put(key, plan)
        return plan

    def plan(self, raw: Raw, types: tuple[SqlType | None, ...], around: Surroundings) -> Plan:
        """The plan of a statement. Raises what binding raises."""
        plan = self.planned(raw, types, around)
        if plan is None:
            plan = leave(make_plan, raw, types, around)
            if len(raw.text) <= _LONGEST:
                self._plans.put((raw.text, raw.offset, types, around.key), plan)
        return plan

    def filled(self, plan: Plan, parameters: tuple[Value, ...], values: Hashable, filled: Statement) -> Statement:
        """A plan's statement with ``values`` in the place of its calls of the session: the same object where it was
        made of the same before, since what is known of a query is kept by its identity."""
        if not isinstance(filled, Query) or not plan.calls <= _REPEATED:
            return filled
        written = repr(parameters)
        if len(written) > _LONGEST:
            return filled
        key = id(plan.statement), written, values
        known = self._filled.get(key)
        if known is not None and known[0] is plan.statement:
            return known[1]
        self._filled.put(key, (plan.statement, filled))
        return filled

    def shared(self, text: str, around: Surroundings, make: bool) -> Shared | None:
        """The plan of a text but for its literals; None when it has none, or the plan is new and not to be made.

        An error in making it means that the text is to be planned as it stands, which gives the right position.
        """
        if len(text) > _LONGEST:
            return None
        key, literals = self._parameterise(text)
        if not literals:
            return None
        types = tuple(None if literal.type == UNKNOWN else literal.type for literal in literals)
        plan = self._current((key, types, around.key), around.catalog)
        if plan is None:
            if not make or self._unshared.get((key, types)):
                return None
            try:
                (raw,) = parse(key)
                plan = leave(make_plan, raw, types, around)
                if any((kind.element or kind).name in NAMED_OIDS or kind.row is not None for kind in plan.types):
                    raise SqlError("0A000", "a name or a row as a value")  # what it means is bound, not computed
                if any(_has_fields(item) for root in roots(plan.statement) for item in find(root, _CASTS)):
                    raise SqlError("0A000", "an interval of some fields")  # which say what a number counts
            except (SqlError, ValueError) as error:
                if isinstance(error, SqlError) and error.sqlstate == "57014":
                    raise
                self._unshared.put((key, types), True)
                return None
            self._plans.put((key, types, around.key), plan)
        return Shared(plan, literals)


def make_plan(raw: Raw, types: tuple[SqlType | None, ...], around: Surroundings) -> Plan:
    """Binds a statement."""
    look = Look(around.catalog)
    bound = bind(raw, around.context(look.catalog, types))
    statement = bound.statement
    nodes = by_class(roots(statement))
    scans = nodes[Scan]
    calls = {item.function for item in nodes[Call]} & SESSION_FUNCTIONS
    repeatable = (
        isinstance(statement, Query)
        and not statement.volatile
        and statement.locking is None
        and calls <= _STEADY
        and all(scan.kind in ("table", "view") for scan in scans)
    )
    reads, names = tuple(sorted({scan.oid for scan in scans})), (around.catalog, around.search_path, around.role)
    return Plan(
        next(_serials),
        raw,
        statement,
        bound.parameters,
        *names,
        reads,
        repeatable,
        frozenset(calls),
        styled(nodes),
        # Statements about rows depend on nothing in the catalog but what binding looks up there.
        look.seen if isinstance(statement, RowStatement) else None,
        _filled(statement, len(bound.parameters)) if calls and calls <= SESSION_VALUES else None,
        frozenset(item.index for node in nodes[Call] for item in _written(node) if holds(item.type, is_padded)),
    )


def _written(node: Call) -> tuple[Parameter, ...]:
    """The parameter of which a call says how it is written."""
    if node.function != "written_scale":
        return ()
    return tuple(item for item in node.arguments if isinstance(item, Parameter))


def _filled(statement: Statement, parameters: int) -> Filled | None:
    """None for a statement that changes no rows, or calls with arguments that are no constants."""
    if not isinstance(statement, Insert | Update | Delete):
        return None
    arguments = [item for node in nodes_of(statement) if _calls_session(node) for item in node.arguments]
    if not all(isinstance(item, Literal) for item in arguments):
        return None
    calls: list[tuple[str, tuple[Value, ...]]] = []

    def change(node: Any) -> Any:
        if not _calls_session(node):
            return node
        calls.append((node.function, tuple(item.value for item in node.arguments)))
        return Parameter(parameters + len(calls) - 1, node.type)

    return Filled(rewrite(statement, change), tuple(calls))


def _calls_session(node: Any) -> bool:
    return isinstance(node, Call) and node.function in SESSION_FUNCTIONS


def nodes_of(statement: Statement) -> list[Any]:
    """All that a statement is made of."""
    return [item for root in roots(statement) for item in walk(root)]


def _has_fields(node: Cast) -> bool:
    """Whether a parameter is cast to an interval that keeps some fields only."""
    if not isinstance(node.argument, Parameter) or node.type.name != "interval":
        return False
    return bool(node.type.modifiers) and node.type.modifiers[0] != FULL_RANGE


def replace_parameters(value: Any, parameters: tuple[object, ...]) -> Any:
    """A statement with its parameters' values in place of them."""

    def change(node: Any) -> Any:
        return Literal(parameters[node.index], node.type) if isinstance(node, Parameter) else node

    return rewrite(value, change)

"""Prepared statements of a session, whichever protocol made them, and what statements return.

Owns: ``Prepared`` with its plan, which is made again when the catalog has changed, and the columns of every statement's
result. Knows nothing of messages or of running.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from catalog.values.errors import SqlError
from catalog.values.types import JSON, TEXT, SqlType
from planner.parse.parser import Raw, executing
from planner.statements.statement import (
    Delete,
    ExecutePrepared,
    Explain,
    Fetch,
    Insert,
    Modifying,
    Output,
    Query,
    ShowVariable,
    Statement,
    Update,
    outputs_of_rows,
)
from server.plans.planning import Plan, Surroundings
from server.settings.parameters import PARAMETERS

if TYPE_CHECKING:
    from executor.sql.session import DatabaseSession
    from server.session.cursors import Cursors
    from server.session.portals import Portals
    from server.settings.settings import Settings


class Preparing(Protocol):
    """The part of a session that prepared statements need."""

    db: DatabaseSession
    settings: Settings
    statements: Statements
    portals: Portals
    cursors: Cursors

    @property
    def surroundings(self) -> Surroundings:
        """What a statement is bound against now."""
        ...

    def parse(self, text: str) -> tuple[Raw, ...]:
        """The statements of a text. Raises 42601 and 54000."""
        ...

    def plan_allowed(self, raw: Raw, types: tuple[SqlType | None, ...], around: Surroundings) -> Plan:
        """The plan of a statement that the transaction allows. Raises 25P02 and what binding raises."""
        ...


class Prepared(Struct):
    """A prepared statement; ``raw`` None is an empty one; ``declared`` None leaves a type to the server; ``written`` is
    the PREPARE that made it, ``oids`` what Parse said of the types.
    """

    text: str
    raw: Raw | None
    declared: tuple[SqlType | None, ...]
    plan: Plan | None
    written: str = ""
    oids: tuple[int, ...] | None = None

    @classmethod
    def make(
        cls,
        session: Preparing,
        text: str,
        declared: tuple[SqlType | None, ...],
        oids: tuple[int, ...] | None = None,
        written: str = "",
    ) -> Prepared:
        """Parses and binds a text of at most one statement. Raises 42601 and what binding raises."""
        raws = session.parse(text)
        if len(raws) > 1:
            raise SqlError("42601", "cannot insert multiple commands into a prepared statement")
        raw = raws[0] if raws else None
        plan = None if raw is None else session.plan_allowed(raw, declared, session.surroundings)
        return cls(text, raw, declared, plan, written, oids)

    def current(self, session: Preparing) -> Plan:
        """The plan for the catalog that the session sees now. Raises 0A000 when the result's columns have changed."""
        assert self.raw is not None
        assert self.plan is not None
        if self.plan.suits(session.db.catalog, session.settings):
            return self.plan
        self.plan = replanned(session, self.plan, described=True)
        return self.plan

    def reshaped(self, session: Preparing, kinds: tuple[SqlType, ...]) -> None:
        """The plan with other types of parameters, which clients do not tell apart."""
        assert self.raw is not None
        self.plan = session.plan_allowed(self.raw, kinds, session.surroundings)


class Statements(dict[str, Prepared]):
    """The prepared statements of one session by name; "" is the unnamed one."""

    def find(self, name: str) -> Prepared:
        """A prepared statement. Raises 26000."""
        prepared = self.get(name)
        if prepared is None:
            what = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise SqlError("26000", f"{what} does not exist")
        return prepared

    def require_free(self, name: str) -> None:
        """Only the unnamed statement may be replaced. Raises 42P05."""
        if name and name in self:
            raise SqlError("42P05", f'prepared statement "{name}" already exists')


def replanned(session: Preparing, plan: Plan, described: bool) -> Plan:
    """A plan for the catalog that the session sees now. Raises 0A000 when the columns of a result that the client knows
    have changed.
    """
    new = session.plan_allowed(plan.raw, plan.types, session.surroundings)
    before, after = (_shape(outputs_of(session, item.statement)) for item in (plan, new))
    types = ([(kind.oid, kind.typmod) for kind in item.types] for item in (plan, new))
    if next(types) != next(types) or (described and before != after):
        raise SqlError("0A000", "cached plan must not change result type", routine="RevalidateCachedQuery")
    return new


def _shape(outputs: tuple[Output, ...] | None) -> list[tuple[str, int]] | None:
    return None if outputs is None else [(item.name, item.type.oid) for item in outputs]


def executed_plan(session: Preparing, statement: ExecutePrepared) -> Plan:
    """What EXECUTE runs: what was prepared, or EXPLAIN or CREATE TABLE AS of it. Raises 26000 and 42809, and what
    binding raises, without positions, which would be those of another text."""
    prepared = session.statements.find(statement.name)
    if prepared.raw is None:
        raise SqlError("26000", f'prepared statement "{statement.name}" is empty')
    plan = prepared.current(session)
    if statement.within is None:
        return plan
    try:
        return session.plan_allowed(executing(statement.within, plan.raw), plan.types, session.surroundings)
    except SqlError as error:
        error.position = None
        raise


def outputs_of(session: Preparing, statement: Statement) -> tuple[Output, ...] | None:
    """The columns that a statement returns; None when it returns no rows. Does not block."""
    match statement:
        case Query() | Insert() | Update() | Delete() | Modifying():
            return outputs_of_rows(statement)
        case ShowVariable(name=name):
            return show_outputs(name)
        case Fetch(name=name, moves=False):
            cursor = session.cursors.by_name.get(name) or session.portals.get(name)
            return None if cursor is None else cursor.outputs
        case Explain(format=form):
            return (Output("QUERY PLAN", JSON if form == "json" else TEXT),)
        case ExecutePrepared():
            prepared = session.statements.find(statement.name)
            return None if prepared.plan is None else outputs_of(session, executed_plan(session, statement).statement)
        case _:
            return None


def show_outputs(name: str) -> tuple[Output, ...]:
    """The columns of SHOW."""
    if name.lower() == "all":
        return tuple(Output(word, TEXT) for word in ("name", "setting", "description"))
    known = PARAMETERS.get(name.lower())
    return (Output(known.name if known is not None else name, TEXT),)

"""EXPLAIN of continuous views: those that a query reads, and the one that CREATE VIEW would make.

Owns what only a running server knows of them: when and where each path runs, and on which servers its rows are. Both
kinds are shown in the same words (``planner.explain.views``), the second kind from the plan that CREATE VIEW makes.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import View, qualified
from catalog.values.errors import WARNING, SqlError
from executor.core.core import Core
from executor.database.database import Database
from executor.database.view_paths import estimates, prospective_view, shown_view, with_expected
from executor.maintained.view_pace import pace_options_of
from executor.replicas.replica import replica_of
from executor.sql.environment import Environment
from executor.sql.view_options import altered_view
from executor.sql.view_plans import planned_view, require_policy, view_of, with_engine
from executor.transactions.transaction import Transaction
from executor.views.location import Away
from executor.views.runtime import ViewRuntime
from planner.algebra.nodes import Relation
from planner.explain.plans import Rows, relation_json, tree_lines
from planner.explain.programs import Facts
from planner.explain.views import ShownView, explain_view, view_json
from planner.incremental.programs.program import Path, Program
from planner.statements.statement import AlterView, CreateView, Explain

#: What a program's path runs after.
_LATER: Final = "the rest when the view is read"
#: How an ordinary view is maintained.
_ORDINARY: Final = {"Method": "recomputation", "Computed at Each Read": "it is an ordinary view"}


# --- a view that exists ----------------------------------------------------------------------------------------------


def running_view(database: Database, runtime: ViewRuntime, has_pace: bool) -> ShownView:
    """A view that a query reads, with the curve of its paces if it ``has_pace``."""
    maintained = database.read_services.maintained
    shown = shown_view(database.core, maintained, runtime, chooses=True)
    view = with_expected(database.core, maintained, shown, pace_options_of(runtime.view), has_pace)
    known = replace(view.known, paths=_running_paths(database, runtime))
    return replace(view, known=known, attributes=(*_elsewhere(database, runtime), *_keeping(runtime.view)))


def _elsewhere(database: Database, runtime: ViewRuntime) -> list[tuple[str, str]]:
    """The servers that are asked for a view's rows or for those of tables, if these are elsewhere."""
    away = [] if runtime.away is None else [_asked(runtime.away)]
    replica = replica_of(database.replicas, runtime)
    if replica is not None and runtime.program.borrowed:
        called = ", ".join(item.called for item in runtime.program.borrowed)
        away.append(("Tables", f"{called} (server {replica.home} is asked for their rows when they have changed)"))
    return away


def _asked(away: Away) -> tuple[str, str]:
    return ("Server", f"{away.server} (asked for what the query reads)") if away.server else ("State", "suspended")


def _running_paths(database: Database, runtime: ViewRuntime) -> dict[int, Facts]:
    found = _paths(database, runtime.view, runtime.program)
    for progress in runtime.paths:
        facts = found[progress.path.id]
        if runtime.away is None:
            reached = f"durable up to LSN {progress.durable}, fresh up to LSN {progress.reached}"
            facts = replace(facts, when=f"{facts.when} ({reached})")
        elif runtime.away.server:
            when, where = f"in the background; {_LATER}", f'on server "{runtime.away.server}"'
            facts = replace(facts, when=when, where=where)
        else:
            facts = replace(facts, when="once the view is resumed", where="-")
        found[progress.path.id] = facts
    return found


# --- any view --------------------------------------------------------------------------------------------------------


def _keeping(view: View) -> list[tuple[str, str]]:
    """The options that say which rows the view shows."""
    return [(name.title(), text) for name, text in view.options if name in ("retention", "emit")]


def _paths(database: Database, view: View, program: Program) -> dict[int, Facts]:
    """When and where each path of a program runs, by its id."""
    core, options = database.core, database.core.options
    rows, idle = options.maintenance_rows, options.maintenance_idle
    when = f"in the background after {rows} rows or {idle:g} s without any; {_LATER}"
    found = {}
    for path in program.paths:
        watermark = ", ".join(filter(None, (core.streams[oid].stream.option("watermark") for oid in path.inputs)))
        found[path.id] = Facts(when, _where(database, view, program, path), watermark)
    return found


def _where(database: Database, view: View, program: Program, path: Path) -> str:
    setting = database.core.engine_setting(view)
    if setting == "embedded":
        return "embedded engine (maintenance_engine = embedded)"
    spark, why = database.maintenance.spark_for(view.time_zone, program, path)
    if spark:
        others = " and between changes of tables" if program.arrival_statics else ""
        return f"Spark in the background, the embedded engine for what a reader waits for{others} ({setting})"
    return f"embedded engine ({setting}: {why})"


# --- a view that is to be --------------------------------------------------------------------------------------------


def explain_definition(
    session: Environment, statement: CreateView | AlterView, transaction: Transaction, explained: Explain
) -> list[str] | dict[str, Any]:
    """The plan of the view that a statement would make. Raises what the statement would raise, and changes nothing."""
    core, catalog = session.core, transaction.sees(session.core.catalog)
    statement = replace(statement, view=with_engine(session, statement.view))
    made = _altered(core, transaction, catalog, statement) if isinstance(statement, AlterView) else None
    made = _created(core, catalog, statement) if isinstance(statement, CreateView) else made
    assert made is not None
    shown = None
    if made.program is not None:
        maintained = session.database.read_services.maintained
        prospect = prospective_view(core, catalog, made.view, made.program)
        shown = with_expected(core, maintained, prospect, pace_options_of(made.view), explained.pace)
        known = replace(shown.known, paths=_paths(session.database, made.view, made.program))
        shown = replace(shown, known=known, attributes=tuple(_keeping(made.view)))
    plan = None if made.query is None else core.plans.get(made.query).relation
    rows = None if plan is None else estimates(core, catalog)(plan)
    return _document(made, shown, plan, rows) if explained.format == "json" else _lines(made, shown, plan, rows)


class _Made(Struct, frozen=True):
    """What a statement would make: a continuous view with a program, or an ordinary one with the query that it is."""

    view: View
    notices: tuple[SqlError, ...]
    program: Program | None = None
    query: Relation | None = None

    @property
    def title(self) -> str:
        """The statement."""
        return f"Create {'Materialized View' if self.view.materialized else 'View'}"


def _altered(core: Core, transaction: Transaction, catalog: Catalog, statement: AlterView) -> _Made:
    altered = altered_view(core, transaction, catalog, statement)
    text = "the definition is that of the existing view, which keeps its states"
    return _Made(altered.view, (SqlError("00000", text),), altered.program)


def _created(core: Core, catalog: Catalog, statement: CreateView) -> _Made:
    view = view_of(core, catalog, statement)
    if statement.exists:
        return _Made(view, (SqlError("42P07", f'relation "{view.name}" already exists, skipping'),))
    warnings = (SqlError(WARNING, text) for text in statement.warnings)
    notices = (SqlError("00000", text) for text in statement.notices)
    if not view.continuous:
        require_policy(core, view, None)
        return _Made(view, (*warnings, *notices), None, statement.query.relation)
    plan = planned_view(core, catalog, replace(statement, view=view))
    return _Made(view, (*warnings, *plan.notices, *notices), plan.program)


def _lines(made: _Made, shown: ShownView | None, plan: Relation | None, rows: Rows | None) -> list[str]:
    lines = [f"{made.title} {qualified(made.view)}"]
    if shown is not None:
        lines += explain_view(shown)
    if plan is not None:
        lines += [f"  {name}: {text}" for name, text in _ORDINARY.items()]
        lines += tree_lines(plan, 2, "->  ", rows)
    return [*lines, *(line for notice in made.notices for line in _told(notice))]


def _document(made: _Made, shown: ShownView | None, plan: Relation | None, rows: Rows | None) -> dict[str, Any]:
    root: dict[str, Any] = {"Node Type": made.title, "Relation Name": made.view.name}
    found: dict[str, Any] = {"Plan": root}
    if shown is not None:
        found["Continuous Views"] = {shown.name: view_json(shown)}
    if plan is not None:
        root |= {**_ORDINARY, "Plans": [relation_json(plan, rows)]}
    if made.notices:
        found["Notices"] = [dict(_fields(notice)) for notice in made.notices]
    return found


def _fields(notice: SqlError) -> list[tuple[str, str]]:
    severity = "WARNING" if notice.sqlstate == WARNING else "NOTICE"
    fields = (("Severity", severity), ("Message", notice.message), ("Detail", notice.detail), ("Hint", notice.hint))
    return [(name, text) for name, text in fields if text]


def _told(notice: SqlError) -> list[str]:
    """A notice that the statement would give, in lines."""
    (_, severity), (_, message), *others = _fields(notice)
    return [f"{severity.title()}: {message}", *(f"  {name}: {text}" for name, text in others)]

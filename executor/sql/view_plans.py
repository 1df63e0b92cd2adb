"""The program of a view that CREATE VIEW makes, ALTER VIEW changes or EXPLAIN shows, and what the client is told of it.

Owns: planning with what only a database knows (statistics, the server's name), and the notices about the plan. What
becomes of a program is ``ddl``'s, ``view_options``' and ``explain``'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import Stream, View, as_plain
from catalog.values.errors import WARNING, SqlError, unsupported
from executor.core.core import Core
from executor.core.statistics import statistics_of
from executor.maintained.dataflow_choice import planned_rows
from executor.maintained.expanded_views import Prospect
from executor.maintained.unmet_goals import unmet_goal
from executor.moving.change_guards import require_own
from executor.sql.environment import Environment
from executor.sql.row_policies import require_row_policy
from executor.sql.view_starts import starts
from planner.algebra.nodes import Scan
from planner.algebra.walk import walk
from planner.bind.definitions.relations.watermarks import in_use
from planner.incremental.dataflow.planning import refuse_recomputation, require_incremental
from planner.incremental.methods.collect import Collected
from planner.incremental.methods.interval.sides import NO_WATERMARKS, Watermarks
from planner.incremental.methods.interval.states import JoinedRows, MarkedStream
from planner.incremental.pace_options import NAMES as PACE_OPTIONS
from planner.incremental.plan import Planned, Tables, derived, plan
from planner.incremental.programs.canonical import Origin
from planner.incremental.programs.program import Program, bounds_joins
from planner.statements.statement import AlterView, CreateView, Query

_GROWS: Final = "Its state grows with the stream, by the columns and rows that the query uses."
#: By option, what an ordinary view is without it, and further values that are true of it.
_OF_ORDINARY: Final[Mapping[str, tuple[str, ...]]] = {
    "refresh_policy": ("auto",),
    "method": ("auto", "recompute"),
    "tables": ("live",),
    **dict.fromkeys(PACE_OPTIONS, ("",)),
}
#: The values of the option ``tables``.
_TABLES: Final[Mapping[str, Tables]] = {"live": "live", "frozen": "frozen", "arrival": "arrival"}


class ViewPlan(Struct, frozen=True):
    """A continuous view's program, and the notices about it in PostgreSQL's form."""

    program: Program
    notices: tuple[SqlError, ...] = ()


def planned_view(core: Core, catalog: Catalog, statement: CreateView) -> ViewPlan:
    """The program of a new continuous view. Raises 0A000 for what none can have."""
    view, query = statement.view, statement.query
    if view.derived:
        found = ViewPlan(derived(query, origin_of(core, view)))
    else:
        _refuse_files(query)
        watermarks = statement.watermarks if _begin_alike(core, catalog, statement) else NO_WATERMARKS
        planned = _planned(core, catalog, statement, query, watermarks)
        if planned.blames_pairs and view.on_error != "fail":
            planned = _planned(core, catalog, statement, query, NO_WATERMARKS)
        require_row_policy(view, planned.program)
        for oid in planned.program.inputs:
            require_own(catalog.objects[oid])
        found = ViewPlan(
            planned.program, (*_frozen(planned), *map(_growing, planned.collected), *map(_joined, planned.joined))
        )
    require_policy(core, view, found.program)
    return replace(found, notices=(*found.notices, *unmet_goal(core, view, found.program)))


def view_of(core: Core, catalog: Catalog, statement: CreateView) -> View:
    """The view that a statement makes: an ordinary one where it would be a continuous one over tables under an identity
    under which storage still has another program."""
    view = statement.view
    old = catalog.at(view.schema, view.name) if statement.replaces else None
    is_taken = isinstance(old, View) and not old.continuous and core.find_view(old.oid) is not None
    return as_plain(view) if view.derived and is_taken else view


def with_engine(session: Environment, view: View) -> View:
    """A view over streams without an engine of its own keeps the session's, where that is not the server's."""
    engine, name = session.maintenance_engine, "maintenance_engine"
    if not view.keeps_rows or engine == session.core.options.maintenance_engine or name in dict(view.options):
        return view
    return replace(view, options=(*view.options, (name, engine)))


def altered_program(core: Core, catalog: Catalog, statement: AlterView, before: Program) -> Program:
    """What a view over streams would be planned as with its new options. Raises 0A000. A view whose joins keep all rows
    goes on to keep them."""
    assert statement.query is not None
    watermarks = statement.watermarks if bounds_joins(before) else NO_WATERMARKS
    return _planned(core, catalog, statement, statement.query, watermarks).program


def require_unused_watermark(core: Core, stream: Stream) -> None:
    """Raises 2BP01 where rows leave the joins of a view by the watermark that a stream had at its creation."""
    for runtime in core.views_on(stream.oid):
        if bounds_joins(runtime.program):
            raise in_use(stream, runtime.view)


def _begin_alike(core: Core, catalog: Catalog, statement: CreateView) -> bool:
    """Whether the streams of a new view all begin with rows of before, or none does: one path can read them then."""
    if not statement.watermarks:
        return True
    scans = (item for item in walk(statement.query.relation) if isinstance(item, Scan))
    streams = {item.oid for item in scans if item.kind == "stream"}
    return len(starts(core, catalog, statement, streams)) in (0, len(streams))


def _planned(
    core: Core, catalog: Catalog, statement: CreateView | AlterView, query: Query, watermarks: Watermarks
) -> Planned:
    """The plan of a view over streams. An error says where the query names its stream."""
    view, keeping = statement.view, statement.keeping
    position = statement.position if isinstance(statement, CreateView) else None
    statistics = statistics_of(query.relation, catalog, core.tables, {})
    tables: Tables | None = _TABLES.get(dict(view.options).get("tables", ""))
    try:
        return plan(
            query, keeping, False, statistics, origin_of(core, view), tables, watermarks, view.on_error != "fail"
        )
    except SqlError as error:
        if error.position is None:
            error.position = position
        raise


def origin_of(core: Core, view: View) -> Origin:
    """What the names of a view's traces depend on beside its program."""
    return Origin(view.time_zone, core.options.server_name)


def require_policy(core: Core, view: View, program: Program | None) -> None:
    """Raises 0A000 for a view with refresh_policy = 'incremental' of which something is computed anew at each read,
    and for an ordinary view, which has no program, with an option that asks for more."""
    options = dict(view.options)
    for name, ordinary in _OF_ORDINARY.items():
        if program is None and options.get(name, ordinary[0]) not in ordinary:
            construct = f"an ordinary view with {name} = '{options[name]}'"
            raise unsupported(construct, "Use CREATE MATERIALIZED VIEW, or leave the option out.")
    if program is None or options.get("refresh_policy") != "incremental":
        return
    below = (item.oid for item in walk(program.final) if isinstance(item, Scan) and item.kind == "view")
    if all(core.find_view(oid) is not None for oid in below):
        refuse_recomputation(planned_rows(core, Prospect(view, program)))
    else:  # one is of this transaction
        require_incremental(program.final, frozenset(static.name for static in program.statics))


def _frozen(planned: Planned) -> Iterator[SqlError]:
    """Warnings of tables that the view reads once, with the reason; notices where the view's options ask for it."""
    if not planned.obstacles:
        yield from (SqlError("00000", text) for text in planned.notices)
        return
    reasons = ", ".join(item.construct for item in planned.obstacles)
    hint = " ".join(dict.fromkeys(item.instead for item in planned.obstacles))
    detail = f"Tables cannot be read as they are because of {reasons}."
    yield from (SqlError(WARNING, text, detail, hint) for text in planned.notices)


def _growing(collected: Collected) -> SqlError:
    """A notice of a stream whose rows the view keeps."""
    kept = f'the rows of stream "{collected.stream}"'
    if collected.others:
        kept = f"the joined rows of streams {_listed((collected.stream, *collected.others))}"
    text = f"the view keeps {kept}: {collected.reason}"
    if not collected.grows:
        return SqlError("00000", text, "Rows leave its state once they are older than the query looks back.")
    hint = "Filter the stream, group it by a key before it meets anything else, or bound its rows by retention."
    return SqlError("00000", text, _GROWS, hint)


def _joined(rows: JoinedRows) -> SqlError:
    """A notice of a stream whose rows the view keeps to join them with those of others."""
    text, others = f'the view keeps the rows of stream "{rows.stream}" ', _listed(rows.others)
    if not rows.marks:
        has = "has a watermark, and its time is" if len(rows.others) == 1 else "have watermarks, and their times are"
        hint = f'Rows leave the state where {others} {has} at most that of "{rows.stream}" and a constant interval.'
        return SqlError("00000", f"{text}to join them with those of {others}", _GROWS, hint)
    latest = " and ".join(_passed(mark, rows.column) for mark in rows.marks)
    late = "its watermark" if len(rows.marks) == 1 else "their stream's watermark"
    marked = _listed([mark.stream for mark in rows.marks])
    detail = f"They leave its state once {latest}. Rows of {marked} that come at or below {late} are not joined."
    return SqlError("00000", f"{text}until those of {others} that may still come join none of them", detail)


def _passed(mark: MarkedStream, column: str) -> str:
    age = f"{'-' if mark.age < 0 else ''}{timedelta(microseconds=abs(mark.age))}"
    return f'the latest "{mark.column}" of "{mark.stream}" is {age} after their "{column}"'


def _listed(names: Sequence[str]) -> str:
    """Names in quotes: "a", "b" and "c"."""
    *first, last = (f'"{name}"' for name in dict.fromkeys(names))
    return f"{', '.join(first)} and {last}" if first else last


def _refuse_files(query: Query) -> None:
    """Files can change at any time, and a view would not notice."""
    for item in walk(query.relation):
        if isinstance(item, Scan) and item.kind == "files":
            instead = "Copy its rows into a table (CREATE TABLE AS), or join it in the query that reads the view."
            construct = f'foreign table "{item.name}" of files in a continuous view'
            raise unsupported(construct, instead)

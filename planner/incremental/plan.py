"""The program of a continuous view: the steps of ``plan``, in their order, and what they give together.

Owns: ``plan``, ``normalise``, the key of a view's point reads, whether tables below groupings are live, and what CREATE
VIEW says of those that are read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from catalog.values.errors import SqlError, unsupported
from planner.algebra.construction import Fresh, keep_columns
from planner.algebra.event_time import Keeping
from planner.algebra.nodes import Aggregate, Column, ColumnRef, Filter, Project, Relation, Scalar, Scan, Snapshot
from planner.algebra.reading_time import is_timed
from planner.algebra.validate import validate
from planner.algebra.walk import transform, walk
from planner.incremental.clock_bounds import clock_expiries
from planner.incremental.methods.collect import Collected, CollectedRows
from planner.incremental.methods.interval.joins import interval_joins
from planner.incremental.methods.interval.sides import NO_WATERMARKS, Found, Watermarks
from planner.incremental.methods.interval.states import IntervalJoins, JoinedRows
from planner.incremental.methods.method import Gathered, Method
from planner.incremental.methods.split.groupings import Groupings
from planner.incremental.methods.split.regions import Regions
from planner.incremental.methods.split.split import SplitMaintenance
from planner.incremental.methods.split.statics import Statics, scanned_tables
from planner.incremental.names import stored_name
from planner.incremental.programs.canonical import Origin, canonical
from planner.incremental.programs.program import Program, State, Static, paths_of, states_read, without_traces
from planner.incremental.properties import Kinds, is_grouping
from planner.incremental.retention import keep_windows, require_windows
from planner.incremental.rewrites.first_rows import first_rows
from planner.incremental.rewrites.inner_limits import number_inner_limits
from planner.incremental.rewrites.live_tables import live_tables
from planner.incremental.rewrites.prepare import prepare
from planner.incremental.rewrites.pushed_calls import Obstacle
from planner.incremental.rewrites.share_groupings import share_groupings
from planner.rules import REWRITES, decorrelate, optimise, rewrite
from planner.rules.joins.cardinality import Cardinality
from planner.rules.joins.unnest_in_place import unnest_in_place
from planner.rules.projections.prune_columns import prune_columns
from planner.rules.row_order.order_lists import order_lists
from planner.statements.statement import Query
from planner.statistics import Statistics

_ANY_ORIGIN: Final = Origin()
_PRUNED: Final = (prune_columns,)
_UNKNOWN: Final = Obstacle("this query", "Join the table to the grouped result instead.")
_KEPT_FOR_A_TIME: Final = Obstacle(
    "a view with retention or emit = 'final'",
    "Group the stream in the view, and join the table where the view is read.",
)

#: The view option ``tables``: whether tables below groupings are read at each read, once, or as each row of a stream
#: comes.
Tables = Literal["live", "frozen", "arrival"]


class Planned(Struct, frozen=True):
    """A program, and what CREATE VIEW tells the client about it: of tables that are not live, and why they are not, and
    of streams whose rows are kept, or are until they can be joined no more. ``blames_pairs``: an expression over
    joined rows of streams may raise, so that no row of a stream is to blame."""

    program: Program
    notices: tuple[str, ...]
    obstacles: tuple[Obstacle, ...] = ()
    collected: tuple[Collected, ...] = ()
    joined: tuple[JoinedRows, ...] = ()
    blames_pairs: bool = False


def plan(
    query: Query,
    keeping: Keeping | None = None,
    once: bool = False,
    statistics: Statistics | None = None,
    origin: Origin = _ANY_ORIGIN,
    tables: Tables | None = None,
    watermarks: Watermarks = NO_WATERMARKS,
    forgiving: bool = False,
) -> Planned:
    """The program of a continuous view, or, with ``once``, of a query that runs once: its final relation gives its rows
    in the query's order, and it may read views beside a stream. By ``statistics`` a stream meets first the tables that
    leave the fewest of its rows. ``origin`` is part of what its traces hold. ``tables`` below groupings are live where
    they can be, unless it says otherwise. By ``watermarks`` rows of streams that are joined leave the states.
    ``forgiving``: the view goes on where an expression fails on a row.

    Raises 0A000 for groups of which ``keeping`` does not say when they end, and for tables that are to be live, or as
    of each row's arrival, and cannot."""
    bounding = NO_WATERMARKS if once or keeping is not None or tables == "arrival" else watermarks
    relation, rows, fresh, collected, joins = _grouped(query, keeping, once, tables == "arrival", bounding, forgiving)
    require_windows(relation, keeping)
    relation = share_groupings(relation)
    relation, windows = keep_windows(relation, keeping, fresh, rows.timed)
    relation = rewrite(relation, _PRUNED)
    is_asked = tables in (None, "live") and not once
    pushed, obstacles = _live(relation, keeping, fresh) if is_asked else (relation, tuple[Obstacle, ...]())
    is_live, relation = pushed is not relation, pushed
    kinds = Kinds()
    statics = Statics(fresh, arrival=tables == "arrival")
    cardinality = Cardinality(relation, statistics) if statistics else None
    regions, gathered = Regions(statics, fresh, kinds, cardinality), Gathered()
    groupings = Groupings(statics, regions, fresh, gathered, windows.horizons)
    final = maintained(relation, (SplitMaintenance(groupings, kinds, fresh),))
    final = optimise(keep_columns(final, query.relation.columns))
    rows.gather(gathered, [final, *(statement.relation for _, statement in gathered.statements)], regions)
    bounded = IntervalJoins(joins, watermarks, groupings, fresh)
    blames_pairs = bounded.may_raise(gathered)
    statements, leaving = bounded.expanded(gathered, final)
    states = tuple(gathered.states)
    paths = paths_of(statements)
    relations = [statement.relation for path in paths for statement in path.statements]
    _require_kept(relations)
    final = statics.frozen(final, scanned_tables(statics.planned([*relations, final])).keys())
    planned = statics.planned([*relations, final])
    _require_one_moment(planned, final)
    expiries = (*windows.expiries(groupings), *clock_expiries(final, rows.lasting(states)), *leaving)
    key = point_key(final, states)
    program = Program(planned, states, paths, final, final.columns, key, expiries, live=is_live)
    program = canonical(program, origin)
    _validate(program)
    told = notices(program)
    if tables == "arrival" and not program.arrival_statics:
        told = ("the option tables has no effect: no row of a stream meets a table as it comes",)
    if told and tables == "live":
        raise unsupported(f"tables = 'live' with {obstacles[0].construct}", obstacles[0].instead)
    kept = tuple(map(bounded.collected, rows.told(collected, expiries)))
    return Planned(program, told, obstacles if told and tables is None else (), kept, bounded.told, blames_pairs)


def _grouped(
    query: Query, keeping: Keeping | None, once: bool, joined: bool, watermarks: Watermarks, forgiving: bool
) -> tuple[Relation, CollectedRows, Fresh, tuple[Collected, ...], Found]:
    """The query in the form that methods expect, over collected rows where no grouping takes a stream in, and over
    joins of streams that bound each other; all streams are collected where the query has no such form. ``joined``: rows
    meet tables before they are collected."""
    joins = Found()
    times: dict[int, str] = {}
    if keeping is not None and keeping.retention is not None:
        times = {oid: item.column for oid, item in keeping.watermarks.items()}
    try:
        relation = normalise(query.relation, once)
    except SqlError as error:
        if error.sqlstate != "0A000":
            raise
        relation = rewrite(query.relation, REWRITES)
        fresh = Fresh(relation, query.relation)
        rows = CollectedRows(fresh, times, joined)
        found, collected = rows.everywhere(relation)
    else:
        fresh = Fresh(relation, query.relation)
        relation, joins = interval_joins(relation, watermarks, fresh, forgiving)
        rows = CollectedRows(fresh, times, joined)
        found, collected = rows.below_groupings(relation)
    return found, rows, fresh, collected, joins


def _live(relation: Relation, keeping: Keeping | None, fresh: Fresh) -> tuple[Relation, tuple[Obstacle, ...]]:
    """The plan whose tables below groupings are read as they are, and what keeps others from it."""
    if keeping is not None:
        return relation, (_KEPT_FOR_A_TIME,)
    found, obstacles = live_tables(relation, fresh)
    if found is not relation:
        found = rewrite(share_groupings(found), _PRUNED)
    return found, obstacles or (_UNKNOWN,)


def tables_of(program: Program) -> Tables | None:
    """When the tables are read that are joined below a grouping; None where there are none."""
    if program.arrival_statics:
        return "arrival"
    if scanned_tables(program.statics):
        return "frozen"
    return "live" if program.live else None


def derived(query: Query, origin: Origin = _ANY_ORIGIN) -> Program:
    """The program of a continuous view that reads no stream: its rows are made of what it reads, at each read that
    finds a change. Any query may be one."""
    final = optimise(query.relation)
    program = canonical(without_traces(final), origin)
    _validate(program)
    return program


def maintained(relation: Relation, methods: Sequence[Method]) -> Relation:
    """The relation with each operator that a method maintains read from its traces; the first method that applies
    counts. What no method maintains is computed when the view is read."""

    def change(node: Any) -> Any:
        method = next((item for item in methods if item.applies(node)), None)
        return node if method is None else method.plan(node)

    found: Relation = transform(relation, change)
    return found


def _require_one_moment(statics: Iterable[Static], final: Relation) -> None:
    """A view sees each table at one moment: not as each row comes, and as it is at a read. Raises 0A000."""
    then = scanned_tables(item for item in statics if item.arrival)
    scan = next((node for node in walk(final) if isinstance(node, Scan) and node.oid in then), None)
    if scan is not None:
        what = f"table \"{scan.name}\" both below a grouping and above it WITH (tables = 'arrival')"
        raise unsupported(what, "Join it above the grouping in another view or query, which reads this view.")


def _require_kept(statements: Sequence[Relation]) -> None:
    """What fills states reads the stream and what is kept, no table or catalog as it is. Raises 0A000."""
    for item in (node for statement in statements for node in walk(statement)):
        if isinstance(item, Scan):
            instead = "Group by the columns that it is computed from, and compute it from the groups."
            read = "the system catalogs" if item.kind == "system" else f'"{item.name}"'  # also by a cast of an oid
            raise unsupported(f"a subquery over {read} in an expression below the grouping", instead)


def normalise(relation: Relation, ordered: bool = False) -> Relation:
    """The plan in the form that methods expect: decorrelated, rewritten, streams on probe sides."""
    rewritten = rewrite(decorrelate(unnest_in_place(order_lists(relation))), REWRITES)
    return rewrite(prepare(number_inner_limits(first_rows(rewritten)), ordered), REWRITES)


def point_key(final: Relation, states: tuple[State, ...]) -> tuple[Column, ...]:
    """Output columns that are the group key of the only state read, under projections and filters only; else none.

    None either for intervals: an index finds values that are the same, and a month equals thirty days.
    """
    values: dict[Column, Scalar] = {column: ColumnRef(column) for column in final.columns}
    node = final
    while isinstance(node, Project | Filter):
        if isinstance(node, Project):
            outputs = dict(node.outputs)
            values = {column: outputs[value.column] for column, value in values.items() if isinstance(value, ColumnRef)}
        node = node.input
    if not isinstance(node, Snapshot) or is_timed(final):
        return ()
    state = next((item for item in states if item.name == node.trace and item.kind == "aggregate"), None)
    if state is None or any(column.type.name == "interval" for column in state.key):
        return ()
    sources = dict(zip(node.columns, node.sources, strict=True))
    by_source = {sources[value.column]: column for column, value in values.items() if isinstance(value, ColumnRef)}
    found = tuple(by_source[stored_name(column)] for column in state.key if stored_name(column) in by_source)
    return found if len(found) == len(state.key) else ()


def notices(program: Program) -> tuple[str, ...]:
    """What CREATE VIEW says of tables that the view reads once (thesis 4.2.2), or as each row comes."""
    once = dict.fromkeys(scanned_tables(program.kept_statics).values())
    then = dict.fromkeys(scanned_tables(program.arrival_statics).values())
    return (
        *(
            f'table "{name}" is joined below the grouping and is read as of the view\'s creation: '
            "later changes to it do not change the view"
            for name in once
        ),
        *(
            f'each row of a stream is joined with table "{name}" as of the commit of the row: '
            "later changes of the table do not change what the view has of it"
            for name in then
        ),
    )


def _validate(program: Program) -> None:
    for static in program.statics:
        validate(static.relation)
    states = {state.name: state for state in program.states}
    for path in program.paths:
        filled: set[str] = set()
        for statement in path.statements:
            validate(statement.relation)
            assert statement.relation.columns == states[statement.target].columns
            assert filled.isdisjoint(states_read((statement,))), "the engines compute a path's statements side by side"
            filled.add(statement.target)
    validate(program.final)
    then = {static.name for static in program.arrival_statics}
    assert not any(isinstance(node, Snapshot) and node.trace in then for node in walk(program.final))
    assert not any(isinstance(node, Aggregate) and is_grouping(node, Kinds()) for node in walk(program.final))

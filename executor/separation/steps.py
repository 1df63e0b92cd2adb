"""Decides whether a query runs pipeline by pipeline, and where its plan is cut.

Owns: the setting's three values, and the estimate behind ``auto``: the rows of the tables and views that are read,
times the passes over them (``planner/placement``'s constants). A query that is estimated to be short runs whole. A plan
is cut where an engine must finish an operator before it continues, and at relations that several places would compute.
On request, the plan of a long query is also cut at a join of several tables that is the build side of another join;
this fixes the order of joins in advance, by statistics.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.core.plans import Plan
from executor.core.statistics import all_statistics_of, statistics_of
from executor.files import file_tables
from executor.separation.results import EngineName
from executor.separation.slices import Counts, Sliced, rows_of, slicing_of, speed_of
from planner.algebra.nodes import Relation, Scan, Snapshot, Value
from planner.algebra.walk import replace_parameters, walk
from planner.placement import BREAKERS
from planner.rules import with_ordered_joins
from planner.rules.joins.cardinality import Cardinality
from planner.separation.common_results import compute_once
from planner.separation.cuts import Pipeline, Pipelined, Place, Rows, cut, is_bare, with_order_above

if TYPE_CHECKING:
    from executor.queries.reader import Reader
    from executor.tables.store import TableStore
    from executor.transactions.transaction import Transaction
    from executor.views.runtime import ViewRuntime

#: The values of the setting: auto, on or off.
Separable = str
#: The estimated seconds from which on ``auto`` runs a query pipeline by pipeline. On TPC-H at scale 1, a quarter of a
#: second costs some 9 % over all queries, and this value nothing (``bench separation``).
LONG: Final = 1.0
#: The estimated seconds from which on a query gets a place to stop, even if only a join's build side or a subquery
#: offers one.
_STOPPABLE: Final = 2.0
#: The factor for both limits on Spark, where each pipeline is a job whose result is written to files.
_ON_SPARK: Final = 5
#: The least number of rows looked up in a build side that makes a pipeline of its own worthwhile.
_PROBED: Final = 100_000
#: The least ratio of these rows to the build side's rows, since the result is written once more.
_SMALLER: Final = 4
#: The least number of rows read for a relation used by several pipelines that makes computing it once worthwhile.
_REPEATED: Final = 100_000
#: The most plans whose steps are remembered, and the most characters of their parameters.
_KNOWN: Final = 256
_LONGEST: Final = 4096
#: What a plan's steps depend on: the setting, the engine, the query's length and the approximate number of rows that it
#: reads, in powers of two, and the parameters as written.
Circumstances = tuple[Separable, EngineName, bool, bool, tuple[int, ...], str]
#: Seconds for which counted rows of tables stay valid.
_COUNTED: Final = 1.0


class Steps(Struct, frozen=True):
    """How a query runs: cut into pipelines, each with its share of the work, and some of them into slices; or whole,
    for a ``reason``."""

    reason: str
    plan: Pipelined | None = None
    efforts: tuple[float, ...] = ()
    #: Rows per second of one pass of the engine.
    speed: float = 0.0
    #: The number of slices of a pipeline's input, by the pipeline's name.
    slices: Mapping[str, Sliced] = field(default_factory=dict)
    #: The pipelines as the engine's SQL, by time zone, once printed.
    texts: dict[str, dict[str, str]] = field(default_factory=dict)
    #: The rows of their results, once they have run.
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The decision in EXPLAIN's words."""
        return f"{'whole' if self.plan is None else 'pipeline by pipeline'} ({self.reason})"


#: The steps of a query without a place to cut.
WHOLE: Final = Steps("one pipeline")
#: The steps of a query with volatile calls, whose results differ between evaluations.
CALLING: Final = Steps("it calls volatile functions")


class RowCounts:
    """Approximate row counts of tables, counted at most once per second for all tables."""

    def __init__(self, tables: TableStore) -> None:
        self._tables = tables
        self._found: Mapping[int, int] = {}
        self._until = 0.0
        self._lock = threading.Lock()

    def of(self, oids: tuple[int, ...]) -> dict[int, int]:
        """The row counts by oid."""
        if not oids:
            return {}
        if time.monotonic() >= self._until:
            with self._lock:
                if time.monotonic() >= self._until:
                    self._found = self._tables.row_counts()
                    self._until = time.monotonic() + _COUNTED
        return {oid: self._found.get(oid, 0) for oid in oids}


def steps_of(
    reader: Reader,
    row_counts: RowCounts,
    known: KnownSteps,
    plan: Plan,
    parameters: tuple[Value, ...],
    transaction: Transaction,
    engine: EngineName = "embedded",
) -> Steps:
    """How a session's query runs on an engine."""
    separable = reader.separable
    if separable == "off":
        return Steps("separable = off")
    reason = _obstacle(plan, transaction)
    if reason is not None:
        return Steps(reason)
    counts = row_counts.of(plan.tables)
    counts |= _rows_of_views(reader, plan) | _rows_of_files(reader, plan, parameters)
    seconds = sum(counts.values()) * (1 + plan.breakers) / speed_of(reader, engine)
    words, times = f"about {seconds:.2f} s", _ON_SPARK if engine == "spark" else 1
    if separable == "auto" and seconds < LONG * times:
        return Steps(words)
    everywhere = separable == "on" and seconds >= LONG * times
    words = "separable = on" if separable == "on" else words
    is_long = seconds >= _STOPPABLE * times
    if not plan.breakers and not is_long:
        return WHOLE
    cutting = partial(_steps, everywhere, is_long, engine, reader, plan, parameters, counts, words)
    sizes = tuple(map(int.bit_length, counts.values()))
    around = (separable, engine, everywhere, is_long, sizes, repr(parameters))
    found = known.get(plan, around, cutting)
    return found if found.plan is None else replace(found, reason=words)


def _steps(
    everywhere: bool,
    is_long: bool,
    engine: EngineName,
    reader: Reader,
    plan: Plan,
    parameters: tuple[Value, ...],
    counts: Mapping[int, int],
    words: str,
) -> Steps:
    """A plan's steps, with the reason for the cuts in ``words``."""
    relation = replace_parameters(plan.relation, parameters)
    found, slices = _cut(reader, relation, counts, engine, is_long, everywhere)
    if is_long and len(found.pipelines) == 1:
        found, slices = _cut(reader, relation, counts, engine, is_long, everywhere=True)
    if len(found.pipelines) == 1:
        return WHOLE
    return Steps(words, found, _efforts(found, counts), speed_of(reader, engine), slices)


def _cut(
    reader: Reader, relation: Relation, counts: Counts, engine: EngineName, is_long: bool, everywhere: bool
) -> tuple[Pipelined, Mapping[str, Sliced]]:
    """A plan's pipelines, with ``everywhere`` cut also at build sides and subqueries, and their slices."""
    relation = compute_once(relation, partial(_is_worth_sharing, reader.core))
    statistics = statistics_of(relation, reader.core.catalog, reader.core.tables, {}) if everywhere else {}
    relation = with_ordered_joins(relation, statistics) if everywhere else relation
    slicing = slicing_of(reader, relation, counts, engine)
    relation = slicing.in_two_phases(relation)
    gathered = slicing.gathered(relation, reader.separable == "on") if is_long else None
    relation, last = gathered or (with_order_above(relation), None)
    wanted: Callable[[Place], bool] = _is_breaker
    rows = Cardinality(relation, statistics).rows if statistics else None
    if everywhere:
        wanted = partial(_is_worth_it, rows)
    found = cut(relation, lambda place: wanted(place) or slicing.is_beside(place.relation), rows, last)
    return found, slicing.slices(found)


def steps_of_rest(reader: Reader, relation: Relation, counts: Mapping[str, int], engine: EngineName) -> Steps:
    """The steps of the rest of a query, over runs with these row counts."""
    slicing = slicing_of(reader, relation, counts, engine)
    relation = slicing.in_two_phases(relation)
    relation, last = slicing.gathered(relation, is_asked=True) or (relation, None)
    found = cut(relation, lambda place: _is_breaker(place) or slicing.is_beside(place.relation), last=last)
    speed = speed_of(reader, engine)
    return Steps("the rest of a query", found, _efforts(found, counts), speed, slicing.slices(found))


class KnownSteps:
    """Remembers the steps of plans that ran with the same parameters, while no table has changed and views and files
    have about the same number of rows. Safe for many threads.

    Constants in a client's text have become parameters, so most plans have some. They are compared as written: 1.0 and
    1.00 are equal, but are shown differently.
    """

    def __init__(self, version: Callable[[], int]) -> None:
        """``version`` changes when a table changes."""
        self._version = version
        self._lock = threading.Lock()
        self._found: dict[tuple[int, Circumstances], tuple[Plan, int, Steps]] = {}

    def get(self, plan: Plan, around: Circumstances, make: Callable[[], Steps]) -> Steps:
        """A plan's steps under these conditions."""
        if len(around[-1]) > _LONGEST:
            return make()
        version = self._version()
        known = self._found.get((id(plan), around))
        if known is not None and known[0] is plan and known[1] == version:
            return known[2]
        made = make()
        with self._lock:
            if len(self._found) >= _KNOWN:
                self._found.clear()
            self._found[id(plan), around] = (plan, version, made)
        return made


def _rows_of_views(reader: Reader, plan: Plan) -> dict[int, int]:
    """The approximate number of rows of each view that a plan reads, by oid: the rows of the largest of its states."""
    core = reader.core
    found = {}
    for oid in plan.views:
        with suppress(SqlError):  # dropped meanwhile: reading the view will raise the error
            views = [core.view(below) for below in core.views_below((oid,))]
            found[oid] = max(map(_rows_of_states, views), default=0)
    return found


def _rows_of_states(view: ViewRuntime) -> int:
    return max((sum(table.num_rows for table in state.tables) for state in view.states.values()), default=0)


def _rows_of_files(reader: Reader, plan: Plan, parameters: tuple[Value, ...]) -> dict[int, int]:
    """The approximate number of rows in the files that a plan reads, by the foreign table's oid."""
    catalog = reader.core.catalog
    return {
        reading.scan.oid: file_tables.size(reader.files_of(reading, catalog, parameters), reading.scan.sources).rows
        for reading in plan.files
    }


def _obstacle(plan: Plan, transaction: Transaction) -> str | None:
    """The reason why a query must run whole, or None."""
    if plan.arriving:
        return "a stream is read as its rows arrive"
    if plan.histories:
        return "the history of a stream is read"
    if not (plan.tables or plan.views or plan.left or plan.files):
        return "no table, view or file is read"
    if transaction.write is not None:
        return "the transaction has changed tables"
    if transaction.repeatable and transaction.explicit:
        return "the transaction keeps its snapshot"
    return None


def _is_breaker(place: Place) -> bool:
    """Whether an engine finishes this relation before it continues, whatever the order of joins."""
    return place.breaker != "build"


def _is_worth_it(rows: Rows | None, place: Place) -> bool:
    """Breakers, and also subqueries and build sides of several tables in which many ``rows`` are looked up."""
    if place.breaker == "build" and place.probe is None:
        return sum(isinstance(node, Scan) for node in walk(place.relation)) > 1
    if place.probe is None or is_bare(place.relation):
        return _is_breaker(place)
    probed = _PROBED * _SMALLER if rows is None else rows(place.probe)
    kept = _PROBED if rows is None else rows(place.relation)
    return probed >= max(_PROBED, kept * _SMALLER)


def _is_worth_sharing(core: Core, relation: Relation) -> bool:
    """Whether keeping a relation's rows for all places of a plan is cheaper than computing them at each."""
    known = Cardinality(relation, all_statistics_of(relation, core.catalog, core.tables, {}))
    read = sum(known.rows(node) for node in walk(relation) if isinstance(node, Scan | Snapshot))
    return read >= _REPEATED and known.rows(relation) * _SMALLER <= read


def _efforts(plan: Pipelined, counts: Counts) -> tuple[float, ...]:
    """The pipelines' work in rows of tables that pass an operator; pipelines that read only results have little
    work."""
    return tuple(_effort(item, counts) for item in plan.pipelines)


def _effort(pipeline: Pipeline, counts: Counts) -> float:
    nodes = list(walk(pipeline.relation))
    read = sum(rows_of(counts, node) for node in nodes if isinstance(node, Scan | Snapshot))
    return 1.0 + read * (1 + sum(isinstance(node, BREAKERS) for node in nodes))

"""Which engine answers an ad hoc query: what was asked for, what Spark computes, and which of both takes less time.

Owns: ``choose`` and the ``Choice`` that it makes, which has what the choosing took: the query as Spark gets it
(statistics, order of joins, SQL) is made once, and explained, run or given up from there. A choice is of one moment and
is not kept. What an engine's time is estimated from is ``planner/placement``'s.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Literal

from msgspec import Struct

from catalog.catalog import Catalog
from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.core.plans import Plan
from executor.core.spark_queries import Analytics, SparkQuery
from executor.core.statistics import statistics_of
from executor.files import file_tables
from executor.files.followed_folders import OwnFiles
from executor.files.partition_pruning import FileReading
from planner.algebra.nodes import Value
from planner.placement import Cost, estimate, with_kernel

#: The files of a foreign table that a plan has to read, by a catalog and the parameters' values.
FilesOf = Callable[[FileReading, Catalog, tuple[Value, ...]], OwnFiles]


class Choice(Struct, frozen=True):
    """The engine that answers a query, and why; ``query`` is its form for Spark, where that is switched on."""

    engine: Literal["embedded", "spark"]
    reason: str
    query: SparkQuery | None = None

    @property
    def words(self) -> str:
        """For EXPLAIN."""
        return f"{self.engine} ({self.reason})"


_ARRIVING: Final = Choice("embedded", "a stream is read as its rows arrive")
_NOTHING_READ: Final = Choice("embedded", "no table, view or file is read")
_EMBEDDED: Final = Choice("embedded", "query_engine = embedded")
_NO_FILES: Final = Choice("embedded", "no files are read")


def choose(
    core: Core,
    analytics: Analytics,
    files_of: FilesOf,
    plan: Plan,
    parameters: tuple[Value, ...],
    query_engine: str,
    time_zone: str,
) -> Choice:
    """The engine for a query of a session that has these settings."""
    if plan.arriving:
        return _ARRIVING
    if not (plan.tables or plan.views or plan.files):
        return _NOTHING_READ
    if query_engine == "embedded":
        return _EMBEDDED
    for_spark = partial(_for_spark, core, analytics, plan, parameters, time_zone)
    if query_engine == "spark":
        return Choice("spark", "query_engine = spark", for_spark(_found(core, files_of, plan, parameters)))
    if not plan.files:
        return _NO_FILES
    return _suited(core, analytics, plan, _found(core, files_of, plan, parameters), for_spark)


def _suited(
    core: Core,
    analytics: Analytics,
    plan: Plan,
    found: Mapping[int, OwnFiles],
    for_spark: Callable[[Mapping[int, OwnFiles]], SparkQuery | None],
) -> Choice:
    """The engine for a query over files: the one that takes less time, if it may."""
    scans = (reading.scan for reading in plan.files if reading.scan.oid in found)
    sizes = {scan.oid: file_tables.size(found[scan.oid], scan.sources) for scan in scans}
    rows = {oid: size.rows for oid, size in sizes.items()}
    cost = estimate(plan.relation, sizes.values(), core.engine.power, analytics.power)
    if cost.embedded <= cost.spark:
        return Choice("embedded", _in_words(rows, cost))
    unready = analytics.unready()
    if unready is not None:
        return Choice("embedded", f"{_in_words(rows, cost)}, but {unready}")
    query = for_spark(found)
    assert query is not None, "it is ready"
    if isinstance(query.printed, str):
        return Choice("embedded", f"{_in_words(rows, cost)}, but {query.printed}")
    cost = with_kernel(cost, query.values_of_kernel(rows), analytics.power)
    return Choice("embedded" if cost.embedded <= cost.spark else "spark", _in_words(rows, cost), query)


def _in_words(rows: Mapping[int, int], cost: Cost) -> str:
    """What an engine was chosen by."""
    kernel = f", {cost.kernel:.2f} s of it in its Python workers" if cost.kernel else ""
    return (
        f"about {sum(rows.values())} rows of files: {cost.embedded:.2f} s embedded, {cost.spark:.2f} s on Spark{kernel}"
    )


def _found(core: Core, files_of: FilesOf, plan: Plan, parameters: tuple[Value, ...]) -> dict[int, OwnFiles]:
    """The files of each foreign table that a plan reads, by oid; of one that is not there nothing."""
    found: dict[int, OwnFiles] = {}
    for reading in plan.files:
        with contextlib.suppress(SqlError):
            found[reading.scan.oid] = files_of(reading, core.catalog, parameters)
    return found


def _for_spark(
    core: Core,
    analytics: Analytics,
    plan: Plan,
    parameters: tuple[Value, ...],
    time_zone: str,
    found: Mapping[int, OwnFiles],
) -> SparkQuery | None:
    """The query for Spark, its joins ordered by what is known of its inputs now."""
    statistics = statistics_of(plan.relation, core.catalog, core.tables, found)
    return analytics.query(plan.relation, parameters, statistics, time_zone)

"""What planning costs before an engine sees a statement: parse, bind, rewriting rules, and the engine's SQL.

In this process, without sockets: warm is a point query whose text differs only in its key, as simple clients send it;
cold is each query of TPC-H with all caches empty, but for PostgreSQL's catalogs, which a server reads once.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Final

from bench.harness import Rig, Row
from catalog.catalog import Catalog
from executor.embedded.printing.dialect import DuckPrinter
from executor.plans import PlanCache as Optimised
from planner.bind import Context, bind
from planner.definitions import CreateTable
from planner.parse import parse
from planner.statements import Query
from server.planning import PlanCache, Surroundings
from tests.rig.benchmarks import queries
from tests.rig.tpch import TABLES

TITLE = "Milliseconds of planning"
POINT: Final = "SELECT c_name, c_acctbal FROM customer WHERE c_custkey = {}"
POINTS: Final = 5000
#: Runs of each query, of which the median counts.
COLD: Final = 7
WARM_AIM: Final = 1.0
COLD_AIM: Final = 20.0


def run(rig: Rig) -> list[Row]:
    """The warm point query, and each query of TPC-H cold."""
    around = Surroundings(catalog(), ("public",), "UTC", "millstream", "millstream", "millstream")
    for path in queries("tpch"):
        plan_cold(path.read_text(), around)
    warm = warm_points(around)
    rows = [
        Row("point query, warm, p50", statistics.median(warm), "ms", aim=WARM_AIM, aim_text="1 ms", better="less"),
        Row("point query, warm, p99", statistics.quantiles(warm, n=100)[-1], "ms", better="less"),
    ]
    found = {path.stem: cold(path.read_text(), around) for path in queries("tpch")}
    slowest = max(found, key=lambda name: found[name])
    case = f"TPC-H cold, slowest ({slowest})"
    rows.append(Row(case, found[slowest], "ms", aim=COLD_AIM, aim_text="20 ms", better="less"))
    rows.append(Row("TPC-H cold, median query", statistics.median(found.values()), "ms", better="less"))
    return rows


def catalog() -> Catalog:
    """The tables of TPC-H."""
    found = Catalog()
    for name, columns in TABLES.items():
        (raw,) = parse(f"CREATE TABLE {name} ({columns})")
        statement = bind(raw, Context(found)).statement
        assert isinstance(statement, CreateTable)
        found = found.add(statement.table)
    return found


def plan_cold(text: str, around: Surroundings) -> str:
    """A text's way to the engine's SQL with nothing remembered."""
    cache = PlanCache()
    (raw,) = cache.parse(text)
    statement = cache.plan(raw, (), around).statement
    assert isinstance(statement, Query)
    return DuckPrinter().print_relation(Optimised().get(statement.relation).relation)


def cold(text: str, around: Surroundings) -> float:
    """The median of a query's planning."""
    return statistics.median(_milliseconds(lambda: plan_cold(text, around)) for _ in range(COLD))


def warm_points(around: Surroundings) -> list[float]:
    """Plans of point queries whose kind was seen before: what is left is finding the key in the text."""
    cache, optimised = PlanCache(), Optimised()

    def plan(key: int) -> None:
        shared = cache.shared(POINT.format(key), around, make=True)
        assert shared is not None
        statement = shared.plan.statement
        assert isinstance(statement, Query)
        optimised.get(statement.relation)

    plan(0)
    return [_milliseconds(lambda key=key: plan(key)) for key in range(1, POINTS)]  # type: ignore[misc]


def _milliseconds(work: Callable[[], object]) -> float:
    gc.collect(0)
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000

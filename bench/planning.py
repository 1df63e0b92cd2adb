"""What planning costs before an engine sees a statement: parse, bind, rewriting rules, and the engine's SQL.

In this process, without sockets: warm is a point query whose text differs only in its key, as simple clients send it;
cold is each query of TPC-H with all caches empty, but for PostgreSQL's catalogs, which a server reads once. Statements
never seen before are some hundred of different shapes over one small table (``bench.statements``), each planned once.
The same are asked of a server and of PostgreSQL, in turns, which tells what a client waits for.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from bench.client import Client
from bench.harness import Rig, Row, connect
from bench.statements import TABLE, distinct_statements
from catalog.catalog import Catalog
from executor.core.plans import PlanCache as Optimised
from executor.embedded.printing.dialect import DuckPrinter
from planner.bind import Context, bind
from planner.parse.parser import parse
from planner.statements.definitions import CreateTable
from planner.statements.statement import Query
from server.plans.planning import PlanCache, Surroundings
from tests.rig.benchmarks import queries
from tests.rig.tpch import TABLES

TITLE = "Milliseconds of planning (processor time)"
POINT: Final = "SELECT c_name, c_acctbal FROM customer WHERE c_custkey = {}"
POINTS: Final = 5000
#: Runs of each query, of which the median counts.
COLD: Final = 7
WARM_AIM: Final = 1.0
COLD_AIM: Final = 20.0
NEW: Final = 400
NEW_AIM: Final = 2.0


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
    new = new_statements()
    case = "statement never seen, p50"
    rows.append(Row(case, statistics.median(new), "ms", aim=NEW_AIM, aim_text="2 ms", better="less"))
    rows.append(Row("statement never seen, p90", statistics.quantiles(new, n=10)[-1], "ms", better="less"))
    ours, theirs = asked(rig)
    case = "statement never seen, as its client waits"
    rows.append(Row(case, ours, "ms", peer=theirs, peer_name="PostgreSQL", better="less"))
    return rows


def asked(rig: Rig) -> tuple[float, float]:
    """Milliseconds from sending a statement that was never seen until its last row, at the median: a server's, and
    PostgreSQL's."""
    with rig.millstream() as server, connect(server) as ours, connect(rig.postgres) as theirs:
        for client in (ours, theirs):
            client.query(TABLE)
            client.query(f"INSERT INTO t1 VALUES {', '.join(map(str, small_rows()))}")
            for text in distinct_statements(20, seed=2):
                client.query(text)
        found = [(_waited(ours, text), _waited(theirs, text)) for text in distinct_statements(NEW)]
        theirs.query("DROP TABLE t1")
    mine, others = zip(*found, strict=True)
    return statistics.median(mine), statistics.median(others)


def small_rows() -> list[tuple[int, ...]]:
    """Thirty rows of the small table, with the numbers that the statements compare with."""
    chance = random.Random(1)
    return [tuple(chance.randint(100, 300) for _ in range(5)) for _ in range(30)]


def catalog() -> Catalog:
    """The tables of TPC-H."""
    return catalog_of(f"CREATE TABLE {name} ({columns})" for name, columns in TABLES.items())


def catalog_of(definitions: Iterable[str]) -> Catalog:
    """Tables that are defined so."""
    found = Catalog()
    for text in definitions:
        (raw,) = parse(text)
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


def new_statements() -> list[float]:
    """Plans of statements of which no two have the same shape."""
    around = Surroundings(catalog_of([TABLE]), ("public",), "UTC", "millstream", "millstream", "millstream")
    for text in distinct_statements(20, seed=2):
        plan_cold(text, around)
    return [_milliseconds(partial(plan_new, text, around)) for text in distinct_statements(NEW)]


def plan_new(text: str, around: Surroundings) -> str:
    """A text's way to the engine's SQL as a session goes it, with nothing remembered of this one."""
    cache = PlanCache()
    shared = cache.shared(text, around, make=True)
    plan = cache.plan(cache.parse(text)[0], (), around) if shared is None else shared.plan
    assert isinstance(plan.statement, Query)
    return DuckPrinter().print_relation(Optimised().get(plan.statement.relation).relation)


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


def _waited(client: Client, text: str) -> float:
    start = time.perf_counter()
    client.query(text)
    return (time.perf_counter() - start) * 1000


def _milliseconds(work: Callable[[], object]) -> float:
    gc.collect(0)
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000

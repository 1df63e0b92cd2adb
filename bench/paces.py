"""Paces of nodes beside one pace for all of a view (InQP, section 5): TPC-H's queries as views over changing tables, in
a database within this process.

Of each relation that a query reads, some rows come and as many others go, in equal parts; the view is read after the
last one. For each constraint the paces are those that the planner chooses for nodes, the lowest pace for all nodes that
it expects to meet the constraint (the paper's IncObv), and the inverse of the constraint for all nodes (hand-tuned).
The measure is the processor time of the thread that follows: that of the read is the latency, and what all takes beside
one step for all rows is the additional time. The planner knows what the nodes have taken in passes before.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Final
from unittest.mock import patch

from msgspec import Struct
from msgspec.structs import replace

from bench.decisions import PATIENCE, loaded
from bench.harness import Rig, Row
from executor.database.database import Database
from executor.dataflow.waiting_changes import NEVER
from executor.embedded.detached_statements import thread_seconds
from executor.maintained import kept_rows
from executor.maintained.known_view import KnownView
from executor.maintained.view_pace import MARGIN
from planner.incremental.cost.flow_sizes import FlowSizes
from planner.incremental.cost.pace import PACES, PaceCosts, uniform_within, within_final
from planner.incremental.cost.usual_changes import mix_of
from tests.executor.client import Client, open_database
from tests.executor.random_paces import GivenPace
from tests.rig.benchmarks import queries
from tests.rig.tpch import TABLES

TITLE: Final = "Paces of nodes beside one pace for all nodes of a view"
#: By table, the column of which one value in so many is that of rows that come in a pass.
NEW: Final = {
    "lineitem": ("l_orderkey", 96),
    "orders": ("o_orderkey", 96),
    "partsupp": ("ps_partkey", 4),
    "part": ("p_partkey", 4),
    "customer": ("c_custkey", 4),
    "supplier": ("s_suppkey", 4),
    "nation": ("n_nationkey", 25),
    "region": ("r_regionkey", 5),
}
#: The place of the highest pace.
HIGHEST: Final = PACES.index(24)
#: The parts of the rows that come in a pass, of which each transaction has some.
PARTS: Final = 3_200
CONSTRAINTS: Final = (0.5, 0.3, 0.2)
#: The queries that the paper calls not fully incrementable (figure 5).
HARD: Final = frozenset(("q2", "q11", "q13", "q15", "q16", "q17", "q18", "q20", "q21", "q22"))


class Taken(Struct, frozen=True):
    """Milliseconds of a pass in all, and of the read at its end; as parts of those of one step for all rows, what the
    planner expected of the paces, if it chose them."""

    total: float
    final: float
    expected_total: float = 1.0
    expected_final: float = 0.0


def _next_steps(levels: Mapping[int, int], place: int, pace: int) -> dict[int, int]:
    """Which nodes go on with the next of so many steps as the highest pace has."""
    paces = {node: PACES[level] for node, level in levels.items()}
    return {node: 0 if place * own // pace > (place - 1) * own // pace else NEVER for node, own in paces.items()}


def run(rig: Rig) -> list[Row]:
    """All queries over one database, one view after the other."""
    found: dict[str, dict[tuple[str, float], Taken]] = {}
    with closing(open_database(rig.folder / "paces")) as database, patch.object(kept_rows, "FEW", NEVER):
        passes = _Passes(database, rig)
        for path in queries("tpch"):
            measured = passes.of(path.read_text().strip().rstrip(";"))
            if measured is not None:
                found[path.stem] = measured
                print(path.stem, _line(measured), flush=True)
    return [row for constraint in CONSTRAINTS for row in _rows(found, constraint)]


def _line(measured: Mapping[tuple[str, float], Taken]) -> str:
    batch = measured["batch", 1.0]
    parts = (
        f"{name} {constraint:g}: {item.final / batch.final:.2f} ({item.expected_final:.2f})"
        f" at {item.total / batch.total:.1f} ({item.expected_total:.1f})"
        for (name, constraint), item in measured.items()
        if name != "batch"
    )
    return f"{batch.total:.1f} ms; {'; '.join(parts)}"


def _rows(found: Mapping[str, Mapping[tuple[str, float], Taken]], constraint: float) -> Iterator[Row]:
    """Of the queries of which the planner expects that the constraint is met; in the paper those alone count."""
    some = {query: item for query, item in found.items() if item["nodes", constraint].expected_final <= constraint}
    case = f"final work {constraint:g}"
    yield Row(f"{case}: queries that are expected to meet it", len(some), f"of {len(found)}")
    if not some:
        return
    names = ("nodes", "one pace", "hand-tuned")
    for name in names:
        met = [item[name, constraint].final <= constraint * item["batch", 1.0].final for item in some.values()]
        aim = 90.0 if name == "nodes" else None
        yield Row(f"{case}, {name}: met", 100 * statistics.fmean(met), "%", aim=aim, aim_text="at least 90 %")
        parts = [item[name, constraint].final / item["batch", 1.0].final for item in some.values()]
        yield Row(
            f"{case}, {name}: final work by that of one step, median", statistics.median(parts), "", better="less"
        )
    for title, chosen in (("all", set(some)), ("hard ones", HARD & set(some))):
        nodes, one = (
            sum(some[query][name, constraint].total - some[query]["batch", 1.0].total for query in chosen)
            for name in ("nodes", "one pace")
        )
        yield Row(f"{case}, additional time of {title}", nodes, "ms", one, "one pace", better="less")


class _Passes:
    """TPC-H in a database, with the rows that come in a pass apart."""

    def __init__(self, database: Database, rig: Rig) -> None:
        self._database, self._client = database, Client(database)
        #: Which half of the rows that come and go is away.
        self._away = 0
        #: By table, how many rows come or go in a pass, and the statements that have some of a half come and go.
        self._new: dict[str, int] = {}
        self._insert: dict[str, str] = {}
        self._delete: dict[str, str] = {}
        for name, _ in loaded(database, self._client, rig):
            key, every = NEW[name]
            place = f"(row_number() OVER (ORDER BY {key}) - 1) * {2 * PARTS} / count(*) OVER ()"
            self._client.run(
                f"CREATE TABLE keys_{name} AS SELECT key, place / {PARTS} AS half, place % {PARTS} AS part FROM"
                f" (SELECT {key} AS key, {place} AS place FROM (SELECT DISTINCT {key} FROM {name}"
                f" WHERE {key} % {every} = 1) k) q"
            )
            self._client.run(f"CREATE TABLE new_{name} AS SELECT * FROM {name} WHERE {key} % {every} = 1")
            ((count,),) = self._client.values(f"SELECT count(*) FROM new_{name}")
            self._new[name] = int(count)
            some = f"{key} IN (SELECT key FROM keys_{name} WHERE half = %d AND part >= %d AND part < %d)"
            self._insert[name] = f"INSERT INTO {name} SELECT * FROM new_{name} WHERE {some}"
            self._delete[name] = f"DELETE FROM {name} WHERE {some}"
            self._client.run(self._delete[name] % (0, 0, PARTS))

    def of(self, query: str) -> dict[tuple[str, float], Taken] | None:
        """What passes have taken with a view of a query, by the name of the paces and the constraint."""
        read = [table for table in TABLES if re.search(rf"\b{table}\b", query)]
        horizon = sum(self._new[table] for table in read)
        self._client.run(
            f"CREATE MATERIALIZED VIEW paced WITH (method = 'incremental', trigger = 'on read') AS {query}"
        )
        known = self._wait()
        if known is None:
            self._client.run("DROP MATERIALIZED VIEW paced")
            return None
        for pace in (1, 1, 3, 8, 24):
            self._pass(known, read, pace)
        found = {("batch", 1.0): self._pass(known, read, 1)}
        for constraint in CONSTRAINTS:
            costs = self._costs(known, horizon)
            batch = costs.batch
            most = MARGIN * constraint * batch.final
            for name, paces in {"nodes": within_final(costs, most), "one pace": uniform_within(costs, most)}.items():
                taken = self._pass(known, read, PACES[max(paces.levels.values())], paces.levels)
                expected = paces.total / batch.total, paces.final / batch.final
                found[name, constraint] = replace(taken, expected_total=expected[0], expected_final=expected[1])
            found["hand-tuned", constraint] = self._pass(known, read, round(1 / constraint))
        if self._away:
            self._pass(known, read, 1)
        self._client.run("DROP MATERIALIZED VIEW paced")
        return found

    def _costs(self, known: KnownView, horizon: int) -> PaceCosts:
        assert known.flow is not None
        assert known.kept is not None
        statistics_of = self._database.maintained.statistics(known.flow)
        sizes = FlowSizes(known.flow, statistics_of, known.kept.counts)
        return PaceCosts(sizes, mix_of(known.flow, known.kept.work), known.kept.work, horizon, HIGHEST)

    def _pass(self, known: KnownView, read: list[str], pace: int, levels: Mapping[int, int] | None = None) -> Taken:
        """Half of the rows come and the others go, in so many transactions. Nodes go on by their ``levels``, all each
        time without."""
        known.pace = fixed = GivenPace({})
        maintained, oid, total, final = self._database.maintained, known.runtime.view.oid, 0.0, 0.0
        for place in range(1, pace + 1):
            part = PARTS * (place - 1) // pace, PARTS * place // pace
            changes = [self._insert[table] % (self._away, *part) for table in read]
            changes += [self._delete[table] % (1 - self._away, *part) for table in read]
            self._client.run(f"BEGIN; {'; '.join(changes)}; COMMIT")
            fixed.given = _next_steps(levels or {}, place, pace)
            started = thread_seconds()
            assert maintained.follow(oid, is_whole=levels is None or place == pace) is not None
            final = thread_seconds() - started
            total += final
        self._away = 1 - self._away
        return Taken(1000 * total, 1000 * final)

    def _wait(self) -> KnownView | None:
        """The view once its rows are kept; None where it has no dataflow."""
        end, maintained = time.monotonic() + PATIENCE, self._database.maintained
        self._client.run("SELECT count(*) FROM paced")
        (known,) = (item for item in maintained._known.values() if item.runtime.view.name == "paced")
        while known.kept is None:
            with known.runtime.lock:
                maintained.facts(known.runtime)
            if known.flow is None:
                return None
            assert time.monotonic() < end, "rows are not kept"
            time.sleep(0.02)
        return known

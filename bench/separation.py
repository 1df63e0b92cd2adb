"""Queries of TPC-H pipeline by pipeline beside whole, and what it takes to leave after a pipeline and to go on.

The three settings of ``separable`` take turns, each query once before under the same; their figure is the geometric
mean over all queries of a setting's time by that of ``off``, by the fastest of the runs. A query leaves after its first
pipeline, in this process, so that the moment is the same each time. ``--scale`` sets the scale factor.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.client import Client
from bench.harness import ROOT, Rig, Row, connect, load
from catalog.errors import SqlError
from executor.database import Database
from executor.options import Options
from executor.separation import service
from executor.separation.running import RunningQuery
from tests.executor.client import Client as Session
from tests.rig.tpch import TABLES

TITLE: Final = "TPC-H pipeline by pipeline, and out of the server after the first one"
QUERIES: Final = sorted((ROOT / "tests" / "sql" / "tpch").glob("q*.sql"), key=lambda path: int(path.stem[1:]))
SETTINGS: Final = {"on": 1.08, "auto": 1.02}
#: Queries whose leaving is measured: groups of groups, a WITH query that is read twice, many groups.
LEAVING: Final = ("q11", "q13", "q15", "q16", "q18", "q22")


def run(rig: Rig) -> list[Row]:
    """Both parts over the same data folder."""
    with rig.millstream(spark_enabled=False, result_cache_bytes=0) as server:
        with connect(server) as client:
            load(client, rig, tuple(TABLES))
            rows = _settings(rig, client)
        server.kill9()
        return [*rows, *_leaving(server.data)]


def _settings(rig: Rig, client: Client) -> list[Row]:
    logs: dict[str, list[float]] = {name: [] for name in SETTINGS}
    for path in QUERIES:
        best = _best(rig, client, path.read_text())
        for name in SETTINGS:
            logs[name].append(math.log(best[name] / best["off"]))
    return [
        Row(f"separable = {name}, {len(QUERIES)} queries", math.exp(sum(found) / len(found)), "x the time of off",
            aim=SETTINGS[name], aim_text=f"{SETTINGS[name]}", better="less")
        for name, found in logs.items()
    ]  # fmt: skip


def _best(rig: Rig, client: Client, text: str) -> dict[str, float]:
    """The fastest run under each setting."""
    runs: dict[str, list[float]] = {"off": [], **{name: [] for name in SETTINGS}}
    for _ in range(rig.rounds):
        for name, found in runs.items():
            client.query(f"SET separable = {name}")
            client.query(text)  # what the setting before has made the engine forget is its, not this one's
            started = time.perf_counter()
            client.query(text)
            found.append(time.perf_counter() - started)
    return {name: min(found) for name, found in runs.items()}


def _leaving(data: Path) -> list[Row]:
    """For each query: the size of what leaves, and the seconds of a run, of leaving and of going on."""
    rows: list[Row] = []
    database = Database(Options(data, spark_enabled=False))
    try:
        assert database.engine.power, "an instance for what goes on is there, as in a server that runs"
        session = Session(database)
        session.session.reader.separable = "on"
        for name in LEAVING:
            text = (ROOT / "tests" / "sql" / "tpch" / f"{name}.sql").read_text()
            rows += _left(database, session, name, text)
    finally:
        database.close()
    return rows


def _left(database: Database, session: Session, name: str, text: str) -> list[Row]:
    session.run(text)
    whole, _ = _timed(session, text)
    with _asked():
        leaving, query_id = _timed(session, text)
    assert query_id is not None
    size = database.separation.stored.get(query_id).size
    rest, _ = _timed(session, f"SELECT * FROM millstream.resume('{query_id}')")
    database.separation.forget(session.session.reader.client(), query_id)
    return [
        Row(f"{name}: what leaves", size / 1e6, "MB"),
        Row(f"{name}: up to there, and out", leaving, "s", whole, "s the query", better="less"),
        Row(f"{name}: the rest elsewhere", rest, "s", whole, "s the query", better="less"),
    ]


def _timed(session: Session, text: str) -> tuple[float, str | None]:
    """Seconds of a statement, and the id of the query where it was suspended."""
    started = time.perf_counter()
    try:
        session.run(text)
    except SqlError as error:
        assert error.hint is not None, error
        return time.perf_counter() - started, error.hint.split("'")[1]
    return time.perf_counter() - started, None


@contextmanager
def _asked() -> Iterator[None]:
    """Queries are asked to leave after their first pipeline."""

    class Query(RunningQuery):
        def advance(self, rows: int, size: int) -> None:
            super().advance(rows, size)
            if self.finished == 1:
                self.ask("suspend")

    service.RunningQuery = Query  # type: ignore[misc]
    try:
        yield
    finally:
        service.RunningQuery = RunningQuery  # type: ignore[misc]

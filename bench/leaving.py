"""Queries that leave after each of their pipelines and go on elsewhere: the thesis' section 6.4 on one machine.

Each query runs once on a server with one thread and gives a copy of its state after every pipeline, which a server with
twice the threads goes on from; a restart there is the query as a whole. Sizes are those of files. ``state`` is what
finished pipelines have left; what the rest reads of tables goes with it here, while the thesis' servers share them.
Plans are cut as ``separable = on`` cuts long ones, and run in no slices. Marks are held against queries of more than a
second on the first server; the others stand beside them.
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from bench.harness import Rig, Row
from executor.database import Database
from executor.options import Options
from executor.separation import choosing, service, slicing
from executor.separation.artifact import SeparatedQueries, SeparatedQuery
from executor.separation.running import Request, RunningQuery
from tests.executor.client import Client
from tests.rig import tpcds, tpch
from tests.rig.benchmarks import Suite, queries
from tests.sql.leaving import load

TITLE: Final = "Queries that leave after each pipeline, and go on at a server of twice the threads"
LONG: Final = 1.0
SMALL: Final = 50e6
#: Of TPC-DS one query of so many.
_SAMPLE: Final = 4


@dataclass(slots=True)
class Stop:
    """A query after one of its pipelines: seconds of leaving and of the rest, bytes of its state and of all."""

    progress: float
    state: int
    size: int
    out: float
    copy: Path
    rest: float = 0.0


@dataclass(slots=True)
class Run:
    """A query: its seconds as a whole on both servers, and its stops."""

    name: str
    text: str
    whole: float = 0.0
    restart: float = 0.0
    stops: list[Stop] = field(default_factory=list)


def run(rig: Rig) -> list[Row]:
    """TPC-H at two scales, each pipeline of the greater one, and a part of TPC-DS."""
    small, great = min(0.1, rig.scale / 10), rig.scale
    ds = tpcds.Tpcds(Path(os.environ.get("MILLSTREAM_TPCDS", rig.folder / "tpcds")))
    rows: list[Row] = []
    for scale in (small, great):
        runs = _measured(rig, "tpch", tpch.TABLES, lambda name, at=scale: rig.tpch.csv(at, name))  # type: ignore[misc]
        rows += _rows(f"TPC-H {scale:g}", runs)
    rows += [_row(item, stop) for item in runs for stop in item.stops]
    sample = _measured(rig, "tpcds", tpcds.TABLES, lambda name: ds.csv(small, name), _SAMPLE)
    return [*rows, *_rows(f"TPC-DS {small:g}", sample)]


def _measured(rig: Rig, suite: Suite, tables: dict[str, str], csv: Callable[[str], Path], step: int = 1) -> list[Run]:
    folder = rig.folder / "leaving"
    runs = [Run(path.stem, path.read_text()) for path in queries(suite)[::step]]
    try:
        with _server(folder, 1) as (database, client):
            load(database, tables, csv)
            for item in runs:
                _leave(database, client, item, folder / "copies" / item.name)
        with _server(folder, 2) as (database, client):
            for item in runs:
                _go_on(database, client, item)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return runs


@contextmanager
def _server(folder: Path, threads: int) -> Iterator[tuple[Database, Client]]:
    """A database over one folder, cut wherever a long query would be."""
    database = Database.open(Options(folder / "data", spark_enabled=False, embedded_threads=threads))
    try:
        with patch.object(choosing, "LONG", 0.0), patch.object(slicing, "SLICE", 1e9):
            yield database, Client(database)
    finally:
        database.close()


def _timed(client: Client, text: str, separable: str) -> float:
    client.session.reader.separable = separable
    started = time.perf_counter()
    client.run(text)
    return time.perf_counter() - started


def _leave(database: Database, client: Client, item: Run, copies: Path) -> None:
    """Runs a query as a whole, and in steps with a copy of its state after each."""
    _timed(client, item.text, "off")
    item.whole = _timed(client, item.text, "off")
    _timed(client, item.text, "on")
    requests: list[Request] = []
    found: list[tuple[SeparatedQuery, int, Path]] = []
    write = SeparatedQueries.write
    names: tuple[str, ...] = ()

    class Query(RunningQuery):
        def advance(self, rows: int, size: int) -> None:
            nonlocal names
            names = self.names
            super().advance(rows, size)
            requests.append(self.ask("checkpoint", by_cost=False))

    def written(self: SeparatedQueries, query_id: str, *rest: Any, **about: Any) -> None:
        write(self, query_id, *rest, **about)
        query = self.get(query_id)
        copy = copies / str(query.number) / query_id
        shutil.copytree(_folder(database) / query_id, copy, copy_function=os.link)
        found.append((query, sum(run.file.size for name, run in query.runs.items() if name in names), copy))

    with patch.object(service, "RunningQuery", Query), patch.object(SeparatedQueries, "write", written):
        _timed(client, item.text, "on")
    for (query, state, copy), request in zip(found, requests, strict=True):
        out = request.ended - request.begun
        item.stops.append(Stop(query.finished / query.pipelines, state, query.size, out, copy))


def _go_on(database: Database, client: Client, item: Run) -> None:
    """The same query as a whole, and from each of its states."""
    _timed(client, item.text, "off")
    item.restart = _timed(client, item.text, "off")
    for stop in item.stops:
        query_id = stop.copy.name
        shutil.copytree(stop.copy, _folder(database) / query_id, copy_function=os.link)
        stop.rest = _timed(client, f"SELECT * FROM millstream.resume('{query_id}')", "on")
        database.separation.stored.delete(query_id)


def _folder(database: Database) -> Path:
    return database.options.shared_directory / service.FOLDER


# -- figures -----------------------------------------------------------------------------------------------------------


def _rows(suite: str, runs: Sequence[Run]) -> list[Row]:
    stops = [(item, stop) for item in runs for stop in item.stops]
    if not stops:
        return []
    return [
        Row(f"{suite}: queries with several pipelines", sum(bool(item.stops) for item in runs), f"of {len(runs)}"),
        *_sizes(suite, runs, [stop for _, stop in stops]),
        *_costs(f"{suite}, over {LONG:g} s", [(item, stop) for item, stop in stops if item.whole >= LONG], True),
        *_costs(f"{suite}, shorter", [(item, stop) for item, stop in stops if item.whole < LONG], False),
    ]


def _sizes(suite: str, runs: Sequence[Run], stops: Sequence[Stop]) -> list[Row]:
    """Distributions as in figures 6.3 to 6.6 and 6.14; a state's size beside its query's largest by progress."""
    states = sorted(stop.state / 1e6 for stop in stops)
    rows = [
        Row(f"{suite}: state, {name}", states[min(len(states) - 1, int(share * len(states)))], "MB")
        for name, share in (("median", 0.5), ("p90", 0.9), ("largest", 1.0))
    ]
    rows.append(Row(f"{suite}: with what is left of tables, median", _median(stop.size / 1e6 for stop in stops), "MB"))
    largest = {id(stop): max(other.state for other in item.stops) for item in runs for stop in item.stops}
    for name, low, high in (("to 40 %", 0.0, 0.4), ("40 to 70 %", 0.4, 0.7), ("from 70 %", 0.7, 1.0)):
        shares = [stop.state / max(1, largest[id(stop)]) for stop in stops if low < stop.progress <= high]
        if shares:
            rows.append(Row(f"{suite}: state beside the query's largest, {name}", 100 * statistics.mean(shares), "%"))
    totals = [sum(stop.state for stop in item.stops) / 1e6 for item in runs if item.stops]
    one, full = statistics.mean(states), statistics.mean(totals)
    return [
        *rows,
        Row(
            f"{suite}: one state beside one after every pipeline",
            one,
            "MB",
            full,
            "MB all",
            5.0,
            "5 times less",
            "less",
        ),
    ]


def _costs(suite: str, stops: Sequence[tuple[Run, Stop]], is_marked: bool) -> list[Row]:
    """Leaving as a share of the query's time, and leaving and going on beside a restart; nothing of no query."""
    rows: list[Row] = []
    small = [(item, stop) for item, stop in stops if stop.size < SMALL]
    for name, chosen, most in (("", stops, 11), (f" below {SMALL / 1e6:g} MB", small, 2)):
        if chosen:
            share = 100 * statistics.mean(stop.out / item.whole for item, stop in chosen)
            aim, text = (float(most), f"under {most} %") if is_marked else (None, "")
            rows.append(Row(f"{suite}: leaving{name}", share, "% of the query", aim=aim, aim_text=text, better="less"))
    late = [(item, stop) for item, stop in stops if stop.progress >= 0.3]
    if late:
        moved = statistics.mean(stop.out + stop.rest for _, stop in late)
        restarted = statistics.mean(item.restart for item, _ in late)
        aim, text = (1.0, "faster") if is_marked else (None, "")
        case = f"{suite}: leaving and going on, from 30 %"
        rows.append(Row(case, moved, "s", restarted, "a restart", aim, text, "less"))
    return rows


def _median(values: Iterator[float]) -> float:
    return statistics.median(list(values))


def _row(item: Run, stop: Stop) -> Row:
    """One state."""
    about = f"state {stop.state / 1e6:.2f} MB of {stop.size / 1e6:.2f}, out {stop.out:.3f} s"
    case = f"{item.name} at {100 * stop.progress:.0f} %: {about}"
    return Row(case, stop.out + stop.rest, "s", item.restart, "a restart", better="less")

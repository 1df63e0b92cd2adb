"""Queries that leave after each of their pipelines and go on elsewhere: the thesis' section 6.4 on one machine.

Each query runs once on a server with one thread and gives a copy of its state after every pipeline, which a server with
twice the threads goes on from; a restart there is the query as a whole, and has to have the same rows (doubles to nine
digits). From TPC-H's states Spark goes on, too. Sizes are those of files. ``state`` is what finished pipelines have
left; what the rest reads of tables goes with it, while the thesis' servers share them: as they do here over Parquet
files below ``shared_files``, at ten times the scale, where queries take seconds. Plans are cut as ``separable = on``
cuts long ones, and run in no slices. Marks are held against queries of more than a second on the first server; the
others stand beside them. ``as decided``: a query is asked to leave after its first pipeline, and goes by the way that
costs least, which may be to wait.

Full separation is the sum of all of a query's states, in the mean over queries. The thesis compares it with two figures
(TPC-DS at scale 100, 103 queries): the mean of all states, which is a tenth (2.6 GB and 265 MB, section 6.2.1), and the
mean state at the progress where that is largest, by tenths, which is a fifth (503 MB, section 6.4.3 with figure 6.14).
The mark is the second, held at a scale at which the tables that have a fixed size, as one of 1.9 million customers'
demographics, are not most of what queries keep. Umbra ends a pipeline at each build side of a join, at groupings,
windows, set operations and sorts; the mark is held against plans that are cut at the first four (``_every_place``: also
where a build side is one bare table, by the join order of our estimates; a last sort or grouping, from which only the
result is read, is no state of ours). A server's own plans, of a few long pipelines, stand beside them: they have few
states to sum.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from msgspec import Struct, field
from msgspec.structs import replace

from bench.harness import Rig, Row
from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.options import Options
from executor.separation import service, slices, steps
from executor.separation.query_artifact import SeparatedQueries, SeparatedQuery
from executor.separation.running_queries import Request, RunningQuery
from planner.separation.cuts import Place, Rows
from tests.executor.client import Client
from tests.rig import tpcds, tpch
from tests.rig.benchmarks import Suite, queries
from tests.rig.process import wait_until
from tests.rig.server import java_is_there
from tests.sql.leaving import load

TITLE: Final = "Queries that leave after each pipeline, and go on at a server of twice the threads"
LONG: Final = 1.0
SMALL: Final = 50e6
#: Times the scale of tables of which there are files, and into how many each is cut.
_FILES: Final = 10
_PARTS: Final = 8


class Stop(Struct):
    """A query after one of its pipelines: seconds of leaving and of the rest, bytes of its state and of all."""

    progress: float
    state: int
    size: int
    out: float
    copy: Path
    rest: float = 0.0
    #: Whether the continued query had the rows of the whole query, by engine; an engine that does not compute it is
    #: absent.
    equal: dict[str, bool] = field(default_factory=dict)


class Run(Struct):
    """A query: its seconds as a whole on both servers, and its stops."""

    name: str
    text: str
    whole: float = 0.0
    restart: float = 0.0
    stops: list[Stop] = field(default_factory=list)
    decided: Stop | None = None
    way: str = ""  # by which it left then


class Case(Struct, frozen=True):
    """Queries of a suite over the tables that ``load`` makes; whether every build side ends a pipeline."""

    suite: Suite
    load: Callable[[Database], None]
    shared: str = ""
    every: bool = False
    on_spark: bool = False


def run(rig: Rig) -> list[Row]:
    """TPC-H at two scales, each pipeline of the greater one, and TPC-DS."""
    small, great = min(0.1, rig.scale / 10), rig.scale
    rows: list[Row] = []
    for scale in (small, great):
        create = partial(load, tables=tpch.TABLES, csv=partial(rig.tpch.csv, scale))
        runs = _measured(rig, Case("tpch", create, on_spark=True))
        rows += _rows(f"TPC-H {scale:g}", runs)
    rows += [row for item in runs for row in _each(item)]
    files = _measured(rig, _files(rig, scale := _FILES * great))
    rows += [*_rows(f"TPC-H {scale:g} in shared files", files), *(row for item in files for row in _each(item))]
    runs = _measured(rig, _tpcds(rig, small))
    rows += [*_rows(f"TPC-DS {small:g}", runs), *(_briefly(item) for item in runs if item.stops)]
    every = _states(rig, replace(_tpcds(rig, great), every=True))
    return [*rows, *_full(f"TPC-DS {great:g}, each build side a pipeline", every, is_marked=True)]


def _tpcds(rig: Rig, scale: float) -> Case:
    data = tpcds.Tpcds(Path(os.environ.get("MILLSTREAM_TPCDS", rig.folder / "tpcds")))
    return Case("tpcds", partial(load, tables=tpcds.TABLES, csv=partial(data.csv, scale)))


def _files(rig: Rig, scale: float) -> Case:
    """TPC-H in Parquet files, which both servers read."""
    paths = {name: rig.tpch.parts(scale, name, _PARTS, "parquet")[0].parent for name in tpch.TABLES}

    def create(database: Database) -> None:
        for name, path in paths.items():
            columns = re.sub(r" NOT NULL| PRIMARY KEY|, PRIMARY KEY .*", "", tpch.TABLES[name])
            columns = columns.replace("key integer", "key bigint")
            Client(database).run(f"CREATE FOREIGN TABLE {name} ({columns}) SERVER files OPTIONS (path '{path}')")

    return Case("tpch", create, shared=str(paths["lineitem"].parent))


def _measured(rig: Rig, case: Case) -> list[Run]:
    folder = rig.folder / "leaving"
    runs = [Run(path.stem, path.read_text()) for path in queries(case.suite)]
    try:
        with _server(folder, 1, case) as (database, client):
            case.load(database)
            for item in runs:
                _leave(database, client, item, folder / "copies" / item.name)
                if item.stops:
                    _leave_as_decided(database, client, item, folder / "copies" / item.name / "decided")
        with _server(folder, 2, case) as (database, client):
            for item in runs:
                _go_on(database, client, item)
        if case.on_spark and java_is_there():
            with _server(folder, 2, case, spark_enabled=True) as (database, client):
                wait_until(lambda: database.analytics.unready() is None, 120, "Spark")
                for item in runs:
                    _go_on_with_spark(database, client, item)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return runs


def _states(rig: Rig, case: Case) -> list[Run]:
    """Queries with their states alone."""
    folder = rig.folder / "states"
    runs = [Run(path.stem, path.read_text()) for path in queries(case.suite)]
    try:
        with _server(folder, 1, case) as (database, client):
            case.load(database)
            for item in runs:
                _leave(database, client, item, folder / "copies")
                shutil.rmtree(folder / "copies", ignore_errors=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return runs


@contextmanager
def _server(folder: Path, threads: int, case: Case, spark_enabled: bool = False) -> Iterator[tuple[Database, Client]]:
    """A database over one folder, cut wherever a long query would be."""
    options = Options(
        folder / "data",
        spark_enabled=spark_enabled,
        embedded_threads=threads,
        shared_files=case.shared,
    )
    database = Database.open(options)
    worth = _every_place if case.every else steps._is_worth_it
    try:
        with (
            patch.object(steps, "LONG", 0.0),
            patch.object(slices, "SLICE", 1e9),
            patch.object(steps, "_is_worth_it", worth),
        ):
            yield database, Client(database)
    finally:
        database.close()


def _every_place(rows: Rows | None, place: Place) -> bool:
    """Whatever an engine materialises is a state, as in the thesis."""
    return True


def _timed(client: Client, text: str, separable: str) -> tuple[float, list[Any]]:
    """Seconds, and the rows, comparable."""
    client.session.reader.separable = separable
    started = time.perf_counter()
    rows = client.run(text)
    seconds = time.perf_counter() - started
    return seconds, sorted(tuple(map(_rounded, row)) for row in rows)


def _rounded(value: object) -> str:
    """A value to compare: the sum of doubles depends on their order in its last digits."""
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _leave(database: Database, client: Client, item: Run, copies: Path) -> None:
    """Runs a query as a whole, and in steps with a copy of its state after each."""
    _timed(client, item.text, "off")
    item.whole, _ = _timed(client, item.text, "off")
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


def _leave_as_decided(database: Database, client: Client, item: Run, copies: Path) -> None:
    """The query is asked to leave after its first pipeline; seconds are those from then on."""
    requests: list[Request] = []

    class Query(RunningQuery):
        def advance(self, rows: int, size: int) -> None:
            super().advance(rows, size)
            if not requests:
                requests.append(self.ask("suspend"))

    with patch.object(service, "RunningQuery", Query), suppress(SqlError):
        _timed(client, item.text, "on")
    (request,) = requests
    out = request.ended - request.begun
    item.way, item.decided = "wait for the end", Stop(0.0, 0, 0, out, copies)
    if request.done:
        (query,) = database.separation.stored.all()
        shutil.copytree(_folder(database) / query.id, copies / query.id)
        database.separation.stored.delete(query.id)
        item.way, item.decided = request.words, Stop(0.0, 0, query.size, out, copies / query.id)


def _go_on(database: Database, client: Client, item: Run) -> None:
    """Runs a query as a whole, and from each of its states."""
    _timed(client, item.text, "off")
    item.restart, wanted = _timed(client, item.text, "off")
    left = [] if item.decided is None or item.way == "wait for the end" else [item.decided]
    for stop in (*item.stops, *left):
        with _arrived(database, stop) as rest:
            stop.rest, found = _timed(client, rest, "on")
            stop.equal["embedded"] = found == wanted


def _go_on_with_spark(database: Database, client: Client, item: Run) -> None:
    """From each of a query's states, on the other engine, where that computes it."""
    _, wanted = _timed(client, item.text, "off")
    for stop in item.stops:
        client.session.query_engine = "spark"
        try:
            with _arrived(database, stop) as rest:
                stop.equal["spark"] = _timed(client, rest, "on")[1] == wanted
        except SqlError as error:
            if error.sqlstate != "0A000":
                raise
        finally:
            client.session.query_engine = "auto"


@contextmanager
def _arrived(database: Database, stop: Stop) -> Iterator[str]:
    """A copy of a state is where queries go on; the text of the rest."""
    query_id = stop.copy.name
    shutil.copytree(stop.copy, _folder(database) / query_id, copy_function=os.link)
    try:
        yield f"SELECT * FROM millstream.resume('{query_id}')"
    finally:
        database.separation.stored.delete(query_id)


def _folder(database: Database) -> Path:
    return database.core.options.shared_directory / service.FOLDER


# -- figures -----------------------------------------------------------------------------------------------------------


def _rows(suite: str, runs: Sequence[Run]) -> list[Row]:
    stops = [(item, stop) for item in runs for stop in item.stops]
    if not stops:
        return []
    chosen = [item for item in runs if item.decided is not None]
    decided = statistics.mean(item.decided.out + item.decided.rest for item in chosen if item.decided is not None)
    restarts = statistics.mean(item.restart for item in chosen)
    long = [item for item in runs if item.whole >= 2 * LONG]
    case = f"{suite}: as decided after the first pipeline, beside a restart"
    return [
        Row(f"{suite}: queries with several pipelines", sum(bool(item.stops) for item in runs), f"of {len(runs)}"),
        Row(f"{suite}: those of them over 2 s", sum(bool(item.stops) for item in long), f"of {len(long)}"),
        *_equal(suite, [stop for _, stop in stops]),
        Row(case, decided, "s", restarts, "a restart", better="less"),
        *_sizes(suite, runs, [stop for _, stop in stops]),
        *_costs(f"{suite}, over {LONG:g} s", [(item, stop) for item, stop in stops if item.whole >= LONG], True),
        *_costs(f"{suite}, shorter", [(item, stop) for item, stop in stops if item.whole < LONG], False),
    ]


def _equal(suite: str, stops: Sequence[Stop]) -> Iterator[Row]:
    """The number of states from which the rows equal those of the whole query, by engine."""
    for engine in ("embedded", "spark"):
        found = [stop.equal[engine] for stop in stops if engine in stop.equal]
        if found:
            case = f"{suite}: equal rows from a state, {engine}"
            aim = float(len(found))
            yield Row(case, sum(found), f"of {len(found)}", aim=aim, aim_text="all", better="more")


def _sizes(suite: str, runs: Sequence[Run], stops: Sequence[Stop]) -> list[Row]:
    """Distributions as in figures 6.3 to 6.6; a state's size beside its query's largest by progress."""
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
    return [*rows, *_full(suite, runs)]


def _full(suite: str, runs: Sequence[Run], is_marked: bool = False) -> Iterator[Row]:
    """One state, the mean of all and where it is largest by tenths of progress, beside the sum of a query's, in the
    mean."""
    by_progress: dict[int, list[float]] = {}
    for item in runs:
        for stop in item.stops:
            by_progress.setdefault(round(10 * stop.progress), []).append(stop.state / 1e6)
    full = statistics.mean(sum(stop.state for stop in item.stops) / 1e6 for item in runs if item.stops)
    one = statistics.mean(state for states in by_progress.values() for state in states)
    yield Row(f"{suite}: one state beside one after every pipeline", one, "MB", full, "MB all", better="less")
    most = max(by_progress, key=lambda progress: statistics.mean(by_progress[progress]))
    case = f"{suite}: one at {10 * most} %, where they are largest, beside all"
    aim, text = (5.0, "5 times less") if is_marked else (None, "")
    yield Row(case, statistics.mean(by_progress[most]), "MB", full, "MB all", aim, text, "less")


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


def _each(item: Run) -> Iterator[Row]:
    """A query's states, and how it goes where it may choose."""
    for stop in item.stops:
        about = f"state {stop.state / 1e6:.2f} MB of {stop.size / 1e6:.2f}, {_out_and_on([stop], item)}"
        case = f"{item.name} at {100 * stop.progress:.0f} %: {about}"
        yield Row(case, stop.out + stop.rest, "s", item.restart, "a restart", better="less")
    if item.decided is not None:
        case = f"{item.name} as decided after its first pipeline: {item.way}, {item.decided.size / 1e6:.2f} MB"
        yield Row(case, item.decided.out + item.decided.rest, "s", item.restart, "a restart", better="less")


def _briefly(item: Run) -> Row:
    """The mean of a query's states."""
    states = [stop.state / 1e6 for stop in item.stops]
    about = f"{len(states)} states of {statistics.mean(states):.2f} MB, the largest {max(states):.2f}"
    moved = statistics.mean(stop.out + stop.rest for stop in item.stops)
    case = f"TPC-DS {item.name}: {about}; {_out_and_on(item.stops, item)}"
    return Row(case, moved, "s", item.restart, "a restart", better="less")


def _out_and_on(stops: Sequence[Stop], item: Run) -> str:
    """Seconds of leaving, these as a share of the query's time, and of going on, in the mean."""
    out, on = statistics.mean(stop.out for stop in stops), statistics.mean(stop.rest for stop in stops)
    return f"out {out:.3f} s ({100 * out / item.whole:.1f} %), on {on:.3f} s"

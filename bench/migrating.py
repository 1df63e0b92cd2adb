"""A continuous view that migrates between servers, and between engines, while rows come: writers' pauses, and reads.

The second half is one server's, since each of several with Spark would be two more processes on the same cores: Spark
maintains the view, then the embedded engine, and so on, each until a job of its own has ended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import psycopg

from bench.client import Client
from bench.harness import Rig, Row, connect
from tests.rig.process import wait_until
from tests.rig.server import Millstream, java_is_there

TITLE = "A view migrates between two servers under 100,000 rows/s of COPY"

#: Groups of the view, rows of a COPY, and seconds from one to the next.
GROUPS: Final = 250_000
ROWS: Final = 1000
STEP: Final = ROWS / 100_000
#: Reads between two migrations, and seconds from one to the next.
READS: Final = 3
PAUSE: Final = 0.2
_VIEW: Final = "CREATE VIEW v AS SELECT k, count(*) AS c, sum(n) AS n, min(t) AS t FROM s GROUP BY k"


class _Writer:
    """COPYs at a fixed rate; a COPY's time counts from when it was due, so that a pause is seen by all behind it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(1)
        self.rows = 0
        self.times: list[float] = []

    def __enter__(self) -> _Writer:
        self._work = self._pool.submit(self._run)
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._pool.shutdown()
        self._work.result()  # a writer that failed has measured nothing

    def _run(self) -> None:
        due = time.perf_counter()
        while not self._stop.is_set():
            text = "".join(f"{n * 7919 % GROUPS}\t{n}\ttext {n % 97}\n" for n in range(self.rows, self.rows + ROWS))
            time.sleep(max(0.0, due - time.perf_counter()))
            self._client.copy("COPY s FROM STDIN", text.encode())
            self.rows += ROWS
            self.times.append((time.perf_counter() - due) * 1000)
            due += STEP


#: Milliseconds of moves, and of the reads behind them.
_Times = tuple[list[float], list[float]]


def run(rig: Rig) -> list[Row]:
    """Servers on this machine, whose cores the writer and the reader share."""
    settings = {"storage": rig.folder / "storage", "spark_enabled": False}
    with rig.millstream(**settings, server_name="a") as a, rig.millstream(**settings, server_name="b") as b:
        rows = [*_rows("migrates", _measure(a, rig.seconds, partial(_migrate, a, b)))]
    if java_is_there():
        with rig.millstream(spark_driver_memory="1g") as server:
            rows += _rows("changes engines", _measure(server, rig.seconds, partial(_change_engines, server)))
    return rows


def _rows(move: str, measured: tuple[list[float], ...]) -> Iterator[Row]:
    still, moving, moves, reads = measured
    for case, times, aim in (
        (f"COPY of 1,000 rows, before the view {move}", still, None),
        (f"COPY of 1,000 rows, the view {move}", moving, 500.0),
        (f"fresh read of 250,000 groups, the view {move}", reads, None),
        (f"the view {move}", moves, None),
    ):
        ordered = sorted(times)
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            goal = aim if name == "p99" else None
            text = f"{goal:g} ms" if goal else ""
            found = ordered[int(len(ordered) * share)]
            yield Row(f"{case}, {name}", found, "ms", aim=goal, aim_text=text, better="less")


def _measure(home: Millstream, seconds: int, move: Callable[[_Writer, int, float], _Times]) -> tuple[list[float], ...]:
    """Milliseconds of COPYs while nothing moves, of COPYs while the view does, of its moves, and of its reads."""
    with connect(home) as client, connect(home) as writing:
        client.query(f"CREATE FOREIGN TABLE s (k int, n bigint, t text) SERVER stream; {_VIEW}")
        for first in range(0, GROUPS, 50_000):
            rows = "".join(f"{n}\t{n}\ttext\n" for n in range(first, first + 50_000))
            client.copy("COPY s FROM STDIN", rows.encode())
        with _Writer(writing) as still:
            time.sleep(seconds)
        with _Writer(writing) as writer:
            moves, reads = move(writer, still.rows + GROUPS, time.monotonic() + 2 * seconds)
        _timed(client, f"SELECT 1 FROM v HAVING sum(c) = {still.rows + writer.rows + GROUPS}")
    return still.times, writer.times, moves, reads


def _migrate(a: Millstream, b: Millstream, writer: _Writer, before: int, until: float) -> _Times:
    """Migrations there and back, and reads, which have all that was acknowledged."""
    moves: list[float] = []
    reads: list[float] = []
    with connect(a) as at_a, connect(b) as at_b:
        while time.monotonic() < until:
            for source, target, name in ((at_a, at_b, "b"), (at_b, at_a, "a")):
                moves.append(_timed(source, f"SELECT millstream.migrate('v', '{name}')"))
                reads += _read(target, writer, before)
    return moves, reads


def _change_engines(server: Millstream, writer: _Writer, before: int, until: float) -> _Times:
    """Migration between engines; a move has ended with the first job of the engine."""
    moves: list[float] = []
    reads: list[float] = []
    with connect(server) as client, server.connect() as looking:
        while time.monotonic() < until:
            for engine in ("spark", "embedded"):
                started = time.perf_counter()
                client.query(f"ALTER VIEW v SET (maintenance_engine = {engine})")
                wait_until(partial(_is_last, looking, engine), 60, f"a job of {engine}")
                moves.append((time.perf_counter() - started) * 1000)
                reads += _read(client, writer, before)
    return moves, reads


def _is_last(client: psycopg.Connection[Any], engine: str) -> bool:
    """Whether the last job was the engine's."""
    last = "SELECT engine FROM millstream.jobs WHERE status = 'done' ORDER BY id DESC LIMIT 1"
    return client.execute(last).fetchone() == (engine,)


def _read(client: Client, writer: _Writer, before: int) -> Iterator[float]:
    for _ in range(READS):
        yield _timed(client, f"SELECT 1 FROM v HAVING sum(c) >= {writer.rows + before}")
        time.sleep(PAUSE)


def _timed(client: Client, query: str) -> float:
    started = time.perf_counter()
    rows = client.query(query)
    found = (time.perf_counter() - started) * 1000
    assert rows == 1, "it contains all that was acknowledged"
    return found

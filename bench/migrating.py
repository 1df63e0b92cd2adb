"""A continuous view that migrates between two servers while rows come: writers' pauses, and reads."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from bench.client import Client
from bench.harness import Rig, Row, connect
from tests.rig.server import Millstream

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


def run(rig: Rig) -> list[Row]:
    """Two servers on this machine, whose cores the writer and the reader share."""
    settings = {"storage": rig.folder / "storage", "spark_enabled": False}
    with rig.millstream(**settings, server_name="a") as a, rig.millstream(**settings, server_name="b") as b:
        still, moving, moves, reads = _measure(a, b, rig.seconds)
    rows = []
    for case, times, aim in (
        ("COPY of 1,000 rows, nothing moves", still, None),
        ("COPY of 1,000 rows, the view migrates", moving, 500.0),
        ("fresh read of 250,000 groups, in between", reads, None),
        ("migration", moves, None),
    ):
        ordered = sorted(times)
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            goal = aim if name == "p99" else None
            text = f"{goal:g} ms" if goal else ""
            found = ordered[int(len(ordered) * share)]
            rows.append(Row(f"{case}, {name}", found, "ms", aim=goal, aim_text=text, better="less"))
    return rows


def _measure(a: Millstream, b: Millstream, seconds: int) -> tuple[list[float], ...]:
    """Milliseconds of COPYs while nothing moves, of COPYs while the view does, of its migrations, and of its reads."""
    with connect(a) as client, connect(a) as writing:
        client.query(f"CREATE FOREIGN TABLE s (k int, n bigint, t text) SERVER stream; {_VIEW}")
        for first in range(0, GROUPS, 50_000):
            rows = "".join(f"{n}\t{n}\ttext\n" for n in range(first, first + 50_000))
            client.copy("COPY s FROM STDIN", rows.encode())
        with _Writer(writing) as still:
            time.sleep(seconds)
        with _Writer(writing) as writer:
            moves, reads = _migrate(a, b, writer, still.rows + GROUPS, seconds)
    return still.times, writer.times, moves, reads


def _migrate(
    a: Millstream, b: Millstream, writer: _Writer, before: int, seconds: int
) -> tuple[list[float], list[float]]:
    """Milliseconds of migrations there and back, and of the reads behind them, which have all that was acknowledged."""
    moves: list[float] = []
    reads: list[float] = []
    ended = time.monotonic() + 2 * seconds
    with connect(a) as at_a, connect(b) as at_b:
        while time.monotonic() < ended:
            for source, target, name in ((at_a, at_b, "b"), (at_b, at_a, "a")):
                moves.append(_timed(source, f"SELECT millstream.migrate('v', '{name}')"))
                for _ in range(READS):
                    reads.append(_timed(target, f"SELECT 1 FROM v HAVING sum(c) >= {writer.rows + before}"))
                    time.sleep(PAUSE)
    return moves, reads


def _timed(client: Client, query: str) -> float:
    started = time.perf_counter()
    rows = client.query(query)
    found = (time.perf_counter() - started) * 1000
    assert rows == 1, "it contains all that was acknowledged"
    return found

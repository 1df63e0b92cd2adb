"""Time from sending 1, 1,000 or 100,000 new rows until the fresh result of a view has been read, beside PostgreSQL with
a summary that a trigger keeps (``bench.summaries``)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Final

from bench.client import Client
from bench.harness import Rig, Row, connect, create_stream, load
from bench.reads import head
from bench.summaries import SUMMARIES, Summary
from tests.rig.process import wait_until
from tests.rig.tpch import QUERIES

TITLE = "Milliseconds from sending rows until a fresh view has been read"

BY_ORDER: Final = "SELECT l_orderkey, count(*), sum(l_quantity) FROM lineitem GROUP BY l_orderkey"
#: Name, view, the read after the rows, and the aim for 1,000 rows in milliseconds.
CASES: Final = (
    ("q1", QUERIES["q1"], "SELECT * FROM {view}", 4.0),
    ("q3", QUERIES["q3"], "SELECT * FROM {view}", None),
    ("q6", QUERIES["q6"], "SELECT * FROM {view}", 4.0),
    ("by_order", BY_ORDER, "SELECT * FROM {view}", None),
    ("by_order, one key", BY_ORDER, "SELECT * FROM {view} WHERE l_orderkey = 7", None),
)
_BEHIND: Final = "SELECT name FROM millstream.views WHERE rows_behind > 0"
REPEATS: Final = {1: 200, 1000: 200, 100_000: 10}
_PEER: Final = "PostgreSQL, trigger"


def run(rig: Rig) -> list[Row]:
    """Each case on a server of its own with 250,000 orders' rows loaded before. The peer takes its turn after each
    size, so that it has seen the same minutes of the machine."""
    rows: list[Row] = []
    for name, query, read, aim in CASES:
        with rig.millstream() as server, connect(server) as client, connect(rig.postgres) as peer:
            create_stream(client, True)
            if name == "q3":
                load(client, rig, ("customer", "orders"))
            client.query(f"CREATE VIEW fresh AS {query}")
            client.copy("COPY lineitem FROM STDIN (FORMAT csv)", head(rig))
            client.query("SELECT count(*) FROM fresh")
            summary = SUMMARIES.get(name)
            if summary is not None:
                _load_peer(peer, rig, summary)
            for size, repeats in REPEATS.items():
                _settle(client)
                times = _measure(client, rig, size, repeats, read.format(view="fresh"))
                theirs = _measure(peer, rig, size, repeats, summary.read) if summary is not None else []
                case = f"{name}, {size:,} row{'s' * (size > 1)}"
                rows += _rows(case, times, theirs, aim if size == 1000 else None)
            if name == "by_order, one key":
                _settle(client)
                rows.append(_point(client))
    return rows + _peer(rig)


def _rows(case: str, ours: list[float], theirs: list[float], aim: float | None) -> Iterator[Row]:
    """Median and 99th percentile of sorted milliseconds, and the median's aim."""
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        own, peer = (times[int(len(times) * share)] if times else None for times in (ours, theirs))
        assert own is not None
        runs = tuple(ours) if name == "p50" else ()
        yield Row(f"{case}, {name}", own, "ms", peer, _PEER if theirs else "", better="less", runs=runs)
    if aim is not None:
        text = f"{aim:g} ms"
        yield Row(f"{case}, p50, absolute", statistics.median(ours), "ms", aim=aim, aim_text=text, better="less")


def _load_peer(peer: Client, rig: Rig, summary: Summary) -> None:
    """The rows that are there before, and their summary."""
    create_stream(peer, False)
    for statement in summary.statements():
        peer.query(statement)
    peer.copy("COPY lineitem FROM STDIN (FORMAT csv)", head(rig))
    peer.query("VACUUM ANALYZE lineitem, fresh")


def _measure(client: Client, rig: Rig, size: int, repeats: int, read: str) -> list[float]:
    """Sorted milliseconds of one insert plus one read; a single row by INSERT, more by COPY."""
    source = _chunks(rig, size)
    times = []
    for chunk in (next(source) for _ in range(repeats)):
        started = time.perf_counter()
        if size == 1:
            client.query(chunk.decode())
        else:
            client.copy("COPY lineitem FROM STDIN (FORMAT csv)", chunk)
        client.query(read)
        times.append((time.perf_counter() - started) * 1000)
    return sorted(times)


def _settle(client: Client) -> None:
    """Waits until what the case before has loaded is maintained: a case is about its own rows."""
    wait_until(lambda: not client.query(_BEHIND), 60, "maintenance")


def _chunks(rig: Rig, size: int) -> Iterator[bytes]:
    """New rows, each run of ``size``: CSV, or for one row its INSERT statement."""
    lines = rig.tpch.lines(0.1, "lineitem")
    place = 0
    while True:
        chunk = [lines[(place + offset) % len(lines)] for offset in range(size)]
        place += size
        if size > 1:
            yield b"".join(chunk)
        else:
            values = "', '".join(chunk[0].decode().strip().replace("'", "''").replace('"', "").split(",")[:15])
            yield f"INSERT INTO lineitem VALUES ('{values}', 'a comment')".encode()


def _point(client: Client) -> Row:
    """A read of one key of the large view right after one row arrived."""
    times = []
    for key in range(200):
        client.query(f"INSERT INTO lineitem (l_orderkey, l_quantity) VALUES ({key * 32 + 1}, 1)")
        started = time.perf_counter()
        client.query(f"SELECT * FROM fresh WHERE l_orderkey = {key * 32 + 1}")
        times.append((time.perf_counter() - started) * 1000)
    case = "point read of 250,000 groups after a row, p50"
    return Row(case, statistics.median(times), "ms", aim=2.0, aim_text="2 ms", better="less", runs=tuple(times))


def _peer(rig: Rig) -> list[Row]:
    """What PostgreSQL needs for the same without continuous views: COPY, and the query from scratch."""
    rows = []
    with connect(rig.postgres) as client:
        create_stream(client, False)
        client.copy("COPY lineitem FROM STDIN (FORMAT csv)", head(rig))
        for name in ("q1", "q6"):
            times = _measure(client, rig, 1000, 5, QUERIES[name])
            rows.append(Row(f"PostgreSQL from scratch, {name}, 1,000 rows, p50", times[2], "ms", better="less"))
    return rows

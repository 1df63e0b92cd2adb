"""What a connection costs: time to the first answer, memory while it rests, and reads by 1 to 500 clients."""

from __future__ import annotations

import statistics
import subprocess
import time
from pathlib import Path
from typing import Final

from bench.harness import Rig, Row, connect
from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

TITLE = "Connections: their cost, and reads by many"
CONNECTS: Final = 200
RESTING: Final = 500
READ: Final = "SELECT * FROM few;\n"


def run(rig: Rig) -> list[Row]:
    """Peers take turns."""
    with rig.millstream(max_connections=600) as server:
        peers: tuple[Millstream | Postgres, ...] = (server, rig.postgres)
        for either in peers:
            with connect(either) as client:
                client.query("DROP TABLE IF EXISTS few; CREATE TABLE few (a integer, b text)")
                client.query("INSERT INTO few SELECT i, 'text' FROM generate_series(1, 10) AS g (i)")
        rows = [_time(rig, server), _memory(server, rig.postgres)]
        for clients in (1, 10, 100, 500):
            ours = tuple(rig.pgbench(server, READ, clients, "prepared") for _ in range(rig.rounds))
            theirs = [rig.pgbench(rig.postgres, READ, clients, "prepared") for _ in range(rig.rounds)]
            case, peer = f"reads by {clients} clients, prepared", statistics.median(theirs)
            rows.append(Row(case, statistics.median(ours), "tps", peer, "PostgreSQL", 1.0, "as fast", runs=ours))
    return rows


def _time(rig: Rig, server: Millstream) -> Row:
    """Milliseconds to connect, ask and leave; the aim is absolute."""
    ours = tuple(_connects(server) for _ in range(rig.rounds))
    theirs = statistics.median(_connects(rig.postgres) for _ in range(rig.rounds))
    case = f"connect, ask and leave (PostgreSQL: {theirs:.2g} ms)"
    return Row(case, statistics.median(ours), "ms", aim=2.0, aim_text="under 2 ms", better="less", runs=ours)


def _connects(server: Millstream | Postgres) -> float:
    times = []
    for _ in range(CONNECTS):
        started = time.perf_counter()
        with connect(server) as client:
            client.query("SELECT 1")
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


def _memory(server: Millstream, postgres: Postgres) -> Row:
    """KB of a resting connection that has read something."""
    ours, theirs = _resting(server), _resting(postgres)
    case = f"memory of a connection (PostgreSQL: {theirs:.0f} KB)"
    return Row(case, ours, "KB", aim=100.0, aim_text="under 100 KB", better="less", runs=(ours,))


def _resting(server: Millstream | Postgres) -> float:
    with connect(server) as first:
        first.query("SELECT * FROM few")
        before = _kilobytes(server.pid)
        clients = [connect(server) for _ in range(RESTING)]
        for client in clients:
            client.query("SELECT * FROM few")
        after = _kilobytes(server.pid)
        for client in clients:
            client.__exit__(None, None, None)
    return (after - before) / RESTING


def _kilobytes(pid: int) -> float:
    """Of a process and its children, what is shared counted once."""
    children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
    return sum(_own(int(process)) for process in (pid, *map(int, children)))


def _own(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))

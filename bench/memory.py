"""Memory of the server and its JVM over ten times the input, with views of a fixed number of groups."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Final

from bench.copy import VIEWS
from bench.harness import Rig, Row, body, connect, create_stream
from tests.rig.process import wait_until
from tests.rig.server import Millstream

TITLE = "Resident memory after loading lineitem ten times, MiB"
NAMES: Final = ("q1", "q6", "modes", "numbers")


def run(rig: Rig) -> list[Row]:
    """Server and JVM after each load, when Spark has caught up with it. What they keep for the next one varies by tens
    of MiB from load to load, so that one beside another says little."""
    mapped = rig.lineitem()
    data = body(mapped)
    figures: list[tuple[float, float]] = []
    with rig.millstream(maintenance_engine="spark") as server, connect(server) as client:
        create_stream(client, True)
        for name in NAMES:
            client.query(f"CREATE VIEW {name} AS {VIEWS[name]}")
        for _ in range(10):
            client.copy("COPY lineitem FROM STDIN (FORMAT csv)", data)
            for name in NAMES:
                client.query(f"SELECT * FROM {name}")
            _settle(server)
            figures.append(_resident(server))
    rows = []
    for at, name in enumerate(("server", "Spark's driver and JVM")):
        runs = tuple(figure[at] for figure in figures)
        if runs[0]:
            case = f"{name}: mean of the last three of ten loads, beside the first three"
            first, last = statistics.mean(runs[:3]), statistics.mean(runs[-3:])
            rows.append(Row(case, last, "MiB", first, "first three", 0.8, "flat (within 25 %)", "less", runs))
    return rows


def _settle(server: Millstream) -> None:
    """Waits until nothing is left to maintain, so that the figure is not that of buffered rows."""
    with server.connect() as client:

        def caught_up() -> bool:
            return client.execute("SELECT coalesce(max(rows_behind), 0) FROM millstream.views").fetchone() == (0,)

        wait_until(caught_up, 600, "maintenance that has caught up")
    time.sleep(1)


def _resident(server: Millstream) -> tuple[float, float]:
    """MiB of the server itself, and of all its descendants."""
    own, *rest = (_mebibytes(pid) for pid in server.processes())
    return own, sum(rest)


def _mebibytes(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1024

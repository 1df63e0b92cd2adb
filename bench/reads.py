"""Reads of an unchanged view by pgbench: one text again and again, and random keys; beside ``pgbench -S``."""

from __future__ import annotations

import statistics
import subprocess
from typing import Final

from bench.harness import Rig, Row, body, connect, create_stream
from tests.rig.tpch import QUERIES

TITLE = "Reads of an unchanged view by pgbench, transactions per second"
IDENTICAL: Final = "SELECT * FROM q1;\n"
#: Order keys are sparse (the benchmark's section 4.2.3): the n-th is (n >> 3 << 5) + (n & 7).
POINT: Final = (
    "\\set block random(0, {last})\n\\set low random(1, 7)\n\\set k :block * 32 + :low\n"
    "SELECT * FROM by_order WHERE l_orderkey = :k;\n"
)
CASES: Final = (
    ("identical text, simple", IDENTICAL, "simple"),
    ("identical text, prepared", IDENTICAL, "prepared"),
    ("random key of a large view, prepared", POINT, "prepared"),
)


def run(rig: Rig) -> list[Row]:
    """Peers take turns for each case and number of clients."""
    where = ["-h", "127.0.0.1", "-p", str(rig.postgres.port), "-U", "postgres", "postgres"]
    subprocess.run(["pgbench", "-i", "-q", "-s", "10", *where], check=True, capture_output=True)
    rows = []
    with rig.millstream() as server:
        with connect(server) as client:
            create_stream(client, True)
            client.query(f"CREATE VIEW q1 AS {QUERIES['q1']}")
            client.query(
                "CREATE VIEW by_order AS SELECT l_orderkey, count(*), sum(l_quantity) FROM lineitem GROUP BY 1"
            )
            client.copy("COPY lineitem FROM STDIN (FORMAT csv)", head(rig))
            assert client.query("SELECT * FROM by_order") == groups(rig)
        for name, script, mode in CASES:
            for clients in (1, 8, 32):
                ours, theirs = [], []
                for _ in range(rig.rounds):
                    ours.append(rig.pgbench(server, script.format(last=groups(rig) // 8 - 1), clients, mode))
                    theirs.append(rig.pgbench(rig.postgres, "select-only", clients, mode))
                case, peer = f"{name}, {clients} client{'s' * (clients > 1)}", statistics.median(theirs)
                figures = tuple(ours)
                rows.append(
                    Row(case, statistics.median(ours), "tps", peer, "PostgreSQL -S", 1.0, "faster", runs=figures)
                )
    return rows


def groups(rig: Rig) -> int:
    """How many orders the large view has."""
    return min(250_000, int(1_500_000 * rig.scale))


def head(rig: Rig) -> memoryview:
    """The first rows of lineitem: those of the large view's orders."""
    mapped = rig.lineitem()
    data = body(mapped)
    following = groups(rig) + 1
    end = mapped.find(b"\n%d," % ((following >> 3 << 5) + (following & 7)))
    return data[: end + 1 - (len(mapped) - len(data))] if end > 0 else data

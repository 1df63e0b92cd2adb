"""A point read of a view that joins two grouped streams, after a row has come: processor time at growing numbers of
groups."""

from __future__ import annotations

import statistics
from typing import Final

from bench.client import Client
from bench.harness import Rig, Row, connect, used, wait_until_kept
from bench.slopes import slope
from tests.rig.server import Millstream

TITLE = "A point read of a join of two grouped streams after an insert, milliseconds of processor time"
#: Rows of each stream, of which each has a group of its own.
SIZES: Final = (100_000, 300_000, 1_000_000)
PIECE: Final = 100_000
READS: Final = 15
#: Reads before those: rows are kept once evaluations have taken a while.
FIRST_READS: Final = 30
AIM: Final = 0.1
STREAMS: Final = ("ordered", "paid")
VIEW: Final = """
CREATE VIEW balance AS SELECT o.customer, o.total, p.total AS paid
FROM (SELECT customer, sum(amount) AS total FROM ordered GROUP BY customer) o
JOIN (SELECT customer, sum(amount) AS total FROM paid GROUP BY customer) p ON o.customer = p.customer"""


def run(rig: Rig) -> list[Row]:
    """A server for each size."""
    rows, sizes = list[Row](), [int(size * rig.scale) for size in SIZES]
    for size in sizes:
        with rig.millstream(spark_enabled=False, maintenance_engine="embedded") as server, connect(server) as client:
            times = _measured(server, client, size)
            rows.append(Row(f"{size:,} groups", statistics.median(times), "ms", better="less", runs=tuple(times)))
    growth = slope([row.ours for row in rows], sizes)
    rows.append(Row("growth with the groups", growth, "", aim=AIM, aim_text=f"under {AIM:g}", better="less"))
    return rows


def _measured(server: Millstream, client: Client, size: int) -> list[float]:
    """The reads' milliseconds, each of the customer of a row that came before it."""
    for stream in STREAMS:
        client.query(f"CREATE FOREIGN TABLE {stream} (customer integer, amount numeric(12, 2)) SERVER stream")
    client.query(VIEW)
    for begin in range(0, size, PIECE):
        lines = b"".join(b"%d,%d.50\n" % (key, key % 1000) for key in range(begin, min(begin + PIECE, size)))
        for stream in STREAMS:
            client.copy(f"COPY {stream} FROM STDIN (FORMAT csv)", lines)
    times = []
    for number in range(READS + FIRST_READS):
        if number in (FIRST_READS // 2, FIRST_READS):
            wait_until_kept(client, "balance")
        key = (number * 7919) % size
        client.query(f"INSERT INTO {STREAMS[number % 2]} VALUES ({key}, 1.25)")
        times.append(used(server, client, f"SELECT * FROM balance WHERE customer = {key}"))
    return times[FIRST_READS:]

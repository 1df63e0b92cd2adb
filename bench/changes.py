"""What a change of a table costs its materialized views: processor time of the read that follows it, beside computing
the view's query from scratch.

The views are TPC-H's queries as they are written. Between two reads one row, or a thousand rows, of the largest table
that the query reads get other values.
"""

from __future__ import annotations

import random
import statistics
from typing import Final

from bench.client import Client
from bench.harness import Rig, Row, connect, load, used, wait_until_kept
from tests.rig.benchmarks import queries
from tests.rig.server import Millstream
from tests.rig.tpch import TABLES

TITLE = "Processor time of a read after a change, milliseconds"
#: Changed rows between two reads.
SIZES: Final = (1, 1000)
#: By table, the statement that changes a row for each of some keys.
CHANGES: Final = {
    "lineitem": "UPDATE lineitem SET l_quantity = l_quantity + 1 WHERE l_linenumber = 1 AND l_orderkey IN ({keys})",
    "orders": "UPDATE orders SET o_totalprice = o_totalprice + 1 WHERE o_orderkey IN ({keys})",
    "partsupp": "UPDATE partsupp SET ps_supplycost = ps_supplycost + 1 WHERE ps_partkey IN ({keys})",
}
#: Of each 32 keys of orders, the first eight are in use (TPC-H, section 4.2.3).
SPARSE: Final = 32
USED: Final = 8
ORDERS: Final = 1_500_000
PARTS: Final = 200_000
READS: Final = 7
#: Reads before those, with which the server fills what it keeps.
FIRST_READS: Final = 6
AIM: Final = 20.0


def run(rig: Rig) -> list[Row]:
    """All views of one server, one after the other."""
    rows: list[Row] = []
    with rig.millstream() as server, connect(server) as client:
        load(client, rig, tuple(TABLES))
        ratios: dict[int, list[float]] = {size: [] for size in SIZES}
        for path in queries("tpch"):
            query = path.read_text().strip().rstrip(";")
            for size, found in _measured(server, client, rig, query).items():
                scratch, changed = found
                case = f"{path.stem}, {size:,} changed row{'s' * (size > 1)}"
                rows.append(Row(case, changed, "ms", scratch, "from scratch", better="less"))
                ratios[size].append(scratch / max(changed, 0.01))
        for size, each in ratios.items():
            text = f"{AIM:g} times cheaper than from scratch"
            case = f"median of all, {size:,} changed row{'s' * (size > 1)}"
            rows.append(Row(case, statistics.median(each), "times", aim=AIM, aim_text=text))
    return rows


def _measured(server: Millstream, client: Client, rig: Rig, query: str) -> dict[int, tuple[float, float]]:
    """By the number of changed rows, milliseconds of the query and of the view, each after a change."""
    table = next(name for name in CHANGES if name in query)
    drawn = random.Random(1)
    client.query(f"CREATE MATERIALIZED VIEW changing AS {query}")
    found = {}
    for size in SIZES:
        times: list[tuple[float, float]] = []
        for number in range(READS + FIRST_READS):
            if number in (FIRST_READS // 2, FIRST_READS):
                wait_until_kept(client, "changing")
            chosen = ", ".join(str(sparse_key(drawn, table, rig.scale)) for _ in range(size))
            client.query(CHANGES[table].format(keys=chosen))
            times.append((used(server, client, query), used(server, client, "SELECT * FROM changing")))
        scratch, changed = zip(*times[FIRST_READS:], strict=True)
        found[size] = statistics.median(scratch), statistics.median(changed)
    client.query("DROP MATERIALIZED VIEW changing")
    return found


def sparse_key(drawn: random.Random, table: str, scale: float) -> int:
    """A key that rows have."""
    if table == "partsupp":
        return drawn.randint(1, int(PARTS * scale))
    return SPARSE * drawn.randrange(int(ORDERS * scale / USED)) + drawn.randrange(1, USED)

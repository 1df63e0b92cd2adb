"""What a change of a table costs its materialized views: processor time of the read that follows it, beside computing
the view's query from scratch.

The views are TPC-H's queries as they are written. Between two reads one row, or a thousand rows, of the largest table
that the query reads get other values.
"""

from __future__ import annotations

import random
import statistics
from contextlib import suppress
from pathlib import Path
from typing import Final

from bench.client import Client
from bench.harness import Rig, Row, connect
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
AIM: Final = 20.0


def run(rig: Rig) -> list[Row]:
    """All views of one server, one after the other."""
    rows: list[Row] = []
    with rig.millstream() as server, connect(server) as client:
        _load(client, rig)
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


def _load(client: Client, rig: Rig) -> None:
    for table, columns in TABLES.items():
        client.query(f"CREATE TABLE {table} ({columns})")
        client.copy(f"COPY {table} FROM STDIN (FORMAT csv, HEADER)", rig.tpch.csv(rig.scale, table).read_bytes())


def _measured(server: Millstream, client: Client, rig: Rig, query: str) -> dict[int, tuple[float, float]]:
    """By the number of changed rows, milliseconds of the query and of the view, each after a change."""
    table = next(name for name in CHANGES if name in query)
    drawn = random.Random(1)
    client.query(f"CREATE MATERIALIZED VIEW changing AS {query}")
    found = {}
    for size in SIZES:
        times: list[tuple[float, float]] = []
        for _ in range(READS + 4):  # the first ones fill what is kept
            chosen = ", ".join(str(_key(drawn, table, rig.scale)) for _ in range(size))
            client.query(CHANGES[table].format(keys=chosen))
            times.append((_used(server, client, query), _used(server, client, "SELECT * FROM changing")))
        scratch, changed = zip(*times[4:], strict=True)
        found[size] = statistics.median(scratch), statistics.median(changed)
    client.query("DROP MATERIALIZED VIEW changing")
    return found


def _key(drawn: random.Random, table: str, scale: float) -> int:
    """A key that rows have."""
    if table == "partsupp":
        return drawn.randint(1, int(PARTS * scale))
    return SPARSE * drawn.randrange(int(ORDERS * scale / USED)) + drawn.randrange(1, USED)


def _used(server: Millstream, client: Client, query: str) -> float:
    """Milliseconds of the server's processes for a query."""
    before = _processor_time(server.pid)
    client.query(query)
    return (_processor_time(server.pid) - before) * 1000


def _processor_time(pid: int) -> float:
    """Seconds that the threads of a process have run."""
    found = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that ends now
            found += int((task / "schedstat").read_text().split()[0])
    return found / 1e9

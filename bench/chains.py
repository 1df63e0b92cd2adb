"""Views over views: processor time of a read of the fourth view of a chain after one changed row, beside a read of the
first.

Each view groups the one before it: by order, by customer, by nation, by region. The chains begin with tables, with
materialized views over them, and with a stream. A read of the first view asks for the changed order, one of the last
for the five regions. A read comes either at once or ``LATER``, when the background has followed the change: then the
figure is what is left for the reader to do.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from bench.client import Client
from bench.harness import Rig, Row, connect, load, used, wait_until_kept
from bench.slopes import sparse
from tests.rig.server import Millstream

TITLE = "A read of each view of a chain after one changed row, milliseconds of processor time"
#: By view, its query over the one before it: ``below``.
VIEWS: Final = {
    "by_order": "SELECT l_orderkey, o_custkey, count(*) AS items, sum(l_extendedprice * (1 - l_discount)) AS revenue "
    "FROM {below} JOIN orders ON l_orderkey = o_orderkey GROUP BY l_orderkey, o_custkey",
    "by_customer": "SELECT o_custkey, count(*) AS orders, sum(items) AS items, sum(revenue) AS revenue FROM {below} "
    "GROUP BY o_custkey",
    "by_nation": "SELECT c_nationkey, sum(orders) AS orders, sum(items) AS items, sum(revenue) AS revenue FROM {below} "
    "JOIN customer ON o_custkey = c_custkey GROUP BY c_nationkey",
    "by_region": "SELECT r_name, sum(orders) AS orders, sum(items) AS items, sum(revenue) AS revenue FROM {below} "
    "JOIN nation ON c_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey GROUP BY r_name",
}
READS: Final = 15
FIRST_READS: Final = 6
#: Seconds from a change to a read that does not come at once.
LATER: Final = 0.05
#: The share of the scale that the data has.
SHARE: Final = 1 / 5
#: How many times the first view's read the last one's may take.
AIM: Final = 1.3
CHANGES: Final = {
    "tables": "UPDATE lineitem SET l_extendedprice = l_extendedprice + 1 WHERE l_linenumber = 1 AND l_orderkey = {key}",
    "stream": "INSERT INTO arriving SELECT l_orderkey, l_extendedprice, l_discount FROM lineitem "
    "WHERE l_linenumber = 1 AND l_orderkey = {key}",
}


def run(rig: Rig) -> list[Row]:
    """A chain over tables, and one over a stream."""
    rows: list[Row] = []
    scale = SHARE * rig.scale
    with rig.millstream(spark_enabled=False, maintenance_engine="embedded") as server, connect(server) as client:
        load(client, rig, ("lineitem", "orders", "customer", "nation", "region"), scale)
        for source in CHANGES:
            _create(client, source)
            for pause, when in ((0.0, "at once"), (LATER, f"{LATER * 1000:g} ms later")):
                first, *others = _measured(server, client, source, int(1_500_000 * scale), pause)
                rows.append(Row(f"{source}: by_order, {when}", first, "ms", better="less"))
                for name, used_time in zip(list(VIEWS)[1:], others, strict=True):
                    rows.append(Row(f"{source}: {name}, {when}", used_time, "ms", first, "by_order", better="less"))
                rows[-1] = replace(rows[-1], aim=1 / AIM, aim_text=f"at most {AIM:g} times the first")
    return rows


def _create(client: Client, source: str) -> None:
    below = "lineitem"
    if source == "stream":
        columns = "l_orderkey bigint, l_extendedprice decimal(15,2), l_discount decimal(15,2)"
        client.query(f"CREATE FOREIGN TABLE arriving ({columns}) SERVER stream")
        below = "arriving"
    kind = "VIEW" if source == "stream" else "MATERIALIZED VIEW"
    for name, query in VIEWS.items():
        client.query(f"CREATE {kind} {source}_{name} AS {query.format(below=below)}")
        kind = "MATERIALIZED VIEW"
        below = f"{source}_{name}"
    if source == "stream":
        client.query("INSERT INTO arriving SELECT l_orderkey, l_extendedprice, l_discount FROM lineitem")


def _measured(server: Millstream, client: Client, source: str, orders: int, pause: float) -> Iterator[float]:
    """The medians of the reads of each view, each some seconds after a change of its own."""
    drawn = random.Random(1)
    for name in VIEWS:
        times = []
        for number in range(READS + FIRST_READS):
            if number in (FIRST_READS // 2, FIRST_READS):
                wait_until_kept(client, f"{source}_{name}")
            key = sparse(drawn.randint(1, orders))
            client.query(CHANGES[source].format(key=key))
            time.sleep(pause)
            where = f" WHERE l_orderkey = {key}" if name == "by_order" else ""
            times.append(used(server, client, f"SELECT * FROM {source}_{name}{where}"))
        yield statistics.median(times[FIRST_READS:])

"""How the cost of a change grows with the data: processor time of a view's read after one changed row, at 1, 4 and 16
times the data.

The views are TPC-H's queries as they are written. Between two reads a row of one relation leaves the joins, or comes
back: its key changes its sign. The slope is that of the time's logarithm against the data's.
"""

from __future__ import annotations

import math
import random
import re
import statistics
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from bench.client import Client
from bench.harness import Rig, Row, connect, load, used, wait_until_kept
from tests.rig.benchmarks import queries
from tests.rig.server import Millstream
from tests.rig.tpch import TABLES

TITLE = "Growth of a read's processor time after one changed row, at 1, 4 and 16 times the data"
#: The sizes of the data, as shares of the scale.
SHARES: Final = (1 / 20, 1 / 5, 4 / 5)
READS: Final = 4
AIM: Final = 0.1


class Change(Struct, frozen=True):
    """How a row of a table changes: the first ``statement`` for a key takes the row away from its partners, the second
    one brings it back. Keys are 1 to ``keys`` at scale 1; a table of ``few`` rows has the same number at any scale."""

    statement: str
    keys: int
    few: bool = False


def _flipped(table: str, key: str, keys: int, beside: str = "", few: bool = False) -> Change:
    return Change(f"UPDATE {table} SET {key} = -{key}{beside} WHERE {key} IN ({{key}}, -{{key}})", keys, few)


#: By table, from the largest one on.
CHANGES: Final = {
    "lineitem": Change(
        "UPDATE lineitem SET l_orderkey = -l_orderkey, l_quantity = l_quantity + 1 "
        "WHERE l_linenumber = 1 AND l_orderkey IN ({key}, -{key})",
        1_500_000,
    ),
    "orders": _flipped("orders", "o_orderkey", 1_500_000, ", o_custkey = -o_custkey"),
    "partsupp": Change(
        "UPDATE partsupp SET ps_partkey = -ps_partkey, ps_availqty = ps_availqty + 1 WHERE "
        "ps_partkey IN ({key}, -{key}) AND ps_suppkey = (SELECT min(ps_suppkey) FROM partsupp "
        "WHERE ps_partkey IN ({key}, -{key}))",
        200_000,
    ),
    "part": _flipped("part", "p_partkey", 200_000),
    "customer": _flipped("customer", "c_custkey", 150_000),
    "supplier": _flipped("supplier", "s_suppkey", 10_000),
    "nation": _flipped("nation", "n_nationkey", 24, few=True),
    "region": _flipped("region", "r_regionkey", 4, few=True),
}


def run(rig: Rig) -> list[Row]:
    """All views and relations at each size of the data."""
    found: dict[tuple[str, str], list[float]] = {}
    for share in SHARES:
        for case, milliseconds in _measured(rig, share * rig.scale):
            found.setdefault(case, []).append(milliseconds)
    rows = [_row(query, table, times) for (query, table), times in found.items()]
    steep = statistics.median(row.ours for row in rows if row.aim is not None)
    rows.append(Row("median of those with an aim", steep, "", aim=AIM, aim_text=f"under {AIM:g}", better="less"))
    return rows


def _row(query: str, table: str, times: Sequence[float]) -> Row:
    """A case. A row of few, such as a nation, meets a part of all rows, so that it has no aim."""
    case = f"{query}, a row of {table}: {' '.join(f'{time:.2g}' for time in times)} ms"
    row = Row(case, slope(times, SHARES), "", better="less", runs=tuple(times))
    return row if CHANGES[table].few else replace(row, aim=AIM, aim_text=f"under {AIM:g}")


def slope(times: Sequence[float], sizes: Sequence[float]) -> float:
    """The slope of the times' logarithms against those of the sizes, by least squares."""
    return statistics.linear_regression(list(map(math.log, sizes)), list(map(math.log, times))).slope


def _measured(rig: Rig, scale: float) -> Iterator[tuple[tuple[str, str], float]]:
    with rig.millstream(spark_enabled=False, maintenance_engine="embedded") as server, connect(server) as client:
        load(client, rig, tuple(TABLES), scale)
        for path in queries("tpch"):
            query = path.read_text().strip().rstrip(";")
            client.query(f"CREATE MATERIALIZED VIEW changing WITH (method = 'incremental') AS {query}")
            client.query("SELECT * FROM changing")
            wait_until_kept(client, "changing", 60)
            client.query("SELECT * FROM changing")
            for table, change in CHANGES.items():
                if re.search(rf"\b{table}\b", query):
                    yield (path.stem, table), _median(server, client, change, scale)
            client.query("DROP MATERIALIZED VIEW changing")


def _median(server: Millstream, client: Client, change: Change, scale: float) -> float:
    """The median of reads' milliseconds, each after a change of one row."""
    drawn, times = random.Random(1), list[float]()
    for _ in range(READS // 2 + 1):
        key = drawn.randint(1, change.keys if change.few else int(change.keys * scale))
        for _ in range(2):
            client.query(change.statement.format(key=key if change.keys < 1_000_000 else sparse(key)))
            times.append(used(server, client, "SELECT * FROM changing"))
    return statistics.median(times[2:])  # the first ones make plans


def sparse(number: int) -> int:
    """The key of an order: of each 32 keys the first eight are in use (TPC-H, section 4.2.3)."""
    return number // 8 * 32 + number % 8

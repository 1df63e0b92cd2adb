"""Analytical queries over Parquet files on both engines: what planner.placement's constants are taken from.

lineitem of TPC-H in files of a foreign table, in growing number (the same file under several names), grouped into few
and into many groups, and joined with orders. A row says how long the embedded engine takes beside Spark, which starts
warm. ``python -m bench engines`` runs it alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench.client import Client
from bench.harness import Rig, Row, connect

TITLE: Final = "Queries over Parquet files, the embedded engine beside Spark"
COLUMNS: Final = (
    "l_orderkey bigint, l_quantity numeric(15,2), l_extendedprice numeric(15,2), l_discount numeric(15,2), "
    "l_returnflag text, l_linestatus text, l_shipdate date"
)
QUERIES: Final[Mapping[str, str]] = {
    "few groups": "SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), count(*) FROM {0} "
    "WHERE l_shipdate <= date '1998-09-02' GROUP BY 1, 2",
    "many groups": "SELECT max(n) FROM (SELECT l_orderkey, sum(l_quantity) AS n FROM {0} GROUP BY 1) AS found",
    "join": "SELECT o_orderpriority, sum(l_extendedprice), count(*) FROM {0} JOIN ordered ON l_orderkey = o_orderkey "
    "GROUP BY 1",
}
#: How many times the file of the scale factor is read.
COPIES: Final = (1, 4)


def run(rig: Rig) -> list[Row]:
    """All queries over all sizes, once more before each measurement."""
    rows: list[Row] = []
    with rig.millstream() as server, connect(server) as client:
        (orders,) = rig.tpch.parts(rig.scale, "orders", 1, "parquet")
        _create(client, "ordered", "o_orderkey bigint, o_orderpriority text", orders)
        for copies in COPIES:
            folder = rig.folder / f"lineitem-{copies}"
            folder.mkdir()
            for number in range(copies):
                os.symlink(rig.tpch.parts(rig.scale, "lineitem", 1, "parquet")[0], folder / f"{number}.parquet")
            _create(client, f"items{copies}", COLUMNS, folder)
            rows += [_measure(rig, client, name, query, copies) for name, query in QUERIES.items()]
    return rows


def _create(client: Client, name: str, columns: str, path: Path) -> None:
    client.query(f"CREATE FOREIGN TABLE {name} ({columns}) SERVER files OPTIONS (path '{path}')")


def _measure(rig: Rig, client: Client, name: str, query: str, copies: int) -> Row:
    text = query.format(f"items{copies}")

    def seconds(engine: str) -> tuple[float, tuple[float, ...]]:
        client.query(f"SET query_engine = '{engine}'")
        client.query(text)
        return rig.median(lambda: _timed(client, text))

    ours, runs = seconds("embedded")
    peer, _ = seconds("spark")
    millions = rig.scale * copies * 6
    return Row(f"{name}, {millions:g} million rows", ours, "s", peer, "s on Spark", better="less", runs=runs)


def _timed(client: Client, text: str) -> float:
    start = time.perf_counter()
    client.query(text)
    return time.perf_counter() - start

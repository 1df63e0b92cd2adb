"""A warehouse of 57 views in three layers: processor time of reading all of them after one change of the sources,
followed and computed anew.

The views are those of tests/sql/warehouse, over tables and streams with a brokerage's raw records. Each change concerns
some records of one source: a trade is settled, a customer moves, a line of a feed is corrected. Some of them reach few
views and others most, so that the mean of all changes counts. What several views read of a view below them is kept
once; the table shows how many rows are kept.
"""

from __future__ import annotations

import statistics
from typing import Final

from bench.client import Client
from bench.harness import Rig, Row, connect, used, wait_until_kept
from tests.rig.brokerage import BATCHES, LAYERS, STREAMS, TABLES, Brokerage, lines, warehouse
from tests.rig.server import Millstream

TITLE = "A warehouse in three layers: reading all 57 views after a change, mean milliseconds of processor time"
#: Sizes of the brokerage at scale factor 1.
SIZE: Final = 8
CHANGES: Final = 12
FIRST_READS: Final = 4
METHODS: Final = ("auto", "incremental", "recompute")


def run(rig: Rig) -> list[Row]:
    """Each method in a server of its own."""
    times, kept = {}, {}
    for method in METHODS:
        with rig.millstream(spark_enabled=False, maintenance_engine="embedded") as server, connect(server) as client:
            times[method] = _measured(server, client, method, max(1, int(SIZE * rig.scale)))
            kept[method] = _rows_kept(server)
    scratch = statistics.fmean(times["recompute"])
    rows: list[Row] = []
    for method in METHODS[:2]:
        case = f"all views, method = '{method}', {kept[method]:,} rows kept"
        found = times[method]
        rows.append(Row(case, statistics.fmean(found), "ms", scratch, "recompute", better="less", runs=found))
    return rows


def _measured(server: Millstream, client: Client, method: str, size: int) -> tuple[float, ...]:
    """Reads of all views, each after a change."""
    brokerage, views = Brokerage(1, size), warehouse()
    _create(client, method)
    for batch in BATCHES:
        for statement in brokerage.corrections(batch) if batch > 1 else ():
            client.query(statement)
        for name, rows in brokerage.batch(batch).items():
            client.copy(f"COPY raw.{name} FROM STDIN (FORMAT csv)", memoryview(lines(rows)))
    times = []
    for number in range(FIRST_READS + CHANGES):
        if number == FIRST_READS - 1:
            for view in views:
                wait_until_kept(client, view, 1.0)
        client.query(brokerage.change())
        times.append(sum(used(server, client, f"SELECT * FROM {view}") for view in views))
    return tuple(times[FIRST_READS:])


def _rows_kept(server: Millstream) -> int:
    with server.connect() as connection:
        found = connection.execute("SELECT coalesce(sum(rows), 0) FROM millstream.paths WHERE part LIKE 'node %'")
        row = found.fetchone()
        assert row is not None
        return int(row[0])


def _create(client: Client, method: str) -> None:
    for schema in ("raw", *LAYERS):
        client.query(f"CREATE SCHEMA {schema}")
    for name, columns in TABLES.items():
        client.query(f"CREATE TABLE raw.{name} ({columns})")
    for name, columns in STREAMS.items():
        client.query(f"CREATE FOREIGN TABLE raw.{name} ({columns}) SERVER stream")
    for name, query in warehouse().items():
        client.query(f"CREATE MATERIALIZED VIEW {name} WITH (method = '{method}') AS {query}")

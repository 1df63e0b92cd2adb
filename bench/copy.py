"""COPY of lineitem into a stream with 0 to 8 continuous views, durable, until a fresh read has returned all rows."""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import Final

import pyarrow as pa
from pyarrow import csv

from bench.harness import Rig, Row, body, connect, create_stream, load
from tests.rig.postgres import Postgres
from tests.rig.server import Millstream
from tests.rig.tpch import QUERIES

TITLE = "COPY CSV of lineitem into a stream until every view is fresh, rows per second"
AIM: Final = 1_500_000

#: The first n of these are the views of the run with n.
VIEWS: Final = {
    "q1": QUERIES["q1"],
    "q6": QUERIES["q6"],
    "modes": "select l_shipmode, count(*), sum(l_quantity) from lineitem group by l_shipmode",
    "numbers": "select l_linenumber, count(*), max(l_extendedprice) from lineitem group by l_linenumber",
    "q15": QUERIES["q15"],
    "q3": QUERIES["q3"],
    "days": "select l_shipdate, count(*), sum(l_extendedprice), avg(l_discount) from lineitem group by l_shipdate",
    "suppliers": "select l_suppkey, sum(l_quantity) as quantity, min(l_shipdate) from lineitem group by l_suppkey",
}


def run(rig: Rig) -> list[Row]:
    """Peers take turns: one COPY into PostgreSQL for each into Millstream."""
    ours: dict[int, list[float]] = {0: [], 1: [], 4: [], 8: []}
    theirs: list[float] = []
    for _ in range(rig.rounds):
        for views, figures in ours.items():
            with rig.millstream() as server:
                figures.append(_copy(rig, server, views))
        theirs.append(_copy(rig, rig.postgres, 0))
    peer = statistics.median(theirs)
    one = statistics.median(ours[1])
    rows = []
    for views, figures in ours.items():
        aim, text = {1: (3.0, "3 times PostgreSQL"), 8: (None, "")}.get(views, (None, ""))
        case = f"{views} view{'s' * (views != 1)}"
        rows.append(Row(case, statistics.median(figures), "rows/s", peer, "PostgreSQL", aim, text, runs=tuple(figures)))
    rows.append(Row("1 view, absolute", one, "rows/s", aim=AIM, aim_text=f"{AIM:,}"))
    rows.append(Row("8 views beside 1", statistics.median(ours[8]), "rows/s", one, "1 view", 0.7, "0.7 of 1 view"))
    for threads in (1, 2):
        figure, _ = rig.median(partial(_parse, rig, threads))
        case = f"1 view beside the bare parser on {threads} thread{'s' * (threads > 1)}"
        rows.append(Row(case, one, "rows/s", figure, "parser"))
    return rows


def _copy(rig: Rig, server: Millstream | Postgres, views: int) -> float:
    mapped = rig.lineitem()
    data = body(mapped)
    total = mapped[:].count(b"\n") - 1
    names = list(VIEWS)[:views]
    with connect(server) as client:
        create_stream(client, isinstance(server, Millstream))
        if "q15" in names:
            load(client, rig, ("supplier", "customer", "orders"))
        for name in names:
            client.query(f"CREATE VIEW {name} AS {VIEWS[name]}")
        started = time.perf_counter()
        client.copy("COPY lineitem FROM STDIN (FORMAT csv)", data)
        for name in names:
            client.query(f"SELECT * FROM {name}")
        return total / (time.perf_counter() - started)


def _parse(rig: Rig, threads: int) -> float:
    """The CSV parser alone, into the Arrow types of the stream's columns."""
    decimal, date = pa.decimal128(15, 2), pa.date32()
    kinds = [pa.int64(), *[pa.int32()] * 3, *[decimal] * 4, *[pa.string()] * 2, *[date] * 3, *[pa.string()] * 3]
    mapped = rig.lineitem()
    names = mapped[: mapped.find(b"\n")].decode().split(",")
    before = pa.cpu_count()
    pa.set_cpu_count(threads)
    started = time.perf_counter()
    rows: int = csv.read_csv(
        pa.BufferReader(pa.py_buffer(mapped)),
        csv.ReadOptions(use_threads=threads > 1),
        convert_options=csv.ConvertOptions(column_types=dict(zip(names, kinds, strict=True))),
    ).num_rows
    seconds = time.perf_counter() - started
    pa.set_cpu_count(before)
    return rows / seconds

"""``make demo``: two minutes of Millstream at TPC-H scale factor 1.

psql copies lineitem into a stream while Spark follows a growing folder of Parquet files with orders; meanwhile this
prints the views as they change and how far the load is, and at the end the plan of a view and the engines that did the
work.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

import psycopg

from bench.harness import Rig
from tests.rig.process import wait_until
from tests.rig.server import DATABASE, USER, Millstream
from tests.rig.tpch import QUERIES, TABLES

LINEITEMS: Final = 6_001_215
ORDERS: Final = 1_500_000
LOADS: Final = 20
FILES: Final = 24
#: Seconds between two files that appear in the folder.
PACE: Final = 3.0
#: Seconds between two looks at the views, and within which all is loaded.
LOOK: Final = 0.7
LIMIT: Final = 600
#: Seconds within which the background has maintained all that the readers have seen.
CAUGHT_UP: Final = 120
COLUMNS: Final = "o_orderkey bigint, o_custkey bigint, o_orderstatus text, o_totalprice numeric(15,2), o_orderdate date"
VIEWS: Final = {
    "pricing": QUERIES["q1"],
    "loaded": "SELECT count(*) AS rows FROM lineitem",
    "by_order": "SELECT l_orderkey, count(*) AS lines, sum(l_quantity) AS quantity FROM lineitem GROUP BY l_orderkey",
    "order_years": "SELECT extract(year FROM o_orderdate) AS year, count(*) AS orders, sum(o_totalprice) AS total"
    " FROM orders GROUP BY extract(year FROM o_orderdate)",
}
#: What changes with each stream.
CHANGING: Final = (
    "SELECT l_returnflag, l_linestatus, sum_qty, avg_price, count_order FROM pricing ORDER BY 1, 2",
    "SELECT * FROM order_years ORDER BY year",
)


def main() -> int:
    """Runs the demo; the server and its data are gone afterwards."""
    rig = Rig()
    try:
        say("generating TPC-H data at scale factor 1 (once; about half a minute) ...")
        loads, files = rig.tpch.parts(1, "lineitem", LOADS, "csv"), rig.tpch.parts(1, "orders", FILES, "parquet")
        with Millstream() as server, tempfile.TemporaryDirectory(prefix="millstream-demo-") as folder:
            say(f"Millstream answers on 127.0.0.1:{server.port}; Spark starts behind it")
            with server.connect() as client:
                create(client, Path(folder))
                feeders = feed(server, loads, files, Path(folder))
                watch(client, feeders)
                finish(client)
    finally:
        rig.close()
    return 0


def create(client: psycopg.Connection[Any], folder: Path) -> None:
    """Two streams, one fed by clients and one by Spark from files, and the views."""
    run(client, f"CREATE FOREIGN TABLE lineitem ({TABLES['lineitem']}) SERVER stream")
    options = f"OPTIONS (source 'files', path '{folder}', format 'parquet')"
    run(client, f"CREATE FOREIGN TABLE orders ({COLUMNS}) SERVER stream {options}")
    for name, query in VIEWS.items():
        # Left to auto, the rows of small files would all be computed by the demo's own reads.
        options = "WITH (maintenance_engine = 'spark') " if name == "order_years" else ""
        run(client, f"CREATE VIEW {name} {options}AS {query}")


def feed(server: Millstream, loads: list[Path], files: list[Path], folder: Path) -> list[threading.Thread]:
    """psql with one copy after the other, and the folder that grows by one file every few seconds."""
    psql = ["psql", "-qX", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(server.port), "-U", USER, DATABASE]
    script = "".join(f"\\copy lineitem FROM '{part}' (FORMAT csv, HEADER)\n" for part in loads)

    def copy() -> None:
        subprocess.run(psql, input=script.encode(), check=True)

    def grow() -> None:
        for part in files:
            time.sleep(PACE)
            hidden = folder / f".{part.name}"
            shutil.copyfile(part, hidden)
            hidden.rename(folder / part.name)  # a file is there whole or not at all

    feeders = [threading.Thread(target=copy), threading.Thread(target=grow)]
    for feeder in feeders:
        feeder.start()
    return feeders


def watch(client: psycopg.Connection[Any], feeders: list[threading.Thread]) -> None:
    """Fresh reads while the load runs, each of every row acknowledged so far; shows the views that have changed."""
    started, last, before = time.monotonic(), 0.0, (0, 0)
    while before != (LINEITEMS, ORDERS):
        time.sleep(LOOK)
        now, (loaded, found) = time.monotonic() - started, counts(client)
        assert now < LIMIT, "the load does not end"
        if (loaded, found) == before:
            continue
        speed = f", {(loaded - before[0]) / (now - last):,.0f} rows/s" if loaded > before[0] else ""
        progress = f"{now:5.1f} s  lineitem {loaded:>9,} rows ({loaded / LINEITEMS:4.0%}{speed})"
        say(f"{progress}  orders from files {found:>9,} ({found / ORDERS:4.0%})")
        changed = zip((loaded, found), before, CHANGING, strict=True)
        for query in (query for after, old, query in changed if after != old):
            show(client, query)
        last, before = now, (loaded, found)
    for feeder in feeders:
        feeder.join()


def counts(client: psycopg.Connection[Any]) -> tuple[int, int]:
    """Rows of both streams, by views that count them."""
    query = "SELECT (SELECT rows FROM loaded), (SELECT coalesce(sum(orders), 0) FROM order_years)"
    lineitems, orders = client.execute(query).fetchone() or (0, 0)
    return int(lineitems), int(orders)


def finish(client: psycopg.Connection[Any]) -> None:
    """A point read of a large view, a view's plan, and the engine of each job."""
    say("one key of 1,500,000:")
    show(client, "SELECT * FROM by_order WHERE l_orderkey = 7")
    say("EXPLAIN of the view pricing:")
    show(client, "EXPLAIN SELECT * FROM pricing", header=False)
    say("waiting for the background to have maintained all of it ...")
    wait_until(lambda: behind(client) == 0, CAUGHT_UP)
    say("millstream.jobs, by engine:")
    show(
        client,
        "SELECT engine, views, count(*) AS jobs, sum(rows) AS rows, round(sum(seconds)::numeric, 1) AS seconds"
        " FROM millstream.jobs WHERE status = 'done' GROUP BY engine, views ORDER BY engine, views",
    )


def behind(client: psycopg.Connection[Any]) -> int:
    """How many rows the stored states of all views lack."""
    (rows,) = client.execute("SELECT sum(rows_behind)::bigint FROM millstream.views").fetchone() or (0,)
    return int(rows)


def run(client: psycopg.Connection[Any], statement: str) -> None:
    """A statement, shown."""
    print(f"\n{statement.strip()};", flush=True)
    client.execute(statement.encode())


def show(client: psycopg.Connection[Any], query: str, header: bool = True) -> None:
    """A result as an aligned table."""
    cursor = client.execute(query.encode())
    rows = [["" if value is None else str(value) for value in row] for row in cursor.fetchall()]
    names = [column.name for column in cursor.description or ()]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    for row in ([names] if header else []) + rows:
        print("    " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print(flush=True)


def say(text: str) -> None:
    """A line of the demo."""
    print(f"\033[1m-- {text}\033[0m" if sys.stdout.isatty() else f"-- {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

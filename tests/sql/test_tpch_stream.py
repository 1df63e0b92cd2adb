"""TPC-H's queries that scan lineitem once, ad hoc with lineitem as a stream, against PostgreSQL (thesis 3.3.1).

The thesis runs twelve; 5 and 8, which one of the compared systems could not run, are included here. All queries run
concurrently over the rows of one load, whose pieces are random; the other tables are loaded before.
"""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import psycopg
import pytest

from tests.rig.benchmarks import FOLDER, load
from tests.rig.mirror import cut
from tests.rig.postgres import Postgres
from tests.rig.process import wait_until
from tests.rig.server import Millstream
from tests.rig.tpch import TABLES, Tpch

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(300)]

SINGLE = ("q1", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q10", "q12", "q14", "q15", "q19", "q20")
#: The other queries that read lineitem: they scan it more than once, and the thesis omits them.
SEVERAL = ("q17", "q18", "q21")
SCALE = 0.01
Rows = list[tuple[object, ...]]
Connection = psycopg.Connection[tuple[object, ...]]


def _prepare(ours: Connection, theirs: Connection, tpch: Tpch) -> None:
    tables = dict(TABLES)
    load(theirs, tables, partial(tpch.csv, SCALE))
    ours.execute(f"CREATE FOREIGN TABLE lineitem ({tables.pop('lineitem')}) SERVER stream".encode())
    load(ours, tables, partial(tpch.csv, SCALE))
    theirs.execute("CREATE INDEX ON lineitem (l_partkey, l_suppkey); CREATE INDEX ON lineitem (l_orderkey); ANALYZE")


def _ask(server: Millstream, name: str, begun: threading.Event) -> Rows:
    """A query's rows; ``begun`` is set when its scan waits for the first row."""
    with server.connect() as client:
        client.add_notice_handler(lambda notice: begun.set())
        client.execute("SET stream_timeout = '8s'; SET stream_progress = '100ms'")
        return client.execute((FOLDER / "tpch" / f"{name}.sql").read_bytes()).fetchall()


def _has_begun(begun: threading.Event, client: Connection) -> bool:
    """Whether a query has begun. Queries that have begun get a row that no query counts, and continue to wait."""
    client.execute("INSERT INTO lineitem (l_orderkey) VALUES (NULL)")
    return begun.wait(0.5)


def test_queries_of_a_stream_give_what_postgresql_gives_over_a_table(
    postgres: Postgres, tpch: Tpch, whole: bool
) -> None:
    names = SINGLE + SEVERAL if whole else (SINGLE + SEVERAL)[::3]
    with (
        Millstream(settings={"spark_enabled": False}) as server,
        server.connect() as ours,
        postgres.connect() as theirs,
        ThreadPoolExecutor(len(names)) as pool,
    ):
        theirs.execute("CREATE SCHEMA tpch_stream; SET search_path = tpch_stream")
        _prepare(ours, theirs, tpch)
        events = {name: threading.Event() for name in names}
        asked = {name: pool.submit(_ask, server, name, events[name]) for name in names}
        for name, event in events.items():
            wait_until(partial(_has_begun, event, ours), 60, f"begin of {name}")
        for piece in cut(tpch.lines(SCALE, "lineitem"), 40, random.Random(3)):
            with ours.cursor().copy("COPY lineitem FROM STDIN (FORMAT csv)") as target:
                target.write(b"".join(piece))
        for name, future in asked.items():
            wanted = theirs.execute((FOLDER / "tpch" / f"{name}.sql").read_bytes()).fetchall()
            assert future.result(200) == wanted, name
        theirs.execute("DROP SCHEMA tpch_stream CASCADE")

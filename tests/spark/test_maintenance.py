"""Background maintenance by Spark with events meanwhile: drops, and a kill of the server.

The driver is stopped (SIGSTOP) before it gets its job, so that the job runs for as long as a test needs.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.rig.process import wait_until
from tests.rig.server import Millstream

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

SETTINGS = {"spark_driver_memory": "1g", "spark_master": "local[2]", "maintenance_idle": 0.05}
Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def server() -> Iterator[Millstream]:
    """A server with Spark; the last test kills it."""
    with Millstream(settings=SETTINGS) as started:
        with started.connect() as client:
            wait_until(lambda: bool(driver(client)), 120, "Spark")
        yield started


def driver(client: Connection) -> int:
    """The driver's process; 0 while it is not ready."""
    row = client.execute("SELECT detail FROM millstream.engines WHERE name = 'spark' AND available").fetchone()
    found = re.search(r"driver (\d+)", row[0]) if row is not None else None
    return int(found[1]) if found is not None else 0


def begin_job(server: Millstream, client: Connection) -> int:
    """Stops the driver and gives it a job over 2 views, whose rows are ready; returns the driver.

    The views begin at different LSNs, with no row of the stream between these, and share the job. It reads a table's
    rows as of the creation of one of them, which go with that view.
    """
    client.execute("DROP FOREIGN TABLE IF EXISTS s CASCADE")
    client.execute("DROP TABLE IF EXISTS names")
    wait_until(lambda: jobs(client, "running") == 0, 60, "end of the jobs of before")
    client.execute("CREATE TABLE names (k int, name text)")
    client.execute("INSERT INTO names VALUES (1, 'one')")
    client.execute("CREATE FOREIGN TABLE s (k int, n int) SERVER stream")
    client.execute("CREATE VIEW v AS SELECT k, sum(n) AS n FROM s GROUP BY k")
    counted = "SELECT name, count(*) AS rows FROM s JOIN names USING (k) GROUP BY name"
    client.execute(f"CREATE VIEW w WITH (tables = 'frozen') AS {counted}".encode())
    wait_until(lambda: bool(driver(client)), 120, "Spark")
    process = driver(client)
    os.kill(process, signal.SIGSTOP)
    client.execute(f"INSERT INTO s VALUES {', '.join(['(1, 1)'] * 1000)}".encode())
    wait_until(lambda: jobs(client, "running") == 1, 60, "job")
    wait_until(lambda: bool(sealed(server)), 60, "its rows")
    return process


def jobs(client: Connection, status: str) -> int:
    """The number of jobs on Spark."""
    query = f"SELECT count(*) FROM millstream.jobs WHERE engine = 'spark' AND status = '{status}'"
    row = client.execute(query.encode()).fetchone()
    assert row is not None
    return int(row[0])


def sealed(server: Millstream) -> list[Path]:
    """The files sealed for jobs."""
    return list((server.data / "shared/streams").glob("*/*.parquet*"))


@pytest.mark.parametrize("dropped", ["VIEW w", "FOREIGN TABLE s CASCADE"])
def test_a_job_whose_view_is_dropped_is_void_and_the_others_are_maintained(server: Millstream, dropped: str) -> None:
    with server.connect() as client:
        void = jobs(client, "void")
        process = begin_job(server, client)
        client.execute(f"DROP {dropped}".encode())
        os.kill(process, signal.SIGCONT)
        wait_until(lambda: jobs(client, "running") == 0 and not sealed(server), 60, "end of the job")
        if dropped == "VIEW w":
            behind = "SELECT rows_behind FROM millstream.views"
            wait_until(lambda: client.execute(behind).fetchall() == [(0,)], 60, "maintenance")
            assert client.execute("SELECT * FROM v").fetchall() == [(1, 1000)]
        assert jobs(client, "void") == void + 1
        assert jobs(client, "failed") == 0
    wait_until(lambda: not list((server.data / "shared/scratch").iterdir()), 60, "end of what the job wrote")


def test_readers_go_on_during_a_job_and_nothing_is_computed_twice_after_it(server: Millstream) -> None:
    with server.connect() as client:
        process = begin_job(server, client)
        for number in range(1, 4):
            client.execute("INSERT INTO s VALUES (1, 1)")
            assert client.execute("SELECT n FROM v").fetchone() == (1000 + number,)
        os.kill(process, signal.SIGCONT)
        behind = "SELECT sum(rows_behind) FROM millstream.views"
        wait_until(lambda: client.execute(behind).fetchone() == (0,), 60, "maintenance")
        done = "SELECT views, sum(rows) FROM millstream.jobs WHERE detail = 'computed by readers' GROUP BY views"
        assert client.execute(done).fetchall() == [("v", 3)]
        assert client.execute("SELECT n FROM v").fetchone() == (1003,)


def test_the_embedded_engine_maintains_views_while_spark_works(server: Millstream) -> None:
    with server.connect() as client:
        process = begin_job(server, client)
        client.execute("CREATE VIEW e WITH (maintenance_engine = embedded) AS SELECT count(*) AS rows FROM s")
        client.execute("INSERT INTO s VALUES (1, 1)")
        behind = "SELECT rows_behind FROM millstream.views WHERE name = 'e'"
        wait_until(lambda: client.execute(behind).fetchone() == (0,), 60, "maintenance by the embedded engine")
        assert jobs(client, "running") == 1
        os.kill(process, signal.SIGCONT)
        wait_until(lambda: jobs(client, "running") == 0, 60, "end of the job")
        assert client.execute("SELECT * FROM e").fetchall() == [(1,)]


def test_equal_views_of_other_moments_share_a_job(server: Millstream) -> None:
    """Their traces have the same names, and hold other rows."""
    with server.connect() as client:
        client.execute("DROP FOREIGN TABLE IF EXISTS s CASCADE")
        client.execute("DROP TABLE IF EXISTS names")
        client.execute("CREATE TABLE names (k int, name text)")
        client.execute("INSERT INTO names VALUES (1, 'one')")
        client.execute("CREATE FOREIGN TABLE s (k int, n int) SERVER stream")
        for name in ("before", "after"):
            query = "SELECT name, count(*) AS rows, sum(n) AS n FROM s JOIN names USING (k) GROUP BY name"
            client.execute(f"CREATE VIEW {name} WITH (tables = 'frozen') AS {query}".encode())
            client.execute("UPDATE names SET name = 'uno'")
        client.execute("INSERT INTO s VALUES " + ", ".join(["(1, 2)"] * 1000))
        behind = "SELECT sum(rows_behind) FROM millstream.views"
        wait_until(lambda: client.execute(behind).fetchone() == (0,), 60, "maintenance")
        done = "SELECT views FROM millstream.jobs WHERE engine = 'spark' AND status = 'done' ORDER BY id DESC LIMIT 1"
        assert client.execute(done).fetchone() == ("before, after",)
        assert client.execute("SELECT * FROM before").fetchall() == [("one", 1000, 2000)]
        assert client.execute("SELECT * FROM after").fetchall() == [("uno", 1000, 2000)]


def test_rows_meet_the_tables_of_their_commit(server: Millstream) -> None:
    """Spark takes an interval in which no table changes, the embedded engine one that is cut into a few rows."""
    with server.connect() as client:
        client.execute("DROP FOREIGN TABLE IF EXISTS s CASCADE")
        client.execute("DROP TABLE IF EXISTS names")
        client.execute("CREATE TABLE names (k int, name text, rate numeric(8, 2))")
        client.execute("INSERT INTO names VALUES (1, 'one', 1.5), (2, NULL, 2)")
        client.execute("CREATE FOREIGN TABLE s (k int, n int) SERVER stream")
        query = "SELECT name, count(*) AS rows, sum(n * rate) AS n FROM s LEFT JOIN names USING (k) GROUP BY name"
        client.execute(f"CREATE VIEW grouped WITH (tables = 'arrival') AS {query}".encode())
        query = "SELECT n, name, rate FROM s JOIN names USING (k)"
        client.execute(f"CREATE VIEW joined WITH (tables = 'arrival') AS {query}".encode())
        plan = "\n".join(line for (line,) in client.execute("EXPLAIN SELECT * FROM joined").fetchall())
        assert "Spark in the background, the embedded engine for what a reader waits for and between changes" in plan
        rows = "INSERT INTO s VALUES " + ", ".join(["(1, 2), (2, 3), (3, 4)"] * 300)
        behind = "SELECT sum(rows_behind) FROM millstream.views"
        counted = "SELECT count(*) FROM millstream.jobs WHERE status = 'done' AND engine = 'embedded'"
        by_spark, by_embedded = jobs(client, "done"), client.execute(counted).fetchone()
        client.execute(rows.encode())
        wait_until(lambda: client.execute(behind).fetchone() == (0,), 60, "maintenance")
        # A job ends when its rows are committed, which are seen before.
        wait_until(lambda: jobs(client, "done") > by_spark, 60, "Spark's job to end")
        with client.transaction():
            client.execute("INSERT INTO s VALUES (1, 2)")
            client.execute("UPDATE names SET name = 'uno', rate = 10 WHERE k = 1")
            client.execute(rows.encode())
        client.execute("DELETE FROM names")
        client.execute("INSERT INTO s VALUES (1, 7)")
        wait_until(lambda: client.execute(behind).fetchone() == (0,), 60, "maintenance")
        wait_until(lambda: client.execute(counted).fetchone() != by_embedded, 60, "the embedded engine's job to end")
        found = client.execute("SELECT name, rows, n::text FROM grouped ORDER BY name, rows").fetchall()
        assert found == [("one", 300, "900.00"), ("uno", 301, "6020.00"), (None, 1201, "3600.00")]
        found = client.execute(
            "SELECT name, count(*), sum(rate)::text FROM joined GROUP BY name ORDER BY name"
        ).fetchall()
        assert found == [("one", 300, "450.00"), ("uno", 301, "3010.00"), (None, 600, "1200.00")]


def test_a_view_is_right_whether_spark_prints_it_or_leaves_it(server: Millstream) -> None:
    with server.connect() as client:
        client.execute("DROP FOREIGN TABLE IF EXISTS s CASCADE")
        client.execute("CREATE FOREIGN TABLE s (k int, f float8, t text) SERVER stream")
        client.execute("CREATE VIEW printed AS SELECT k, count(*) AS n FROM s WHERE f > 2 OR f = 1 GROUP BY k")
        client.execute("CREATE VIEW left_alone AS SELECT upper(t) AS t, count(*) AS n FROM s GROUP BY upper(t)")
        client.execute("INSERT INTO s VALUES " + ", ".join(["(1, 'NaN', 'ä'), (1, 1, 'ß'), (2, 0, NULL)"] * 200))
        behind = "SELECT sum(rows_behind) FROM millstream.views"
        wait_until(lambda: client.execute(behind).fetchone() == (0,), 60, "maintenance")
        assert client.execute("SELECT * FROM printed").fetchall() == [(1, 400)]
        assert client.execute("SELECT * FROM left_alone ORDER BY t").fetchall() == [("Ä", 200), ("ß", 200), (None, 200)]
        plan = "\n".join(line for (line,) in client.execute("EXPLAIN SELECT * FROM left_alone").fetchall())
        assert "embedded engine (auto: function upper is not supported on Spark)" in plan


def test_a_view_changes_engines_while_spark_dies(server: Millstream) -> None:
    """Its job continues, ends or is lost under the view's former engine: each row is in the view once in any case."""
    ones = f"INSERT INTO s VALUES {', '.join(['(1, 1)'] * 1000)}".encode()
    last = "SELECT engine FROM millstream.jobs WHERE status = 'done' AND views LIKE '%v%' ORDER BY id DESC LIMIT 1"
    behind = "SELECT rows_behind FROM millstream.views WHERE name = 'v'"
    with server.connect() as client:
        process = begin_job(server, client)
        client.execute("ALTER VIEW v SET (maintenance_engine = embedded)")
        assert client.execute("SELECT * FROM v").fetchall() == [(1, 1000)]
        os.kill(process, signal.SIGKILL)
        wait_until(lambda: driver(client) not in (0, process), 120, "another Spark")
        client.execute(ones)
        wait_until(lambda: client.execute(behind).fetchone() == (0,), 60, "maintenance by the embedded engine")
        client.execute("ALTER VIEW v SET (maintenance_engine = spark)")
        for total in (3000, 4000):
            client.execute(ones)
            assert client.execute("SELECT * FROM v").fetchall() == [(1, total)]
            assert client.execute("SELECT * FROM w").fetchall() == [("one", total)]
        wait_until(lambda: client.execute(behind).fetchone() == (0,), 60, "maintenance")
        wait_until(lambda: client.execute(last).fetchone() == ("spark",), 60, "a job of Spark's that is done")
        assert client.execute("SELECT * FROM v").fetchall() == [(1, 4000)]


def test_what_a_killed_job_left_is_swept_at_the_next_start(server: Millstream) -> None:
    """Also that of a view which has changed its engine since the job began."""
    with server.connect() as client:
        begin_job(server, client)
        client.execute("ALTER VIEW v SET (maintenance_engine = embedded)")
    assert sealed(server)
    server.kill9()
    server.settings["spark_enabled"] = False
    server.start()
    assert not sealed(server)
    assert not list((server.data / "shared/scratch").iterdir())
    with server.connect() as client:
        assert client.execute("SELECT * FROM v").fetchall() == [(1, 1000)]
        assert client.execute("SELECT * FROM w").fetchall() == [("one", 1000)]

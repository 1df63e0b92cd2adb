"""Spark maintains views that another server has given away: over files that it follows there, including the rows'
positions, and over other views, except for parts that depend on the time zone of one of these."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from executor.spark.engine import SparkEngine
from tests.executor.client import Client
from tests.executor.folders import Folder
from tests.executor.moving import Servers
from tests.rig.process import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SUMS = "CREATE VIEW sums AS SELECT k, count(*) AS c, sum(n) AS n, max(t) AS t FROM s GROUP BY k"
LISTS = "CREATE VIEW v AS SELECT k, count(*) AS c, sum(n) AS n, array_agg(t) AS t FROM s GROUP BY k"


@pytest.fixture(params=["parquet", "csv"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    return Folder(tmp_path / "incoming", request.param)


@pytest.fixture
def servers(spark: SparkEngine, tmp_path: Path) -> Iterator[Servers]:
    """A home with the embedded engine, and a server with Spark."""
    opened = Servers(tmp_path)
    opened.options |= {"source_poll": 0.02}
    _ = opened["a"]
    opened.options |= {"maintenance_engine": "spark"}
    opened["b"].maintenance.use(spark)
    yield opened
    opened["b"].maintenance.use(None)  # its rows belong to others, too
    opened.close()


def maintained(client: Client) -> bool:
    """Whether all background work is done, and no job is still to be recorded as done."""
    behind = client.run("SELECT sum(rows_behind) FROM millstream.views") == [(0,)]
    return behind and client.run("SELECT id FROM millstream.jobs WHERE status = 'running'") == []


@pytest.mark.sample(3)
def test_it_reads_them_as_they_are(servers: Servers, folder: Folder) -> None:
    """In the order of their home, to which the states return."""
    a = servers.client("a")
    a.run(folder.stream)
    a.run(SUMS)
    a.run(LISTS)
    for _ in range(8):  # its LSNs are above those of the other server
        folder.add(a, 1)
    for source, target in (("a", "b"), ("b", "a"), ("a", "b")):
        for name in ("sums", "v"):
            servers.migrate(source, target, name)
        for count in (3, 1, 5):
            folder.add(a, count)
            if target == "b":
                b = servers.client("b")
                wait_until(lambda: servers["b"].replicas.all()[0].position >= servers["a"].core.sequencer.visible, 60)
                wait_until(lambda: maintained(b), 120, "maintenance")  # noqa: B023
        for name in {"a", target}:
            client = servers.client(name)
            assert client.run("SELECT k, c, n, t FROM v ORDER BY k") == folder.wanted()
            sums = [(k, c, n, max(t)) for k, c, n, t in folder.wanted()]
            assert client.run("SELECT k, c, n, t FROM sums ORDER BY k") == sums
    done = "SELECT DISTINCT views, status FROM millstream.jobs WHERE engine = 'spark'"
    found = servers.client("b").run(done)
    assert isinstance(found, list)
    assert {status for _, status in found} == {"done"}
    assert {name for views, _ in found for name in views.split(", ")} == {"sums", "v"}


def test_time_zones_of_several_views(servers: Servers) -> None:
    """The embedded engine computes what Spark cannot, and EXPLAIN gives the reason."""
    a = servers.client("a")
    a.run("CREATE FOREIGN TABLE u (ts timestamptz, k int) SERVER stream")
    a.session.time_zone = "Asia/Tokyo"
    a.run("CREATE VIEW days AS SELECT k, min(ts::date) AS first, max(ts)::text AS ts FROM u GROUP BY k")
    a.session.time_zone = "UTC"
    own = "SELECT k, max(ts) AS last, count(*) AS c FROM u GROUP BY k"
    for name in ("x", "twin"):
        a.run(f"CREATE VIEW {name} AS SELECT g.*, d.first, d.ts FROM days d JOIN ({own}) g USING (k)")
    servers.migrate("a", "b", "x")
    b = servers.client("b")
    for step in (11, 12, 13):
        a.run(
            f"INSERT INTO u SELECT '2024-05-01 12:30+00'::timestamptz + (k * 37 * {step} % 2000) * "
            "interval '1 minute', k % 3 FROM generate_series(1, 60) k"
        )
        wait_until(lambda: servers["b"].replicas.all()[0].position >= servers["a"].core.sequencer.visible, 60)
        wait_until(lambda: maintained(b), 120, "maintenance")
        wanted = a.run("SELECT * FROM twin ORDER BY k")
        assert isinstance(wanted, list)
        assert len(wanted) == 3
        for client in (a, b):
            assert client.run("SELECT * FROM x ORDER BY k") == wanted
    assert b.run("SELECT DISTINCT engine, status FROM millstream.jobs") == [("embedded", "done")]
    why = "embedded engine (spark: the time zone of another view is not supported on Spark)"
    assert why in "\n".join(line for (line,) in b.run("EXPLAIN SELECT * FROM x"))

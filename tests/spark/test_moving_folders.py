"""Spark reads the files of a folder that another server follows, with their rows' places there."""

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
    """A home where the embedded engine works, and a server where Spark does."""
    opened = Servers(tmp_path)
    opened.options |= {"source_poll": 0.02}
    _ = opened["a"]
    opened.options |= {"maintenance_engine": "spark"}
    opened["b"].maintenance.spark = spark
    yield opened
    opened["b"].maintenance.spark = None  # it is others', too
    opened.close()


def maintained(client: Client) -> bool:
    """Whether nothing is left to do, in the background."""
    return client.run("SELECT sum(rows_behind) FROM millstream.views") == [(0,)]


def test_it_reads_them_as_they_are(servers: Servers, folder: Folder) -> None:
    """In the order of their home, to which the states come back."""
    a = servers.client("a")
    a.run(folder.stream)
    a.run(SUMS)
    a.run(LISTS)
    for _ in range(8):  # whose LSNs are above those of the other server
        folder.add(a, 1)
    for source, target in (("a", "b"), ("b", "a"), ("a", "b")):
        for name in ("sums", "v"):
            servers.migrate(source, target, name)
        for count in (3, 1, 5):
            folder.add(a, count)
            if target == "b":
                b = servers.client("b")
                wait_until(lambda: servers["b"].replicas.all()[0].position >= servers["a"].sequencer.visible, 60)
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

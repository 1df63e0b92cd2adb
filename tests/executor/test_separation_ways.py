"""The three ways in which a query leaves, chosen by cost: EXPLAIN's forecast, and the actual way.

The bandwidth to the storage decides: small results are moved; large ones are computed again if their inputs are
smaller; otherwise the query waits for the next pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from executor.database.database import Database
from executor.separation import service
from executor.separation.running_queries import RunningQuery
from tests.executor.client import Client, open_database
from tests.executor.separating import leave, separable, whole

pytestmark = pytest.mark.slow

#: Few groups, from which the last pipeline makes many rows.
SMALL = (
    "SELECT g.k, t.id, max(t.s) FROM (SELECT k, count(*) AS n FROM t GROUP BY k) g JOIN t ON t.k = g.k "
    "GROUP BY g.k, t.id ORDER BY 1, 2"
)
#: Pairs of few rows, and as many again afterwards.
PAIRS = (
    "SELECT max(r) FROM (SELECT x, y, rank() OVER (ORDER BY x, y) AS r FROM "
    "(SELECT DISTINCT a.id AS x, b.id AS y FROM u a, u b) p) q"
)
#: Many groups, from which the next pipeline makes few.
SHRINKING = (
    "SELECT m, c, count(*) FROM (SELECT n % 7 AS m, count(*) AS c FROM "
    "(SELECT id, s, count(*) AS n FROM t GROUP BY id, s) g GROUP BY 1) h GROUP BY m, c ORDER BY 1, 2"
)


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Database]]:
    """A fast and a slow connection to the storage."""
    opened = {}
    for name, bandwidth in {"quick": 100 << 30, "slow": 1 << 20}.items():
        database = opened[name] = open_database(tmp_path_factory.mktemp(name), storage_bandwidth=bandwidth)
        Client(database).run(
            "CREATE TABLE t (id int PRIMARY KEY, k int NOT NULL, s text NOT NULL);"
            "CREATE TABLE u (id int PRIMARY KEY);"
            "INSERT INTO t SELECT g, g % 10, 'text ' || g FROM generate_series(1, 20000) g;"
            "INSERT INTO u SELECT g FROM generate_series(1, 600) g"
        )
    yield opened
    for database in opened.values():
        database.close()


def explained(client: Client, query: str) -> list[str]:
    """EXPLAIN's forecast for leaving after each pipeline except the last."""
    lines = [str(line) for (line,) in client.run("EXPLAIN " + query)]
    return [line.split(": ")[1] for line in lines if "Leaving After It" in line]


def left(database: Database, query: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Any]:
    """The id of a query that is asked to leave after its first pipeline, by cost, and its rows without leaving."""

    class Query(RunningQuery):
        def advance(self, rows: int, size: int) -> None:
            super().advance(rows, size)
            if self.finished == 1:
                self.ask("suspend")

    client = separable(database)
    wanted = whole(client, query)
    with monkeypatch.context() as patch:
        patch.setattr(service, "RunningQuery", Query)
        query_id = leave(client, query)
    assert query_id is not None
    return query_id, wanted


@pytest.mark.parametrize(
    ("bandwidth", "query", "said", "way", "finished"),
    [
        ("quick", SMALL, "move with p1 ", "move", 1),
        ("quick", PAIRS, "move with p1 ", "move", 1),
        ("slow", SMALL, "move with p1 ", "move", 1),
        ("slow", PAIRS, "redo with nothing ", "redo", 1),
        ("slow", SHRINKING, "wait with p2 ", "wait, then move", 2),
    ],
)
def test_explain_says_by_which_way_it_will_leave(
    bandwidth: str,
    query: str,
    said: str,
    way: str,
    finished: int,
    databases: dict[str, Database],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = databases[bandwidth]
    client = separable(database)
    assert explained(client, query)[0].startswith(said)
    query_id, wanted = left(database, query, monkeypatch)
    shown = f"SELECT state, finished, way FROM millstream.queries WHERE query_id = '{query_id}'"
    assert client.run(shown) == [("suspended", finished, way)]
    assert bool(database.separation.stored.get(query_id).runs.keys() & {"p1", "p2"}) == (way != "redo")
    assert client.run(f"SELECT * FROM millstream.resume('{query_id}')") == wanted
